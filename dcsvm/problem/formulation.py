"""Problem types as box QPs (csrc/solver/box_qp.h): linear term, bounds, sums that are kept.

The solver knows none of the types. A Formulation is one problem or several (one against one) over
the same rows; their variables stand one problem after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

ROUNDING = 1e-12  # of a sum: what is left of it by rounding


@dataclass(frozen=True, eq=False)
class BoxProblem:
    """minimise 1/2 a'Ka - linear'a, lower <= a <= upper, the sums kept.

    All arrays have one entry per variable: `linear`, `lower`, `upper` float64; `sum_of` int8, the
    sum a variable belongs to (-1 for none), or None; `row` int32, the row of K a
    variable uses, or None for its own number.
    """

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    sum_of: np.ndarray | None = None
    n_sums: int = 0
    row: np.ndarray | None = None

    @property
    def size(self) -> int:
        return len(self.linear)

    @property
    def rows(self) -> np.ndarray:
        """The row of K of every variable, int32."""
        return np.arange(self.size, dtype=np.int32) if self.row is None else self.row

    def part(self, variables: slice | np.ndarray) -> BoxProblem:
        """The problem of some variables, the others as they are."""
        return BoxProblem(
            self.linear[variables],
            self.lower[variables],
            self.upper[variables],
            None if self.sum_of is None else self.sum_of[variables],
            self.n_sums,
            self.rows[variables],
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
        return max(float(bound[part].sum()) for part in self.parts())

    @property
    def number(self) -> np.ndarray:
        """The problem of every variable, int32."""
        return np.repeat(np.arange(self.n_problems, dtype=np.int32), np.diff(self.start))

    def parts(self) -> list[slice]:
        return [slice(a, b) for a, b in zip(self.start[:-1], self.start[1:], strict=True)]

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

    @property
    def n_problems_of_fold(self) -> int:
        return self.n_problems // self.n_folds

    def parts_of_fold(self, fold: int) -> list[slice]:
        """The problems of a fold that have variables."""
        first = fold * self.n_problems_of_fold
        parts = self.parts()[first : first + self.n_problems_of_fold]
        return [part for part in parts if part.start < part.stop]

    def variables_of_fold(self, fold: int) -> np.ndarray:
        first, last = np.array([fold, fold + 1]) * self.n_problems_of_fold
        return np.arange(self.start[first], self.start[last], dtype=np.int32)


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
    sum_of = None
    if problems[0].sum_of is not None:
        sum_of = np.concatenate([problem.sum_of for problem in problems])
    sizes = np.concatenate([np.diff(one.start) for one in folds])
    problem = BoxProblem(
        linear=np.concatenate([problem.linear for problem in problems]),
        lower=np.concatenate([problem.lower for problem in problems]),
        upper=np.concatenate([problem.upper for problem in problems]),
        sum_of=sum_of,
        n_sums=problems[0].n_sums,
        row=np.concatenate([problem.rows for problem in problems]),
    )
    return Formulation(
        problem,
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.concatenate([one.alpha for one in folds]),
        n_folds=len(folds),
    )


def c_svc(sign: np.ndarray, C: float, sample_weight: np.ndarray | int = 1) -> BoxProblem:
    """Equation (1) of the paper in signed alpha (y_i alpha_i): `sign` is +1.0 or -1.0 per variable,
    `sample_weight` how many rows it counts as."""
    _check_C(C)
    sign = np.ascontiguousarray(sign, dtype=np.float64)
    return BoxProblem(
        linear=sign,
        lower=np.where(sign > 0, 0.0, -C * sample_weight),
        upper=np.where(sign > 0, C * sample_weight, 0.0),
    )


def _check_C(C: float) -> None:
    if not 0 < C < float("inf"):
        raise ValueError(f"C must be positive and finite, not {C:g}")


def c_svc_pairs(
    classes: np.ndarray, sample_weight: np.ndarray, class_C: np.ndarray, *, bias: bool
) -> Formulation:
    """One against one: a C-SVC for each pair of classes, in LIBSVM's order, +1 for the first.

    `classes` int (n,) from 0, `class_C` float64 (k,) the bound of each class. With a bias the
    signed alpha of a problem sum to zero.
    """
    for C in class_C:
        _check_C(C)
    rows, signs, start = _pairs(classes, len(class_C))
    bound = class_C[classes[rows]] * sample_weight[rows]
    problem = BoxProblem(
        linear=signs,
        lower=np.where(signs > 0, 0.0, -bound),
        upper=np.where(signs > 0, bound, 0.0),
        sum_of=np.zeros(len(rows), np.int8) if bias else None,
        n_sums=int(bias),
        row=rows,
    )
    return Formulation(problem, start, np.zeros(len(rows)))


def nu_svc_pairs(
    classes: np.ndarray, sample_weight: np.ndarray, n_classes: int, nu: float
) -> Formulation:
    """nu-SVC (Schoelkopf et al. 2000) as LIBSVM solves it: each class of a pair keeps the sum
    nu n / 2 with bounds 1, n being the sum of `sample_weight`; solutions are divided by the margin
    afterwards."""
    rows, signs, start = _pairs(classes, n_classes)
    bound = sample_weight[rows].astype(np.float64)
    alpha = np.zeros(len(rows))
    for a, b in zip(start[:-1], start[1:], strict=True):
        total = bound[a:b].sum()
        for sign in (1.0, -1.0):
            own = a + np.flatnonzero(signs[a:b] == sign)
            wanted = nu * total / 2
            if wanted > bound[own].sum() * (1 + 1e-12):
                raise ValueError(f"nu {nu:g} is infeasible: a class has too few rows for it")
            alpha[own] = sign * fill(bound[own], wanted)
    problem = BoxProblem(
        linear=np.zeros(len(rows)),
        lower=np.where(signs > 0, 0.0, -bound),
        upper=np.where(signs > 0, bound, 0.0),
        sum_of=(signs < 0).astype(np.int8),
        n_sums=2,
        row=rows,
    )
    return Formulation(problem, start, alpha)


def one_class(sample_weight: np.ndarray, nu: float) -> Formulation:
    """One-class SVM (Schoelkopf et al. 2001) as LIBSVM solves it: bounds 1, sum nu n, n being the
    sum of `sample_weight`."""
    bound = sample_weight.astype(np.float64)
    problem = BoxProblem(
        linear=np.zeros(len(bound)),
        lower=np.zeros(len(bound)),
        upper=bound,
        sum_of=np.zeros(len(bound), np.int8),
        n_sums=1,
    )
    return Formulation(problem, _one(len(bound)), fill(bound, nu * bound.sum()))


def epsilon_svr(
    targets: np.ndarray, sample_weight: np.ndarray, C: float, epsilon: float
) -> Formulation:
    """epsilon-SVR: alpha of all rows, then -alpha*, both with bound C and the sum of all zero."""
    _check_C(C)
    return _svr(targets, sample_weight * C, epsilon, np.zeros(2 * len(targets)), shared=True)


def nu_svr(targets: np.ndarray, sample_weight: np.ndarray, C: float, nu: float) -> Formulation:
    """nu-SVR as LIBSVM solves it: alpha and alpha* each keep the sum C nu n / 2."""
    _check_C(C)
    bound = sample_weight * float(C)
    half = fill(bound, C * nu * sample_weight.sum() / 2)
    return _svr(targets, bound, 0.0, np.concatenate([half, -half]), shared=False)


def _svr(targets, bound, epsilon, alpha, *, shared: bool) -> Formulation:
    n, zero = len(targets), np.zeros(len(targets))
    targets = targets.astype(np.float64)
    problem = BoxProblem(
        linear=np.concatenate([targets - epsilon, targets + epsilon]),
        lower=np.concatenate([zero, -bound]),
        upper=np.concatenate([bound, zero]),
        sum_of=np.repeat(np.array([0, 0 if shared else 1], np.int8), n),
        n_sums=1 if shared else 2,
        row=np.tile(np.arange(n, dtype=np.int32), 2),
    )
    return Formulation(problem, _one(2 * n), alpha)


def fill(bound: np.ndarray, total: float) -> np.ndarray:
    """Values between 0 and `bound` with a sum, the first as large as they may be."""
    return filled(bound, total - (np.cumsum(bound) - bound), ROUNDING * total)


def filled(bound: np.ndarray, left: np.ndarray, rounding: np.ndarray | float) -> np.ndarray:
    """What there is for each `bound` of what is `left` for it; exactly 0 or the bound where it is
    nearly that."""
    return np.where(left >= bound - rounding, bound, np.where(left > rounding, left, 0.0))


def with_sum(alpha: np.ndarray, lower: np.ndarray, upper: np.ndarray, wanted: float) -> np.ndarray:
    """alpha changed to the sum `wanted` as far as its bounds allow, all in proportion to their
    room: the support vectors alone where they have enough."""
    missing = wanted - alpha.sum()
    room = (upper if missing > 0 else lower) - alpha
    support = np.where(alpha != 0, room, 0.0)
    if abs(support.sum()) >= abs(missing):
        room = support
    if room.sum() == 0:
        return alpha
    return alpha + room * min(missing / room.sum(), 1.0)


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    return list(combinations(range(n_classes), 2))


def _one(size: int) -> np.ndarray:
    return np.array([0, size], dtype=np.int64)


def _pairs(classes: np.ndarray, n_classes: int):
    """Rows int32 and signs of the variables of all pairs, and where each pair begins; a pair has
    none where one of its classes has no rows."""
    rows, signs = [], []
    present = np.bincount(classes, minlength=n_classes) > 0
    for first, second in pairs_of(n_classes):
        own = (classes == first) | (classes == second)
        own = np.flatnonzero(own & present[first] & present[second]).astype(np.int32)
        rows.append(own)
        signs.append(np.where(classes[own] == first, 1.0, -1.0))
    start = np.concatenate(([0], np.cumsum([len(own) for own in rows]))).astype(np.int64)
    return np.concatenate(rows), np.concatenate(signs), start
