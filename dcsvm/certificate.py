"""What can be said about a solution: objective, KKT violation, duality gap, error of the kernel.

The solver works on float32 kernel values. Here kernel values are float64, on all rows or on those
that matter: free variables, those nearest to violating, and a random sample of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.formulation import BoxProblem
from dcsvm.kernels import KernelRows
from dcsvm.locality import Locality

RANDOM_ROWS = 10_000
NEAREST_ROWS = 1_000
OBJECTIVE_ERROR = 2e-7  # relative; above it all support vectors are checked
SAFETY = 4.0  # times the error seen: rows nearer than that to violating are checked too


@dataclass(frozen=True)
class Certificate:
    """Optimality of an alpha. `gap` is None for an indefinite kernel: the answer is a stationary
    point. `kernel_error` is the largest difference seen between the gradient it is based on and the
    one from float64 kernel values, on `n_checked` rows."""

    objective: float
    violation: float
    gap: float | None
    kernel_error: float
    n_checked: int

    @property
    def relative_gap(self) -> float | None:
        """The gap over the size of the objective."""
        if self.gap is None:
            return None
        return self.gap / max(abs(self.objective), float(np.finfo(float).tiny))


def check(
    data: KernelRows,
    problem: BoxProblem,
    alpha: np.ndarray,
    gradient: np.ndarray,
    locality: Locality,
    *,
    neglected: float,
    every_row: bool,
    seed: int,
    threads: int,
) -> Certificate:
    """Replace the checked entries of `gradient` by their float64 values and state the optimality.
    `neglected` bounds what the solver left out of any entry.

    After it no row that could violate rests on float32 kernel values, nor does the objective where
    they would show in it, as far as the error seen on the random rows holds for the others. The gap
    has terms of free and of violating variables only, so it rests on float64 values too.
    """
    remaining = np.ones(problem.size, bool)
    difference = np.zeros(problem.size)
    checked = (
        np.arange(problem.size) if every_row else _rows_to_check(problem, alpha, gradient, seed)
    )
    while len(checked):
        exact = gradient_of(data, problem, alpha, checked, locality, threads, float64=True)
        difference[checked] = exact - gradient[checked]
        gradient[checked] = exact
        remaining[checked] = False
        error = float(np.max(np.abs(difference)))
        needed = np.abs(gradient) < neglected + SAFETY * error
        if _doubt(problem, alpha, gradient, difference, remaining) > OBJECTIVE_ERROR:
            needed |= alpha != 0
        checked = np.flatnonzero(needed & remaining)
    objective, violation, gap, _ = _core.optimality(problem, alpha, gradient)
    neglected = locality.neglected(alpha)  # of the checked rows; of the others only the sign counts
    room = np.maximum(alpha - problem.lower, problem.upper - alpha).sum()
    gap += float(neglected * room)
    return Certificate(
        objective,
        violation + neglected,
        gap if data.kernel.is_positive_semidefinite else None,
        kernel_error=0.0 if every_row else float(np.max(np.abs(difference))),
        n_checked=int(np.count_nonzero(~remaining)),
    )


def gradient_of(
    data: KernelRows,
    problem: BoxProblem,
    alpha: np.ndarray,
    variables: np.ndarray,
    locality: Locality,
    threads: int,
    *,
    float64: bool,
) -> np.ndarray:
    """Gradient of some variables (ascending), from float64 or from float32 kernel values; those
    out of reach are left out."""
    row = np.arange(problem.size, dtype=np.int32) if problem.row is None else problem.row
    support = np.flatnonzero(alpha)
    gradient = np.empty(len(variables))
    ends, support_ends = (np.searchsorted(v, locality.start) for v in (variables, support))
    for group in range(locality.n_groups):
        own = slice(ends[group], ends[group + 1])
        sources = support[support_ends[group] : support_ends[group + 1]]
        if own.start == own.stop:
            continue
        gradient[own] = _core.kernel_product(
            data.setup,
            data.points,
            row[variables[own]].astype(np.int32),
            data.points,
            row[sources].astype(np.int32),
            alpha[sources],
            float64,
            threads,
            locality.between if float64 else locality.within,
        )[:, 0]
    return gradient - problem.linear[variables]


def _doubt(problem, alpha, gradient, difference, remaining) -> float:
    """Relative error of the objective from the support vectors that were not checked, estimated
    from those that were."""
    weight = np.abs(alpha)
    unchecked = weight[remaining].sum()
    if unchecked == 0:
        return 0.0
    seen = abs(np.dot(alpha, difference)) / max(weight[~remaining].sum(), 1e-300)
    objective = abs(np.dot(alpha, gradient - problem.linear))
    return float(seen * unchecked / max(objective, 1e-300))


def _rows_to_check(problem, alpha, gradient, seed) -> np.ndarray:
    free = (alpha > problem.lower) & (alpha < problem.upper)
    checked = free.copy()
    bounded = np.flatnonzero(~free)
    if len(bounded) > NEAREST_ROWS:
        near = np.argpartition(np.abs(gradient[bounded]), NEAREST_ROWS)[:NEAREST_ROWS]
        checked[bounded[near]] = True
    else:
        checked[bounded] = True
    others = np.flatnonzero(~checked)
    rng = np.random.default_rng(seed)
    checked[rng.choice(others, size=min(RANDOM_ROWS, len(others)), replace=False)] = True
    return np.flatnonzero(checked)
