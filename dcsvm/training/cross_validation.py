"""Cross validation: every row is predicted by a model of the rows that its fold does not hold out,
each model trained to the tolerance.

Folds are further problems over the same rows. They have everything in common that no label of a
held-out row has touched: merged and encoded rows, independent groups, clusterings, kernel values.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.model.parts import ModelParts
from dcsvm.model.predict import predicted_from
from dcsvm.problem.folds import Folds
from dcsvm.problem.option_rules import CLASSIFIERS
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.checkpoint import Control
from dcsvm.solving.memory import Plan
from dcsvm.solving.preparation import Columns, Prepared, prepare_rows
from dcsvm.solving.report import PartOfProgress, Progress
from dcsvm.solving.solver import FormulationSolver
from dcsvm.training.algorithm import improve
from dcsvm.training.held_out import folds_of, formulation_of_folds, held_out_values
from dcsvm.training.run import Levels, Run
from dcsvm.training.smaller_C import SmallerC
from dcsvm.training.steps import find_early_level

VARIABLES_AT_ONCE = 2**20  # of folds solved side by side, or
ROOM_OF_FOLDS = 4  # times those of all rows; but no more than there is memory for


def cross_validate(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    n_folds: int,
    progress: Progress | None = None,
    *,
    consume: bool = False,
) -> np.ndarray:
    """Held-out predictions (n,) of `labels` (n,), float64 or strings: each row by the models of the
    other folds.

    Folds are stratified for classes and shuffled otherwise, by the seed of the options. Where
    the other folds have rows of one class only, that class is predicted. `consume`: nobody else
    uses the rows. Warns of folds that did not converge; raises ValueError for what does not fit.
    """
    start = time.perf_counter()
    progress = progress or Progress()
    if options.svm_type in CLASSIFIERS and len(np.unique(labels)) == 1:
        return labels.copy()
    progress.begin("cross validation", rows.n_samples)
    columns = Columns(rows)
    options = columns.options(options)
    prepared = prepare_rows(columns.of(rows), labels, options, consume=consume)
    tree = None
    if not options.early:  # no level has to be better than the start of the next
        prepared = replace(prepared, plan=replace(prepared.plan, early_level=None))
    elif prepared.plan.choices:
        plan, tree = _plan_of_best_level(prepared)
        prepared = replace(prepared, plan=plan)
    held = HeldOut(prepared, folds_of(prepared, n_folds), progress, tree=tree)
    for some in held.batches(held.open):
        held.solve(some)
    progress.end("cross validation", time.perf_counter() - start)
    if held.n_failed:
        warnings.warn(f"{held.n_failed} of {n_folds} folds did not converge", stacklevel=2)
    return held.predicted[held.folds.entry]


class HeldOut:
    """Predictions of what folds hold out, by solutions of some folds at a time.

    `predicted` (m,) is that of each entry of the folds, labels or values, `open` are the folds that
    must be solved for it. Others learn from one class only, and predict that. `n_sv` support
    vectors were found in all, and `n_failed` folds did not converge. `largest` is the largest
    |alpha| of a row of weight 1, infinity where one is at its bound. Clusters look at no solution:
    runs may share a `tree`. Runs may begin where those of a `smaller` C ended.
    """

    def __init__(
        self,
        prepared: Prepared,
        folds: Folds,
        progress: Progress,
        stop: _core.Stop | None = None,
        tree: Tree | None = None,
        smaller: SmallerC | None = None,
    ):
        self.prepared, self.folds, self.progress = prepared, folds, progress
        self.levels = Levels(prepared, tree)
        self.stop, self.smaller = stop or _core.Stop(), smaller
        task = prepared.task
        self.parts = ModelParts(prepared.data.kernel, task.labels, None, None, task.svm_type)
        self.predicted, self.open = _by_class_alone(prepared, folds)
        self.n_done = self.n_sv = self.n_failed = 0
        self.largest = 0.0

    @property
    def tree(self) -> Tree | None:
        return self.levels.tree

    def batches(self, some: np.ndarray) -> list[np.ndarray]:
        """Folds to solve side by side: as many as have not too many variables, at least one."""
        prepared, n_folds = self.prepared, self.folds.n_folds
        size = prepared.formulation.problem.size
        of_fold = size * (n_folds - 1) / n_folds if n_folds > 1 else size
        room = prepared.memory.most_variables(size)
        most = min(max(VARIABLES_AT_ONCE, ROOM_OF_FOLDS * size), room)
        at_once = max(int(most / of_fold), 1)
        return np.array_split(some, -(-len(some) // at_once)) if len(some) else []

    def solve(self, some: np.ndarray) -> None:
        """Solve some folds and predict what they hold out. Raises Stopped."""
        prepared, folds = self.prepared, self.folds
        formulation = formulation_of_folds(prepared, folds, some)
        n_rows = folds.n_held(some)
        n_phases = len(prepared.plan.levels) + 3  # refine, gradient, conquer
        part = PartOfProgress(self.progress, n_phases, self.n_done, n_rows)
        run = Run(prepared, Control(part, self.stop), formulation, levels=self.levels)
        known = None if self.smaller is None else self.smaller.begin(run.solver, some)
        improve(run)
        solved = run.found or run.solver
        for entries, values in held_out_values(solved, folds, some, known):
            self.predicted[entries] = predicted_from(self.parts, values)
        if self.smaller is not None:
            self.smaller.keep(run.solver, some, known)
        self.n_done += n_rows
        self.n_sv += _n_sv(run.solver)
        self.n_failed += np.count_nonzero(~run.state.converged)
        self.largest = max(self.largest, _largest_alpha(run.solver))


def _by_class_alone(prepared: Prepared, folds: Folds) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of the entries of folds that learn from one class only, and the other folds."""
    folds_left = folds.filled
    if not prepared.task.is_classification:
        return np.empty(len(folds.fold)), folds_left
    predicted = np.empty(len(folds.fold), prepared.task.labels.dtype)
    alone = folds.classes_alone(prepared.targets[folds.row], prepared.task.n_classes)
    own = alone >= 0
    predicted[own] = prepared.task.labels[alone[own]]
    return predicted, np.setdiff1d(folds_left, folds.fold[own])


def _plan_of_best_level(prepared: Prepared) -> tuple[Plan, Tree]:
    """The plan with the early level that is best for all rows, and the clusters. No decision value
    of a row in that choice has seen its own label."""
    run = Run(prepared)
    find_early_level(run)
    level = run.state.early_choice.level
    plan = replace(prepared.plan, levels=(level,), early_level=level, choices=())
    return plan, run.levels.tree


def _largest_alpha(solver: FormulationSolver) -> float:
    """The largest |alpha| of a row of weight 1; infinity where a variable is at its bound."""
    alpha, problem = np.abs(solver.alpha), solver.problem
    bound = np.maximum(problem.upper, -problem.lower)
    if np.any((alpha >= bound * (1 - 1e-12)) & (alpha > 0)):
        return np.inf
    of_row = solver.task.bound_of(solver.prepared.targets[problem.rows])
    return float(np.max(alpha / bound * of_row, initial=0.0))


def _n_sv(solver: FormulationSolver) -> int:
    """Support vectors of all folds, merged rows counted one by one."""
    support, targets = np.flatnonzero(solver.alpha), solver.prepared.targets
    row = solver.problem.rows[support]
    fold = solver.formulation.number[support] // solver.formulation.n_problems_of_fold
    _, place = np.unique(fold * len(targets) + row, return_inverse=True)
    counts = np.zeros(len(support))
    size = np.abs(solver.alpha[support]) / solver.task.bound_of(targets[row])
    np.maximum.at(counts, place, np.ceil(size * (1 - 1e-12)))
    return int(counts.sum())
