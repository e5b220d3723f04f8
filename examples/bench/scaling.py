"""Measure how training scales with threads: a table (.csv) and a picture (.png).

    python scaling.py --data DIR --out docs/scaling [--redraw]

DIR is the output folder of datasets.py. Each round trains each case with one thread, with
--threads threads, and twice at once with one thread each: what the machine reaches if nothing is
shared. A case whose file is absent is skipped with a line on stderr.

The parallel fraction f of a run with P threads is from its report. One thread would take
T(1) = work + serial seconds, and the run took T(P) = (work + waits) / P + serial seconds, so waits
count as serial. By Amdahl's law T(1) / T(P) = 1 / (1 - f + f / P) gives f, and from it the speedup
for other numbers of threads. The passes are the kernel values of training over those of refine and
gradient, which no solver can skip.

The table is rewritten after each run; --redraw makes the picture from the table alone.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median

import csv_table
import machine
from bench import beside_python, talk
from cases import Case, rbf
from rows import sample_lines

CASES = [
    rbf("ijcnn1", "ijcnn1", None, 32, 2),
    rbf("a9a", "a9a", None, 32, 2**-7),
    rbf("covtype-20k g=2", "covtype.20000.tr", None, 32, 2),
    rbf("covtype-20k bias", "covtype.20000.tr", None, 32, 32, extra=("--bias",)),
    rbf("covtype-100k", "covtype.100000.tr", None, 32, 32),
    rbf("covtype", "covtype.tr", None, 32, 32),
    rbf("flags-8k", "flags.tr", None, 10, 0.02, rows=8000),
]
COLUMNS = ("case", "round", "one", "several", "beside", "fraction", "passes")
MACHINES = (8, 32)  # threads of the predictions
INCHES, DOTS = (8.0, 3.4), 200


def main() -> None:
    options = parse_arguments()
    table = options.out.with_suffix(".csv")
    if not options.redraw:
        measure(options, table)
    runs = csv_table.read(table)
    print("\n".join(lines_of(runs, options.threads)))
    draw(runs, options.out.with_suffix(".png"))


def measure(options: argparse.Namespace, table: Path) -> None:
    about = machine.describe(options.dcsvm_train) | {"threads": options.threads}
    lines: list[tuple] = []
    for case in (case for case in CASES if options.only in case.name):
        with tempfile.TemporaryDirectory(prefix="dcsvm-scaling-") as work:
            train = options.data / case.train
            if not train.exists():
                talk(f"{case.name}: no file {train}, skipped")
                continue
            if case.rows:
                sample_lines(train, Path(work) / "train", case.rows, case.seed)
                train = Path(work) / "train"
            for number in range(1, options.rounds + 1):
                lines.append((case.name, number, *measured(case, train, Path(work), options)))
                csv_table.write(table, about, [COLUMNS, *lines])
                talk(f"{case.name}, round {number}: {lines[-1][2:]}")


def measured(case: Case, train: Path, work: Path, options: argparse.Namespace) -> list[str]:
    """Return seconds with one thread, with several, and of two runs at once; f and passes."""
    one, several = (
        reports(case, train, work, options, n_threads, 1)[0] for n_threads in (1, options.threads)
    )
    beside = max(seconds_of(report) for report in reports(case, train, work, options, 1, 2))
    seconds = seconds_of(one), seconds_of(several), beside
    values = several["evaluations_by_phase"]
    passes = several["kernel_evaluations"] / max(values["refine"] + values["gradient"], 1)
    return [f"{value:.4g}" for value in (*seconds, fraction(several), passes)]


def reports(
    case: Case, train: Path, work: Path, options: argparse.Namespace, n_threads: int, n_runs: int
) -> list[dict]:
    """Train `n_runs` times at once, and return the reports."""
    command = [options.dcsvm_train, "-q", "-c", case.C, *case.kernel.options(), *case.extra]
    command += ["--threads", n_threads]
    outputs = [(work / f"report{k}", work / f"model{k}") for k in range(n_runs)]
    processes = [
        subprocess.Popen([str(word) for word in (*command, "--report", report, train, model)])
        for report, model in outputs
    ]
    for process in processes:
        if process.wait():
            raise SystemExit(f"dcsvm-train failed on {case.name}")
    return [json.loads(report.read_text()) for report, _ in outputs]


def seconds_of(report: dict) -> float:
    return report["seconds"]["train"]


def fraction(report: dict) -> float:
    """Return the parallel fraction of a run with several threads."""
    phases, n = report["threads_by_phase"].values(), report["threads"]
    work, waits, serial = (
        sum(phase[use] for phase in phases) for use in ("work", "waits", "serial")
    )
    share = ((work + waits) / n + serial) / (work + serial)
    return (1 - share) * n / (n - 1)


def speedup(f: float, n_threads: int) -> float:
    """Return Amdahl's figure."""
    return 1 / (1 - f + f / n_threads)


def lines_of(runs: list[dict[str, str]], n_threads: int) -> list[str]:
    """Return a Markdown table of the medians."""
    heading = ["case", "1 thread", f"{n_threads} threads", "ratio", "ratio by f", "two runs", "f"]
    heading += [*(f"{n} threads" for n in MACHINES), "passes"]
    lines = [heading, ["---"] * len(heading)]
    for name, own in by_case(runs).items():
        one, several, beside, f, passes = (
            median(float(run[column]) for run in own) for column in COLUMNS[2:]
        )
        ratios = one / several, speedup(f, n_threads), 2 * one / beside
        cells = [f"{one:.2f}", f"{several:.2f}", *(f"{ratio:.2f}" for ratio in ratios), f"{f:.3f}"]
        cells += [f"{speedup(f, n):.1f}" for n in MACHINES]
        lines.append([name, *cells, f"{passes:.2f}"])
    return [f"| {' | '.join(line)} |" for line in lines]


def by_case(runs: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    return {name: [run for run in runs if run["case"] == name]
            for name in dict.fromkeys(run["case"] for run in runs)}  # fmt: skip


def draw(runs: list[dict[str, str]], path: Path) -> None:
    """Draw the fraction that is not parallel, and the passes of each case, as bars."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    cases = by_case(runs)
    serial = [1 - median(float(run["fraction"]) for run in own) for own in cases.values()]
    passes = [median(float(run["passes"]) for run in own) for own in cases.values()]
    panels = (
        ("Not parallel, % of the work", [100 * share for share in serial], "#0072B2"),
        ("Kernel values, in necessary passes", passes, "#D55E00"),
    )
    style = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, both = plt.subplots(1, 2, figsize=INCHES, sharey=True)
        for axes, (title, values, color) in zip(both, panels, strict=True):
            bars = axes.barh(list(cases), values, color=color, height=0.6)
            axes.bar_label(bars, fmt="%.1f", padding=3)
            axes.set_title(title, loc="left", fontsize=11)
            axes.set_xlim(0, 1.15 * max(values))
            axes.tick_params(left=False)
        both[0].invert_yaxis()
        figure.tight_layout()
        figure.savefig(path, dpi=DOTS, facecolor="white")
        plt.close(figure)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder that datasets.py filled")
    add("--out", type=Path, required=True, metavar="NAME", help="of the table and the picture")
    add("--redraw", action="store_true", help="measure nothing")
    add("--only", default="", metavar="TEXT", help="cases with this text in their name")
    add("--rounds", type=int, default=3, help="how often everything is run")
    add("--threads", type=int, default=max(machine.usable_cores(), 2), help="of the threaded runs")
    add("--dcsvm-train", default=beside_python("dcsvm-train"), help="program")
    return parser.parse_args()


if __name__ == "__main__":
    main()
