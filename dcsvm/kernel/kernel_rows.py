"""Encode rows so that a kernel computes the same values in fewer operations.

Exclusive 0/1 columns become codes (csrc/rows/codes.h), one byte for up to 254 columns. One-hot
columns are recognised by their values alone. For example, 33 categories and 7 numbers in 509
columns take 64 bytes a row. Integers from 0 to 255 are multiplied as bytes, or compared as bytes
for the Laplacian kernel. This is faster than with floats and does not round.

Kernels of a distance also use bytes for other evenly spaced values (grades, -1/0/1, halves): the
integers k of values x = origin + step k. The squared distance of two rows x is step^2 times that of
their integers; the sum of absolute differences is step times that of the integers.

Only this module chooses encodings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import BATCH_SIZE, distinct, group_order, slices
from dcsvm.data.rows import BATCH_VALUES, Rows
from dcsvm.data.used_columns import without_empty_columns
from dcsvm.kernel.kernels import SQUARED_DISTANCE, Kernel
from dcsvm.machine import default_threads, usable_threads

MAX_CODE = 255  # largest 8-bit integer
SUM_BYTES = 4  # of the row sum, which is stored with the integers of a row
TRIED_VALUES = 10_000  # values tried first; they rule out a grid for most data


@dataclass(frozen=True)
class UniformGrid:
    """Values origin + step k with integers k from 0 to 255, exactly."""

    origin: float
    step: float

    def holds(self, values: np.ndarray) -> bool:
        """Tell whether all values are on the grid."""
        return bool(self._has(values).all())

    def may_meet_bytes(self, rows: Rows) -> bool:
        """Return whether rows on the grid need and allow products with rows of bytes.

        With step 1 they are not needed, as the rows of bytes are on the grid themselves.
        """
        return self.step > 1 and _core.may_step(rows.n_features, self.origin, self.step)

    def codes(self, rows: Rows) -> np.ndarray:
        """Return the integers k of all values, uint8 (n, row_bytes(d)), padded with zeros."""
        result = np.zeros((rows.n_samples, row_bytes(rows.n_features)), np.uint8)
        if not rows.is_dense:
            result[:, : rows.n_features] = self._of(np.zeros(1))
            owner = np.repeat(np.arange(rows.n_samples), np.diff(rows.csr.indptr))
            result[owner, rows.csr.indices] = self._of(rows.csr.values)
            return result
        for batch in slices(rows.n_samples, BATCH_SIZE // rows.row_size):
            result[batch, : rows.n_features] = self._of(rows.part(batch).features)
        return result

    def rows_on(self, rows: Rows) -> np.ndarray:
        """Return which rows are entirely on the grid, bool (n,); codes of others are invalid."""
        if not rows.is_dense:
            owner = np.repeat(np.arange(rows.n_samples), np.diff(rows.csr.indptr))
            return np.bincount(owner, ~self._has(rows.csr.values), rows.n_samples) == 0
        result = np.empty(rows.n_samples, bool)
        for batch in slices(rows.n_samples, BATCH_SIZE // rows.row_size):
            result[batch] = self._has(rows.part(batch).features).all(axis=1)
        return result

    def _has(self, values: np.ndarray) -> np.ndarray:
        k = self._indices(values)
        return (k >= 0) & (k <= MAX_CODE) & (self.origin + self.step * k == values)

    def _of(self, values: np.ndarray) -> np.ndarray:
        return np.clip(self._indices(values), 0, MAX_CODE).astype(np.uint8)

    def _indices(self, values: np.ndarray) -> np.ndarray:
        return np.rint((values.astype(np.float64) - self.origin) / self.step)


def row_bytes(n_features: int) -> int:
    """Return the bytes of a row of 8-bit integers."""
    return -(-n_features // 4) * 4


def find_uniform_grid(rows: Rows, memory_bytes: int) -> UniformGrid | None:
    """Find the grid of all values, including the zeros that CSR rows do not store.

    Returns None if there is no grid, or if its integers would take more than `memory_bytes`. Dense
    rows of integers from 0 to 255 need no grid: the result is None, too.
    """
    if rows.is_bytes:
        return None
    n_bytes = rows.n_samples * (row_bytes(rows.n_features) + SUM_BYTES)
    n_values = rows.n_samples * rows.n_features if rows.is_dense else len(rows.csr.values)
    if n_bytes > memory_bytes or n_values == 0:
        return None
    tried = _values_at(rows, np.arange(0, n_values, -(-n_values // TRIED_VALUES)))
    always = [min(part.min() for part in _parts(rows)), *([] if rows.is_dense else [0.0])]
    grid = _grid_of(distinct(np.append(tried, always).astype(np.float64)))
    if grid is None or (rows.is_dense and grid == UniformGrid(0.0, 1.0)):
        return None
    return grid if all(grid.holds(part) for part in _parts(rows)) else None


def _parts(rows: Rows) -> Iterator[np.ndarray]:
    """Iterate over batches of all values of dense rows, or of the stored values of CSR rows."""
    if rows.is_dense:
        return (rows.part(batch).features for batch in rows.slices())
    return (rows.csr.values[batch] for batch in slices(len(rows.csr.values), BATCH_SIZE))


def _values_at(rows: Rows, places: np.ndarray) -> np.ndarray:
    """Return the values at some positions: row by row in dense rows, as stored in CSR rows."""
    if not rows.is_dense:
        return rows.csr.values[places]
    row, column = np.divmod(places, rows.n_features)
    row, at = np.unique(row, return_inverse=True)
    return rows.take(row).features[at, column]


def _grid_of(distinct: np.ndarray) -> UniformGrid | None:
    """Return the grid of ascending distinct values, starting at the first, or None."""
    if not 2 <= len(distinct) <= MAX_CODE + 1:
        return None
    grid = UniformGrid(float(distinct[0]), float(np.diff(distinct).min()))
    return grid if grid.holds(distinct) else None


# Codes are used if they divide the operations per pair of rows by this factor or more. With half of
# it a9a takes 1.2 times as long; doubling it costs no time.
CODING_THRESHOLD = 1.3

Choice: TypeAlias = UniformGrid | _core.Coding | None


@dataclass(frozen=True, eq=False)
class Encoding:
    """Rows in the form that a kernel computes with.

    Attributes
    ----------
    points : the encoded rows.
    grid : the uniform grid of their integers, or None.
    n_bytes : bytes of the encoding in addition to the rows.
    largest_squared_norm : largest |x|^2, if `encode` made the encoding.
    """

    points: _core.Points
    grid: UniformGrid | None = None
    n_bytes: int = 0
    largest_squared_norm: float = 0.0

    def of_others(
        self, points: _core.Points, rows: Rows, setup: _core.Setup, threads: int
    ) -> tuple[_core.Points, np.ndarray] | None:
        """Encode the points of other rows in the same way.

        Returns the encoded points and a mask of the rows that are encoded exactly, bool (n,).
        Returns None if this encoding leaves rows as they are.
        """
        if self.grid is None:
            return points.encoded_as(self.points, setup, threads)
        return points.with_bytes(self.grid.codes(rows)), self.grid.rows_on(rows)


def encode(
    rows: Rows, kernel: Kernel, threads: int, memory_bytes: int, chosen: Choice = None
) -> Encoding:
    """Encode rows for a kernel as `chosen`, by default with `choose_encoding`.

    The default takes at most `memory_bytes` in addition to the rows. There is no limit for packed
    rows, as they would take more memory unpacked.
    """
    if chosen is None:
        limit = _core.NO_LIMIT if rows.is_packed else memory_bytes
        chosen = choose_encoding(rows, kernel, threads, limit)
    grid = chosen if isinstance(chosen, UniformGrid) else None
    if isinstance(chosen, _core.Coding):
        points = encoded = coded_points(rows, chosen, threads)
    elif grid is not None:  # its integers hold all values: no unpacking
        points = _core.Points(replace(rows, is_packed=False), threads)
        encoded = points.with_bytes(grid.codes(rows))
    else:
        points = encoded = _core.Points(rows, threads)
        if _meet_as_bytes(rows, kernel):
            encoded = points.as_bytes(threads)
    return Encoding(encoded, grid, encoded.bytes_beside, points.largest_squared_norm)


def choose_encoding(rows: Rows, kernel: Kernel, threads: int, memory_bytes: int) -> Choice:
    """Choose the encoding that saves most for a kernel, within `memory_bytes`.

    Returns None if no encoding saves enough.
    """
    if kernel.is_precomputed or rows.n_samples == 0:
        return None
    if kernel.type.fall and _bytes_pay(rows, kernel, threads):
        grid = find_uniform_grid(rows, memory_bytes)
        if grid is not None:
            return grid
    coding = None
    if rows.is_dense:
        coding = find_coding(rows, threads, kernel.type.argument)
    is_small = coding is not None and rows.n_samples * coding.row_size <= memory_bytes
    return coding if is_small else None


def _meet_as_bytes(rows: Rows, kernel: Kernel) -> bool:
    is_open = rows.is_bytes and rows.n_samples > 0
    return is_open and _core.may_be_bytes(rows.n_features, kernel.type.argument)


def encoded_row_bytes(chosen: UniformGrid | _core.Coding, n_features: int) -> int:
    """Return the bytes of an encoded row with `n_features` features."""
    if isinstance(chosen, _core.Coding):
        return chosen.row_size
    return row_bytes(n_features) + SUM_BYTES


def _bytes_pay(rows: Rows, kernel: Kernel, threads: int) -> bool:
    """Return whether bytes are possible on this machine and cheaper than sparse rows."""
    argument = kernel.type.argument
    if not _core.may_be_bytes(rows.n_features, argument):
        return False
    return rows.is_dense or _core.Points(rows, threads).bytes_beat_sparse(argument)


def find_coding(rows: Rows, threads: int, argument: str = SQUARED_DISTANCE) -> _core.Coding | None:
    """Find codes for dense rows; return None if they save too few operations.

    The search ends at the first batch that shows this, as further rows only raise the cost. For
    rows of bytes the alternative is to combine bytes; its cost depends on the kernel's `argument`.
    """
    search, coding = _core.CodingSearch(rows.n_features), None
    for batch in rows.slices(BATCH_VALUES):
        search.see(_core.Points(rows.part(batch), threads), threads)
        coding = search.found(CODING_THRESHOLD, rows.is_bytes, argument)
        if coding is None:
            return None
    return coding


def coded_points(rows: Rows, coding: _core.Coding, threads: int) -> _core.Points:
    """Encode dense rows by their codes."""
    coded = np.empty((rows.n_samples, coding.row_size), np.uint8)
    for batch in rows.slices(BATCH_VALUES):
        part = _core.Points(rows.part(batch), threads)
        coding.encode(part, coded[batch], threads)
    return _core.Points.of_codes(coding, coded, rows.n_features, threads)


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


# Limits of _small_component_sums: the fewest components, the most kernel values, and the most terms
# of all sums (40 bytes each).
MIN_COMPONENTS, MAX_VALUES, MAX_TERMS = 64, 2**20, 2**21


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

    def take(self, variables: np.ndarray) -> TermIndex:
        return TermIndex(
            self.row[variables], self.component[variables], self.fold_family[variables]
        )


@dataclass(frozen=True, eq=False)
class WeightedSources:
    """Sources of weighted sums: row of K (may repeat), column of the sums, and alpha of each."""

    row: np.ndarray
    column: np.ndarray
    alpha: np.ndarray
    n_columns: int


def component_sums(
    data: KernelRows,
    targets: TermIndex,
    sources: TermIndex,
    alpha: np.ndarray,
    how: KernelEvalOptions,
) -> tuple[np.ndarray, int]:
    """Compute the sum of alpha K over the sources in the component of each target.

    Returns the sums, float64 (n_targets,), and the number of kernel evaluations. Raises Stopped.
    """
    small = _small_component_sums(data, targets, sources, alpha, how)
    if small is not None:
        return small
    sums, n_values = np.zeros(len(targets.row)), 0
    by_target, by_source = _Groups(targets.fold_family), _Groups(sources.fold_family)
    for family in by_target.keys:
        t, s = by_target.of(family), by_source.of(family)
        for own, other in _batches(targets.take(t), sources.take(s)):
            rows, position = _distinct(targets.row[t[own]])
            units, column = np.unique(sources.component[s[other]], return_inverse=True)
            batch = WeightedSources(sources.row[s[other]], column, alpha[s[other]], len(units))
            product, n = weighted_sums(data, rows, batch, how)
            sums[t[own]] = product[position, np.searchsorted(units, targets.component[t[own]])]
            n_values += n
    return sums, n_values


def _small_component_sums(
    data: KernelRows,
    targets: TermIndex,
    sources: TermIndex,
    alpha: np.ndarray,
    how: KernelEvalOptions,
) -> tuple[np.ndarray, int] | None:
    """Compute the sums of many components from one small kernel matrix.

    Returns None for few components or a large matrix. Raises Stopped.
    """
    if len(targets.row) == 0 or len(sources.row) == 0:
        return None
    counts = np.bincount(sources.component, minlength=int(targets.component.max()) + 1)
    n_sources = counts[targets.component]
    if np.count_nonzero(counts) < MIN_COMPONENTS or n_sources.sum() > MAX_TERMS:
        return None
    rows, row = np.unique(targets.row, return_inverse=True)
    others, other = np.unique(sources.row, return_inverse=True)
    n = len(others)
    if len(rows) * n > MAX_VALUES:
        return None
    identity = np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), np.ones(n), n
    values = data.product(
        identity, others.astype(np.int32), target_rows=rows.astype(np.int32), how=how
    ).reshape(-1)
    order = group_order(sources.component)
    first = (np.cumsum(counts) - counts)[targets.component]
    of_target = np.repeat(np.arange(len(row)), n_sources)
    begin = np.repeat(np.cumsum(n_sources) - n_sources - first, n_sources)
    own = order[np.arange(len(of_target)) - begin]
    terms = alpha[own] * values[row[of_target] * n + other[own]]
    return np.bincount(of_target, terms, len(row)), len(rows) * n


def weighted_sums(
    data: KernelRows, target_rows: np.ndarray, sources: WeightedSources, how: KernelEvalOptions
) -> tuple[np.ndarray, int]:
    """Compute sums of alpha K, float64 (n_targets, n_columns).

    Returns also the number of kernel evaluations. Raises Stopped.
    """
    n_columns = sources.n_columns
    if len(sources.row) == 0:
        return np.zeros((len(target_rows), n_columns)), 0
    rows, position = _distinct(sources.row)
    weights: Weights
    if n_columns == 1:
        weights = np.bincount(position, sources.alpha, minlength=len(rows))
    else:
        order = group_order(position)
        indptr = np.concatenate(([0], np.cumsum(np.bincount(position, minlength=len(rows)))))
        columns = sources.column[order].astype(np.int32)
        weights = indptr, columns, sources.alpha[order], n_columns
    product = data.product(
        weights, rows.astype(np.int32), target_rows=target_rows.astype(np.int32), how=how
    )
    return product, len(target_rows) * len(rows)


def _batches(targets: TermIndex, sources: TermIndex) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (targets, sources) index arrays, each to be evaluated in one kernel product.

    All components form one batch if they share enough rows; otherwise each is a batch. Targets of
    components without sources are omitted.
    """
    by_target, by_source = _Groups(targets.component), _Groups(sources.component)
    units = np.intersect1d(by_target.keys, by_source.keys, assume_unique=True)
    apart = [(by_target.of(unit), by_source.of(unit)) for unit in units]
    if len(units) < 2:
        return apart
    own, other = (np.sort(np.concatenate(side)) for side in zip(*apart, strict=True))
    n_together = len(distinct(targets.row[own])) * len(distinct(sources.row[other]))
    n_apart = sum(len(t) * len(s) for t, s in apart)
    return [(own, other)] if n_together < n_apart else apart


class _Groups:
    """Indices grouped by equal keys."""

    def __init__(self, keys: np.ndarray):
        self.order = np.argsort(keys, kind="stable")
        self.sorted = keys[self.order]
        self.keys = self.sorted[np.flatnonzero(np.diff(self.sorted, prepend=-1))]

    def of(self, key: int) -> np.ndarray:
        return self.order[slice(*np.searchsorted(self.sorted, [key, key + 1]))]


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows, ascending, and the position of each of `rows` among them."""
    if np.all(np.diff(rows) > 0):
        return rows, np.arange(len(rows))
    return np.unique(rows, return_inverse=True)
