"""Hold a run of Algorithm 1: solver, level in progress, clusters of all levels."""

import time

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import distinct
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel
from dcsvm.problem.formulation import Formulation
from dcsvm.solving.checkpoint import UNREADABLE, Checkpoint, CheckpointError, RunControl
from dcsvm.solving.engine import new_tree
from dcsvm.solving.extraction import Coefficients, early_model
from dcsvm.solving.level_partition import LevelPartition
from dcsvm.solving.level_solver import LevelSolver
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.relaxation import can_relax, relax
from dcsvm.solving.report import LevelReport
from dcsvm.solving.solver import FormulationSolver
from dcsvm.solving.state import RunState
from dcsvm.training.early_level import TestRows


class Levels:
    """Clusters of prepared rows, found level by level.

    The `tree`, None before its first level, does not depend on labels. Runs on the same rows may
    share it.
    """

    def __init__(self, prepared: Prepared, tree: Tree | None = None) -> None:
        self.options, self.plan = prepared.options, prepared.plan
        self.engine, self.locality = prepared.engine, prepared.components
        self.tree = prepared.tree if tree is None else tree
        self.seconds_alone = 0.0

    def grow(self, level: int, stop: _core.Stop) -> Tree:
        """Find clusters down to a level and return their tree. Raises Stopped."""
        if self.tree is None:
            self.tree = self._new_tree()
        self.plan.grow(self.tree, level, self.options, stop)
        return self.tree

    def divided(self, level: int, solver: FormulationSolver) -> LevelPartition:
        """Divide rows into the clusters of a level, found if necessary. Raises Stopped."""
        overlap = self.options.early_overlap
        if level != self.plan.early_level and level not in self.plan.choices:
            overlap = 1.0
        if self.plan.is_alone(level, self.options):
            tree, n_levels = self._found_alone(level, solver, second=overlap > 1), 1
        else:
            tree, n_levels = self.grow(level, solver.control.stop), level
        placed = tree.placed[n_levels]
        assert placed is not None  # the tree keeps assignments for all levels of the plan
        return LevelPartition.overlapping(tree.partition(n_levels), placed, overlap)

    def seconds(self, level: int) -> float:
        """Return the clustering time of a level, in seconds.

        In a tree, this is the time since the next coarser level of the plan.
        """
        if self.plan.is_alone(level, self.options):
            return self.seconds_alone
        coarser = max((other for other in self.plan.levels if other < level), default=0)
        assert self.tree is not None
        return sum(self.tree.seconds[coarser + 1 : level + 1])

    def _new_tree(self) -> Tree:
        group = self.locality.component if self.locality.n_components > 1 else None
        return new_tree(self.engine, self.options, self.locality.order, group)

    def _found_alone(self, level: int, solver: FormulationSolver, *, second: bool) -> Tree:
        """Cluster a sample of rows for one level, outside the common tree. Raises Stopped.

        The state keeps the sample. It is drawn from all rows, or from the support vectors of the
        level below (adaptive clustering, Theorem 3 of the paper).
        """
        tree, state = self._new_tree(), solver.state
        n_clusters = self.plan.branching**level
        if state.sample is None:
            support = distinct(solver.problem.rows[np.flatnonzero(solver.alpha)])
            is_adaptive = self.options.clustering == "adaptive" and len(support) > 0
            state.sample = tree.sample(n_clusters, support if is_adaptive else None, level)
        tree.grow_alone(n_clusters, state.sample, solver.control.stop, second=second)
        self.seconds_alone = tree.seconds[1]
        return tree


class Run:
    """Run of Algorithm 1 on prepared rows.

    A run with a `formulation` of folds keeps no early models.

    Attributes
    ----------
    solver : solver of the whole problem, with the state of the run.
    division : number and clusters of the level in progress, or None.
    level_solver : LevelSolver of that level, or None if `solver` solves its clusters.
    found : LevelSolver of the solved early level if its clusters predict, or None.
    test : test rows that choose the early level, or None.
    seconds_before : training time of earlier processes, in seconds.
    """

    def __init__(
        self,
        prepared: Prepared,
        control: RunControl | None = None,
        formulation: Formulation | None = None,
        *,
        levels: Levels | None = None,
        test: TestRows | None = None,
    ) -> None:
        self.prepared, self.control = prepared, control or RunControl()
        self.options, self.plan, self.test = prepared.options, prepared.plan, test
        self.solver = FormulationSolver(prepared, self.control, formulation, self.save)
        self.keeps_models = formulation is None
        self.levels = levels or Levels(prepared)
        self.seconds_before = 0.0
        self.division: tuple[int, LevelPartition] | None = None
        self.level_solver: LevelSolver | None = None
        self.found: LevelSolver | None = None

    @property
    def state(self) -> RunState:
        return self.solver.state

    def save(self) -> None:
        """Store a checkpoint, if the run has one."""
        if self.control.checkpoint is not None:
            self.set_seconds()
            if self.level_solver is not None and not self._is_choosing:
                self.state.level = self.level_solver.to_arrays()
            self.control.save(self.state, self.model_of_early)

    def load(self, checkpoint: Checkpoint) -> None:
        """Load the state from a checkpoint. Raises CheckpointError."""
        prepared = self.prepared
        size = prepared.data.rows.n_samples, prepared.components.n_components
        checkpoint.load(self.state, self.solver.problem, *size)
        self.seconds_before = self.state.costs.seconds_train

    def save_level(self) -> None:
        """Store a checkpoint inside a level, except during the search of the early level."""
        if not self._is_choosing:
            self.save()

    @property
    def _is_choosing(self) -> bool:
        return bool(self.plan.choices) and self.state.early_choice is None

    def set_seconds(self) -> None:
        """Update the training time of the report."""
        seconds = time.perf_counter() - self.prepared.start
        self.state.costs.seconds_train = self.seconds_before + seconds

    def model_of_early(self, early: EarlyModel) -> Model:
        """Convert an early model to a model for storage. String labels become indices."""
        labels = self.prepared.task.labels
        if labels.dtype.kind == "U":
            labels = np.arange(len(labels), dtype=np.float64)
        svm_type = self.options.svm_type
        return Model(self.prepared.data.kernel, labels, None, early, svm_type=svm_type)

    def begin_level(self, level: int, division: LevelPartition) -> LevelSolver:
        """Make the solver of a level's clusters.

        If no level has a LevelSolver in progress, this one is set. It starts from the checkpoint
        or, without one, from the current alpha. Raises CheckpointError.
        """
        solver, state = self.solver, self.state
        level_solver = LevelSolver(
            self.prepared, self.control, solver.formulation, division, level, self.save_level,
            state.budget,
        )  # fmt: skip
        if state.level is not None:
            try:
                level_solver.set_arrays(state.level)
            except UNREADABLE:
                raise CheckpointError("the checkpoint is damaged: clusters differ") from None
        elif np.any(solver.alpha):
            level_solver.solver.begin_with(level_solver.alpha_from(solver.alpha))
        if self.level_solver is None:
            self.set_level(level_solver)
        return level_solver

    def set_level(self, level_solver: LevelSolver) -> None:
        """Set the level in progress."""
        self.level_solver = level_solver
        self.division = level_solver.level, level_solver.division

    def finish_level(self, level_solver: LevelSolver, tolerance: float, begun: float) -> None:
        """Solve the remaining clusters of the level in progress and keep its model.

        `begun` is the time.perf_counter() at the end of clustering.
        """
        level = level_solver.level
        level_solver.solver.begin_phase(f"level {level}", level_solver.formulation.problem.size)
        level_solver.solve_clusters(tolerance)
        seconds = time.perf_counter() - begun
        report = level_solver.level_report(self.levels.seconds(level), seconds)
        self.take_level(level_solver)
        self.note_level(report)
        if self.plan.choices or not self.keeps_models:
            self.found = level_solver
        self.end_level()

    def take_level(self, level_solver: LevelSolver) -> None:
        """Keep the model of the level in progress and copy its alpha to the whole problem."""
        solver = self.solver
        if self.keeps_models:
            self.state.early, self.state.n_bsv = level_solver.model()
        level_solver.hand_over_counts(solver)
        self.state.converged = level_solver.converged & level_solver.is_solved.all()
        solver.iterate.alpha[:] = level_solver.alpha_of_whole()
        solver.iterate.forget(np.arange(solver.problem.size))
        self.state.is_global = False

    def end_level(self) -> None:
        """Record that no level is in progress."""
        self.division = self.level_solver = None
        self.state.level = self.state.sample = None
        self.state.has_begun = False

    def keep_unfinished(self) -> None:
        """Keep the current model of the level in progress after a stop."""
        if self.division is None:
            return
        if self.level_solver is not None:
            if np.any(self.level_solver.solver.alpha):
                self.take_level(self.level_solver)
        elif self.state.early is None and np.any(self.solver.alpha):
            self.keep_early(*self.division)

    def keep_early(self, level: int, division: LevelPartition) -> None:
        """Keep the current alpha as an early model of a level."""
        cluster = division.cluster[self.solver.problem.rows]
        self.state.early, self.state.n_bsv = early_model(
            self.solver.solution, level, division.partition, cluster
        )

    def note_level(self, report: LevelReport) -> None:
        """Add a level to the report, unless the run solves folds."""
        if not self.keeps_models:
            return
        rows = Coefficients(self.solver.solution).row_numbers
        early = self.state.early
        report.n_sv = len(rows) if early is None or report.overlap == 1 else early.rows.n_samples
        self.state.levels.append(report)
        self.state.support_by_level.append(np.sort(rows))
        self.control.progress.end_level(report)

    def relax_after(self, level: int) -> None:
        """Relax the equality constraint after the early level, if it couples components."""
        early = self.state.early
        if level == self.plan.early_level and early is not None and can_relax(self.solver):
            relax(self.solver, float(np.nanmean(early.rho)))

    @property
    def is_whole(self) -> np.ndarray:
        """Mask of variables in components that a level solved as a whole, bool (n_variables,).

        The gradient of these variables is complete.
        """
        return np.isfinite(self.state.whole_tolerance)[self.solver.units.component]

    def objective_of_whole(self, tolerance: float) -> float:
        """Compute the objective of components solved as a whole, at least to a tolerance."""
        solver = self.solver
        mask = self.state.whole_tolerance[solver.units.component] <= tolerance
        alpha, gradient = solver.alpha[mask], solver.gradient[mask]
        return float(0.5 * np.dot(alpha, gradient - solver.problem.linear[mask]))

    def parts_of_level(self, level: int, division: LevelPartition) -> tuple[np.ndarray, int]:
        """Assign every variable to a subproblem of a level.

        A subproblem is the part of a cluster in one component of rows. In the early level with
        equality constraints it is a whole cluster, because a cluster has one rho there. In other
        levels each part has its own equality constraint. Returns subproblem indices, int64
        (n_variables,), and how many indices are reserved for each component of variables.
        """
        solver, cluster, n_parts = self.solver, division.cluster, division.n_clusters
        locality = self.prepared.components
        if not (solver.formulation.has_constraints and level == self.plan.early_level):
            cluster = cluster + n_parts * locality.component
            n_parts *= locality.n_components
        units = solver.units.component.astype(np.int64)
        return units * n_parts + cluster[solver.problem.rows], n_parts
