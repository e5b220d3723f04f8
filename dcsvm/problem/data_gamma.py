"""Compute gamma from the training rows: from the variance of their values or a median distance.

`auto` is 1 / (n_features * variance), which scikit-learn calls gamma="scale". `F/median` is
F / median(s)^power for a kernel f(gamma s^power) of a distance s. If most rows are equal, the
median is over the pairs of different rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dcsvm.data.arrays import slices
from dcsvm.data.columns import TableEncoding
from dcsvm.data.rows import BATCH_SIZE, Rows
from dcsvm.kernel.distances import median_distance
from dcsvm.kernel.kernels import Kernel
from dcsvm.problem.option_table import AUTO, median_factor
from dcsvm.problem.options import OptionError, TrainOptions


class EqualRowsError(OptionError):
    """All rows are equal, so they have no distance to divide by."""


def number_of_gamma(
    options: TrainOptions,
    rows: Rows,
    n_features: int | None = None,
    variance: Callable[[], float] | None = None,
    table: TableEncoding | None = None,
) -> TrainOptions:
    """Replace a gamma that is text, or the default, by its number for rows.

    The gamma of a kernel without gamma becomes None if it is text. Sample weights are ignored.
    `n_features` and `variance` are given for rows on workers: the number of features, also of those
    that no row uses, and a function that computes the variance of all values, with the zeros of
    sparse rows. The default is 1 / features, of which a category column of the `table` counts as
    one. Raises OptionError.
    """
    gamma, n_features = options.gamma, rows.n_features if n_features is None else n_features
    if isinstance(gamma, float):
        return options
    if not options.kernel_type.has_gamma:
        return replace(options, gamma=None) if gamma else options
    if gamma is None:
        n_columns = n_features if table is None else n_features - table.n_features + table.n_columns
        number = 1.0 / max(n_columns, 1)
    elif gamma == AUTO:
        size = variance_of_rows(rows) if variance is None else variance()
        number = _ratio(gamma, 1.0, n_features * size, f"of variance {size:g}")
    else:
        number = number_per_median(gamma, options.kernel, rows)
    return replace(options, gamma=number)


def number_per_median(gamma: str, kernel: str, rows: Rows) -> float:
    """Return the number of a gamma F/median of a kernel. Raises OptionError."""
    used = Kernel(kernel)
    median = median_distance(rows, used, 1)
    if median == 0:
        raise EqualRowsError("gamma", f"must be a number, got {gamma!r}: all rows are equal")
    described = f"of median distance {median:g}"
    if math.isnan(median):
        described = "whose distances are beyond float32"
    return _ratio(gamma, median_factor(gamma), max(median, 0.0) ** used.type.power, described)


def _ratio(gamma: str, factor: float, scale: float, described: str) -> float:
    """Return factor / scale. Raises OptionError, which describes the rows."""
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
        parts, first, n_zeros = [rows.dense[batch] for batch in rows.slices()], rows.dense[0, 0], 0
    else:
        values, first = rows.csr.values, np.float32(0.0)
        parts, n_zeros = (
            [values[batch] for batch in slices(len(values), BATCH_SIZE)],
            size - len(values),
        )
    # subtract the first value, so that the mean of equal values is exact
    mean = sum(float(np.subtract(part, first, dtype=np.float64).sum()) for part in parts) / size
    shift = float(first) + mean
    squares = n_zeros * shift**2
    for part in parts:
        squares += float(np.square(np.subtract(part, shift, dtype=np.float64)).sum())
    return squares / size
