"""Merge duplicates: equal rows with the same label or target share one variable.

The variable is the sum of their alphas, and its bound is the sum of their bounds. Equal rows with
different labels are not merged. Rows of weight 0 have no variable.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dcsvm.data.arrays import BATCH_SIZE, slices
from dcsvm.data.rows import Rows
from dcsvm.problem.formulation import ROUNDING, filled

MERGING_THRESHOLD = 0.02  # minimum fraction of duplicates; below it, merging saves no time
ODD = np.uint64(0x9E3779B97F4A7C15)  # multiplier of the hash


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Variables and their rows.

    `first` int32 (n_variables,) is the first row of each variable, ascending. `rows` int32 lists
    the rows of all variables, ascending within each variable. `weights` float64 are the weights of
    these rows. `start` int32 (n_variables + 1,) is the position of each variable in `rows`.
    """

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
        """Split the coefficients (k, n) of merged rows among their duplicates.

        Duplicates are filled in order, each up to its weight times `bound` (n,). Returns (position
        in `variables`, position in `rows`, coefficients (k, m)) of the m rows with nonzero
        coefficients.
        """
        index, position, before = self._members(variables)
        total, limit = np.abs(coef[:, index]), bound[index] * self.weights[position]
        share = filled(limit, total - before * bound[index], ROUNDING * total)
        kept = np.any(share != 0, axis=0)
        return index[kept], position[kept], np.copysign(share, coef[:, index])[:, kept]

    def count_filled(
        self, variables: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Count the rows of each variable with a nonzero share, and with a full share, of `weight`.

        `weight` (n,) is split among the rows as in `split`.
        """
        index, position, before = self._members(variables)
        weights, n = self.weights[position], len(variables)
        share = filled(weights, weight[index] - before, ROUNDING * weight[index])
        n_any = np.bincount(index[share != 0], minlength=n)
        return n_any, np.bincount(index[share == weights], minlength=n)

    def _members(self, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Expand variables to their rows.

        Returns for each row (position in `variables`, position in `rows`, total weight of the
        earlier rows of its variable).
        """
        first = self.start[variables]
        counts = self.start[np.asarray(variables) + 1] - first
        begin = np.repeat(np.cumsum(counts) - counts, counts)
        index = np.repeat(np.arange(len(variables)), counts)
        position = first[index] + np.arange(len(index)) - begin
        weights = np.cumsum(self.weights[position], dtype=np.longdouble)
        before = np.concatenate(([0], weights))
        return index, position, (before[: len(position)] - before[begin]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class RowMap:
    """The map between input rows, in the caller's order, and the rows of the solver.

    The solver's rows are merged, have positive weight, and are in spatial order. `order` int32
    (n_rows,) is the variable of each row in `duplicates`.
    """

    duplicates: Duplicates
    order: np.ndarray
    n_input_rows: int

    @property
    def n_merged(self) -> int:
        return self.duplicates.n_merged

    @property
    def input_rows(self) -> np.ndarray:
        """The input rows with positive weight, ascending, int32."""
        return np.sort(self.duplicates.rows)

    @property
    def weight_of_input(self) -> np.ndarray:
        """The weight of each input row, float64 (n_input_rows,)."""
        weight = np.zeros(self.n_input_rows)
        weight[self.duplicates.rows] = self.duplicates.weights
        return weight

    @property
    def row_of_variable(self) -> np.ndarray:
        """The solver's row of each variable of `duplicates`, int64 (n_rows,)."""
        place = np.empty(len(self.order), np.int64)
        place[self.order] = np.arange(len(place))
        return place

    @property
    def row_of_input(self) -> np.ndarray:
        """The solver's row of each input row, int64 (n_input_rows,); -1 for weight 0."""
        row = np.full(self.n_input_rows, -1)
        row[self.duplicates.rows] = np.repeat(self.row_of_variable, np.diff(self.duplicates.start))
        return row

    @property
    def n_inputs_of_row(self) -> np.ndarray:
        """The number of input rows of each solver's row, int64 (n_rows,)."""
        return np.diff(self.duplicates.start)[self.order]

    def split(
        self, rows: np.ndarray, coef: np.ndarray, bound: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Split the coefficients (k, n) of `rows` (n,) among their input rows.

        `bound` (n,) is the bound at weight 1; see Duplicates.split. Returns (position in `rows`,
        input row, coefficients (k, m), bound) of the m input rows with nonzero coefficients.
        """
        index, position, shares = self.duplicates.split(self.order[rows], coef, bound)
        input_row = self.duplicates.rows[position].astype(np.int64)
        return index, input_row, shares, bound[index] * self.duplicates.weights[position]

    def count_filled(self, rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Count the input rows of each of `rows` with Duplicates.count_filled."""
        return self.duplicates.count_filled(self.order[rows], weight)


def all_different(sample_weight: np.ndarray) -> Duplicates:
    """Give each row of positive weight its own variable. Weights are float64 (n,)."""
    kept = np.flatnonzero(sample_weight).astype(np.int32)
    start = np.arange(len(kept) + 1, dtype=np.int32)
    return Duplicates(kept, kept, start, sample_weight[kept])


def find_duplicates(rows: Rows, targets: np.ndarray, sample_weight: np.ndarray) -> Duplicates:
    """Merge equal rows with equal `targets` (n,). Weights are float64 (n,).

    Nothing is merged if there are few duplicates, or for CSR rows or a precomputed kernel.
    """
    kept = np.flatnonzero(sample_weight).astype(np.int32)
    if len(kept) < rows.n_samples:
        merged = find_duplicates(rows.take(kept), targets[kept], sample_weight[kept])
        return replace(merged, first=kept[merged.first], rows=kept[merged.rows])
    n, single = rows.n_samples, all_different(sample_weight)
    if n == 0 or not rows.is_dense or rows.columns is not None:
        return single
    return _of_keys(_hash(rows, targets), single, partial(_are_equal, rows, targets))


def row_keys(rows: Rows) -> np.ndarray:
    """Return two hashes of each dense row, uint64 (n, 2), to compare rows of several machines."""
    zeros = np.zeros(rows.n_samples)
    return np.stack([_hash(rows, zeros, seed) for seed in (0, 1)], axis=1)


def duplicates_by_keys(
    keys: np.ndarray, targets: np.ndarray, sample_weight: np.ndarray
) -> Duplicates:
    """Merge rows by their `row_keys`, as `find_duplicates` does by their values."""
    kept = np.flatnonzero(sample_weight).astype(np.int32)
    values = targets[kept].astype(np.float64)
    key, check = (keys[kept] + (values.view(np.uint64) * ODD)[:, None]).T

    def are_equal(order: np.ndarray, is_first: np.ndarray) -> bool:
        repeated = np.flatnonzero(~is_first)
        row, previous = order[repeated], order[repeated - 1]
        return all(np.array_equal(array[row], array[previous]) for array in (check, values))

    merged = _of_keys(key, all_different(sample_weight[kept]), are_equal)
    return replace(merged, first=kept[merged.first], rows=kept[merged.rows])


def _of_keys(
    key: np.ndarray, single: Duplicates, are_equal: Callable[[np.ndarray, np.ndarray], bool]
) -> Duplicates:
    """Merge rows with equal keys, uint64 (n,). `single` is the result without merging.

    `are_equal` takes rows in the order of their keys and a mask of the first row of each key. It
    compares the rows themselves, because equal hashes do not prove equality.
    """
    n, sample_weight = len(key), single.weights
    in_order = np.sort(key)
    if np.count_nonzero(in_order[1:] != in_order[:-1]) + 1 > (1 - MERGING_THRESHOLD) * n:
        return single
    del in_order
    order = np.argsort(key, kind="stable").astype(np.int32)  # equal rows side by side
    key = key[order]
    is_first = np.concatenate(([True], key[1:] != key[:-1]))
    del key
    if not are_equal(order, is_first):
        return single
    starts = np.flatnonzero(is_first)
    rank = np.argsort(order[starts])  # variables are in the order of their first rows
    counts = np.diff(starts, append=n)[rank]
    start = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    listed = order[np.arange(n) + np.repeat(starts[rank] - start[:-1], counts)]
    return Duplicates(order[starts[rank]], listed, start, sample_weight[listed])


def opposite_twins(
    rows: Rows, row: np.ndarray, part: np.ndarray, sign: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pair variables of equal dense rows with opposite signs in the same part.

    `row`, `part` and `sign` (m,) describe the variables. Each variable is in at most one pair.
    Returns the variables of sign +1 and their partners of sign -1. Rows on other machines are not
    paired.
    """
    is_local = isinstance(rows, Rows)
    if not is_local or not rows.is_dense or rows.columns is not None or len(row) == 0:
        empty = np.empty(0, np.int64)
        return empty, empty
    row_id = np.unique(_hash(rows, np.zeros(rows.n_samples)), return_inverse=True)[1]
    key = part.astype(np.int64) * rows.n_samples + row_id[row]
    sides = []
    for side in (1, -1):
        members = np.flatnonzero(sign == side)
        members = members[np.argsort(key[members], kind="stable")]
        first = np.flatnonzero(np.diff(key[members], prepend=-1))
        rank = np.arange(len(members)) - np.repeat(first, np.diff(first, append=len(members)))
        sides.append((members, key[members], rank))
    (a, key_a, rank_a), (b, key_b, rank_b) = sides
    n_ranks = int(max(rank_a.max(initial=0), rank_b.max(initial=0))) + 1
    _, at_a, at_b = np.intersect1d(
        key_a * n_ranks + rank_a, key_b * n_ranks + rank_b, return_indices=True
    )
    a, b = a[at_a], b[at_b]
    equal = np.ones(len(a), bool)  # equal hashes do not prove equality
    for batch in slices(len(a), BATCH_SIZE // max(rows.n_features, 1)):
        one, other = _values_of(rows, row[a[batch]]), _values_of(rows, row[b[batch]])
        equal[batch] = (one == other).all(axis=1)
    return a[equal], b[equal]


def _are_equal(rows: Rows, targets: np.ndarray, order: np.ndarray, is_first: np.ndarray) -> bool:
    """Return whether each row in `order` equals the previous one, except the first of a key."""
    repeated = np.flatnonzero(~is_first)
    if not np.array_equal(targets[order[repeated]], targets[order[repeated - 1]]):
        return False
    batches = slices(len(repeated), BATCH_SIZE // max(rows.n_features, 1))
    return all(
        np.array_equal(_values_of(rows, order[at]), _values_of(rows, order[at - 1]))
        for at in (repeated[batch] for batch in batches)
    )


def _values_of(rows: Rows, indices: np.ndarray) -> np.ndarray:
    """Return dense rows as stored; packed rows are unpacked."""
    return rows.take(indices).features if rows.is_packed else rows.stored[indices]


def _hash(rows: Rows, targets: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return 64-bit hashes uint64 (n,) of rows with their targets."""
    n_words = rows.n_features if rows.is_packed else rows.stored.view(np.uint32).shape[1]
    factors = np.random.default_rng(seed).integers(2**63, size=n_words, dtype=np.uint64)
    factors |= np.uint64(1)
    result = targets.astype(np.float64).view(np.uint64) * ODD
    for batch in slices(rows.n_samples, BATCH_SIZE // 4 // max(n_words, 1)):
        own = rows.part(batch)
        if own.is_packed:  # a zero adds nothing
            csr = own.csr
            terms = _mixed(csr.values) * factors[csr.indices]
            sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms)))
            result[batch] += sums[csr.indptr[1:]] - sums[csr.indptr[:-1]]
        else:
            result[batch] += np.einsum("ij,j->i", _mixed(own.stored), factors)
    return result ^ (result >> np.uint64(32))


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return the 32-bit words of values as uint64, with upper bits mixed into lower bits."""
    words = values.view(np.uint32).astype(np.uint64)
    return words ^ (words >> np.uint64(15))
