"""Cross-validate: one model per fold, trained to the tolerance, predicts the held-out rows.

The folds add problems over the same rows. They share everything that does not depend on labels:
duplicates, encoded rows, components, clusters and kernel values.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.data.sorting import distinct
from dcsvm.data.used_columns import UsedColumns
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.model.metric_report import Measurement, Predicted
from dcsvm.model.parts import ModelParts
from dcsvm.model.predict import predicted_from
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.folds import Folds
from dcsvm.problem.option_table import CLASSIFIERS
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.checkpoint import RunControl
from dcsvm.solving.memory import Plan
from dcsvm.solving.preparation import Prepared, prepare_rows
from dcsvm.solving.report import PartOfProgress, Progress
from dcsvm.solving.solver import FormulationSolver
from dcsvm.training.held_out import folds_of, formulation_of_folds, held_out_values
from dcsvm.training.run import Levels, Run
from dcsvm.training.steps import find_early_level, improve
from dcsvm.training.warm_start import PathWarmStart

# A batch of folds has at most BATCH_VARIABLES variables or FOLD_FACTOR times the variables of the
# whole problem, whichever is more. The memory budget may allow fewer.
BATCH_VARIABLES = 2**20
FOLD_FACTOR = 4


def cross_validate(
    data: Dataset, options: TrainOptions, n_folds: int, progress: Progress | None = None
) -> CrossValidated:
    """Predict every row by a model trained on the other folds.

    Classifiers use folds stratified by class, other types shuffled folds. The options give the
    seed. If the training rows of a fold have one class only, that class is predicted. Warns if
    folds do not converge. Raises ValueError for invalid input.
    """
    start = time.perf_counter()
    progress, rows, labels = progress or Progress(), data.rows, data.labels
    if options.svm_type in CLASSIFIERS and len(distinct(labels)) == 1:
        return CrossValidated(labels.copy(), labels, options.svm_type)
    progress.begin("cross validation", rows.n_samples)
    columns = UsedColumns.of_rows(rows)
    options = number_of_gamma(options, rows)
    narrow = columns.of(rows)
    prepared = prepare_rows(narrow, labels, options, consume=data.is_disposable)
    tree = None
    if not options.early:  # levels only give starts; the exact models predict
        prepared = replace(prepared, plan=replace(prepared.plan, early_level=None))
    elif prepared.plan.choices:
        plan, tree = _plan_of_best_level(prepared)
        prepared = replace(prepared, plan=plan)
    held = CrossValidationRun(prepared, folds_of(prepared, n_folds), progress, tree=tree)
    for batch in held.batches(held.open):
        held.solve(batch)
    progress.end("cross validation", time.perf_counter() - start)
    if held.n_failed:
        progress.warn(f"{held.n_failed} of {n_folds} folds did not converge")
    predicted = held.predicted[held.folds.entry]
    return CrossValidated(predicted, labels, options.svm_type, held.n_failed)


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """Predictions (n,) of all rows, each by a model of other rows, and the labels (n,).

    `n_failed` folds did not converge.
    """

    predicted: np.ndarray
    labels: np.ndarray
    svm_type: str
    n_failed: int = 0

    def lines(self) -> list[str]:
        """Format svm-train's lines of a cross-validation."""
        measured = Measurement(self.svm_type, np.zeros(0))
        measured.add(Predicted(self.predicted, np.zeros((0, 0)), labels=self.labels))
        return measured.lines_of_folds()


class CrossValidationRun:
    """Cross-validation run that solves its folds in batches.

    Attributes
    ----------
    predicted : (n_entries,), predicted label or value of each entry of the folds.
    open : indices of the folds to solve; other folds have one training class and predict it.
    n_sv : number of support vectors of all solved folds.
    n_failed : number of folds that did not converge.
    largest : largest |alpha|, scaled to a row of weight 1; inf if a variable is at its bound.
    levels : clusters of all levels; runs with other labels on the same rows may share the tree.
    smaller : solutions for a smaller C, used as starts, or None.
    values : float64 (n_entries,), the first decision value of each entry, nan in folds with one
        training class; None unless they are kept (`keeps_values`).
    """

    def __init__(
        self,
        prepared: Prepared,
        folds: Folds,
        progress: Progress,
        stop: _core.Stop | None = None,
        tree: Tree | None = None,
        smaller: PathWarmStart | None = None,
        *,
        keeps_values: bool = False,
    ) -> None:
        self.prepared, self.folds, self.progress = prepared, folds, progress
        self.values = np.full(len(folds.fold), np.nan) if keeps_values else None
        self.levels = Levels(prepared, tree)
        self.stop, self.smaller = stop or _core.Stop(), smaller
        task = prepared.task
        self.parts = ModelParts(prepared.data.kernel, task.labels, None, None, task.svm_type)
        self.predicted, self.open = _predict_single_classes(prepared, folds)
        self.n_done = self.n_sv = self.n_failed = 0
        self.largest = 0.0

    def batches(self, indices: np.ndarray) -> list[np.ndarray]:
        """Split folds into batches within the variable budget; each has at least one fold."""
        prepared, n_folds = self.prepared, self.folds.n_folds
        size = prepared.formulation.problem.size
        fold_size = size * (n_folds - 1) / n_folds if n_folds > 1 else size
        budget = min(max(BATCH_VARIABLES, FOLD_FACTOR * size), prepared.memory.most_variables(size))
        batch_size = max(int(budget / fold_size), 1)
        return np.array_split(indices, -(-len(indices) // batch_size)) if len(indices) else []

    def solve(self, batch: np.ndarray) -> None:
        """Solve a batch of folds and predict the rows they hold out. Raises Stopped."""
        prepared, folds = self.prepared, self.folds
        formulation = formulation_of_folds(prepared, folds, batch)
        n_rows = folds.n_held(batch)
        n_phases = len(prepared.plan.levels) + 3  # refine, gradient, conquer
        part = PartOfProgress(self.progress, n_phases, self.n_done, n_rows)
        run = Run(prepared, RunControl(part, self.stop), formulation, levels=self.levels)
        known = None if self.smaller is None else self.smaller.begin(run.solver, batch)
        improve(run)
        solved = run.found or run.solver
        for entries, values in held_out_values(solved, folds, batch, known):
            self.predicted[entries] = predicted_from(self.parts, values)
            if self.values is not None:
                self.values[entries] = values[:, 0]
        if self.smaller is not None and known is not None:
            self.smaller.keep(run.solver, batch, known)
        self.n_done += n_rows
        self.n_sv += _n_sv(run.solver)
        self.n_failed += int(np.count_nonzero(~run.state.converged))
        self.largest = max(self.largest, _largest_alpha(run.solver))


def _predict_single_classes(prepared: Prepared, folds: Folds) -> tuple[np.ndarray, np.ndarray]:
    """Predict the entries of folds with a single training class.

    Returns predictions (n_entries,), unset for entries of other folds, and the indices of these
    other folds.
    """
    if not prepared.task.is_classification:
        return np.empty(len(folds.fold)), folds.nonempty
    predicted = np.empty(len(folds.fold), prepared.task.labels.dtype)
    classes = folds.classes_alone(prepared.targets[folds.row], prepared.task.n_classes)
    mask = classes >= 0
    predicted[mask] = prepared.task.labels[classes[mask]]
    return predicted, np.setdiff1d(folds.nonempty, folds.fold[mask])


def _plan_of_best_level(prepared: Prepared) -> tuple[Plan, Tree]:
    """Return a plan with only the best early level of all rows, and its cluster tree.

    The search uses leave-one-out values, so the label of a row does not affect its own loss.
    """
    run = Run(prepared)
    find_early_level(run)
    choice, tree = run.state.early_choice, run.levels.tree
    assert choice is not None and tree is not None
    level = choice.level
    return replace(prepared.plan, levels=(level,), early_level=level, choices=()), tree


def _largest_alpha(solver: FormulationSolver) -> float:
    """Return the largest |alpha|, scaled to weight 1; inf if a variable is at its bound."""
    alpha, problem = np.abs(solver.alpha), solver.problem
    bound = np.maximum(problem.upper, -problem.lower)
    if np.any((alpha >= bound * (1 - 1e-12)) & (alpha > 0)):
        return np.inf
    unit_bound = solver.task.bound_of(solver.prepared.targets[problem.rows])
    return float(np.max(alpha / bound * unit_bound, initial=0.0))


def _n_sv(solver: FormulationSolver) -> int:
    """Count the support vectors of all folds, each duplicate separately."""
    support, targets = np.flatnonzero(solver.alpha), solver.prepared.targets
    row = solver.problem.rows[support]
    fold = solver.formulation.problem_index[support] // solver.formulation.n_problems_of_fold
    _, position = np.unique(fold * len(targets) + row, return_inverse=True)
    counts = np.zeros(len(support))
    size = np.abs(solver.alpha[support]) / solver.task.bound_of(targets[row])
    np.maximum.at(counts, position, np.ceil(size * (1 - 1e-12)))
    return int(counts.sum())
