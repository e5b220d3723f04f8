"""Submit tasks to the workers of a Dask cluster and wait for their results.

A task is a pure function of plain values and results of other tasks, so Dask can repeat the tasks
of a lost worker. Dask counts the workers that die while they run a task. The task fails if there
are more than `distributed.scheduler.allowed-failures`.
"""

import time
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import count
from typing import Any, TypeVar

import dask
from distributed import Client, Future, KilledWorker, wait

from dcsvm._core import Stop
from dcsvm.distributed.chunks import nbytes_of
from dcsvm.distributed.connection import NO_ANSWER
from dcsvm.solving.report import Traffic, WorkerTraffic

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
