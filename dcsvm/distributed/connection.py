"""Connect to the workers of a Dask cluster, check them, and submit tasks to them.

A task is a pure function of plain values and results of other tasks, so Dask can repeat the tasks
of a lost worker. Dask counts the workers that die while they run a task. The task fails if there
are more than `distributed.scheduler.allowed-failures`.
"""

import asyncio
import importlib.metadata
import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, wait

from dcsvm import __version__
from dcsvm._core import Stop
from dcsvm.distributed.chunks import nbytes_of
from dcsvm.problem.options import OptionError
from dcsvm.training.memory import MB, PROGRAM, VARIABLE, described, mb
from dcsvm.training.report import Traffic, WorkerTraffic

Name = TypeVar("Name", bound=Hashable)
POLL = 0.1  # seconds between checks for a stop request
LOOK, PATIENCE = 10, 300  # seconds between checks for workers; maximum wait without workers
NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "1 GB"}


class WorkersLostError(ValueError):
    """Error: workers died, or the scheduler is lost."""


class Tasks:
    """The tasks of one training run of a client."""

    def __init__(self, client: Client):
        self.client, self.traffic = client, Traffic()
        self.run, self.numbers = uuid.uuid4().hex[:8], count()
        client.get_task_stream(count=0)  # makes Dask record tasks from now on

    def submit(
        self,
        name: str,
        function: Callable[..., Any],
        *args: object,
        priority: float = 0,
        **kwargs: object,
    ) -> Future:
        """Submit a task; Dask's dashboard shows its name."""
        self.traffic.tasks += 1
        self.traffic.bytes_sent += sum(nbytes_of(value) for value in (*args, *kwargs.values()))
        with dask.config.set(NO_WARNING):
            return self.client.submit(
                function, *args, key=self._key(name), priority=priority, pure=False, **kwargs
            )

    def submit_each(
        self, name: str, function: Callable[..., Any], *columns: Sequence[object]
    ) -> list[Future]:
        """Submit a task for each tuple of `zip(*columns)`; costs a tenth of calling `submit`."""
        if not columns[0]:
            return []
        self.traffic.tasks += len(columns[0])
        self.traffic.bytes_sent += sum(nbytes_of(value) for column in columns for value in column)
        with dask.config.set(NO_WARNING):
            return self.client.map(
                function, *columns, key=[self._key(name) for _ in columns[0]], pure=False
            )

    def _key(self, name: str) -> str:
        return f"{name}-{self.run}{next(self.numbers)}"

    def finished(
        self, futures: Mapping[Name, Future], stop: Stop | None = None
    ) -> Iterator[tuple[Name, Any]]:
        """Yield (name, result) of tasks as they finish.

        Raises Stopped, WorkersLostError, and any error of a task.
        """
        names, stop = {future: name for name, future in futures.items()}, stop or Stop()
        waiting, last_check = set(names), time.monotonic()
        last_seen = last_check  # time of the last check that found a worker
        try:
            while waiting:
                done, now = self._done_of(waiting), time.monotonic()
                if now >= last_check + LOOK:
                    last_check, last_seen = now, now if self.client.nthreads() else last_seen
                    if now > last_seen + PATIENCE:
                        raise WorkersLostError(f"no workers for {PATIENCE} seconds")
                stop.check()
                for future in sorted(done, key=lambda one: one.key):
                    stop.check()  # receiving each result may take long
                    waiting.remove(future)
                    result = future.result()
                    self.traffic.bytes_received += nbytes_of(result)
                    yield names[future], result
        except KilledWorker as error:
            raise WorkersLostError(
                f"workers died repeatedly at task {error.task}: they may lack memory"
            ) from None
        except CancelledError:
            waiting.clear()
            raise WorkersLostError(
                "lost the connection to the Dask scheduler: resume from a checkpoint"
            ) from None
        finally:
            if waiting:
                self.client.cancel(list(waiting), force=True)

    def results(self, futures: list[Future], stop: Stop | None = None) -> list[Any]:
        """Return the results of tasks in order. Raises the errors of `finished`."""
        results = dict(self.finished(dict(enumerate(futures)), stop))
        return [results[k] for k in range(len(futures))]

    def note_workers(self) -> None:
        """Record the tasks and times of each worker in `traffic`."""
        workers: dict[str, WorkerTraffic] = {}
        for task in self.client.get_task_stream():
            if f"-{self.run}" not in str(task["key"]):
                continue
            worker = workers.setdefault(task["worker"], WorkerTraffic())
            worker.tasks += 1
            for span in task["startstops"]:
                seconds = span["stop"] - span["start"]
                if span["action"] == "compute":
                    worker.seconds_computing += seconds
                elif span["action"] == "transfer":
                    worker.seconds_moving += seconds
        self.traffic.workers = dict(sorted(workers.items()))

    def _done_of(self, waiting: set[Future]) -> set[Future]:
        """Wait at most POLL seconds for futures. Returns the finished ones."""
        with self.client.as_current(), suppress(*NO_ANSWER):
            wait(waiting, timeout=POLL, return_when="FIRST_COMPLETED")
        return {future for future in waiting if future.status != "pending"}


SECONDS_TO_ANSWER = 30
NO_ANSWER = OSError, TimeoutError, asyncio.TimeoutError  # before Python 3.11 the last two differ
CONFIG: dict[str, object] = {  # Dask configuration of a cluster on this machine
    # a task fails if more workers than this die while they run it; Dask's default is 3
    "distributed.scheduler.allowed-failures": 30,
    # Dask samples profiles 100 times per second on each worker; they are not used
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    # freed bytes that glibc keeps; with Dask's default, 0, every new array causes page faults
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**26,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}


class NoWorkersError(ValueError):
    """Error: no usable workers, with the reason."""


@contextmanager
def workers_of_scheduler(
    address: str | None = None, scheduler_file: str | None = None
) -> Iterator[Client]:
    """Connect to a scheduler by address or scheduler file. Raises NoWorkersError."""
    if address is None and scheduler_file is not None:
        address = _address_in(scheduler_file)
    try:
        client = Client(address, timeout=SECONDS_TO_ANSWER, set_as_default=False)
    except (*NO_ANSWER, ValueError) as error:
        reason = "" if isinstance(error, NO_ANSWER) else f": {error}"
        raise NoWorkersError(f"cannot reach Dask scheduler {address}{reason}") from None
    with client:
        check_workers(client)
        yield client


@contextmanager
def workers_of_this_machine(n_workers: int, threads: int) -> Iterator[Client]:
    """Start `n_workers` worker processes that share `threads` threads, and connect to them."""
    with dask.config.set(CONFIG):
        cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=max(1, threads // n_workers),
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            preload=["dcsvm.distributed.worker_tasks"],
        )
        try:
            with Client(cluster, set_as_default=False) as client:
                yield client
        finally:
            # if a worker died and is being started again, Dask may wait for it, or assert that
            # it has started: neither takes anything from the results
            with suppress(*NO_ANSWER, AssertionError):
                cluster.close(timeout=SECONDS_TO_ANSWER)


def workers_of(client: Client) -> dict[str, dict[str, Any]]:
    """Return the properties of all workers, by address. Raises NoWorkersError.

    While there are no workers, wait up to 30 seconds: workers may be restarting.
    """
    end = time.monotonic() + SECONDS_TO_ANSWER
    while not (workers := client.scheduler_info(n_workers=-1)["workers"]):
        if time.monotonic() > end:
            raise NoWorkersError(f"Dask scheduler {client.scheduler.address} has no workers")
        time.sleep(0.1)
    return workers


def threads_of_hosts(client: Client) -> dict[str, int]:
    """Sum the threads of the current workers of each host."""
    threads: dict[str, int] = {}
    for worker in client.scheduler_info(n_workers=-1)["workers"].values():
        threads[worker["host"]] = threads.get(worker["host"], 0) + worker["nthreads"]
    return threads


def check_workers(client: Client) -> None:
    """Raise NoWorkersError if there are no workers, or a worker lacks this version of dcsvm."""
    workers_of(client)
    versions = client.run(importlib.metadata.version, "dcsvm", on_error="return")
    for worker, version in sorted(versions.items()):
        if isinstance(version, importlib.metadata.PackageNotFoundError):
            raise NoWorkersError(f"worker {worker} has no dcsvm: install version {__version__}")
        if isinstance(version, str) and version != __version__:
            raise NoWorkersError(f"worker {worker} has dcsvm {version}, this is {__version__}")


def _address_in(scheduler_file: str) -> str:
    """Read the address from a scheduler file, which a new scheduler may still have to write."""
    end = time.monotonic() + SECONDS_TO_ANSWER
    while not os.path.exists(scheduler_file) and time.monotonic() < end:
        time.sleep(0.1)
    try:
        with open(scheduler_file, encoding="utf-8") as file:
            return json.load(file)["address"]
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise NoWorkersError(f"{scheduler_file}: {reason}") from None
    except (ValueError, KeyError, TypeError):
        raise NoWorkersError(f"{scheduler_file}: not a Dask scheduler file") from None


DEFAULT_CACHE = 1000  # MB per task; does not depend on the workers, because it affects results
COPIES = 3  # copies of a worker's share of the rows: as read, assembled, in tasks


@dataclass(frozen=True)
class WorkerMemory:
    """Memory budget of workers; has the part of MemoryPlan that training on workers uses.

    Each of `n_workers` workers holds `rows` bytes of rows and runs `tasks_at_once` tasks. Each task
    has `megabytes` MB for caches and copies.
    """

    n_workers: int
    tasks_at_once: int
    rows: int
    megabytes: int

    @property
    def threads(self) -> int:
        return self.n_workers * self.tasks_at_once

    @property
    def most(self) -> int:
        """Return the maximum memory of a worker, in bytes."""
        return COPIES * self.rows + self.tasks_at_once * self.megabytes * MB + PROGRAM

    @property
    def budget(self) -> int:
        """Return the memory budget of a task in bytes; the client gets it beside one problem."""
        return self.megabytes * MB

    def solver(self, _n_variables: int) -> int:
        """Return the memory for the solvers of a task, in bytes."""
        return self.budget

    def unplanned(self, _largest: int) -> int:
        """Return 0: a task plans the arrays of its own solvers."""
        return 0

    def spare(self, _n_variables: int) -> int:
        """Return the spare memory of the client, in bytes, as `MemoryPlan.spare`."""
        return self.budget

    def most_variables(self, _n_variables: int) -> int:
        """Return how many variables the client may add, as `MemoryPlan.most_variables`."""
        return self.budget // 2 // VARIABLE

    def describe(self) -> str:
        """Format the plan for the first line of progress."""
        name = "1 worker" if self.n_workers == 1 else f"{self.n_workers} workers"
        caches = self.tasks_at_once * self.megabytes * MB
        return f"{name}, {described(COPIES * self.rows, caches, ' each')}"


def plan_worker_memory(client: Client, nbytes: int, megabytes: int | None) -> WorkerMemory:
    """Plan the memory of workers for `nbytes` bytes of rows. Raises OptionError, ValueError."""
    workers = workers_of(client)
    tasks_at_once = max(worker["nthreads"] for worker in workers.values())
    limits = [worker["memory_limit"] for worker in workers.values() if worker["memory_limit"]]
    share = -(-nbytes // len(workers))
    budget = DEFAULT_CACHE if megabytes is None else megabytes
    plan = WorkerMemory(len(workers), tasks_at_once, share, budget)
    if not limits:
        return plan
    limit, fixed = min(limits), COPIES * share + PROGRAM
    reason = f"the smallest worker has {mb(limit)} MB of memory"
    if fixed > limit:
        raise ValueError(f"workers require {mb(plan.most)} MB of memory, {reason}: add workers")
    if megabytes is not None and plan.most > limit:
        largest = (limit - fixed) // (tasks_at_once * MB)
        raise OptionError("cache_mb", f"must be at most {largest}, got {megabytes}: {reason}")
    return plan
