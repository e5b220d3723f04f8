"""The settings of a grid scored on workers: settings times clusters as tasks for early models,
settings times folds for exact ones. What comes next is decided as in one process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from distributed import Future

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.distributed.connection import threads_of_hosts
from dcsvm.distributed.on_worker import Means, stop_of_task
from dcsvm.distributed.packed import packed, packed_problem, unpacked, unpacked_problem
from dcsvm.distributed.preparation import RemoteData, prepare_remote
from dcsvm.distributed.remote_rows import RemoteKernelRows
from dcsvm.distributed.remote_work import RemoteWork
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.problem.formulation import BoxProblem
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.cluster_scores import Problem, Scoring
from dcsvm.selection.layout import Held, Layout
from dcsvm.selection.search import Search
from dcsvm.solving.preparation import Prepared


class RemoteSearch(Search):
    """A search on remote data, whose labels are at the client; for the rest see Search."""

    def __init__(self, data: RemoteData, fold: np.ndarray, options: TrainOptions, **how):
        self.data = data
        super().__init__(data.rows, data.labels, fold, options, **how)

    def beside_rows(self, options: TrainOptions) -> TrainOptions:
        """What tasks may use has nothing to do with what workers hold."""
        return options

    def prepared(self, options: TrainOptions) -> Prepared:
        self.blocks: dict[int, Block] = {}
        prepared = prepare_remote(self.data, options, self.weights, self.stop)
        prepared.work.phase = f"gamma{prepared.data.kernel.gamma:g}"
        return prepared

    def problem(self, prepared: Prepared, layout: Layout, *, is_exact: bool) -> Problem:
        return RemoteProblem(prepared, layout, self.blocks, is_exact=is_exact)


@dataclass(frozen=True, eq=False)
class Block:
    """The rows of some clusters: their numbers, ascending, and the task that has them."""

    numbers: np.ndarray
    rows: Future


class RemoteProblem(Problem):
    """Clusters are in `blocks`, those that have been needed so far by their number, whose rows are
    brought together once: settings are solved where they are."""

    def __init__(
        self, prepared: Prepared, layout: Layout, blocks: dict[int, Block], *, is_exact: bool
    ):
        super().__init__(prepared, layout, is_exact=is_exact)
        self.work: RemoteWork = prepared.work
        ends = np.cumsum(layout.sizes)
        size = ends[-1] / min(self.work.most_parcels, layout.n_clusters)
        self.block_of = ((ends - 0.5 * layout.sizes) // size).astype(np.int64)
        self.blocks = blocks

    def solved(
        self, data: RemoteKernelRows, clusters: np.ndarray, Cs: Sequence[float], stop: _core.Stop
    ) -> Iterator[tuple[Held, np.ndarray, list[dict]]]:
        numbers = self.block_of[clusters]
        held, futures = {}, {}
        for number in dict.fromkeys(numbers.tolist()):
            held[number] = self.layout.held(clusters[numbers == number])
            futures[number] = self._solving(number, held[number], data, Cs)
        for number, (values, reports) in self.work.tasks.finished(futures, stop):
            yield held[number], values, reports

    def _solving(self, number: int, held: Held, data: RemoteKernelRows, Cs) -> Future:
        """The task that solves some clusters of a block."""
        block = self._block(number)
        whole = self.layout.formulation.problem
        part = whole.part(held.members)
        rows = np.union1d(part.rows, held.rows)
        problem = BoxProblem(
            part.linear, part.lower, part.upper, part.sum_of, part.n_sums,
            np.searchsorted(rows, part.rows).astype(np.int32), part.unit, part.divides_by_margin,
        )  # fmt: skip
        local = Held(
            members=np.zeros(0, np.int32),
            start=held.start,
            left=packed(held.left[:, rows].reshape(-1)),
            rows=np.searchsorted(rows, held.rows).astype(np.int32),
            rows_start=held.rows_start,
            entries=np.zeros(0, np.int64),
            is_second=np.zeros(0, bool),
        )
        own = np.searchsorted(block.numbers, rows).astype(np.int32)
        means = Means(data.kernel, self.work.means.megabytes)
        if self.layout.n_clusters == 1:
            means = replace(means, threads_of_hosts=threads_of_hosts(self.work.tasks.client))
        return self.work.tasks.submit(
            f"gamma{data.kernel.gamma:g}-clusters{number}", values_of_clusters, block.rows,
            own, packed_problem(problem), local, tuple(Cs), self.scoring, means,
        )  # fmt: skip

    def _block(self, number: int) -> Block:
        if number not in self.blocks:
            held = self.layout.held(np.flatnonzero(self.block_of == number))
            rows = self.layout.formulation.problem.rows[held.members]
            numbers = np.union1d(rows, held.rows)
            rows = self.work.data.rows.assembled(numbers, f"clusters{number}")
            self.blocks[number] = Block(numbers, rows)
        return self.blocks[number]


def values_of_clusters(
    rows: Rows,
    own: np.ndarray,
    problem: BoxProblem,
    held: Held,
    Cs: Sequence[float],
    scoring: Scoring,
    means: Means,
) -> tuple[np.ndarray, list[dict]]:
    """What `Scoring.values` has of clusters of some of the `own` rows, as float32. The problem and
    `left` are packed, and members are the variables in their order."""
    threads = means.threads
    data = KernelRows(rows.take(own), means.kernel, threads, coded=True)
    problem = unpacked_problem(problem)
    held = Held(
        members=np.arange(problem.size, dtype=np.int32),
        start=held.start,
        left=np.ascontiguousarray(unpacked(held.left).reshape(-1, len(own))),
        rows=held.rows,
        rows_start=held.rows_start,
        entries=held.entries,
        is_second=held.is_second,
    )
    with stop_of_task() as stop:
        values, reports = scoring.values(data, problem, held, Cs, stop)
    return values.astype(np.float32), reports
