"""nu-SVC where nu is too large for some pairs of classes.

Of two classes with weights W and w < W in all, nu (W + w) / 2 must not be above w. Beyond that the
dual problem has no solution and the primal one no bound: the larger the margin the better, with
every row on the side of the heavier class. LIBSVM refuses all of it where one pair is so. Where the
reduced convex hulls of two classes meet the solution is w = 0, and what LIBSVM divides by its
margin is rounding. Here such pairs go to their heavier class, and the others are solved each for
itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.model import Model
from dcsvm.model.ordering import with_label_order
from dcsvm.model.parts import ExactModel, Probability
from dcsvm.problem.dual_problems import pairs_of
from dcsvm.solving.extraction import NoMargin
from dcsvm.solving.report import ProblemReport, TrainReport

ROUNDING = 1e-12  # that LIBSVM's rule allows
SURE = -10.0  # A of a pair that is always of one class: 0.99995 for it

# Trains on (rows, labels, weights).
Train = Callable[[Rows, np.ndarray, np.ndarray], tuple[Model, TrainReport]]


def is_infeasible(first: float, second: float, nu: float) -> bool:
    """Whether nu is, for two classes of these weights in all."""
    return nu * (first + second) / 2 > min(first, second) * (1 + ROUNDING)


def infeasible_pairs(total: np.ndarray, nu: float) -> list[tuple[int, int]]:
    """The pairs of classes, with weights (k,) in all, for which nu is infeasible."""
    return [(i, j) for i, j in pairs_of(len(total)) if is_infeasible(total[i], total[j], nu)]


def solved_pair_by_pair(
    train: Train, rows: Rows, codes: np.ndarray, weights: np.ndarray, options: dict
) -> tuple[Model, TrainReport, list[tuple[int, int]]]:
    """A model with the labels 0, 1, ... of rows of classes `codes` (n,), its report, and the pairs
    that have no solution; `options` are those that `train` heeds."""
    nu, kernel = options["nu"], _kernel_of(options)
    total = np.bincount(codes, weights)
    k, n = len(total), rows.n_samples
    pairs = pairs_of(k)
    coef, rho = np.zeros((k, n)), np.zeros(len(pairs))
    A, B = np.full(len(pairs), SURE), np.zeros(len(pairs))
    report = TrainReport(converged=True, violation=0.0, duality_gap=0.0, n_checked=0)
    unsolved = []
    for number, (i, j) in enumerate(pairs):
        own = (codes == i) | (codes == j)
        labels = np.where(own, codes, i).astype(np.float64)
        try:
            if is_infeasible(total[i], total[j], nu):
                raise NoMargin
            model, found = train(rows, labels, np.where(own, weights, 0.0))
        except NoMargin:
            unsolved.append((i, j))
            rho[number] = 1.0 if total[i] < total[j] else -1.0
            report.problems.append(ProblemReport(None, rho[number], n_sv=0, n_bsv=0))
            continue
        model = with_label_order(model, np.array([float(i), float(j)]))
        exact, class_ = model.exact, codes[model.exact.row_numbers]
        coef[np.where(class_ == i, j, i), exact.row_numbers] = exact.dual_coef[0]
        rho[number] = exact.rho[0]
        kernel = model.kernel
        if model.probability is not None:
            A[number], B[number] = model.probability.A[0], model.probability.B[0]
        _add(report, found)
    support = np.flatnonzero(coef.any(axis=0))
    support = support[np.argsort(codes[support], kind="stable")]
    other = np.arange(k - 1)[:, None]
    other = other + (other >= codes[support])
    exact = ExactModel(
        rows=_rows_for_model(rows, kernel, support),
        dual_coef=coef[other, support],
        rho=rho,
        n_sv=np.bincount(codes[support], minlength=k),
        row_numbers=support,
    )
    report.n_sv = len(support)
    probability = Probability(A, B) if options["probability"] else None
    made = Model(
        kernel, np.arange(float(k)), exact, None, svm_type="nu_svc", probability=probability
    )
    return made, report, unsolved


def _rows_for_model(rows: Rows, kernel: Kernel, support: np.ndarray) -> Rows:
    if kernel.is_precomputed:
        return Rows(len(support), rows.n_features, columns=support.astype(np.int32))
    return rows.take(support)


def _kernel_of(options: dict) -> Kernel:
    return Kernel(*(options[name] for name in ("kernel", "gamma", "coef0", "degree")))


def _add(report: TrainReport, one: TrainReport) -> None:
    """Add what is known of one pair."""
    report.include(one)
    report.problems += one.problems
    report.converged &= one.converged
    report.stopped |= one.stopped
    report.violation = max(report.violation, one.violation)
    gaps = report.duality_gap, one.duality_gap
    report.duality_gap = None if None in gaps else sum(gaps)
    report.n_bsv += one.n_bsv
    report.threads = one.threads
    report.seconds_train += one.seconds_train
    report.seconds_verify += one.seconds_verify
