"""What can be said about a solution: objective, KKT violation, duality gap, error of the kernel.

The solver works on float32 kernel values. Here kernel values are float64, on all rows or on those
that matter: free variables, those nearest to violating, and a random sample of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import Reach
from dcsvm.problem.formulation import BoxProblem
from dcsvm.solving.iterate import Iterate

# Half and double (docs/benchmark.md, Constants): only RANDOM_ROWS costs, up to 1.3 times at double;
# 5,000 save up to a tenth and see fewer errors.
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


@dataclass(frozen=True)
class Scope:
    """What is checked and promised: `every_row`, or of `n_rows` a random sample by the `seed`,
    which `n_problems` share, and those that matter. `neglected` bounds what the solver left out of
    any entry of the gradient; kernel values out of the reach `between` are in no entry. The dual
    may be known to be convex."""

    n_rows: int
    n_problems: int
    is_convex: bool
    every_row: bool
    neglected: float
    between: Reach
    seed: int


def check(
    problem: BoxProblem,
    parts: list[slice],
    iterate: Iterate,
    checked: Checked,
    exact_gradients: Callable[[np.ndarray], Iterator[tuple[np.ndarray, np.ndarray]]],
    scope: Scope,
) -> list[Certificate]:
    """Replace the checked entries of the gradient by their float64 values, those of some variables
    (ascending) that `exact_gradients` gives piece by piece, and state the optimality of each
    problem in `parts`, none of them empty. `checked` is where the check begins, and kept up to
    date.

    After it no row that could violate rests on float32 kernel values, nor does the objective where
    they would show in it, as far as the error seen on the random rows holds for the others. The gap
    has terms of free and of violating variables only, so it rests on float64 values too.
    """
    # rows that come first are drawn in all problems, so that they are computed once for all
    draw = np.random.default_rng(scope.seed).permutation(scope.n_rows)
    alpha, gradient = iterate.alpha, iterate.gradient
    checks = [
        _Check(problem.part(own), alpha[own], gradient[own], checked.part(own)) for own in parts
    ]
    wanted = [
        np.arange(one.size) if scope.every_row else one.first_variables(draw, scope.n_problems)
        for one in checks
    ]
    while any(len(some) for some in wanted):
        variables = np.concatenate(
            [own.start + some for own, some in zip(parts, wanted, strict=True)]
        )
        for some, exact in exact_gradients(variables[checked.is_exact[variables] == 0]):
            checked.replace(gradient, some, exact)
        wanted = [
            one.doubtful(scope.neglected) if len(some) else some
            for one, some in zip(checks, wanted, strict=True)
        ]
    return [one.certificate(scope) for one in checks]


def certificate_of_known(
    problem: BoxProblem, part: slice, iterate: Iterate, neglected: float, is_convex: bool
) -> Certificate:
    """What float32 kernel values say of one problem where its gradient is known, of a run that was
    stopped; `neglected` bounds what is left out of any entry."""
    known = part.start + np.flatnonzero(iterate.is_known[part])
    is_whole = len(known) == part.stop - part.start
    found = _certificate(
        problem.part(known),
        iterate.alpha[known],
        iterate.gradient[known],
        neglected,
        has_gap=is_convex and is_whole,
        kernel_error=None,
        n_checked=len(known),
    )
    return found if is_whole else replace(found, objective=None)


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

    def certificate(self, scope: Scope) -> Certificate:
        return _certificate(
            self.problem,
            self.alpha,
            self.gradient,
            neglected=scope.between.value * float(np.abs(self.alpha).sum()),
            has_gap=scope.is_convex,
            kernel_error=0.0 if scope.every_row else self.error,
            n_checked=int(np.count_nonzero(self.checked.is_exact)),
        )


def _certificate(
    problem: BoxProblem,
    alpha: np.ndarray,
    gradient: np.ndarray,
    neglected: float,
    *,
    has_gap: bool,
    kernel_error: float | None,
    n_checked: int,
) -> Certificate:
    """The certificate of a gradient of which up to `neglected` is left out in every entry."""
    objective, violation, gap, multipliers = _core.optimality(problem, alpha, gradient)
    room = np.maximum(alpha - problem.lower, problem.upper - alpha).sum()
    return Certificate(
        objective,
        violation + neglected * (1 if problem.sum_of is None else 2),
        gap + float(neglected * room) if has_gap else None,
        kernel_error=kernel_error,
        n_checked=n_checked,
        multipliers=tuple(multipliers),
    )


def _reduced(problem: BoxProblem, alpha: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The gradient with the multipliers of the sums that are kept: zero at the optimum."""
    if problem.sum_of is None:
        return gradient
    multipliers = np.append(_core.optimality(problem, alpha, gradient)[3], 0.0)
    return gradient + multipliers[problem.sum_of]
