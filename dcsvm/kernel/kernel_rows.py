"""Kernel evaluations on rows: the interface to the tiles of the core."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import without_empty_columns
from dcsvm.kernel.encodings import Choice, Encoding, encode
from dcsvm.kernel.kernels import SQUARED_DISTANCE, Kernel
from dcsvm.machine import default_threads, usable_threads

MEASURED_ROWS = 1000  # sampled rows for the mean squared distance
COMPARED_ROWS = 256  # sampled rows whose distances from each other are computed

# One column float64 (n,), or a matrix in CSR form: indptr, columns, values, number of columns.
Weights = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray, int]


@dataclass(frozen=True)
class Cutoff:
    """Distance at or beyond which kernel values are at most `value`.

    `argument` names the distance: |x - z|^2, or the sum of |x_k - z_k|.
    """

    distance: float = math.inf
    value: float = 0.0
    argument: str = SQUARED_DISTANCE

    @staticmethod
    def of(kernel: Kernel, value: float) -> Cutoff:
        """Return the distance at which a kernel of a distance falls to `value`, below 1."""
        fall = kernel.type.fall
        assert fall is not None
        return Cutoff(fall.argument_at(kernel.gamma, value), value, kernel.type.argument)


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


def is_flat(rows: Rows, kernel: Kernel) -> bool:
    """Return whether a kernel of a distance exceeds 1/2 at the mean distance of rows.

    If so, sums of K - 1 are more accurate than sums of K. The mean is that of a sample of the rows.
    The result is False for other kernels.
    """
    fall = kernel.type.fall
    if fall is None or rows.n_samples == 0:
        return False
    some = rows.take(np.arange(0, rows.n_samples, -(-rows.n_samples // MEASURED_ROWS)))
    (some,) = without_empty_columns(some)
    half = fall.argument_at(kernel.gamma, 0.5)
    if kernel.type.argument == SQUARED_DISTANCE:
        return some.mean_squared_distance() < half
    return float(distances(some, kernel, 1).mean()) < half


def compared_rows(n_samples: int) -> np.ndarray:
    """Return the indices of the sampled rows for `distances`."""
    return np.arange(0, n_samples, -(-n_samples // COMPARED_ROWS) or 1)


def distances(rows: Rows, kernel: Kernel, threads: int) -> np.ndarray:
    """Compute distances, the kernel's argument, between sampled rows, float64 (m, m).

    Distances beyond float32 are NaN or infinite.
    """
    some = rows.take(compared_rows(rows.n_samples))
    if kernel.type.argument != SQUARED_DISTANCE:
        return KernelRows(some, Kernel(kernel.type.argument), threads).matrix().astype(np.float64)
    products = KernelRows(some, Kernel("linear"), threads).matrix().astype(np.float64)
    norms = np.diag(products)
    return norms[:, None] + norms - 2.0 * products


def median_distance(rows: Rows, kernel: Kernel, threads: int) -> float:
    """Return the median of `distances` over the pairs of sampled rows.

    If it is 0, because most rows are equal, it is the median over the pairs of different rows.
    Returns 0 if all rows are equal, and NaN if a distance is beyond float32.
    """
    some = rows.take(compared_rows(rows.n_samples))
    found = distances(some, kernel, threads)
    pairs = np.triu_indices(len(found), 1)
    median = _median(found[pairs])
    if median > 0 or math.isnan(median) or some.n_samples < 2:
        return median
    differ = np.stack([some.unlike(some.part(slice(k, k + 1))) for k in range(some.n_samples)])
    if not differ.any():  # the sample may lack rare rows
        others = np.flatnonzero(rows.unlike(some.part(slice(0, 1))))
        if len(others) == 0:
            return 0.0
        chosen = rows.take(np.append(0, others[compared_rows(len(others))]))
        found = distances(chosen, kernel, threads)[0, 1:]
    else:
        found = found[pairs][differ[pairs]]
    return _median(found[found > 0])


def _median(values: np.ndarray) -> float:
    """Return the median, 0 without values, NaN if a value is not finite."""
    n = len(values)
    if n == 0:
        return 0.0
    if not np.isfinite(values).all():
        return math.nan
    middle = np.partition(values, [(n - 1) // 2, n // 2])  # np.median imports numpy.ma
    return 0.5 * float(middle[(n - 1) // 2] + middle[n // 2])


@dataclass(frozen=True, eq=False)
class ClusterRanges:
    """Ranges of targets and sources by cluster, int64.

    Cluster c has the targets target_start[c]:target_start[c + 1] and the sources
    source_begin[c]:source_end[c].
    """

    target_start: np.ndarray
    source_begin: np.ndarray
    source_end: np.ndarray

    @staticmethod
    def of(targets: np.ndarray, sources: np.ndarray) -> ClusterRanges:
        """Return the ranges, given the cluster of each target and source, both ascending."""
        clusters, first = np.unique(targets, return_index=True)
        begin, end = (np.searchsorted(sources, clusters, side=side) for side in ("left", "right"))
        return ClusterRanges(np.append(first, len(targets)), begin, end)


class KernelRows:
    """Rows with a kernel, encoded for the core.

    `setup` is the evaluation form of the rows that these are combined with (see two_sides).
    `coded` allows an `encoding`: `chosen`, or the best one of at most `memory_bytes`. Rows that are
    encoded can be combined only with each other or with rows encoded in the same way.
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
        if coded:
            chosen = chosen if narrow is rows else None
            self.encoding = encode(narrow, kernel, threads, memory_bytes, chosen)
        else:
            self.encoding = Encoding(points or _core.Points(narrow, threads))
        self.setup = setup or self._setup_of(kernel)
        self.points = self.encoding.points.prepared(self.setup, threads)

    def product(
        self,
        weights: Weights,
        rows: np.ndarray | None = None,
        *,
        targets: KernelRows | None = None,
        target_rows: np.ndarray | None = None,
        how: KernelEvalOptions | None = None,
    ) -> np.ndarray:
        """Return the kernel product K(targets, these rows) W, float64 (n_targets, n_columns).

        `rows` and `target_rows` int32 select rows and targets; None selects all. W (`weights`) has
        one row for each selected row. The default targets are these rows. Raises Stopped.
        """
        if self.is_in_file and targets is None and rows is not None:
            return self.part(rows).product(weights, targets=self, target_rows=target_rows, how=how)
        targets, how = targets or self, how or KernelEvalOptions()
        return _core.kernel_product(
            self.setup, targets.points, target_rows, self.points, rows, weights, how.float64,
            self.threads, how.cutoff, how.stop,
        )  # fmt: skip

    def cluster_product(
        self,
        weights: Weights,
        ranges: ClusterRanges,
        targets: KernelRows,
        target_rows: np.ndarray,
        float64: bool,
    ) -> np.ndarray:
        """Return the kernel product within each cluster, float64 (n_targets, n_columns).

        `target_rows` int32 are the targets, sorted by cluster. `weights` are as in `product`, for
        all rows. `float64` selects float64 instead of float32 kernel values.
        """
        return _core.cluster_product(
            self.setup, targets.points, target_rows, ranges.target_start,
            self.points, ranges.source_begin, ranges.source_end, weights, float64, self.threads,
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
        return 0 if self.rows.is_packed else self.encoding.n_bytes

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
        if kernel.type.fall is None or not is_flatter:
            return KernelRows(self.rows, kernel, self.threads)
        other = copy(self)
        other.kernel = kernel
        other.setup = self._setup_of(kernel, _core.Form[self.setup.form])
        return other

    def _setup_of(self, kernel: Kernel, form: _core.Form | None = None) -> _core.Setup:
        """Return the core's kernel on these points; without a form, the core chooses it."""
        flat, grid = is_flat(self.rows, kernel), self.encoding.grid
        if grid is not None:
            kernel = replace(kernel, gamma=kernel.gamma * grid.step**kernel.type.length_power)
        return _core.Setup(kernel, self.encoding.points, form, is_flat=flat)

    @property
    def is_in_file(self) -> bool:
        """Whether these are dense rows of a memory-mapped file, which may not fit in memory."""
        return self.rows.is_in_file

    def part(self, rows: np.ndarray) -> KernelRows:
        """Copy some of these dense rows, with the same encoding and the same kernel values."""
        other = copy(self)
        other.rows = self.rows.take(rows)
        points = _core.Points(other.rows, self.threads)
        found = self.encoding.of_others(points, other.rows, self.setup, self.threads)
        other.points = (points if found is None else found[0]).prepared(self.setup, self.threads)
        return other


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


# Largest work done by one thread: pairs of rows times the cost of a pair in float features. This is
# about 15 ms on one core. At half to twice this work, fits with two threads took 1.1 to 4 times
# longer than with one, and 1.2 to 4 times the CPU time.
SMALL_WORK = 5e8
# Costs of a kernel evaluation, a byte and a CSR value, in units of the cost of a float feature, by
# the cost model of csrc/kernel/kernel_setup.cc.
VALUE_WORK, BYTE_WORK, SPARSE_WORK = 11, 0.07, 5.5


def threads_to_train(wanted: int | None, rows: Rows) -> int:
    """Return the number of threads for training: the wanted number, or one for small data."""
    if wanted is not None:
        return usable_threads(wanted)
    return threads_that_pay(default_threads(), rows, rows.n_samples)


def threads_that_pay(threads: int, rows: Rows, n_others: int) -> int:
    """Return `threads`, or 1 if K between the rows and `n_others` rows is too little work."""
    work = float(rows.n_samples) * n_others * (VALUE_WORK + _features(rows))
    return threads if work > SMALL_WORK else 1


def _features(rows: Rows) -> float:
    """Return the cost of the features of a row, in units of the cost of a float feature."""
    if rows.is_bytes:
        return BYTE_WORK * rows.n_features
    return rows.row_size if rows.is_dense else SPARSE_WORK * rows.row_size


ASYMMETRY = 1e-3  # tolerance relative to the largest value, for rounding of float32 sums
INDEFINITENESS = 1e-4  # relative tolerance of K(x, z)^2 <= K(x, x) K(z, z)
BLOCK = 1024  # rows and columns of a block of the matrix


def training_matrix(rows: Rows, kernel: Kernel, threads: int) -> tuple[Rows, Kernel]:
    """Check and symmetrize the kernel matrix of training rows.

    Rows without `columns` must be all rows of a square matrix. If K(x, z) and K(z, x) differ by
    rounding, both become their mean, in a copy. The kernel is returned as indefinite if K(x, x) < 0
    or K(x, z)^2 > K(x, x) K(z, z) for any rows. It is not detected
    if only larger submatrices are indefinite.
    Raises ValueError for a matrix that is not square or not symmetric.
    """
    rows = of_square(rows, threads)
    dense, columns = rows.features, rows.columns
    assert columns is not None  # of_square() sets them
    diagonal = dense[np.arange(rows.n_samples), columns].astype(np.float64)
    indefinite = bool(np.any(diagonal < 0))
    size, is_copy = np.sqrt(np.abs(diagonal)), False
    for first in range(0, rows.n_samples, BLOCK):
        for second in range(0, first + 1, BLOCK):
            a, b = slice(first, first + BLOCK), slice(second, second + BLOCK)
            values, other = _both_blocks(dense, columns, a, b, size.max() ** 2)
            if not np.array_equal(values, other):
                values = (values + other) / 2
                if not is_copy:
                    dense, is_copy = dense.copy(), True
                dense[a, columns[b]] = values
                dense[b, columns[a]] = values.T
            limit = (1 + INDEFINITENESS) * size[a, None]
            indefinite |= bool(np.any(np.abs(values) > limit * size[b]))
    rows = replace(rows, dense=dense) if is_copy else rows
    return rows, replace(kernel, indefinite=indefinite)


def of_square(rows: Rows, threads: int) -> Rows:
    """Set the `columns` of rows of a precomputed kernel.

    Rows without `columns` must be all rows of a square matrix. Raises ValueError otherwise.
    """
    if rows.columns is not None:
        return rows
    if rows.n_samples != rows.n_features:
        shape = f"{rows.n_samples} rows and {rows.n_features} columns"
        raise ValueError(f"a precomputed kernel matrix must be square, got {shape}")
    dense = rows.in_form_of(Rows(0, rows.n_features), threads).as_floats(threads)
    return replace(dense, columns=np.arange(rows.n_features, dtype=np.int32))


def _both_blocks(
    dense: np.ndarray, columns: np.ndarray, a: slice, b: slice, largest: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the block K(a, b) and the transposed block K(b, a) of a kernel matrix.

    `largest` is the largest value on the diagonal. Raises ValueError for an asymmetric matrix.
    """
    values = dense[a].take(columns[b], axis=1)
    other = dense[b].take(columns[a], axis=1).T
    difference = np.abs(values - other)
    if difference.max() > ASYMMETRY * max(largest, np.abs(values).max()):
        i, j = np.unravel_index(difference.argmax(), difference.shape)
        raise ValueError(
            f"the kernel matrix is not symmetric: row {a.start + i + 1} has {values[i, j]:g} with "
            f"row {b.start + j + 1}, which has {other[i, j]:g} with it"
        )
    return values, other
