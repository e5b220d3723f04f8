"""Measure how training scales with threads: a table (.csv) and a picture (.png).

Each round trains each case with one thread, with --threads threads, and twice at once with one
thread each: what the machine reaches if nothing is shared.

The parallel fraction f of a run with P threads is from its report. One thread would take
T(1) = work + serial seconds, and the run took T(P) = (work + waits) / P + serial seconds, so waits
count as serial. By Amdahl's law T(1) / T(P) = 1 / (1 - f + f / P) gives f, and from it the speedup
for other numbers of threads. The passes are the kernel values of training over those of refine and
gradient, which no solver can skip.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import figures
import machine
import measure
from cases import Case
from programs import Job, jobs

CASES = [
    Case("ijcnn1", "ijcnn1", None, 32, 2),
    Case("a9a", "a9a", None, 32, 2**-7),
    Case("covtype-20k g=2", "covtype.20000.tr", None, 32, 2),
    Case("covtype-20k bias", "covtype.20000.tr", None, 32, 32, extra=("--bias",)),
    Case("covtype-100k", "covtype.100000.tr", None, 32, 32),
    Case("covtype", "covtype.tr", None, 32, 32),
    Case("flags-8k", "flags.tr", None, 10, 0.02, rows=8000),
]
COLUMNS = ("case", "round", "one", "several", "beside", "fraction", "passes")
MACHINES = (8, 32)  # threads of the predictions


def main() -> None:
    several = max(machine.usable_cores(), 2)
    names = "data out redraw only rounds threads dcsvm-train"
    options = measure.parser_of(__doc__, names, threads=several).parse_args()
    lines = measure.tabled(options, COLUMNS, lines_of(options), picture, threads=options.threads)
    print(table_of(medians(lines), options.threads))


def lines_of(options: argparse.Namespace) -> Iterator[tuple]:
    for job in jobs(measure.chosen(CASES, options.only), options):
        for number in range(1, options.rounds + 1):
            yield job.case.name, number, *measured(job)


def medians(lines: list[dict[str, str]]) -> dict[str, dict[str, float]]:
    return {
        name: {column: median(float(one[column]) for one in own) for column in COLUMNS[2:]}
        for name, own in measure.grouped(lines, "case").items()
    }


def measured(job: Job) -> list[str]:
    """Return seconds with one thread, with several, and of two runs at once; f and passes."""
    one, several = report(job, 1), report(job, job.options.threads)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda name: report(job, 1, name), "ab"))
    seconds = [one["seconds"]["train"], several["seconds"]["train"]]
    seconds.append(max(beside["seconds"]["train"] for beside in both))
    values = several["evaluations_by_phase"]
    passes = several["kernel_evaluations"] / max(values["refine"] + values["gradient"], 1)
    return [f"{value:.4g}" for value in (*seconds, fraction(several), passes)]


def report(job: Job, n_threads: int, model: str = "model") -> dict:
    words = [*job.case.options(), *job.case.extra, "--threads", n_threads]
    return measure.reported(job.options.dcsvm_train, *words, job.train, job.work / model)


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


def table_of(cases: dict[str, dict[str, float]], n_threads: int) -> str:
    """Return a Markdown table of the medians."""
    columns = ["case", "1 thread", f"{n_threads} threads", "ratio", "ratio by f", "two runs", "f"]
    lines = [measure.heading([*columns, *(f"{n} threads" for n in MACHINES), "passes"])]
    for name, own in cases.items():
        one, several, beside, f, passes = own.values()
        numbers = one, several, one / several, speedup(f, n_threads), 2 * one / beside
        cells = [name, *(f"{value:.2f}" for value in numbers), f"{f:.3f}"]
        cells += [f"{speedup(f, n):.1f}" for n in MACHINES]
        lines.append(measure.markdown([*cells, f"{passes:.2f}"]))
    return "\n".join(lines)


def picture(lines: list[dict[str, str]], path: Path) -> None:
    """Draw the fraction that is not parallel, and the passes of each case, as bars."""
    cases = medians(lines)
    serial = [(100 * (1 - own["fraction"]), name) for name, own in cases.items()]
    passes = [(own["passes"], name) for name, own in cases.items()]
    panels = {
        "Not parallel, % of the work": [figures.Series(serial, {"color": figures.BLUE})],
        "Kernel values, in necessary passes": [
            figures.Series(passes, {"color": figures.VERMILION})
        ],
    }
    figures.draw(path, figures.in_rows(panels, 1), inches=(8.0, 3.4))


if __name__ == "__main__":
    main()
