"""The rows of a run in chunks on workers, and the work on them as tasks.

A subproblem is solved on a worker that collects its rows. Kernel sums are computed on the workers
that hold the target rows. The division into tasks depends only on the data and the options, so that
results are the same bits for any number of workers.

The functions of remote_tasks.py do the work. `tasks` carries them to the workers: `Tasks` in
dcsvm/distributed/connection.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dcsvm import _core
from dcsvm.data.arrays import distinct
from dcsvm.data.chunks import Future
from dcsvm.data.columns import TableEncoding
from dcsvm.data.rows import Rows, Storage, are_far, storage_of
from dcsvm.data.used_columns import UsedColumns
from dcsvm.kernel.cluster_tree import Tree, inverse
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows, TermIndex, Weights
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import Boxes, RowComponents, find_components
from dcsvm.kernel.sources import Assignment, NodeSplit
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.duplicates import RowMap, all_different, duplicates_by_keys, row_keys
from dcsvm.problem.formulation import Formulation
from dcsvm.problem.options import OptionError, TrainOptions
from dcsvm.training import remote_tasks as work
from dcsvm.training.certificate import Iterate, SolverSettings, Subproblems
from dcsvm.training.memory import MB, MemoryPlan, Plan, plan_worker_memory
from dcsvm.training.remote_tasks import Pieces, SectionStats, put_together, taken, variance_of
from dcsvm.training.report import Traffic, WorkerTraffic
from dcsvm.training.state import SolveControl

COST_SAMPLE = 1000  # rows from which the client estimates the cost of kernel values
# A task collects rows from all chunks, so that small subproblems share a task, or parcel, of about
# this cost in kernel values. There are at most MAX_PARCELS, or the number of sections, if larger.
PARCEL_COST, MAX_PARCELS = 5e7, 32
PART_COST = 3e4  # added to n^2, the cost of a subproblem of n variables


class RemoteRows:
    """Rows in chunks on workers, with the properties of Rows that training uses.

    Each chunk is the result of a task and consists of sections; the client holds their `stats`, by
    chunk. Chunks may depend on the workers, but sections do not. Therefore results may depend on
    sections but not on chunks. Row i of a run is row `given[i]` (int32) of the concatenated chunks.
    A row takes about `row_bytes` bytes. The rows have only the columns in `used`.
    """

    columns, is_in_file = None, False

    def __init__(
        self, tasks: Any, chunks: Sequence[Future], stats: Sequence[Sequence[SectionStats]],
        used: UsedColumns, storage: Storage,
    ):  # fmt: skip
        self.tasks, self.chunks, self.used, self.storage = tasks, chunks, used, storage
        self.stats = [one for of_chunk in stats for one in of_chunk]
        self.n_features = used.n_features if used.used is None else len(used.used)
        self.is_dense = storage is not Storage.SPARSE
        self.sections = [  # ends of sections, by chunk
            np.cumsum([one.n_rows for one in of_chunk]) for of_chunk in stats
        ]
        ends = np.cumsum([of_chunk[-1] for of_chunk in self.sections])
        self.start = np.concatenate(([0], ends)).astype(np.int64)
        self.given = np.arange(self.start[-1], dtype=np.int32)
        self.row_bytes = -(-sum(one.nbytes for one in self.stats) // len(self.given))

    @property
    def n_samples(self) -> int:
        return len(self.given)

    @property
    def no_rows(self) -> Rows:
        """An empty matrix in the same storage."""
        empty, start = np.zeros(0, np.float32), np.zeros(1, np.int64)
        rows = Rows(0, self.n_features, indptr=start, indices=empty.astype(np.int32), values=empty)
        return rows.in_storage(self.storage)

    def reordered(self, indices: np.ndarray) -> RemoteRows:
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

    def pieces(self, indices: np.ndarray, name: str) -> Pieces:
        """Submit one task for each chunk used, to select rows for `put_together`."""
        if len(indices) == 0:
            return [self.no_rows], None
        parts = self.by_chunk(indices)
        # chunks of which all rows are used, in order, are pieces as they are
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
        self.tasks.counts["bytes_moved"] += len(indices) * self.row_bytes
        order = np.concatenate([positions for _, positions, _ in parts])
        if np.array_equal(order, np.arange(len(order))):
            return pieces, None
        return pieces, inverse(order)

    def take(self, indices: ArrayLike) -> Rows:
        """Fetch rows to the client."""
        indices = np.asarray(indices, dtype=np.int64)
        if len(indices) == 0:
            return self.no_rows
        pieces, order = self.pieces(indices, "sample")
        return put_together((self.tasks.results(pieces), order))

    take_for_model = take

    def unlike(self, one: Rows) -> np.ndarray:
        """Mark the rows that differ from a single row, bool (n_samples,)."""
        futures = self.tasks.on_chunks("unlike", Rows.unlike, self.chunks, one=one)
        return np.concatenate(self.tasks.results(futures))[self.given]


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
        self, rows: np.ndarray, of_node: np.ndarray, n_parts: np.ndarray, seed: int,
        svm_kernel: Kernel | None = None, group: np.ndarray | None = None,
    ) -> tuple[np.ndarray, NodeSplit]:  # fmt: skip
        tasks, level = self.rows.tasks, f"level{len(self.splits) + 1}"
        pieces = self.rows.pieces(rows, f"{level}-sample")
        self.split = tasks.run(
            f"{level}-divide", work.divide, self.data.kernel, pieces, of_node, n_parts, seed,
            svm_kernel, group, is_alone=True,
        )  # fmt: skip
        return tasks.results([tasks.submit(f"{level}-split", work.without_rows, self.split)])[0]

    def stepped(
        self, _placed: Assignment, _split: NodeSplit, _rows: np.ndarray, stop: _core.Stop | None, *,
        second: bool,
    ) -> Assignment:  # fmt: skip
        tasks, kernel = self.rows.tasks, self.data.kernel
        result = Assignment.at_root(self.rows.n_samples, second=second)
        positions, before = {}, self.assigned or {}
        self.assigned = {}
        for chunk, chunk_positions, selected in self.rows.in_chunks:
            positions[chunk] = chunk_positions
            self.assigned[chunk] = tasks.run(
                f"level{len(self.splits)}-route-chunk{chunk}", work.route, kernel,
                self.rows.chunks[chunk], selected, before.get(chunk), self.split, second,
            )  # fmt: skip
        for chunk, placed in tasks.finished(self.assigned, stop):
            result.put(positions[chunk], placed)
        return result


class RemoteEngine:
    """The rows of a run on workers, and the work on them, see LocalEngine.

    It is also its own `data`, with the part of KernelRows that training uses: `setup` and `points`
    are those of a sample of the rows, to estimate costs. The `phase` of a run names its tasks. Each
    task has `megabytes` MB for caches and copies.
    """

    targets_at_once = 2**62  # one batch: several would only add tasks
    is_out_of_core = True
    owns_rows = is_in_file = False
    copy_bytes, threads = 0, 1
    tree_of = RemoteTree
    kernel: Kernel
    sample: Rows
    setup: _core.Setup
    points: _core.Points

    def __init__(self, rows: RemoteRows):
        self.rows, self.tasks, self.phase, self.megabytes = rows, rows.tasks, "dcsvm", 0

    @staticmethod
    def of(
        tasks: Any, chunks: list[Future], *, test: Rows | None = None,
        stop: _core.Stop | None = None, with_digest: bool = False,
    ) -> RemoteEngine:  # fmt: skip
        """Return an engine on chunks; each is a task whose result is a list of Sections.

        The rows are put into one storage. The columns of `test` rows are kept, too. `with_digest`
        is for checkpoints. Raises Stopped, ValueError without rows, and any error of a task.
        """
        # chunks without rows are left out
        futures = tasks.on_chunks("facts", work.stats_of, chunks, with_digest=with_digest)
        by_chunk: list[list[SectionStats]] = [
            [one for one in of_chunk if one.n_rows] for of_chunk in tasks.results(futures, stop)
        ]
        chunks = [chunk for chunk, own in zip(chunks, by_chunk, strict=True) if own]
        stats = [one for of_chunk in by_chunk for one in of_chunk]
        if not stats:
            raise ValueError("no rows to train on")
        # the storage and the columns that the rows would have in one process
        n_features, n_values = max(one.n_features for one in stats), sum(s.n_values for s in stats)
        n_rows, are_bytes = sum(one.n_rows for one in stats), all(one.are_bytes for one in stats)
        storage = storage_of(n_rows, n_features, n_values, are_bytes=are_bytes)
        used = UsedColumns(n_features)
        if are_far(n_features, n_values):
            columns = tasks.results(tasks.on_chunks("columns", work.columns_of, chunks), stop)
            columns += [] if test is None else [work.columns_of([(test, np.zeros(0))])]
            used = UsedColumns(n_features, distinct(np.concatenate(columns)))
        rows = tasks.on_chunks("form", work.stored, chunks, columns=used, storage=storage)
        return RemoteEngine(
            RemoteRows(tasks, rows, [own for own in by_chunk if own], used, storage)
        )

    @property
    def data(self) -> Any:
        return self

    def variance(self) -> float:
        """Return the variance of all feature values, as `numpy.var`."""
        return variance_of(self.rows.stats, self.rows.n_samples * self.rows.used.n_features)

    def with_gamma(self, options: TrainOptions, table: TableEncoding | None) -> TrainOptions:
        rows: Any = self.rows  # has the part of Rows that a median needs
        return number_of_gamma(options, rows, self.rows.used.n_features, self.variance, table)

    @property
    def digest(self) -> str:
        return " ".join(str(one.digest) for one in self.rows.stats)

    @property
    def traffic(self) -> Traffic:
        """The traffic so far, with the work of each worker."""
        workers = {address: WorkerTraffic(*own) for address, own in self.tasks.work().items()}
        return Traffic(**self.tasks.counts, workers=workers)

    def for_kernel(self, options: TrainOptions) -> tuple[RemoteEngine, Kernel]:
        if options.kernel_type.is_precomputed:
            raise OptionError("kernel", "precomputed cannot be used on workers")
        return self, options.kernel_on(self.rows.n_features)

    def duplicates(
        self, targets: np.ndarray, sample_weight: np.ndarray, stop: _core.Stop
    ) -> RowMap:
        if not self.rows.is_dense:
            return all_different(sample_weight)
        futures = self.tasks.on_chunks("keys", row_keys, self.rows.chunks)
        keys = np.concatenate(self.tasks.results(futures, stop))
        return duplicates_by_keys(keys, targets, sample_weight)

    def plan_memory(
        self, options: TrainOptions, _formulation: Formulation, _plan: Plan
    ) -> MemoryPlan:
        nbytes = self.rows.n_samples * self.rows.row_bytes
        return plan_worker_memory(self.tasks.workers(), nbytes, options.cache_mb)

    def reordered(self, numbers: np.ndarray) -> RemoteEngine:
        other = copy(self)
        other.rows = self.rows.reordered(numbers)
        return other

    def find_components(
        self, kernel: Kernel, weight: float, tolerance: float, stop: _core.Stop
    ) -> RowComponents:
        def boxes_of(between: Cutoff) -> list[Boxes]:
            """Find the boxes of all sections; rows are still in the order of the sections."""
            futures = [
                self.tasks.run(
                    f"groups-chunk{chunk}", work.boxes_of_sections, self.rows.chunks[chunk],
                    selected, self.rows.sections[chunk], between,
                )
                for chunk, _, selected in self.rows.in_chunks
            ]  # fmt: skip
            return [own for of_chunk in self.tasks.results(futures, stop) for own in of_chunk]

        rows: Any = self.rows  # has the part of Rows that the search needs
        return find_components(rows, kernel, weight, tolerance, 1, stop, boxes_of=boxes_of)

    def encoded(self, kernel: Kernel, memory: MemoryPlan, _n_variables: int) -> RemoteEngine:
        other = copy(self)
        other.threads, other.megabytes = memory.threads, memory.budget // MB
        step = -(-self.rows.n_samples // COST_SAMPLE)
        other.sample = self.rows.take(np.arange(0, self.rows.n_samples, step))
        return other.with_kernel(kernel)

    def with_kernel(self, kernel: Kernel) -> RemoteEngine:
        """Return the same rows with another kernel, as `KernelRows.with_kernel`."""
        other, sample = copy(self), KernelRows(self.sample, kernel, 1, coded=True)
        other.kernel, other.setup, other.points = kernel, sample.setup, sample.points
        return other

    def begin_phase(self, name: str) -> None:
        self.phase = name.replace(" ", "")

    def count_rounds(self, n_rounds: int) -> None:
        self.tasks.counts["rounds"] += n_rounds

    def product(
        self,
        weights: Weights,
        rows: np.ndarray,
        *,
        target_rows: np.ndarray,
        evaluation: KernelEvalOptions,
    ) -> np.ndarray:
        """Compute the kernel product K(target rows, rows) W, as `KernelRows.product`."""
        n_columns = weights[3] if isinstance(weights, tuple) else 1
        result = np.zeros((len(target_rows), n_columns))
        if len(rows) and len(target_rows):
            for positions, index, values in self._on_chunks(
                "product", work.product, target_rows, rows, (weights,), evaluation
            ):
                result[positions] = values[index]
        return result

    def sums(
        self,
        targets: TermIndex,
        sources: TermIndex,
        alpha: np.ndarray,
        evaluation: KernelEvalOptions,
    ) -> tuple[np.ndarray, int]:
        result, n_evaluations = np.zeros(len(targets.row)), 0
        if len(sources.row) == 0 or len(targets.row) == 0:
            return result, n_evaluations
        # rows are sent once for all variables that share them
        rows, index = np.unique(sources.row, return_inverse=True)
        source_terms = replace(sources, row=index.reshape(-1).astype(np.int32))

        def target_terms(positions: np.ndarray, index: np.ndarray) -> tuple[TermIndex]:
            return (replace(targets.take(positions), row=index.astype(np.int32)),)

        for positions, _, (chunk_sums, n) in self._on_chunks(
            f"{self.phase}-sums",
            work.sums,
            targets.row,
            rows,
            (source_terms, alpha),
            evaluation,
            target_terms,
        ):
            result[positions] = chunk_sums
            n_evaluations += n
        return result, n_evaluations

    def _on_chunks(
        self, name: str, function: Callable[..., Any], targets: np.ndarray, sources: np.ndarray,
        shared: tuple[object, ...], evaluation: KernelEvalOptions,
        arguments_of: Callable[[np.ndarray, np.ndarray], tuple[object, ...]] | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:  # fmt: skip
        """Run a task for each chunk: `function` on its target rows and all source rows.

        All tasks get the options `evaluation` and the `shared` values.
        `arguments_of(positions, index)` returns further arguments of a task. Yields (positions,
        index, result) as tasks finish: `positions` in the targets, and for each of them its index
        among the rows of the task.
        Raises Stopped.
        """
        rows, tasks = self.rows, self.tasks
        # what all tasks need is put together, or sent to the workers, once
        pieces = rows.pieces(sources, f"{name}-sources")
        assembled = tasks.submit(f"{name}-sources-rows", put_together, pieces)
        values = tasks.submit(f"{name}-values", work.share, replace(evaluation, stop=None), *shared)
        located: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        futures: dict[int, Future] = {}
        # targets stay where they are; each is selected once
        for chunk, positions, of_targets in rows.by_chunk(targets):
            selected, index = np.unique(of_targets, return_inverse=True)
            is_all = len(selected) == rows.start[chunk + 1] - rows.start[chunk]
            index = index.reshape(-1)
            located[chunk] = positions, index
            args = () if arguments_of is None else arguments_of(positions, index)
            futures[chunk] = tasks.run(
                f"{name}-chunk{chunk}", function, self.kernel, rows.chunks[chunk],
                None if is_all else selected, assembled, values, *args,
            )  # fmt: skip
        for chunk, result in tasks.finished(futures, evaluation.stop):
            yield *located[chunk], result

    def solve_together(
        self, parts: Subproblems, iterate: Iterate, settings: SolverSettings, control: SolveControl
    ) -> np.ndarray:
        """Solve subproblems in parcels, each a task with all rows of its subproblems.

        A resumed run solves the parcels again that were unfinished at the stop.
        """
        parcels, state, progress = self._parcels(parts), control.state, control.progress
        futures: dict[int, Future] = {}
        for k, parcel in enumerate(parcels):
            if state.is_finished(parcel.start):
                continue
            members, own, rows = self._own(parts, parcel)
            name = f"{self.phase}-part{parcel.start}"
            name += f"to{parcel.stop - 1}" * (parcel.stop > parcel.start + 1)
            futures[k] = self.tasks.run(
                name, work.solve, self.kernel, self.megabytes,
                self.rows.pieces(rows, self.phase), own, iterate.take(members), settings,
                is_alone=len(parcels) == 1, priority=len(members),
            )  # fmt: skip
        n_parcels = n_done = 0
        for k, (solved, reports) in self.tasks.finished(futures, control.stop):
            members = self._members(parts, parcels[k])
            iterate.put(members, solved)
            for part, report in enumerate(reports, parcels[k].start):
                state.finish(part, report)
            n_parcels, n_done = n_parcels + 1, n_done + len(members)
            # True asks for an iterate that is up to date, for a checkpoint: here it always is
            if progress is not None and progress(n_parcels, n_done, None, 0, 0):
                progress(n_parcels, n_done, None, 0, 0)
        return state.reports

    def spans(
        self, parts: Subproblems, alpha: np.ndarray, wanted: np.ndarray, n_exact: int, _threads: int
    ) -> np.ndarray:
        result, futures = np.zeros(parts.problem.size), {}
        parcels = self._parcels(parts)
        for k, parcel in enumerate(parcels):
            members, own, rows = self._own(parts, parcel)
            own = replace(own, members=np.arange(len(members), dtype=np.int32))
            futures[k] = self.tasks.run(
                "dcsvm-spans", work.spans, self.kernel, self.rows.pieces(rows, "dcsvm-spans"), own,
                alpha[members], wanted[members], n_exact,
            )  # fmt: skip
        for k, squared_spans in self.tasks.finished(futures):
            result[self._members(parts, parcels[k])] = squared_spans
        return result

    def _parcels(self, parts: Subproblems) -> list[slice]:
        n_sections = sum(len(ends) for ends in self.rows.sections)
        return list(parcels_of(parts, max(MAX_PARCELS, n_sections)))

    @staticmethod
    def _members(parts: Subproblems, parcel: slice) -> np.ndarray:
        """Return the variables of the subproblems of a parcel."""
        return parts.members[parts.start[parcel.start] : parts.start[parcel.stop]]

    def _own(self, parts: Subproblems, parcel: slice) -> tuple[np.ndarray, Subproblems, np.ndarray]:
        """Return the variables of a parcel, its subproblems, and the run indices of their rows.

        The subproblems number both from 0. Their members are implicit: all variables, in order.
        """
        members, start = self._members(parts, parcel), parts.start[parcel.start : parcel.stop + 1]
        problem, rows = parts.problem.with_own_rows(members)
        return members, Subproblems(problem, start - start[0], np.zeros(0, np.int32)), rows


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
