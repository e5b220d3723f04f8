"""How much memory workers will use, known before the work: what does not fit is refused."""

from __future__ import annotations

from dataclasses import dataclass

from distributed import Client

from dcsvm.distributed.connection import workers_of
from dcsvm.problem.options import OptionError
from dcsvm.solving.memory import MB, PROGRAM, VARIABLE, mb

DEFAULT_CACHE = 1000  # MB of a task, whatever the workers have: bits follow from it
COPIES = 3  # of its share of the rows that a worker holds: as read, brought together, in tasks


@dataclass(frozen=True)
class WorkerMemory:
    """Of `n_workers` workers each holds `rows` bytes of rows, and as many tasks at a time as it has
    threads, with `megabytes` each for caches and copies."""

    n_workers: int
    tasks_at_once: int
    rows: int
    megabytes: int

    @property
    def threads(self) -> int:
        return self.n_workers * self.tasks_at_once

    @property
    def most(self) -> int:
        """Bytes of a worker."""
        return COPIES * self.rows + self.tasks_at_once * self.megabytes * MB + PROGRAM

    @property
    def budget(self) -> int:
        """Bytes of a task, and what the client may keep beside the arrays of one problem."""
        return self.megabytes * MB

    def solver(self, _n_variables: int) -> int:
        """Bytes for the solvers of a task."""
        return self.budget

    def unplanned(self, _largest: int) -> int:
        """None: a task plans the arrays of its own solvers."""
        return 0

    def spare(self, _n_variables: int) -> int:
        """As `MemoryPlan.spare`, of the client."""
        return self.budget

    def most_variables(self, _n_variables: int) -> int:
        """As `MemoryPlan.most_variables`, of the client."""
        return self.budget // 2 // VARIABLE

    def describe(self) -> str:
        name = "1 worker" if self.n_workers == 1 else f"{self.n_workers} workers"
        return (
            f"{name}, at most {mb(self.most)} MB of memory each ({mb(self.rows)} for rows, "
            f"{mb(self.tasks_at_once * self.megabytes * MB)} for caches and working copies)"
        )


def plan_worker_memory(client: Client, nbytes: int, megabytes: int | None) -> WorkerMemory:
    """The plan for rows of so many bytes. Raises OptionError, or ValueError, where a worker has too
    little."""
    workers = workers_of(client)
    at_once = max(worker["nthreads"] for worker in workers.values())
    limits = [worker["memory_limit"] for worker in workers.values() if worker["memory_limit"]]
    share = -(-nbytes // len(workers))
    limit = min(limits, default=0)
    wanted = DEFAULT_CACHE if megabytes is None else megabytes
    plan = WorkerMemory(len(workers), at_once, share, wanted)
    if not limit or (megabytes is None and COPIES * share + PROGRAM <= limit):
        return plan
    if plan.most > limit:
        needed = f"workers need {mb(plan.most)} MB of memory, and the smallest has {mb(limit)} MB"
        if COPIES * share + PROGRAM > limit:
            raise ValueError(f"{needed}: take more of them")
        raise OptionError("cache_mb", f"is too much at {wanted} MB: {needed}")
    return plan
