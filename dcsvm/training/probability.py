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
from dcsvm.solving.control import Control
from dcsvm.solving.level_solving import LevelSolving
from dcsvm.solving.report import PartOfProgress
from dcsvm.solving.solving import Solving
from dcsvm.training.algorithm import EARLY_TOLERANCE, Run
from dcsvm.training.calibration import fit_sigmoid, laplace_sigma
from dcsvm.training.held_out import folds_of, formulation_of_folds, held_out_values


def fitted_probability(run: Run) -> Probability:
    """The probabilities of a run that is done; its report counts the work. Raises Stopped."""
    start, progress = time.perf_counter(), run.control.progress
    folds = folds_of(run.prepared, min(FOLDS_FOR_PROBABILITY, len(run.prepared.row_map.given)))
    some = _that_learn(run, folds)
    values = np.full((len(folds.row), run.formulation.n_problems), np.nan)
    if len(some) == 0:
        return _fitted(run, folds, values)
    formulation = formulation_of_folds(run.prepared, folds, some)
    n_rows = run.data.rows.n_samples
    progress.begin("probabilities", n_rows)
    part = PartOfProgress(progress, 1, 0, n_rows)
    control = Control(part, run.control.stop)
    if run.options.early:
        of_folds = level_of_folds(run, control, formulation)
    else:
        of_folds = Solving(run.prepared, control, formulation)
        of_folds.begin_with(alpha_without_held_out(run, folds, some, formulation))
        of_folds.extend_gradient()
        of_folds.conquer()
    run.report.include(of_folds.report)
    for entries, held_out in held_out_values(of_folds, folds, some):
        values[entries] = held_out
    found = _fitted(of_folds, folds, values)
    progress.end("probabilities", time.perf_counter() - start)
    return found


def level_of_folds(run: Run, control: Control, formulation: Formulation) -> LevelSolving:
    """The early level of a run, solved for folds."""
    number = run.state.early.level
    level = LevelSolving(run.prepared, control, formulation, run.divided(number), number)
    control.progress.begin("folds", level.problem.size)
    everything = np.ones(level.division.n_clusters, bool)
    level.solve_clusters(everything, max(run.options.tolerance, EARLY_TOLERANCE))
    return level


def _that_learn(run: Run, folds: Folds) -> np.ndarray:
    """The folds that have rows of two classes left to learn from, or any of a regression."""
    if not run.task.is_classification:
        return np.arange(folds.n_folds)
    is_known = folds.learns(run.prepared.targets[folds.row], run.task.n_classes)
    return np.flatnonzero(is_known.sum(axis=1) > 1)


def alpha_without_held_out(
    run: Solving, folds: Folds, some: np.ndarray, formulation: Formulation
) -> np.ndarray:
    """Where some folds start from the solution of a run: what they hold out is taken back, and the
    sums are brought to what they are in each fold."""
    rows = run.problem.rows
    alpha = []
    for number, k in enumerate(some):
        kept = folds.left(k)[rows] > 0
        sizes = np.diff(formulation.start)[number * run.formulation.n_problems :]
        kept &= sizes[run.formulation.number] > 0
        alpha.append(run.alpha[kept])
    problem = formulation.problem
    alpha = np.clip(np.concatenate(alpha), problem.lower, problem.upper)
    return formulation.with_sums(alpha)


def _fitted(of_folds: Solving, folds: Folds, values: np.ndarray) -> Probability:
    """The probabilities by the values of what folds hold out, nan where a fold has none."""
    task, truth = of_folds.task, of_folds.prepared.targets[folds.row]
    if task.is_regression:
        return Probability(np.array([laplace_sigma(truth - values[:, 0], folds.weight)]), None)
    one_class = _values_of_one_class(folds, truth, task.n_classes)
    is_centered = of_folds.options.probability == CENTERED
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
