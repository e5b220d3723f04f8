"""What can be said about a solution: objective, KKT violation, duality gap, error of the kernel.

The solver works on float32 kernel values. Here kernel values are float64, on all rows or on those
that matter: free variables, those nearest to violating, and a random sample of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.locality import Locality
from dcsvm.problem.formulation import BoxProblem

RANDOM_ROWS = 10_000  # of all problems together
NEAREST_ROWS = 1_000
FEWEST_ROWS = 500  # of a problem, random and nearest ones, however many problems there are
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


@dataclass(eq=False)
class Checked:
    """How far a check is: `is_exact` uint8, which entries of the gradient are float64 by now, and
    `difference` float64, what that changed in them."""

    is_exact: np.ndarray
    difference: np.ndarray

    @staticmethod
    def nothing(size: int) -> Checked:
        return Checked(np.zeros(size, np.uint8), np.zeros(size))

    def part(self, own: slice) -> Checked:
        """Views of the entries of one problem."""
        return Checked(self.is_exact[own], self.difference[own])

    def replace(self, gradient: np.ndarray, some: np.ndarray, exact: np.ndarray) -> None:
        self.difference[some] = exact - gradient[some]
        gradient[some] = exact
        self.is_exact[some] = 1


def check(
    problem: BoxProblem,
    parts: list[slice],
    alpha: np.ndarray,
    gradient: np.ndarray,
    checked: Checked,
    exact_gradients: Callable[[np.ndarray], Iterator[tuple[np.ndarray, np.ndarray]]],
    data: KernelRows,
    locality: Locality,
    *,
    neglected: float,
    every_row: bool,
    n_problems: int,
    seed: int,
) -> list[Certificate]:
    """Replace the checked entries of `gradient` by their float64 values, those of some variables
    (ascending) that `exact_gradients` gives bit by bit, and state the optimality of each problem in
    `parts`, none of them empty. `checked` is where the check begins, and kept up to date.
    `neglected` bounds what the solver left out of any entry, `n_problems` share the number of rows
    to sample.

    After it no row that could violate rests on float32 kernel values, nor does the objective where
    they would show in it, as far as the error seen on the random rows holds for the others. The gap
    has terms of free and of violating variables only, so it rests on float64 values too.
    """
    # rows that come first are drawn in all problems, so that they are computed once for all
    draw = np.random.default_rng(seed).permutation(data.rows.n_samples)
    checks = [
        _Check(problem.part(own), alpha[own], gradient[own], checked.part(own)) for own in parts
    ]
    wanted = [
        np.arange(one.size) if every_row else one.first_variables(draw, n_problems)
        for one in checks
    ]
    while any(len(some) for some in wanted):
        variables = np.concatenate(
            [own.start + some for own, some in zip(parts, wanted, strict=True)]
        )
        for some, exact in exact_gradients(variables[checked.is_exact[variables] == 0]):
            checked.replace(gradient, some, exact)
        wanted = [
            one.doubtful(neglected) if len(some) else some
            for one, some in zip(checks, wanted, strict=True)
        ]
    is_convex = data.kernel.is_positive_semidefinite
    return [one.certificate(locality, is_convex, every_row) for one in checks]


class _Check:
    """One problem of which more and more entries of the gradient are float64, in place."""

    def __init__(
        self, problem: BoxProblem, alpha: np.ndarray, gradient: np.ndarray, checked: Checked
    ):
        self.problem, self.alpha, self.gradient, self.checked = problem, alpha, gradient, checked
        self.size = problem.size

    @property
    def remaining(self) -> np.ndarray:
        return self.checked.is_exact == 0

    @property
    def error(self) -> float:
        return float(np.max(np.abs(self.checked.difference)))

    def first_variables(self, draw: np.ndarray, n_problems: int) -> np.ndarray:
        n_random, n_nearest = (
            max(n // n_problems, FEWEST_ROWS) for n in (RANDOM_ROWS, NEAREST_ROWS)
        )
        gradient = _reduced(self.problem, self.alpha, self.gradient)
        free = (self.alpha > self.problem.lower) & (self.alpha < self.problem.upper)
        checked = free.copy()
        bounded = np.flatnonzero(~free)
        if len(bounded) > n_nearest:
            near = np.argpartition(np.abs(gradient[bounded]), n_nearest)[:n_nearest]
            bounded = bounded[near]
        checked[bounded] = True
        others = np.flatnonzero(~checked)
        if len(others) > n_random:
            drawn = draw[self.problem.rows[others]]
            others = others[np.argpartition(drawn, n_random)[:n_random]]
        checked[others] = True
        return np.flatnonzero(checked)

    def doubtful(self, neglected: float) -> np.ndarray:
        """Variables that might violate, or show in the objective, and were not checked yet."""
        reduced = _reduced(self.problem, self.alpha, self.gradient)
        needed = np.abs(reduced) < neglected + SAFETY * self.error
        if self._objective_error() > OBJECTIVE_ERROR:
            needed |= self.alpha != 0
        return np.flatnonzero(needed & self.remaining)

    def _objective_error(self) -> float:
        """Relative error of the objective from the support vectors that were not checked, estimated
        from those that were."""
        weight, remaining = np.abs(self.alpha), self.remaining
        unchecked = weight[remaining].sum()
        if unchecked == 0:
            return 0.0
        checked = max(weight[~remaining].sum(), 1e-300)
        seen = abs(np.dot(self.alpha, self.checked.difference)) / checked
        objective = abs(np.dot(self.alpha, self.gradient - self.problem.linear))
        return float(seen * unchecked / max(objective, 1e-300))

    def certificate(self, locality: Locality, is_convex: bool, every_row: bool) -> Certificate:
        problem, alpha = self.problem, self.alpha
        objective, violation, gap, multipliers = _core.optimality(problem, alpha, self.gradient)
        # of the checked rows; of the others only the sign counts
        neglected = locality.neglected(alpha)
        room = np.maximum(alpha - problem.lower, problem.upper - alpha).sum()
        gap += float(neglected * room)
        return Certificate(
            objective,
            violation + neglected * (1 if problem.sum_of is None else 2),
            gap if is_convex else None,
            kernel_error=0.0 if every_row else self.error,
            n_checked=int(np.count_nonzero(self.checked.is_exact)),
            multipliers=tuple(multipliers),
        )


def _reduced(problem: BoxProblem, alpha: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The gradient with the multipliers of the sums that are kept: zero at the optimum."""
    if problem.sum_of is None:
        return gradient
    multipliers = np.append(_core.optimality(problem, alpha, gradient)[3], 0.0)
    return gradient + multipliers[problem.sum_of]
