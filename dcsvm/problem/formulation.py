"""What a solver sees: box QPs (csrc/solver/box_qp.h) with a linear term, bounds, and sums that are
kept. dual_problems.py makes them; the solver knows none of LIBSVM's types.

A Formulation is one problem or several (one against one) over the same rows; their variables follow
each other, problem by problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dcsvm.data.sorting import reduce_parts

ROUNDING = 1e-12  # of a sum: what is left of it by rounding
# Of the largest bound of a problem, or of the margin: what no decision value shows in float64, even
# where kernel values are 2^53.
NEGLIGIBLE = 2.0**-106


@dataclass(frozen=True, eq=False)
class BoxProblem:
    """minimise 1/2 a'Ka - linear'a, lower <= a <= upper, the sums kept.

    All arrays have one entry per variable: `linear`, `lower`, `upper` float64; `sum_of` int8, the
    sum a variable belongs to (-1 for none), or None; `row` int32, the row of K a variable uses, or
    None for its own number. A violation is told and asked for in the `unit`, or of what
    `divides_by_margin` (two sums, as nu-SVC) in the margin where that is smaller.
    """

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    sum_of: np.ndarray | None = None
    n_sums: int = 0
    row: np.ndarray | None = None
    unit: float = 1.0
    divides_by_margin: bool = False

    @property
    def size(self) -> int:
        return len(self.linear)

    @property
    def rows(self) -> np.ndarray:
        """The row of K of every variable, int32."""
        return np.arange(self.size, dtype=np.int32) if self.row is None else self.row

    def scaled(self, factor: float) -> BoxProblem:
        """The problem of a C so many times as large."""
        return replace(self, lower=factor * self.lower, upper=factor * self.upper)

    def part(self, variables: slice | np.ndarray) -> BoxProblem:
        """The problem of some variables, the others as they are."""
        return replace(
            self,
            linear=self.linear[variables],
            lower=self.lower[variables],
            upper=self.upper[variables],
            sum_of=None if self.sum_of is None else self.sum_of[variables],
            row=self.rows[variables],
        )


@dataclass(frozen=True, eq=False)
class Formulation:
    """Problems over the same rows: `problem` holds their variables, `start` int64 (n_problems + 1,)
    where each begins, and `alpha` where a solver begins: feasible, with the sums that are kept.

    There may be several folds: the same problems for each, some of them empty, one fold after the
    other."""

    problem: BoxProblem
    start: np.ndarray
    alpha: np.ndarray
    n_folds: int = 1

    @property
    def n_problems(self) -> int:
        return len(self.start) - 1

    @property
    def has_sums(self) -> bool:
        return self.problem.n_sums > 0

    @property
    def weight(self) -> float:
        """The largest sum of |alpha| that the bounds of a problem allow."""
        bound = np.maximum(np.abs(self.problem.lower), np.abs(self.problem.upper))
        return float(reduce_parts(np.add, bound, self.start).max())

    @property
    def negligible_rows(self) -> np.ndarray:
        """The rows, ascending, that have a bound of 0 in a problem (see `counted`)."""
        problem = self.problem
        return np.unique(problem.rows[problem.lower == problem.upper])

    @property
    def number(self) -> np.ndarray:
        """The problem of every variable, int32."""
        return np.repeat(np.arange(self.n_problems, dtype=np.int32), np.diff(self.start))

    def problem_of(self, variables: np.ndarray) -> np.ndarray:
        """The problem of some variables."""
        return np.searchsorted(self.start, variables, side="right") - 1

    def parts(self) -> list[slice]:
        return slices_between(self.start)

    def with_sums(self, alpha: np.ndarray) -> np.ndarray:
        """alpha inside its bounds, brought to the sums that are kept (see `with_sum`)."""
        problem = self.problem
        alpha = np.clip(alpha, problem.lower, problem.upper)
        for part in self.parts():
            for number in range(problem.n_sums):
                own = part.start + np.flatnonzero(problem.sum_of[part] == number)
                wanted = self.alpha[own].sum()
                alpha[own] = with_sum(alpha[own], problem.lower[own], problem.upper[own], wanted)
        return alpha

    def relaxed(self, multiplier: float) -> Formulation:
        """Without the sum, its multiplier in the linear term: where the solution has the sum, it is
        that of this formulation, and the multiplier its rho."""
        problem = replace(
            self.problem, linear=self.problem.linear + multiplier, sum_of=None, n_sums=0
        )
        return replace(self, problem=problem)

    @property
    def n_problems_of_fold(self) -> int:
        return self.n_problems // self.n_folds

    def variables_of_fold(self, fold: int) -> np.ndarray:
        first, last = np.array([fold, fold + 1]) * self.n_problems_of_fold
        return np.arange(self.start[first], self.start[last], dtype=np.int32)


def slices_between(start: np.ndarray) -> list[slice]:
    """Return the slice of each part, given where each begins and the last one ends."""
    return [slice(a, b) for a, b in pairwise(start)]


# From targets (n,) of rows in some order and their sample weights float64 (n,).
Formulate = Callable[[np.ndarray, np.ndarray], Formulation]


def in_folds(
    formulate: Formulate, targets: np.ndarray, weights_of_folds: Iterable[np.ndarray]
) -> Formulation:
    """The problems of folds side by side, each with its own sample weights (n,); rows of weight 0
    have no variables in a fold."""
    folds = []
    for sample_weight in weights_of_folds:
        kept = np.flatnonzero(sample_weight).astype(np.int32)
        one = formulate(targets[kept], sample_weight[kept])
        rows = kept[one.problem.rows]
        folds.append(replace(one, problem=replace(one.problem, row=rows)))
    problems = [one.problem for one in folds]

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(problem, name) for problem in problems])

    arrays = {name: joined(name) for name in ("linear", "lower", "upper")}
    sum_of = None if problems[0].sum_of is None else joined("sum_of")
    unit = min(problem.unit for problem in problems)
    problem = replace(problems[0], **arrays, sum_of=sum_of, row=joined("rows"), unit=unit)
    sizes = np.concatenate([np.diff(one.start) for one in folds])
    return Formulation(
        problem,
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.concatenate([one.alpha for one in folds]),
        n_folds=len(folds),
    )


def counted(bound: np.ndarray, start: np.ndarray, margin: float = np.inf) -> np.ndarray:
    """Set bounds of |alpha| to 0 that are too small to change a decision value.

    The problems begin at `start`; `margin` is the size of their decision values.
    """
    largest = np.repeat(reduce_parts(np.maximum, bound, start), np.diff(start))
    return np.where(bound > NEGLIGIBLE * np.minimum(largest, margin), bound, 0.0)


def fill(bound: np.ndarray, total: float) -> np.ndarray:
    """Values between 0 and `bound` with a sum, the first as large as they may be."""
    return filled(bound, total - (np.cumsum(bound) - bound), ROUNDING * total)


def filled(bound: np.ndarray, left: np.ndarray, rounding: np.ndarray | float) -> np.ndarray:
    """What there is for each `bound` of what is `left` for it; exactly 0 or the bound where it is
    nearly that."""
    return np.where(left >= bound - rounding, bound, np.where(left > rounding, left, 0.0))


def with_sum(alpha: np.ndarray, lower: np.ndarray, upper: np.ndarray, wanted: float) -> np.ndarray:
    """alpha changed to the sum `wanted` as far as its bounds allow, all in proportion to their
    room: the free ones alone where they have enough, else the support vectors."""
    missing = wanted - alpha.sum()
    room = (upper if missing > 0 else lower) - alpha
    for some in ((alpha > lower) & (alpha < upper), alpha != 0):
        if abs(room[some].sum()) >= abs(missing):
            room = np.where(some, room, 0.0)
            break
    if room.sum() == 0:
        return alpha
    return alpha + room * min(missing / room.sum(), 1.0)
