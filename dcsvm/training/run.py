"""Algorithm 1 of Hsieh, Si and Dhillon, "A Divide-and-Conquer Solver for Kernel SVMs" (2014).

Levels run from the finest to the coarsest: each solves its clusters from the solution of the next
finer level. Then the support vectors are solved alone (refine), and all rows to the tolerance
(conquer). The solution is checked with float64 kernel values. An early model needs only one level,
which a search may choose.

`-l L --clustering adaptive` is Algorithm 1 as printed; with `--early --early-level N` it ends after
level N. By default the clusters form a tree, and levels that do not save time are skipped.

A Run has the solver, the level in progress, and the clusters of all levels. Each step continues
from its state. It raises Stopped if it is stopped before its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import distinct
from dcsvm.data.dataset import Dataset
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel
from dcsvm.problem.formulation import Formulation
from dcsvm.training.conquer import can_relax, conquer, relax, resume_relaxed
from dcsvm.training.early_level import (
    EARLY_TOLERANCE,
    best_level,
    best_on_test,
    estimate_loss,
)
from dcsvm.training.engine import Prepared, new_tree
from dcsvm.training.extraction import count_support, early_model, support_numbers
from dcsvm.training.level_partition import LevelPartition
from dcsvm.training.report import Costs, LevelReport
from dcsvm.training.solver import FormulationSolver, LevelSolver
from dcsvm.training.state import DONE, UNREADABLE, Checkpoint, CheckpointError, RunControl, RunState


class Run:
    """Run of Algorithm 1 on prepared rows.

    A run with a `formulation` of folds keeps no early models.

    Attributes
    ----------
    solver : solver of the whole problem, with the state of the run.
    tree : clusters of the rows, None before the first level. It does not depend on labels, so runs
        on the same rows may share it.
    level_solver : LevelSolver of the level in progress, or None.
    early_solver : LevelSolver of the solved early level if its clusters predict, or None.
    test : test rows that choose the early level, or None.
    seconds_before : training time of earlier processes, in seconds.
    """

    def __init__(
        self,
        prepared: Prepared,
        control: RunControl | None = None,
        formulation: Formulation | None = None,
        *,
        tree: Tree | None = None,
        test: Dataset | None = None,
    ) -> None:
        self.prepared = prepared
        self.control = replace(control or RunControl(), save=self.save)
        self.options, self.plan, self.test = prepared.options, prepared.plan, test
        self.solver = FormulationSolver(prepared, self.control, formulation)
        self.keeps_models = formulation is None
        self.tree = prepared.tree if tree is None else tree
        self.seconds_before = 0.0
        self.level_solver: LevelSolver | None = None
        self.early_solver: LevelSolver | None = None

    @property
    def state(self) -> RunState:
        return self.solver.state

    def start_tree(self) -> None:
        """Begin the tree of the run, without levels."""
        self.tree = self.new_tree()

    def new_tree(self) -> Tree:
        """Create a cluster tree over all rows, without levels."""
        row_components = self.prepared.row_components
        group = row_components.component if row_components.n_components > 1 else None
        order = row_components.order if row_components.is_ordered else None
        return new_tree(self.prepared.engine, self.options, order, group)

    def save(self) -> None:
        """Store a due checkpoint, except during the search of the early level."""
        if not self._is_choosing:
            self.store()

    def store(self) -> None:
        """Store a checkpoint, if the run has one."""
        if self.control.checkpoint is None:
            return
        self.set_seconds()
        level = self.level_solver
        if level is not None and not level.is_in_place and not self._is_choosing:
            self.state.level = level.to_arrays()
        self.control.store(self.state, self.model_of_early)

    @property
    def _is_choosing(self) -> bool:
        return bool(self.plan.choices) and self.state.early_choice is None

    def load(self, checkpoint: Checkpoint) -> None:
        """Load the state from a checkpoint. Raises CheckpointError."""
        prepared = self.prepared
        size = prepared.data.rows.n_samples, prepared.row_components.n_components
        checkpoint.load(self.state, self.solver.problem, *size)
        self.seconds_before = self.state.costs.seconds_train

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

    def begin_level(self, level: int) -> LevelSolver:
        """Make the solver of a level's clusters.

        It starts from the checkpoint or, without one, from the current alpha. It solves in place
        if no clusters overlap and no other level is compared with it. Raises CheckpointError and
        Stopped.
        """
        solver, state, division = self.solver, self.state, divided(self, level)
        is_in_place = division.border == 0 and not self.plan.choices
        level_solver = LevelSolver(
            self.prepared, self.control, solver.formulation, division, level,
            in_place=solver if is_in_place else None, budget=state.budget,
        )  # fmt: skip
        # resumed, or from the current alpha; in place it is there already
        if state.level is not None:
            try:
                level_solver.set_arrays(state.level)
            except UNREADABLE:
                raise CheckpointError("the checkpoint is damaged: clusters differ") from None
        elif not is_in_place and np.any(solver.alpha):
            level_solver.solver.begin_with(level_solver.alpha_from(solver.alpha))
        if self.level_solver is None:
            self.set_level(level_solver)
        return level_solver

    def set_level(self, level_solver: LevelSolver) -> None:
        """Set the level in progress."""
        self.level_solver = level_solver

    def finish_level(self, level_solver: LevelSolver, tolerance: float, begun: float) -> None:
        """Solve the remaining clusters of the level in progress and keep its model.

        `begun` is the time.perf_counter() at the end of clustering.
        """
        name, size = f"level {level_solver.level}", level_solver.formulation.problem.size
        level_solver.solver.begin_phase(name, size)
        level_solver.solve_clusters(tolerance)
        report = level_solver.level_report(time.perf_counter() - begun)
        self.take_level(level_solver)
        self.note_level(report)
        if self.plan.choices or (self.options.early and not self.keeps_models):
            self.early_solver = level_solver
        # no level is in progress any more
        self.level_solver = self.state.level = None
        if not (self.options.early and level_solver.predicts):
            self.state.sample = None  # else the last step of a resumed run and folds need it
        self.state.has_begun = False

    def take_level(self, level_solver: LevelSolver) -> None:
        """Keep the model of the level in progress, and copy its alpha to the whole problem."""
        coarsest = self.plan.early_level
        is_early = level_solver.predicts or (coarsest is not None and level_solver.level > coarsest)
        if self.keeps_models and is_early:
            self.keep_early(level_solver)
        level_solver.hand_over(self.solver)

    def keep_early(self, level_solver: LevelSolver) -> None:
        """Keep the early model of a level."""
        self.state.early, self.state.n_bsv = early_model(level_solver)

    def keep_unfinished(self) -> None:
        """Keep the current model of the level in progress after a stop.

        The model of a finished finer level is better than one of clusters that are solved in part.
        """
        level = self.level_solver
        if level is None or not np.any(level.solver.alpha):
            return
        if not level.is_in_place:
            self.take_level(level)
        elif self.state.early is None:
            self.keep_early(level)

    def count_unfinished(self) -> None:
        """Add the costs of a stopped solve; call this after its state is stored."""
        self.solver.count_unfinished()
        level = self.level_solver
        if level is not None and not level.is_in_place:
            level.solver.count_unfinished()
            level.hand_over_counts(self.solver)

    def note_level(self, report: LevelReport) -> None:
        """Add a level to the report, unless the run solves folds."""
        if not self.keeps_models:
            return
        early = self.state.early
        overlaps = early is not None and report.overlap != 1
        if early is not None and early.level == report.level and not overlaps:
            support = np.sort(early.row_numbers)
        else:
            support = support_numbers(self.solver)
        report.n_sv = early.rows.n_samples if early is not None and overlaps else len(support)
        self.state.levels.append(report)
        self.state.support_by_level.append(support)
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
        return np.isfinite(self.state.whole_tolerance)[self.solver.components.component]


def grow(run: Run, level: int) -> Tree:
    """Find clusters down to a level, and return the tree of the run. Raises Stopped."""
    if run.tree is None:
        run.start_tree()
    assert run.tree is not None
    run.plan.grow(run.tree, level, run.options, run.control.stop)
    return run.tree


def divided(run: Run, level: int) -> LevelPartition:
    """Divide the rows into the clusters of a level, found if necessary. Raises Stopped.

    In a tree, the time of a level is that since the next coarser level of the plan.
    """
    plan, overlap = run.plan, run.options.early_overlap
    if not plan.predicts(level):
        overlap = 1.0
    n_values = 0
    if plan.is_alone(level, run.options):
        tree, n_values = _grown_alone(run, level, second=overlap > 1)
        n_levels, seconds = 1, tree.seconds[1]
    else:
        tree, n_levels = grow(run, level), level
        coarser = max((other for other in plan.levels if other < level), default=0)
        seconds = sum(tree.seconds[coarser + 1 : level + 1])
    placed = tree.placed[n_levels]
    assert placed is not None  # the tree keeps assignments for all levels of the plan
    partition = LevelPartition.overlapping(tree.partition(n_levels), placed, overlap)
    run.state.costs.end_phase("clusters")
    return replace(partition, seconds=seconds, kernel_evaluations=n_values)


def _grown_alone(run: Run, level: int, *, second: bool) -> tuple[Tree, int]:
    """Cluster a sample of rows for one level, outside the common tree. Raises Stopped.

    The state keeps the sample. It is drawn from all rows, or from the support vectors of the level
    below (adaptive clustering, Theorem 3 of the paper). Also returns the number of kernel values of
    the choice between clusterings, counted once even if a resumed run repeats it.
    """
    tree, solver, state = run.new_tree(), run.solver, run.state
    n_clusters = run.plan.branching**level
    if state.sample is None:
        support = distinct(solver.problem.rows[np.flatnonzero(solver.alpha)])
        is_adaptive = run.options.clustering == "adaptive" and len(support) > 0
        state.sample = tree.sample(n_clusters, support if is_adaptive else None, level)
        state.costs.counts["kernel_evaluations"] += tree.values_of_choice(len(state.sample))
    tree.grow_alone(n_clusters, state.sample, run.control.stop, second=second)
    return tree, tree.values_of_choice(len(state.sample))


# Tolerance of refine and of levels that only provide an initial alpha. Half and double take the
# same time (examples/bench/README.md, Constants).
LEVEL_TOLERANCE = 1e-1


def find_early_level(run: Run) -> None:
    """Search for the early level and solve it: the only step of a run with such a search."""
    state, choices, options = run.state, run.plan.choices, run.options
    choice = state.early_choice
    costs: dict[int, Costs] = {}

    def begin(level: int) -> LevelSolver:
        level_solver = run.begin_level(level)
        costs[level] = level_solver.solver.costs
        return level_solver

    # the clusters of all levels that are compared, at once
    grow(run, choices[0] if choice is None else choice.level)
    clustered = time.perf_counter()
    if choice is None:
        run.solver.begin_phase("early level", run.solver.problem.size)
        if run.test is None:
            choice = best_level(choices, begin, run.set_level, options.seed)
        else:
            choice = best_on_test(choices, begin, run.set_level, run.test)
        state.early_choice = choice
    # after a search its solver has some clusters already; a resumed run begins it again
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
    assert choice is not None and run.early_solver is not None
    if choice.loss is None:
        choice = run.state.early_choice = estimate_loss(choice, run.early_solver, run.options.seed)
    run.control.progress.end_choice(choice)


def tolerance_of(run: Run, level: int) -> float:
    """Return the tolerance of a level: looser if the whole problem is solved afterwards."""
    options, is_early = run.options, level == run.plan.early_level
    if is_early and options.early:
        return options.tolerance
    return max(options.tolerance, EARLY_TOLERANCE if is_early else LEVEL_TOLERANCE)


def divide(run: Run, level: int) -> None:
    """Solve the clusters of a level from the current alpha."""
    level_solver = run.begin_level(level)
    clustered = time.perf_counter()
    run.finish_level(level_solver, tolerance_of(run, level), clustered)
    run.relax_after(level)


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
    solver.solve(members, solver.components.sizes(members), tolerance)
    state.begun_with = None
    state.costs.refine_seconds = time.perf_counter() - start
    run.control.progress.end("refine", state.costs.refine_seconds, count_support(solver))


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
    if run.options.early:
        return levels
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
    state.costs.end_phase("prepare")
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
        step = "levels" if "level" in name else name
        state.costs.count_values_of(step)
        state.costs.end_phase(step)
        # an early run is never DONE: a resumed one repeats its last step, because the loss is
        # estimated by the solver of that level
        state.next_step = name if next_name == DONE and run.options.early else next_name
        run.store()
