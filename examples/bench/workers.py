"""Compare training on workers of a Dask cluster on this machine with threads of one process.

Both run in turn, with one thread per worker. Seconds are the median training time of the runs,
without reading and without the start of the workers. The efficiency is seconds with threads over
seconds on workers. Bytes, tasks and rounds are the terms of the manual's formula
(README.md). Kernel evaluations and the objective are given for threads and for workers.
Prints the lines of a Markdown table. `make_data.py digits 1000000 FOLDER --round` makes
`digits.1000000`; data sets without files are skipped.
"""

from collections.abc import Iterator
from statistics import median

import measure
import numpy as np
from cases import Case
from datasets import write_lines
from programs import Job, jobs

MADE, MADE_ROWS = "spots.1000000", 1_000_000
COLUMNS = ("case", "workers", "s, threads", "s, workers", "efficiency", "sent MB", "received MB",
           "moved MB", "tasks", "rounds", "kernel values", "objective")  # fmt: skip
EARLY = ("--early",)
CASES = [
    Case("covtype early", "covtype.tr", None, 32, 32, extra=EARLY),
    Case("covtype gamma 32", "covtype.tr", None, 32, 32),
    Case("covtype gamma 2", "covtype.tr", None, 32, 2),
    Case("ijcnn1 early", "ijcnn1", None, 32, 2, extra=EARLY),
    Case("ijcnn1", "ijcnn1", None, 32, 2),
    Case("spots early", MADE, None, 8, 2, extra=EARLY),
    Case("spots", MADE, None, 8, 2),
    Case("digits early", "digits.1000000", None, 1, 2**-21, extra=(*EARLY, "--early-level", "3")),
]


def main() -> None:
    parser = measure.parser_of(__doc__, "data names workers")
    parser.add_argument("--runs", type=int, default=3, help="how often everything is run")
    options = parser.parse_args()
    cases = measure.chosen(CASES, options.only, ",")
    made = options.data / MADE
    if any(case.train == MADE for case in cases) and not made.exists():
        write_lines(made, made_rows())
    print(measure.heading(COLUMNS), flush=True)
    for job in jobs(cases, options):
        for n_workers in measure.numbers(options.workers):
            print(measure.markdown(measured(job, n_workers)), flush=True)


def made_rows() -> Iterator[bytes]:
    """Yield LIBSVM text of rows with 10 features in spots of two classes, some mislabelled."""
    rng = np.random.default_rng(0)
    spots = rng.random((200, 10))
    for _ in range(MADE_ROWS // 10_000):
        which = rng.integers(len(spots), size=10_000)
        X = spots[which] + rng.normal(0, 0.08, (10_000, 10))
        y = np.where((which % 2 == 0) ^ (rng.random(10_000) < 0.002), 1, -1)
        for row, label in zip(X, y, strict=True):
            pairs = " ".join(f"{j + 1}:{value:.6g}" for j, value in enumerate(row))
            yield f"{label} {pairs}\n".encode()


def measured(job: Job, n_workers: int) -> list:
    """Return a line of the table."""
    found = []
    for _ in range(job.options.runs):
        pair = report(job, n_workers), report(job, n_workers, "--workers", n_workers)
        found.append([one["seconds"]["train"] for one in pair])
    here, there = (median(column) for column in zip(*found, strict=True))
    traffic = pair[1]["traffic"]
    cells = [job.case.name, n_workers, f"{here:.2f}", f"{there:.2f}", f"{100 * here / there:.0f} %"]
    cells += [f"{traffic[f'bytes_{how}'] / 1e6:.1f}" for how in ("sent", "received", "moved")]
    cells += [traffic["tasks"], traffic["rounds"]]
    cells.append(" ".join(f"{one['kernel_evaluations']:.3g}" for one in pair))
    values = ("" if one["objective"] is None else f"{one['objective']:.9g}" for one in pair)
    return [*cells, " ".join(values)]


def report(job: Job, threads: int, *how) -> dict:
    words = ["--threads", threads, *how, *job.case.options(), *job.case.extra]
    program = measure.beside_python("dcsvm-train")
    return measure.reported(program, *words, job.train, job.work / "model")


if __name__ == "__main__":
    main()
