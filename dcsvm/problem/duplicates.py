"""Equal rows of one class or target as one variable: their alphas count only through their sum.

The variable's bound is the sum of theirs. Equal rows of different labels stay two variables. Rows
of weight 0 have no variable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.data.sorting import AT_ONCE, slices
from dcsvm.problem.formulation import ROUNDING, filled

WORTH_MERGING = 0.02  # part of the rows that has to go
ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Which rows share a variable, int32: `first` is the first row of each, ascending; `rows` lists
    all rows variable by variable, ascending within one, with their `weights` float64, and `start`
    where each variable begins."""

    first: np.ndarray
    rows: np.ndarray
    start: np.ndarray
    weights: np.ndarray

    @property
    def sample_weight(self) -> np.ndarray:
        """The weight of each variable, float64."""
        return np.add.reduceat(self.weights, self.start[:-1])

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

    def count_filled(
        self, variables: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How many rows of each variable get any, and how many all of theirs, of `weight` (n,) that
        is shared out in the same way."""
        place, own, before = self._members(variables)
        share = filled(self.weights[own], weight[place] - before, ROUNDING * weight[place])
        gets_any, gets_all = share != 0, share == self.weights[own]
        n = len(variables)
        return np.bincount(place[gets_any], minlength=n), np.bincount(place[gets_all], minlength=n)

    def _members(self, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(place in `variables`, place in `rows`, weight of the rows before it of the variable) of
        all rows of the variables."""
        first = self.start[variables]
        counts = self.start[np.asarray(variables) + 1] - first
        begin = np.repeat(np.cumsum(counts) - counts, counts)
        place = np.repeat(np.arange(len(variables)), counts)
        own = first[place] + np.arange(len(place)) - begin
        weights = np.cumsum(self.weights[own], dtype=np.longdouble)
        before = np.concatenate(([0], weights))
        return place, own, (before[: len(own)] - before[begin]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class RowMap:
    """Rows as the caller gave them, and the rows that are solved: equal ones are merged, those of
    weight 0 left out, and what is left is in the order of the locality. A "row" is one that is
    solved; a "given row" has the caller's number.

    `order` int32 (n_rows,): which variable of `duplicates` each row is; `n_given` rows were
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


def all_different(sample_weight: np.ndarray) -> Duplicates:
    """A variable for each row that has a weight float64 (n,)."""
    kept = np.flatnonzero(sample_weight).astype(np.int32)
    start = np.arange(len(kept) + 1, dtype=np.int32)
    return Duplicates(kept, kept, start, sample_weight[kept])


def find_duplicates(rows: Rows, targets: np.ndarray, sample_weight: np.ndarray) -> Duplicates:
    """The variables of rows with `targets` (n,) and weights float64 (n,); one for each row where
    few rows are equal. CSR rows and those of a precomputed kernel are taken to be different."""
    kept = np.flatnonzero(sample_weight).astype(np.int32)
    if len(kept) < rows.n_samples:
        found = find_duplicates(rows.take(kept), targets[kept], sample_weight[kept])
        return replace(found, first=kept[found.first], rows=kept[found.rows])
    n, single = rows.n_samples, all_different(sample_weight)
    if n == 0 or not rows.is_dense or rows.columns is not None:
        return single
    return _of_keys(_hash(rows, targets), single, partial(_are_equal, rows, targets))


def row_keys(rows: Rows) -> np.ndarray:
    """Two 64-bit numbers for each dense row, uint64 (n, 2): rows of which both are equal are taken
    to be equal where nobody can compare them."""
    nothing = np.zeros(rows.n_samples)
    return np.stack([_hash(rows, nothing, seed) for seed in (0, 1)], axis=1)


def duplicates_by_keys(
    keys: np.ndarray, targets: np.ndarray, sample_weight: np.ndarray
) -> Duplicates:
    """As `find_duplicates`, by the keys of rows that are somewhere else."""
    kept = np.flatnonzero(sample_weight).astype(np.int32)
    own = targets[kept].astype(np.float64)
    key, other = (keys[kept] + (own.view(np.uint64) * ODD)[:, None]).T

    def are_equal(order: np.ndarray, is_first: np.ndarray) -> bool:
        again = np.flatnonzero(~is_first)
        one, before = order[again], order[again - 1]
        return np.array_equal(other[one], other[before]) and np.array_equal(own[one], own[before])

    found = _of_keys(key, all_different(sample_weight[kept]), are_equal)
    return replace(found, first=kept[found.first], rows=kept[found.rows])


def _of_keys(key: np.ndarray, single: Duplicates, are_equal: Callable) -> Duplicates:
    """The variables of rows with a key uint64 (n,) each; `single` has one for each of them. Rows
    in an order, marked where a kind begins, have to be `are_equal`."""
    n, sample_weight = len(key), single.weights
    in_order = np.sort(key)
    if np.count_nonzero(in_order[1:] != in_order[:-1]) + 1 > (1 - WORTH_MERGING) * n:
        return single
    del in_order
    order = np.argsort(key, kind="stable").astype(np.int32)  # equal rows side by side
    key = key[order]
    is_first = np.concatenate(([True], key[1:] != key[:-1]))
    del key
    if not are_equal(order, is_first):  # a hash proves nothing
        return single
    starts = np.flatnonzero(is_first)
    rank = np.argsort(order[starts])  # variables are in the order of their first rows
    counts = np.diff(starts, append=n)[rank]
    start = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    places = np.arange(n) + np.repeat(starts[rank] - start[:-1], counts)
    listed = order[places]
    return Duplicates(order[starts[rank]], listed, start, sample_weight[listed])


def opposite_twins(
    rows: Rows, row: np.ndarray, part: np.ndarray, sign: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of variables of equal dense rows, one of sign +1 and one of -1, in the same part:
    (the former, the latter). `row`, `part` and `sign` (m,) are those of each variable, which is in
    one pair at most."""
    is_here = isinstance(rows, Rows)  # rows somewhere else cannot be compared: there are no pairs
    if not is_here or not rows.is_dense or rows.columns is not None or len(row) == 0:
        nothing = np.empty(0, np.int64)
        return nothing, nothing
    kind = np.unique(_hash(rows, np.zeros(rows.n_samples)), return_inverse=True)[1]
    key = part.astype(np.int64) * rows.n_samples + kind[row]
    sides = []
    for one in (1, -1):
        own = np.flatnonzero(sign == one)
        own = own[np.argsort(key[own], kind="stable")]
        first = np.flatnonzero(np.diff(key[own], prepend=-1))
        rank = np.arange(len(own)) - np.repeat(first, np.diff(first, append=len(own)))
        sides.append((own, key[own], rank))
    (a, key_a, rank_a), (b, key_b, rank_b) = sides
    n_ranks = int(max(rank_a.max(initial=0), rank_b.max(initial=0))) + 1
    _, at_a, at_b = np.intersect1d(
        key_a * n_ranks + rank_a, key_b * n_ranks + rank_b, return_indices=True
    )
    a, b = a[at_a], b[at_b]
    equal = np.ones(len(a), bool)  # a hash proves nothing
    for some in slices(len(a), AT_ONCE // max(rows.n_features, 1)):
        one, other = _values_of(rows, row[a[some]]), _values_of(rows, row[b[some]])
        equal[some] = (one == other).all(axis=1)
    return a[equal], b[equal]


def _are_equal(rows: Rows, targets: np.ndarray, order: np.ndarray, is_first: np.ndarray) -> bool:
    """Whether every row of an order that is not marked as the first of a kind is equal to the one
    before it."""
    again = np.flatnonzero(~is_first)
    if not np.array_equal(targets[order[again]], targets[order[again - 1]]):
        return False
    step = max(1, AT_ONCE // max(rows.n_features, 1))
    return all(
        np.array_equal(_values_of(rows, order[some]), _values_of(rows, order[some - 1]))
        for some in (again[begin : begin + step] for begin in range(0, len(again), step))
    )


def _values_of(rows: Rows, numbers: np.ndarray) -> np.ndarray:
    """Some dense rows in a form in which equal rows are equal."""
    return rows.take(numbers).features if rows.is_packed else rows.stored[numbers]


def _hash(rows: Rows, targets: np.ndarray, seed: int = 0) -> np.ndarray:
    """A 64-bit number for each dense row, equal for equal rows with equal targets."""
    n_words = rows.n_features if rows.is_packed else rows.stored.view(np.uint32).shape[1]
    factors = np.random.default_rng(seed).integers(2**63, size=n_words, dtype=np.uint64)
    result = targets.astype(np.float64).view(np.uint64) * ODD
    for some in slices(rows.n_samples, AT_ONCE // 4 // max(n_words, 1)):
        own = rows.part(some)
        part = (own.features if rows.is_packed else own.stored).view(np.uint32).astype(np.uint64)
        part ^= part >> np.uint64(15)
        result[some] += np.einsum("ij,j->i", part, factors | np.uint64(1))
    return result ^ (result >> np.uint64(32))
