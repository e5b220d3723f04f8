"""Functions that tasks run: each collects the rows of its task and applies a LocalEngine to them.

The workers that `dcsvm-train --workers` starts preload this module.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from distributed import get_worker
from distributed.comm import get_address_host

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.distributed.chunks import put_together, taken
from dcsvm.kernel.cluster_tree import Starts, inverse, split_nodes
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows, TermIndex
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import MIN_ROWS, is_worth_skipping
from dcsvm.kernel.sources import Assignment, NodeSplit, Partition
from dcsvm.machine import default_threads
from dcsvm.training.certificate import Iterate, SolverSettings, Subproblems
from dcsvm.training.engine import LocalEngine
from dcsvm.training.memory import plan_memory
from dcsvm.training.state import SolveControl

Result = TypeVar("Result")
# W of a kernel product: one column, or a CSR matrix as (indptr, columns, values, n_columns)
Weights = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray, int]

BOUNDED_BYTES = 100_000_000  # limit on an encoded copy of the rows, for kernel sums
POLL = 0.2  # seconds between checks whether a task is cancelled


def dask_setup(_worker: object) -> None:
    """Ignore the signals of the terminal; called by Dask when a worker of a command starts.

    The worker still ends with the command, because its nanny process then ends.
    """
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(getattr(signal, name), signal.SIG_IGN)


@dataclass(frozen=True)
class TaskResources:
    """Kernel and resources of a task: `megabytes` for caches and copies, and threads.

    `threads_of_hosts` is None for tasks that run in parallel: each uses one thread of its worker.
    A single task uses the threads of all workers on its host, because the others are idle; then
    `threads_of_hosts` maps each host to their number.
    """

    kernel: Kernel
    megabytes: int
    threads_of_hosts: dict[str, int] | None = None

    @property
    def threads(self) -> int:
        """Return the number of threads of the current task.

        In a worker with one Dask thread, a task uses all OpenMP threads.
        """
        worker = get_worker()
        n_tasks = worker.state.nthreads
        if self.threads_of_hosts is None:
            return default_threads() if n_tasks == 1 else 1
        on_host = self.threads_of_hosts.get(get_address_host(worker.address), 0)
        return max(n_tasks, default_threads(), on_host)


@contextlib.contextmanager
def stop_of_task() -> Iterator[_core.Stop]:
    """Yield a Stop that is requested when the current task is cancelled.

    Dask does not notify running tasks, so a thread polls the state of the task. Otherwise a
    cancelled task would occupy its worker until it is finished.
    """
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
    work: Callable[..., Result],
    means: TaskResources,
    pieces: Sequence[Rows],
    selected: np.ndarray | None,
    order: np.ndarray | None,
    cutoff: Cutoff | None,
    *args: object,
) -> Result:
    """Call one of the functions below on the rows of a task: `work(rows, *args)`.

    The rows are the `selected` rows of the first piece (None for all), followed by the other
    pieces, then reordered by `order`. Kernel values beyond `cutoff` may be skipped.
    """
    first = taken(pieces[0], selected)
    rows = put_together([first, *pieces[1:]], order)
    with stop_of_task() as stop:
        return work(RowsOfTask(rows, first.n_samples, means, cutoff or Cutoff(), stop), *args)


class RowsOfTask:
    """The rows of a task, `n_first` of them from the first piece.

    If enough kernel values are beyond the `cutoff`, the rows are sorted in spatial order. Otherwise
    they keep their order, and no kernel value is skipped.
    """

    def __init__(
        self, rows: Rows, n_first: int, means: TaskResources, cutoff: Cutoff, stop: _core.Stop
    ):
        self.rows, self.n_first, self.kernel = rows, n_first, means.kernel
        self.megabytes, self.threads, self.stop = means.megabytes, means.threads, stop
        self.cutoff = Cutoff()
        self.position: np.ndarray | None = None  # of each row in spatial order
        if cutoff == Cutoff() or not rows.is_dense or rows.n_samples < MIN_ROWS:
            return
        points = _core.Points(rows, self.threads)
        order = _core.neighbour_order(points, self.threads)
        whole = np.array([0, rows.n_samples])
        if is_worth_skipping(points, order, whole, cutoff, self.threads):
            self.rows, self.cutoff, self.position = rows.take(order), cutoff, inverse(order)

    def positions_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the positions of rows in the order used here, int32."""
        return (rows if self.position is None else self.position[rows]).astype(np.int32)

    def engine(self, memory_bytes: int = BOUNDED_BYTES) -> LocalEngine:
        """Make an engine on the rows; its encoded copy takes at most `memory_bytes`."""
        data = KernelRows(
            self.rows, self.kernel, self.threads, coded=True, memory_bytes=memory_bytes
        )
        return LocalEngine(data)


def solve(
    local: RowsOfTask, parts: Subproblems, iterate: Iterate, settings: SolverSettings
) -> tuple[Iterate, np.ndarray]:
    """Solve subproblems; return the new iterate and a report for each.

    Their members are implicit: all variables, in order.
    """
    problem = parts.problem
    memory = plan_memory(
        local.rows,
        np.array([0, problem.size]),
        threads=local.threads,
        megabytes=local.megabytes,
    )
    engine = local.engine(memory.spare(problem.size))
    local.kernel.check_values(engine.data.encoding.largest_squared_norm)
    nbytes = max(memory.solver(problem.size) - engine.data.copy_bytes, 0)
    settings = replace(settings, cutoff=local.cutoff, threads=local.threads, memory_bytes=nbytes)
    members = np.arange(problem.size, dtype=np.int32)
    problem = replace(problem, row=local.positions_of(problem.rows))
    iterate = iterate.take(members)  # a copy: a repeated task starts from the same values
    parts = Subproblems(problem, parts.start, members)
    control = SolveControl(_core.SolveState(parts.sizes), local.stop)
    return iterate, engine.solve_together(parts, iterate, settings, control)


def spans(
    local: RowsOfTask, parts: Subproblems, alpha: np.ndarray, mask: np.ndarray, n_exact: int
) -> np.ndarray:
    """Compute squared spans of support vectors, see `_core.squared_spans`."""
    return local.engine().spans(parts, alpha, mask, n_exact, local.threads)


def sums(
    local: RowsOfTask,
    shared: tuple[TermIndex, np.ndarray],
    how: KernelEvalOptions,
    targets: TermIndex,
) -> tuple[np.ndarray, int]:
    """Compute kernel sums, as `component_sums`.

    The targets are in the first piece, the sources in the others; both are numbered from 0.
    `shared` has the terms of the sources and their alpha.
    """
    sources, alpha = shared
    targets = replace(targets, row=local.positions_of(targets.row))
    sources = replace(sources, row=local.positions_of(sources.row + local.n_first))
    how = replace(how, cutoff=local.cutoff, stop=local.stop)
    return local.engine().sums(targets, sources, alpha, how)


def product(local: RowsOfTask, shared: tuple[Weights], how: KernelEvalOptions) -> np.ndarray:
    """Compute K(first piece, other pieces) W, see `KernelRows.product`; `shared` is (W,)."""
    first, others = np.split(np.arange(local.rows.n_samples, dtype=np.int32), [local.n_first])
    how = replace(how, stop=local.stop)
    return local.engine().data.product(shared[0], others, target_rows=first, how=how)


Split = tuple[Rows, np.ndarray, NodeSplit]


def divide(
    local: RowsOfTask, of_node: np.ndarray, n_parts: np.ndarray, seed: int, starts: Starts | None
) -> Split:
    """Split nodes of the cluster tree by sampled rows, as `cluster_tree.split_nodes`.

    Returns the sampled rows that the split keeps, their positions in the sample, and the split.
    """
    rows = np.arange(local.rows.n_samples, dtype=np.int32)
    data = local.engine(_core.NO_LIMIT).data
    kept, split = split_nodes(data, rows, of_node, n_parts, seed, starts)
    return local.rows.take(kept), kept, split


def without_rows(split: Split) -> tuple[np.ndarray, NodeSplit]:
    """Drop the rows of a split, which the client does not need."""
    return split[1:]


def route(local: RowsOfTask, placed: Assignment | None, split: Split, second: bool) -> Assignment:
    """Assign rows to the clusters of the next level.

    `placed` is the assignment to the level above, None for the root. With `second`, the second
    nearest clusters are assigned too.
    """
    sample, _, node_split = split
    partition = Partition(local.kernel, sample, (node_split,))
    return partition.place(local.rows, local.threads, local.stop, second=second, begin=placed)
