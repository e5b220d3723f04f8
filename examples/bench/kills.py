"""Kill training workers; every run must end with the certified model of an undisturbed run.

    python kills.py --data FOLDER [--runs 10] [--kills 5] [--workers 3] [--seed 0]

Each run trains on the first 100,000 rows of covtype on worker processes of this machine. SIGKILLs
are sent at random moments of random phases. Half of them go to a random worker, half to the worker
with the results of most tasks. Dask restarts it. Prints a line per run; the exit status is 1 if a
run failed.
"""

import argparse
import hashlib
import os
import queue
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import dcsvm
from dcsvm.distributed.connection import workers_of_this_machine
from dcsvm.distributed.dataset import read_on_workers
from dcsvm.problem.options import TrainOptions
from dcsvm.training.fit import fit
from dcsvm.training.state import RunControl

FILE = "covtype.100000.tr"
OPTIONS = TrainOptions(C=32, gamma=32, cache_mb=300)


class Killer(threading.Thread):
    """Thread that kills workers of a client.

    Each of the `moments` is a phase and the seconds since its start; `killed` lists the phase of
    each kill.
    """

    def __init__(self, client, moments: list[tuple[str, float]], rng: random.Random):
        super().__init__(daemon=True)
        self.client, self.moments, self.rng = client, moments, rng
        self.phases, self.done, self.killed = queue.Queue(), threading.Event(), []
        self.phase = ""

    def begin(self, phase: str) -> None:
        self.phase = phase
        self.phases.put(phase)

    def run(self) -> None:
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
        """Return the worker processes that Dask restarts, by address.

        Dask does not restart a worker that dies during its start.
        """
        there, nannies = self.client.nthreads(), self.client.cluster.workers.values()
        return {
            one.worker_address: one.process.pid
            for one in nannies
            if one.worker_address in there and one.process and one.process.status.name == "running"
        }


class Phases(dcsvm.Progress):
    """Progress that reports each phase to a killer; `begun` has the start time of each phase."""

    def __init__(self, killer: Killer):
        self.killer, self.begun = killer, {}
        self.begin("read", 0)

    def begin(self, name, n_rows):
        self.begun[name] = time.perf_counter()
        self.killer.begin(name)

    def seconds(self) -> dict[str, float]:
        ends = [*self.begun.values(), time.perf_counter()][1:]
        return {name: end - self.begun[name] for name, end in zip(self.begun, ends, strict=True)}


def moments_of(phases: dict[str, float], kills: int, rng: random.Random) -> list[tuple[str, float]]:
    """Draw random moments of random phases, by the seconds of each phase."""
    names = rng.choices(list(phases), k=kills)
    return [(name, rng.uniform(0, phases[name])) for name in names]


def run(path: Path, n_workers: int, moments: list[tuple[str, float]], rng: random.Random) -> dict:
    """Train once and return a summary of the run."""
    with workers_of_this_machine(n_workers, threads=n_workers) as client:
        killer = Killer(client, moments, rng)
        phases = Phases(killer)
        data = read_on_workers(client, str(path), n_threads=n_workers)
        killer.start()
        try:
            model = fit(data.disposable(), OPTIONS, RunControl(phases))
        finally:
            killer.done.set()
            killer.join()
        seconds = phases.seconds()
    bits = hashlib.sha256(model.exact.dual_coef.tobytes() + model.exact.row_numbers.tobytes())
    return {
        "killed": killer.killed,
        "seconds": seconds,
        "report": model.report,
        "bits": bits.hexdigest()[:12],
    }


def tell(name: str, one: dict) -> None:
    report = one["report"]
    print(
        f"{name}: {len(one['killed'])} kills, {sum(one['seconds'].values()):.1f} s, "
        f"{'converged' if report.converged else 'NOT CONVERGED'}, "
        f"violation {report.violation:.2g}, {report.n_sv} support vectors, {one['bits']}, "
        f"{report.traffic.tasks} tasks; {', '.join(one['killed']) or 'none'}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    path = given.data / FILE
    wanted = run(path, given.workers, [], random.Random())
    tell("without", wanted)
    failed = n_killed = 0
    for number in range(given.runs):
        rng = random.Random(1000 * given.seed + number)
        moments = moments_of(wanted["seconds"], given.kills, rng)
        try:
            one = run(path, given.workers, moments, rng)
        except ValueError as error:
            print(f"run {number}: {error}", flush=True)
            failed += 1
            continue
        tell(f"run {number}", one)
        n_killed += len(one["killed"])
        failed += one["bits"] != wanted["bits"] or not one["report"].converged
    print(f"{n_killed} kills in {given.runs} runs, {failed} failed", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
