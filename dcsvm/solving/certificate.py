"""What can be said about a solution: objective, KKT violation, duality gap, error of the kernel.

The solver works on float32 kernel values. Here kernel values are float64, on all rows or on those
that matter: variables nearest to violating, and a random sample of the others, which tells how far
float32 kernel values are off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import Reach
from dcsvm.problem.formulation import BoxProblem
from dcsvm.solving.iterate import Iterate

# Half and double: docs/benchmark.md, Constants.
RANDOM_ROWS = 10_000  # of all problems together
RANDOM_SHARE = 0.05  # of the variables, where that is fewer
NEAREST_ROWS = 1_000
FEWEST_ROWS = 500  # of a problem, random and nearest ones, however many problems there are
# What rounding may do to the objective, relative to it; where it may be more, more support vectors
# are drawn: as many as should tell it, and some.
OBJECTIVE_ERROR, DRAWN_MORE = 2e-6, 1.5
FREE_SHARE = 0.1  # of the gap: where rounding adds more than that to it all free ones are checked
SAFETY = 4.0  # times the error seen: what is nearer than that to violating is checked too


@dataclass(frozen=True)
class Certificate:
    """Optimality of an alpha. `gap` is None for an indefinite kernel: the answer is a stationary
    point. `violation` is in the `unit`, that of the problem or its margin. `kernel_error` is the
    largest difference seen between the gradient it is based on and the one from float64 kernel
    values, on `n_checked` rows; `violation` and `gap` include what it may do to the others,
    `objective_error` says what it may do to the objective, both as estimated from the rows seen.
    `multipliers` are those of the sums kept; `parts` the certificates of the problems where there
    are several. Of a run that was stopped nothing is known of the kernel error, and where not all
    rows are checked of the objective."""

    objective: float | None
    violation: float
    gap: float | None
    kernel_error: float | None
    n_checked: int
    objective_error: float | None = None
    unit: float = 1.0
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
            objective_error=over_all(sum, [part.objective_error for part in parts]),
            unit=min(part.unit for part in parts),
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
    may be known to be convex. The violation wanted is at most `tolerance`, in the unit."""

    n_rows: int
    n_problems: int
    is_convex: bool
    every_row: bool
    neglected: float
    between: Reach
    tolerance: float
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

    After it no variable that could violate by more than the tolerance rests on float32 kernel
    values, nor does the objective or the gap where they would show in it, as far as the error seen
    on the random rows holds for the others.
    """
    if scope.every_row or all(own.stop - own.start <= FEWEST_ROWS for own in parts):
        return _check_all(problem, parts, iterate, checked, exact_gradients, scope)
    # rows that come first are drawn in all problems, so that they are computed once for all
    draw = np.random.default_rng(scope.seed).permutation(scope.n_rows).astype(np.int32)
    alpha, gradient = iterate.alpha, iterate.gradient
    checks = [
        _Check(problem.part(own), alpha[own], gradient[own], checked.part(own), draw, scope)
        for own in parts
    ]
    wanted = [one.first_variables() for one in checks]
    while any(len(some) for some in wanted):
        variables = np.concatenate(
            [own.start + some for own, some in zip(parts, wanted, strict=True)]
        )
        for some, exact in exact_gradients(variables[checked.is_exact[variables] == 0]):
            checked.replace(gradient, some, exact)
        wanted = [
            one.doubtful(scope) if len(some) else some
            for one, some in zip(checks, wanted, strict=True)
        ]
    return [one.certificate(scope) for one in checks]


def _check_all(
    problem: BoxProblem,
    parts: list[slice],
    iterate: Iterate,
    checked: Checked,
    exact_gradients: Callable[[np.ndarray], Iterator[tuple[np.ndarray, np.ndarray]]],
    scope: Scope,
) -> list[Certificate]:
    """As `check`, of every variable: nothing has to be estimated."""
    alpha, gradient, found = iterate.alpha, iterate.gradient, []
    variables = np.concatenate([np.arange(own.start, own.stop) for own in parts])
    for some, exact in exact_gradients(variables[checked.is_exact[variables] == 0]):
        checked.replace(gradient, some, exact)
    for own in parts:
        part, alphas, gradients = problem.part(own), alpha[own], gradient[own]
        one = _certificate(
            part, alphas, gradients, scope.between.value * float(np.abs(alphas).sum()),
            has_gap=scope.is_convex,
            kernel_error=0.0 if scope.every_row else float(np.abs(checked.difference[own]).max()),
            n_checked=len(alphas),
        )  # fmt: skip
        objective = float(0.5 * np.dot(alphas, gradients - part.linear))
        found.append(replace(one, objective=objective, objective_error=0.0))
    return found


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
        self,
        problem: BoxProblem,
        alpha: np.ndarray,
        gradient: np.ndarray,
        checked: Checked,
        draw: np.ndarray,
        scope: Scope,
    ):
        self.problem, self.alpha, self.gradient, self.checked = problem, alpha, gradient, checked
        self.size = problem.size
        n_random, self.n_nearest = (
            max(n // scope.n_problems, FEWEST_ROWS)
            for n in (min(RANDOM_ROWS, int(RANDOM_SHARE * len(draw))), NEAREST_ROWS)
        )
        self.draw = draw[problem.rows]
        self.drawn = np.ones(self.size, bool)
        if self.size > n_random:
            self.drawn[np.argpartition(self.draw, n_random)[n_random:]] = False

    @property
    def remaining(self) -> np.ndarray:
        return self.checked.is_exact == 0

    @property
    def error(self) -> float:
        return float(np.max(np.abs(self.checked.difference)))

    @property
    def is_free(self) -> np.ndarray:
        return (self.alpha > self.problem.lower) & (self.alpha < self.problem.upper)

    def first_variables(self) -> np.ndarray:
        """Those drawn at random, and of variables at a bound those nearest to violating."""
        bounded = np.flatnonzero(~self.is_free)
        if len(bounded) > self.n_nearest:
            gradient = np.abs(reduced_gradient(self.problem, self.alpha, self.gradient)[bounded])
            bounded = bounded[np.argpartition(gradient, self.n_nearest)[: self.n_nearest]]
        checked = self.drawn.copy()
        checked[bounded] = True
        return np.flatnonzero(checked)

    def doubtful(self, scope: Scope) -> np.ndarray:
        """Variables that might violate and were not checked yet; where there are none and nothing
        violates, those that show in the objective or in the gap."""
        reduced = np.abs(reduced_gradient(self.problem, self.alpha, self.gradient))
        doubt = scope.neglected + SAFETY * self.error
        _, violation, gap, _, unit = _core.optimality(self.problem, self.alpha, self.gradient)
        most = scope.tolerance * unit / (1 if self.problem.sum_of is None else 2)
        free = self.is_free
        needed = np.where(free, reduced > most - doubt, reduced < doubt)
        needed &= self.remaining
        if needed.any() or violation > scope.tolerance:
            return np.flatnonzero(needed)
        if self._gap_error(~self.drawn) > FREE_SHARE * gap:
            needed |= free
        objective, error = self._objective(~self.drawn)
        most = max(OBJECTIVE_ERROR * abs(objective), float(np.finfo(float).tiny))
        if error > most:
            self.draw_more(error / most)
            needed |= self.drawn
        return np.flatnonzero(needed & self.remaining)

    def draw_more(self, times: float) -> None:
        """Draw so many support vectors that the error of the objective should fall that many
        times."""
        support = np.flatnonzero(self.alpha)
        n_drawn = np.count_nonzero(self.drawn[support])
        n_wanted = min(DRAWN_MORE * max(n_drawn, FEWEST_ROWS) * times**2, len(support))
        self.drawn[support[np.argsort(self.draw[support])[: int(n_wanted)]]] = True

    def _gap_error(self, unchecked: np.ndarray) -> float:
        """What the rounding of free variables among the unchecked ones may add to the gap: the mean
        seen for each, and the largest for what chance makes of a few."""
        width = np.maximum(self.alpha - self.problem.lower, self.problem.upper - self.alpha)
        width = width[self.is_free & unchecked]
        seen = np.mean(np.abs(self.checked.difference[self.drawn]))
        return float(seen * width.sum() + self.error * np.sqrt(np.sum(width**2)))

    def _objective(self, unchecked: np.ndarray) -> tuple[float, float]:
        """The objective and how far it may be off where the terms of unchecked variables are of
        float32 kernel values: by what those drawn at random tell of the others (a ratio estimate),
        which is taken off where it is more than chance (two standard errors)."""
        objective = float(0.5 * np.dot(self.alpha, self.gradient - self.problem.linear))
        weight, seen = np.abs(self.alpha), self.alpha * self.checked.difference
        drawn, remaining = (weight > 0) & self.drawn, weight[unchecked].sum()
        if remaining == 0:
            return objective, 0.0
        if np.count_nonzero(drawn) < 2:
            return objective, np.inf
        total = weight[drawn].sum()
        ratio = seen[drawn].sum() / total
        spread = np.sqrt(np.sum((seen[drawn] - ratio * weight[drawn]) ** 2)) / total
        shift, chance = float(0.5 * ratio * remaining), float(spread * remaining)
        if abs(shift) > chance:
            return objective + shift, chance
        return objective, abs(shift) + chance

    def certificate(self, scope: Scope) -> Certificate:
        """The gradient of free variables that were not checked is taken to be as far from zero as
        the error seen allows."""
        neglected = scope.between.value * float(np.abs(self.alpha).sum())
        found = _certificate(
            self.problem, self.alpha, self.gradient, neglected, has_gap=scope.is_convex,
            kernel_error=self.error, n_checked=int(np.count_nonzero(self.checked.is_exact)),
        )  # fmt: skip
        free = self.is_free & self.remaining
        violation, gap = found.violation, found.gap
        if free.any():
            reduced = reduced_gradient(self.problem, self.alpha, self.gradient)
            outer = self.gradient.copy()
            outer[free] += np.copysign(SAFETY * self.error, reduced[free])
            violation = _certificate(
                self.problem, self.alpha, outer, neglected, has_gap=False, kernel_error=None,
                n_checked=0,
            ).violation  # fmt: skip
            gap = None if gap is None else gap + self._gap_error(self.remaining)
        objective, error = self._objective(self.remaining)
        return replace(
            found, objective=objective, violation=violation, gap=gap, objective_error=error
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
    objective, violation, gap, multipliers, unit = _core.optimality(problem, alpha, gradient)
    room = np.maximum(alpha - problem.lower, problem.upper - alpha).sum()
    return Certificate(
        objective,
        violation + neglected * (1 if problem.sum_of is None else 2) / unit,
        gap + float(neglected * room) if has_gap else None,
        kernel_error=kernel_error,
        n_checked=n_checked,
        unit=unit,
        multipliers=tuple(multipliers),
    )


def reduced_gradient(problem: BoxProblem, alpha: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The gradient with the multipliers of the sums that are kept, zero at the optimum."""
    if problem.sum_of is None:
        return gradient
    multipliers = np.append(_core.optimality(problem, alpha, gradient)[3], 0.0)
    return gradient + multipliers[problem.sum_of]
