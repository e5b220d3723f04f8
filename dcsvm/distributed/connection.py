"""Connect to the workers of a Dask cluster, check them, and submit tasks to them.

A task is a pure function of plain values and results of other tasks, so Dask can repeat the tasks
of a lost worker. Dask counts the workers that die while they run a task. The task fails if there
are more than `distributed.scheduler.allowed-failures`. Workers that `dcsvm-train --workers` starts
preload this module.
"""

import asyncio
import importlib.metadata
import json
import logging
import os
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, TypeVar

import dask
import numpy as np
from distributed import Client, Future, KilledWorker, LocalCluster, get_worker, wait
from distributed.comm import get_address_host, parse_address, parse_host_port

from dcsvm import __version__, system
from dcsvm._core import Stop
from dcsvm.machine import usable_threads

Name = TypeVar("Name", bound=Hashable)
POLL = 0.1  # seconds between checks for a stop request
LOOK, PATIENCE = 10, 300  # seconds between checks for workers; maximum wait without workers
NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "1 GB"}


class WorkersError(ValueError):
    """Error: no usable workers, with the reason; workers died, or the scheduler is lost."""


def nbytes_of(value: object) -> int:
    """Count the bytes of the arrays in a value."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(nbytes_of(one) for one in value)
    if hasattr(value, "__dataclass_fields__"):
        return sum(nbytes_of(getattr(value, name)) for name in value.__dataclass_fields__)
    return 0


class Tasks:
    """The tasks of a client for one data set, and `counts` of its traffic, see TrainReport."""

    def __init__(self, client: Client):
        self.client = client
        self.counts = Counter(bytes_sent=0, bytes_received=0, bytes_moved=0, tasks=0, rounds=0)
        self.id, self.numbers = uuid.uuid4().hex[:8], count()
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
        self.counts["tasks"] += 1
        self.counts["bytes_sent"] += sum(nbytes_of(value) for value in (*args, *kwargs.values()))
        with dask.config.set(NO_WARNING):
            return self.client.submit(
                function, *args, key=self._key(name), priority=priority, pure=False, **kwargs
            )

    def on_chunks(
        self, name: str, function: Callable[..., Any], *columns: Sequence[object], **kwargs: Any
    ) -> list[Future]:
        """Submit a task for each chunk, a tuple of `zip(*columns)`."""
        return [
            self.submit(f"{name}-chunk{k}", function, *values, **kwargs)
            for k, values in enumerate(zip(*columns, strict=True))
        ]

    def run(
        self,
        name: str,
        function: Callable[..., Any],
        *args: object,
        is_alone: bool = False,
        priority: float = 0,
    ) -> Future:
        """Submit function(*args, threads=..., stop=...), with the threads and a Stop of the task.

        Tasks that run in parallel each use one thread of their worker. A task that `is_alone` uses
        the threads of all workers on its host, because the others are idle.
        """
        of_hosts = threads_of_hosts(self.client) if is_alone else None
        return self.submit(name, run_in_task, function, of_hosts, *args, priority=priority)

    def submit_each(
        self, name: str, function: Callable[..., Any], *columns: Sequence[object]
    ) -> list[Future]:
        """Submit a task for each tuple of `zip(*columns)`; costs a tenth of calling `submit`."""
        if not columns[0]:
            return []
        self.counts["tasks"] += len(columns[0])
        self.counts["bytes_sent"] += sum(nbytes_of(one) for column in columns for one in column)
        with dask.config.set(NO_WARNING):
            return self.client.map(
                function, *columns, key=[self._key(name) for _ in columns[0]], pure=False
            )

    def _key(self, name: str) -> str:
        return f"{name}-{self.id}{next(self.numbers)}"

    def finished(
        self, futures: Mapping[Name, Future], stop: Stop | None = None
    ) -> Iterator[tuple[Name, Any]]:
        """Yield (name, result) of tasks as they finish.

        Raises Stopped, WorkersError, and any error of a task.
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
                        raise WorkersError(f"no workers for {PATIENCE} seconds")
                stop.check()
                for future in sorted(done, key=lambda one: one.key):
                    stop.check()  # receiving each result may take long
                    waiting.remove(future)
                    result = future.result()
                    self.counts["bytes_received"] += nbytes_of(result)
                    yield names[future], result
        except KilledWorker as error:
            raise WorkersError(
                f"workers died repeatedly at task {error.task}: they may lack memory"
            ) from None
        except CancelledError:
            waiting.clear()
            raise WorkersError(
                "lost the connection to the Dask scheduler: resume from a checkpoint"
            ) from None
        finally:
            if waiting:
                self.client.cancel(list(waiting), force=True)

    def results(self, futures: list[Future], stop: Stop | None = None) -> list[Any]:
        """Return the results of tasks in order. Raises the errors of `finished`."""
        results = dict(self.finished(dict(enumerate(futures)), stop))
        return [results[k] for k in range(len(futures))]

    def workers(self) -> list[tuple[int, int]]:
        """Return the number of threads and the memory limit in bytes, or 0, of each worker."""
        workers = workers_of(self.client).values()
        return [(worker["nthreads"], worker["memory_limit"]) for worker in workers]

    def work(self) -> dict[str, list[float]]:
        """Return the tasks and the seconds of computing and moving of each worker, by address."""
        work: dict[str, list[float]] = {}
        for task in self.client.get_task_stream():
            if f"-{self.id}" in str(task["key"]):
                of_worker = work.setdefault(task["worker"], [0, 0.0, 0.0])
                of_worker[0] += 1
                for span in task["startstops"]:
                    if span["action"] in ("compute", "transfer"):
                        place = 1 if span["action"] == "compute" else 2
                        of_worker[place] += span["stop"] - span["start"]
        return dict(sorted(work.items()))

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


@contextmanager
def workers_of_scheduler(
    address: str | None = None, scheduler_file: str | None = None
) -> Iterator[Client]:
    """Connect to a scheduler by address or scheduler file. Raises WorkersError."""
    if address is None and scheduler_file is not None:
        address = _address_in(scheduler_file)
    try:
        if address is not None:
            scheme, place = parse_address(address)
            if scheme in ("tcp", "tls"):
                parse_host_port(place)  # without a port, a Client fails, but hangs when it ends
        client = Client(address, timeout=SECONDS_TO_ANSWER, set_as_default=False)
    except (*NO_ANSWER, ValueError) as error:
        reason = "" if isinstance(error, NO_ANSWER) else f": {error}"
        raise WorkersError(f"cannot reach Dask scheduler {address}{reason}") from None
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
            dashboard_address="127.0.0.1:0",  # without the address all networks would reach it
            silence_logs=logging.CRITICAL,
            preload=["dcsvm.distributed.connection"],
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
    """Return the properties of all workers, by address. Raises WorkersError.

    While there are no workers, wait up to 30 seconds: workers may be restarting.
    """
    end = time.monotonic() + SECONDS_TO_ANSWER
    while not (workers := client.scheduler_info(n_workers=-1)["workers"]):
        if time.monotonic() > end:
            raise WorkersError(f"Dask scheduler {client.scheduler.address} has no workers")
        time.sleep(0.1)
    return workers


def threads_of_hosts(client: Client) -> dict[str, int]:
    """Sum the threads of the current workers of each host."""
    threads: dict[str, int] = {}
    for worker in client.scheduler_info(n_workers=-1)["workers"].values():
        threads[worker["host"]] = threads.get(worker["host"], 0) + worker["nthreads"]
    return threads


def check_workers(client: Client) -> None:
    """Raise WorkersError if there are no workers, or a worker lacks this version of dcsvm."""
    workers_of(client)
    versions = client.run(importlib.metadata.version, "dcsvm", on_error="return")
    for worker, version in sorted(versions.items()):
        if isinstance(version, importlib.metadata.PackageNotFoundError):
            raise WorkersError(f"worker {worker} has no dcsvm: install version {__version__}")
        if isinstance(version, str) and version != __version__:
            raise WorkersError(f"worker {worker} has dcsvm {version}, this is {__version__}")


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
        raise WorkersError(f"{scheduler_file}: {reason}") from None
    except (ValueError, KeyError, TypeError):
        raise WorkersError(f"{scheduler_file}: not a Dask scheduler file") from None


POLL_OF_TASK = 0.2  # seconds between checks whether a task is cancelled


def dask_setup(_worker: object) -> None:
    """Ignore the signals of the terminal; called by Dask when a worker of a command starts.

    The worker still ends with the command, because its nanny process then ends.
    """
    for one in system.TERMINAL_SIGNALS:
        with suppress(ValueError):  # not in the main thread
            signal.signal(one, signal.SIG_IGN)


def run_in_task(
    function: Callable[..., Any], of_hosts: dict[str, int] | None, *args: object
) -> Any:
    """Call a function with the threads of the current task and a Stop; see `Tasks.run`."""
    with stop_of_task() as stop:
        return function(*args, threads=threads_of_task(of_hosts), stop=stop)


def threads_of_task(of_hosts: dict[str, int] | None) -> int:
    """Return the number of threads of the current task.

    `of_hosts` has the threads of each host for a task that runs alone, else it is None. In a worker
    with one Dask thread, a task uses all OpenMP threads.
    """
    worker, default = get_worker(), usable_threads(None)
    n_tasks = worker.state.nthreads
    if of_hosts is None:
        return default if n_tasks == 1 else 1
    return max(n_tasks, default, of_hosts.get(get_address_host(worker.address), 0))


@contextmanager
def stop_of_task() -> Iterator[Stop]:
    """Yield a Stop that is requested when the current task is cancelled.

    Dask does not notify running tasks, so a thread polls the state of the task. Otherwise a
    cancelled task would occupy its worker until it is finished.
    """
    worker, stop, is_done = get_worker(), Stop(), threading.Event()
    key = worker.get_current_task()

    def watch() -> None:
        while not is_done.wait(POLL_OF_TASK):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                stop.request()
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield stop
    finally:
        is_done.set()
