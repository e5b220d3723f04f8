"""What all suites share: options, measured commands, tables that grow, and pictures of tables.

A suite with --out writes a table (.csv) and draws its picture (.png); with --redraw it draws the
picture of the table that is there. A case whose file is absent is skipped with a line on stderr.
"""

import argparse
import csv
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import machine
import process


def beside_python(name: str) -> str:
    """Return the path of a command in this Python's environment, or its name for PATH."""
    path = Path(sys.executable).with_name(name)
    return str(path) if path.exists() else name


PROGRAMS = ("dcsvm-train", "dcsvm-predict", "dcsvm-compress", "svm-train", "svm-predict")
OPTIONS = {
    "data": {"type": Path, "required": True, "help": "folder that datasets.py filled"},
    "raw": {"type": Path, "required": True, "help": "folder of the published files"},
    "out": {"type": Path, "required": True, "metavar": "NAME", "help": "of table and picture"},
    "redraw": {"action": "store_true", "help": "measure nothing"},
    "only": {"default": "", "metavar": "TEXT", "help": "only cases with this in their name"},
    "names": {"dest": "only", "default": "", "metavar": "NAMES", "help": "only these cases"},
    "rounds": {"type": int, "default": 3, "help": "how often everything is run"},
    "splits": {"type": int, "default": 2, "help": "random splits of each table"},
    "threads": {"type": int, "default": machine.usable_cores(), "help": "for every program"},
    "cache": {"type": int, "default": 4000, "metavar": "MB", "help": "for every program (-m)"},
    "timeout": {"type": float, "default": 1200, "metavar": "S", "help": "for a single run"},
    "workers": {"default": "2", "metavar": "LIST", "help": "numbers of them"},
    "python-peers": {"default": sys.executable, "help": "a Python with scikit-learn(-intelex)"},
} | {name: {"default": beside_python(name), "help": "program"} for name in PROGRAMS}


def parser_of(doc: str, names: str, **defaults) -> argparse.ArgumentParser:
    """Make a parser of the named options; `defaults` are those that differ from OPTIONS.

    "names" is the option --only with whole names of cases, with commas between.
    """
    parser = argparse.ArgumentParser(
        description=doc.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for name in names.split():
        parser.add_argument("--only" if name == "names" else f"--{name}", **OPTIONS[name])
    parser.set_defaults(**defaults)
    return parser


def numbers(text: str) -> list[int]:
    return sorted(int(number) for number in text.split(","))


def chosen(cases: Iterable, only: str, separator: str = "") -> list:
    """Return the cases with this text in their names, or with these names, if separated."""
    if only and separator:
        return [case for case in cases if case.name in only.split(separator)]
    return [case for case in cases if only in case.name]


def seconds_of(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def talk(*words) -> None:
    print(*words, file=sys.stderr, flush=True)


def run(*command, good: tuple = (0,)) -> process.Finished:
    """Run and measure a command; raise an error if its exit status is not good."""
    finished = process.run(command, timeout=None, threads=None)
    if finished.code not in good:
        raise RuntimeError(f"{command[0]} failed: {finished.stderr.strip()[-2000:]}")
    return finished


def reported(program: str, *words, **how) -> dict:
    """Run a command of dcsvm; return its report, with `wall` seconds and the `printed` text."""
    with tempfile.TemporaryDirectory(prefix="dcsvm-bench-") as folder:
        report = Path(folder, "report")
        finished = run(program, "-q", "--report", report, *words, **how)
        found = json.loads(report.read_text())
    return found | {"wall": finished.wall, "printed": finished.stdout}


def tabled(options, columns: Sequence[str], lines: Iterable[tuple], picture=None, **about):
    """Write the table of a suite, --out with .csv, after each of its lines, unless only its
    --redraw is wanted; let `picture` draw it (.png) and return its lines.

    Comments at the top of the table name the machine and what is `about` the measurement.
    """
    path, known = options.out.with_suffix(".csv"), [columns]
    if not options.redraw:
        program = getattr(options, "dcsvm_train", beside_python("dcsvm-train"))
        about = machine.describe(program) | about
        for line in lines:
            known.append(line)
            talk(*line)
            write(path, about, known)
    found = read(path)
    if picture:
        drawn = options.out.with_suffix(".png")
        try:
            picture(found, drawn)
        except ImportError:
            talk(f"{drawn} is not drawn: matplotlib is missing")
    return found


def write(path: Path, about: dict, lines: Iterable[Sequence]) -> None:
    """Write a CSV file, first beside it."""
    beside = path.with_name(f".{path.name}")
    with open(beside, "w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {key}: {value}\n" for key, value in about.items())
        csv.writer(file, lineterminator="\n").writerows(lines)
    beside.replace(path)


def read(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def grouped(lines: list[dict], column: str) -> dict[str, list[dict]]:
    """Return the lines of each value of a column, in their order."""
    groups: dict[str, list[dict]] = {}
    for line in lines:
        groups.setdefault(line[column], []).append(line)
    return groups


def markdown(*lines: Iterable) -> str:
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def heading(columns: Sequence[str]) -> str:
    """Return the first two lines of a Markdown table."""
    return f"{markdown(columns)}\n{'|---' * len(columns)}|"


def aligned(table: list[list]) -> str:
    """Align the first column to the left, the others to the right."""
    table = [[str(cell) for cell in line] for line in table]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in table
    )


def number(value: float | None, form: str = "") -> str:
    """Format a number; without a form with about three digits and no exponent."""
    if value is None:
        return "-"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return format(value, form or f".{digits}f")
