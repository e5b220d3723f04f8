"""Kernel evaluations on rows, the interface to the tiles of the core, and sums of their values.

Problems over the same rows, such as folds, share most of their support vectors. Each kernel value
is therefore computed once for all problems, each of which has its own column of weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import distinct, group_order, numbered
from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import without_empty_columns
from dcsvm.kernel.distances import Cutoff, is_flat
from dcsvm.kernel.encodings import Choice, encode
from dcsvm.kernel.kernels import Kernel

# One column float64 (n,), or a matrix in CSR form: indptr, columns, values, number of columns.
Weights = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray, int]


@dataclass(frozen=True)
class KernelEvalOptions:
    """Options of kernel evaluations in a sum.

    `float64` selects float64 instead of float32. Kernel values beyond the `cutoff` may be
    omitted; the truncation error of a sum is at most cutoff.value times its sum of |weights|. If
    `stop` is requested, the evaluation raises Stopped.
    """

    float64: bool = False
    cutoff: Cutoff | None = None
    stop: _core.Stop | None = None


class KernelRows:
    """Rows with a kernel, encoded for the core.

    `setup` is the evaluation form of the rows that these are combined with (see two_sides).
    `coded` allows an encoding: `chosen`, or the best one of at most `memory_bytes`. Rows that are
    encoded can be combined only with each other or with rows encoded in the same way.

    Attributes
    ----------
    points : the encoded rows.
    grid : the uniform grid of their integers, or None.
    largest_squared_norm : largest |x|^2 of the rows, 0 unless `coded`.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        threads: int,
        *,
        coded: bool = False,
        memory_bytes: int = _core.NO_LIMIT,
        chosen: Choice = None,
        points: _core.Points | None = None,
        setup: _core.Setup | None = None,
    ):
        self.rows, self.kernel, self.threads = rows, kernel, threads
        narrow = rows if points else without_empty_columns(rows)[0]
        self.grid, self.largest_squared_norm = None, 0.0
        if coded:
            chosen = chosen if narrow is rows else None
            points, self.grid, self.largest_squared_norm = encode(
                narrow, kernel, threads, memory_bytes, chosen
            )
        self.points = points or _core.Points(narrow, threads)
        self.setup = setup or self._setup_of(kernel)
        self.points = self.points.prepared(self.setup, threads)

    def product(
        self,
        weights: Weights,
        rows: np.ndarray | None = None,
        *,
        targets: KernelRows | None = None,
        target_rows: np.ndarray | None = None,
        evaluation: KernelEvalOptions | None = None,
    ) -> np.ndarray:
        """Return the kernel product K(targets, these rows) W, float64 (n_targets, n_columns).

        `rows` and `target_rows` int32 select rows and targets; None selects all. W (`weights`) has
        one row for each selected row. The default targets are these rows. Raises Stopped.
        """
        if self.is_in_file and targets is None and rows is not None:
            return self.part(rows).product(
                weights, targets=self, target_rows=target_rows, evaluation=evaluation
            )
        targets, evaluation = targets or self, evaluation or KernelEvalOptions()
        return _core.kernel_product(
            self.setup, targets.points, target_rows, self.points, rows, weights, evaluation.float64,
            self.threads, evaluation.cutoff, evaluation.stop,
        )  # fmt: skip

    def cluster_product(
        self,
        weights: Weights,
        cluster: np.ndarray,
        targets: KernelRows,
        target_rows: np.ndarray,
        target_cluster: np.ndarray,
        *,
        rows: np.ndarray | None = None,
        evaluation: KernelEvalOptions,
    ) -> np.ndarray:
        """Return the kernel product within each cluster, float64 (n_targets, n_columns).

        `rows` (None: all) and `target_rows` int32 are the sources and the targets. `cluster` and
        `target_cluster`, both ascending, are their clusters. `weights` are as in `product`. Raises
        Stopped.
        """
        if rows is None:
            rows = np.arange(self.rows.n_samples, dtype=np.int32)
        n_clusters = int(target_cluster.max(initial=-1)) + 1
        start, source_start = (
            np.searchsorted(own, np.arange(n_clusters + 1, dtype=own.dtype))
            for own in (target_cluster, cluster)
        )
        return _core.cluster_product(
            self.setup, targets.points, target_rows, start, self.points, rows, source_start[:-1],
            source_start[1:], weights, evaluation.float64, self.threads, evaluation.cutoff,
            evaluation.stop,
        )  # fmt: skip

    def matrix(
        self, *, targets: KernelRows | None = None, target_rows: np.ndarray | None = None
    ) -> np.ndarray:
        """Return K(targets, these rows), float32 (n_targets, n_rows); targets as in `product`."""
        targets = targets or self
        return _core.kernel_matrix(
            self.setup, targets.points, target_rows, self.points, None, self.threads
        )

    @property
    def copy_bytes(self) -> int:
        """Bytes of the encoding in the memory budget; those of packed rows count as rows."""
        return 0 if self.rows.is_packed else self.points.bytes_beside

    def with_threads(self, threads: int) -> KernelRows:
        """Return these rows with another number of threads."""
        other = copy(self)
        other.threads = threads
        return other

    def with_kernel(self, kernel: Kernel) -> KernelRows:
        """Return these rows with another kernel.

        The encoded points are shared if only gamma changes and does not grow, for a kernel of a
        distance.
        """
        if kernel == self.kernel:
            return self
        is_flatter = kernel.name == self.kernel.name and kernel.gamma <= self.kernel.gamma
        if not kernel.type.is_of_distance or not is_flatter:
            return KernelRows(self.rows, kernel, self.threads)
        other = copy(self)
        other.kernel = kernel
        other.setup = self._setup_of(kernel, _core.Form[self.setup.form])
        return other

    def _setup_of(self, kernel: Kernel, form: _core.Form | None = None) -> _core.Setup:
        """Return the core's kernel on these points; without a form, the core chooses it."""
        flat = is_flat(self.rows, kernel)
        if self.grid is not None:
            step = self.grid.step**kernel.type.length_power
            kernel = replace(kernel, gamma=kernel.gamma * step)
        return _core.Setup(kernel, self.points, form, is_flat=flat)

    @property
    def is_in_file(self) -> bool:
        """Whether these are dense rows of a memory-mapped file, which may not fit in memory."""
        return self.rows.is_in_file

    def part(self, rows: np.ndarray) -> KernelRows:
        """Copy some of these dense rows, with the same encoding and the same kernel values."""
        other = copy(self)
        other.rows = self.rows.take(rows)
        points = _core.Points(other.rows, self.threads)
        encoded = self.encode_others(points, other.rows, self.threads)
        other.points = points if encoded is None else encoded[0]
        other.points = other.points.prepared(self.setup, self.threads)
        return other

    def encode_others(
        self, points: _core.Points, rows: Rows, threads: int
    ) -> tuple[_core.Points, np.ndarray] | None:
        """Encode other rows, given as points too, as these are encoded.

        Returns the encoded points and a mask of the rows that are encoded exactly, bool (n,).
        Returns None if these rows are not encoded.
        """
        if self.grid is None:
            return points.encoded_as(self.points, self.setup, threads)
        return points.with_bytes(self.grid.codes(rows)), self.grid.rows_on(rows)


def two_sides(
    targets: Rows, sources: Rows, kernel: Kernel, threads: int
) -> tuple[KernelRows, KernelRows]:
    """Encode targets and sources for kernel products, in the evaluation form of the sources.

    Test rows are evaluated in the arithmetic chosen for the support vectors.
    """
    if kernel.is_precomputed:
        targets, sources = targets.as_floats(), sources.as_floats()
    sides = [_core.Points(rows, threads) for rows in without_empty_columns(targets, sources)]
    has_tiles = _core.may_be_bytes(sides[1].n_features, kernel.type.argument)
    if has_tiles and all(points.are_bytes(threads) for points in sides):
        sides = [points.as_bytes(threads) for points in sides]
    second = KernelRows(sources, kernel, threads, points=sides[1])
    return KernelRows(targets, kernel, threads, points=sides[0], setup=second.setup), second


# Limits of _small_component_sums: the fewest components, and the most kernel values.
MIN_COMPONENTS, MAX_VALUES = 64, 2**20


@dataclass(frozen=True, eq=False)
class TermIndex:
    """Indices of variables in kernel sums.

    `row` int32 is the row of K of each variable. `component` is its component: kernel values of
    variables in different components count as 0. `fold_family` is its fold family: the components
    over nearly the same rows.
    """

    row: np.ndarray
    component: np.ndarray
    fold_family: np.ndarray

    def __sizeof__(self) -> int:
        """Return the size for Dask, as `Rows`."""
        return sum(array.nbytes for array in vars(self).values())

    @property
    def has_folds(self) -> bool:
        """Whether several components may be in one fold family."""
        is_same = self.component is self.fold_family
        return not (is_same or np.array_equal(self.component, self.fold_family))

    def take(self, variables: np.ndarray) -> TermIndex:
        return TermIndex(
            self.row[variables], self.component[variables], self.fold_family[variables]
        )


def component_sums(
    data: KernelRows,
    targets: TermIndex,
    sources: TermIndex,
    alpha: np.ndarray,
    evaluation: KernelEvalOptions,
) -> tuple[np.ndarray, int]:
    """Compute the sum of alpha K over the sources in the component of each target.

    Returns the sums, float64 (n_targets,), and the number of kernel evaluations. Raises Stopped.
    """
    small = _small_component_sums(data, targets, sources, alpha, evaluation)
    if small is not None:
        return small
    if not (data.is_in_file or targets.has_folds or sources.has_folds):
        return _sums_apart(data, targets, sources, alpha, evaluation)
    sums, n_values = np.zeros(len(targets.row)), 0
    # one kernel product per fold family, or several where components share few rows;
    # the sums of a target are in the column of its component
    for t, s in _groups_of_both(targets.fold_family, sources.fold_family):
        for own, other in _batches(targets.take(t), sources.take(s)):
            rows, position = _distinct(targets.row[t[own]])
            components, column = np.unique(sources.component[s[other]], return_inverse=True)
            product, n = weighted_sums(
                data,
                rows,
                sources.row[s[other]],
                column,
                alpha[s[other]],
                len(components),
                evaluation,
            )
            own_column = np.searchsorted(components, targets.component[t[own]])
            sums[t[own]] = product[position, own_column]
            n_values += n
    return sums, n_values


def _sums_apart(
    data: KernelRows,
    targets: TermIndex,
    sources: TermIndex,
    alpha: np.ndarray,
    evaluation: KernelEvalOptions,
) -> tuple[np.ndarray, int]:
    """Compute the sums of each component by its own kernel product. Raises Stopped."""
    rows, component, position = _by_component(targets)
    others, component_of_other, place = _by_component(sources)
    counts, other_counts = np.bincount(component), np.bincount(component_of_other)
    n = min(len(counts), len(other_counts))
    n_values = int((counts[:n] * other_counts[:n]).sum())
    if n_values == 0:
        return np.zeros(len(targets.row)), 0
    weights = alpha if place is None else np.bincount(place, alpha, minlength=len(others))
    product = data.cluster_product(
        weights, component_of_other, data, rows, component, rows=others, evaluation=evaluation
    )[:, 0]
    return product if position is None else product[position], n_values


def _by_component(terms: TermIndex) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the distinct rows of each component, component by component, and their components.

    Also returns the position of each term among them, None for terms that are distinct and sorted.
    """
    row, component = terms.row.astype(np.int32, copy=False), terms.component
    key = component.astype(np.int64) * (int(row.max(initial=0)) + 1) + row
    if np.all(key[1:] > key[:-1]):
        return row, component, None
    _, first, position = np.unique(key, return_index=True, return_inverse=True)
    return row[first], component[first], position


def _small_component_sums(
    data: KernelRows,
    targets: TermIndex,
    sources: TermIndex,
    alpha: np.ndarray,
    evaluation: KernelEvalOptions,
) -> tuple[np.ndarray, int] | None:
    """Compute the sums of many components from one small kernel matrix.

    Returns None for few components or a large matrix. Raises Stopped.
    """
    if len(targets.row) == 0 or len(sources.row) == 0:
        return None
    counts = np.bincount(sources.component, minlength=int(targets.component.max()) + 1)
    if np.count_nonzero(counts) < MIN_COMPONENTS:
        return None
    # variables may share rows: one matrix of the distinct rows has all values
    rows, row = numbered(targets.row)
    others, other = numbered(sources.row)
    n = len(others)
    if len(rows) * n > MAX_VALUES:
        return None
    identity = np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), np.ones(n), n
    values = data.product(
        identity, others.astype(np.int32), target_rows=rows.astype(np.int32), evaluation=evaluation
    )
    # the sources of each component, in order, are the terms of its targets
    order, indptr = group_order(sources.component), np.concatenate(([0], np.cumsum(counts)))
    weights = indptr, other[order].astype(np.int32), alpha[order], n
    component = targets.component.astype(np.int32)
    return _core.sparse_sums(values, weights, row.astype(np.int32), component, data.threads), (
        len(rows) * n
    )


def weighted_sums(
    data: KernelRows,
    target_rows: np.ndarray,
    source_rows: np.ndarray,
    column: np.ndarray,
    alpha: np.ndarray,
    n_columns: int,
    evaluation: KernelEvalOptions,
) -> tuple[np.ndarray, int]:
    """Compute sums of alpha K, float64 (n_targets, n_columns).

    A source has its row, which may repeat, the column of the sums, and alpha. Returns also the
    number of kernel evaluations. Raises Stopped.
    """
    if len(source_rows) == 0:
        return np.zeros((len(target_rows), n_columns)), 0
    # sources of the same row share its kernel values: a matrix of weights, row by row
    rows, position = _distinct(source_rows)
    weights: Weights
    if n_columns == 1:
        weights = np.bincount(position, alpha, minlength=len(rows))
    else:
        order = group_order(position)
        indptr = np.concatenate(([0], np.cumsum(np.bincount(position, minlength=len(rows)))))
        weights = indptr, column[order].astype(np.int32), alpha[order], n_columns
    product = data.product(
        weights,
        rows.astype(np.int32),
        target_rows=target_rows.astype(np.int32),
        evaluation=evaluation,
    )
    return product, len(target_rows) * len(rows)


def _batches(targets: TermIndex, sources: TermIndex) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (targets, sources) index arrays, each to be evaluated in one kernel product.

    All components form one batch if they share enough rows; otherwise each is a batch. Targets of
    components without sources are omitted.
    """
    apart = list(_groups_of_both(targets.component, sources.component))
    if len(apart) < 2:
        return apart
    own, other = (np.sort(np.concatenate(side)) for side in zip(*apart, strict=True))
    n_together = len(distinct(targets.row[own])) * len(distinct(sources.row[other]))
    n_apart = sum(len(t) * len(s) for t, s in apart)
    return [(own, other)] if n_together < n_apart else apart


def _groups_of_both(
    targets: np.ndarray, sources: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (indices of targets, indices of sources) for each key from 0 that both have."""
    target_order, source_order = (np.argsort(keys, kind="stable") for keys in (targets, sources))
    targets, sources = targets[target_order], sources[source_order]
    own, other = (keys[np.diff(keys, prepend=-1) > 0] for keys in (targets, sources))
    for key in np.intersect1d(own, other, assume_unique=True):
        first, last = np.searchsorted(targets, [key, key + 1])
        source_first, source_last = np.searchsorted(sources, [key, key + 1])
        yield target_order[first:last], source_order[source_first:source_last]


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows, ascending, and the position of each of `rows` among them."""
    if np.all(np.diff(rows) > 0):
        return rows, np.arange(len(rows))
    return numbered(rows)
