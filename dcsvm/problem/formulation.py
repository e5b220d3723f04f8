"""Quadratic programs with box and equality constraints (csrc/solver/box_qp.h).

dual_problems.py formulates LIBSVM's SVM types in this form, so the solver does not depend on the
type. A Formulation holds one or several problems (one against one) over the same rows. The
variables of a problem are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dcsvm.data.sorting import distinct, reduce_parts

ROUNDING = 1e-12  # relative rounding error of a sum
# Bounds up to this fraction of the largest bound of a problem, or of the margin, are too small to
# change a decision value in float64, even with kernel values of 2^53.
NEGLIGIBLE = 2.0**-106


@dataclass(frozen=True, eq=False)
class BoxQP:
    """The problem min 1/2 a'Ka - linear'a with lower <= a <= upper and fixed sums of a.

    All arrays have one entry per variable. `linear`, `lower` and `upper` are float64.
    `constraint_of` int8 is the equality constraint of each variable (-1: none), or None. `row`
    int32 is its row of K, by default its index. With `divides_by_margin` (nu-SVC, two constraints)
    the violation scale is the margin, if that is smaller than `violation_scale`.
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

    `problem` holds the variables of all problems. `start` int64 (n_problems + 1,) is the first
    variable of each problem. `alpha` is a feasible point and defines the fixed sums. All folds have
    the same number of problems, some of them empty. The problems of a fold are contiguous.
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
        """The largest sum of |alpha| that the bounds of any problem allow."""
        bound = np.maximum(np.abs(self.problem.lower), np.abs(self.problem.upper))
        return float(reduce_parts(np.add, bound, self.start).max())

    @property
    def negligible_rows(self) -> np.ndarray:
        """The rows whose bound is 0 in some problem (see `counted`), ascending."""
        problem = self.problem
        return distinct(problem.rows[problem.lower == problem.upper])

    @property
    def problem_index(self) -> np.ndarray:
        """The problem of every variable, int32."""
        return np.repeat(np.arange(self.n_problems, dtype=np.int32), np.diff(self.start))

    def problem_of(self, variables: np.ndarray) -> np.ndarray:
        """Return the problem index of the given variables."""
        return np.searchsorted(self.start, variables, side="right") - 1

    def parts(self) -> list[slice]:
        return slices_between(self.start)

    def with_constraints(self, alpha: np.ndarray) -> np.ndarray:
        """Clip alpha to its bounds and restore its fixed sums (see `with_constraint`)."""
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

        If a solution of the result satisfies the constraint, it also solves this formulation, with
        the multiplier as its rho.
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


# A function of the targets (n,) and the sample weights float64 (n,) of rows.
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

    The problems begin at `start` int64 (n_problems + 1,). Bounds are compared with the largest
    bound of their problem, or with the `margin` of decision values if that is smaller.
    """
    largest = np.repeat(reduce_parts(np.maximum, bound, start), np.diff(start))
    return np.where(bound > NEGLIGIBLE * np.minimum(largest, margin), bound, 0.0)


def fill(bound: np.ndarray, total: float) -> np.ndarray:
    """Fill entries in order, each up to its `bound`, until they sum to `total`."""
    return filled(bound, total - (np.cumsum(bound) - bound), ROUNDING * total)


def filled(bound: np.ndarray, remaining: np.ndarray, rounding: np.ndarray | float) -> np.ndarray:
    """Clip `remaining` to [0, bound]; values within `rounding` of an end become that end."""
    inside = np.where(remaining > rounding, remaining, 0.0)
    return np.where(remaining >= bound - rounding, bound, inside)


def with_constraint(
    alpha: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float
) -> np.ndarray:
    """Change alpha so that it sums to `total`, as far as its bounds allow.

    Each change is proportional to the distance from the bound. Only free variables change if they
    suffice. Otherwise only support vectors change if they suffice.
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
