"""Distances between rows: a sample of them, their median, and cutoffs of a kernel's values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import without_empty_columns
from dcsvm.kernel.kernels import SQUARED_DISTANCE, Kernel

MEASURED_ROWS = 1000  # sampled rows for the mean squared distance
COMPARED_ROWS = 256  # sampled rows whose distances from each other are computed


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
        distance = kernel.type.argument_at(kernel.gamma, value)
        return Cutoff(distance, value, kernel.type.argument)


def is_flat(rows: Rows, kernel: Kernel) -> bool:
    """Return whether a kernel of a distance exceeds 1/2 at the mean distance of rows.

    If so, sums of K - 1 are more accurate than sums of K. The mean is that of a sample of the rows.
    The result is False for other kernels.
    """
    if not kernel.type.is_of_distance or rows.n_samples == 0:
        return False
    sample = rows.take(np.arange(0, rows.n_samples, -(-rows.n_samples // MEASURED_ROWS)))
    (sample,) = without_empty_columns(sample)
    half = kernel.type.argument_at(kernel.gamma, 0.5)
    if kernel.type.argument == SQUARED_DISTANCE:
        return sample.mean_squared_distance() < half
    return float(distances(sample, kernel, 1).mean()) < half


def compared_rows(n_samples: int) -> np.ndarray:
    """Return the indices of the sampled rows for `distances`."""
    return np.arange(0, n_samples, -(-n_samples // COMPARED_ROWS) or 1)


def distances(rows: Rows, kernel: Kernel, threads: int) -> np.ndarray:
    """Compute distances, the kernel's argument, between sampled rows, float64 (m, m).

    Distances beyond float32 are NaN or infinite.
    """
    sample = _compared(rows)
    if kernel.type.argument != SQUARED_DISTANCE:
        return _matrix(sample, Kernel(kernel.type.argument), threads)
    products = _matrix(sample, Kernel("linear"), threads)
    norms = np.diag(products)
    between = norms[:, None] + norms
    products *= 2.0
    between -= products
    return between


def _compared(rows: Rows) -> Rows:
    is_sample = rows.n_samples <= COMPARED_ROWS
    return rows if is_sample else rows.take(compared_rows(rows.n_samples))


def _matrix(rows: Rows, kernel: Kernel, threads: int) -> np.ndarray:
    """Return the kernel matrix of rows, float64 (n, n), for a kernel of any argument itself."""
    points = _core.Points(without_empty_columns(rows)[0], threads)
    setup = _core.Setup(kernel, points, None, is_flat=False)
    points = points.prepared(setup, threads)
    values = _core.kernel_matrix(setup, points, None, points, None, threads)
    return values.astype(np.float64)


def median_distance(rows: Rows, kernel: Kernel, threads: int) -> float:
    """Return the median of `distances` over the pairs of sampled rows.

    If it is 0, because most rows are equal, it is the median over the pairs of different rows.
    Returns 0 if all rows are equal, and NaN if a distance is beyond float32.
    """
    sample = _compared(rows)
    between = distances(sample, kernel, threads)
    pairs = ~np.tri(len(between), dtype=bool)
    median = _median(between[pairs])
    if median > 0 or math.isnan(median) or sample.n_samples < 2:
        return median
    differ = np.stack(
        [sample.unlike(sample.part(slice(k, k + 1))) for k in range(sample.n_samples)]
    )
    if not differ.any():  # the sample may lack rare rows
        others = np.flatnonzero(rows.unlike(sample.part(slice(0, 1))))
        if len(others) == 0:
            return 0.0
        chosen = rows.take(np.append(0, others[compared_rows(len(others))]))
        between = distances(chosen, kernel, threads)[0, 1:]
    else:
        between = between[pairs][differ[pairs]]
    return _median(between[between > 0])


def _median(values: np.ndarray) -> float:
    """Return the median, 0 without values, NaN if a value is not finite."""
    n = len(values)
    if n == 0:
        return 0.0
    if not np.isfinite(values).all():
        return math.nan
    parted = np.partition(values, n // 2)  # np.median imports numpy.ma
    upper = parted[n // 2]
    lower = upper if n % 2 else parted[: n // 2].max()
    return 0.5 * float(lower + upper)
