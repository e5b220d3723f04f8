"""Kernel sums of several problems at once, for gradients and decision values.

Problems over the same rows, such as folds, share most of their support vectors. Each kernel value
is therefore computed once for all problems, each of which has its own column of weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.data.sorting import distinct, group_order
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows, Weights

# Limits of _small_component_sums: the fewest components, the most kernel values, and the most terms
# of all sums (40 bytes each).
MIN_COMPONENTS, MAX_VALUES, MAX_TERMS = 64, 2**20, 2**21


@dataclass(frozen=True, eq=False)
class TermIndex:
    """Indices of variables in kernel sums.

    `row` int32 is the row of K of each variable. `component` is its component: kernel values of
    variables in different components count as 0. `fold_family` is its fold family: the components
    over nearly the same rows.
    """

    row: np.ndarray
    component: np.ndarray
    fold_family: np.ndarray

    def take(self, variables: np.ndarray) -> TermIndex:
        return TermIndex(
            self.row[variables], self.component[variables], self.fold_family[variables]
        )


@dataclass(frozen=True, eq=False)
class WeightedSources:
    """Sources of weighted sums: row of K (may repeat), column of the sums, and alpha of each."""

    row: np.ndarray
    column: np.ndarray
    alpha: np.ndarray
    n_columns: int


def component_sums(
    data: KernelRows,
    targets: TermIndex,
    sources: TermIndex,
    alpha: np.ndarray,
    how: KernelEvalOptions,
) -> tuple[np.ndarray, int]:
    """Compute the sum of alpha K over the sources in the component of each target.

    Returns the sums, float64 (n_targets,), and the number of kernel evaluations. Raises Stopped.
    """
    small = _small_component_sums(data, targets, sources, alpha, how)
    if small is not None:
        return small
    sums, n_values = np.zeros(len(targets.row)), 0
    by_target, by_source = _Groups(targets.fold_family), _Groups(sources.fold_family)
    for family in by_target.keys:
        t, s = by_target.of(family), by_source.of(family)
        for own, other in _batches(targets.take(t), sources.take(s)):
            rows, position = _distinct(targets.row[t[own]])
            units, column = np.unique(sources.component[s[other]], return_inverse=True)
            batch = WeightedSources(sources.row[s[other]], column, alpha[s[other]], len(units))
            product, n = weighted_sums(data, rows, batch, how)
            sums[t[own]] = product[position, np.searchsorted(units, targets.component[t[own]])]
            n_values += n
    return sums, n_values


def _small_component_sums(
    data: KernelRows,
    targets: TermIndex,
    sources: TermIndex,
    alpha: np.ndarray,
    how: KernelEvalOptions,
) -> tuple[np.ndarray, int] | None:
    """Compute the sums of many components from one small kernel matrix.

    Returns None for few components or a large matrix. Raises Stopped.
    """
    if len(targets.row) == 0 or len(sources.row) == 0:
        return None
    counts = np.bincount(sources.component, minlength=int(targets.component.max()) + 1)
    n_sources = counts[targets.component]
    if np.count_nonzero(counts) < MIN_COMPONENTS or n_sources.sum() > MAX_TERMS:
        return None
    rows, row = np.unique(targets.row, return_inverse=True)
    others, other = np.unique(sources.row, return_inverse=True)
    n = len(others)
    if len(rows) * n > MAX_VALUES:
        return None
    identity = np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), np.ones(n), n
    values = data.product(
        identity, others.astype(np.int32), target_rows=rows.astype(np.int32), how=how
    ).reshape(-1)
    order = group_order(sources.component)
    first = (np.cumsum(counts) - counts)[targets.component]
    of_target = np.repeat(np.arange(len(row)), n_sources)
    begin = np.repeat(np.cumsum(n_sources) - n_sources - first, n_sources)
    own = order[np.arange(len(of_target)) - begin]
    terms = alpha[own] * values[row[of_target] * n + other[own]]
    return np.bincount(of_target, terms, len(row)), len(rows) * n


def weighted_sums(
    data: KernelRows, target_rows: np.ndarray, sources: WeightedSources, how: KernelEvalOptions
) -> tuple[np.ndarray, int]:
    """Compute sums of alpha K, float64 (n_targets, n_columns).

    Returns also the number of kernel evaluations. Raises Stopped.
    """
    n_columns = sources.n_columns
    if len(sources.row) == 0:
        return np.zeros((len(target_rows), n_columns)), 0
    rows, position = _distinct(sources.row)
    weights: Weights
    if n_columns == 1:
        weights = np.bincount(position, sources.alpha, minlength=len(rows))
    else:
        order = group_order(position)
        indptr = np.concatenate(([0], np.cumsum(np.bincount(position, minlength=len(rows)))))
        columns = sources.column[order].astype(np.int32)
        weights = indptr, columns, sources.alpha[order], n_columns
    product = data.product(
        weights, rows.astype(np.int32), target_rows=target_rows.astype(np.int32), how=how
    )
    return product, len(target_rows) * len(rows)


def _batches(targets: TermIndex, sources: TermIndex) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (targets, sources) index arrays, each to be evaluated in one kernel product.

    All components form one batch if they share enough rows; otherwise each is a batch. Targets of
    components without sources are omitted.
    """
    by_target, by_source = _Groups(targets.component), _Groups(sources.component)
    units = np.intersect1d(by_target.keys, by_source.keys, assume_unique=True)
    apart = [(by_target.of(unit), by_source.of(unit)) for unit in units]
    if len(units) < 2:
        return apart
    own, other = (np.sort(np.concatenate(side)) for side in zip(*apart, strict=True))
    n_together = len(distinct(targets.row[own])) * len(distinct(sources.row[other]))
    n_apart = sum(len(t) * len(s) for t, s in apart)
    return [(own, other)] if n_together < n_apart else apart


class _Groups:
    """Indices grouped by equal keys."""

    def __init__(self, keys: np.ndarray):
        self.order = np.argsort(keys, kind="stable")
        self.sorted = keys[self.order]
        self.keys = self.sorted[np.flatnonzero(np.diff(self.sorted, prepend=-1))]

    def of(self, key: int) -> np.ndarray:
        return self.order[slice(*np.searchsorted(self.sorted, [key, key + 1]))]


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows, ascending, and the position of each of `rows` among them."""
    if np.all(np.diff(rows) > 0):
        return rows, np.arange(len(rows))
    return np.unique(rows, return_inverse=True)
