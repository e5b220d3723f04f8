"""Algorithm 1 of Hsieh, Si and Dhillon, "A Divide-and-Conquer Solver for Kernel SVMs" (2014).

Levels run from the finest to the coarsest: each solves its clusters from the solution of the next
finer level. Then the support vectors are solved alone (refine), and all rows to the tolerance
(conquer). The solution is checked with float64 kernel values. An early model needs only one level,
which a search may choose.

`-l L --clustering adaptive` is Algorithm 1 as printed. By default the clusters form a tree, and
levels that do not save time are skipped.

Each step continues from the state of the run. It raises Stopped if it is stopped before its end.
"""

import time
from collections.abc import Callable

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import distinct, group_order, group_sizes
from dcsvm.solving.conquer import conquer
from dcsvm.solving.level_partition import LevelPartition
from dcsvm.solving.level_solver import LevelSolver
from dcsvm.solving.relaxation import resume_relaxed
from dcsvm.solving.report import Costs, LevelReport
from dcsvm.solving.state import DONE
from dcsvm.training.early_level import (
    EARLY_TOLERANCE,
    best_level,
    best_on_test,
    estimate_loss,
)
from dcsvm.training.run import Run

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
