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
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.partition import Partition, two_step_kernel_kmeans
from dcsvm.model.model import Model
from dcsvm.model.parts import ExactModel, Probability
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.sample_weights import checked_weights
from dcsvm.solving.checkpoint import Checkpoint
from dcsvm.solving.extraction import Coefficients, Division, NoMargin, early_model, exact_model
from dcsvm.solving.level_measure import LevelState, glued_objective, off_diagonal_mass
from dcsvm.solving.preparation import prepare
from dcsvm.solving.report import LevelReport, PartOfProgress, Progress, TrainReport
from dcsvm.solving.solving import Solving
from dcsvm.solving.stopped import certificate_of_stopped
from dcsvm.training.held_out import (
    alpha_without_held_out,
    folds_for_probability,
    formulation_of_folds,
    probability_of,
)
from dcsvm.training.warm_start import check_rows, first_alpha

LEVEL_TOLERANCE = 1e-1  # a level that only starts the next one is not solved further than this
EARLY_TOLERANCE = 1e-3


def train_rows(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    progress: Progress | None = None,
    *,
    sample_weight: np.ndarray | None = None,
    stop: _core.Stop | None = None,
    checkpoint: Checkpoint | None = None,
    init_model: Model | None = None,
    consume: bool = False,
) -> tuple[Model, TrainReport]:
    """Train a model; returns it and a report.

    `labels` float64 (n,): classes, or targets of a regression; one-class takes no notice of them.
    `sample_weight` float64 (n,): as how many rows each counts, None is one.
    A `stop` ends training early: the model is what there is by then, and the report says so. A
    `checkpoint` is kept up to date, and where it asks for it training goes on from it. An
    `init_model` of the same rows, or of the first of them, is where training begins. `consume` says
    that nobody else needs the rows: they are reordered where they are, and shared with the model.
    Raises ValueError for anything that does not fit, and Stopped where there is nothing yet.
    """
    run = ready(
        rows,
        labels,
        options,
        progress,
        sample_weight=sample_weight,
        stop=stop,
        checkpoint=checkpoint,
        init_model=init_model,
        consume=consume,
    )
    return run.run()


def ready(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    progress: Progress | None = None,
    *,
    sample_weight: np.ndarray | None = None,
    stop: _core.Stop | None = None,
    checkpoint: Checkpoint | None = None,
    init_model: Model | None = None,
    consume: bool = False,
) -> Run:
    """The run that `train_rows` carries out, ready to begin or to go on."""
    if init_model is not None:
        check_rows(init_model, rows, options)
    weights = checked_weights(sample_weight, len(labels))
    if checkpoint is not None:
        checkpoint.begin(rows, labels, weights, options, is_warm=init_model is not None)
    prepared = prepare(rows, labels, options, weights, consume=consume)
    run = Run(prepared, progress or Progress(), stop=stop, checkpoint=checkpoint)
    if init_model is not None:
        run.begin_with(first_alpha(run, init_model))
    run.resume()
    return run


class Run(Solving):
    """A run through the steps of its plan."""

    def __init__(self, *what, **how):
        super().__init__(*what, **how)
        self.division: tuple[int, Division] | None = None  # of the level in progress

    def resume(self) -> None:
        """Go on from the checkpoint, where that is wanted."""
        if self.checkpoint is None or not self.checkpoint.resume:
            return
        names = [name for name, _ in self.steps()]
        variables, rows = self.problem.size, self.data.rows.n_samples
        ends = [rows if name.startswith("level") else variables for name in names]
        self.checkpoint.load(self.state, self.problem, rows, ends)
        self.progress.resume(names[self.state.steps_done])

    @property
    def is_whole(self) -> np.ndarray:
        """Variables of units that a level solved as a whole: their gradient is the problem's."""
        return np.isfinite(self.state.whole_tolerance)[self.unit]

    def objective_of_whole(self, tolerance: float) -> float:
        """Objective of the units that were solved as a whole to a tolerance."""
        own = self.state.whole_tolerance[self.unit] <= tolerance
        alpha, gradient = self.alpha[own], self.gradient[own]
        return float(0.5 * np.dot(alpha, gradient - self.problem.linear[own]))

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

    def run(self) -> tuple[Model, TrainReport]:
        """The model, of whatever there is if the run is stopped."""
        probability = None
        try:
            self.improve()
            self.set_seconds()
            exact = None if self.options.early else exact_model(self)
            if self.options.measure_levels:
                self.measure_levels()
            if self.options.probability:
                probability = self.probability()
        except _core.Stopped:
            exact = self.end_early()
        model = Model(
            self.data.kernel,
            self.task.labels,
            exact,
            self.state.early,
            svm_type=self.options.svm_type,
            probability=probability,
            report=self.report,
        )
        return model, self.report

    def improve(self) -> None:
        """Algorithm 1, from wherever the state is."""
        steps = self.steps()
        for name, step in steps[self.state.steps_done :]:
            if self.stop.is_requested:
                raise _core.Stopped
            step()
            self.state.steps_done += name != steps[-1][0]
            self.save()

    def end_early(self) -> ExactModel | None:
        """The exact model as far as it is, of a run that was stopped; what it is worth is in the
        report. Raises Stopped where nothing was solved."""
        self.save()
        report, state = self.report, self.state
        report.stopped, report.converged = True, False
        self.set_seconds()
        if state.early is None and self.division is not None and np.any(self.alpha):
            state.early = early_model(self, *self.division)
        if not state.is_global:
            self.iterate.forget(np.flatnonzero(~self.is_whole))
        if not np.any(self.alpha) and state.early is None:
            raise _core.Stopped
        if self.options.early and state.early is not None:
            return None
        certificate = certificate_of_stopped(self)
        self.settle(certificate, list(certificate.parts))
        try:
            return exact_model(self)
        except NoMargin as nothing:
            raise _core.Stopped from nothing

    def probability(self) -> Probability:
        """What turns decision values into probabilities, from folds that start from the solution
        of all rows."""
        folds = folds_for_probability(self.prepared)
        formulation = formulation_of_folds(self.prepared, folds, range(folds.n_folds))
        n_rows = self.data.rows.n_samples
        start = time.perf_counter()
        self.progress.begin("probabilities", n_rows)
        part = PartOfProgress(self.progress, 1, 0, n_rows)
        run = Solving(self.prepared, part, formulation, stop=self.stop)
        run.begin_with(alpha_without_held_out(self, folds, run.formulation))
        run.extend_gradient()
        run.conquer()
        self.report.include(run.report)
        found = probability_of(run, folds)
        self.progress.end("probabilities", time.perf_counter() - start, np.count_nonzero(run.alpha))
        return found

    def keep_early(self, level: int, division: Division) -> None:
        self.state.early = early_model(self, level, division)

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
        return partition, partition.assign(self.data.rows, self.threads, self.stop)

    def group_of_level(self, level: int) -> np.ndarray | None:
        """The groups of rows by which a level is divided besides its clusters. A sum couples them,
        but a part of a level may keep one of its own: not in the early level, whose clusters have
        one rho."""
        is_one_sum = self.formulation.has_sums and level == self.plan.early_level
        return None if is_one_sum else self.locality.group

    def rows_to_sample(self) -> np.ndarray:
        """Rows with support vectors, at first all rows."""
        support = np.unique(self.problem.rows[self.alpha != 0])
        return support if len(support) else np.arange(self.data.rows.n_samples, dtype=np.int32)

    def divide(self, level: int) -> None:
        """Cluster the rows for a level and solve its clusters from the current alpha."""
        start, state = time.perf_counter(), self.state
        wanted = EARLY_TOLERANCE if level == self.plan.early_level else LEVEL_TOLERANCE
        tolerance = max(self.options.tolerance, wanted)
        open_ = np.flatnonzero(state.whole_tolerance[self.unit] > tolerance)
        if state.begun_with is None:
            state.begun_with, state.is_global = self.rows_to_sample(), False
            self.iterate.forget(open_)
        rng = copy.deepcopy(state.rng)
        partition, cluster = self.clustering(level, rng)
        clustered = time.perf_counter()
        place, n_places = cluster, partition.n_clusters
        group = self.group_of_level(level)
        if group is not None:
            place = cluster + partition.n_clusters * group
            n_places = partition.n_clusters * self.locality.n_groups
        part = self.unit.astype(np.int64) * n_places + place[self.problem.rows]
        members = open_[np.argsort(part[open_], kind="stable")].astype(np.int32)
        parts, sizes = np.unique(part[open_], return_counts=True)
        division = Division(partition, cluster, members, sizes)
        self.division = level, division
        self.progress.begin(f"level {level}", self.problem.size)
        before = self.report.counts["kernel_evaluations"], self.report.counts["pairs_skipped"]
        solved = self.solve(members, sizes, tolerance)
        objective = sum(one["objective"] for one in solved) + self.objective_of_whole(tolerance)
        units, n_parts = np.unique(parts // n_places, return_counts=True)
        state.whole_tolerance[units] = np.where(n_parts == 1, tolerance, np.inf)
        self.note_level(
            LevelReport(
                level=level,
                n_clusters=partition.n_clusters,
                largest_cluster=int(np.unique(part, return_counts=True)[1].max()),
                seconds_clustering=clustered - start,
                seconds_training=time.perf_counter() - clustered,
                n_sv=0,
                objective=objective,
                kernel_evaluations=self.report.counts["kernel_evaluations"] - before[0],
                pairs_skipped=self.report.counts["pairs_skipped"] - before[1],
            ),
            cluster,
        )
        missed = parts[[not one["converged"] for one in solved]]
        self.converged[:] = True
        self.converged[missed // (n_places * self.n_units_of_fold)] = False
        self.report.converged = bool(self.converged.all())
        if self.plan.early_level is not None and level >= self.plan.early_level:
            self.keep_early(level, division)
        state.rng, state.begun_with, self.division = rng, None, None

    def note_level(self, report: LevelReport, cluster: np.ndarray) -> None:
        """Report a level, and keep what measuring it will need."""
        rows = Coefficients(self).row_numbers
        report.n_sv = len(rows)
        self.report.levels.append(report)
        self.report.support_by_level.append(np.sort(rows))
        self.state.levels.append(self.measured_state(cluster, report.objective))
        self.progress.end_level(report)

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

    def measure_levels(self) -> None:
        """Theorem 1 per level, with a row counted as often as its bound has C."""
        copies = self.copies * self.task.bound_of(self.values) / self.options.C
        for report, level in zip(self.report.levels, self.state.levels, strict=True):
            if level is None:
                continue
            rng = np.random.default_rng(self.options.seed)
            report.off_diagonal_mass = off_diagonal_mass(
                self.data, level.cluster, copies, rng, self.threads
            )
            report.bound = 0.5 * self.options.C**2 * report.off_diagonal_mass
            if self.report.objective is not None:
                glued = glued_objective(self.data, level, self.locality.between, rng, self.threads)
                report.distance = glued - self.report.objective

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
        self.progress.begin("refine", len(members))
        self.solve(members, self.sizes_of(members), max(self.options.tolerance, LEVEL_TOLERANCE))
        state.begun_with = None
        self.report.refine_seconds = time.perf_counter() - start
        self.progress.end("refine", self.report.refine_seconds, int(np.count_nonzero(self.alpha)))
