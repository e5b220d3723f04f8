"""Quadratic programs with box and equality constraints (csrc/solver/box_qp.h).

dual_problems.py makes them of LIBSVM's types, which the solver does not see. A Formulation holds
one or several problems (one against one) over the same rows, with contiguous variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dcsvm.data.sorting import reduce_parts

ROUNDING = 1e-12  # relative rounding error of a sum
# Bounds up to this fraction of the largest bound of a problem, or of the margin, change no decision
# value in float64, even for kernel values of 2^53.
NEGLIGIBLE = 2.0**-106


@dataclass(frozen=True, eq=False)
class BoxQP:
    """The problem min 1/2 a'Ka - linear'a with lower <= a <= upper and fixed sums of a.

    All arrays have one entry per variable: `linear`, `lower`, `upper` float64; `constraint_of`
    int8, its equality constraint (-1: unconstrained), or None; `row` int32, its row of K, by
    default its index. With `divides_by_margin` (nu-SVC, two constraints) the violation scale is the
    margin if that is smaller.
    """

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    constraint_of: np.ndarray | None = None
    n_constraints: int = 0
    row: np.ndarray | None = None
    violation_scale: float = 1.0
    divides_by_margin: bool = False

    @property
    def size(self) -> int:
        return len(self.linear)

    @property
    def rows(self) -> np.ndarray:
        """The row of K of every variable, int32."""
        return np.arange(self.size, dtype=np.int32) if self.row is None else self.row

    def scaled(self, factor: float) -> BoxQP:
        """Return the problem with C multiplied by a factor."""
        return replace(self, lower=factor * self.lower, upper=factor * self.upper)

    def part(self, variables: slice | np.ndarray) -> BoxQP:
        """Return the problem restricted to some variables."""
        return replace(
            self,
            linear=self.linear[variables],
            lower=self.lower[variables],
            upper=self.upper[variables],
            constraint_of=None if self.constraint_of is None else self.constraint_of[variables],
            row=self.rows[variables],
        )


@dataclass(frozen=True, eq=False)
class Formulation:
    """Problems over the same rows.

    `problem` holds the variables of all problems, `start` int64 (n_problems + 1,) the first of
    each, and `alpha` a feasible point, which defines the sums. With several folds each has the same
    problems, some of them empty; folds are contiguous.
    """

    problem: BoxQP
    start: np.ndarray
    alpha: np.ndarray
    n_folds: int = 1

    @property
    def n_problems(self) -> int:
        return len(self.start) - 1

    @property
    def has_constraints(self) -> bool:
        return self.problem.n_constraints > 0

    @property
    def weight(self) -> float:
        """The largest sum of |alpha| of a problem within its bounds."""
        bound = np.maximum(np.abs(self.problem.lower), np.abs(self.problem.upper))
        return float(reduce_parts(np.add, bound, self.start).max())

    @property
    def negligible_rows(self) -> np.ndarray:
        """The rows, ascending, with a bound of 0 in a problem (see `counted`)."""
        problem = self.problem
        return np.unique(problem.rows[problem.lower == problem.upper])

    @property
    def problem_index(self) -> np.ndarray:
        """The problem of every variable, int32."""
        return np.repeat(np.arange(self.n_problems, dtype=np.int32), np.diff(self.start))

    def problem_of(self, variables: np.ndarray) -> np.ndarray:
        """Return the problem index of each of some variables."""
        return np.searchsorted(self.start, variables, side="right") - 1

    def parts(self) -> list[slice]:
        return slices_between(self.start)

    def with_constraints(self, alpha: np.ndarray) -> np.ndarray:
        """Clip alpha to its bounds and restore the sums (see `with_constraint`)."""
        problem = self.problem
        alpha = np.clip(alpha, problem.lower, problem.upper)
        if problem.constraint_of is None:
            return alpha
        for part in self.parts():
            for index in range(problem.n_constraints):
                members = part.start + np.flatnonzero(problem.constraint_of[part] == index)
                bounds = problem.lower[members], problem.upper[members]
                alpha[members] = with_constraint(alpha[members], *bounds, self.alpha[members].sum())
        return alpha

    def relaxed(self, multiplier: float) -> Formulation:
        """Replace the equality constraint by its multiplier in the linear term.

        A solution that satisfies the constraint solves this formulation too, with the multiplier as
        its rho.
        """
        linear = self.problem.linear + multiplier
        return replace(
            self, problem=replace(self.problem, linear=linear, constraint_of=None, n_constraints=0)
        )

    @property
    def n_problems_of_fold(self) -> int:
        return self.n_problems // self.n_folds

    def variables_of_fold(self, fold: int) -> np.ndarray:
        first, last = np.array([fold, fold + 1]) * self.n_problems_of_fold
        return np.arange(self.start[first], self.start[last], dtype=np.int32)


def slices_between(start: np.ndarray) -> list[slice]:
    """Return the slices between consecutive entries of `start`."""
    return [slice(a, b) for a, b in pairwise(start)]


# Takes targets (n,) and sample weights float64 (n,) of rows.
Formulate = Callable[[np.ndarray, np.ndarray], Formulation]


def in_folds(
    formulate: Formulate, targets: np.ndarray, weights_of_folds: Iterable[np.ndarray]
) -> Formulation:
    """Formulate the problems of all folds, each with its own sample weights (n,).

    Rows of weight 0 have no variables in a fold.
    """
    folds = []
    for sample_weight in weights_of_folds:
        kept = np.flatnonzero(sample_weight).astype(np.int32)
        one = formulate(targets[kept], sample_weight[kept])
        rows = kept[one.problem.rows]
        folds.append(replace(one, problem=replace(one.problem, row=rows)))
    problems = [one.problem for one in folds]

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(problem, name) for problem in problems])

    problem = replace(
        problems[0],
        linear=joined("linear"),
        lower=joined("lower"),
        upper=joined("upper"),
        constraint_of=None if problems[0].constraint_of is None else joined("constraint_of"),
        row=joined("rows"),
        violation_scale=min(problem.violation_scale for problem in problems),
    )
    sizes = np.concatenate([np.diff(one.start) for one in folds])
    return Formulation(
        problem,
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.concatenate([one.alpha for one in folds]),
        n_folds=len(folds),
    )


def counted(bound: np.ndarray, start: np.ndarray, margin: float = np.inf) -> np.ndarray:
    """Set bounds of |alpha| to 0 if they are too small to change a decision.

    The problems begin at `start` int64 (n_problems + 1,). Decision values are compared with the
    `margin`, if it is below the largest bound of the problem.
    """
    largest = np.repeat(reduce_parts(np.maximum, bound, start), np.diff(start))
    return np.where(bound > NEGLIGIBLE * np.minimum(largest, margin), bound, 0.0)


def fill(bound: np.ndarray, total: float) -> np.ndarray:
    """Fill entries up to their `bound`, the first ones first, to a given sum."""
    return filled(bound, total - (np.cumsum(bound) - bound), ROUNDING * total)


def filled(bound: np.ndarray, remaining: np.ndarray, rounding: np.ndarray | float) -> np.ndarray:
    """Clip `remaining` to [0, bound], and snap values within `rounding` of either end to it."""
    inside = np.where(remaining > rounding, remaining, 0.0)
    return np.where(remaining >= bound - rounding, bound, inside)


def with_constraint(
    alpha: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float
) -> np.ndarray:
    """Change alpha to the sum `total` as far as its bounds allow.

    Changes are proportional to the distance from the bound. They are limited to the free variables
    if these suffice, else to the support vectors if these do.
    """
    missing = total - alpha.sum()
    room = (upper if missing > 0 else lower) - alpha
    for mask in ((alpha > lower) & (alpha < upper), alpha != 0):
        if abs(room[mask].sum()) >= abs(missing):
            room = np.where(mask, room, 0.0)
            break
    if room.sum() == 0:
        return alpha
    return alpha + room * min(missing / room.sum(), 1.0)
