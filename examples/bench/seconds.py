"""Measure seconds of training by program and rows of covtype: a table (.csv) and a picture (.png).

The rows are the first of covtype.tr, which are in random order; C and gamma are the paper's. Each
program gets more rows until a run takes longer than --timeout. Each point is the median of --rounds
runs, done in turn.
"""

import argparse
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median

import measure
from cases import Case
from measure import Picture, Series
from programs import PEERS, Dcsvm, Job, attempt

ROWS = "5000,10000,20000,50000,100000,200000,464810"
SOLVERS = [PEERS["svm-train"], PEERS["sklearnex64"], Dcsvm(), Dcsvm("early", "--early")]
COLUMNS = ("program", "rows", "round", "status", "seconds")
LOOKS = {  # label, colour, marker
    "svm-train": ("svm-train", measure.BLACK, "^"),
    "sklearnex64": ("scikit-learn-intelex", measure.PURPLE, "D"),
    "dcsvm": ("dcsvm, exact", measure.BLUE, "s"),
    "early": ("dcsvm, early", measure.VERMILION, "o"),
}


def main() -> None:
    parser = measure.parser_of(
        __doc__, "data out redraw rounds threads cache timeout dcsvm-train svm-train python-peers",
        timeout=300,
    )  # fmt: skip
    parser.add_argument("--rows", type=measure.numbers, default=ROWS, metavar="LIST", help="these")
    options = parser.parse_args()
    measure.tabled(options, COLUMNS, lines_of(options), picture, threads=options.threads)


def lines_of(options: argparse.Namespace) -> Iterator[tuple]:
    ended = set()
    for rows in options.rows:
        with tempfile.TemporaryDirectory(prefix="dcsvm-seconds-") as work:
            train, case = Path(work, "train"), Case(f"covtype {rows}", "covtype.tr", None, 32, 32)
            with open(options.data / case.train, "rb") as source, open(train, "wb") as target:
                target.writelines(islice(source, rows))
            job = Job(case, train, None, Path(work), options)
            for number in range(1, options.rounds + 1):
                for solver in (one for one in SOLVERS if one.name not in ended):
                    run = attempt(solver, job)
                    ok = run.status == "ok"
                    seconds = f"{max(run.seconds - run.reading, 0):.4g}" if ok else ""
                    yield solver.name, rows, number, run.status, seconds
                    if run.status in ("timeout", "missing"):
                        ended.add(solver.name)
                    if run.message:
                        measure.talk(run.message.strip()[-300:])


def picture(runs: list[dict[str, str]]) -> Picture:
    """Draw the median seconds of each program, where all of its rounds ended."""
    series, ticks = [], set()
    for program, (label, color, marker) in LOOKS.items():
        own = measure.grouped([run for run in runs if run["program"] == program], "rows")
        points = sorted(
            (int(rows), median(float(run["seconds"]) for run in these))
            for rows, these in own.items()
            if all(run["status"] == "ok" for run in these)
        )
        if points:
            x, y = zip(*points, strict=True)
            end, is_left = f"{label}, {y[-1]:.3g} s", program == "svm-train"
            series.append(Series(label, x, y, color, marker, 6, 2, end=end, is_left=is_left))
            ticks.update(x)
    return Picture(
        {"Seconds of training: covtype, C=32, gamma=32": series}, (8.0, 4.4),
        labels=("training rows", ""), log="xy", ticks=sorted(ticks),
    )  # fmt: skip


if __name__ == "__main__":
    main()
