"""The scaling that svm-scale -s would find: each feature of the rows goes from -1 to 1.

A feature's range is from the smallest to the largest of its values in the text, in float64; rows
without the feature count as 0. Features of one value are not in the scaling.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dcsvm.data.scaling import Interval, Part, Scaling

LIMITS = (-1.0, 1.0)  # svm-scale's default


def found_scaling(parts: Iterable[Part], name: str) -> Scaling:
    """The scaling of rows by their own ranges; `name` stands for their file in errors."""
    columns, minimum, maximum, n_present, n_samples = _extremes(parts)
    absent = n_present < n_samples
    minimum = np.where(absent, np.minimum(minimum, 0), minimum)
    maximum = np.where(absent, np.maximum(maximum, 0), maximum)
    varies = minimum < maximum
    features = Interval(*LIMITS, minimum[varies], maximum[varies])
    return Scaling(f"the ranges of {name}", columns[varies], features, None)


def _extremes(parts: Iterable[Part]):
    """(columns with values, ascending, the smallest and the largest value in each and how many
    there are; number of rows). Takes no more memory for a huge index than for a small one."""
    columns, counts, n_samples = np.empty(0, np.int64), np.empty(0, np.int64), 0
    minimum = maximum = np.empty(0)
    for indptr, indices, values in parts:
        n_samples += len(indptr) - 1
        columns = np.concatenate((columns, indices))
        order = np.argsort(columns)
        columns = columns[order]
        first = np.flatnonzero(np.diff(columns, prepend=-1))
        columns = columns[first]
        minimum = np.minimum.reduceat(np.concatenate((minimum, values))[order], first)
        maximum = np.maximum.reduceat(np.concatenate((maximum, values))[order], first)
        ones = np.ones(len(values), np.int64)
        counts = np.add.reduceat(np.concatenate((counts, ones))[order], first)
    return columns, minimum, maximum, counts, n_samples
