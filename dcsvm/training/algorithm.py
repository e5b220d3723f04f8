"""Algorithm 1 of Hsieh, Si and Dhillon, "A Divide-and-Conquer Solver for Kernel SVMs" (2014).

As printed it is `-l L --clustering adaptive`; by default the clusters are a tree, and of the levels
those run that pay.

Levels from the finest up: solve the clusters of the rows from the solution of the level below; then
the support vectors of the last alone (refine), then all rows (conquer) to the tolerance, checked
with float64 kernel values. For early models alone one level is enough, which may be found first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import group_order, group_sizes
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.solving.checkpoint import CheckpointError
from dcsvm.solving.clusters import grow, is_alone, new_tree
from dcsvm.solving.division import Division
from dcsvm.solving.extraction import Coefficients, early_model
from dcsvm.solving.level_solving import LevelSolving
from dcsvm.solving.relaxation import Relaxation
from dcsvm.solving.report import LevelReport, TrainReport
from dcsvm.training.early_level import (
    TestRows,
    best_level,
    best_on_test,
    told_by_random_rows,
)

# a level that only starts the next one is not solved further than this; half and double cost the
# same (docs/benchmark.md, Constants)
LEVEL_TOLERANCE = 1e-1
EARLY_TOLERANCE = 1e-3  # a promise, that of the default -e


class Run(Relaxation):
    """A run through the steps of its plan. `division` is the level in progress, with its number,
    and `level_solving` solves it where rows are in two clusters, or no other level follows. `found`
    is the early level that was found; `test` rows are to choose it by."""

    def __init__(self, *what, **how):
        super().__init__(*what, **how)
        self.plan = self.prepared.plan
        self.division: tuple[int, Division] | None = None
        self.level_solving: LevelSolving | None = None
        self.found: LevelSolving | None = None
        self.seconds_alone = 0.0
        self.test: TestRows | None = None

    def resume(self) -> None:
        """Go on from the checkpoint, where that is wanted."""
        checkpoint = self.control.checkpoint
        if checkpoint is None or not checkpoint.resume:
            return
        checkpoint.load(self.state, self.problem, self.data.rows.n_samples)
        names = [name for name, _ in self.steps()]
        if self.state.steps_done >= len(names):
            raise checkpoint.damaged()
        if self.state.multiplier is not None:
            self.take_relaxed()
        self.control.progress.resume(names[self.state.steps_done])

    def steps(self) -> list[tuple[str, Callable[[], None]]]:
        """What there is to do, by names, in order."""
        if self.plan.choices:
            return [("early level", self.find_early_level)]
        if self.is_near:
            return [("conquer", self.conquer)]
        steps = []
        for level in self.plan.levels:
            steps.append((f"level {level}", partial(self.divide, level)))
            if self.options.early and level == self.plan.early_level:
                return steps
        if self.plan.levels or self.is_warm:
            steps += [("refine", self.refine), ("gradient", self.extend_gradient)]
        return [*steps, ("conquer", self.conquer)]

    def improve(self) -> None:
        """Algorithm 1, from wherever the state is. Raises Stopped."""
        steps = self.steps()
        for name, step in steps[self.state.steps_done :]:
            self.control.stop.check()
            if self.work.has_far_rows:
                _core.give_back_memory()  # the system keeps more of the rows instead
            step()
            self.report.count_values_of("levels" if "level" in name else name)
            self.state.steps_done += name != steps[-1][0]
            self.save()

    @property
    def is_whole(self) -> np.ndarray:
        """Variables of units that a level solved as a whole: their gradient is the problem's."""
        return np.isfinite(self.state.whole_tolerance)[self.units.of]

    def objective_of_whole(self, tolerance: float) -> float:
        """Objective of the units that were solved as a whole to a tolerance."""
        own = self.state.whole_tolerance[self.units.of] <= tolerance
        alpha, gradient = self.alpha[own], self.gradient[own]
        return float(0.5 * np.dot(alpha, gradient - self.problem.linear[own]))

    def keep_early(self, level: int, division: Division) -> None:
        """Keep the model of a level for early prediction."""
        found = early_model(
            self.solution, level, division.partition, division.cluster[self.problem.rows]
        )
        self.state.early, self.report.n_bsv = found
        self.report.n_sv = self.state.early.rows.n_samples

    @cached_property
    def tree(self) -> Tree:
        if self.prepared.tree is not None:
            return self.prepared.tree
        return self.new_tree()

    def new_tree(self) -> Tree:
        group = self.locality.group if self.locality.n_groups > 1 else None
        return new_tree(self.work, self.options, self.locality.order, group)

    def grow_tree(self, level: int) -> None:
        """Find the clusters of all levels up to this one. Raises Stopped."""
        grow(self.tree, level, self.plan, self.options, self.control.stop)

    def divided(self, level: int) -> Division:
        """The clusters of a level. Raises Stopped."""
        overlap = self.options.early_overlap
        if level != self.plan.early_level and level not in self.plan.choices:
            overlap = 1.0
        if is_alone(level, self.plan, self.options):
            tree, n_levels = self.found_alone(level, second=overlap > 1), 1
        else:
            self.grow_tree(level)
            tree, n_levels = self.tree, level
        return Division.overlapping(tree.partition(n_levels), tree.placed[n_levels], overlap)

    def found_alone(self, level: int, *, second: bool) -> Tree:
        """A level that is found from a sample of all rows, or of the support vectors of the level
        below (the paper's adaptive clustering, Theorem 3). Raises Stopped."""
        tree = self.new_tree()
        n_clusters = self.plan.branching**level
        if self.state.sample is None:
            support = np.unique(self.problem.rows[np.flatnonzero(self.alpha)])
            is_adaptive = self.options.clustering == "adaptive" and len(support) > 0
            self.state.sample = tree.sample(n_clusters, support if is_adaptive else None, level)
        tree.grow_alone(n_clusters, self.state.sample, self.control.stop, second=second)
        self.seconds_alone = tree.seconds[1]
        return tree

    def seconds_of_clusters(self, level: int) -> float:
        """What finding the clusters of a level took, in a tree the step to it from the next coarser
        level of the plan."""
        if is_alone(level, self.plan, self.options):
            return self.seconds_alone
        coarser = max((one for one in self.plan.levels if one < level), default=0)
        return sum(self.tree.seconds[coarser + 1 : level + 1])

    def group_of_level(self, level: int) -> np.ndarray | None:
        """The groups of rows by which a level is divided besides its clusters. A sum couples them,
        but a part of a level may keep one of its own: not in the early level, whose clusters have
        one rho."""
        is_one_sum = self.formulation.has_sums and level == self.plan.early_level
        return None if is_one_sum else self.locality.group

    def find_early_level(self) -> None:
        """Find the early level and solve it: the only step where no other model is wanted."""
        report, choices = self.report, self.plan.choices
        reports: dict[int, TrainReport] = {}

        def begin(level: int) -> LevelSolving:
            solving = self.begin_level(level, self.divided(level))
            reports[level] = solving.report
            return solving

        def take(solving: LevelSolving) -> None:
            self.level_solving, self.division = solving, (solving.level, solving.division)

        self.grow_tree(report.early_choice.level if report.early_choice else choices[0])
        clustered = time.perf_counter()
        if report.early_choice is None:
            self.control.progress.begin("early level", self.problem.size)
            best = best_level if self.test is None else partial(best_on_test, test=self.test)
            report.early_choice = best(choices, begin, take, EARLY_TOLERANCE, self.options.seed)
        level = report.early_choice.level
        found = self.level_solving
        solving = found if found and found.level == level else begin(level)
        for other in reports.keys() - {level}:
            report.include(reports[other])
        self.finish_level(level, solving, clustered)
        self.found = solving

    def tell_early_level(self) -> None:
        """Tell what the early level that was found is worth. Raises Stopped."""
        choice = self.report.early_choice
        if choice.loss is None:
            choice = told_by_random_rows(choice, self.found, self.options.seed)
            self.report.early_choice = choice
        self.control.progress.end_choice(choice)

    def begin_level(self, level: int, division: Division) -> LevelSolving:
        """A level whose clusters are solved each for itself, from the current alpha, or from where
        a checkpoint has it. Raises CheckpointError."""
        solving = LevelSolving(self.prepared, self.control, self.formulation, division, level)
        solving.counter = self.state
        solving.on_save = self.save_level
        if self.state.level_alpha is not None:
            if not solving.is_feasible(self.state.level_alpha):
                raise CheckpointError("the checkpoint is damaged: it is of other clusters")
            solving.begin_with(self.state.level_alpha)
        elif np.any(self.alpha):
            solving.begin_with(solving.alpha_from(self.alpha))
        if self.level_solving is None:
            self.level_solving, self.division = solving, (level, division)
        return solving

    def save_level(self, solving: LevelSolving) -> None:
        """Store a checkpoint inside a level, once it is known which."""
        if self.plan.choices and self.report.early_choice is None:
            return
        self.state.level_alpha = solving.alpha
        self.save()

    def finish_level(self, level: int, solving: LevelSolving, begun: float) -> None:
        """Solve what is left of a level, and keep its model; `begun` is when its clusters were
        found."""
        self.level_solving, self.division = solving, (level, solving.division)
        self.control.progress.begin(f"level {level}", solving.problem.size)
        everything = np.ones(solving.division.n_clusters, bool)
        solving.solve_clusters(everything, max(self.options.tolerance, EARLY_TOLERANCE))
        told = solving.level_report(self.seconds_of_clusters(level), time.perf_counter() - begun)
        self.take_level()
        self.note_level(told)
        self.state.level_alpha = self.division = self.level_solving = self.state.sample = None

    def take_level(self) -> None:
        """Keep the model of the level in progress, as far as it is solved, and go on from there."""
        solving = self.level_solving
        self.state.early, self.report.n_bsv = solving.model()
        self.report.n_sv = self.state.early.rows.n_samples
        solving.hand_over_counts(self)
        self.converged[:] = solving.converged & solving.is_solved.all()
        self.report.converged = bool(self.converged.all())
        self.iterate.alpha[:] = solving.alpha_of_whole()
        self.iterate.forget(np.arange(self.problem.size))
        self.state.is_global = False

    def divide(self, level: int) -> None:
        """Solve the clusters of a level from the current alpha."""
        state, division = self.state, self.divided(level)
        clustered = time.perf_counter()
        if division.border > 0:
            self.finish_level(level, self.begin_level(level, division), clustered)
            self.relax_after(level)
            return
        wanted = EARLY_TOLERANCE if level == self.plan.early_level else LEVEL_TOLERANCE
        tolerance = max(self.options.tolerance, wanted)
        part, n_places = self.parts_of_level(level, division)
        is_open = state.whole_tolerance > tolerance
        if level == self.plan.early_level:  # its clusters predict: none is part of a whole
            units, n_parts = group_sizes(np.unique(part) // n_places)
            is_open[units[n_parts > 1]] = True
        open_ = np.flatnonzero(is_open[self.units.of])
        if not state.has_begun:
            state.has_begun, state.is_global = True, False
            self.iterate.forget(open_)
        largest = int(group_sizes(part)[1].max())
        members = open_[group_order(part[open_])].astype(np.int32)
        parts, sizes = group_sizes(part[open_])
        del part, open_  # 16 bytes a row while the level is solved
        self.division = level, division
        self.control.progress.begin(f"level {level}", self.problem.size)
        counts = dict(self.report.counts)
        solved = self.solve(members, sizes, tolerance)
        objective = sum(one["objective"] for one in solved) + self.objective_of_whole(tolerance)
        units, n_parts = group_sizes(parts // n_places)
        state.whole_tolerance[units] = np.where(n_parts == 1, tolerance, np.inf)
        done = self.report.counts
        self.note_level(
            LevelReport(
                level=level,
                n_clusters=division.n_clusters,
                largest_cluster=largest,
                seconds_clustering=self.seconds_of_clusters(level),
                seconds_training=time.perf_counter() - clustered,
                n_sv=0,
                objective=objective,
                kernel_evaluations=done["kernel_evaluations"] - counts["kernel_evaluations"],
                pairs_skipped=done["pairs_skipped"] - counts["pairs_skipped"],
            )
        )
        missed = parts[[not one["converged"] for one in solved]]
        self.converged[:] = True
        self.converged[missed // (n_places * self.units.n_of_fold)] = False
        self.report.converged = bool(self.converged.all())
        if self.plan.early_level is not None and level >= self.plan.early_level:
            self.keep_early(level, division)
        state.has_begun, state.sample, self.division = False, None, None
        self.relax_after(level)

    def relax_after(self, level: int) -> None:
        if level == self.plan.early_level and self.can_relax:
            self.relax(float(np.nanmean(self.state.early.rho)))

    def keep_unfinished(self) -> None:
        """Keep what the level in progress has found, when it is stopped."""
        if self.division is None:
            return
        level, division = self.division
        if self.level_solving is not None:
            if np.any(self.level_solving.alpha):
                self.take_level()
        elif self.state.early is None and np.any(self.alpha):
            self.keep_early(level, division)

    def parts_of_level(self, level: int, division: Division) -> tuple[np.ndarray, int]:
        """The part of the level of every variable, and how many places there are in a unit: its
        clusters, or those of each group."""
        place, n_places = division.cluster, division.n_clusters
        group = self.group_of_level(level)
        if group is not None:
            place = place + n_places * group
            n_places *= self.locality.n_groups
        return self.units.of.astype(np.int64) * n_places + place[self.problem.rows], n_places

    def note_level(self, report: LevelReport) -> None:
        """Report a level."""
        rows = Coefficients(self.solution).row_numbers
        report.n_sv = len(rows) if report.overlap == 1 else self.report.n_sv
        self.report.levels.append(report)
        self.report.support_by_level.append(np.sort(rows))
        self.control.progress.end_level(report)

    def refine(self) -> None:
        """Solve the problem of the support vectors of the coarsest level alone.

        Units that a level solved as a whole are left out.
        """
        start, state = time.perf_counter(), self.state
        if state.begun_with is None:
            open_ = np.flatnonzero(~self.is_whole)
            self.iterate.forget(open_)
            state.begun_with = open_[self.alpha[open_] != 0].astype(np.int32)
            state.is_global = True
        members = state.begun_with
        self.control.progress.begin("refine", len(members))
        self.solve(members, self.units.sizes(members), max(self.options.tolerance, LEVEL_TOLERANCE))
        state.begun_with = None
        self.report.refine_seconds = time.perf_counter() - start
        self.control.progress.end("refine", self.report.refine_seconds, self.solution.n_sv)
