"""The Engine of rows on workers: kernel products, clusters and the solver as tasks.

A subproblem is solved on a worker that collects its rows. Kernel sums are computed on the workers
that hold the target rows. The division into tasks depends only on the data and the options, so that
results are the same bits for any number of workers.

Components are joined from those of sections with near bounding boxes. Boxes can be nearer than the
rows in them. Then components are joined needlessly, which costs time but does not change the
solution.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from distributed import Future, get_worker
from numpy.typing import ArrayLike

from dcsvm import _core
from dcsvm.data.rows import Rows, Storage
from dcsvm.distributed.chunks import SectionFormat, put_together, share, taken
from dcsvm.distributed.connection import Tasks, threads_of_hosts
from dcsvm.distributed.worker_tasks import (
    TaskResources,
    Weights,
    divide,
    product,
    route,
    run_on_rows,
    solve,
    spans,
    sums,
    without_rows,
)
from dcsvm.kernel.cluster_tree import Starts, Tree, inverse
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows, TermIndex
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import (
    LEFT_OUT,
    MIN_COMPONENT,
    MIN_ROWS,
    NEGLIGIBLE,
    SAMPLE,
    RowComponents,
    is_worth_ordering,
)
from dcsvm.kernel.sources import Assignment, NodeSplit
from dcsvm.training.certificate import Iterate, SolverSettings, Subproblems
from dcsvm.training.engine import numbered
from dcsvm.training.report import Traffic
from dcsvm.training.state import SolveControl

COST_SAMPLE = 1000  # rows from which the client estimates the cost of kernel values


class RemoteRows:
    """Rows in chunks on workers, with the properties of Rows that training uses.

    Each chunk is the result of a task and consists of sections; `sizes` has the number of rows of
    each section. Chunks may depend on the workers, but sections do not. Therefore results may
    depend on sections but not on chunks. Row i of a run is row `given[i]` (int32) of the
    concatenated chunks. A row takes about `row_bytes` bytes.
    """

    columns = None

    def __init__(
        self,
        tasks: Tasks,
        chunks: Sequence[Future],
        sizes: Sequence[Sequence[int]],
        form: SectionFormat,
        row_bytes: int,
    ):
        self.tasks, self.chunks, self.form, self.row_bytes = tasks, chunks, form, row_bytes
        self.n_features = form.n_features if form.used is None else len(form.used)
        self.is_dense = form.storage is not Storage.SPARSE
        self.sections = [np.cumsum(of_chunk) for of_chunk in sizes]  # ends of sections, by chunk
        ends = np.cumsum([of_chunk[-1] for of_chunk in self.sections])
        self.start = np.concatenate(([0], ends)).astype(np.int64)
        self.given = np.arange(self.start[-1], dtype=np.int32)

    @property
    def n_samples(self) -> int:
        return len(self.given)

    @property
    def n_sections(self) -> int:
        return sum(len(ends) for ends in self.sections)

    def reordered(self, indices: np.ndarray) -> "RemoteRows":
        """Select and reorder rows without moving them."""
        other = copy(self)
        other.given = self.given[indices]
        return other

    def by_chunk(self, indices: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """Locate rows by chunk.

        Returns (chunk, positions in `indices`, rows in the chunk, int32) for each chunk used.
        """
        given = self.given[indices]
        chunk_of = np.searchsorted(self.start, given, side="right") - 1
        order = np.argsort(chunk_of, kind="stable")
        ends = np.searchsorted(chunk_of[order], np.arange(len(self.chunks) + 1))
        parts = []
        for chunk in np.flatnonzero(np.diff(ends)).tolist():
            positions = order[ends[chunk] : ends[chunk + 1]]
            rows = (given[positions] - self.start[chunk]).astype(np.int32)
            parts.append((chunk, positions, rows))
        return parts

    @property
    def in_chunks(self) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """Yield (chunk, run indices of its rows, rows in the chunk) for each chunk used.

        The rows in the chunk are int32, or None for all.
        """
        index = np.full(self.start[-1], -1, np.int32)
        index[self.given] = np.arange(self.n_samples, dtype=np.int32)
        for chunk, (begin, end) in enumerate(pairwise(self.start)):
            selected = np.flatnonzero(index[begin:end] >= 0).astype(np.int32)
            if len(selected):
                is_all = len(selected) == end - begin
                yield chunk, index[begin:end][selected], None if is_all else selected

    def distinct_by_chunk(
        self, indices: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray | None, np.ndarray]]:
        """Locate rows by chunk, without repeated rows.

        Yields (chunk, positions in `indices`, distinct rows, index) for each chunk used. Distinct
        rows are indices in the chunk, or None for all. `index` has for each position the index
        among the distinct rows.
        """
        for chunk, positions, rows in self.by_chunk(indices):
            distinct, index = np.unique(rows, return_inverse=True)
            is_all = len(distinct) == self.start[chunk + 1] - self.start[chunk]
            yield chunk, positions, None if is_all else distinct, index.reshape(-1)

    def pieces(self, indices: np.ndarray, name: str) -> tuple[list[Future], np.ndarray | None]:
        """Submit one task for each chunk used, to select rows.

        Returns the tasks, and the argument `order` of `put_together`, None for the identity.
        """
        parts = self.by_chunk(indices)
        pieces, partial = [self.chunks[chunk] for chunk, _, _ in parts], []
        for k, (chunk, _, rows) in enumerate(parts):
            size = self.start[chunk + 1] - self.start[chunk]
            if len(rows) < size or not np.array_equal(rows, np.arange(size)):
                partial.append(k)
        futures = self.tasks.submit_each(
            f"{name}-rows", taken, [pieces[k] for k in partial], [parts[k][2] for k in partial]
        )
        for k, future in zip(partial, futures, strict=True):
            pieces[k] = future
        self.tasks.traffic.bytes_moved += len(indices) * self.row_bytes
        positions = [positions for _, positions, _ in parts]
        order = np.concatenate(positions) if positions else np.zeros(0, np.int64)
        if np.array_equal(order, np.arange(len(order))):
            return pieces, None
        return pieces, inverse(order)

    def assembled(self, indices: np.ndarray, name: str) -> Future:
        """Submit a task that assembles rows in the order of `indices`."""
        pieces, order = self.pieces(indices, name)
        return self.tasks.submit(f"{name}-rows", put_together, pieces, order)

    def take(self, indices: ArrayLike, stop: _core.Stop | None = None) -> Rows:
        """Fetch rows to the client. Raises Stopped."""
        indices = np.asarray(indices, dtype=np.int64)
        if len(indices) == 0:
            return self.form.no_rows
        pieces, order = self.pieces(indices, "sample")
        return put_together(self.tasks.results(pieces, stop), order)

    take_for_model = take

    def unlike(self, one: Rows) -> np.ndarray:
        """Mark the rows that differ from a single row, bool (n_samples,)."""
        futures = [
            self.tasks.submit(f"unlike-chunk{k}", Rows.unlike, chunk, one)
            for k, chunk in enumerate(self.chunks)
        ]
        return np.concatenate(self.tasks.results(futures))[self.given]


class RemoteKernelRows:
    """Remote rows and a kernel, with the part of KernelRows that training on workers uses.

    `setup` and `points` are made from a `sample` of the rows, to estimate costs. Each task has
    `megabytes` MB for caches and copies.
    """

    copy_bytes, is_in_file = 0, False

    def __init__(
        self,
        rows: RemoteRows,
        kernel: Kernel,
        threads: int,
        megabytes: int,
        sample: Rows | None = None,
        stop: _core.Stop | None = None,
    ):
        self.rows, self.kernel, self.threads = rows, kernel, threads
        self.means = TaskResources(kernel, megabytes)
        if sample is None:
            step = -(-rows.n_samples // COST_SAMPLE)
            sample = rows.take(np.arange(0, rows.n_samples, step), stop)
        self.sample = sample
        local = KernelRows(sample, kernel, 1, coded=True)
        self.setup, self.points = local.setup, local.points

    def with_kernel(self, kernel: Kernel) -> "RemoteKernelRows":
        return RemoteKernelRows(self.rows, kernel, self.threads, self.means.megabytes, self.sample)

    def product(
        self, weights: Weights, rows: np.ndarray, *, target_rows: np.ndarray, how: KernelEvalOptions
    ) -> np.ndarray:
        """Compute the kernel product K(target rows, rows) W, as `KernelRows.product`."""
        n_columns = weights[3] if isinstance(weights, tuple) else 1
        result = np.zeros((len(target_rows), n_columns))
        if len(rows) and len(target_rows):
            for positions, index, values in self.on_chunks(
                "product", product, target_rows, rows, (weights,), how
            ):
                result[positions] = values[index]
        return result

    def on_chunks(
        self,
        name: str,
        work: Callable[..., Any],
        targets: np.ndarray,
        sources: np.ndarray,
        shared: tuple[object, ...],
        how: KernelEvalOptions,
        *,
        cutoff: Cutoff | None = None,
        arguments_of: Callable[[np.ndarray, np.ndarray], tuple[object, ...]] | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Run a task for each chunk: `work` on its target rows and all source rows.

        All tasks get the `shared` values. `arguments_of(positions, index)` returns further
        arguments of a task. Yields (positions, index, result) as tasks finish: `positions` in the
        targets, and for each of them its index among the rows of the task. Raises Stopped.
        """
        tasks = self.rows.tasks
        assembled = self.rows.assembled(sources, f"{name}-sources")
        values = tasks.submit(f"{name}-values", share, *shared)
        stop, how = how.stop, replace(how, stop=None)
        located: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        futures: dict[int, Future] = {}
        for chunk, positions, selected, index in self.rows.distinct_by_chunk(targets):
            located[chunk] = positions, index
            args = () if arguments_of is None else arguments_of(positions, index)
            futures[chunk] = tasks.submit(
                f"{name}-chunk{chunk}", run_on_rows, work, self.means,
                [self.rows.chunks[chunk], assembled], selected, None, cutoff, values, how, *args,
            )  # fmt: skip
        for chunk, result in tasks.finished(futures, stop):
            yield *located[chunk], result


MAX_BOXES = 4096  # boxes, compared pairwise; with more, all rows are one component
SAFETY = 1.0 + 1e-6  # factor on distances for rounding: corners are float32


@dataclass(frozen=True, eq=False)
class ComponentBoxes:
    """Components of a section and their bounding boxes.

    `group` int32 (n,) is the component of each row. `low` and `high` float32 (n_groups, d) are the
    corners of the boxes.
    """

    group: np.ndarray
    low: np.ndarray
    high: np.ndarray


def find_remote_components(
    rows: RemoteRows, kernel: Kernel, weight: float, tolerance: float, stop: _core.Stop
) -> RowComponents:
    """Find the components and order of remote rows, as `find_components`. Raises Stopped."""
    n_rows = rows.n_samples
    whole = RowComponents(np.arange(n_rows, dtype=np.int32), np.array([0, n_rows], dtype=np.int64))
    if kernel.type.fall is None or not rows.is_dense or n_rows < MIN_ROWS or weight == 0:
        return whole
    between = Cutoff.of(kernel, NEGLIGIBLE * tolerance / weight)
    within = Cutoff.of(kernel, LEFT_OUT * tolerance / weight)
    sample = rows.take(np.arange(0, n_rows, -(-n_rows // SAMPLE)), stop)
    start = _core.find_components(_core.Points(sample, 1), between, 1, 1)[1]
    if len(start) == 2:
        pays = is_worth_ordering(sample, within, stop)
        return replace(whole, between=between, within=within) if pays else whole
    group = np.empty(n_rows, np.int64)
    positions = np.concatenate([positions for _, positions, _ in rows.in_chunks])
    group[positions] = _joined(_boxes_of_sections(rows, between, stop), between)
    group, sizes = _large_enough(group)
    order = np.argsort(group, kind="stable").astype(np.int32)
    start = np.concatenate(([0], np.cumsum(sizes)))
    return RowComponents(order, start, between, within, is_ordered=True)


def boxes_of(
    chunk: Rows, selected: np.ndarray | None, sections: np.ndarray, between: Cutoff
) -> list[ComponentBoxes]:
    """Find the components of selected rows of a chunk, section by section.

    `selected` is ascending, or None for all rows. `sections` has the ends of the sections.
    """
    rows, threads = taken(chunk, selected), max(get_worker().state.nthreads, 1)
    ends = sections if selected is None else np.searchsorted(selected, sections)
    return [
        _boxes(rows.part(slice(begin, end)), between, threads)
        for begin, end in pairwise([0, *ends.tolist()])
        if begin < end
    ]


def _boxes(rows: Rows, between: Cutoff, threads: int) -> ComponentBoxes:
    points = _core.Points(rows, threads)
    order, start = _core.find_components(points, between, 1, threads)
    if len(start) - 1 > MAX_BOXES:
        order = np.arange(rows.n_samples, dtype=np.int32)
        start = np.array([0, rows.n_samples])
    group = np.empty(rows.n_samples, np.int32)
    group[order] = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
    sorted_rows = rows.features[order].astype(np.float32)
    low = np.minimum.reduceat(sorted_rows, start[:-1], axis=0)
    return ComponentBoxes(group, low, np.maximum.reduceat(sorted_rows, start[:-1], axis=0))


def _boxes_of_sections(rows: RemoteRows, between: Cutoff, stop: _core.Stop) -> list[ComponentBoxes]:
    futures = [
        rows.tasks.submit(
            f"groups-chunk{chunk}", boxes_of, rows.chunks[chunk], selected, rows.sections[chunk],
            between,
        )
        for chunk, _, selected in rows.in_chunks
    ]  # fmt: skip
    return [boxes for of_chunk in rows.tasks.results(futures, stop) for boxes in of_chunk]


def _joined(boxes: list[ComponentBoxes], between: Cutoff) -> np.ndarray:
    """Join components with near boxes. Returns the component of each row, section by section."""
    n_boxes = [len(one.low) for one in boxes]
    first = np.cumsum(n_boxes) - n_boxes
    group = np.concatenate([one.group + begin for one, begin in zip(boxes, first, strict=True)])
    low, high = (np.concatenate([getattr(one, end) for one in boxes]) for end in ("low", "high"))
    if len(low) > MAX_BOXES:
        return np.zeros(len(group), np.int64)
    return _connected(low, high, between)[group]


def _connected(low: np.ndarray, high: np.ndarray, between: Cutoff) -> np.ndarray:
    """Label boxes by connected component; the label is the index of its first box."""
    label, free = np.empty(len(low), np.int64), np.arange(len(low))  # free: boxes without a label
    free_low, free_high = low, high
    while len(free):
        first, stack = free[0], [free[0]]
        while stack:
            box = stack.pop()
            label[box] = first
            apart = _core.box_distances(between.argument, low[box], high[box], free_low, free_high)
            is_near = (apart < SAFETY * between.distance) | (free == box)
            if is_near.any():
                stack += [one for one in free[is_near] if one != box]
                free, free_low, free_high = (one[~is_near] for one in (free, free_low, free_high))
    return label


def _large_enough(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort components by first row; the last merges all small ones. Returns (group, sizes)."""
    _, first, group, sizes = np.unique(
        group, return_index=True, return_inverse=True, return_counts=True
    )
    is_small = sizes < MIN_COMPONENT
    order = np.lexsort((first, is_small))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    n_large = int(np.count_nonzero(~is_small))
    number = np.minimum(number, n_large if is_small.any() else len(order) - 1)
    return number[group], np.bincount(number[group])


# A task collects rows from all chunks, so that small subproblems share a task, or parcel, of about
# this cost in kernel values. There are at most MAX_PARCELS, or the number of sections, if larger.
PARCEL_COST, MAX_PARCELS = 5e7, 32
PART_COST = 3e4  # added to n^2, the cost of a subproblem of n variables


class RemoteTree(Tree):
    """The tree of remote rows, equal to the tree of the same rows in one process.

    One worker splits the sample of a level. Each chunk is assigned to clusters where its rows are;
    its assignment stays there for the next level. `split` is the task of the last split. `assigned`
    maps each chunk to the task of its last assignment.
    """

    rows: RemoteRows  # type: ignore[assignment]  # Tree uses only n_samples and take
    split: Future | None = None
    assigned: dict[int, Future] | None = None

    def split_nodes(
        self,
        rows: np.ndarray,
        of_node: np.ndarray,
        n_parts: np.ndarray,
        seed: int,
        starts: Starts | None = None,
    ) -> tuple[np.ndarray, NodeSplit]:
        tasks, level = self.rows.tasks, f"level{len(self.splits) + 1}"
        pieces: Sequence[Future | Rows] = [self.rows.form.no_rows]
        order = None
        if len(rows):
            pieces, order = self.rows.pieces(rows, f"{level}-sample")
        means = TaskResources(self.data.kernel, 0, threads_of_hosts(tasks.client))
        self.split = tasks.submit(
            f"{level}-divide", run_on_rows, divide, means, pieces, None, order, None, of_node,
            n_parts, seed, starts,
        )  # fmt: skip
        return tasks.results([tasks.submit(f"{level}-split", without_rows, self.split)])[0]

    def stepped(
        self, _placed: Assignment, _split: NodeSplit, _rows: np.ndarray, stop: _core.Stop | None, *,
        second: bool,
    ) -> Assignment:  # fmt: skip
        tasks, means = self.rows.tasks, TaskResources(self.data.kernel, 0)
        result = Assignment.at_root(self.rows.n_samples, second=second)
        positions, before = {}, self.assigned or {}
        self.assigned = {}
        for chunk, chunk_positions, selected in self.rows.in_chunks:
            positions[chunk] = chunk_positions
            self.assigned[chunk] = tasks.submit(
                f"level{len(self.splits)}-route-chunk{chunk}", run_on_rows, route, means,
                [self.rows.chunks[chunk]], selected, None, None, before.get(chunk), self.split,
                second,
            )  # fmt: skip
        for chunk, placed in tasks.finished(self.assigned, stop):
            result.put(positions[chunk], placed)
        return result


class DaskEngine:
    """The Engine of remote rows; the `phase` of a run names its tasks."""

    targets_at_once = 2**62  # one batch: several would only add tasks
    is_out_of_core = True
    tree_of = RemoteTree

    def __init__(self, data: RemoteKernelRows):
        self.data, self.phase = data, "dcsvm"
        self.tasks: Tasks = data.rows.tasks

    @property
    def traffic(self) -> Traffic:
        """Return the traffic so far, with the work of each worker."""
        self.tasks.note_workers()
        return self.tasks.traffic

    def begin_phase(self, name: str) -> None:
        self.phase = name.replace(" ", "")

    def count_rounds(self, n_rounds: int) -> None:
        self.tasks.traffic.rounds += n_rounds

    def sums(
        self, targets: TermIndex, sources: TermIndex, alpha: np.ndarray, how: KernelEvalOptions
    ) -> tuple[np.ndarray, int]:
        result, n_evaluations = np.zeros(len(targets.row)), 0
        if len(sources.row) == 0 or len(targets.row) == 0:
            return result, n_evaluations
        rows, index = np.unique(sources.row, return_inverse=True)
        source_terms = replace(sources, row=index.reshape(-1).astype(np.int32))

        def target_terms(positions: np.ndarray, index: np.ndarray) -> tuple[TermIndex]:
            return (replace(targets.take(positions), row=index.astype(np.int32)),)

        for positions, _, (chunk_sums, n) in self.data.on_chunks(
            f"{self.phase}-sums", sums, targets.row, rows, (source_terms, alpha), how,
            cutoff=how.cutoff, arguments_of=target_terms,
        ):  # fmt: skip
            result[positions] = chunk_sums
            n_evaluations += n
        return result, n_evaluations

    def solve_together(
        self, parts: Subproblems, iterate: Iterate, settings: SolverSettings, control: SolveControl
    ) -> np.ndarray:
        """Solve subproblems in parcels, each a task with all rows of its subproblems.

        A resumed run solves the parcels again that were unfinished at the stop.
        """
        parcels, means = self._parcels(parts), self.data.means
        state, progress = control.state, control.progress
        if len(parcels) == 1:
            means = replace(means, threads_of_hosts=threads_of_hosts(self.tasks.client))
        futures: dict[int, Future] = {}
        for k, parcel in enumerate(parcels):
            which = parcel.which
            if state.is_finished(which.start):
                continue
            name = f"{self.phase}-part{which.start}"
            name += f"to{which.stop - 1}" * (which.stop > which.start + 1)
            pieces, order = self.data.rows.pieces(parcel.rows, self.phase)
            futures[k] = self.tasks.submit(
                name, run_on_rows, solve, means, pieces, None, order, settings.cutoff, parcel.parts,
                iterate.take(parcel.members), settings, priority=len(parcel.members),
            )  # fmt: skip
        n_parcels = n_done = 0
        for k, (solved, reports) in self.tasks.finished(futures, control.stop):
            parcel = parcels[k]
            iterate.put(parcel.members, solved)
            for part, report in enumerate(reports, parcel.which.start):
                state.finish(part, report)
            n_parcels, n_done = n_parcels + 1, n_done + len(parcel.members)
            if progress is not None and progress(n_parcels, n_done, None, 0, 0):
                progress(n_parcels, n_done, None, 0, 0)
        return state.reports

    def spans(
        self, parts: Subproblems, alpha: np.ndarray, mask: np.ndarray, n_exact: int, _threads: int
    ) -> np.ndarray:
        parcels, result = self._parcels(parts), np.zeros(parts.problem.size)
        futures: dict[int, Future] = {}
        for k, parcel in enumerate(parcels):
            members = np.arange(len(parcel.members), dtype=np.int32)
            pieces, order = self.data.rows.pieces(parcel.rows, "dcsvm-spans")
            futures[k] = self.tasks.submit(
                "dcsvm-spans", run_on_rows, spans, self.data.means, pieces, None, order, None,
                replace(parcel.parts, members=members), alpha[parcel.members],
                mask[parcel.members], n_exact,
            )  # fmt: skip
        for k, squared_spans in self.tasks.finished(futures):
            result[parcels[k].members] = squared_spans
        return result

    def _parcels(self, parts: Subproblems) -> list["Parcel"]:
        parcels = []
        for which in parcels_of(parts, max(MAX_PARCELS, self.data.rows.n_sections)):
            start = parts.start[which.start : which.stop + 1]
            members = parts.members[start[0] : start[-1]]
            problem, rows = numbered(parts.problem, members)
            local = Subproblems(problem, start - start[0], np.zeros(0, np.int32))
            parcels.append(Parcel(which, members, local, rows))
        return parcels


class Parcel(NamedTuple):
    """The subproblems of one task.

    `which` is their slice of all subproblems. `members` are their variables, `rows` the run indices
    of their rows. `parts` numbers both from 0; its members are implicit: all variables, in order.
    """

    which: slice
    members: np.ndarray
    parts: Subproblems
    rows: np.ndarray


def parcels_of(parts: Subproblems, max_parcels: int) -> Iterator[slice]:
    """Divide subproblems into slices of about equal cost, and skip empty slices.

    The number of slices is a power of 2, to balance an even number of workers, up to `max_parcels`.
    """
    if len(parts.members) == 0:
        return
    costs = np.cumsum(parts.sizes.astype(np.float64) ** 2 + PART_COST)
    n_parcels = min(2 ** max(math.ceil(math.log2(costs[-1] / PARCEL_COST)), 0), max_parcels)
    cost = costs[-1] / n_parcels
    parcel = (costs - 0.5 * np.diff(costs, prepend=0.0)) // cost
    starts = [*np.flatnonzero(np.diff(parcel, prepend=-1)).tolist(), len(costs)]
    for begin, end in pairwise(starts):
        if parts.start[begin] < parts.start[end]:
            yield slice(begin, end)
