"""Sums of alpha times kernel values for several problems at once: gradients, decision values.

Problems over the same rows, such as folds, share most of their support vectors: a kernel value is
computed once for all of them, as a column of weights for each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.data.sorting import group_order
from dcsvm.kernel.kernel_rows import Evaluation, KernelRows

# Of small units: kernel values of all their rows, and terms of all sums, 40 bytes each for a while.
FEWEST_UNITS, MOST_VALUES, MOST_TERMS = 64, 2**20, 2**21


@dataclass(frozen=True, eq=False)
class Terms:
    """Variables as the sums see them: the `row` of K, int32, of each, its `unit` (only variables
    of one unit share kernel values), and the `family` of units over nearly the same rows."""

    row: np.ndarray
    unit: np.ndarray
    family: np.ndarray

    def take(self, some) -> Terms:
        return Terms(self.row[some], self.unit[some], self.family[some])


@dataclass(frozen=True, eq=False)
class Sources:
    """What a sum runs over: alpha of each source, its `row` of K, which may repeat, and which of
    `n_columns` sums it counts in."""

    row: np.ndarray
    column: np.ndarray
    alpha: np.ndarray
    n_columns: int


def sums_of_units(
    data: KernelRows, targets: Terms, sources: Terms, alpha: np.ndarray, how: Evaluation
) -> tuple[np.ndarray, int]:
    """Of every target the sum of alpha K over the sources of its unit, float64; and how many
    kernel values that took. Raises Stopped."""
    small = _sums_of_small_units(data, targets, sources, alpha, how)
    if small is not None:
        return small
    sums, n_values = np.zeros(len(targets.row)), 0
    by_target, by_source = _Places(targets.family), _Places(sources.family)
    for family in by_target.keys:
        t, s = by_target.of(family), by_source.of(family)
        for own, other in _apart_or_together(targets.take(t), sources.take(s)):
            rows, place = _distinct(targets.row[t[own]])
            units, column = np.unique(sources.unit[s[other]], return_inverse=True)
            one = Sources(sources.row[s[other]], column, alpha[s[other]], len(units))
            product, n = weighted_sums(data, rows, one, how)
            wanted = np.searchsorted(units, targets.unit[t[own]])
            sums[t[own]] = product[place, wanted]
            n_values += n
    return sums, n_values


def _sums_of_small_units(
    data: KernelRows, targets: Terms, sources: Terms, alpha: np.ndarray, how: Evaluation
) -> tuple[np.ndarray, int] | None:
    """The same where units are many and all kernel values of their rows few: these once, and then
    each unit takes its own. None for others. Raises Stopped."""
    if len(targets.row) == 0 or len(sources.row) == 0:
        return None
    counts = np.bincount(sources.unit, minlength=int(targets.unit.max()) + 1)
    n_sources = counts[targets.unit]
    if np.count_nonzero(counts) < FEWEST_UNITS or n_sources.sum() > MOST_TERMS:
        return None
    rows, place = np.unique(targets.row, return_inverse=True)
    others, other = np.unique(sources.row, return_inverse=True)
    n = len(others)
    if len(rows) * n > MOST_VALUES:
        return None
    each = np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), np.ones(n), n
    values = data.product(
        each, others.astype(np.int32), target_rows=rows.astype(np.int32), how=how
    ).reshape(-1)
    order = group_order(sources.unit)
    first = (np.cumsum(counts) - counts)[targets.unit]
    of_target = np.repeat(np.arange(len(place)), n_sources)
    begin = np.repeat(np.cumsum(n_sources) - n_sources - first, n_sources)
    own = order[np.arange(len(of_target)) - begin]
    terms = alpha[own] * values[place[of_target] * n + other[own]]
    return np.bincount(of_target, terms, len(place)), len(rows) * n


def weighted_sums(
    data: KernelRows, target_rows: np.ndarray, sources: Sources, how: Evaluation
) -> tuple[np.ndarray, int]:
    """Sums of alpha K, float64 (n_targets, n_columns), and the number of kernel values. Raises
    Stopped."""
    n_columns = sources.n_columns
    if len(sources.row) == 0:
        return np.zeros((len(target_rows), n_columns)), 0
    rows, place = _distinct(sources.row)
    if n_columns == 1:
        weights = np.bincount(place, sources.alpha, minlength=len(rows))
    else:
        order = group_order(place)
        indptr = np.concatenate(([0], np.cumsum(np.bincount(place, minlength=len(rows)))))
        columns = sources.column[order].astype(np.int32)
        weights = indptr, columns, sources.alpha[order], n_columns
    product = data.product(
        weights, rows.astype(np.int32), target_rows=target_rows.astype(np.int32), how=how
    )
    return product, len(target_rows) * len(rows)


def _apart_or_together(targets: Terms, sources: Terms):
    """(targets, sources) as index arrays that are best multiplied in one product: the whole family
    where its units share enough rows, else each unit. Targets of units without sources have none.
    """
    by_target, by_source = _Places(targets.unit), _Places(sources.unit)
    units = np.intersect1d(by_target.keys, by_source.keys, assume_unique=True)
    apart = [(by_target.of(unit), by_source.of(unit)) for unit in units]
    if len(units) < 2:
        return apart
    own, other = (np.sort(np.concatenate(side)) for side in zip(*apart, strict=True))
    n_together = len(np.unique(targets.row[own])) * len(np.unique(sources.row[other]))
    n_apart = sum(len(t) * len(s) for t, s in apart)
    return [(own, other)] if n_together < n_apart else apart


class _Places:
    """The places of equal keys."""

    def __init__(self, keys: np.ndarray):
        self.order = np.argsort(keys, kind="stable")
        self.sorted = keys[self.order]
        self.keys = self.sorted[np.flatnonzero(np.diff(self.sorted, prepend=-1))]

    def of(self, key: int) -> np.ndarray:
        return self.order[slice(*np.searchsorted(self.sorted, [key, key + 1]))]


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows, ascending, and the place of each of `rows` among them."""
    if np.all(np.diff(rows) > 0):
        return rows, np.arange(len(rows))
    return np.unique(rows, return_inverse=True)
