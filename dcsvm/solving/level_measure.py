"""What a level left out: the quantities of Theorem 1, from a sample where rows are many.

D(pi) is the sum of |K(x, z)| over pairs of rows of different clusters. The theorem bounds
f(alpha_bar) - f(alpha*) by 1/2 C^2 D(pi), alpha_bar being the clusters' solutions put together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.locality import Reach

SAMPLED_ROWS = 1024
SAMPLED_COLUMNS = 16384
VALUES_AT_ONCE = 2**20
MOST_PAIRS = 10**10  # of support vectors; with more of them some are sampled


@dataclass(frozen=True, eq=False)
class LevelState:
    """A solved level: `cluster` int32 (n,) of the rows, the rows `support` with their signed
    `alpha` and `linear` term, and the sum of the clusters' objectives."""

    cluster: np.ndarray
    support: np.ndarray
    alpha: np.ndarray
    linear: np.ndarray
    objective: float


def off_diagonal_mass(
    data: KernelRows,
    cluster: np.ndarray,
    copies: np.ndarray,
    rng: np.random.Generator,
    threads: int,
) -> float:
    """D(pi), a row counting as many times as it has `copies`, float64 (n,); exact where there are
    no more rows than are sampled."""
    n_rows = len(cluster)
    rows, columns = _some(n_rows, SAMPLED_ROWS, rng), _some(n_rows, SAMPLED_COLUMNS, rng)
    sums = _sums_over_others(data, cluster, rows, columns, copies[columns], threads, size=True)
    return float(copies[rows] @ sums * (n_rows / len(rows)) * (n_rows / len(columns)))


def glued_objective(
    data: KernelRows, level: LevelState, reach: Reach, rng: np.random.Generator, threads: int
) -> float:
    """f(alpha_bar) over all rows: the clusters' objectives and what couples them. Exact but for
    kernel values out of reach where there are not too many pairs of support vectors."""
    n_sv = len(level.support)
    if n_sv**2 <= MOST_PAIRS:
        support = level.support.astype(np.int32)
        product = _core.kernel_product(
            data.setup,
            data.points,
            support,
            data.points,
            support,
            level.alpha,
            False,
            threads,
            reach,
        )[:, 0]
        return float(np.dot(level.alpha, 0.5 * product - level.linear))
    chosen = _some(n_sv, SAMPLED_ROWS, rng)
    sums = _sums_over_others(
        data, level.cluster, level.support[chosen], level.support, level.alpha, threads, size=False
    )
    coupling = float(np.dot(level.alpha[chosen], sums)) * (n_sv / max(len(chosen), 1))
    return level.objective + 0.5 * coupling


def _some(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(n) if n <= size else np.sort(rng.choice(n, size, replace=False))


def _sums_over_others(data, cluster, rows, columns, weights, threads, *, size) -> np.ndarray:
    """Per row the weighted sum of kernel values (their sizes) with columns of other clusters."""
    sums = np.zeros(len(rows))
    columns = columns.astype(np.int32)
    step = max(1, VALUES_AT_ONCE // max(len(columns), 1))
    for begin in range(0, len(rows), step):
        some = rows[begin : begin + step].astype(np.int32)
        values = _core.kernel_matrix(data.setup, data.points, some, data.points, columns, threads)
        if size:
            np.abs(values, out=values)
        values[cluster[some][:, None] == cluster[columns]] = 0.0
        sums[begin : begin + len(some)] = values.astype(np.float64) @ weights
    return sums
