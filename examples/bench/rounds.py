"""Compare the cost of each step of training on workers with the manual's formula.

The formula is in README.md. The costs are kernel evaluations, bytes at the client and
between workers, and processor time. No figure is wall time, so there may be more workers than
cores. Prints a Markdown table per case and number of workers. "MB to each" is the MB that the
average worker received from others; "busiest" is the share of the busiest worker in the processor
time of a step. Kernel evaluations do not depend on the number of workers.
"""

import os
import time
from dataclasses import KW_ONLY, dataclass
from unittest.mock import patch

import measure
import numpy as np
from cases import Files
from programs import Job, jobs

import dcsvm
from dcsvm.distributed.connection import Tasks, workers_of_this_machine
from dcsvm.distributed.dataset import read_on_workers
from dcsvm.problem.options import TrainOptions
from dcsvm.training.fit import fit
from dcsvm.training.remote_engine import RemoteEngine
from dcsvm.training.report import TrainReport
from dcsvm.training.state import RunControl

MB = 1e6


COLUMNS = ("step", "kernel values, all", "one worker", "MB to each", "MB at the client", "tasks",
           "processor s", "busiest")  # fmt: skip


@dataclass(frozen=True)
class Case(Files):
    _: KW_ONLY
    row_bytes: int
    options: dict


PLAIN = {"C": 32, "gamma": 2, "cache_mb": 200}
EARLY = PLAIN | {"gamma": 32, "early": True, "early_level": 3}
CASES = [
    Case("covtype 20k", "covtype.20000.tr", None, row_bytes=216, options=PLAIN),
    Case("ijcnn1", "ijcnn1", None, row_bytes=88, options=PLAIN),
    Case("ijcnn1 bias", "ijcnn1", None, row_bytes=88, options=PLAIN | {"bias": True}),
    Case("covtype 100k", "covtype.100000.tr", None, row_bytes=216, options=PLAIN),
    Case("covtype 100k early", "covtype.100000.tr", None, row_bytes=216, options=EARLY),
]


def main() -> None:
    options = measure.parser_of(__doc__, "data names workers", workers="2,4,8").parse_args()
    for job in jobs(measure.chosen(CASES, options.only, ","), options):
        for n_workers in measure.numbers(options.workers):
            tell(job, n_workers, *measured(job, n_workers))


class Steps(dcsvm.Progress):
    """Progress that measures the steps of a run; `taken` has their cost by name: bytes at the
    client, tasks, kernel evaluations of sums, then the bytes that each worker received from others,
    and its processor seconds."""

    def __init__(self, tasks: Tasks):
        self.tasks, self.taken, self.name, self.summed = tasks, {}, "route", 0
        self.before = self.look()

    def look(self) -> np.ndarray:
        time.sleep(1)  # for bytes in transit
        counts, there = self.tasks.counts, self.tasks.client.run(of_worker)
        moved, seconds = zip(*(there[worker] for worker in sorted(there)), strict=True)
        at_client = counts["bytes_sent"] + counts["bytes_received"]
        return np.array([at_client, counts["tasks"], self.summed, *moved, *seconds])

    def next(self, name: str) -> None:
        after = self.look()
        self.taken[self.name] = after - self.before
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


def measured(job: Job, n_workers: int) -> tuple[TrainReport, dict[str, np.ndarray]]:
    with workers_of_this_machine(n_workers, threads=n_workers) as client:
        data = read_on_workers(client, str(job.train), n_threads=n_workers)
        steps, sums = Steps(data.tasks), RemoteEngine.sums

        def counted(self, *given):
            found = sums(self, *given)
            steps.summed += found[1]
            return found

        # sums and solutions of a round are counted together
        with patch.object(RemoteEngine, "sums", counted):
            options = TrainOptions(**job.case.options)
            report = fit(data.disposable(), options, RunControl(steps)).report
        steps.next("")
    return report, steps.taken


def values_of(name: str, report: TrainReport, summed: float) -> dict[str, float]:
    """Return the kernel evaluations of a step: in sums, and on one worker."""
    if name.startswith("level"):
        found = [one for one in report.levels if f"level {one.level}" == name]
        return {"all": sum(one.kernel_evaluations for one in found)}
    values = report.evaluations_by_phase.get(name, 0)
    if name == "conquer":  # includes the check
        return {"all": summed + report.evaluations_by_phase["check"], "one": values - summed}
    return {"one": values} if name == "refine" else {"all": values}


def formula(name: str, case: Case, n: int, n_workers: int, report: TrainReport) -> dict[str, float]:
    """Return the cost of a step by the manual's formula.

    Kernel values: `all` on all workers, `one` on one of them. Bytes: `moved` to each worker, and at
    the `client`. n rows have b bytes each, S of them are support vectors; R rounds conquer them.
    """
    S, R, b = report.n_sv, report.traffic.rounds, case.row_bytes
    finest = max(one.level for one in report.levels)
    if name.startswith("level"):
        level, moved = int(name.split()[1]), b * n / n_workers
        values = (5 if level == finest else 2) * S * n / 4**level
        if case.options.get("early"):  # rows in two clusters, and the model
            return {"all": 1.5 * values, "moved": 1.5 * moved, "client": 123 * n + b * S}
        return {"all": values, "moved": moved, "client": 82 * n}
    return {
        "route": {"client": (30 + 16 * finest) * n},
        "refine": {"one": S**2, "moved": b * S / n_workers, "client": 82 * S},
        "gradient": {"all": S * (n - S), "moved": b * S, "client": 24 * n},
        "conquer": {"all": 0.1 * (R + 1) * S * n, "one": S**2, "moved": (R + 1) * b * S,
                    "client": R * (24 * n + 90 * S)},
        "model": {"client": b * S},
    }.get(name, {})  # fmt: skip


def tell(job: Job, n_workers: int, report: TrainReport, steps: dict[str, np.ndarray]) -> None:
    case, rounds = job.case, report.traffic.rounds
    with open(job.train, "rb") as file:
        n = sum(1 for _ in file)
    print(f"\n{case.name}, {n_workers} workers: n = {n}, S = {report.n_sv}, R = {rounds}, "
          f"{report.n_row_components} groups\n\n{measure.heading(COLUMNS)}")  # fmt: skip
    for name, (client, tasks, summed, *of_workers) in steps.items():
        moved, seconds = np.reshape(of_workers, (2, n_workers))
        says = formula(name, case, n, n_workers, report)
        found = values_of(name, report, summed) | {"moved": moved.mean(), "client": client}
        units = {"all": (1e9, "G"), "one": (1e9, "G"), "moved": (MB, ""), "client": (MB, "")}
        cells = [beside(found.get(k, 0), says.get(k, 0), *unit) for k, unit in units.items()]
        total = seconds.sum() or 1.0
        cells += [f"{tasks:.0f}", f"{total:.2f}", f"{seconds.max() / total:.2f}"]
        print(measure.markdown([name, *cells]), flush=True)


def beside(found: float, says: float, unit: float, name: str) -> str:
    if not found and not says:
        return ""
    return f"{found / unit:.3g}{name} ({says / unit:.3g}{name})"


if __name__ == "__main__":
    main()
