"""Measure seconds of training by program and rows of covtype: a table (.csv) and a picture (.png).

    python seconds.py --data DIR --out docs/seconds [--redraw]

DIR is the output folder of datasets.py. The rows are the first of covtype.tr, which are in random
order; C and gamma are the paper's. Each program gets more rows until a run takes longer than
--timeout. Each point is the median of --rounds runs, done in turn. The table is rewritten after
each run; --redraw makes the picture from the table alone.
"""

import argparse
import sys
import tempfile
from itertools import islice
from pathlib import Path
from statistics import median

import csv_table
import machine
from bench import attempt_training, beside_python, talk
from cases import rbf
from solvers import PEERS, Dcsvm, Job, Setup

ROWS = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 464_810)
SOLVERS = [PEERS["svm-train"], PEERS["sklearnex64"], Dcsvm(), Dcsvm("early", ("--early",))]
COLUMNS = ("program", "rows", "round", "status", "seconds")
LOOKS = {  # label, colour (Okabe and Ito, "Color Universal Design"), marker, side of the label
    "svm-train": ("svm-train", "#000000", "^", "left"),
    "sklearnex64": ("scikit-learn-intelex", "#CC79A7", "D", "right"),
    "dcsvm": ("dcsvm, exact", "#0072B2", "s", "right"),
    "early": ("dcsvm, early", "#D55E00", "o", "right"),
}
INCHES, DOTS = (8.0, 4.4), 200  # 1600 pixels wide, shown 800 wide
LINE = 1.35  # height of a label, in font sizes


def main() -> None:
    options = parse_arguments()
    table = options.out.with_suffix(".csv")
    if not options.redraw:
        measure(options, table)
    draw(read(table), options.out.with_suffix(".png"))


def measure(options: argparse.Namespace, table: Path) -> None:
    about = machine.describe(options.dcsvm_train) | {"threads": options.threads}
    runs, ended = [], set()
    for rows in options.rows:
        with tempfile.TemporaryDirectory(prefix="dcsvm-seconds-") as work:
            setup, job = prepare(rows, options, Path(work))
            for number in range(1, options.rounds + 1):
                for solver in SOLVERS:
                    if solver.name in ended:
                        continue
                    run = attempt_training(solver, job, setup)
                    ok = run.status == "ok"
                    seconds = f"{max(run.seconds - run.reading, 0):.4g}" if ok else ""
                    runs.append((solver.name, rows, number, run.status, seconds))
                    csv_table.write(table, about, [COLUMNS, *runs])
                    talk(f"{rows} rows, round {number}, {solver.name}: {seconds or run.status} "
                         f"{run.message.strip()[-300:]}".rstrip())  # fmt: skip
                    if run.status in ("timeout", "missing"):
                        ended.add(solver.name)


def prepare(rows: int, options: argparse.Namespace, work: Path) -> tuple[Setup, Job]:
    whole, train = options.data / "covtype.tr", work / "train"
    with open(whole, "rb") as source, open(train, "wb") as target:
        target.writelines(islice(source, rows))
    names = ("dcsvm_train", "svm_train", "python_peers")
    programs = {name: getattr(options, name) for name in names}
    setup = Setup(
        options.threads, options.cache, options.timeout, work,
        dcsvm_predict="", svm_predict="", **programs,
    )  # fmt: skip
    return setup, Job(rbf(f"covtype {rows}", "covtype.tr", None, 32, 32), train, None, work)


def read(table: Path) -> dict[str, list[tuple[int, float]]]:
    """Return rows and median seconds of each program, if all of its rounds ended."""
    runs = csv_table.read(table)
    lines: dict[str, list[tuple[int, float]]] = {}
    for program in LOOKS:
        own = [run for run in runs if run["program"] == program]
        for rows in sorted({int(run["rows"]) for run in own}):
            these = [run for run in own if int(run["rows"]) == rows]
            if all(run["status"] == "ok" for run in these):
                point = rows, median(float(run["seconds"]) for run in these)
                lines.setdefault(program, []).append(point)
    return lines


def draw(lines: dict[str, list[tuple[int, float]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    style = {"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(figsize=INCHES)
        for program, points in lines.items():
            _, color, marker, _ = LOOKS[program]
            axes.plot(*zip(*points, strict=True), color=color, marker=marker, linewidth=2)
        axes.set(xscale="log", yscale="log", xlabel="training rows")
        axes.set_title("Seconds of training: covtype, C=32, gamma=32", loc="left", fontsize=12)
        sizes = sorted({rows for points in lines.values() for rows, _ in points})
        axes.set_xticks(sizes, [f"{rows:,}" for rows in sizes])
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(color="#dddddd", linewidth=0.7)
        axes.set_axisbelow(True)
        figure.subplots_adjust(left=0.075, right=0.79, bottom=0.125, top=0.92)
        label(axes, lines)
        figure.savefig(path, dpi=DOTS, facecolor="white")
        plt.close(figure)


def label(axes, lines: dict[str, list[tuple[int, float]]]) -> None:
    """Write the name and the last value at the end of each line; move overlapping labels apart."""
    size = axes.figure.dpi / 72  # pixels per typographic point
    height = LINE * 11 * size
    axes.autoscale_view()
    ends = {program: axes.transData.transform(points[-1]) for program, points in lines.items()}
    taken: list[tuple[float, float]] = []
    for program in sorted(ends, key=lambda program: ends[program][1]):
        text, color, _, side = LOOKS[program]
        (x, y), (rows, seconds) = ends[program], lines[program][-1]
        if side == "right":
            place = max([y, *(other + height for at, other in taken if at == x)])
            taken.append((x, place))
            offset = {"xytext": (9, (place - y) / size), "va": "center"}
        else:
            offset = {"xytext": (-9, 2), "va": "bottom", "ha": "right"}
        axes.annotate(
            f"{text}, {seconds:.3g} s", (rows, seconds), textcoords="offset points",
            color=color, annotation_clip=False, **offset,
        )  # fmt: skip


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder that datasets.py filled")
    add("--out", type=Path, required=True, metavar="NAME", help="of the table and the picture")
    add("--redraw", action="store_true", help="measure nothing")
    add("--rows", type=sizes, default=",".join(map(str, ROWS)), metavar="LIST", help="of these")
    add("--rounds", type=int, default=3, help="how often everything is run")
    add("--threads", type=int, default=machine.usable_cores(), help="for every program")
    add("--cache", type=int, default=4000, metavar="MB", help="budget of every program (-m)")
    add("--timeout", type=float, default=300, metavar="S", help="for a single run")
    add("--dcsvm-train", default=beside_python("dcsvm-train"), help="program")
    add("--svm-train", default="svm-train", help="program")
    add("--python-peers", default=sys.executable, help="a Python that has scikit-learn-intelex")
    return parser.parse_args()


def sizes(text: str) -> list[int]:
    return sorted(int(size) for size in text.split(","))


if __name__ == "__main__":
    main()
