"""Tasks on the workers of a Dask cluster: handed in under names that say what they do, and waited
for.

A task is a pure function of the results of others and of plain values, so that Dask makes again
what a worker held that is lost, and does again what it was at. Dask alone counts the workers that
die at a task, and gives it up after `distributed.scheduler.allowed-failures` of them.
"""

from __future__ import annotations

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
from dcsvm.solving.report import Traffic, WorkerTraffic

Name = TypeVar("Name", bound=Hashable)
POLL = 0.1  # seconds between two looks at the wish to stop
LOOK, PATIENCE = 10, 300  # seconds between two looks for workers, and without any


class WorkersLost(ValueError):
    """Workers died, or the scheduler is gone; the sentence says what can be done."""


class Tasks:
    """The tasks of one run of a client."""

    def __init__(self, client: Client):
        self.client, self.traffic = client, Traffic()
        self.run, self.numbers = uuid.uuid4().hex[:8], count()
        client.get_task_stream(count=0)  # from now on it is kept

    def submit(
        self, name: str, function: Callable, *values, priority: float = 0, **named
    ) -> Future:
        """Hand in a task under a name that is seen in the dashboard."""
        self.traffic.tasks += 1
        self.traffic.sent += sum(nbytes_of(value) for value in (*values, *named.values()))
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GB"}):
            return self.client.submit(
                function, *values, key=self._key(name), priority=priority, pure=False, **named
            )

    def submit_each(self, name: str, function: Callable, *columns: Sequence) -> list[Future]:
        """Hand in a task for each line of values, which costs a tenth of one by one."""
        if not columns[0]:
            return []
        self.traffic.tasks += len(columns[0])
        self.traffic.sent += sum(nbytes_of(value) for column in columns for value in column)
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GB"}):
            return self.client.map(
                function, *columns, key=[self._key(name) for _ in columns[0]], pure=False
            )

    def _key(self, name: str) -> str:
        return f"{name}-{self.run}{next(self.numbers)}"

    def finished(
        self, futures: Mapping[Name, Future], stop: Stop | None = None
    ) -> Iterator[tuple[Name, Any]]:
        """(name, result) of tasks as they come. Raises Stopped where it is stopped, what a task
        raised, and WorkersLost."""
        names, stop = {future: name for name, future in futures.items()}, stop or Stop()
        waiting, looked = set(names), time.monotonic()
        seen = looked  # when there was a worker
        try:
            while waiting:
                done, now = self._done_of(waiting), time.monotonic()
                if now >= looked + LOOK:
                    looked, seen = now, now if self.client.nthreads() else seen
                    if now > seen + PATIENCE:
                        raise WorkersLost(f"there has been no worker for {PATIENCE} seconds")
                stop.check()
                for future in sorted(done, key=lambda one: one.key):
                    stop.check()  # results of wide rows take long to arrive
                    waiting.remove(future)
                    result = future.result()
                    self.traffic.received += nbytes_of(result)
                    yield names[future], result
        except KilledWorker as error:
            raise WorkersLost(
                f"workers died again and again at {error.task}: they may have too little memory"
            ) from None
        except CancelledError:
            waiting.clear()
            raise WorkersLost(
                "the connection to the Dask scheduler is lost: a checkpoint is where to go on from"
            ) from None
        finally:
            if waiting:
                self.client.cancel(list(waiting), force=True)

    def results(self, futures: list[Future], stop: Stop | None = None) -> list:
        """The results of tasks, in order; raises as `finished`."""
        found = dict(self.finished(dict(enumerate(futures)), stop))
        return [found[number] for number in range(len(futures))]

    def note_workers(self) -> None:
        """Report what each worker has done."""
        workers: dict[str, WorkerTraffic] = {}
        for task in self.client.get_task_stream():
            if f"-{self.run}" not in str(task["key"]):
                continue
            one = workers.setdefault(task["worker"], WorkerTraffic())
            one.tasks += 1
            for span in task["startstops"]:
                seconds = span["stop"] - span["start"]
                if span["action"] == "compute":
                    one.seconds_computing += seconds
                elif span["action"] == "transfer":
                    one.seconds_moving += seconds
        self.traffic.workers = dict(sorted(workers.items()))

    def _done_of(self, waiting: set[Future]) -> set[Future]:
        """Those of some futures that are done, after a short while."""
        with self.client.as_current(), suppress(TimeoutError):
            wait(waiting, timeout=POLL, return_when="FIRST_COMPLETED")
        return {future for future in waiting if future.status != "pending"}
