"""What a level left out: the quantities of Theorem 1, from a sample where rows are many.

D(pi) is the sum of |K(x, z)| over pairs of rows of different clusters. The theorem bounds
f(alpha_bar) - f(alpha*) by 1/2 C^2 D(pi), alpha_bar being the clusters' solutions put together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.data.slices import slices
from dcsvm.kernel.kernel_rows import Evaluation, KernelRows, Reach
from dcsvm.problem.formulation import BoxProblem

SAMPLED_ROWS = 1024
SAMPLED_COLUMNS = 16384
VALUES_AT_ONCE = 2**20
PRODUCT_AT_ONCE = 10**9  # kernel values of a sum between two words of progress
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

    @staticmethod
    def of(
        problem: BoxProblem, alpha: np.ndarray, cluster: np.ndarray, objective: float
    ) -> LevelState:
        some = np.flatnonzero(alpha)
        return LevelState(cluster, problem.rows[some], alpha[some], problem.linear[some], objective)


@dataclass(frozen=True, eq=False)
class LevelMeasure:
    """Measures levels of rows with a kernel on them. `advance` is told after every step how many
    rows it took; `stop` ends it with Stopped."""

    data: KernelRows
    stop: _core.Stop
    advance: Callable[[int], None]

    def off_diagonal_mass(
        self, cluster: np.ndarray, weight: np.ndarray, rng: np.random.Generator
    ) -> float:
        """D(pi), a row counting as many times as its `weight` float64 (n,); exact where there are
        no more rows than are sampled."""
        n_rows = len(cluster)
        rows, columns = _some(n_rows, SAMPLED_ROWS, rng), _some(n_rows, SAMPLED_COLUMNS, rng)
        sums = self._sums_over_others(cluster, rows, columns, weight[columns], size=True)
        return float(weight[rows] @ sums * (n_rows / len(rows)) * (n_rows / len(columns)))

    def glued_objective(self, level: LevelState, reach: Reach, rng: np.random.Generator) -> float:
        """f(alpha_bar) over all rows: the clusters' objectives and what couples them. Exact but for
        kernel values out of reach where there are not too many pairs of support vectors."""
        n_sv = len(level.support)
        if n_sv**2 <= MOST_PAIRS:
            support, product = level.support.astype(np.int32), np.empty(n_sv)
            how = Evaluation(reach=reach, stop=self.stop)
            for some in slices(n_sv, PRODUCT_AT_ONCE // max(n_sv, 1)):
                product[some] = self.data.product(
                    level.alpha, support, target_rows=support[some], how=how
                )[:, 0]
                self.advance(some.stop - some.start)
            return float(np.dot(level.alpha, 0.5 * product - level.linear))
        chosen = _some(n_sv, SAMPLED_ROWS, rng)
        sums = self._sums_over_others(
            level.cluster, level.support[chosen], level.support, level.alpha, size=False
        )
        coupling = float(np.dot(level.alpha[chosen], sums)) * (n_sv / max(len(chosen), 1))
        return level.objective + 0.5 * coupling

    def _sums_over_others(self, cluster, rows, columns, weights, *, size: bool) -> np.ndarray:
        """Per row the weighted sum of kernel values (their sizes) with columns of other
        clusters."""
        sums = np.zeros(len(rows))
        columns = columns.astype(np.int32)
        for part in slices(len(rows), VALUES_AT_ONCE // max(len(columns), 1)):
            self.stop.check()
            some = rows[part].astype(np.int32)
            kernel_values = self.data.matrix(columns, target_rows=some)
            if size:
                np.abs(kernel_values, out=kernel_values)
            kernel_values[cluster[some][:, None] == cluster[columns]] = 0.0
            sums[part] = kernel_values.astype(np.float64) @ weights
            self.advance(len(some))
        return sums


def rows_to_measure(level: LevelState) -> int:
    """About how many rows measuring a level will tell `advance` of."""
    n_sv = len(level.support)
    return min(len(level.cluster), SAMPLED_ROWS) + (
        n_sv if n_sv**2 <= MOST_PAIRS else min(n_sv, SAMPLED_ROWS)
    )


def _some(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(n) if n <= size else np.sort(rng.choice(n, size, replace=False))
