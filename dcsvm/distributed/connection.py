"""A client of workers: those of a Dask cluster that runs, or of one on this machine; and whether
they can do the work."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import dask
from distributed import Client, LocalCluster

from dcsvm import __version__
from dcsvm.problem.options import OptionError
from dcsvm.solving.memory import MB, PROGRAM, VARIABLE, mb

SECONDS_TO_ANSWER = 30
NO_ANSWER = OSError, TimeoutError, asyncio.TimeoutError  # the last is another before Python 3.11
CONFIG = {  # of a cluster of our own
    # workers that may die at one task, or while it waits for them; Dask's default is 3
    "distributed.scheduler.allowed-failures": 30,
    # nobody looks at profiles, and each worker takes 100 a second
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    # bytes of freed memory that glibc keeps; Dask has it keep none, and arrays cost page faults
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**26,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}


class NoWorkers(ValueError):
    """There is nobody to do the work; the sentence says why."""


@contextmanager
def workers_of_scheduler(
    address: str | None = None, scheduler_file: str | None = None
) -> Iterator[Client]:
    """A client of the scheduler at an address, or that of which a file tells. Raises NoWorkers."""
    where = address or _address_in(scheduler_file)
    try:
        client = Client(where, timeout=SECONDS_TO_ANSWER, set_as_default=False)
    except (*NO_ANSWER, ValueError) as error:
        reason = "" if isinstance(error, NO_ANSWER) else f": {error}"
        raise NoWorkers(f"there is no Dask scheduler at {where}{reason}") from None
    with client:
        check_workers(client)
        yield client


@contextmanager
def workers_of_this_machine(n_workers: int, threads: int) -> Iterator[Client]:
    """A client of so many processes that share the threads out."""
    with (
        dask.config.set(CONFIG),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=max(1, threads // n_workers),
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            preload=["dcsvm.distributed.on_worker"],
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def workers_of(client: Client) -> dict[str, dict]:
    """What the scheduler says of its workers, by their addresses; they may just be starting again.
    Raises NoWorkers."""
    end = time.monotonic() + SECONDS_TO_ANSWER
    while not (found := client.scheduler_info(n_workers=-1)["workers"]):
        if time.monotonic() > end:
            where = client.scheduler.address
            raise NoWorkers(f"the Dask scheduler at {where} has no workers")
        time.sleep(0.1)
    return found


def threads_of_hosts(client: Client) -> dict[str, int]:
    """Threads of all workers of each host that has some just now."""
    threads: dict[str, int] = {}
    for worker in client.scheduler_info(n_workers=-1)["workers"].values():
        threads[worker["host"]] = threads.get(worker["host"], 0) + worker["nthreads"]
    return threads


def check_workers(client: Client) -> None:
    """Raise NoWorkers where a scheduler has none, or one that has another dcsvm."""
    workers_of(client)
    found = client.run(importlib.metadata.version, "dcsvm", on_error="return")
    for worker, version in sorted(found.items()):
        if isinstance(version, importlib.metadata.PackageNotFoundError):
            raise NoWorkers(f"the worker {worker} has no dcsvm: install version {__version__}")
        if isinstance(version, str) and version != __version__:
            raise NoWorkers(f"the worker {worker} has dcsvm {version}, this is {__version__}")


def _address_in(scheduler_file: str) -> str:
    """The address in a file, which a scheduler that was just started may be about to write."""
    end = time.monotonic() + SECONDS_TO_ANSWER
    while not os.path.exists(scheduler_file) and time.monotonic() < end:
        time.sleep(0.1)
    try:
        with open(scheduler_file, encoding="utf-8") as file:
            return json.load(file)["address"]
    except OSError as error:
        raise NoWorkers(f"{scheduler_file}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, KeyError, TypeError):
        raise NoWorkers(f"{scheduler_file}: not a file of a Dask scheduler") from None


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
