"""Algorithm 1 of Hsieh, Si and Dhillon, "A Divide-and-Conquer Solver for Kernel SVMs" (2014).

Levels run from the finest to the coarsest: each solves its clusters from the solution of the next
finer level. Then the support vectors are solved alone (refine), and all rows to the tolerance
(conquer). The solution is checked with float64 kernel values. An early model needs only one level,
which a search may choose.

`-l L --clustering adaptive` is Algorithm 1 as printed. By default the clusters form a tree, and
levels that do not save time are skipped.

A Run has the solver, the level in progress, and the clusters of all levels. Each step continues
from its state. It raises Stopped if it is stopped before its end.
"""

import time
from collections.abc import Callable

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import distinct, group_order, group_sizes
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel
from dcsvm.problem.formulation import Formulation
from dcsvm.training.conquer import can_relax, conquer, relax, resume_relaxed
from dcsvm.training.early_level import (
    EARLY_TOLERANCE,
    TestRows,
    best_level,
    best_on_test,
    estimate_loss,
)
from dcsvm.training.engine import Prepared, new_tree
from dcsvm.training.extraction import Coefficients, early_model
from dcsvm.training.level_partition import LevelPartition
from dcsvm.training.report import Costs, LevelReport
from dcsvm.training.solver import FormulationSolver, LevelSolver
from dcsvm.training.state import DONE, UNREADABLE, Checkpoint, CheckpointError, RunControl, RunState


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


# Tolerance of refine and of levels that only provide an initial alpha. Half and double take the
# same time (docs/benchmark.md, Constants).
LEVEL_TOLERANCE = 1e-1


def find_early_level(run: Run) -> None:
    """Search for the early level and solve it: the only step of a run with such a search."""
    state, choices, options = run.state, run.plan.choices, run.options
    choice = state.early_choice
    costs: dict[int, Costs] = {}

    def begin(level: int) -> LevelSolver:
        level_solver = run.begin_level(level, run.levels.divided(level, run.solver))
        costs[level] = level_solver.solver.costs
        return level_solver

    run.levels.grow(choices[0] if choice is None else choice.level, run.control.stop)
    clustered = time.perf_counter()
    if choice is None:
        run.solver.begin_phase("early level", run.solver.problem.size)
        if run.test is None:
            choice = best_level(choices, begin, run.set_level, options.seed)
        else:
            choice = best_on_test(choices, begin, run.set_level, run.test)
        state.early_choice = choice
    level_solver = run.level_solver
    if level_solver is None or level_solver.level != choice.level:
        level_solver = begin(choice.level)
        run.set_level(level_solver)
    for other in costs.keys() - {choice.level}:
        state.costs.include(costs[other])
    run.finish_level(level_solver, options.tolerance, clustered)


def estimate_early_loss(run: Run) -> None:
    """Estimate the loss of the early level that the search has chosen, and report it."""
    choice = run.state.early_choice
    assert choice is not None and run.found is not None
    if choice.loss is None:
        choice = run.state.early_choice = estimate_loss(choice, run.found, run.options.seed)
    run.control.progress.end_choice(choice)


def divide(run: Run, level: int) -> None:
    """Solve the clusters of a level from the current alpha."""
    division, is_early = run.levels.divided(level, run.solver), level == run.plan.early_level
    clustered = time.perf_counter()
    is_last = is_early and run.options.early
    tolerance = run.options.tolerance
    if not is_last:  # the whole problem is solved afterwards
        tolerance = max(tolerance, EARLY_TOLERANCE if is_early else LEVEL_TOLERANCE)
    if division.border > 0 or (is_last and not run.keeps_models):
        level_solver = run.begin_level(level, division)
        run.set_level(level_solver)
        run.finish_level(level_solver, tolerance, clustered)
    else:
        run.division = level, division
        _solve_clusters(run, level, division, tolerance, clustered)
    run.relax_after(level)


def _solve_clusters(
    run: Run, level: int, division: LevelPartition, tolerance: float, clustered: float
) -> None:
    """Solve the clusters of a level within the whole problem.

    Components that a finer level solved as a whole to this tolerance are skipped.
    """
    solver, state = run.solver, run.state
    part, n_of_unit = run.parts_of_level(level, division)
    is_unsolved = state.whole_tolerance > tolerance
    if level == run.plan.early_level:  # each of its clusters predicts and needs its own solution
        units, n_parts = group_sizes(distinct(part) // n_of_unit)
        is_unsolved[units[n_parts > 1]] = True
    variables = np.flatnonzero(is_unsolved[solver.units.component])
    if not state.has_begun:
        state.has_begun, state.is_global = True, False
        solver.iterate.forget(variables)
    largest = int(group_sizes(part)[1].max())
    members = variables[group_order(part[variables])].astype(np.int32)
    parts, sizes = group_sizes(part[variables])
    del part, variables  # frees 16 bytes per row while the level is solved
    solver.begin_phase(f"level {level}", solver.problem.size)
    before = dict(state.costs.counts)
    solved = solver.solve(members, sizes, tolerance)
    objective = sum(solved["objective"].tolist()) + run.objective_of_whole(tolerance)
    units, n_parts = group_sizes(parts // n_of_unit)
    state.whole_tolerance[units] = np.where(n_parts == 1, tolerance, np.inf)
    counts = state.costs.counts
    run.note_level(
        LevelReport(
            level=level,
            n_clusters=division.n_clusters,
            largest_cluster=largest,
            seconds_clustering=run.levels.seconds(level),
            seconds_training=time.perf_counter() - clustered,
            n_sv=0,
            objective=objective,
            kernel_evaluations=counts["kernel_evaluations"] - before["kernel_evaluations"],
            pairs_skipped=counts["pairs_skipped"] - before["pairs_skipped"],
        )
    )
    missed = parts[~solved["converged"]]
    converged = np.ones(solver.formulation.n_folds, bool)
    converged[missed // (n_of_unit * solver.units.n_components_of_fold)] = False
    state.converged = converged
    if run.keeps_models and run.plan.early_level is not None and level >= run.plan.early_level:
        run.keep_early(level, division)
    run.end_level()


def refine(run: Run) -> None:
    """Solve the support vectors of the coarsest level alone.

    Components that a level solved as a whole are skipped.
    """
    start, state, solver = time.perf_counter(), run.state, run.solver
    if state.begun_with is None:
        variables = np.flatnonzero(~run.is_whole)
        solver.iterate.forget(variables)
        state.begun_with = variables[solver.alpha[variables] != 0].astype(np.int32)
        state.is_global = True
    members = state.begun_with
    solver.begin_phase("refine", len(members))
    tolerance = max(run.options.tolerance, LEVEL_TOLERANCE)
    solver.solve(members, solver.units.sizes(members), tolerance)
    state.begun_with = None
    state.costs.refine_seconds = time.perf_counter() - start
    run.control.progress.end("refine", state.costs.refine_seconds, solver.solution.n_sv)


LEVEL = "level "
STEPS: dict[str, Callable[[Run], None]] = {
    "early level": find_early_level,
    "refine": refine,
    "gradient": lambda run: run.solver.extend_gradient(),
    "conquer": lambda run: conquer(run.solver),
}


def steps_of(run: Run) -> list[str]:
    """Return the names of a run's steps, in order: keys of STEPS, or "level 3"."""
    plan, solver = run.plan, run.solver
    if plan.choices:
        return ["early level"]
    if solver.is_near:
        return ["conquer"]
    levels = [f"{LEVEL}{level}" for level in plan.levels]
    if run.options.early and plan.early_level in plan.levels:
        return levels[: plan.levels.index(plan.early_level) + 1]
    before = ["refine", "gradient"] if plan.levels or solver.is_warm else []
    return [*levels, *before, "conquer"]


def resume(run: Run) -> None:
    """Resume from the checkpoint, if that was asked for. Raises CheckpointError."""
    checkpoint = run.control.checkpoint
    if checkpoint is None or not checkpoint.resume:
        return
    run.load(checkpoint)
    state, names = run.state, steps_of(run)
    state.next_step = state.next_step or names[0]
    if state.next_step == DONE and run.options.certify:
        state.next_step = names[-1]
    if state.next_step not in (DONE, *names):
        raise checkpoint.damaged()
    resume_relaxed(run.solver)
    run.control.progress.resume(state.next_step if state.next_step in names else names[-1])


def improve(run: Run) -> None:
    """Carry out the remaining steps of a run. Raises Stopped."""
    state, names = run.state, steps_of(run)
    for name, next_name in zip(names, [*names[1:], DONE], strict=True):
        if state.next_step not in ("", name):
            continue
        run.control.stop.check()
        if run.prepared.engine.is_out_of_core:
            _core.trim_heap()  # leaves the page cache more memory for the rows
        if name.startswith(LEVEL):
            divide(run, int(name.removeprefix(LEVEL)))
        else:
            STEPS[name](run)
        state.costs.count_values_of("levels" if "level" in name else name)
        # an early run is never DONE: a resumed one repeats its last step, because the loss is
        # estimated by the solver of that level
        state.next_step = name if next_name == DONE and run.options.early else next_name
        run.save()
