"""Compute gamma from the training rows: from the variance of their values or a median distance.

`auto` is 1 / (n_features * variance), which scikit-learn calls gamma="scale". `F/median` is
F / median(s)^power for a kernel f(gamma s^power) of a distance s. If most rows are equal, the
median is over the pairs of different rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dcsvm.data.arrays import slices
from dcsvm.data.rows import BATCH_SIZE, Rows
from dcsvm.kernel.distances import median_distance
from dcsvm.kernel.kernels import Kernel
from dcsvm.problem.option_table import AUTO, median_factor
from dcsvm.problem.options import OptionError, TrainOptions


class EqualRowsError(OptionError):
    """All rows are equal, so they have no distance to divide by."""


@dataclass(frozen=True)
class RowStatistics:
    """Statistics of training rows, computed when they are called. Sample weights are ignored.

    `variance` returns the variance of all values, including the zeros of sparse rows. `median`
    returns the median argument of a kernel of a distance, see `median_distance`.
    """

    n_features: int
    variance: Callable[[], float]
    median: Callable[[Kernel], float]

    @staticmethod
    def of(rows: Rows, threads: int) -> RowStatistics:
        median = partial(median_distance, rows, threads=threads)
        return RowStatistics(rows.n_features, partial(variance_of_rows, rows), median)


def with_number(options: TrainOptions, rows: RowStatistics) -> TrainOptions:
    """Replace a gamma that is text, or the default, by its number for these rows.

    The gamma of a kernel without gamma becomes None if it is text. Raises OptionError.
    """
    if isinstance(options.gamma, float):
        return options
    if not options.kernel_type.has_gamma:
        return replace(options, gamma=None) if options.gamma else options
    if options.gamma is None:
        return replace(options, gamma=1.0 / max(rows.n_features, 1))
    return replace(options, gamma=_number_of(options.gamma, Kernel(options.kernel), rows))


def number_of_gamma(options: TrainOptions, rows: Rows) -> TrainOptions:
    """Replace a gamma that is no number by its number for rows. Raises OptionError."""
    return with_number(options, RowStatistics.of(rows, 1))


def median_unit(options: TrainOptions, rows: RowStatistics) -> float:
    """Return the number for gamma="1/median". Raises OptionError."""
    unit = with_number(replace(options, gamma="1/median"), rows).gamma
    assert isinstance(unit, float)
    return unit


def _number_of(gamma: str, kernel: Kernel, rows: RowStatistics) -> float:
    if gamma == AUTO:
        variance = rows.variance()
        factor, scale = 1.0, rows.n_features * variance
        described = f"of variance {variance:g}"
    else:
        median = rows.median(kernel)
        factor, scale = median_factor(gamma), max(median, 0.0) ** kernel.type.power
        described = f"of median distance {median:g}"
        if median == 0:
            raise EqualRowsError("gamma", f"must be a number, got {gamma!r}: all rows are equal")
        if math.isnan(median):
            described = "whose distances are beyond float32"
    number = factor / scale if scale > 0 else math.inf
    if not 0 < number < math.inf:
        raise OptionError("gamma", f"must be a number for rows {described}, got {gamma!r}")
    return number


def variance_of_rows(rows: Rows) -> float:
    """Compute the variance of all values in float64; 0 for equal values and for no values."""
    size = rows.n_samples * rows.n_features
    if size == 0:
        return 0.0
    if rows.dense is not None:
        parts, first, n_zeros = [rows.dense[some] for some in rows.slices()], rows.dense[0, 0], 0
    else:
        values, first = rows.csr.values, np.float32(0.0)
        parts, n_zeros = (
            [values[some] for some in slices(len(values), BATCH_SIZE)],
            size - len(values),
        )
    # subtract the first value, so that the mean of equal values is exact
    mean = sum(float(np.subtract(part, first, dtype=np.float64).sum()) for part in parts) / size
    shift = float(first) + mean
    squares = n_zeros * shift**2
    for part in parts:
        squares += float(np.square(np.subtract(part, shift, dtype=np.float64)).sum())
    return squares / size
