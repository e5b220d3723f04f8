"""A run of Algorithm 1: a formulation that is being solved, and what its levels leave behind."""

from __future__ import annotations

import time

import numpy as np

from dcsvm import _core
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel
from dcsvm.problem.formulation import Formulation
from dcsvm.solving.checkpoint import UNREADABLE, Checkpoint, CheckpointError, Control
from dcsvm.solving.division import Division
from dcsvm.solving.engine import new_tree
from dcsvm.solving.extraction import Coefficients, early_model
from dcsvm.solving.level_solver import LevelSolver
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.relaxation import can_relax, relax
from dcsvm.solving.report import LevelReport
from dcsvm.solving.solver import FormulationSolver
from dcsvm.solving.state import RunState
from dcsvm.training.early_level import TestRows


class Levels:
    """Finds the clusters of prepared rows. Those of the `tree` (None before the first) look at no
    solution: runs over the same rows may share it."""

    def __init__(self, prepared: Prepared, tree: Tree | None = None):
        self.options, self.plan = prepared.options, prepared.plan
        self.engine, self.locality = prepared.engine, prepared.locality
        self.tree = prepared.tree if tree is None else tree
        self.seconds_alone = 0.0

    def grow(self, level: int, stop: _core.Stop) -> Tree:
        """Find the clusters of the tree up to this level. Raises Stopped."""
        if self.tree is None:
            self.tree = self._new_tree()
        self.plan.grow(self.tree, level, self.options, stop)
        return self.tree

    def divided(self, level: int, solver: FormulationSolver) -> Division:
        """Divide the rows of a solver into the clusters of a level. Raises Stopped."""
        overlap = self.options.early_overlap
        if level != self.plan.early_level and level not in self.plan.choices:
            overlap = 1.0
        if self.plan.is_alone(level, self.options):
            tree, n_levels = self._found_alone(level, solver, second=overlap > 1), 1
        else:
            tree, n_levels = self.grow(level, solver.control.stop), level
        return Division.overlapping(tree.partition(n_levels), tree.placed[n_levels], overlap)

    def seconds(self, level: int) -> float:
        """What finding the clusters of a level took, in a tree the step to it from the next coarser
        level of the plan."""
        if self.plan.is_alone(level, self.options):
            return self.seconds_alone
        coarser = max((one for one in self.plan.levels if one < level), default=0)
        return sum(self.tree.seconds[coarser + 1 : level + 1])

    def _new_tree(self) -> Tree:
        group = self.locality.group if self.locality.n_groups > 1 else None
        return new_tree(self.engine, self.options, self.locality.order, group)

    def _found_alone(self, level: int, solver: FormulationSolver, *, second: bool) -> Tree:
        """A level that is found from a sample of all rows, or of the support vectors of the level
        below (the paper's adaptive clustering, Theorem 3), which the state keeps. Raises
        Stopped."""
        tree, state = self._new_tree(), solver.state
        n_clusters = self.plan.branching**level
        if state.sample is None:
            support = np.unique(solver.problem.rows[np.flatnonzero(solver.alpha)])
            is_adaptive = self.options.clustering == "adaptive" and len(support) > 0
            state.sample = tree.sample(n_clusters, support if is_adaptive else None, level)
        tree.grow_alone(n_clusters, state.sample, solver.control.stop, second=second)
        self.seconds_alone = tree.seconds[1]
        return tree


class Run:
    """Solves prepared rows by the steps of their plan; a `formulation` of several folds keeps no
    models of levels.

    `solver` has the whole problem. The `division` of the level in progress, with its number, is
    solved by `level_solver` where rows are in two clusters, or no other level follows. `found` is
    the solved early level, where its clusters themselves predict. `test` rows choose it.
    Earlier processes took `seconds_before`.
    """

    def __init__(
        self,
        prepared: Prepared,
        control: Control | None = None,
        formulation: Formulation | None = None,
        *,
        levels: Levels | None = None,
        test: TestRows | None = None,
    ):
        self.prepared, self.control = prepared, control or Control()
        self.options, self.plan, self.test = prepared.options, prepared.plan, test
        self.solver = FormulationSolver(prepared, self.control, formulation, self.save)
        self.keeps_models = formulation is None
        self.levels = levels or Levels(prepared)
        self.seconds_before = 0.0
        self.division: tuple[int, Division] | None = None
        self.level_solver: LevelSolver | None = None
        self.found: LevelSolver | None = None

    @property
    def state(self) -> RunState:
        return self.solver.state

    def save(self) -> None:
        """Store a checkpoint, if one is kept."""
        if self.control.checkpoint is not None:
            self.set_seconds()
            if self.level_solver is not None and not self._is_choosing:
                self.state.level = self.level_solver.to_arrays()
            self.control.save(self.state, self.model_of_early)

    def load(self, checkpoint: Checkpoint) -> None:
        """Go on from the state that is stored. Raises CheckpointError."""
        prepared = self.prepared
        size = prepared.data.rows.n_samples, prepared.locality.n_groups
        checkpoint.load(self.state, self.solver.problem, *size)
        self.seconds_before = self.state.costs.seconds_train

    def save_level(self) -> None:
        """Store a checkpoint inside a level, once it is known which."""
        if not self._is_choosing:
            self.save()

    @property
    def _is_choosing(self) -> bool:
        return bool(self.plan.choices) and self.state.early_choice is None

    def set_seconds(self) -> None:
        seconds = time.perf_counter() - self.prepared.start
        self.state.costs.seconds_train = self.seconds_before + seconds

    def model_of_early(self, early: EarlyModel) -> Model:
        """A model that can be stored: labels that are strings become numbers from 0."""
        labels = self.prepared.task.labels
        if labels.dtype.kind == "U":
            labels = np.arange(len(labels), dtype=np.float64)
        svm_type = self.options.svm_type
        return Model(self.prepared.data.kernel, labels, None, early, svm_type=svm_type)

    def begin_level(self, level: int, division: Division) -> LevelSolver:
        """A level whose clusters are solved each for itself, from the current alpha, or from where
        a checkpoint has it. Raises CheckpointError."""
        solver, state = self.solver, self.state
        level_solver = LevelSolver(
            self.prepared, self.control, solver.formulation, division, level, self.save_level,
            state.budget,
        )  # fmt: skip
        if state.level is not None:
            try:
                level_solver.set_arrays(state.level)
            except UNREADABLE:
                told = "the checkpoint is damaged: it is of other clusters"
                raise CheckpointError(told) from None
        elif np.any(solver.alpha):
            level_solver.solver.begin_with(level_solver.alpha_from(solver.alpha))
        if self.level_solver is None:
            self.set_level(level_solver)
        return level_solver

    def set_level(self, level_solver: LevelSolver) -> None:
        """This level is in progress."""
        self.level_solver = level_solver
        self.division = level_solver.level, level_solver.division

    def finish_level(self, tolerance: float, begun: float) -> None:
        """Solve what is left of the level in progress, and keep its model; `begun` is when its
        clusters were found."""
        level_solver, level = self.level_solver, self.level_solver.level
        level_solver.solver.begin_phase(f"level {level}", level_solver.formulation.problem.size)
        level_solver.solve_clusters(tolerance)
        seconds = time.perf_counter() - begun
        told = level_solver.level_report(self.levels.seconds(level), seconds)
        self.take_level()
        self.note_level(told)
        if self.plan.choices or not self.keeps_models:
            self.found = level_solver
        self.end_level()

    def take_level(self) -> None:
        """Keep the model of the level in progress, as far as it is solved, and go on from there."""
        level_solver, solver = self.level_solver, self.solver
        if self.keeps_models:
            self.state.early, self.state.n_bsv = level_solver.model()
        level_solver.hand_over_counts(solver)
        self.state.converged = level_solver.converged & level_solver.is_solved.all()
        solver.iterate.alpha[:] = level_solver.alpha_of_whole()
        solver.iterate.forget(np.arange(solver.problem.size))
        self.state.is_global = False

    def end_level(self) -> None:
        """No level is in progress."""
        self.division = self.level_solver = None
        self.state.level = self.state.sample = None
        self.state.has_begun = False

    def keep_unfinished(self) -> None:
        """Keep what the level in progress has found, when it is stopped."""
        if self.division is None:
            return
        if self.level_solver is not None:
            if np.any(self.level_solver.solver.alpha):
                self.take_level()
        elif self.state.early is None and np.any(self.solver.alpha):
            self.keep_early(*self.division)

    def keep_early(self, level: int, division: Division) -> None:
        """Keep the model of a level for early prediction."""
        cluster = division.cluster[self.solver.problem.rows]
        found = early_model(self.solver.solution, level, division.partition, cluster)
        self.state.early, self.state.n_bsv = found

    def note_level(self, report: LevelReport) -> None:
        """Report a level, where models of levels are kept."""
        if not self.keeps_models:
            return
        rows = Coefficients(self.solver.solution).row_numbers
        report.n_sv = len(rows) if report.overlap == 1 else self.state.early.rows.n_samples
        self.state.levels.append(report)
        self.state.support_by_level.append(np.sort(rows))
        self.control.progress.end_level(report)

    def relax_after(self, level: int) -> None:
        if level == self.plan.early_level and can_relax(self.solver):
            relax(self.solver, float(np.nanmean(self.state.early.rho)))

    @property
    def is_whole(self) -> np.ndarray:
        """Variables of units that a level solved as a whole: their gradient is the problem's."""
        return np.isfinite(self.state.whole_tolerance)[self.solver.units.of]

    def objective_of_whole(self, tolerance: float) -> float:
        """Objective of the units that were solved as a whole to a tolerance."""
        solver = self.solver
        own = self.state.whole_tolerance[solver.units.of] <= tolerance
        alpha, gradient = solver.alpha[own], solver.gradient[own]
        return float(0.5 * np.dot(alpha, gradient - solver.problem.linear[own]))

    def parts_of_level(self, level: int, division: Division) -> tuple[np.ndarray, int]:
        """The part of the level of every variable, and how many places there are in a unit: its
        clusters, or those of each group. A sum couples groups, but a part of a level may keep one
        of its own: not in the early level, whose clusters have one rho."""
        solver, place, n_places = self.solver, division.cluster, division.n_clusters
        locality = self.prepared.locality
        if not (solver.formulation.has_sums and level == self.plan.early_level):
            place = place + n_places * locality.group
            n_places *= locality.n_groups
        units = solver.units.of.astype(np.int64)
        return units * n_places + place[solver.problem.rows], n_places
