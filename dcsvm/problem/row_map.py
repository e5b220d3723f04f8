"""Rows as the caller gave them, and the rows that are solved.

Equal rows are merged, rows of weight 0 are left out, and what is left is put in the order of the
locality. A "row" is one that is solved; a "given row" has the caller's number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.problem.duplicates import Duplicates


@dataclass(frozen=True, eq=False)
class RowMap:
    """`order` int32 (n_rows,): which variable of `duplicates` each row is; `n_given` rows were
    given."""

    duplicates: Duplicates
    order: np.ndarray
    n_given: int

    @property
    def n_merged(self) -> int:
        return self.duplicates.n_merged

    @property
    def given(self) -> np.ndarray:
        """The given rows that have a weight, ascending."""
        return np.sort(self.duplicates.rows)

    @property
    def weight_of_given(self) -> np.ndarray:
        """The weight of each given row, float64 (n_given,)."""
        weight = np.zeros(self.n_given)
        weight[self.duplicates.rows] = self.duplicates.weights
        return weight

    @property
    def place(self) -> np.ndarray:
        """Which row each variable of `duplicates` is, int64 (n_rows,)."""
        place = np.empty(len(self.order), np.int64)
        place[self.order] = np.arange(len(place))
        return place

    @property
    def row_of_given(self) -> np.ndarray:
        """The row that each given row has become, int64 (n_given,); -1 of weight 0."""
        row = np.full(self.n_given, -1)
        row[self.duplicates.rows] = np.repeat(self.place, np.diff(self.duplicates.start))
        return row

    @property
    def n_given_of_row(self) -> np.ndarray:
        """How many given rows each row stands for, int64 (n_rows,)."""
        return np.diff(self.duplicates.start)[self.order]

    def split(
        self, rows: np.ndarray, coef: np.ndarray, bound: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Share coefficients (k, n) of `rows` (n,) out among the given rows they stand for, where
        `bound` (n,) is that of weight 1; see Duplicates.split.

        Returns (place among `rows`, given row, coefficients (k, m), bound) of the given rows that
        get any.
        """
        place, own, shares = self.duplicates.split(self.order[rows], coef, bound)
        number = self.duplicates.rows[own].astype(np.int64)
        return place, number, shares, bound[place] * self.duplicates.weights[own]

    def count_filled(self, rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How many given rows of each row get any, and how many all of theirs, of `weight` (n,)
        that is shared out in the same way."""
        return self.duplicates.count_filled(self.order[rows], weight)
