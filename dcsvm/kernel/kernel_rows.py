"""Rows with a kernel on them; the only callers of the core's tiles."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows, without_empty_columns
from dcsvm.kernel.encodings import Encoding, encode
from dcsvm.kernel.kernels import NAMES, Kernel
from dcsvm.machine import default_threads, usable_threads

MEASURED_ROWS = 1000  # whose distances stand for those of all


@dataclass(frozen=True)
class Reach:
    """Kernel values of rows with |x - z|^2 >= squared_distance are at most `value`."""

    squared_distance: float = math.inf
    value: float = 0.0

    @staticmethod
    def of(kernel: Kernel, value: float) -> Reach:
        """Where an RBF kernel falls to a value below 1."""
        return Reach(-math.log(value) / kernel.gamma if kernel.gamma > 0 else math.inf, value)


@dataclass(frozen=True)
class Evaluation:
    """How kernel values of a sum are computed: in float64 or float32; those out of `reach` may be
    left out, which changes no sum by more than reach.value times its sum of |weights|; a `stop`
    ends it with Stopped."""

    float64: bool = False
    reach: Reach | None = None
    stop: _core.Stop | None = None


def is_flat(rows: Rows, kernel: Kernel) -> bool:
    """Whether an RBF kernel is above 1/2 at the mean squared distance of (some of) the rows: sums
    of kernel values less 1 are more accurate then."""
    if kernel.name != "rbf" or rows.n_samples == 0:
        return False
    some = rows.take(np.arange(0, rows.n_samples, -(-rows.n_samples // MEASURED_ROWS)))
    (some,) = without_empty_columns(some)
    return kernel.gamma * some.mean_squared_distance() < math.log(2)


@dataclass(frozen=True, eq=False)
class ClusterRanges:
    """Targets `target_start[c]` to before `target_start[c + 1]` meet the sources `source_begin[c]`
    to before `source_end[c]`; all int64."""

    target_start: np.ndarray
    source_begin: np.ndarray
    source_end: np.ndarray

    @staticmethod
    def of(targets: np.ndarray, sources: np.ndarray) -> ClusterRanges:
        """Of targets and sources in these clusters, both ascending."""
        found, first = np.unique(targets, return_index=True)
        begin, end = (np.searchsorted(sources, found, side=side) for side in ("left", "right"))
        return ClusterRanges(np.append(first, len(targets)), begin, end)


class KernelRows:
    """Rows with a kernel on them: what `_core` computes with.

    `setup` is the form of another side these rows meet, see two_sides(). `coded` is for rows that
    meet only themselves, or others that are encoded as them: they may have an `encoding`, which
    takes at most `memory_bytes`.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        threads: int,
        *,
        coded: bool = False,
        memory_bytes: int = _core.NO_LIMIT,
        points: _core.Points | None = None,
        setup: _core.Setup | None = None,
    ):
        self.rows, self.kernel, self.threads = rows, kernel, threads
        narrow = rows if points else without_empty_columns(rows)[0]
        if coded:
            self.encoding = encode(narrow, kernel, threads, memory_bytes)
        else:
            self.encoding = Encoding(points or _core.Points(narrow, threads))
        self.setup = setup or self._setup_of(kernel)
        self.points = self.encoding.points.fitted(self.setup, threads)

    def product(
        self,
        weights,
        rows: np.ndarray | None = None,
        *,
        targets: KernelRows | None = None,
        target_rows: np.ndarray | None = None,
        how: Evaluation | None = None,
    ) -> np.ndarray:
        """K(targets, these rows) W, float64 (n_targets, n_columns).

        `weights` float64 (n_rows,) is one column, or a tuple (indptr, columns, coefficients,
        n_columns): W in CSR form, a line for each row. `rows` and `target_rows` int32 choose some,
        None is all; the targets are these rows too where there are no others. Raises Stopped.
        """
        if self.is_in_file and targets is None and rows is not None:
            return self.part(rows).product(weights, targets=self, target_rows=target_rows, how=how)
        targets, how = targets or self, how or Evaluation()
        return _core.kernel_product(
            self.setup, targets.points, target_rows, self.points, rows, weights, how.float64,
            self.threads, how.reach, how.stop,
        )  # fmt: skip

    def cluster_product(
        self,
        weights,
        ranges: ClusterRanges,
        targets: KernelRows,
        target_rows: np.ndarray,
        float64: bool,
    ) -> np.ndarray:
        """K(targets, these rows) W, float64 (n_targets, n_columns), where the targets of a cluster
        meet its rows alone; `target_rows` int32 are the targets, cluster after cluster, `weights`
        those of all these rows, as of `product`; `float64` says how kernel values are computed."""
        return _core.cluster_product(
            self.setup, targets.points, target_rows, ranges.target_start,
            self.points, ranges.source_begin, ranges.source_end, weights, float64, self.threads,
        )  # fmt: skip

    def matrix(
        self, *, targets: KernelRows | None = None, target_rows: np.ndarray | None = None
    ) -> np.ndarray:
        """K(targets, these rows), float32 (n_targets, n_rows); targets are chosen as in
        `product`."""
        targets = targets or self
        return _core.kernel_matrix(
            self.setup, targets.points, target_rows, self.points, None, self.threads
        )

    @property
    def copy_bytes(self) -> int:
        """Memory that the encoding takes of the budget; that of packed rows goes with the rows."""
        return 0 if self.rows.is_packed else self.encoding.n_bytes

    def with_threads(self, threads: int) -> KernelRows:
        """The same, computed with so many threads."""
        other = copy(self)
        other.threads = threads
        return other

    def with_kernel(self, kernel: Kernel) -> KernelRows:
        """The same rows with another kernel; these points where they are of use for it: those of an
        RBF kernel for a smaller gamma."""
        if kernel == self.kernel:
            return self
        if self.kernel.name != "rbf" or kernel.name != "rbf" or kernel.gamma > self.kernel.gamma:
            return KernelRows(self.rows, kernel, self.threads)
        other = copy(self)
        other.kernel = kernel
        other.setup = self._setup_of(kernel, _core.Form[self.setup.form])
        return other

    def _setup_of(self, kernel: Kernel, *form: _core.Form) -> _core.Setup:
        """A kernel on these points, in a form, or in that which suits them."""
        gamma = kernel.gamma * self.encoding.squared_step
        return _core.Setup(
            NAMES.index(kernel.name), gamma, kernel.coef0, kernel.degree, self.encoding.points,
            *form, is_flat=is_flat(self.rows, kernel),
        )  # fmt: skip

    @property
    def is_in_file(self) -> bool:
        """Whether these are dense rows of a mapped file, which may not fit the memory."""
        return self.rows.is_in_file

    def part(self, rows: np.ndarray) -> KernelRows:
        """A copy of some of these dense rows, encoded as they are: kernel values are the same
        bits."""
        other = copy(self)
        other.rows = self.rows.take(rows)
        points = _core.Points(other.rows, self.threads)
        found = self.encoding.of_others(points, other.rows, self.threads)
        other.points = (points if found is None else found[0]).fitted(self.setup, self.threads)
        return other


def two_sides(
    targets: Rows, sources: Rows, kernel: Kernel, threads: int
) -> tuple[KernelRows, KernelRows]:
    """Rows that meet others, evaluated in the form that is right for the sources: test rows meet
    support vectors in the arithmetic chosen for the support vectors."""
    if kernel.is_precomputed:
        targets, sources = targets.as_floats(), sources.as_floats()
    sides = [_core.Points(rows, threads) for rows in without_empty_columns(targets, sources)]
    if not kernel.is_precomputed and all(points.are_bytes(threads) for points in sides):
        sides = [points.as_bytes(threads) for points in sides]
    second = KernelRows(sources, kernel, threads, points=sides[1])
    return KernelRows(targets, kernel, threads, points=sides[0], setup=second.setup), second


# Features of pairs of rows: some 15 ms of kernel values on one core. Fits of half to twice that
# took with two threads 1.1 to 4 times the time of one, and 1.2 to 4 times its processor time.
SMALL_WORK = 5e8
# By the model of csrc/kernel/kernel_setup.cc: a kernel value, a byte and a value of a CSR row, in
# features that are floats.
VALUE_WORK, BYTE_WORK, SPARSE_WORK = 11, 0.07, 5.5


def threads_to_train(wanted: int | None, rows: Rows) -> int:
    """The threads to train on rows with: those that are wanted, else as many as pay."""
    if wanted is not None:
        return usable_threads(wanted)
    return threads_that_pay(default_threads(), rows, rows.n_samples)


def threads_that_pay(threads: int, rows: Rows, n_others: int) -> int:
    """So many threads for the kernel values of rows with others; one where these are few."""
    work = float(rows.n_samples) * n_others * (VALUE_WORK + _features(rows))
    return threads if work > SMALL_WORK else 1


def _features(rows: Rows) -> float:
    if rows.is_bytes:
        return BYTE_WORK * rows.n_features
    return rows.row_size if rows.is_dense else SPARSE_WORK * rows.row_size


ASYMMETRY = 1e-3  # of the largest value: what rounding may leave, of long sums in float32
INDEFINITENESS = 1e-4  # relative: above it two rows cannot have such a kernel value
BLOCK = 1024  # rows compared with as many others


def training_matrix(rows: Rows, kernel: Kernel, threads: int) -> tuple[Rows, Kernel]:
    """Rows to train on with a precomputed kernel, and the kernel as the matrix shows it to be.

    Rows without `columns` are those of a square matrix. Two values that differ by rounding become
    their mean, in a copy. The kernel is indefinite where the matrix
    of two rows is: K(x, z)^2 > K(x, x) K(z, z), or a negative K(x, x); one that is only seen with
    more rows is not detected. Raises ValueError for a matrix that is not square or not symmetric.
    """
    rows = of_square(rows, threads)
    diagonal = rows.dense[np.arange(rows.n_samples), rows.columns].astype(np.float64)
    indefinite = bool(np.any(diagonal < 0))
    size, is_own = np.sqrt(np.abs(diagonal)), False
    for first in range(0, rows.n_samples, BLOCK):
        for second in range(0, first + 1, BLOCK):
            a, b = slice(first, first + BLOCK), slice(second, second + BLOCK)
            values, other = _both_blocks(rows, a, b, size.max() ** 2)
            if not np.array_equal(values, other):
                values = (values + other) / 2
                if not is_own:
                    rows, is_own = replace(rows, dense=rows.dense.copy()), True
                rows.dense[a, rows.columns[b]] = values
                rows.dense[b, rows.columns[a]] = values.T
            most = (1 + INDEFINITENESS) * size[first : first + BLOCK, None]
            indefinite |= bool(np.any(np.abs(values) > most * size[second : second + BLOCK]))
    return rows, replace(kernel, indefinite=indefinite)


def of_square(rows: Rows, threads: int) -> Rows:
    """Rows of a precomputed kernel; those without `columns` are all of a square matrix. Raises
    ValueError for another one."""
    if rows.columns is not None:
        return rows
    if rows.n_samples != rows.n_features:
        shape = f"{rows.n_samples} rows and {rows.n_features} columns"
        raise ValueError(f"a precomputed kernel needs a square matrix, not {shape}")
    dense = rows.in_form_of(Rows(0, rows.n_features), threads).as_floats(threads)
    return replace(dense, columns=np.arange(rows.n_features, dtype=np.int32))


def _both_blocks(rows: Rows, a: slice, b: slice, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernel values of the rows `a` with the rows `b`, and those of `b` with `a`,
    transposed; `largest` is the largest value on the diagonal. Raises ValueError for values that
    are not symmetric."""
    values = rows.dense[a].take(rows.columns[b], axis=1)
    other = rows.dense[b].take(rows.columns[a], axis=1).T
    difference = np.abs(values - other)
    if difference.max() > ASYMMETRY * max(largest, np.abs(values).max()):
        i, j = np.unravel_index(difference.argmax(), difference.shape)
        raise ValueError(
            f"the kernel matrix is not symmetric: row {a.start + i + 1} has {values[i, j]:g} with "
            f"row {b.start + j + 1}, which has {other[i, j]:g} with it"
        )
    return values, other
