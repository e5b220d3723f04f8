"""Compare training on workers of a Dask cluster on this machine with threads of one process.

    python workers.py --data FOLDER [--only NAME,...] [--workers 2,4,8] [--runs 3]

Both run in turn, with one thread per worker. Seconds are the median training time of the runs,
without reading and without the start of the workers. The efficiency is seconds with threads over
seconds on workers. Bytes, tasks and rounds are the terms of the manual's formula
(docs/more-machines.md). Kernel evaluations and the objective are given for threads and for workers.
Prints the lines of a Markdown table. `make_data.py digits 1000000 FOLDER --round` makes
`digits.1000000`; data sets without files are skipped.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from datasets import write_lines

PROGRAM = Path(sys.executable).with_name("dcsvm-train")
MADE_ROWS = 1_000_000
COLUMNS = ("case", "workers", "s, threads", "s, workers", "efficiency", "sent MB", "received MB",
           "moved MB", "tasks", "rounds", "kernel values", "objective")  # fmt: skip


@dataclass(frozen=True)
class Case:
    name: str
    file: str
    options: tuple[str, ...]


CASES = [
    Case("covtype early", "covtype.tr", ("-c", "32", "-g", "32", "--early")),
    Case("covtype gamma 32", "covtype.tr", ("-c", "32", "-g", "32")),
    Case("covtype gamma 2", "covtype.tr", ("-c", "32", "-g", "2")),
    Case("ijcnn1 early", "ijcnn1", ("-c", "32", "-g", "2", "--early")),
    Case("ijcnn1", "ijcnn1", ("-c", "32", "-g", "2")),
    Case("spots early", "spots.1000000", ("-c", "8", "-g", "2", "--early")),
    Case("spots", "spots.1000000", ("-c", "8", "-g", "2")),
    Case("digits early", "digits.1000000",
         ("-c", "1", "-g", f"{2**-21}", "--early", "--early-level", "3")),
]  # fmt: skip


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


def report_of(case: Case, data: Path, threads: int, *how: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report")
        command = [PROGRAM, "-q", "--threads", threads, *how, *case.options, "--report", report,
                   data / case.file, os.path.join(folder, "model")]  # fmt: skip
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        with open(report, encoding="utf-8") as file:
            return json.load(file)


def measure(case: Case, data: Path, n_workers: int, runs: int) -> None:
    found = []
    for _ in range(runs):
        here = report_of(case, data, n_workers)
        there = report_of(case, data, n_workers, "--workers", str(n_workers))
        found.append([one["seconds"]["train"] for one in (here, there)])
    seconds = [median(column) for column in zip(*found, strict=True)]
    traffic = there["traffic"]
    cells = [case.name, str(n_workers), *(f"{one:.2f}" for one in seconds)]
    cells.append(f"{100 * seconds[0] / seconds[1]:.0f} %")
    cells += [
        f"{traffic[name] / 1e6:.1f}" for name in ("bytes_sent", "bytes_received", "bytes_moved")
    ]
    cells += [str(traffic[name]) for name in ("tasks", "rounds")]
    cells.append(" ".join(f"{one['kernel_evaluations']:.3g}" for one in (here, there)))
    cells.append(" ".join(objective_of(one) for one in (here, there)))
    print(f"| {' | '.join(cells)} |", flush=True)


def objective_of(report: dict) -> str:
    return "" if report["objective"] is None else f"{report['objective']:.9g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--workers", default="2", help="numbers of them, with commas between")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for case in CASES:
        if given.only and case.name not in given.only.split(","):
            continue
        path = given.data / case.file
        if case.file.startswith("spots") and not path.exists():
            write_lines(path, made_rows())
        if not path.exists():
            continue
        for n_workers in map(int, given.workers.split(",")):
            measure(case, given.data, n_workers, given.runs)


if __name__ == "__main__":
    main()
