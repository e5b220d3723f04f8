"""Compare the cost of each step of training on workers with the manual's formula.

    python rounds.py --data FOLDER [--only NAME,...] [--workers 2,4,8]

The formula is in docs/more-machines.md. The costs are kernel evaluations, bytes at the client and
between workers, and processor time. No figure is wall time, so there may be more workers than
cores. Prints a Markdown table per case and number of workers. "MB to each" is the MB that the
average worker received from others; "busiest" is the share of the busiest worker in the processor
time of a step. Kernel evaluations do not depend on the number of workers.
"""

import argparse
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import dcsvm
from dcsvm.distributed.connection import Tasks, workers_of_this_machine
from dcsvm.distributed.dataset import read_on_workers
from dcsvm.problem.options import TrainOptions
from dcsvm.training.fit import fit
from dcsvm.training.remote_engine import RemoteEngine
from dcsvm.training.report import TrainReport
from dcsvm.training.state import RunControl

MB = 1e6


@dataclass(frozen=True)
class Case:
    name: str
    file: str
    row_bytes: int
    options: TrainOptions


CASES = [
    Case("covtype 20k", "covtype.20000.tr", 216, TrainOptions(C=32, gamma=2, cache_mb=200)),
    Case("ijcnn1", "ijcnn1", 88, TrainOptions(C=32, gamma=2, cache_mb=200)),
    Case("ijcnn1 bias", "ijcnn1", 88, TrainOptions(C=32, gamma=2, cache_mb=200, bias=True)),
    Case("covtype 100k", "covtype.100000.tr", 216, TrainOptions(C=32, gamma=2, cache_mb=200)),
    Case("covtype 100k early", "covtype.100000.tr", 216,
         TrainOptions(C=32, gamma=32, early=True, early_level=3, cache_mb=200)),
]  # fmt: skip


@dataclass
class Taken:
    """Cost of a step: bytes at the client, tasks, kernel evaluations of sums; for each worker the
    bytes received from others and its processor seconds."""

    client: int = 0
    tasks: int = 0
    summed: int = 0
    moved: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


class Steps(dcsvm.Progress):
    """Progress that measures the steps of a run; `taken` has their cost by name."""

    def __init__(self, tasks: Tasks):
        self.tasks, self.taken, self.name, self.summed = tasks, {}, "route", 0
        self.before = self.look()

    def look(self) -> tuple:
        time.sleep(1)  # for bytes in transit
        counts = self.tasks.counts
        there = self.tasks.client.run(of_worker)
        each = list(zip(*(there[worker] for worker in sorted(there)), strict=True))
        return (
            counts["bytes_sent"] + counts["bytes_received"],
            counts["tasks"],
            self.summed,
            *map(list, each),
        )

    def next(self, name: str) -> None:
        after = self.look()
        changes = [
            [b - a for a, b in zip(one, two, strict=True)] if isinstance(one, list) else two - one
            for one, two in zip(self.before, after, strict=True)
        ]
        self.taken[self.name] = Taken(*changes)
        self.name, self.before = name, after

    def begin(self, name, n_rows):
        self.next(name)

    def end_level(self, report):
        self.next("between")

    def end(self, name, seconds, n_sv=None):
        self.next({"refine": "gradient", "conquer": "model"}.get(name, "between"))


def of_worker(dask_worker) -> tuple[int, float]:
    """Return the bytes that a worker received from others, and its processor seconds."""
    used = os.times()
    return sum(one["total"] for one in dask_worker.transfer_incoming_log), used.user + used.system


def measured(case: Case, path: Path, n_workers: int) -> tuple[TrainReport, dict[str, Taken]]:
    with workers_of_this_machine(n_workers, threads=n_workers) as client:
        data = read_on_workers(client, str(path), n_threads=n_workers)
        steps, sums = Steps(data.tasks), RemoteEngine.sums

        def counted(self, *given):
            found = sums(self, *given)
            steps.summed += found[1]
            return found

        RemoteEngine.sums = counted  # sums and solutions of a round are counted together
        try:
            report = fit(data.disposable(), case.options, RunControl(steps)).report
        finally:
            RemoteEngine.sums = sums
        steps.next("")
    return report, steps.taken


def values_of(name: str, report: TrainReport, taken: Taken) -> dict[str, int]:
    """Return the kernel evaluations of a step: in sums, and on one worker."""
    if name.startswith("level"):
        found = [one for one in report.levels if f"level {one.level}" == name]
        return {"all": sum(one.kernel_evaluations for one in found)}
    values = report.evaluations_by_phase.get(name, 0)
    if name == "conquer":  # includes the check
        all_of_them = taken.summed + report.evaluations_by_phase["check"]
        return {"all": all_of_them, "one": values - taken.summed}
    return {"one": values} if name == "refine" else {"all": values}


@dataclass(frozen=True)
class Formula:
    """Apply the manual's formula to the steps of a run on n rows of b bytes with S support vectors,
    by levels up to the finest, conquered in R rounds."""

    n: int
    S: int
    b: int
    R: int
    n_workers: int
    finest: int
    is_early: bool

    def of(self, name: str) -> dict[str, float]:
        """Return the predicted cost of a step.

        Kernel values: `all` on all workers, `one` on one of them. Bytes: `moved` to each worker,
        and at the `client`.
        """
        if name.startswith("level"):
            return self.of_level(int(name.split()[1]))
        n, S, b, R = self.n, self.S, self.b, self.R
        return {
            "route": {"client": (30 + 16 * self.finest) * n},
            "refine": {"one": S**2, "moved": b * S / self.n_workers, "client": 82 * S},
            "gradient": {"all": S * (n - S), "moved": b * S, "client": 24 * n},
            "conquer": {"all": 0.1 * (R + 1) * S * n, "one": S**2, "moved": (R + 1) * b * S,
                        "client": R * (24 * n + 90 * S)},
            "model": {"client": b * S},
        }.get(name, {})  # fmt: skip

    def of_level(self, level: int) -> dict[str, float]:
        n, moved = self.n, self.b * self.n / self.n_workers
        values = (5 if level == self.finest else 2) * self.S * n / 4**level
        if self.is_early:  # rows in two clusters, and the model
            return {"all": 1.5 * values, "moved": 1.5 * moved, "client": 123 * n + self.b * self.S}
        return {"all": values, "moved": moved, "client": 82 * n}


def tell(case: Case, n_workers: int, report: TrainReport, steps: dict[str, Taken]) -> None:
    rounds, n = report.traffic.rounds, report.traffic_rows
    finest = max(one.level for one in report.levels)
    is_early = case.options.early
    formula = Formula(n, report.n_sv, case.row_bytes, rounds, n_workers, finest, is_early)
    print(f"\n{case.name}, {n_workers} workers: n = {n}, S = {report.n_sv}, R = {rounds}, "
          f"{report.n_row_components} groups\n", flush=True)  # fmt: skip
    print("| step | kernel values, all | one worker | MB to each | MB at the client | tasks "
          "| processor s | busiest |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for name, taken in steps.items():
        says = formula.of(name)
        found = values_of(name, report, taken)
        total = sum(taken.seconds) or 1.0
        cells = [beside(found.get(k, 0), says.get(k, 0), 1e9, "G") for k in ("all", "one")]
        cells.append(beside(sum(taken.moved) / n_workers, says.get("moved", 0), MB, ""))
        cells.append(beside(taken.client, says.get("client", 0), MB, ""))
        print(f"| {name} | {' | '.join(cells)} | {taken.tasks} | {total:.2f} "
              f"| {max(taken.seconds) / total:.2f} |", flush=True)  # fmt: skip


def beside(found: float, says: float, unit: float, name: str) -> str:
    if not found and not says:
        return ""
    return f"{found / unit:.3g}{name} ({says / unit:.3g}{name})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--workers", default="2,4,8", help="numbers of them, with commas between")
    given = parser.parse_args()
    for case in CASES:
        if given.only and case.name not in given.only.split(","):
            continue
        path = given.data / case.file
        with open(path, "rb") as file:
            n_rows = sum(1 for _ in file)
        for n_workers in map(int, given.workers.split(",")):
            report, steps = measured(case, path, n_workers)
            report.traffic_rows = n_rows
            tell(case, n_workers, report, steps)


if __name__ == "__main__":
    main()
