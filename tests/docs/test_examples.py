"""Test the manual against the program: examples run, options are described, links resolve.

Fenced blocks of README.md and docs/*.md run page by page, in order, in a separate folder with the
files of stand_ins.py. `python` blocks of a page share one namespace; `sh` blocks run under bash. In
`console` blocks the lines after "$ " run; a single command of ours runs in this process. The
language may be followed by `status=N`, the expected exit status of the last command, and by
`needs=NAME`, one of NEEDS; the block is skipped if that is missing. The output lines of a console
block have to appear in this order, word for word; numbers may differ. " ..." at the end of a line
cuts it, and a line "..." stands for any lines. Blocks of other languages, such as `text`, are not
run.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import stand_ins
from click.testing import CliRunner, Result

from dcsvm.cli import compress, easy, export, grid, predict, train
from dcsvm.problem.options import TrainOptions

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

from option_tables import with_tables  # noqa: E402

README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
LINKED = [
    *PAGES,
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "examples/bench/README.md")),
]
COMMANDS = [train.main, easy.main, grid.main, predict.main, compress.main, export.main]
MAX_WORDS = 1000  # of the README

TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.M | re.S)
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)
# needs no shell
KEEPS_ORDER = "output_bytes" in inspect.signature(Result).parameters
SIMPLE = re.compile(r"^dcsvm-(train|easy|grid|predict|compress|export) [^|&;<>()$`\n]*$")
NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")
CHOSEN = re.compile(r"(?<=best: ).*(?=: )")  # the setting that a search found


def page_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def options_of(command: click.Command) -> list[click.Option]:
    parameters = command.get_params(click.Context(command))
    return [one for one in parameters if isinstance(one, click.Option)]


def page_of(command: click.Command) -> Path:
    """Return the page of a command, which has its name, or that without dcsvm-."""
    pages = (DOCS / f"{name}.md" for name in (command.name, command.name.removeprefix("dcsvm-")))
    return next(page for page in pages if page.exists())


NEEDS = {
    # tests/sklearn has the same name and may be found instead
    "sklearn": lambda: bool(list(importlib.metadata.distributions(name="scikit-learn"))),
    "onnx": lambda: importlib.util.find_spec("onnxruntime") is not None,
    "skl2onnx": lambda: bool(list(importlib.metadata.distributions(name="skl2onnx"))),
    "dask": lambda: importlib.util.find_spec("dask") is not None,
    "svm-train": lambda: shutil.which("svm-train") is not None,
    "cc": lambda: shutil.which("cc") is not None,
}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stand-ins")
    stand_ins.write_all(folder)
    return folder


def examples(path: Path):
    """Return (language, words after it, text, line) of the blocks to run."""
    text = path.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        language, rest, body = block.groups()
        if language in ("python", "console", "sh"):
            words = dict(word.split("=") for word in rest.split())
            yield language, words, body, text[: block.start()].count("\n") + 1


def run_command(line: str) -> tuple[int, str]:
    """Run a shell line; return its exit status and output."""
    simple = SIMPLE.match(line)
    # starting Python again would take most of the time; click before 8.2 puts errors after the rest
    if simple and KEEPS_ORDER:
        main = {main.name: main for main in COMMANDS}[f"dcsvm-{simple[1]}"]
        done = CliRunner().invoke(main, shlex.split(line, comments=True)[1:])
        return done.exit_code, done.output
    programs = os.path.dirname(sys.executable)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
    )
    return done.returncode, done.stdout


def run_block(commands: list[str], where: str, status: int) -> str:
    """Run commands, check the exit status of the last, and return their output."""
    printed = []
    for command in commands:
        wanted = status if command is commands[-1] else 0
        found, output = run_command(command)
        assert found == wanted, f"{where}: status {found}\n{command}\n{output}"
        printed.append(output)
    return "".join(printed)


def commands_and_output(body: str) -> tuple[list[str], list[str]]:
    """Return the commands of a console block, with continuation lines, and the lines shown."""
    commands, shown = [], []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append(line[2:])
        elif commands and commands[-1].endswith("\\"):
            commands[-1] += f"\n{line}"
        elif line.strip() not in ("", "..."):
            shown.append(line)
    return commands, shown


def masked(line: str) -> str:
    """Return a line with a 0 for each number, the singular after it, and a space for each gap."""
    line = NUMBER.sub("0", CHOSEN.sub("0", line))
    return " ".join(re.sub(r"\b0 ((?:\w+ )?\w+)s\b", r"0 \1", line).split())


def not_printed(shown: list[str], output: str) -> list[str]:
    """Return the shown lines that the output lacks, or has earlier than the line shown before."""
    printed = iter([masked(line) for line in output.splitlines()])
    missing = []
    for line in shown:
        whole, cut = masked(line.removesuffix("...")), line.endswith(" ...")
        seen = []
        for one in printed:
            seen.append(one)
            if one.startswith(whole) if cut else one == whole:
                break
        else:
            missing.append(line)
            printed = iter(seen)  # report only this line
    return missing


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_the_examples_of_a_page_run(path, files, tmp_path, monkeypatch):
    folder = tmp_path / "work"
    shutil.copytree(files, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    namespace = {"__name__": "__main__"}
    for language, words, body, line in examples(path):
        if "needs" in words and not NEEDS[words["needs"]]():
            continue
        where, status = f"{page_name(path)}:{line}", int(words.get("status", 0))
        if language == "python":
            exec(compile("\n" * line + body, page_name(path), "exec"), namespace)
        elif language == "sh":
            run_block([body], where, status)
        else:
            commands, shown = commands_and_output(body)
            assert commands, f"{where}: no command"
            output = run_block(commands, where, status)
            missing = not_printed(shown, output)
            assert not missing, f"{where}: not printed: {missing}\n{output}"


@pytest.mark.parametrize(
    ("script", "written"),
    [
        ("train.sh", "covtype.tr.model exact.out early.out"),
        ("train.sh letter letter.t 4 1", "letter.model exact.out"),
        ("predict_early.sh ijcnn1 ijcnn1.t", "ijcnn1.early.model early.out"),
        ("choose.sh train.txt -log2c 0,4,2 -log2g 0,2,1", "train.txt.model"),
    ],
)
def test_a_script_writes_its_files(script, written, files, tmp_path, monkeypatch):
    folder = tmp_path / "work"
    shutil.copytree(files, folder)
    monkeypatch.chdir(folder)
    run_block([f"{ROOT / 'examples'}/{script}"], script, 0)
    assert all((folder / name).stat().st_size for name in written.split())


@pytest.mark.parametrize("name", ["README.md", "examples/train.sh"])
def test_the_first_commands_are_told(name):
    """Training by levels of the paper and early prediction, for files of its example."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "dcsvm-train -c 32 -g 2 -l 4 covtype.tr\n" in text
    assert "dcsvm-predict --early covtype.te covtype.tr.model " in text


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").split()) <= MAX_WORDS


def test_every_page_is_in_a_table_of_contents():
    listed = {"index"}
    for path in DOCS.glob("*.md"):
        for tree in TOCTREE.findall(path.read_text(encoding="utf-8")):
            listed |= {line.strip() for line in tree.splitlines() if not line.startswith(":")}
    assert {path.stem for path in DOCS.glob("*.md")} == listed - {""}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_every_option_is_described(command):
    text = with_tables(page_of(command).read_text(encoding="utf-8"))
    codes = "\n".join(re.findall(r"`([^`\n]+)`", text))
    for option in options_of(command):
        for name in option.opts:
            end = "" if option.nargs == 2 else r"(?![\w-])"  # a label is glued to -w
            assert re.search(rf"^{re.escape(name)}{end}", codes, re.M), name


def test_every_keyword_of_train_is_described():
    text = with_tables((DOCS / "python.md").read_text(encoding="utf-8"))
    for field in dataclasses.fields(TrainOptions):
        assert f"`{field.name}`" in text, field.name


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings, made from their text."""
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", one.strip().lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("path", LINKED, ids=page_name)
def test_links_inside_the_manual_lead_somewhere(path):
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


SURNAME = r"[A-Z][a-zäöü]+"
CITED = re.compile(
    rf"((?:{SURNAME}, )*{SURNAME} and {SURNAME}|(?<=\(){SURNAME}) \(?((?:19|20)\d\d)\b"
)


def works(entries: str) -> set[tuple[str, str]]:
    """Return (surnames, year) of each entry of a list of references."""
    found = set()
    for entry in entries.split("\n- ")[1:]:
        authors, _, rest = " ".join(entry.split()).partition(":")
        year = re.findall(r"\b(?:19|20)\d\d\b", rest)[-1]
        found.add((" ".join(one.split()[-1] for one in authors.split(", ")), year))
    return found


def test_every_citation_has_an_entry_on_its_page_and_every_entry_is_cited():
    for path in DOCS.glob("*.md"):
        text, _, entries = path.read_text(encoding="utf-8").partition("\n## References\n")
        cited = CITED.findall(BLOCK.sub("", " ".join(text.split())))
        cited = {(re.sub(", | and ", " ", authors), year) for authors, year in cited}
        assert cited == works(entries), page_name(path)


def options_of_readme() -> list[tuple[str, str, str]]:
    """Return option, meaning and default of the rows of README's table."""
    rows = re.findall(
        r"^\| `(-\S+)[^|`]*` \| ([^|]*) \| ([^|]*)\|$", README.read_text("utf-8"), re.M
    )
    assert len(rows) >= 5
    return [(option, meaning, default.strip()) for option, meaning, default in rows]


@pytest.mark.parametrize(("name", "meaning", "default"), options_of_readme())
def test_the_options_of_the_readme_have_the_values_and_defaults_of_the_program(
    name, meaning, default
):
    (option,) = (one for one in options_of(train.main) if name in one.opts)
    assert default in (option.default_text, "off" if option.is_flag else "")
    for number, value in re.findall(r"(\d) ([\w-]+)", meaning):
        assert option.type.convert(value, None, None) == option.type.convert(number, None, None)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_a_page_has_the_exit_statuses_of_its_command(command):
    text = page_of(command).read_text(encoding="utf-8")
    _, _, section = text.partition("\n## Exit status\n")
    rows = re.findall(r"^\| (\d[\d, ]*) \|", section.partition("\n## ")[0], re.M)
    assert not rows or rows == [status for status, _ in command.statuses]


@pytest.mark.slow
def test_the_manual_builds(tmp_path):
    pytest.importorskip("furo")
    pytest.importorskip("myst_parser")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", DOCS, tmp_path / "html"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
