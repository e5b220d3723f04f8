"""The scaling that svm-scale -s would find: each feature of the rows goes from -1 to 1.

A feature's range is from the smallest to the largest of its values in the text, in float64; rows
without the feature count as 0. Features of one value are not in the scaling.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from dcsvm.data.scaling import Interval, Part, Scaling

LIMITS = (-1.0, 1.0)  # svm-scale's default


@dataclass(frozen=True, eq=False)
class Extremes:
    """Of `n_samples` rows the `columns` with values, ascending, the smallest and the largest value
    in each, and `counts`, how many there are. Takes no more memory for a huge index than for a
    small one."""

    columns: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    counts: np.ndarray
    n_samples: int

    @staticmethod
    def of(parts: Iterable[Part]) -> Extremes:
        found = Extremes.joined([])
        for indptr, indices, values in parts:
            ones = np.ones(len(values), np.int64)
            found = Extremes.joined(
                [found, Extremes(indices, values, values, ones, len(indptr) - 1)]
            )
        return found

    @staticmethod
    def joined(several: Iterable[Extremes]) -> Extremes:
        """Those of all rows together; columns need neither ascend nor differ."""
        nothing = Extremes(
            np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, np.int64), 0
        )
        several = [nothing, *several]
        columns, minimum, maximum, counts = (
            np.concatenate([getattr(one, field.name) for one in several])
            for field in fields(Extremes)[:4]
        )
        order = np.argsort(columns)
        columns = columns[order]
        first = np.flatnonzero(np.diff(columns, prepend=-1))
        return Extremes(
            columns[first],
            np.minimum.reduceat(minimum[order], first),
            np.maximum.reduceat(maximum[order], first),
            np.add.reduceat(counts[order], first),
            sum(one.n_samples for one in several),
        )

    def scaling(self, name: str, first_index: int = 1) -> Scaling:
        """The scaling by these ranges; `name` stands for their file in errors."""
        absent = self.counts < self.n_samples
        minimum = np.where(absent, np.minimum(self.minimum, 0), self.minimum)
        maximum = np.where(absent, np.maximum(self.maximum, 0), self.maximum)
        varies = minimum < maximum
        features = Interval(*LIMITS, minimum[varies], maximum[varies])
        return Scaling(f"the ranges of {name}", self.columns[varies], features, None, first_index)
