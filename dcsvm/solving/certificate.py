"""What can be said about a solution: objective, KKT violation, duality gap, error of the kernel.

The solver works on float32 kernel values. Here kernel values are float64, on all rows or on those
that matter: variables nearest to violating, and a random sample of the others, which tells how far
float32 kernel values are off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import reduce_parts
from dcsvm.kernel.kernel_rows import Reach
from dcsvm.problem.formulation import BoxProblem
from dcsvm.solving.iterate import Iterate, Parts

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


@dataclass(frozen=True, eq=False)
class Certificate:
    """Optimality of an alpha: of each problem, float64 (n_problems,), and of all together.

    `gaps` are NaN for an indefinite kernel: the answer is a stationary point. `violations` are in
    `units`, that of the problem or its margin. `kernel_errors` are the largest differences seen
    between the gradient they are based on and the one from float64 kernel values, on `counts` int64
    rows; `violations` and `gaps` include what it may do to the others, `objective_errors` say what
    it may do to the objectives, both as estimated from the rows seen. `multipliers` (n_problems,
    n_sums) are those of the sums kept. Of a run that was stopped nothing is known (NaN) of the
    kernel errors, and where not all rows are checked of the objectives.
    """

    objectives: np.ndarray
    violations: np.ndarray
    gaps: np.ndarray
    kernel_errors: np.ndarray
    counts: np.ndarray
    objective_errors: np.ndarray
    units: np.ndarray
    multipliers: np.ndarray

    @staticmethod
    def of_all(some: list[Certificate]) -> Certificate:
        """Join the certificates of several problems."""
        each = (np.concatenate([getattr(one, f.name) for one in some]) for f in fields(Certificate))
        return Certificate(*each)

    def take(self, problems: slice) -> Certificate:
        """The certificate of some of the problems."""
        return Certificate(*(values[problems] for values in vars(self).values()))

    @property
    def objective(self) -> float | None:
        """The sum over all problems."""
        return known_or_none(sum(self.objectives.tolist()))

    @property
    def violation(self) -> float:
        """The largest of a problem."""
        return float(self.violations.max())

    @property
    def gap(self) -> float | None:
        """The sum over all problems."""
        return known_or_none(sum(self.gaps.tolist()))

    @property
    def kernel_error(self) -> float | None:
        """The largest of a problem."""
        return known_or_none(self.kernel_errors.max())

    @property
    def n_checked(self) -> int:
        """The rows checked in all problems."""
        return int(self.counts.sum())

    @property
    def objective_error(self) -> float | None:
        """The sum over all problems."""
        return known_or_none(sum(self.objective_errors.tolist()))

    @property
    def unit(self) -> float:
        """The smallest of a problem."""
        return float(self.units.min())

    @property
    def relative_gap(self) -> float | None:
        """The gap over the size of the objective."""
        if self.gap is None or self.objective is None:
            return None
        return self.gap / max(abs(self.objective), float(np.finfo(float).tiny))


def known_or_none(value: float) -> float | None:
    """The value, or None for NaN."""
    return None if np.isnan(value) else float(value)


@dataclass(eq=False)
class Checked:
    """How far a check is: `is_exact` uint8, which entries of the gradient are float64 by now, and
    `difference` float64, what that changed in them; `drawn` uint8, which are drawn at random, and
    `wanted` uint8, which are to be float64 next: what the gradient was tells that."""

    is_exact: np.ndarray
    difference: np.ndarray
    drawn: np.ndarray
    wanted: np.ndarray

    @staticmethod
    def nothing(size: int) -> Checked:
        flags = (np.zeros(size, np.uint8) for _ in range(3))
        return Checked(next(flags), np.zeros(size), *flags)

    def part(self, own: slice) -> Checked:
        """Views of the entries of one problem."""
        return Checked(*(values[own] for values in vars(self).values()))

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
    parts: Parts,
    iterate: Iterate,
    checked: Checked,
    exact_gradients: Callable[[np.ndarray, np.ndarray], Iterator[tuple[np.ndarray, np.ndarray]]],
    scope: Scope,
) -> Certificate:
    """Replace the checked entries of the gradient by their float64 values, those of some variables
    (ascending) that `exact_gradients` gives piece by piece but where they are done, and state the
    optimality of each of the problems that are `parts`, ascending, none of them empty. `checked` is
    where the check begins, and kept up to date.

    After it no variable that could violate by more than the tolerance rests on float32 kernel
    values, nor does the objective or the gap where they would show in it, as far as the error seen
    on the random rows holds for the others.
    """

    def make_exact(variables: np.ndarray) -> None:
        for some, exact in exact_gradients(variables, checked.is_exact.view(bool)):
            checked.replace(iterate.gradient, some, exact)

    if scope.every_row or parts.sizes.max() <= FEWEST_ROWS:
        make_exact(parts.members)
        return _certificate_of_all(parts, iterate, checked, scope)
    # rows that come first are drawn in all problems, so that they are computed once for all
    draw = np.random.default_rng(scope.seed).permutation(scope.n_rows).astype(np.int32)
    alpha, gradient, problem = iterate.alpha, iterate.gradient, parts.problem
    begin = parts.members[parts.start[:-1]]
    slices = [slice(*ends) for ends in zip(begin, begin + parts.sizes, strict=True)]
    checks = [
        _Check(problem.part(own), alpha[own], gradient[own], checked.part(own), draw, scope)
        for own in slices
    ]
    if not checked.wanted.any():
        for one in checks:
            one.choose(one.first_variables())
    while checked.wanted.any():
        make_exact(np.flatnonzero(checked.wanted).astype(np.int32))
        for one in checks:
            if one.checked.wanted.any():
                one.choose(one.doubtful(scope))
    return Certificate.of_all([one.certificate(scope) for one in checks])


def _certificate_of_all(
    parts: Parts, iterate: Iterate, checked: Checked, scope: Scope
) -> Certificate:
    """Of problems of which every variable is checked: nothing has to be estimated."""
    start, is_whole = parts.start, len(parts.members) == parts.problem.size
    members = slice(None) if is_whole else parts.members  # a slice copies no arrays
    alpha, gradient = iterate.alpha[members], iterate.gradient[members]
    weight = reduce_parts(np.add, np.abs(alpha), start)
    error = reduce_parts(np.maximum, np.abs(checked.difference[members]), start)
    return _certificate(
        parts.problem.part(members), start, alpha, gradient, scope.between.value * weight,
        has_gap=scope.is_convex,
        kernel_errors=np.zeros_like(error) if scope.every_row else error,
        counts=parts.sizes,
    )  # fmt: skip


def certificate_of_known(
    parts: Parts, iterate: Iterate, neglected: np.ndarray, is_convex: bool
) -> Certificate:
    """What float32 kernel values say of each part where its gradient is known, of a run that was
    stopped; `neglected` (n_parts,) bounds what is left out of any entry."""
    known = iterate.is_known[parts.members]
    counts = reduce_parts(np.add, known.astype(np.float64), parts.start).astype(np.int64)
    own = Parts.of_sizes(parts.problem, parts.members[known], counts)
    unknown = np.full(len(counts), np.nan)
    found = _certificate(
        own.problem.part(own.members), own.start, iterate.alpha[own.members],
        iterate.gradient[own.members], neglected, has_gap=is_convex, kernel_errors=unknown,
        counts=counts,
    )  # fmt: skip
    is_whole = counts == parts.sizes
    objectives, gaps = (np.where(is_whole, v, np.nan) for v in (found.objectives, found.gaps))
    return replace(found, objectives=objectives, gaps=gaps, objective_errors=unknown)


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
        self.drawn = checked.drawn.view(bool)
        if not self.drawn.any():
            self.drawn[:] = True
            if self.size > n_random:
                self.drawn[np.argpartition(self.draw, n_random)[n_random:]] = False

    def choose(self, variables: np.ndarray) -> None:
        """Of these variables the entries are to be float64 next."""
        self.checked.wanted[:] = 0
        self.checked.wanted[variables] = 1

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
        _, (violation,), (gap,), (unit,), _ = _optimality(self.problem, self.alpha, self.gradient)
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
        n_wanted = min(DRAWN_MORE * max(int(n_drawn), FEWEST_ROWS) * times**2, len(support))
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
        objective, error = self._objective(self.remaining)
        certified = partial(
            _certificate, self.problem, np.array([0, self.size]), self.alpha,
            neglected=np.array([scope.between.value * float(np.abs(self.alpha).sum())]),
            has_gap=scope.is_convex,
            kernel_errors=np.array([self.error]),
            counts=np.array([np.count_nonzero(self.checked.is_exact)]),
        )  # fmt: skip
        found = replace(
            certified(self.gradient),
            objectives=np.array([objective]),
            objective_errors=np.array([error]),
        )
        free = self.is_free & self.remaining
        if not free.any():
            return found
        reduced = reduced_gradient(self.problem, self.alpha, self.gradient)
        outer = self.gradient.copy()
        outer[free] += np.copysign(SAFETY * self.error, reduced[free])
        return replace(
            found,
            violations=certified(outer).violations,
            gaps=found.gaps + self._gap_error(self.remaining),
        )


def _certificate(
    problem: BoxProblem,
    start: np.ndarray,
    alpha: np.ndarray,
    gradient: np.ndarray,
    neglected: np.ndarray,
    *,
    has_gap: bool,
    kernel_errors: np.ndarray,
    counts: np.ndarray,
) -> Certificate:
    """The certificate of the parts of a problem, which begin at `start`, by a gradient of which up
    to `neglected` is left out in every entry."""
    objectives, violations, gaps, units, multipliers = _core.optimality(
        problem, start, alpha, gradient
    )
    room = np.maximum(alpha - problem.lower, problem.upper - alpha)
    gaps += neglected * reduce_parts(np.add, room, start)
    return Certificate(
        objectives,
        violations + neglected * (1 if problem.sum_of is None else 2) / units,
        gaps if has_gap else np.full_like(gaps, np.nan),
        kernel_errors,
        counts,
        np.zeros_like(objectives),
        units,
        multipliers,
    )


def _optimality(problem: BoxProblem, alpha: np.ndarray, gradient: np.ndarray) -> tuple:
    """`_core.optimality` of the whole problem as one part."""
    return _core.optimality(problem, np.array([0, problem.size]), alpha, gradient)


def reduced_gradient(problem: BoxProblem, alpha: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The gradient with the multipliers of the sums that are kept, zero at the optimum."""
    if problem.sum_of is None:
        return gradient
    return gradient + _optimality(problem, alpha, gradient)[4][0, problem.sum_of]
