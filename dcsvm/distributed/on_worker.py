"""What tasks do with the rows they were given: the same work as in one process, on fewer rows.

A worker that a command starts loads this module before it has any task.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from distributed import get_worker
from distributed.comm import get_address_host

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.distributed.chunks import put_together, taken
from dcsvm.kernel.cluster_tree import Starts, fork_of, inverse
from dcsvm.kernel.kernel_rows import Evaluation, KernelRows, Reach
from dcsvm.kernel.kernel_sums import Terms
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.locality import FEWEST_ROWS, is_worth_skipping
from dcsvm.kernel.partition import Fork, Partition, Placed
from dcsvm.machine import default_threads
from dcsvm.solving.engine import LocalEngine
from dcsvm.solving.iterate import Effort, Iterate, Parts
from dcsvm.solving.memory import plan_memory

BOUNDED_BYTES = 100_000_000  # that an encoded copy of rows may take beside a sum
POLL = 0.2  # seconds between two looks whether the result of a task is still wanted


def dask_setup(_worker) -> None:
    """Called by Dask when a worker of a command starts: a key that stops the command is none of
    its. It ends with the command, since it loses its nanny."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(getattr(signal, name), signal.SIG_IGN)


@dataclass(frozen=True)
class Means:
    """The `kernel`, and what a task may use: `megabytes` for caches and copies, and of the threads
    of its worker one. A task that is alone has those of all workers on its machine, which have
    nothing to do: `threads_of_hosts`."""

    kernel: Kernel
    megabytes: int
    threads_of_hosts: dict[str, int] | None = None

    @property
    def threads(self) -> int:
        """Those of this task. A worker of one thread is one process with all that OpenMP has."""
        worker = get_worker()
        n_tasks = worker.state.nthreads
        if self.threads_of_hosts is None:
            return default_threads() if n_tasks == 1 else 1
        on_host = self.threads_of_hosts.get(get_address_host(worker.address), 0)
        return max(n_tasks, default_threads(), on_host)


@contextlib.contextmanager
def stop_of_task() -> Iterator[_core.Stop]:
    """Yield a Stop that is requested once the task at work is cancelled: Dask does not tell a task,
    and whoever stopped a run waits for it."""
    worker, stop, is_done = get_worker(), _core.Stop(), threading.Event()
    key = worker.get_current_task()

    def watch() -> None:
        while not is_done.wait(POLL):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                stop.request()
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield stop
    finally:
        is_done.set()


def run_on_rows(
    work: Callable,
    means: Means,
    pieces: Sequence[Rows],
    own: np.ndarray | None,
    order: np.ndarray | None,
    reach: Reach | None,
    *values,
):
    """The one task on rows: what `work`, one of the functions below, makes of them and of some
    values. The rows are those of all pieces, of the first only its rows `own` (None is all), in an
    order (None is as they are); kernel values out of `reach`, if any, may be left out."""
    first = taken(pieces[0], own)
    rows = put_together([first, *pieces[1:]], order)
    with stop_of_task() as stop:
        return work(RowsOfTask(rows, first.n_samples, means, reach or Reach(), stop), *values)


class RowsOfTask:
    """Rows of a task, of which the first piece has `n_first`. Neighbours are near each other where
    enough kernel values are out of `reach` for that: else rows are as they were, and nothing is
    left out."""

    def __init__(self, rows: Rows, n_first: int, means: Means, reach: Reach, stop: _core.Stop):
        self.rows, self.n_first, self.kernel = rows, n_first, means.kernel
        self.megabytes, self.threads, self.stop = means.megabytes, means.threads, stop
        self.reach, self.place = Reach(), None
        if reach == Reach() or not rows.is_dense or rows.n_samples < FEWEST_ROWS:
            return
        points = _core.Points(rows, self.threads)
        order = _core.neighbour_order(points, self.threads)
        whole = np.array([0, rows.n_samples])
        if is_worth_skipping(points, order, whole, reach, self.threads):
            self.rows, self.reach, self.place = rows.take(order), reach, inverse(order)

    def place_of(self, rows: np.ndarray) -> np.ndarray:
        """Where rows are, int32."""
        return (rows if self.place is None else self.place[rows]).astype(np.int32)

    def engine(self, memory_bytes: int = BOUNDED_BYTES) -> LocalEngine:
        """The engine on these rows, whose encoded copy takes at most so much memory."""
        how = {"coded": True, "memory_bytes": memory_bytes}
        return LocalEngine(KernelRows(self.rows, self.kernel, self.threads, **how))


def solve(
    own: RowsOfTask, parts: Parts, iterate: Iterate, effort: Effort
) -> tuple[Iterate, list[dict]]:
    """Solve parts, whose members are all variables in their order, from an iterate; where it is
    then, and a report for each."""
    problem = parts.problem
    limits = {"threads": own.threads, "megabytes": own.megabytes}
    memory = plan_memory(own.rows, np.array([0, problem.size]), **limits)
    engine = own.engine(memory.spare(problem.size))
    own.kernel.check_values(engine.data.encoding.largest_squared_norm)
    nbytes = max(memory.solver(problem.size) - engine.data.copy_bytes, 0)
    effort = replace(effort, reach=own.reach, threads=own.threads, memory_bytes=nbytes)
    every = np.arange(problem.size, dtype=np.int32)
    parts = Parts(replace(problem, row=own.place_of(problem.rows)), parts.start, every)
    iterate = iterate.take(every)  # a task that is done again begins with the same values
    return iterate, engine.solve_together(parts, iterate, effort, None, own.stop)


def spans(
    own: RowsOfTask, parts: Parts, alpha: np.ndarray, wanted: np.ndarray, n_exact: int
) -> np.ndarray:
    """Squared spans of support vectors, see `_core.squared_spans`."""
    return own.engine().spans(parts, alpha, wanted, n_exact, own.threads)


def sums(
    own: RowsOfTask, kept: tuple[Terms, np.ndarray], how: Evaluation, terms: Terms
) -> tuple[np.ndarray, int]:
    """Sums of variables of the first piece over those of the others, as `sums_of_units`; `kept` are
    the terms of these and their alpha. Rows are numbered among either."""
    others, alpha = kept
    targets = replace(terms, row=own.place_of(terms.row))
    others = replace(others, row=own.place_of(others.row + own.n_first))
    how = replace(how, reach=own.reach, stop=own.stop)
    return own.engine().sums(targets, others, alpha, how)


def product(own: RowsOfTask, kept: tuple, how: Evaluation) -> np.ndarray:
    """K(rows of the first piece, the others) W, see `KernelRows.product`; `kept` is W."""
    first, others = np.split(np.arange(own.rows.n_samples, dtype=np.int32), [own.n_first])
    how = replace(how, stop=own.stop)
    return own.engine().data.product(*kept, others, target_rows=first, how=how)


def divide(
    own: RowsOfTask, of_node: np.ndarray, wanted: np.ndarray, seed: int, starts: Starts | None
) -> tuple[Rows, np.ndarray, Fork]:
    """Nodes divided by a sample of their rows, as `fork_of`: the rows that the fork keeps, their
    places in the sample, and the fork."""
    every = np.arange(own.rows.n_samples, dtype=np.int32)
    data = own.engine(_core.NO_LIMIT).data
    kept, fork = fork_of(data, every, of_node, wanted, seed, starts)
    return own.rows.take(kept), kept, fork


def without_rows(divided: tuple[Rows, np.ndarray, Fork]) -> tuple[np.ndarray, Fork]:
    return divided[1:]


def route(
    own: RowsOfTask, placed: Placed | None, divided: tuple[Rows, np.ndarray, Fork], second: bool
) -> Placed:
    """Where rows are one level further than they were, None for the root."""
    sample, _, fork = divided
    partition = Partition(own.kernel, sample, (fork,))
    return partition.place(own.rows, own.threads, own.stop, second=second, begin=placed)
