"""The steps of Algorithm 1. Each takes a run from wherever its state is, and raises Stopped where
it is stopped before it is done."""

from __future__ import annotations

import time

import numpy as np

from dcsvm.data.sorting import group_order, group_sizes
from dcsvm.solving.level_solver import LevelSolver
from dcsvm.solving.report import Costs, LevelReport
from dcsvm.training.early_level import (
    EARLY_TOLERANCE,
    best_level,
    best_on_test,
    told_by_random_rows,
)
from dcsvm.training.run import Run

# a level that only starts the next one is not solved further than this; half and double cost the
# same (docs/benchmark.md, Constants)
LEVEL_TOLERANCE = 1e-1


def find_early_level(run: Run) -> None:
    """Find the early level and solve it: the only step where no other model is wanted."""
    state, choices, options = run.state, run.plan.choices, run.options
    costs: dict[int, Costs] = {}

    def begin(level: int) -> LevelSolver:
        level_solver = run.begin_level(level, run.levels.divided(level, run.solver))
        costs[level] = level_solver.solver.costs
        return level_solver

    run.levels.grow(
        state.early_choice.level if state.early_choice else choices[0], run.control.stop
    )
    clustered = time.perf_counter()
    if state.early_choice is None:
        run.solver.begin_phase("early level", run.solver.problem.size)
        best, by = (best_level, options.seed) if run.test is None else (best_on_test, run.test)
        state.early_choice = best(choices, begin, run.set_level, by)
    level = state.early_choice.level
    if run.level_solver is None or run.level_solver.level != level:
        run.set_level(begin(level))
    for other in costs.keys() - {level}:
        state.costs.include(costs[other])
    run.finish_level(max(options.tolerance, EARLY_TOLERANCE), clustered)


def estimate_early_loss(run: Run) -> None:
    """Estimate the loss of the early level that was found, and report it."""
    state = run.state
    if state.early_choice.loss is None:
        state.early_choice = told_by_random_rows(state.early_choice, run.found, run.options.seed)
    run.control.progress.end_choice(state.early_choice)


def divide(run: Run, level: int) -> None:
    """Solve the clusters of a level from the current alpha."""
    division, is_early = run.levels.divided(level, run.solver), level == run.plan.early_level
    clustered = time.perf_counter()
    tolerance = max(run.options.tolerance, EARLY_TOLERANCE if is_early else LEVEL_TOLERANCE)
    is_last = is_early and run.options.early
    if division.border > 0 or (is_last and not run.keeps_models):
        run.set_level(run.begin_level(level, division))
        run.finish_level(max(run.options.tolerance, EARLY_TOLERANCE), clustered)
    else:
        run.division = level, division
        _solve_clusters(run, level, tolerance, clustered)
    run.relax_after(level)


def _solve_clusters(run: Run, level: int, tolerance: float, clustered: float) -> None:
    """Solve the clusters of the division of a run within the whole problem. Units that have been
    solved as a whole to the tolerance are left as they are."""
    solver, state, division = run.solver, run.state, run.division[1]
    part, n_places = run.parts_of_level(level, division)
    is_open = state.whole_tolerance > tolerance
    if level == run.plan.early_level:  # its clusters predict: none is part of a whole
        units, n_parts = group_sizes(np.unique(part) // n_places)
        is_open[units[n_parts > 1]] = True
    open_ = np.flatnonzero(is_open[solver.units.of])
    if not state.has_begun:
        state.has_begun, state.is_global = True, False
        solver.iterate.forget(open_)
    largest = int(group_sizes(part)[1].max())
    members = open_[group_order(part[open_])].astype(np.int32)
    parts, sizes = group_sizes(part[open_])
    del part, open_  # 16 bytes a row while the level is solved
    solver.begin_phase(f"level {level}", solver.problem.size)
    before = dict(state.costs.counts)
    solved = solver.solve(members, sizes, tolerance)
    objective = sum(solved["objective"].tolist()) + run.objective_of_whole(tolerance)
    units, n_parts = group_sizes(parts // n_places)
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
    converged[missed // (n_places * solver.units.n_of_fold)] = False
    state.converged = converged
    if run.keeps_models and run.plan.early_level is not None and level >= run.plan.early_level:
        run.keep_early(level, division)
    run.end_level()


def refine(run: Run) -> None:
    """Solve the problem of the support vectors of the coarsest level alone.

    Units that a level solved as a whole are left out.
    """
    start, state, solver = time.perf_counter(), run.state, run.solver
    if state.begun_with is None:
        open_ = np.flatnonzero(~run.is_whole)
        solver.iterate.forget(open_)
        state.begun_with = open_[solver.alpha[open_] != 0].astype(np.int32)
        state.is_global = True
    members = state.begun_with
    solver.begin_phase("refine", len(members))
    tolerance = max(run.options.tolerance, LEVEL_TOLERANCE)
    solver.solve(members, solver.units.sizes(members), tolerance)
    state.begun_with = None
    state.costs.refine_seconds = time.perf_counter() - start
    run.control.progress.end("refine", state.costs.refine_seconds, solver.solution.n_sv)
