"""What tasks do with the rows they were given: the same work as in one process, on fewer rows."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from distributed import get_worker
from distributed.comm import get_address_host

from dcsvm import _core
from dcsvm.data.rows import Rows, stacked
from dcsvm.distributed.chunks import Kept, put_together, taken
from dcsvm.kernel.cluster_tree import Starts, fork_of
from dcsvm.kernel.kernel_rows import Evaluation, KernelRows, Reach
from dcsvm.kernel.kernel_sums import Terms, sums_of_units
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.locality import FEWEST_ROWS, is_worth_skipping
from dcsvm.kernel.partition import Fork, Partition, Placed
from dcsvm.machine import default_threads
from dcsvm.solving.engine import LocalEngine
from dcsvm.solving.iterate import Iterate
from dcsvm.solving.memory import plan_memory
from dcsvm.solving.parts import Effort, Parts

BOUNDED_BYTES = 100_000_000  # that an encoded copy of rows may take beside a sum
POLL = 0.2  # seconds between two looks whether the result of a task is still wanted


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


@contextmanager
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


@dataclass(frozen=True, eq=False)
class Solved:
    """Parts as far as they are solved: their iterate, and a report for each."""

    iterate: Iterate
    reports: list[dict]


def solved_parts(
    pieces: Sequence[Rows],
    order: np.ndarray | None,
    parts: Parts,
    iterate: Iterate,
    effort: Effort,
    means: Means,
) -> Solved:
    """Parts solved, from an iterate; rows are numbered as in the pieces put in order, and variables
    are members in their order."""
    rows, problem = put_together(pieces, order), parts.problem
    threads = means.threads
    memory = plan_memory(
        rows,
        np.array([0, problem.size]),
        n_folds=0,
        n_members=1.0,
        n_places=0,
        threads=threads,
        megabytes=means.megabytes,
    )
    near = Near(rows, effort.reach, threads)
    data = KernelRows(
        near.rows, means.kernel, threads, coded=True, memory_bytes=memory.spare(problem.size)
    )
    means.kernel.check_values(data.largest_squared_norm)
    effort = replace(
        effort,
        reach=near.reach,
        threads=threads,
        memory_bytes=max(memory.solver(problem.size) - data.copy_bytes, 0),
    )
    parts = Parts(
        replace(problem, row=near.place_of(problem.rows)),
        parts.start,
        np.arange(problem.size, dtype=np.int32),
    )
    # a task that is done again begins with the same values
    iterate = Iterate(*(one.copy() for one in vars(iterate).values()))
    with stop_of_task() as stop:
        reports = LocalEngine(data).solve_together(parts, iterate, effort, None, stop)
    return Solved(iterate, reports)


def spans_of_parts(
    pieces: Sequence[Rows],
    order: np.ndarray | None,
    parts: Parts,
    alpha: np.ndarray,
    wanted: np.ndarray,
    n_exact: int,
    means: Means,
) -> np.ndarray:
    """Squared spans of support vectors, see `_core.squared_spans`."""
    data = _bounded(put_together(pieces, order), means)
    return LocalEngine(data).spans(parts, alpha, wanted, n_exact, data.threads)


def sums_of_chunk(
    chunk: Rows,
    own: np.ndarray | None,
    sources: Rows,
    terms: Terms,
    kept: Kept,
    how: Evaluation,
    means: Means,
) -> tuple[np.ndarray, int]:
    """Sums over the sources of variables of some rows of a chunk, as `sums_of_units`; `kept` are
    the terms of the sources and their alpha. Rows of the terms are numbered among these rows and
    among the sources."""
    others, alpha = kept.values
    near = Near(stacked(taken(chunk, own), sources), how.reach or Reach(), means.threads)
    data = _bounded(near.rows, means)
    n_own = near.rows.n_samples - sources.n_samples
    targets, others = (
        replace(one, row=near.place_of(one.row + first))
        for one, first in ((terms, 0), (others, n_own))
    )
    with stop_of_task() as stop:
        how = replace(how, reach=near.reach, stop=stop)
        return sums_of_units(data, targets, others, alpha, how)


def product_of_chunk(
    chunk: Rows,
    own: np.ndarray | None,
    sources: Rows,
    kept: Kept,
    how: Evaluation,
    means: Means,
) -> np.ndarray:
    """K(rows of a chunk, sources) W, see `KernelRows.product`; `kept` is W."""
    rows = stacked(taken(chunk, own), sources)
    data = _bounded(rows, means)
    n_own = rows.n_samples - sources.n_samples
    every = np.arange(rows.n_samples, dtype=np.int32)
    with stop_of_task() as stop:
        how = replace(how, stop=stop)
        return data.product(*kept.values, every[n_own:], target_rows=every[:n_own], how=how)


@dataclass(frozen=True, eq=False)
class Divided:
    """Sampled rows that divide the nodes of a level: those that the `fork` keeps, which were at the
    places `kept` of the sample."""

    rows: Rows
    kept: np.ndarray
    fork: Fork


def divided_sample(
    pieces: Sequence[Rows],
    order: np.ndarray | None,
    of_node: np.ndarray,
    wanted: np.ndarray,
    seed: int,
    means: Means,
    starts: Starts | None,
) -> Divided:
    """Nodes divided by a sample of their rows, pieces put in order, as `fork_of`."""
    sample = put_together(pieces, order)
    data = KernelRows(sample, means.kernel, means.threads, coded=True)
    every = np.arange(sample.n_samples, dtype=np.int32)
    kept, fork = fork_of(data, every, of_node, wanted, seed, starts)
    return Divided(sample.take(kept), kept, fork)


def without_rows(divided: Divided) -> tuple[np.ndarray, Fork]:
    return divided.kept, divided.fork


def placed_chunk(
    chunk: Rows,
    own: np.ndarray | None,
    placed: Placed | None,
    divided: Divided,
    means: Means,
    second: bool,
) -> Placed:
    """Where rows of a chunk are one level further than they were, None for the root."""
    rows = taken(chunk, own)
    partition = Partition(means.kernel, divided.rows, (divided.fork,))
    with stop_of_task() as stop:
        return partition.place(rows, means.threads, stop, second=second, begin=placed)


def _bounded(rows: Rows, means: Means) -> KernelRows:
    return KernelRows(rows, means.kernel, means.threads, coded=True, memory_bytes=BOUNDED_BYTES)


class Near:
    """Rows with neighbours near each other, where enough kernel values are out of reach for that:
    else they are as they were, and nothing is left out."""

    def __init__(self, rows: Rows, reach: Reach, threads: int):
        self.rows, self.reach, self.place = rows, Reach(), None
        if reach == Reach() or not rows.is_dense or rows.n_samples < FEWEST_ROWS:
            return
        points = _core.Points(rows, threads)
        order = _core.neighbour_order(points, threads)
        whole = np.array([0, rows.n_samples])
        if not is_worth_skipping(points, order, whole, reach, threads):
            return
        self.rows, self.reach = rows.take(order), reach
        self.place = np.empty(len(order), np.int32)
        self.place[order] = np.arange(len(order), dtype=np.int32)

    def place_of(self, rows: np.ndarray) -> np.ndarray:
        """Where rows are, int32."""
        return (rows if self.place is None else self.place[rows]).astype(np.int32)
