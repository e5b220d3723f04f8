"""Test docs/paper.md: every line of its tables has a place, and every place it names exists.

The second column of a table is the place. Its codes are Python names, `FILE:NAME` for C++,
commands with options, or targets of examples/Makefile; or it says "not here". The third column
begins with one of VERDICTS.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from pathlib import Path

import click
import pytest

from dcsvm.cli import man

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(EXAMPLES))

PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
COMMANDS = {command.name: command for command in man.COMMANDS}
NOWHERE, VERDICTS = "not here", ("Exactly", "Differs", "Not here")
LINEARISED = "paper.baselines.linearised"  # imports scikit-learn
LABELS = [
    *(f"Theorem {number}" for number in (1, 2, 3)),
    *("Lemma 1", "Algorithm 1"),
    *(f"Equation ({number})" for number in (1, 2, 5, 9, 10, 11)),
    "Equations (3) and (4)",
    *(f"Table {number}" for number in range(1, 11)),
    *(f"Figure {number}" for number in range(1, 9)),
]

CODE = re.compile(r"`([^`]+)`")
PLACES = {  # kind of a place: its form
    "python": re.compile(r"(?:dcsvm|paper|bench)(?:\.\w+)+"),
    "core": re.compile(r"(csrc/[\w/]+\.(?:h|cc)):(\w+)"),
    "command": re.compile(r"dcsvm-\w+ .+"),
    "target": re.compile(r"make -C examples ([\w-]+)"),
}


def table_lines() -> list[list[str]]:
    """Return the cells of every table line of the page, without heads."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    heads = {k - 1 for k, line in enumerate(lines) if set(line) <= set("|-")}
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for k, line in enumerate(lines)
        if k not in heads and k - 1 not in heads
    ]


LINES = table_lines()


def places(kind: str) -> list[str]:
    """Return the places of a kind, in all columns."""
    codes = {code for line in LINES for cell in line for code in CODE.findall(cell)}
    return sorted(code for code in codes if PLACES[kind].fullmatch(code))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0][:40])
def test_a_line_has_a_place_and_a_verdict(line):
    _, place, difference = line
    assert difference.startswith(VERDICTS)
    assert (place == NOWHERE) == difference.startswith("Not here")
    codes = CODE.findall(place)
    assert codes or place == NOWHERE
    for code in codes:
        assert any(form.fullmatch(code) for form in PLACES.values()), code


@pytest.mark.parametrize("label", LABELS)
def test_every_numbered_part_of_the_paper_has_a_line(label):
    form = re.compile(rf"{re.escape(label)}(?!\d)")
    assert any(form.search(line[0]) for line in LINES)


@pytest.mark.parametrize("name", places("python"))
def test_a_python_name_exists(name):
    if name.startswith(LINEARISED):
        pytest.importorskip("sklearn.svm")
    pkgutil.resolve_name(name)


@pytest.mark.skipif(not (ROOT / "csrc").is_dir(), reason="the sources of the core are not here")
@pytest.mark.parametrize("place", places("core"))
def test_a_file_of_the_core_has_the_name(place):
    path, name = PLACES["core"].fullmatch(place).groups()
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(rf"\b{name}\b", re.sub(r"//[^\n]*", "", text))


@pytest.mark.parametrize("line", places("command"))
def test_a_command_has_the_options(line):
    name, *words = line.split()
    command = COMMANDS[name]
    files = [one.name for one in command.params if isinstance(one, click.Argument) and one.required]
    command.make_context(name, [*words, *files])  # exits if an option or its value is unknown


@pytest.mark.parametrize("place", places("target"))
def test_a_target_is_in_the_makefile(place):
    text = (EXAMPLES / "Makefile").read_text(encoding="utf-8")
    rules = re.findall(r"^([^\s#=:][^#=:\n]*):(?!=)", text.replace("\\\n", " "), re.M)
    targets = {word for rule in rules if not rule.startswith(".") for word in rule.split()}
    assert PLACES["target"].fullmatch(place)[1] in targets
