"""Algorithm 1 of Hsieh, Si and Dhillon, "A Divide-and-Conquer Solver for Kernel SVMs" (2014).

Levels from the finest up: cluster the rows, solve the clusters from the solution of the level
below; then the support vectors of level 1 alone (refine), then all rows (conquer) to the
tolerance, checked with float64 kernel values.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.partition import Partition, two_step_kernel_kmeans
from dcsvm.solving.extraction import Coefficients, Division, early_model
from dcsvm.solving.level_measure import LevelState
from dcsvm.solving.relaxation import Relaxation
from dcsvm.solving.report import LevelReport

# a level that only starts the next one is not solved further than this; half and double cost the
# same (docs/benchmark.md, Constants)
LEVEL_TOLERANCE = 1e-1
EARLY_TOLERANCE = 1e-3  # a promise, that of the default -e


class Run(Relaxation):
    """A run through the steps of its plan. `division` is the level in progress, with its number."""

    def __init__(self, *what, **how):
        super().__init__(*what, **how)
        self.plan = self.prepared.plan
        self.division: tuple[int, Division] | None = None

    def resume(self) -> None:
        """Go on from the checkpoint, where that is wanted."""
        checkpoint = self.control.checkpoint
        if checkpoint is None or not checkpoint.resume:
            return
        names = [name for name, _ in self.steps()]
        variables, rows = self.problem.size, self.data.rows.n_samples
        ends = [rows if name.startswith("level") else variables for name in names]
        checkpoint.load(self.state, self.problem, rows, ends)
        if self.state.multiplier is not None:
            self.take_relaxed()
        self.control.progress.resume(names[self.state.steps_done])

    def steps(self) -> list[tuple[str, Callable[[], None]]]:
        """What there is to do, by names, in order."""
        steps = []
        for level in self.plan.levels:
            steps.append((f"level {level}", partial(self.divide, level)))
            if self.options.early and level == self.plan.early_level:
                return steps
        # where rows are expensive the solver computes them once, for the gradient and its steps
        if (self.plan.levels or self.is_warm) and not self.data.has_expensive_rows:
            steps += [("refine", self.refine), ("gradient", self.extend_gradient)]
        return [*steps, ("conquer", self.conquer)]

    def improve(self) -> None:
        """Algorithm 1, from wherever the state is. Raises Stopped."""
        steps = self.steps()
        for name, step in steps[self.state.steps_done :]:
            if self.control.stop.is_requested:
                raise _core.Stopped
            before = self.report.counts["kernel_evaluations"]
            step()
            kind = "levels" if name.startswith("level") else name
            self.report.values[kind] += self.report.counts["kernel_evaluations"] - before
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
        self.state.early, self.report.n_bsv = early_model(self.solution, level, division)
        self.report.n_sv = self.state.early.rows.n_samples

    def clustering(self, level: int, rng: np.random.Generator) -> tuple[Partition, np.ndarray]:
        """The partition of a level, and the cluster of every row."""
        kernel = self.data.kernel if self.options.clustering == "kernel" else Kernel("linear")
        partition = two_step_kernel_kmeans(
            self.data.rows,
            kernel,
            self.plan.branching**level,
            sample_from=self.state.begun_with,
            sample_size=max(self.options.sample, self.plan.branching**level),
            rng=rng,
            threads=self.threads,
            group=self.group_of_level(level),
        )
        return partition, partition.assign(self.data.rows, self.threads, self.control.stop)

    def group_of_level(self, level: int) -> np.ndarray | None:
        """The groups of rows by which a level is divided besides its clusters. A sum couples them,
        but a part of a level may keep one of its own: not in the early level, whose clusters have
        one rho."""
        is_one_sum = self.formulation.has_sums and level == self.plan.early_level
        return None if is_one_sum else self.locality.group

    def rows_to_sample(self) -> np.ndarray:
        """Rows with support vectors, at first all rows."""
        has_any = np.zeros(self.data.rows.n_samples, bool)
        has_any[self.problem.rows[self.alpha != 0]] = True
        return np.flatnonzero(has_any | ~has_any.any()).astype(np.int32)

    def divide(self, level: int) -> None:
        """Cluster the rows for a level and solve its clusters from the current alpha."""
        start, state = time.perf_counter(), self.state
        wanted = EARLY_TOLERANCE if level == self.plan.early_level else LEVEL_TOLERANCE
        tolerance = max(self.options.tolerance, wanted)
        open_ = np.flatnonzero(state.whole_tolerance[self.units.of] > tolerance)
        if state.begun_with is None:
            state.begun_with, state.is_global = self.rows_to_sample(), False
            self.iterate.forget(open_)
        rng = copy.deepcopy(state.rng)
        division = Division(*self.clustering(level, rng))
        clustered = time.perf_counter()
        part, n_places = self.parts_of_level(level, division)
        members = open_[np.argsort(part[open_], kind="stable")].astype(np.int32)
        parts, sizes = np.unique(part[open_], return_counts=True)
        self.division = level, division
        self.control.progress.begin(f"level {level}", self.problem.size)
        counts = dict(self.report.counts)
        solved = self.solve(members, sizes, tolerance)
        objective = sum(one["objective"] for one in solved) + self.objective_of_whole(tolerance)
        units, n_parts = np.unique(parts // n_places, return_counts=True)
        state.whole_tolerance[units] = np.where(n_parts == 1, tolerance, np.inf)
        done = self.report.counts
        self.note_level(
            LevelReport(
                level=level,
                n_clusters=division.partition.n_clusters,
                largest_cluster=int(np.unique(part, return_counts=True)[1].max()),
                seconds_clustering=clustered - start,
                seconds_training=time.perf_counter() - clustered,
                n_sv=0,
                objective=objective,
                kernel_evaluations=done["kernel_evaluations"] - counts["kernel_evaluations"],
                pairs_skipped=done["pairs_skipped"] - counts["pairs_skipped"],
            ),
            division.cluster,
        )
        missed = parts[[not one["converged"] for one in solved]]
        self.converged[:] = True
        self.converged[missed // (n_places * self.units.n_of_fold)] = False
        self.report.converged = bool(self.converged.all())
        if self.plan.early_level is not None and level >= self.plan.early_level:
            self.keep_early(level, division)
        if level == self.plan.early_level and self.can_relax:
            self.relax(float(np.nanmean(state.early.rho)))
        state.rng, state.begun_with, self.division = rng, None, None

    def parts_of_level(self, level: int, division: Division) -> tuple[np.ndarray, int]:
        """The part of the level of every variable, and how many places there are in a unit: its
        clusters, or those of each group."""
        place, n_places = division.cluster, division.partition.n_clusters
        group = self.group_of_level(level)
        if group is not None:
            place = place + n_places * group
            n_places *= self.locality.n_groups
        return self.units.of.astype(np.int64) * n_places + place[self.problem.rows], n_places

    def note_level(self, report: LevelReport, cluster: np.ndarray) -> None:
        """Report a level, and keep what measuring it will need."""
        rows = Coefficients(self.solution).row_numbers
        report.n_sv = len(rows)
        self.report.levels.append(report)
        self.report.support_by_level.append(np.sort(rows))
        self.state.levels.append(self.measured_state(cluster, report.objective))
        self.control.progress.end_level(report)

    def measured_state(self, cluster: np.ndarray, objective: float) -> LevelState | None:
        """What is needed to measure a level at the end, where that is wanted."""
        if not self.options.measure_levels or self.formulation.n_problems > 1:
            return None
        variables = np.flatnonzero(self.alpha)
        return LevelState(
            cluster,
            self.problem.rows[variables],
            self.alpha[variables],
            self.problem.linear[variables],
            objective,
        )

    def refine(self) -> None:
        """Solve the problem of the support vectors of level 1 alone.

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
        n_sv = int(np.count_nonzero(self.alpha))
        self.control.progress.end("refine", self.report.refine_seconds, n_sv)
