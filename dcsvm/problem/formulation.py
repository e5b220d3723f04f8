"""The problem to solve: a task, and its quadratic program (csrc/solver/box_qp.h).

A task has the SVM type, the labels, and everything that depends on the type. The dual problems of
LIBSVM's types are formulated as quadratic programs with box and equality constraints, so the solver
does not depend on the type. A Formulation holds one or several problems (one against one) over the
same rows. The variables of a problem are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from dcsvm.data.arrays import distinct, group_order, reduce_parts
from dcsvm.problem.option_table import CLASSIFIERS, REGRESSIONS
from dcsvm.problem.options import TrainOptions

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

    def with_own_rows(self, variables: np.ndarray) -> tuple[BoxQP, np.ndarray]:
        """Return the problem of some variables with only their rows, and the indices of these."""
        part = self.part(variables)
        rows, place = np.unique(part.rows, return_inverse=True)
        return replace(part, row=place.reshape(-1).astype(np.int32)), rows


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
        bound = np.maximum(self.problem.upper, -self.problem.lower)
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
    # each fold by itself, on the rows of all: their kernel values are shared
    folds = []
    for sample_weight in weights_of_folds:
        kept = np.flatnonzero(sample_weight).astype(np.int32)
        fold = formulate(targets[kept], sample_weight[kept])
        rows = kept[fold.problem.rows]
        folds.append(replace(fold, problem=replace(fold.problem, row=rows)))
    problems = [fold.problem for fold in folds]

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(problem, name) for problem in problems])

    # rounded below 1: labels of held-out rows, which others train with, hardly ever change it
    scale = min(problem.violation_scale for problem in problems)
    problem = replace(
        problems[0],
        linear=joined("linear"),
        lower=joined("lower"),
        upper=joined("upper"),
        constraint_of=None if problems[0].constraint_of is None else joined("constraint_of"),
        row=joined("rows"),
        violation_scale=float(np.exp2(np.floor(np.log2(scale)))) if scale < 1 else scale,
    )
    sizes = np.concatenate([np.diff(fold.start) for fold in folds])
    return Formulation(
        problem,
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.concatenate([fold.alpha for fold in folds]),
        n_folds=len(folds),
    )


def counted(bound: np.ndarray, start: np.ndarray, margin: float = np.inf) -> np.ndarray:
    """Set bounds of |alpha| to 0 if they are too small to change a decision.

    The problems begin at `start` int64 (n_problems + 1,). Bounds are compared with the largest
    bound of their problem, or with the `margin` of decision values if that is smaller.
    """
    limit = NEGLIGIBLE * np.minimum(reduce_parts(np.maximum, bound, start), margin)
    is_counted = bound > (limit if len(limit) == 1 else np.repeat(limit, np.diff(start)))
    return bound if is_counted.all() else np.where(is_counted, bound, 0.0)


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


MAX_BOUND = 2.0**36  # times the standard deviation of the targets: the largest bound of nu-SVR
# Violations of nu-SVC are relative to the largest weight if that exceeds this: rounding hides
# smaller ones, and the model is divided by the margin, which grows with the weights.
HUGE_WEIGHT = 2.0**10


def c_svc_pairs(
    classes: np.ndarray, sample_weight: np.ndarray, C_of_class: np.ndarray, *, bias: bool
) -> Formulation:
    """Formulate C-SVC, one against one: equation (1) of the paper for each pair of classes.

    Variables are signed: y_i alpha_i, with y_i = +1 for the first class. Pairs are in LIBSVM's
    order. `classes` int (n,) begin at 0; `C_of_class` float64 (k,) are the bounds at weight 1. With
    a bias the variables of each pair sum to zero.
    """
    rows, signs, start = _pairs(classes, len(C_of_class))
    bound = counted((C_of_class[classes] * sample_weight)[rows], start, margin=1.0)
    lower, upper = _signed(signs, bound)
    problem = BoxQP(
        linear=signs,
        lower=lower,
        upper=upper,
        constraint_of=np.zeros(len(rows), np.int8) if bias else None,
        n_constraints=int(bias),
        row=rows,
    )
    return Formulation(problem, start, np.zeros(len(rows)))


def nu_svc_pairs(
    classes: np.ndarray, sample_weight: np.ndarray, n_classes: int, nu: float
) -> Formulation:
    """Formulate nu-SVC (Schoelkopf et al. 2000) as LIBSVM does, one against one.

    Bounds at weight 1 are 1. |alpha| of each class of a pair sums to nu n / 2, where n is the sum
    of `sample_weight` over the pair. Solutions are divided by the margin later. Raises ValueError
    if nu is infeasible.
    """
    rows, signs, start = _pairs(classes, n_classes)
    largest = float(sample_weight.max(initial=0.0))
    bound = counted(sample_weight[rows].astype(np.float64), start)
    alpha = np.zeros(len(rows))
    # both classes start with the same sum, filled from their first rows on, as in LIBSVM
    for pair in slices_between(start):
        total = nu * bound[pair].sum() / 2
        for sign in (1.0, -1.0):
            members = pair.start + np.flatnonzero(signs[pair] == sign)
            if total > bound[members].sum() * (1 + 1e-12):
                most = 2 * bound[members].sum() / bound[pair].sum()
                reason = f"a class has too few rows: it must be at most {most:.3g}, got {nu:g}"
                raise ValueError(f"specified nu is infeasible: {reason}")
            alpha[members] = sign * fill(bound[members], total)
    lower, upper = _signed(signs, bound)
    problem = BoxQP(
        linear=np.zeros(len(rows)),
        lower=lower,
        upper=upper,
        constraint_of=(signs < 0).astype(np.int8),
        n_constraints=2,
        row=rows,
        divides_by_margin=True,
        violation_scale=largest if largest > HUGE_WEIGHT else 1.0,
    )
    return Formulation(problem, start, alpha)


def one_class(sample_weight: np.ndarray, nu: float) -> Formulation:
    """Formulate the one-class SVM (Schoelkopf et al. 2001) as LIBSVM does.

    Bounds at weight 1 are 1. alpha sums to nu n, where n is the sum of `sample_weight`. Decision
    values are sums of kernel values times alpha, so the violation scale is nu n, at most 1.
    """
    start = np.array([0, len(sample_weight)], np.int64)
    bound = counted(sample_weight.astype(np.float64), start)
    total = nu * bound.sum()
    problem = BoxQP(
        linear=np.zeros(len(bound)),
        lower=np.zeros(len(bound)),
        upper=bound,
        constraint_of=np.zeros(len(bound), np.int8),
        n_constraints=1,
        violation_scale=min(1.0, total),
    )
    return Formulation(problem, start, fill(bound, total))


def epsilon_svr(
    targets: np.ndarray, sample_weight: np.ndarray, C: float, epsilon: float
) -> Formulation:
    """Formulate epsilon-SVR: variables alpha, then -alpha*, with bound C and a sum of zero."""
    bound = _regression_bound(sample_weight * C, targets)
    deviation = _deviation(targets, sample_weight)
    return _svr(targets, bound, epsilon, np.zeros(2 * len(targets)), deviation, n_constraints=1)


def nu_svr(targets: np.ndarray, sample_weight: np.ndarray, C: float, nu: float) -> Formulation:
    """Formulate nu-SVR as LIBSVM does: alpha and alpha* each sum to C nu n / 2.

    Bounds are at most MAX_BOUND: a solution that needs larger ones is lost in rounding, since only
    the difference alpha - alpha* counts.
    """
    deviation = _deviation(targets, sample_weight)
    asked = sample_weight * float(C)
    capped = np.minimum(asked, MAX_BOUND * deviation)
    bound = _regression_bound(capped, targets)
    total = C * nu * sample_weight.sum() / 2 * (capped.sum() / asked.sum())
    half = fill(bound, total)
    return _svr(targets, bound, 0.0, np.concatenate([half, -half]), deviation, n_constraints=2)


def _deviation(targets: np.ndarray, sample_weight: np.ndarray) -> float:
    """Return the standard deviation of weighted targets, 1 if they are equal up to rounding."""
    mean = np.average(targets, weights=sample_weight)
    deviation = float(np.sqrt(np.average((targets - mean) ** 2, weights=sample_weight)))
    return deviation if deviation > ROUNDING * np.abs(targets).max() else 1.0


def _regression_bound(bound: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Set bounds to 0 that are negligible relative to the standard deviation of the targets."""
    margin = float(np.std(targets)) or np.inf
    return counted(bound, np.array([0, len(bound)]), margin=margin)


def _svr(
    targets: np.ndarray,
    bound: np.ndarray,
    epsilon: float,
    alpha: np.ndarray,
    deviation: float,
    n_constraints: int,
) -> Formulation:
    """Formulate a regression with one sum of all variables, or two: of alpha and of -alpha*.

    The violation scale is the `deviation` of the targets, at most 1: LIBSVM's tolerance would take
    a constant for the solution of small targets.
    """
    n, zero = len(targets), np.zeros(len(targets))
    targets = targets.astype(np.float64)
    problem = BoxQP(
        linear=np.concatenate([targets - epsilon, targets + epsilon]),
        lower=np.concatenate([zero, -bound]),
        upper=np.concatenate([bound, zero]),
        constraint_of=np.repeat(np.array([0, n_constraints - 1], np.int8), n),
        n_constraints=n_constraints,
        row=np.tile(np.arange(n, dtype=np.int32), 2),
        violation_scale=min(1.0, deviation),
    )
    return Formulation(problem, np.array([0, 2 * n], np.int64), alpha)


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    return list(combinations(range(n_classes), 2))


def _signed(signs: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper bounds of signed alpha with |alpha| up to `bound`."""
    signed = signs * bound
    return np.minimum(signed, 0.0), np.maximum(signed, 0.0)


def _pairs(classes: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows int32 and signs float64 of the variables of all pairs, and starts int64 of pairs.

    The rows of a pair ascend. A pair with an empty class has no variables.
    """
    first, second = np.triu_indices(n_classes, 1)
    number = np.zeros((n_classes, n_classes), np.int32)
    number[first, second] = number[second, first] = np.arange(len(first))
    # each row has a variable in every pair of its class with another present class
    is_present = np.bincount(classes, minlength=n_classes) > 0
    present = np.flatnonzero(is_present)
    if len(present) == 2:  # of one pair: there is nothing to sort
        rows, pair = np.arange(len(classes), dtype=np.int32), number[tuple(present)]
        start = np.where(np.arange(len(first) + 1) > pair, len(classes), 0)
        return rows, 1.0 - 2.0 * (classes != present[0]), start
    among = number[np.ix_(present, present)]
    pairs_of_class = among[~np.eye(len(present), dtype=bool)].reshape(
        len(present), max(len(present) - 1, 0)
    )
    pair = pairs_of_class[(np.cumsum(is_present) - 1)[classes]].reshape(-1)
    order = group_order(pair)  # pair by pair, rows ascending
    rows = (order // max(pairs_of_class.shape[1], 1)).astype(np.int32)
    sizes = np.bincount(pair, minlength=len(first))
    start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return rows, np.where(classes[rows] == np.repeat(first, sizes), 1.0, -1.0), start


@dataclass(frozen=True, eq=False)
class Task:
    """A learning task.

    `targets` (n,) are class indices int32 for classifiers, float64 targets for regressions, and
    zeros for one-class. `labels` (k,), float64 or strings, are the classes in LIBSVM's order.
    `C_of_class` float64 is the bound of |alpha| for rows of weight 1: (k,) by class for
    classifiers, otherwise (1,).
    """

    options: TrainOptions
    labels: np.ndarray
    targets: np.ndarray
    C_of_class: np.ndarray

    @property
    def svm_type(self) -> str:
        return self.options.svm_type

    @property
    def is_classification(self) -> bool:
        return self.svm_type in CLASSIFIERS

    @property
    def is_regression(self) -> bool:
        return self.svm_type in REGRESSIONS

    @property
    def divides_by_margin(self) -> bool:
        """Whether the solution is divided by its margin (nu-SVC)."""
        return self.svm_type == "nu_svc"

    @property
    def n_classes(self) -> int:
        return len(self.labels)

    def size_of_values(self, targets: np.ndarray, offset: float = 0.0) -> float:
        """Return the scale of decision values.

        For classifiers it is the margin, 1. For regressions it is the standard deviation of the
        targets. For one-class it is |offset|.
        """
        if self.is_classification:
            return 1.0
        return float(np.std(targets)) if self.is_regression else abs(offset)

    def bound_of(self, targets: np.ndarray) -> np.ndarray:
        """Return the bound of |alpha| at weight 1 for rows with these targets, float64 (n,)."""
        if self.is_classification:
            return self.C_of_class[targets.astype(np.int64)]
        return np.full(len(targets), self.C_of_class[0])

    def formulate(self, targets: np.ndarray, sample_weight: np.ndarray) -> Formulation:
        """Formulate the QPs of rows with targets (n,) and sample weights float64 (n,)."""
        options = self.options
        if self.svm_type == "c_svc":
            return c_svc_pairs(targets, sample_weight, self.C_of_class, bias=options.bias)
        if self.svm_type == "nu_svc":
            return nu_svc_pairs(targets, sample_weight, self.n_classes, options.nu)
        if self.svm_type == "one_class":
            return one_class(sample_weight, options.nu)
        if self.svm_type == "epsilon_svr":
            return epsilon_svr(targets, sample_weight, options.C, options.epsilon)
        return nu_svr(targets, sample_weight, options.C, options.nu)

    def parameters(
        self,
        size: np.ndarray,
        bound: np.ndarray,
        start: np.ndarray,
        n_rows: np.ndarray,
        margin: np.ndarray,
    ) -> tuple[str, np.ndarray]:
        """Return the parameter of the equivalent SVM type, which svm-train prints.

        Returns its name and its value for each problem, float64 (n_problems,). The value is NaN
        if svm-train prints none. The parameter is nu for C-SVC with equal bounds and epsilon-SVR,
        C for nu-SVC, and epsilon for nu-SVR.

        `size` is |alpha| of all variables, and `bound` their bound at weight 1. `start` is the
        first variable of each problem. `n_rows` (n_problems,) is the sum of the weights. `margin`
        (n_problems,) is r of nu-SVC or -epsilon of nu-SVR.
        """
        if self.svm_type == "nu_svc":
            return "C", 1.0 / margin
        if self.svm_type == "nu_svr":
            return "epsilon", -margin
        if self.svm_type == "one_class":
            return "", np.full(len(margin), np.nan)
        largest = reduce_parts(np.maximum, bound, start)
        are_equal = reduce_parts(np.minimum, bound, start, np.inf) == largest
        nu = reduce_parts(np.add, size, start) / (largest * n_rows)
        return "nu", np.where(are_equal, nu, np.nan)


def task_of(labels: np.ndarray, sample_weight: np.ndarray, options: TrainOptions) -> Task:
    """Make a task from labels (n,) and sample weights float64 (n,). Raises ValueError."""
    if len(labels) == 0:
        raise ValueError("there are no rows")
    no_labels, C = np.zeros(0), np.array([options.C])
    if options.svm_type == "one_class":
        return Task(options, no_labels, np.zeros(len(labels)), np.ones(1))
    check_labels(labels, options)
    if options.svm_type in REGRESSIONS:
        return Task(options, no_labels, labels.astype(np.float64), C)
    order, classes = _classes(labels, sample_weight)
    if options.svm_type == "nu_svc":
        return Task(options, order, classes, np.ones(len(order)))
    # only C-SVC has class weights
    if isinstance(options.class_weight, str):
        factors = balanced_factors(classes, sample_weight, len(order))
    else:
        given = options.class_weight or {}
        factors = np.array([given.get(label, 1.0) for label in order.tolist()])
    return Task(options, order, classes, options.C * factors)


def check_labels(labels: np.ndarray, options: TrainOptions) -> None:
    """Raise ValueError for labels or targets (n,) that cannot be trained."""
    is_text = labels.dtype.kind == "U"
    if not is_text and not np.all(np.isfinite(labels)):
        row = int(np.argmin(np.isfinite(labels)))
        raise ValueError(f"labels must be finite numbers, got {labels[row]} (row {row})")
    if is_text and options.svm_type in REGRESSIONS:
        raise ValueError("the targets of a regression must be numbers, not strings")


def balanced_factors(
    classes: np.ndarray, sample_weight: np.ndarray | None, n_classes: int
) -> np.ndarray:
    """Return the factors of C (k,) that give all classes the same total weight, as in scikit-learn.

    `classes` (n,) are class indices.
    """
    totals = np.bincount(classes, sample_weight, minlength=n_classes)
    present = totals > 0  # test rows may lack a class
    shares = np.divide(totals.sum(), totals, out=np.zeros(n_classes), where=present)
    return shares / np.count_nonzero(present)


def class_order(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes (k,) in LIBSVM's order, and the class int32 (n,) of each row.

    Classes are in order of first appearance. If the classes are +1 and -1, +1 is first. Unsigned
    integers are class indices and ascend. Raises ValueError for fewer than two classes.
    """
    order = distinct(labels)
    if len(order) < 2:
        number = f"one: {_plain(order[0])}" if len(order) else "none"
        raise ValueError(f"training needs two classes, found {number}")
    if set(order.tolist()) == {-1.0, 1.0}:
        order = np.array([1.0, -1.0])
        return order, (labels < 0).astype(np.int32)
    classes = np.searchsorted(order, labels).astype(np.int32)
    if order.dtype.kind == "u":
        return order, classes
    first_row = np.empty(len(order), np.int64)
    first_row[classes[::-1]] = np.arange(len(labels) - 1, -1, -1)  # the last write remains
    by_row = np.argsort(first_row)
    return order[by_row], np.argsort(by_row).astype(np.int32)[classes]


def _classes(labels: np.ndarray, sample_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `class_order` of the rows with positive weight; other rows get class 0."""
    mask = sample_weight > 0
    if mask.all():
        return class_order(labels)
    absent = np.setdiff1d(labels, labels[mask])
    if len(absent):
        raise ValueError(f"all rows of class {_plain(absent[0])} have sample weight 0")
    classes = np.zeros(len(labels), np.int64)
    order, classes[mask] = class_order(labels[mask])
    return order, classes


def _plain(label: float | str) -> str:
    if isinstance(label, str):
        return repr(str(label))
    return str(int(label)) if label == int(label) else repr(float(label))
