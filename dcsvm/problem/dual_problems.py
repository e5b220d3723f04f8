"""The dual problems of LIBSVM's types, as formulations: linear terms, bounds and sums."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from dcsvm.data.sorting import group_order
from dcsvm.problem.formulation import BoxProblem, Formulation, counted, fill, slices_between


def c_svc_pairs(
    classes: np.ndarray, sample_weight: np.ndarray, class_C: np.ndarray, *, bias: bool
) -> Formulation:
    """One against one: equation (1) of the paper in signed alpha (y_i alpha_i) for each pair of
    classes, in LIBSVM's order, +1 for the first.

    `classes` int (n,) from 0, `class_C` float64 (k,) the bound of each class. With a bias the
    signed alpha of a problem sum to zero.
    """
    rows, signs, start = _pairs(classes, len(class_C))
    bound = counted(class_C[classes[rows]] * sample_weight[rows], start, margin=1.0)
    problem = BoxProblem(
        linear=signs,
        **_signed(signs, bound),
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
    bound = counted(sample_weight[rows].astype(np.float64), start)
    alpha = np.zeros(len(rows))
    for part in slices_between(start):
        total = bound[part].sum()
        for sign in (1.0, -1.0):
            own = part.start + np.flatnonzero(signs[part] == sign)
            wanted = nu * total / 2
            if wanted > bound[own].sum() * (1 + 1e-12):
                raise ValueError(f"specified nu is infeasible: a class has too few rows for {nu:g}")
            alpha[own] = sign * fill(bound[own], wanted)
    problem = BoxProblem(
        linear=np.zeros(len(rows)),
        **_signed(signs, bound),
        sum_of=(signs < 0).astype(np.int8),
        n_sums=2,
        row=rows,
        divides_by_margin=True,
    )
    return Formulation(problem, start, alpha)


def one_class(sample_weight: np.ndarray, nu: float) -> Formulation:
    """One-class SVM (Schoelkopf et al. 2001) as LIBSVM solves it: bounds 1, sum nu n, n being the
    sum of `sample_weight`."""
    start = np.array([0, len(sample_weight)], np.int64)
    bound = counted(sample_weight.astype(np.float64), start)
    problem = BoxProblem(
        linear=np.zeros(len(bound)),
        lower=np.zeros(len(bound)),
        upper=bound,
        sum_of=np.zeros(len(bound), np.int8),
        n_sums=1,
    )
    return Formulation(problem, start, fill(bound, nu * bound.sum()))


def epsilon_svr(
    targets: np.ndarray, sample_weight: np.ndarray, C: float, epsilon: float
) -> Formulation:
    """epsilon-SVR: alpha of all rows, then -alpha*, both with bound C and the sum of all zero."""
    bound = _counted_errors(sample_weight * C, targets)
    return _svr(targets, bound, epsilon, np.zeros(2 * len(targets)), shared=True)


def nu_svr(targets: np.ndarray, sample_weight: np.ndarray, C: float, nu: float) -> Formulation:
    """nu-SVR as LIBSVM solves it: alpha and alpha* each keep the sum C nu n / 2.

    No size of errors is given, so violations are told in standard deviations of the targets, where
    these are below 1."""
    bound = _counted_errors(sample_weight * float(C), targets)
    half = fill(bound, C * nu * sample_weight.sum() / 2)
    formulation = _svr(targets, bound, 0.0, np.concatenate([half, -half]), shared=False)
    mean = np.average(targets, weights=sample_weight)
    deviation = float(np.sqrt(np.average((targets - mean) ** 2, weights=sample_weight)))
    unit = min(1.0, deviation) if deviation > 0 else 1.0
    return replace(formulation, problem=replace(formulation.problem, unit=unit))


def _counted_errors(bound: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The bounds of a regression that are `counted`, beside the deviation of its targets."""
    return counted(bound, np.array([0, len(bound)]), margin=float(np.std(targets)) or np.inf)


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
    return Formulation(problem, np.array([0, 2 * n], np.int64), alpha)


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    return list(combinations(range(n_classes), 2))


def _signed(signs: np.ndarray, bound: np.ndarray) -> dict[str, np.ndarray]:
    """The bounds of signed alpha of sizes up to `bound`."""
    return {"lower": np.where(signs > 0, 0.0, -bound), "upper": np.where(signs > 0, bound, 0.0)}


def _pairs(classes: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """List rows int32 and signs of the variables of all pairs, and where each pair begins, int64.

    The rows of a pair ascend; a pair has none where one of its classes has no rows.
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
