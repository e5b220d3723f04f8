"""Formulate the dual problems of LIBSVM's SVM types as quadratic programs."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from dcsvm.data.sorting import group_order
from dcsvm.problem.formulation import BoxQP, Formulation, counted, fill, slices_between

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
    bound = counted(C_of_class[classes[rows]] * sample_weight[rows], start, margin=1.0)
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
    for pair in slices_between(start):
        total = nu * bound[pair].sum() / 2
        for sign in (1.0, -1.0):
            members = pair.start + np.flatnonzero(signs[pair] == sign)
            if total > bound[members].sum() * (1 + 1e-12):
                raise ValueError(f"specified nu is infeasible: a class has too few rows for {nu:g}")
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

    Bounds at weight 1 are 1. alpha sums to nu n, where n is the sum of `sample_weight`.
    """
    start = np.array([0, len(sample_weight)], np.int64)
    bound = counted(sample_weight.astype(np.float64), start)
    problem = BoxQP(
        linear=np.zeros(len(bound)),
        lower=np.zeros(len(bound)),
        upper=bound,
        constraint_of=np.zeros(len(bound), np.int8),
        n_constraints=1,
    )
    return Formulation(problem, start, fill(bound, nu * bound.sum()))


def epsilon_svr(
    targets: np.ndarray, sample_weight: np.ndarray, C: float, epsilon: float
) -> Formulation:
    """Formulate epsilon-SVR: variables alpha, then -alpha*, with bound C and a sum of zero."""
    bound = _regression_bound(sample_weight * C, targets)
    return _svr(targets, bound, epsilon, np.zeros(2 * len(targets)), n_constraints=1)


def nu_svr(targets: np.ndarray, sample_weight: np.ndarray, C: float, nu: float) -> Formulation:
    """Formulate nu-SVR as LIBSVM does: alpha and alpha* each sum to C nu n / 2.

    There is no epsilon to set the scale of errors. The violation scale is therefore the standard
    deviation of the targets, at most 1. Bounds are at most MAX_BOUND: a solution that
    needs larger ones is lost in rounding, since only the difference alpha - alpha* counts.
    """
    mean = np.average(targets, weights=sample_weight)
    deviation = float(np.sqrt(np.average((targets - mean) ** 2, weights=sample_weight)))
    unit = min(1.0, deviation) if deviation > 0 else 1.0
    asked = sample_weight * float(C)
    capped = np.minimum(asked, MAX_BOUND * (deviation or 1.0))
    bound = _regression_bound(capped, targets)
    total = C * nu * sample_weight.sum() / 2 * (capped.sum() / asked.sum())
    half = fill(bound, total)
    formulation = _svr(targets, bound, 0.0, np.concatenate([half, -half]), n_constraints=2)
    return replace(formulation, problem=replace(formulation.problem, violation_scale=unit))


def _regression_bound(bound: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Set bounds to 0 that are negligible relative to the standard deviation of the targets."""
    margin = float(np.std(targets)) or np.inf
    return counted(bound, np.array([0, len(bound)]), margin=margin)


def _svr(
    targets: np.ndarray, bound: np.ndarray, epsilon: float, alpha: np.ndarray, n_constraints: int
) -> Formulation:
    """Formulate a regression with one sum of all variables, or two: of alpha and of -alpha*."""
    n, zero = len(targets), np.zeros(len(targets))
    targets = targets.astype(np.float64)
    problem = BoxQP(
        linear=np.concatenate([targets - epsilon, targets + epsilon]),
        lower=np.concatenate([zero, -bound]),
        upper=np.concatenate([bound, zero]),
        constraint_of=np.repeat(np.array([0, n_constraints - 1], np.int8), n),
        n_constraints=n_constraints,
        row=np.tile(np.arange(n, dtype=np.int32), 2),
    )
    return Formulation(problem, np.array([0, 2 * n], np.int64), alpha)


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    return list(combinations(range(n_classes), 2))


def _signed(signs: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper bounds of signed alpha with |alpha| up to `bound`."""
    return np.where(signs > 0, 0.0, -bound), np.where(signs > 0, bound, 0.0)


def _pairs(classes: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows int32 and signs float64 of the variables of all pairs, and starts int64 of pairs.

    The rows of a pair ascend. A pair with an empty class has no variables.
    """
    first, second = np.triu_indices(n_classes, 1)
    number = np.zeros((n_classes, n_classes), np.int32)
    number[first, second] = number[second, first] = np.arange(len(first))
    present, place = np.unique(classes, return_inverse=True)
    among = number[np.ix_(present, present)]
    pairs_of_class = among[~np.eye(len(present), dtype=bool)].reshape(
        len(present), max(len(present) - 1, 0)
    )
    pair = pairs_of_class[place].reshape(-1)
    order = group_order(pair)
    rows = (order // max(pairs_of_class.shape[1], 1)).astype(np.int32)
    sizes = np.bincount(pair, minlength=len(first))
    start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return rows, np.where(classes[rows] == np.repeat(first, sizes), 1.0, -1.0), start
