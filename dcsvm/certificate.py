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
from dcsvm.locality import Locality, Reach

RANDOM_ROWS = 10_000
NEAREST_ROWS = 1_000
OBJECTIVE_ERROR = 2e-7  # relative; above it all support vectors are checked
SAFETY = 4.0  # times the error seen: rows nearer than that to violating are checked too


@dataclass(frozen=True)
class Certificate:
    """Optimality of an alpha. `gap` is None for an indefinite kernel: the answer is a stationary
    point. `kernel_error` is the largest difference seen between the gradient it is based on and the
    one from float64 kernel values, on `n_checked` rows. `multipliers` are those of the sums kept;
    `parts` the certificates of the problems where there are several. Of a run that was stopped
    nothing is known of the kernel error, and where not all rows are checked of the objective."""

    objective: float | None
    violation: float
    gap: float | None
    kernel_error: float | None
    n_checked: int
    multipliers: tuple[float, ...] = ()
    parts: tuple[Certificate, ...] = ()

    @staticmethod
    def of_all(parts: list[Certificate]) -> Certificate:
        """What is true of several problems together."""

        def over_all(function, values):
            return None if None in values else function(values)

        return Certificate(
            objective=over_all(sum, [part.objective for part in parts]),
            violation=max(part.violation for part in parts),
            gap=over_all(sum, [part.gap for part in parts]),
            kernel_error=over_all(max, [part.kernel_error for part in parts]),
            n_checked=sum(part.n_checked for part in parts),
            parts=tuple(parts),
        )

    @property
    def relative_gap(self) -> float | None:
        """The gap over the size of the objective."""
        if self.gap is None or self.objective is None:
            return None
        return self.gap / max(abs(self.objective), float(np.finfo(float).tiny))


def check(
    data: KernelRows,
    problem: BoxProblem,
    alpha: np.ndarray,
    gradient: np.ndarray,
    units: np.ndarray,
    locality: Locality,
    *,
    neglected: float,
    every_row: bool,
    seed: int,
    threads: int,
    stop: _core.Stop,
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
        np.arange(problem.size)
        if every_row
        else _rows_to_check(problem, alpha, _reduced(problem, alpha, gradient), seed)
    )
    while len(checked):
        exact = gradient_of(
            data, problem, alpha, checked, units, locality.between, threads, float64=True, stop=stop
        )
        difference[checked] = exact - gradient[checked]
        gradient[checked] = exact
        remaining[checked] = False
        error = float(np.max(np.abs(difference)))
        needed = np.abs(_reduced(problem, alpha, gradient)) < neglected + SAFETY * error
        if _doubt(problem, alpha, gradient, difference, remaining) > OBJECTIVE_ERROR:
            needed |= alpha != 0
        checked = np.flatnonzero(needed & remaining)
    objective, violation, gap, multipliers = _core.optimality(problem, alpha, gradient)
    neglected = locality.neglected(alpha)  # of the checked rows; of the others only the sign counts
    room = np.maximum(alpha - problem.lower, problem.upper - alpha).sum()
    gap += float(neglected * room)
    return Certificate(
        objective,
        violation + neglected * (1 if problem.group is None else 2),
        gap if data.kernel.is_positive_semidefinite else None,
        kernel_error=0.0 if every_row else float(np.max(np.abs(difference))),
        n_checked=int(np.count_nonzero(~remaining)),
        multipliers=tuple(multipliers),
    )


def _reduced(problem: BoxProblem, alpha: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The gradient with the multipliers of the sums that are kept: zero at the optimum."""
    if problem.group is None:
        return gradient
    multipliers = np.append(_core.optimality(problem, alpha, gradient)[3], 0.0)
    return gradient + multipliers[problem.group]


def gradient_of(
    data: KernelRows,
    problem: BoxProblem,
    alpha: np.ndarray,
    variables: np.ndarray,
    units: np.ndarray,
    reach: Reach,
    threads: int,
    *,
    float64: bool,
    stop: _core.Stop | None = None,
) -> np.ndarray:
    """Gradient of some variables (ascending), from float64 or from float32 kernel values; those
    between units and out of reach are left out. `units` are the places where variables begin that
    share kernel values with no others, and the end. Raises Stopped."""
    row = problem.rows
    support = np.flatnonzero(alpha)
    gradient = np.empty(len(variables))
    ends, support_ends = (np.searchsorted(v, units) for v in (variables, support))
    for unit in range(len(units) - 1):
        own = slice(ends[unit], ends[unit + 1])
        sources = support[support_ends[unit] : support_ends[unit + 1]]
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
            reach,
            stop,
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
