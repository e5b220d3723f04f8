"""Kill training workers; every run must end with the certified model of an undisturbed run.

Each run trains on the first 100,000 rows of covtype on worker processes of this machine. SIGKILLs
are sent at random moments of random phases. Half of them go to a random worker, half to the worker
with the results of most tasks. Dask restarts it. Prints a line per run; the exit status is 1 if a
run failed.
"""

import hashlib
import os
import queue
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import measure

import dcsvm
from dcsvm.distributed.connection import workers_of_this_machine
from dcsvm.distributed.dataset import read_on_workers
from dcsvm.problem.options import TrainOptions
from dcsvm.training.fit import fit
from dcsvm.training.report import TrainReport
from dcsvm.training.state import RunControl

FILE = "covtype.100000.tr"
OPTIONS = TrainOptions(C=32, gamma=32, cache_mb=300)


@dataclass(frozen=True)
class Run:
    killed: list[str]
    seconds: dict[str, float]  # of each phase
    report: TrainReport
    bits: str  # hash of the model

    def __str__(self) -> str:
        report = self.report
        return (
            f"{len(self.killed)} kills, {sum(self.seconds.values()):.1f} s, "
            f"{'converged' if report.converged else 'NOT CONVERGED'}, "
            f"violation {report.violation:.2g}, {report.n_sv} support vectors, {self.bits}, "
            f"{report.traffic.tasks} tasks; {', '.join(self.killed) or 'none'}"
        )


def main() -> None:
    parser = measure.parser_of(__doc__, "data")
    for name, default in {"runs": 10, "kills": 5, "workers": 3, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help="number")
    given = parser.parse_args()
    path = given.data / FILE
    wanted = run(path, given.workers, [], random.Random())
    print(f"without: {wanted}", flush=True)
    failed = n_killed = 0
    for number in range(given.runs):
        rng = random.Random(1000 * given.seed + number)
        phases = rng.choices(list(wanted.seconds), k=given.kills)
        moments = [(name, rng.uniform(0, wanted.seconds[name])) for name in phases]
        try:
            one = run(path, given.workers, moments, rng)
        except ValueError as error:
            print(f"run {number}: {error}", flush=True)
            failed += 1
            continue
        print(f"run {number}: {one}", flush=True)
        n_killed += len(one.killed)
        failed += one.bits != wanted.bits or not one.report.converged
    print(f"{n_killed} kills in {given.runs} runs, {failed} failed", flush=True)
    sys.exit(failed > 0)


class Killer(dcsvm.Progress):
    """Progress that kills workers of a client.

    Each of the `moments` is a phase and the seconds since its start; `killed` lists the phase of
    each kill, `begun` has the start time of each phase.
    """

    def __init__(self, client, moments: list[tuple[str, float]], rng: random.Random):
        self.client, self.moments, self.rng = client, moments, rng
        self.phases, self.done, self.killed = queue.Queue(), threading.Event(), []
        self.begun, self.thread = {}, threading.Thread(target=self.watch, daemon=True)
        self.begin("read", 0)

    def begin(self, name, n_rows):
        self.phase, self.begun[name] = name, time.perf_counter()
        self.phases.put(name)

    def seconds(self) -> dict[str, float]:
        ends = [*self.begun.values(), time.perf_counter()][1:]
        return {name: end - self.begun[name] for name, end in zip(self.begun, ends, strict=True)}

    def watch(self) -> None:
        while not self.done.is_set():
            with suppress(queue.Empty):
                phase, start = self.phases.get(timeout=0.1), time.perf_counter()
                for seconds in sorted(after for name, after in self.moments if name == phase):
                    self.done.wait(max(0.0, start + seconds - time.perf_counter()))
                    self.kill()

    def kill(self) -> None:
        while not (pids := self.running()):
            if self.done.wait(0.1):
                return
        by_what = self.rng.choice(["any", "most"])
        worker = self.rng.choice(sorted(pids))
        if by_what == "most":
            held = self.client.has_what()
            worker = max(pids, key=lambda one: len(held.get(one, ())))
        with suppress(ProcessLookupError):
            os.kill(pids[worker], signal.SIGKILL)
            self.killed.append(f"{self.phase} ({by_what})")

    def running(self) -> dict[str, int]:
        """Return the workers by address that Dask restarts: not those that still start."""
        there, nannies = self.client.nthreads(), self.client.cluster.workers.values()
        return {
            one.worker_address: one.process.pid
            for one in nannies
            if one.worker_address in there and one.process and one.process.status.name == "running"
        }


def run(path: Path, n_workers: int, moments: list[tuple[str, float]], rng: random.Random) -> Run:
    """Train once with kills at these moments."""
    with workers_of_this_machine(n_workers, threads=n_workers) as client:
        killer = Killer(client, moments, rng)
        data = read_on_workers(client, str(path), n_threads=n_workers)
        killer.thread.start()
        try:
            model = fit(data.disposable(), OPTIONS, RunControl(killer))
        finally:
            killer.done.set()
            killer.thread.join()
        seconds = killer.seconds()
    bits = hashlib.sha256(model.exact.dual_coef.tobytes() + model.exact.row_numbers.tobytes())
    return Run(killer.killed, seconds, model.report, bits.hexdigest()[:12])


if __name__ == "__main__":
    main()
