"""Merge duplicates: equal rows with the same label or target share one variable.

The variable is the sum of their alphas, and its bound is the sum of their bounds. Equal rows with
different labels are not merged. Rows of weight 0 have no variable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import BATCH_SIZE, group_order, slices
from dcsvm.data.rows import Rows, row_hashes
from dcsvm.problem.formulation import ROUNDING, filled

MERGING_THRESHOLD = 0.02  # minimum fraction of duplicates; below it, merging saves no time
ODD = np.uint64(0x9E3779B97F4A7C15)  # multiplier of the hash of a target


@dataclass(frozen=True, eq=False)
class RowMap:
    """The map between input rows, in the caller's order, and the rows of the solver.

    The solver's rows are merged and have positive weight, one for each variable. `first` int32
    (n_rows,) is the first input row of each. `input_rows` int32 lists the input rows of all of
    them, ascending within each row, and `weights` float64 the weights of these. `start` int32
    (n_rows + 1,) is the position of each row in `input_rows`.
    """

    first: np.ndarray
    input_rows: np.ndarray
    start: np.ndarray
    weights: np.ndarray
    n_input_rows: int

    @property
    def sample_weight(self) -> np.ndarray:
        """The weight of each row, float64."""
        if self.n_merged == 0:
            return self.weights
        return np.add.reduceat(self.weights, self.start[:-1])

    @property
    def n_merged(self) -> int:
        return len(self.input_rows) - len(self.first)

    @property
    def weighted_inputs(self) -> np.ndarray:
        """The input rows with positive weight, ascending, int32."""
        return np.sort(self.input_rows)

    @property
    def weight_of_input(self) -> np.ndarray:
        """The weight of each input row, float64 (n_input_rows,)."""
        weight = np.zeros(self.n_input_rows)
        weight[self.input_rows] = self.weights
        return weight

    @property
    def row_of_input(self) -> np.ndarray:
        """The solver's row of each input row, int64 (n_input_rows,); -1 for weight 0."""
        row = np.full(self.n_input_rows, -1)
        row[self.input_rows] = np.repeat(np.arange(len(self.first)), self.n_inputs_of_row)
        return row

    @property
    def n_inputs_of_row(self) -> np.ndarray:
        """The number of input rows of each solver's row, int64 (n_rows,)."""
        return np.diff(self.start)

    def reordered(self, order: np.ndarray) -> RowMap:
        """Return the map for the rows in another order; row i is order[i] of these."""
        if self.n_merged == 0:
            first = self.first[order]
            return replace(self, first=first, input_rows=first, weights=self.weights[order])
        _, position, _ = self._members(order)
        start = np.concatenate(([0], np.cumsum(self.n_inputs_of_row[order]))).astype(np.int32)
        return replace(
            self,
            first=self.first[order],
            input_rows=self.input_rows[position],
            start=start,
            weights=self.weights[position],
        )

    def split(
        self, rows: np.ndarray, coef: np.ndarray, bound: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Split the coefficients (k, n) of `rows` (n,) among their input rows.

        Input rows are filled in order, each up to its weight times `bound` (n,). Returns (position
        in `rows`, input row, coefficients (k, m), bound) of the m input rows with nonzero
        coefficients.
        """
        index, position, before = self._members(rows)
        total, limit = np.abs(coef[:, index]), bound[index] * self.weights[position]
        share = filled(limit, total - before * bound[index], ROUNDING * total)
        kept = np.any(share != 0, axis=0)
        input_row = self.input_rows[position[kept]].astype(np.int64)
        return index[kept], input_row, np.copysign(share, coef[:, index])[:, kept], limit[kept]

    def count_filled(self, rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Count the input rows of each row with a nonzero share of `weight`, and with a full share.

        `weight` (n,) is split among the input rows as in `split`.
        """
        index, position, before = self._members(rows)
        weights, n = self.weights[position], len(rows)
        share = filled(weights, weight[index] - before, ROUNDING * weight[index])
        n_any = np.bincount(index[share != 0], minlength=n)
        return n_any, np.bincount(index[share == weights], minlength=n)

    def _members(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Expand rows to their input rows.

        Returns for each input row (position in `rows`, position in `input_rows`, total weight of
        the earlier input rows of its row).
        """
        if self.n_merged == 0:
            return np.arange(len(rows)), np.asarray(rows), np.zeros(len(rows))
        first = self.start[rows]
        counts = self.start[np.asarray(rows) + 1] - first
        begin = np.repeat(np.cumsum(counts) - counts, counts)
        index = np.repeat(np.arange(len(rows)), counts)
        position = first[index] + np.arange(len(index)) - begin
        weights = np.cumsum(self.weights[position], dtype=np.longdouble)
        before = np.concatenate(([0], weights))
        return index, position, (before[: len(position)] - before[begin]).astype(np.float64)


def all_different(sample_weight: np.ndarray) -> RowMap:
    """Merge nothing; leave out rows of weight 0. Weights are float64 (n,)."""
    n = len(sample_weight)
    if sample_weight.all():
        kept, weights = np.arange(n, dtype=np.int32), sample_weight
    else:
        kept = np.flatnonzero(sample_weight).astype(np.int32)
        weights = sample_weight[kept]
    return RowMap(kept, kept, np.arange(len(kept) + 1, dtype=np.int32), weights, n)


def find_duplicates(
    rows: Rows, targets: np.ndarray, sample_weight: np.ndarray, threads: int = 1
) -> RowMap:
    """Merge equal rows with equal `targets` (n,). Weights are float64 (n,).

    The merged rows ascend by their first input row. Nothing is merged if there are few duplicates,
    or for CSR rows or a precomputed kernel.
    """
    unmerged = all_different(sample_weight)
    kept = unmerged.first
    if len(kept) == 0 or not rows.is_dense or rows.columns is not None:
        return unmerged
    if len(kept) < rows.n_samples:
        rows, targets = rows.take(kept), targets[kept]
    keys = row_hashes(rows, threads=threads)
    keys += _words_of(targets)
    return _merged(unmerged, keys, partial(_are_equal, rows, targets, threads), threads)


def row_keys(rows: Rows) -> np.ndarray:
    """Return two hashes of each dense row, uint64 (n, 2), to compare rows of several machines."""
    return np.stack([row_hashes(rows, seed) for seed in (0, 1)], axis=1)


def duplicates_by_keys(keys: np.ndarray, targets: np.ndarray, sample_weight: np.ndarray) -> RowMap:
    """Merge rows by their `row_keys`, as `find_duplicates` does by their values."""
    unmerged = all_different(sample_weight)
    values = targets[unmerged.first].astype(np.float64)
    key, check = (keys[unmerged.first] + _words_of(values)[:, None]).T

    def are_equal(repeated: np.ndarray, first: np.ndarray) -> bool:
        return all(np.array_equal(array[repeated], array[first]) for array in (check, values))

    return _merged(unmerged, key, are_equal)


def _words_of(targets: np.ndarray) -> np.ndarray:
    """Return 64-bit words to add to the hashes of rows, different for different targets."""
    words = targets.astype(np.float64).view(np.uint64)
    words *= ODD
    return words


def _merged(
    unmerged: RowMap,
    key: np.ndarray,
    are_equal: Callable[[np.ndarray, np.ndarray], bool],
    threads: int = 1,
) -> RowMap:
    """Merge rows with equal keys, uint64 (n,).

    `are_equal` takes the rows that repeat a key and the first row of each of these keys. It
    compares the rows themselves, because equal hashes do not prove equality.
    """
    first = _core.first_equal(np.ascontiguousarray(key), threads)
    is_first = first == np.arange(len(key), dtype=np.int32)
    if np.count_nonzero(is_first) > (1 - MERGING_THRESHOLD) * len(key):
        return unmerged
    repeated = np.flatnonzero(~is_first).astype(np.int32)
    if not are_equal(repeated, first[repeated]):
        return unmerged
    # merged rows are in the order of their first rows
    merged = (np.cumsum(is_first) - 1)[first]
    listed = group_order(merged)
    start = np.concatenate(([0], np.cumsum(np.bincount(merged)))).astype(np.int32)
    return replace(
        unmerged,
        first=unmerged.first[is_first],
        input_rows=unmerged.first[listed],
        start=start,
        weights=unmerged.weights[listed],
    )


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
    row_id = np.unique(row_hashes(rows), return_inverse=True)[1]
    key = part.astype(np.int64) * rows.n_samples + row_id[row]
    # number the variables of each sign and key, and pair those of equal numbers
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
        positive, negative = (_values_of(rows, row[side[batch]]) for side in (a, b))
        equal[batch] = (positive == negative).all(axis=1)
    return a[equal], b[equal]


def _are_equal(
    rows: Rows, targets: np.ndarray, threads: int, repeated: np.ndarray, first: np.ndarray
) -> bool:
    """Return whether all rows `repeated` equal the rows `first`, and have their targets."""
    if not np.array_equal(targets[repeated], targets[first]):
        return False
    if rows.dense is not None:
        return _core.are_equal_rows(rows.stored.view(np.uint8), repeated, first, threads)
    return all(
        np.array_equal(own, other)
        for batch in slices(len(repeated), BATCH_SIZE // rows.row_size)
        for own, other in zip(*(rows.csr.take(of[batch]) for of in (repeated, first)), strict=True)
    )


def _values_of(rows: Rows, indices: np.ndarray) -> np.ndarray:
    """Return dense rows as stored; packed rows are unpacked."""
    return rows.take(indices).features if rows.is_packed else rows.stored[indices]
