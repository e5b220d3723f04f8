"""Functions that tasks run on workers, for rows in chunks: see remote_engine.py.

A task has copies of the rows that it needs, in the memory of its worker. `Tasks.run` adds the
`threads` and the `stop` of the task; functions that need no `stop` have a parameter `_`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import BATCH_SIZE, distinct, slices
from dcsvm.data.chunks import Section
from dcsvm.data.rows import Rows, Storage, stacked
from dcsvm.data.used_columns import UsedColumns, narrowed
from dcsvm.kernel.cluster_tree import inverse, split_nodes
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernel_rows import (
    KernelEvalOptions,
    KernelRows,
    TermIndex,
    Weights,
    component_sums,
)
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import MIN_ROWS, Boxes, boxes_of_rows, is_worth_skipping
from dcsvm.kernel.sources import Assignment, NodeSplit, Partition
from dcsvm.training.certificate import Iterate, SolverSettings, Subproblems
from dcsvm.training.memory import plan_memory
from dcsvm.training.state import SolveControl, digest_of

Pieces = tuple[Sequence[Rows], np.ndarray | None]  # rows and their order, see `put_together`

BOUNDED_BYTES = 100_000_000  # limit on an encoded copy of the rows of a task, for kernel sums


@dataclass(frozen=True, eq=False)
class SectionStats:
    """Statistics of a section, for the client.

    `n_values` counts nonzero values. The `n_stored` values, all of a dense section, have the `mean`
    and the sum `squares` of squared deviations from it. `nbytes` is the size of the rows. `digest`
    identifies the rows in checkpoints.
    """

    n_rows: int
    n_features: int
    n_values: int
    are_bytes: bool
    nbytes: int
    n_stored: int
    mean: float
    squares: float
    digest: str | None = None


def stats_of(chunk: Sequence[Section], *, with_digest: bool) -> list[SectionStats]:
    """Compute the statistics of each section of a chunk."""
    stats = []
    for rows, _ in chunk:
        values = rows.values if rows.dense is None else rows.dense.reshape(-1)
        assert values is not None  # rows are dense or CSR
        stats.append(
            SectionStats(
                rows.n_samples,
                rows.n_features,
                rows.count_values(),
                rows.are_bytes(),
                rows.nbytes,
                values.size,
                *mean_and_squares(values),
                digest_of(rows) if with_digest else None,
            )
        )
    return stats


def mean_and_squares(values: np.ndarray) -> tuple[float, float]:
    """Return the mean of values and the sum of squared deviations, exact for equal values."""
    if values.size == 0:
        return 0.0, 0.0
    first, total, squares = values[0], 0.0, 0.0
    for batch in slices(values.size, BATCH_SIZE):
        total += float(np.subtract(values[batch], first, dtype=np.float64).sum())
    mean = float(first) + total / values.size
    for batch in slices(values.size, BATCH_SIZE):
        squares += float(np.square(np.subtract(values[batch], mean, dtype=np.float64)).sum())
    return mean, squares


def variance_of(stats: Sequence[SectionStats], size: int) -> float:
    """Return the variance of all `size` values of sections, as `numpy.var`.

    Sums are merged as by Chan, Golub and LeVeque (1983); values that are not stored are zeros.
    """
    groups = [(one.n_stored, one.mean, one.squares) for one in stats if one.n_stored]
    n_zeros = size - sum(n for n, _, _ in groups)
    groups += [(n_zeros, 0.0, 0.0)] if n_zeros else []
    if not groups:
        return 0.0
    shift = groups[0][1]
    mean = shift + sum(n * (own - shift) for n, own, _ in groups) / size
    return sum(squares + n * (own - mean) ** 2 for n, own, squares in groups) / size


def columns_of(chunk: Sequence[Section]) -> np.ndarray:
    """Return the columns with values in a chunk, int32 ascending."""
    stored = [rows.in_storage(Storage.SPARSE) for rows, _ in chunk]
    return distinct(np.concatenate([rows.csr.indices for rows in stored]))


def stored(chunk: Sequence[Section], columns: UsedColumns, storage: Storage) -> Rows:
    """Join the rows of a chunk in a storage, with only the used columns."""
    sections = [
        rows.with_features(columns.n_features).in_storage(storage)
        for rows, _ in chunk
        if rows.n_samples
    ]
    if columns.used is not None:
        sections = [narrowed(rows, columns.used) for rows in sections]
    return put_together((sections, None))


def taken(rows: Rows, indices: np.ndarray | None) -> Rows:
    """Select rows; None selects all."""
    return rows if indices is None else rows.take(indices)


def put_together(pieces: Pieces) -> Rows:
    """Concatenate pieces and reorder the rows; row i of the result is row order[i]."""
    parts, order = pieces
    return taken(parts[0] if len(parts) == 1 else stacked(*parts), order)


def share(*values: object) -> tuple[object, ...]:
    """Return the arguments: a task that holds values, so that the client sends them only once."""
    return values


def boxes_of_sections(
    chunk: Rows, selected: np.ndarray | None, sections: np.ndarray, between: Cutoff, *,
    threads: int, **_: object
) -> list[Boxes]:  # fmt: skip
    """Find the components of selected rows of a chunk, section by section.

    `selected` is ascending, or None for all rows. `sections` has the ends of the sections.
    """
    rows = taken(chunk, selected)
    ends = sections if selected is None else np.searchsorted(selected, sections)
    return [
        boxes_of_rows(rows.part(slice(begin, end)), between, threads)
        for begin, end in pairwise([0, *ends.tolist()])
        if begin < end
    ]


def _encoded(
    rows: Rows, kernel: Kernel, threads: int, memory_bytes: int = BOUNDED_BYTES
) -> KernelRows:
    return KernelRows(rows, kernel, threads, coded=True, memory_bytes=memory_bytes)


def _in_spatial_order(
    rows: Rows, cutoff: Cutoff | None, threads: int
) -> tuple[Rows, Cutoff, np.ndarray]:
    """Sort the rows of a task in spatial order, if enough kernel values are beyond the cutoff.

    Otherwise they keep their order, and no kernel value is skipped. Returns the rows, the cutoff to
    apply, and the new position int32 of each row.
    """
    same = rows, Cutoff(), np.arange(rows.n_samples, dtype=np.int32)
    if cutoff in (None, Cutoff()) or not rows.is_dense or rows.n_samples < MIN_ROWS:
        return same
    assert cutoff is not None
    points = _core.Points(rows, threads)
    order = _core.neighbour_order(points, threads)
    whole = np.array([0, rows.n_samples])
    if not is_worth_skipping(points, order, whole, cutoff, threads):
        return same
    return rows.take(order), cutoff, inverse(order)


def solve(
    kernel: Kernel, megabytes: int, pieces: Pieces, parts: Subproblems, iterate: Iterate,
    settings: SolverSettings, *, threads: int, stop: _core.Stop,
) -> tuple[Iterate, np.ndarray]:  # fmt: skip
    """Solve subproblems; return the new iterate and a report for each.

    Their members are implicit: all variables, in order.
    """
    problem, rows = parts.problem, put_together(pieces)
    rows, cutoff, position = _in_spatial_order(rows, settings.cutoff, threads)
    # the budget is that of this task: an encoded copy of the rows, then caches
    memory = plan_memory(rows, problem.size, problem.size, threads=threads, megabytes=megabytes)
    data = _encoded(rows, kernel, threads, memory.spare(problem.size))
    kernel.check_values(data.largest_squared_norm)
    nbytes = max(memory.solver(problem.size) - data.copy_bytes, 0)
    settings = replace(settings, cutoff=cutoff, threads=threads, memory_bytes=nbytes)
    # the members become explicit, and rows are numbered in their order here
    members = np.arange(problem.size, dtype=np.int32)
    problem = replace(problem, row=position[problem.rows])
    iterate = iterate.take(members)  # a copy: a repeated task starts from the same values
    parts = Subproblems(problem, parts.start, members)
    control = SolveControl(_core.SolveState(parts.sizes), stop)
    return iterate, _core.solve_clusters(data.setup, data.points, parts, iterate, settings, control)


def spans(
    kernel: Kernel, pieces: Pieces, parts: Subproblems, alpha: np.ndarray, wanted: np.ndarray,
    n_exact: int, *, threads: int, **_: object
) -> np.ndarray:  # fmt: skip
    """Compute squared spans of support vectors, see `_core.squared_spans`."""
    data = _encoded(put_together(pieces), kernel, threads)
    return _core.squared_spans(
        data.setup, data.points, parts.problem, parts.start, parts.members, alpha, wanted, n_exact,
        threads,
    )  # fmt: skip


def sums(
    kernel: Kernel, chunk: Rows, selected: np.ndarray | None, sources: Rows,
    shared: tuple[KernelEvalOptions, TermIndex, np.ndarray], target_terms: TermIndex, *,
    threads: int, stop: _core.Stop,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Compute kernel sums of the selected rows of a chunk, as `component_sums`.

    Targets and sources are both numbered from 0. `shared` has the options, the terms of the sources
    and their alpha.
    """
    targets, (evaluation, source_terms, alpha) = taken(chunk, selected), shared
    rows, cutoff, position = _in_spatial_order(
        put_together(([targets, sources], None)), evaluation.cutoff, threads
    )
    target_terms = replace(target_terms, row=position[target_terms.row])
    source_terms = replace(source_terms, row=position[source_terms.row + targets.n_samples])
    evaluation, data = (
        replace(evaluation, cutoff=cutoff, stop=stop),
        _encoded(rows, kernel, threads),
    )
    return component_sums(data, target_terms, source_terms, alpha, evaluation)


def product(
    kernel: Kernel, chunk: Rows, selected: np.ndarray | None, sources: Rows,
    shared: tuple[KernelEvalOptions, Weights], *, threads: int, stop: _core.Stop,
) -> np.ndarray:  # fmt: skip
    """Compute K(selected rows, sources) W, see `KernelRows.product`; `shared` is (options, W)."""
    targets, (evaluation, weights) = taken(chunk, selected), shared
    rows = put_together(([targets, sources], None))
    first, others = np.split(np.arange(rows.n_samples, dtype=np.int32), [targets.n_samples])
    data = _encoded(rows, kernel, threads)
    return data.product(
        weights, others, target_rows=first, evaluation=replace(evaluation, stop=stop)
    )


Split = tuple[Rows, np.ndarray, NodeSplit]


def divide(
    kernel: Kernel, pieces: Pieces, of_node: np.ndarray, n_parts: np.ndarray, seed: int,
    svm_kernel: Kernel | None, group: np.ndarray | None, *, threads: int, **_: object
) -> Split:  # fmt: skip
    """Split nodes of the cluster tree by sampled rows, as `cluster_tree.split_nodes`.

    Returns the sampled rows that the split keeps, their positions in the sample, and the split.
    """
    rows = put_together(pieces)
    data = _encoded(rows, kernel, threads, _core.NO_LIMIT)
    numbers = np.arange(rows.n_samples, dtype=np.int32)
    kept, split = split_nodes(data, numbers, of_node, n_parts, seed, svm_kernel, group)
    return rows.take(kept), kept, split


def without_rows(split: Split) -> tuple[np.ndarray, NodeSplit]:
    """Drop the rows of a split, which the client does not need."""
    return split[1:]


def route(
    kernel: Kernel, chunk: Rows, selected: np.ndarray | None, placed: Assignment | None,
    split: Split, second: bool, *, threads: int, stop: _core.Stop,
) -> Assignment:  # fmt: skip
    """Assign rows to the clusters of the next level.

    `placed` is the assignment to the level above, None for the root. With `second`, the second
    nearest clusters are assigned too.
    """
    sample, _, node_split = split
    partition = Partition(kernel, sample, (node_split,))
    return partition.place(taken(chunk, selected), threads, stop, second=second, begin=placed)
