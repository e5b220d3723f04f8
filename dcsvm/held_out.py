"""Probabilities from rows that a model has not seen.

Five folds as in LIBSVM, but each starts from the solution of all rows: the alpha of the rows that
are held out are taken back, and the solver goes on from there.
"""

from __future__ import annotations

import numpy as np

from dcsvm.certificate import gradient_of
from dcsvm.extraction import check_margins, offset_and_margin
from dcsvm.folds import shuffled_folds, stratified_folds
from dcsvm.model import Probability
from dcsvm.probability import fit_sigmoid, laplace_sigma

N_FOLDS = 5


def probability_of(run) -> Probability | None:
    """What turns the decision values of a run into probabilities; None for one-class."""
    if run.task.kind == "one_class":
        return None
    values = held_out_values(run)
    rows = run.problem.rows
    copies = run.copies[rows]
    if run.task.kind == "regression":
        n = run.data.rows.n_samples
        sigma = laplace_sigma(run.values - values[:n], run.copies)
        return Probability(np.array([sigma]), None)
    fits = [
        fit_sigmoid(values[part], run.problem.upper[part] > 0, copies[part])
        for part in run.formulation.parts()
    ]
    A, B = np.array(fits).T
    return Probability(A, B)


def held_out_values(run) -> np.ndarray:
    """Decision value of every variable (N,) by the solution of the folds its row is not in."""
    problem, rows = run.problem, run.problem.rows
    n_rows = run.data.rows.n_samples
    n_folds = min(N_FOLDS, n_rows)
    if run.task.kind == "classification":
        fold = stratified_folds(run.values, n_folds, run.options.seed)
    else:
        fold = shuffled_folds(n_rows, n_folds, run.options.seed)
    values = np.empty(problem.size)
    for k in range(n_folds):
        held = fold[rows] == k
        alpha, gradient = run.alpha.copy(), np.zeros(problem.size)
        alpha[held] = 0.0
        for part in run.formulation.parts():
            restore_sums(run, part, held, alpha)
        members = np.flatnonzero(~held).astype(np.int32)
        run.solve(
            members, run.sizes_of(members), run.options.tolerance, alpha=alpha, gradient=gradient
        )
        away = np.flatnonzero(held)
        values[away] = problem.linear[away] + gradient_of(
            run.data, problem, alpha, away, run.units, run.reach, run.threads, float64=False
        )
        for part in run.formulation.parts():
            own = np.arange(part.start, part.stop)
            rho, margin = offset_and_margin(run, own[~held[part]], alpha, gradient)
            if run.options.svm_type == "nu_svc":
                check_margins(np.array([margin]))
            else:
                margin = 1.0
            values[own[held[part]]] = (values[own[held[part]]] - rho) / margin
    return values


def restore_sums(run, part: slice, held: np.ndarray, alpha: np.ndarray) -> None:
    """Bring the sums of one problem back to what they are without the rows that are held out, in
    place: each is proportional to the bounds that are left, as in the formulations."""
    problem = run.problem
    if problem.group is None:
        return
    start = run.formulation.alpha
    kept_part = ~held[part]
    own = np.arange(part.start, part.stop)
    for group in range(problem.n_groups):
        inside = own[(problem.group[part] == group)]
        kept = own[(problem.group[part] == group) & kept_part]
        bound = problem.upper - problem.lower
        wanted = start[inside].sum() * bound[own[kept_part]].sum() / bound[own].sum()
        missing = wanted - alpha[kept].sum()
        end = problem.upper if missing > 0 else problem.lower
        room = end[kept] - alpha[kept]
        support = np.where(alpha[kept] != 0, room, 0.0)
        if abs(support.sum()) >= abs(missing):
            room = support
        if room.sum() != 0:
            alpha[kept] += room * min(missing / room.sum(), 1.0)
