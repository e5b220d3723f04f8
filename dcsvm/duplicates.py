"""Equal rows of one class or target as one variable: their alphas count only through their sum.

The variable's bound is the sum of theirs. Equal rows of different labels stay two variables. Rows
of weight 0 have no variable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dcsvm.dataset import Rows
from dcsvm.formulation import ROUNDING, filled

WORTH_MERGING = 0.02  # part of the rows that has to go
HASHED_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Which rows share a variable: `first` is the first row of each variable, ascending; `rows`
    lists all rows variable by variable, ascending within one, with their `weights` float64, and
    `start` where each variable begins."""

    first: np.ndarray
    rows: np.ndarray
    start: np.ndarray
    weights: np.ndarray

    @property
    def copies(self) -> np.ndarray:
        """The weight of each variable, float64."""
        return np.add.reduceat(self.weights, self.start[:-1])

    @property
    def given(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that have a weight, ascending, and their weights."""
        order = np.argsort(self.rows)
        return self.rows[order], self.weights[order]

    @property
    def n_merged(self) -> int:
        return len(self.rows) - len(self.first)

    def split(
        self, variables: np.ndarray, coef: np.ndarray, bound: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(place in `variables`, place in `rows`, coefficients) of every row that has one which is
        not zero: `coef` (k, n) are shared out among equal rows, each filled to its weight times
        `bound` (n,) before the next gets any."""
        place, own, before = self._members(variables)
        total, most = np.abs(coef[:, place]), bound[place] * self.weights[own]
        share = filled(most, total - before * bound[place], ROUNDING * total)
        kept = np.any(share != 0, axis=0)
        return place[kept], own[kept], np.copysign(share, coef[:, place])[:, kept]

    def count_filled(self, variables: np.ndarray, weight: np.ndarray) -> tuple[int, int]:
        """How many rows get any, and how many all of theirs, of `weight` (n,) that is shared out in
        the same way."""
        place, own, before = self._members(variables)
        share = filled(self.weights[own], weight[place] - before, ROUNDING * weight[place])
        return int(np.count_nonzero(share)), int(np.count_nonzero(share == self.weights[own]))

    def _members(self, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(place in `variables`, place in `rows`, weight of the rows before it of the variable) of
        all rows of the variables."""
        counts = np.diff(self.start)[variables]
        place = np.repeat(np.arange(len(variables)), counts)
        number = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = self.start[variables][place]
        before = np.concatenate(([0], np.cumsum(self.weights, dtype=np.longdouble)))
        return place, first + number, (before[first + number] - before[first]).astype(np.float64)


def find_duplicates(rows: Rows, values: np.ndarray, weights: np.ndarray) -> Duplicates:
    """The variables of rows with classes or targets `values` (n,) and `weights` float64 (n,); one
    for each row where few rows are equal. CSR rows and those of a precomputed kernel are taken to
    be different."""
    kept = np.flatnonzero(weights)
    if len(kept) < rows.n_samples:
        found = find_duplicates(rows.take(kept), values[kept], weights[kept])
        return replace(found, first=kept[found.first], rows=kept[found.rows])
    n = rows.n_samples
    single = Duplicates(np.arange(n), np.arange(n), np.arange(n + 1), weights)
    if not rows.is_dense or rows.columns is not None:
        return single
    odd = np.uint64(0x9E3779B97F4A7C15)
    key = _hash(rows.dense) * odd + np.unique(values, return_inverse=True)[1].astype(np.uint64)
    _, first, variable = np.unique(key, return_index=True, return_inverse=True)
    if len(first) > (1 - WORTH_MERGING) * n:
        return single
    for begin in range(0, n, HASHED_AT_ONCE):  # a hash proves nothing
        part = slice(begin, begin + HASHED_AT_ONCE)
        same = first[variable[part]]
        if not np.array_equal(rows.dense[part], rows.dense[same]):
            return single
        if not np.array_equal(values[part], values[same]):
            return single
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    variable = rank[variable]
    start = np.concatenate(([0], np.cumsum(np.bincount(variable))))
    listed = np.argsort(variable, kind="stable")
    return Duplicates(first[order], listed, start, weights[listed])


def _hash(dense: np.ndarray) -> np.ndarray:
    """A 64-bit number for each row, equal for equal rows."""
    factors = np.random.default_rng(0).integers(2**63, size=dense.shape[1], dtype=np.uint64)
    bits = np.ascontiguousarray(dense).view(np.uint32)
    result = np.empty(len(dense), np.uint64)
    for begin in range(0, len(dense), HASHED_AT_ONCE):
        part = bits[begin : begin + HASHED_AT_ONCE].astype(np.uint64)
        part ^= part >> np.uint64(15)
        result[begin : begin + HASHED_AT_ONCE] = (part * (factors | np.uint64(1))).sum(axis=1)
    return result ^ (result >> np.uint64(32))
