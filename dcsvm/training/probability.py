"""What turns decision values into probabilities (-b 1): five folds, solved side by side from the
solution of all rows less what each holds out, give values of rows that were not seen.
"""

from __future__ import annotations

import time

import numpy as np

from dcsvm.model.parts import Probability
from dcsvm.problem.dual_problems import pairs_of
from dcsvm.problem.folds import FOLDS_FOR_PROBABILITY, Folds
from dcsvm.problem.formulation import Formulation
from dcsvm.problem.options import CENTERED
from dcsvm.solving.conquer import conquer
from dcsvm.solving.control import Control
from dcsvm.solving.level_solver import LevelSolver
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.report import PartOfProgress
from dcsvm.solving.solver import FormulationSolver
from dcsvm.training.calibration import fit_sigmoid, laplace_sigma
from dcsvm.training.early_level import EARLY_TOLERANCE
from dcsvm.training.held_out import folds_of, formulation_of_folds, held_out_values
from dcsvm.training.run import Run


def fitted_probability(run: Run) -> Probability:
    """The probabilities of a run that is done; its report counts the work. Raises Stopped."""
    start, progress, prepared = time.perf_counter(), run.control.progress, run.prepared
    folds = folds_of(prepared, min(FOLDS_FOR_PROBABILITY, len(prepared.row_map.given)))
    some = _that_learn(prepared, folds)
    values = np.full((len(folds.row), run.solver.formulation.n_problems), np.nan)
    if len(some) == 0:
        return _fitted(prepared, folds, values)
    formulation = formulation_of_folds(prepared, folds, some)
    n_rows = prepared.data.rows.n_samples
    run.solver.begin_phase("probabilities", n_rows)
    control = Control(PartOfProgress(progress, 1, 0, n_rows), run.control.stop)
    if run.options.early:
        level = run.state.early.level
        division = run.levels.divided(level, run.solver)
        of_folds = LevelSolver(prepared, control, formulation, division, level)
        of_folds.solver.begin_phase("folds", of_folds.formulation.problem.size)
        of_folds.solve_clusters(max(run.options.tolerance, EARLY_TOLERANCE))
        costs = of_folds.solver.costs
    else:
        of_folds = FormulationSolver(prepared, control, formulation)
        of_folds.begin_with(alpha_without_held_out(run.solver, folds, some, formulation))
        of_folds.extend_gradient()
        conquer(of_folds)
        costs = of_folds.costs
    run.state.costs.include(costs)
    for entries, held_out in held_out_values(of_folds, folds, some):
        values[entries] = held_out
    found = _fitted(prepared, folds, values)
    progress.end("probabilities", time.perf_counter() - start)
    return found


def _that_learn(prepared: Prepared, folds: Folds) -> np.ndarray:
    """The folds that have rows of two classes left to learn from, or any of a regression."""
    if not prepared.task.is_classification:
        return np.arange(folds.n_folds)
    is_known = folds.learns(prepared.targets[folds.row], prepared.task.n_classes)
    return np.flatnonzero(is_known.sum(axis=1) > 1)


def alpha_without_held_out(
    solver: FormulationSolver, folds: Folds, some: np.ndarray, formulation: Formulation
) -> np.ndarray:
    """Start some folds from the solution of all rows: what they hold out is taken back, and the
    sums are brought to what they are in each fold."""
    rows = solver.problem.rows
    alpha = []
    for number, k in enumerate(some):
        kept = folds.left(k)[rows] > 0
        sizes = np.diff(formulation.start)[number * solver.formulation.n_problems :]
        kept &= sizes[solver.formulation.number] > 0
        alpha.append(solver.alpha[kept])
    problem = formulation.problem
    alpha = np.clip(np.concatenate(alpha), problem.lower, problem.upper)
    return formulation.with_sums(alpha)


def _fitted(prepared: Prepared, folds: Folds, values: np.ndarray) -> Probability:
    """The probabilities by the values of what folds hold out, nan where a fold has none."""
    task, truth = prepared.task, prepared.targets[folds.row]
    if task.is_regression:
        return Probability(np.array([laplace_sigma(truth - values[:, 0], folds.weight)]), None)
    one_class = _values_of_one_class(folds, truth, task.n_classes)
    is_centered = prepared.options.probability == CENTERED
    fits = []
    for pair, (first, second) in enumerate(pairs_of(task.n_classes)):
        own = np.flatnonzero((truth == first) | (truth == second))
        known = values[own, pair]
        known = np.where(np.isnan(known), one_class[folds.fold[own], first, second], known)
        is_first, weight = truth[own] == first, folds.weight[own]
        fits.append(fit_sigmoid(known, is_first, weight, centered=is_centered))
    A, B = np.array(fits).T
    return Probability(A, B)


def _values_of_one_class(folds: Folds, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Decision values (n_folds, n_classes, n_classes) of pairs of which a fold has not both classes
    to learn from, as in LIBSVM: 1 for the first, -1 for the second, 0 where it has neither."""
    is_known = folds.learns(classes, n_classes).astype(np.float64)
    return is_known[:, :, None] - is_known[:, None, :]
