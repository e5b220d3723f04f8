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

import figures
import measure
from cases import Case
from programs import PEERS, Dcsvm, Job, attempt

ROWS = "5000,10000,20000,50000,100000,200000,464810"
SOLVERS = [PEERS["svm-train"], PEERS["sklearnex64"], Dcsvm(), Dcsvm("early", "--early")]
COLUMNS = ("program", "rows", "round", "status", "seconds")
LOOKS = {  # label, colour, marker
    "svm-train": ("svm-train", figures.BLACK, "^"),
    "sklearnex64": ("scikit-learn-intelex", figures.PURPLE, "D"),
    "dcsvm": ("dcsvm, exact", figures.BLUE, "s"),
    "early": ("dcsvm, early", figures.VERMILION, "o"),
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


def picture(runs: list[dict[str, str]], path: Path) -> None:
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
            end, is_left = f"{label}, {points[-1][1]:.3g} s", program == "svm-train"
            look = {"color": color, "marker": marker, "linewidth": 2}
            series.append(figures.Series(points, look, end=end, is_left=is_left))
            ticks.update(rows for rows, _ in points)
    title = "Seconds of training: covtype, C=32, gamma=32"
    panel = figures.Panel("training rows", "", series, title, x=10, y=10, ticks=sorted(ticks))
    figures.draw(path, [[panel]], inches=(8.0, 4.4))


if __name__ == "__main__":
    main()
