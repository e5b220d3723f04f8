"""The solver's state, and the certificate of a solution: objective, KKT violation, duality gap.

The solver uses float32 kernel values. The check uses float64 values, of all variables or of a
selection: the variables nearest to a KKT violation, and a random sample of the others. The sample
estimates the error of the float32 gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import reduce_parts
from dcsvm.kernel.distances import Cutoff
from dcsvm.problem.formulation import BoxQP, Formulation

# State of the gradient of a variable: `GradientState` of csrc/solver/box_qp.h.
NOTHING, AT_BASE, AT_ALPHA = np.uint8(0), np.uint8(1), np.uint8(2)


@dataclass(eq=False)
class Iterate:
    """Solver state, serializable at any iteration; one entry per variable.

    Attributes
    ----------
    alpha : float64, dual variables.
    gradient : float64, gradient at alpha or at `base`, or undefined; `known` tells which.
    base : float64, an earlier alpha.
    known : uint8, NOTHING, AT_BASE or AT_ALPHA.
    """

    alpha: np.ndarray
    gradient: np.ndarray
    base: np.ndarray
    known: np.ndarray

    @staticmethod
    def of(alpha: np.ndarray) -> Iterate:
        """Start at a feasible alpha with an unknown gradient."""
        n = len(alpha)
        return Iterate(alpha, np.zeros(n), alpha.copy(), np.full(n, NOTHING))

    def take(self, variables: np.ndarray) -> Iterate:
        """Copy the state of these variables."""
        return Iterate(*(values[variables] for values in vars(self).values()))

    def put(self, variables: np.ndarray, other: Iterate) -> None:
        """Overwrite the state of these variables."""
        for name, values in vars(other).items():
            getattr(self, name)[variables] = values

    @property
    def is_known(self) -> np.ndarray:
        """Mask of the variables whose gradient at alpha is known."""
        return self.known == AT_ALPHA

    def forget(self, variables: np.ndarray | slice) -> None:
        """Mark the gradient of these variables as unknown."""
        self.known[variables] = NOTHING

    def learn(self, variables: np.ndarray, gradient: np.ndarray) -> None:
        """Set the gradient of these variables at alpha."""
        self.gradient[variables] = gradient
        self.base[variables] = self.alpha[variables]
        self.known[variables] = AT_ALPHA

    def move(self, alpha: np.ndarray) -> None:
        """Move to another alpha; the previous alpha becomes the base.

        The gradient is then known at the base if it was known at alpha for all variables.
        """
        is_known = bool(self.is_known.all())
        self.base[:], self.alpha[:] = self.alpha, alpha
        self.known[:] = AT_BASE if is_known else NOTHING


@dataclass(frozen=True, eq=False)
class Subproblems:
    """Parts of a problem that are solved independently.

    Part c has the variables members[start[c]:start[c + 1]]; `start` is int64, `members` int32.
    """

    problem: BoxQP
    start: np.ndarray
    members: np.ndarray

    @staticmethod
    def of_sizes(problem: BoxQP, members: np.ndarray, sizes: np.ndarray) -> Subproblems:
        start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return Subproblems(problem, start, members)

    @staticmethod
    def of_folds(formulation: Formulation, folds: list[int]) -> Subproblems:
        """Make one part per non-empty problem of `folds`, which ascend."""
        sizes = np.diff(formulation.start).reshape(formulation.n_folds, -1)[folds].reshape(-1)
        members = np.concatenate([formulation.variables_of_fold(k) for k in folds])
        return Subproblems.of_sizes(formulation.problem, members, sizes[sizes > 0])

    @staticmethod
    def of_problems(formulation: Formulation) -> Subproblems:
        """Make one part per problem of all folds, including empty problems."""
        members = np.arange(formulation.problem.size, dtype=np.int32)
        return Subproblems(formulation.problem, formulation.start, members)

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.start)


@dataclass(frozen=True)
class SolverSettings:
    """Solver settings for parts; `_core.solve_clusters` reads them.

    `tolerance` is in units of the violation scale; violations below the unscaled `attainable` are
    accepted as well. `limits` are the limits on the work of each part, by names of
    SOLVE_REPORT. `memory_bytes` limits the caches, matrices, arrays and copies of rows of all
    threads together, unless the minimum of a part, matrix_bytes() and array_bytes(), exceeds it.

    The solver may omit kernel values beyond `cutoff`; `neglected` of a report bounds the effect on
    a gradient. `neglected` here bounds the truncation error of the initial gradient where it is
    known. Kernel values are float32 unless `float64` is set.
    """

    tolerance: float
    limits: dict[str, int]
    memory_bytes: int
    threads: int
    cutoff: Cutoff
    neglected: float = 0.0
    attainable: float = 0.0
    float64: bool = False


# Sizes of the sample, of all problems together. The random rows are at most RANDOM_ROWS and at most
# RANDOM_SHARE of the rows. examples/bench/README.md (Constants) has the effect of half and double.
RANDOM_ROWS = 10_000
RANDOM_SHARE = 0.05
NEAREST_ROWS = 1_000
MIN_ROWS = 500  # minimum per problem, of random and of nearest rows each
# Relative rounding error allowed in the objective. If the estimate is larger, the sample of support
# vectors grows to DRAWN_MORE times the estimated size needed.
OBJECTIVE_ERROR, DRAWN_MORE = 2e-6, 1.5
# If the rounding error of the gap is above this share of the gap, all free variables are checked.
FREE_SHARE = 0.1
# Factor on the largest error seen. A variable is checked if an error of this size could hide its
# violation.
SAFETY = 4.0


@dataclass(frozen=True, eq=False)
class Certificate:
    """Optimality of an alpha, by problem.

    After a stop the kernel errors and objective errors are NaN. So are the objective and the gap of
    a problem with an unknown entry of the gradient.

    Attributes
    ----------
    objectives : float64 (n_problems,)
    violations : KKT violations, in multiples of `scales`, estimated error included.
    gaps : duality gaps, estimated error included; NaN for an indefinite kernel (stationary point).
    kernel_errors : largest difference seen between the solver's gradient and the float64 gradient.
    counts : number of checked variables, int64.
    objective_errors : estimated error of the objectives.
    scales : violation scales; for nu-SVC the margin, if that is smaller.
    multipliers : multipliers of the equality constraints, (n_problems, n_constraints).
    """

    objectives: np.ndarray
    violations: np.ndarray
    gaps: np.ndarray
    kernel_errors: np.ndarray
    counts: np.ndarray
    objective_errors: np.ndarray
    scales: np.ndarray
    multipliers: np.ndarray

    @staticmethod
    def of_all(certificates: list[Certificate]) -> Certificate:
        """Join the certificates of several problems."""
        names = [one.name for one in fields(Certificate)]
        columns = ([getattr(one, name) for one in certificates] for name in names)
        return Certificate(*(np.concatenate(column) for column in columns))

    def take(self, problems: slice) -> Certificate:
        """Select the certificate of a slice of the problems."""
        return Certificate(*(values[problems] for values in vars(self).values()))

    @property
    def objective(self) -> float | None:
        """The sum of the objectives."""
        return known_or_none(sum(self.objectives.tolist()))

    @property
    def violation(self) -> float:
        """The largest violation of a problem."""
        return float(self.violations.max())

    @property
    def gap(self) -> float | None:
        """The sum of the gaps."""
        return known_or_none(sum(self.gaps.tolist()))

    @property
    def kernel_error(self) -> float | None:
        """The largest kernel error of a problem."""
        return known_or_none(self.kernel_errors.max())

    @property
    def n_checked(self) -> int:
        """The number of checked variables of all problems."""
        return int(self.counts.sum())

    @property
    def objective_error(self) -> float | None:
        """The sum of the objective errors."""
        return known_or_none(sum(self.objective_errors.tolist()))

    @property
    def violation_scale(self) -> float:
        """The smallest violation scale of a problem."""
        return float(self.scales.min())

    @property
    def relative_gap(self) -> float | None:
        """The gap over the absolute objective."""
        if self.gap is None or self.objective is None:
            return None
        return self.gap / max(abs(self.objective), float(np.finfo(float).tiny))


def known_or_none(value: float) -> float | None:
    """Convert to float, NaN to None."""
    return None if np.isnan(value) else float(value)


@dataclass(eq=False)
class CheckState:
    """State of a check, one entry per variable.

    Attributes
    ----------
    is_exact : uint8, whether the entry of the gradient is from float64 kernel values.
    difference : float64, change of the entry when it became exact.
    drawn : uint8, whether the variable is in the random sample.
    wanted : uint8, whether the entry becomes exact in the next round. A resumed check needs it,
        because it depends on the gradient before the round.
    """

    is_exact: np.ndarray
    difference: np.ndarray
    drawn: np.ndarray
    wanted: np.ndarray

    @staticmethod
    def nothing(size: int) -> CheckState:
        flags = (np.zeros(size, np.uint8) for _ in range(3))
        return CheckState(next(flags), np.zeros(size), *flags)

    def part(self, own: slice) -> CheckState:
        """Return views of the entries of one problem."""
        return CheckState(*(values[own] for values in vars(self).values()))

    def replace(self, gradient: np.ndarray, variables: np.ndarray, exact: np.ndarray) -> None:
        """Replace the gradient of these variables by float64 values."""
        self.difference[variables] = exact - gradient[variables]
        gradient[variables] = exact
        self.is_exact[variables] = 1


@dataclass(frozen=True)
class CheckSettings:
    """Settings of a check.

    Attributes
    ----------
    n_rows : number of rows to sample from.
    n_problems : number of problems that share the sample.
    is_convex : whether the kernel is positive semidefinite.
    every_row : check every variable instead of a sample.
    neglected : bound on the solver's truncation error in an entry of the gradient.
    between : cutoff between components; the check, too, omits kernel values beyond it.
    tolerance : target of the violation, in multiples of the violation scale.
    seed : seed of the random sample.
    """

    n_rows: int
    n_problems: int
    is_convex: bool
    every_row: bool
    neglected: float
    between: Cutoff
    tolerance: float
    seed: int


def verify_optimality(
    parts: Subproblems,
    iterate: Iterate,
    checked: CheckState,
    exact_gradients: Callable[[np.ndarray, np.ndarray], Iterator[tuple[np.ndarray, np.ndarray]]],
    scope: CheckSettings,
) -> Certificate:
    """Replace entries of the gradient by float64 values and certify each problem.

    `parts` are whole problems, ascending and not empty. `exact_gradients(variables, is_exact)`
    yields batches (variables, gradients), ascending and without the variables marked exact.
    `checked` is the initial state of the check and is updated in place.

    Afterwards the gradient of every variable that could violate by more than the tolerance is
    float64, and so are the entries that the objective or the gap depend on. This assumes that the
    error seen on the random sample holds for the other rows.
    """

    def make_exact(variables: np.ndarray) -> None:
        for batch, exact in exact_gradients(variables, checked.is_exact.view(bool)):
            checked.replace(iterate.gradient, batch, exact)

    if scope.every_row or parts.sizes.max() <= MIN_ROWS:
        make_exact(parts.members)
        return _certificate_of_all(parts, iterate, checked, scope)
    # every problem samples the rows that come first in this order: problems share kernel rows
    draw = np.random.default_rng(scope.seed).permutation(scope.n_rows).astype(np.int32)
    alpha, gradient, problem = iterate.alpha, iterate.gradient, parts.problem
    begin = parts.members[parts.start[:-1]]
    slices = [slice(*ends) for ends in zip(begin, begin + parts.sizes, strict=True)]
    checks = [
        _Check(problem.part(own), alpha[own], gradient[own], checked.part(own), draw, scope)
        for own in slices
    ]
    wanted = checked.wanted.view(bool)  # faster than bytes
    if not wanted.any():  # else the check is resumed
        for check in checks:
            check.choose(check.first_variables())
    # each round shows the error of float32, and with it what else could hide a violation
    while wanted.any():
        make_exact(np.flatnonzero(wanted).astype(np.int32))
        for check in checks:
            if check.checked.wanted.view(bool).any():
                check.choose(check.doubtful(scope))
    return Certificate.of_all([check.certificate(scope) for check in checks])


def _certificate_of_all(
    parts: Subproblems, iterate: Iterate, checked: CheckState, scope: CheckSettings
) -> Certificate:
    """Certify problems with all variables checked, without estimates."""
    start, is_whole = parts.start, len(parts.members) == parts.problem.size
    members = slice(None) if is_whole else parts.members  # a slice copies no arrays
    alpha, gradient = iterate.alpha[members], iterate.gradient[members]
    weight = reduce_parts(np.add, np.abs(alpha), start)
    error = reduce_parts(np.maximum, np.abs(checked.difference[members]), start)
    problem = parts.problem.part(members)
    return _certificate(
        problem, start, alpha, _core.optimality(problem, start, alpha, gradient),
        scope.between.value * weight,
        has_gap=scope.is_convex,
        kernel_errors=np.zeros_like(error) if scope.every_row else error,
        counts=parts.sizes,
    )  # fmt: skip


def certificate_of_known(
    parts: Subproblems, iterate: Iterate, neglected: np.ndarray, is_convex: bool
) -> Certificate:
    """Certify the parts of a stopped run on the variables with a known gradient.

    Kernel values are float32. `neglected` (n_parts,) bounds the truncation error of an entry.
    """
    # only variables with a known gradient take part; a part that lacks some has no objective or gap
    known = iterate.is_known[parts.members]
    counts = reduce_parts(np.add, known.astype(np.float64), parts.start).astype(np.int64)
    own = Subproblems.of_sizes(parts.problem, parts.members[known], counts)
    unknown = np.full(len(counts), np.nan)
    problem, alpha = own.problem.part(own.members), iterate.alpha[own.members]
    found = _core.optimality(problem, own.start, alpha, iterate.gradient[own.members])
    certificate = _certificate(
        problem, own.start, alpha, found, neglected, has_gap=is_convex, kernel_errors=unknown,
        counts=counts,
    )  # fmt: skip
    is_whole = counts == parts.sizes
    return replace(
        certificate,
        objectives=np.where(is_whole, certificate.objectives, np.nan),
        gaps=np.where(is_whole, certificate.gaps, np.nan),
        objective_errors=unknown,
    )


class _Check:
    """Check of one problem; entries of the gradient become float64 in place."""

    def __init__(
        self,
        problem: BoxQP,
        alpha: np.ndarray,
        gradient: np.ndarray,
        checked: CheckState,
        draw: np.ndarray,
        scope: CheckSettings,
    ):
        self.problem, self.alpha, self.gradient, self.checked = problem, alpha, gradient, checked
        self.size = problem.size
        self.is_free = (alpha > problem.lower) & (alpha < problem.upper)
        self.found: tuple | None = None
        n_random, self.n_nearest = (
            max(n // scope.n_problems, MIN_ROWS)
            for n in (min(RANDOM_ROWS, int(RANDOM_SHARE * len(draw))), NEAREST_ROWS)
        )
        self.draw = draw[problem.rows]
        self.drawn = checked.drawn.view(bool)
        if not self.drawn.any():
            self.drawn[:] = True
            if self.size > n_random:
                self.drawn[np.argpartition(self.draw, n_random)[n_random:]] = False

    def choose(self, variables: np.ndarray) -> None:
        """Select the variables to make exact in the next round."""
        self.checked.wanted[:] = 0
        self.checked.wanted[variables] = 1
        if len(variables):
            self.found = None

    @property
    def remaining(self) -> np.ndarray:
        return ~self.checked.is_exact.view(bool)

    @property
    def error(self) -> float:
        difference = self.checked.difference
        return float(max(difference.max(), -difference.min()))

    @property
    def optimality(self) -> tuple:
        """The result of `_core.optimality`, kept until the gradient changes."""
        if self.found is None:
            self.found = _optimality(self.problem, self.alpha, self.gradient)
        return self.found

    @property
    def reduced(self) -> np.ndarray:
        """The gradient with multipliers, see `reduced_gradient`."""
        if self.problem.constraint_of is None:
            return self.gradient
        return with_multipliers(self.problem, self.gradient, self.optimality)

    def first_variables(self) -> np.ndarray:
        """Select the random sample and the bounded variables nearest to violating."""
        bounded = np.flatnonzero(~self.is_free)
        if len(bounded) > self.n_nearest:
            gradient = np.abs(self.reduced[bounded])
            bounded = bounded[np.argpartition(gradient, self.n_nearest)[: self.n_nearest]]
        checked = self.drawn.copy()
        checked[bounded] = True
        return np.flatnonzero(checked)

    def doubtful(self, scope: CheckSettings) -> np.ndarray:
        """Select unchecked variables that might violate.

        If the selection is empty and the violation is within the tolerance, select the unchecked
        variables that the error of the objective or of the gap depends on.
        """
        reduced = np.abs(self.reduced)
        doubt = scope.neglected + SAFETY * self.error
        # first, what could violate: a free variable far from 0, a bounded one near it
        _, (violation,), (gap,), (scale,), _ = self.optimality
        most = scope.tolerance * scale / (1 if self.problem.constraint_of is None else 2)
        free = self.is_free
        needed = (free & (reduced > most - doubt)) | (~free & (reduced < doubt))
        needed &= self.remaining
        if needed.any() or violation > scope.tolerance:
            return np.flatnonzero(needed)
        # then, what the gap and the objective need
        if self._gap_error(~self.drawn) > FREE_SHARE * gap:
            needed |= free
        objective, error = self._objective(~self.drawn)
        most = max(OBJECTIVE_ERROR * abs(objective), float(np.finfo(float).tiny))
        if error > most:
            self.draw_more(error / most)
            needed |= self.drawn
        return np.flatnonzero(needed & self.remaining)

    def draw_more(self, times: float) -> None:
        """Extend the sample to reduce the expected error of the objective by the factor `times`."""
        support = np.flatnonzero(self.alpha)
        n_drawn = np.count_nonzero(self.drawn[support])
        n_wanted = min(DRAWN_MORE * max(int(n_drawn), MIN_ROWS) * times**2, len(support))
        self.drawn[support[np.argsort(self.draw[support])[: int(n_wanted)]]] = True

    def _gap_error(self, unchecked: np.ndarray) -> float:
        """Estimate the error of the gap from unchecked free variables.

        A variable changes the gap by its error times its distance to the farther bound. The errors
        are the mean error seen, and a random deviation up to the largest error seen.
        """
        own = np.flatnonzero(self.is_free & unchecked)
        alpha, lower, upper = self.alpha[own], self.problem.lower[own], self.problem.upper[own]
        width = np.maximum(alpha - lower, upper - alpha)
        seen = np.mean(np.abs(self.checked.difference[np.flatnonzero(self.drawn)]))
        return float(seen * width.sum() + self.error * np.sqrt(np.sum(width**2)))

    def _objective(self, unchecked: np.ndarray) -> tuple[float, float]:
        """Return the objective and its estimated error.

        The objective has float32 terms of unchecked variables. Their total error is a ratio
        estimate from the random sample. If it exceeds two standard errors, it corrects the
        objective, and the two standard errors remain as the error.
        """
        objective = float(0.5 * np.dot(self.alpha, self.gradient - self.problem.linear))
        weight = self.alpha[unchecked]
        remaining = np.abs(weight, out=weight).sum()
        if remaining == 0:
            return objective, 0.0
        drawn = np.flatnonzero(self.drawn & (self.alpha != 0))
        if len(drawn) < 2:
            return objective, np.inf
        weight, seen = np.abs(self.alpha[drawn]), self.alpha[drawn] * self.checked.difference[drawn]
        total = weight.sum()
        ratio = seen.sum() / total
        spread = np.sqrt(np.sum((seen - ratio * weight) ** 2)) / total
        shift, chance = float(0.5 * ratio * remaining), float(spread * remaining)
        if abs(shift) > chance:
            return objective + shift, chance
        return objective, abs(shift) + chance

    def certificate(self, scope: CheckSettings) -> Certificate:
        """Certify the problem from the checked entries.

        The reduced gradient of unchecked free variables is moved away from zero by SAFETY times the
        error seen.
        """
        objective, error = self._objective(self.remaining)
        neglected = np.array([scope.between.value * float(np.abs(self.alpha).sum())])
        certificate = replace(
            _certificate(
                self.problem, np.array([0, self.size]), self.alpha, self.optimality, neglected,
                has_gap=scope.is_convex,
                kernel_errors=np.array([self.error]),
                counts=np.array([np.count_nonzero(self.checked.is_exact.view(bool))]),
            ),
            objectives=np.array([objective]),
            objective_errors=np.array([error]),
        )  # fmt: skip
        free = np.flatnonzero(self.is_free & self.remaining)
        if len(free) == 0:
            return certificate
        # the worst that the error seen could do to unchecked free variables
        reduced, outer = self.reduced, self.gradient.copy()
        outer[free] += np.copysign(SAFETY * self.error, reduced[free])
        worst = _optimality(self.problem, self.alpha, outer)
        return replace(
            certificate,
            violations=_violations(self.problem, worst, neglected),
            gaps=certificate.gaps + self._gap_error(self.remaining),
        )


def _certificate(
    problem: BoxQP,
    start: np.ndarray,
    alpha: np.ndarray,
    found: tuple,
    neglected: np.ndarray,
    *,
    has_gap: bool,
    kernel_errors: np.ndarray,
    counts: np.ndarray,
) -> Certificate:
    """Certify the parts of a problem that begin at the variables `start`.

    `found` is the result of `_core.optimality`. `neglected` (n_parts,) bounds the truncation error
    of an entry of the gradient.
    """
    objectives, _, gaps, scales, multipliers = found
    if has_gap and neglected.any():
        room = np.maximum(alpha - problem.lower, problem.upper - alpha)
        gaps = gaps + neglected * reduce_parts(np.add, room, start)
    return Certificate(
        objectives,
        _violations(problem, found, neglected),
        gaps if has_gap else np.full_like(gaps, np.nan),
        kernel_errors,
        counts,
        np.zeros_like(objectives),
        scales,
        multipliers,
    )


def _violations(problem: BoxQP, found: tuple, neglected: np.ndarray) -> np.ndarray:
    """Return the largest violations that errors of `neglected` in the gradients could hide."""
    _, violations, _, scales, _ = found
    return violations + neglected * (1 if problem.constraint_of is None else 2) / scales


def _optimality(problem: BoxQP, alpha: np.ndarray, gradient: np.ndarray) -> tuple:
    """Call `_core.optimality` for the whole problem as one part."""
    return _core.optimality(problem, np.array([0, problem.size]), alpha, gradient)


def reduced_gradient(problem: BoxQP, alpha: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Add the multipliers of the equality constraints to the gradient.

    The result is zero for free variables at the optimum.
    """
    if problem.constraint_of is None:
        return gradient
    return with_multipliers(problem, gradient, _optimality(problem, alpha, gradient))


def with_multipliers(problem: BoxQP, gradient: np.ndarray, found: tuple) -> np.ndarray:
    """Add the multipliers that `_core.optimality` has found to the gradient of one problem."""
    return gradient + found[4][0, problem.constraint_of]
