"""Rows with a kernel on them; the only callers of the core's tiles."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.data.coded_rows import WORTH_CODING
from dcsvm.data.columns import without_empty_columns
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import NAMES, Kernel
from dcsvm.kernel.lattice import find_lattice

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
    meet only themselves, or others that are encoded as them: exclusive 0/1 columns may become
    codes, and evenly spaced values bytes, where the copy takes at most `memory_bytes`; it takes
    `copy_bytes`. `largest_squared_norm` is that of rows that were not encoded beforehand.
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
        self.points = points or _core.Points(narrow, threads)
        self.largest_squared_norm = 0.0 if points else self.points.largest_squared_norm
        self.copy_bytes, gamma, self.lattice = 0, kernel.gamma, None
        if coded and kernel.name == "rbf" and self.points.may_be_bytes:
            self.lattice = find_lattice(narrow, memory_bytes)
        if self.lattice is not None:
            self.copy_bytes = self.points.take_bytes(self.lattice.codes(narrow))
            gamma *= self.lattice.step**2
        elif coded and not kernel.is_precomputed:
            self.copy_bytes = self.points.encode(WORTH_CODING, memory_bytes, threads)
        self.setup = setup or self._setup_of(kernel, gamma)
        self.points.fit(self.setup, threads)

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

    def encode(self, points: _core.Points, rows: Rows, threads: int) -> np.ndarray | None:
        """Encode the points of rows that meet these as these are. Returns which rows are the same
        then, bool (n,), None where nothing is encoded."""
        if self.lattice is None:
            return points.encode_as(self.points, threads)
        points.take_bytes(self.lattice.codes(rows))
        return self.lattice.rows_on(rows)

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
        gamma = kernel.gamma * (self.lattice.step**2 if self.lattice else 1.0)
        other.setup = self._setup_of(kernel, gamma, _core.Form[self.setup.form])
        return other

    def _setup_of(self, kernel: Kernel, gamma: float, *form: _core.Form) -> _core.Setup:
        """A kernel with this gamma on these points, in a form, or in that which suits them."""
        return _core.Setup(
            NAMES.index(kernel.name), gamma, kernel.coef0, kernel.degree, self.points, *form,
            is_flat=is_flat(self.rows, kernel),
        )  # fmt: skip

    @property
    def is_in_file(self) -> bool:
        """Whether these are dense rows of a mapped file, which may not fit the memory."""
        return self.rows.is_mapped and self.rows.is_dense

    def part(self, rows: np.ndarray) -> KernelRows:
        """A copy of some of these dense rows, encoded as they are: kernel values are the same
        bits."""
        other = copy(self)
        other.rows = self.rows.take(rows)
        other.points = _core.Points(other.rows, self.threads)
        self.encode(other.points, other.rows, self.threads)
        other.points.fit(self.setup, self.threads)
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
        for points in sides:
            points.encode_bytes(threads)
    second = KernelRows(sources, kernel, threads, points=sides[1])
    return KernelRows(targets, kernel, threads, points=sides[0], setup=second.setup), second
