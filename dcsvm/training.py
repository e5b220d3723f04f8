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
from dcsvm.certificate import Certificate, check
from dcsvm.checkpoint import Checkpoint
from dcsvm.dataset import Rows
from dcsvm.extraction import Coefficients, Division, NoMargin, early_model, exact_model
from dcsvm.formulation import Formulation
from dcsvm.held_out import (
    alpha_without_held_out,
    folds_for_probability,
    formulation_of_folds,
    probability_of,
)
from dcsvm.iterate import Iterate
from dcsvm.kernel_sums import Terms, sums_of_units
from dcsvm.kernels import Kernel
from dcsvm.level_measure import LevelState, glued_objective, off_diagonal_mass
from dcsvm.locality import Reach
from dcsvm.model import EarlyModel, ExactModel, Model, Probability
from dcsvm.options import TrainOptions
from dcsvm.partition import Partition, two_step_kernel_kmeans
from dcsvm.preparation import Prepared, prepare
from dcsvm.report import LevelReport, PartOfProgress, Progress, TrainReport
from dcsvm.run_state import RunState
from dcsvm.stopped import certificate_of_stopped
from dcsvm.warm_start import check_rows, first_alpha

LEVEL_TOLERANCE = 1e-1  # a level that only starts the next one is not solved further than this
EARLY_TOLERANCE = 1e-3
SOLVER_TOLERANCE = 0.9  # of the tolerance: leaves room for the float64 check
LARGEST_REFINEMENTS = 10
FIRST_GAP_TOLERANCE = 1e-2  # violation the first answer to a wanted gap is solved to
ROUNDING = 2.0**-46  # of the sum of |alpha|: a violation that float64 gradients can state


class _CoreProgress:
    """Passes the core's calls on, and stores checkpoints: the iterate is brought up to date when
    one is due, and stored at the call after that."""

    def __init__(self, run: Run):
        self.run, self.stop = run, run.stop
        self.is_up_to_date = False
        self.error: BaseException | None = None

    def __call__(self, clusters_done, rows_done, violation, n_active, outer_steps) -> bool:
        self.run.progress.advance(rows_done, violation, n_active)
        if self.run.checkpoint is None or not self.run.checkpoint.is_due:
            return False
        if self.is_up_to_date:
            self.run.save()
        self.is_up_to_date = not self.is_up_to_date
        return self.is_up_to_date


def train_rows(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    progress: Progress | None = None,
    *,
    stop: _core.Stop | None = None,
    checkpoint: Checkpoint | None = None,
    init_model: Model | None = None,
    consume: bool = False,
) -> tuple[Model, TrainReport]:
    """Train a model; returns it and a report.

    `labels` float64 (n,): classes, or targets of a regression; one-class takes no notice of them.
    A `stop` ends training early: the model is what there is by then, and the report says so. A
    `checkpoint` is kept up to date, and where it asks for it training goes on from it. An
    `init_model` of the same rows, or of the first of them, is where training begins. `consume` says
    that nobody else needs the rows: they are reordered where they are, and shared with the model.
    Raises ValueError for anything that does not fit, and Stopped where there is nothing yet.
    """
    how = {"stop": stop, "checkpoint": checkpoint, "init_model": init_model, "consume": consume}
    return ready(rows, labels, options, progress, **how).run()


def ready(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    progress: Progress | None = None,
    *,
    stop: _core.Stop | None = None,
    checkpoint: Checkpoint | None = None,
    init_model: Model | None = None,
    consume: bool = False,
) -> Run:
    """The run that `train_rows` carries out, ready to begin or to go on."""
    if init_model is not None:
        check_rows(init_model, rows, options)
    if checkpoint is not None:
        checkpoint.begin(rows, labels, options, is_warm=init_model is not None)
    prepared = prepare(rows, labels, options, consume=consume)
    run = Run(prepared, progress or Progress(), stop=stop, checkpoint=checkpoint)
    if init_model is not None:
        run.begin_with(first_alpha(run, init_model))
    run.resume()
    return run


class Run:
    """One training run: its fixed inputs, and the state that goes from level to level.

    Rows are those that are left when equal ones are merged, in the order of the locality. Variables
    belong to problems (one against one), each to one row; a unit is a problem, or its part in one
    independent group of rows where no sum couples them; a family the units of all folds that have
    the same problem and group.
    """

    def __init__(
        self,
        prepared: Prepared,
        progress: Progress,
        formulation: Formulation | None = None,
        *,
        stop: _core.Stop | None = None,
        checkpoint: Checkpoint | None = None,
    ):
        self.prepared, self.progress = prepared, progress
        self.stop, self.checkpoint = stop or _core.Stop(), checkpoint
        self.options, self.task, self.threads = prepared.options, prepared.task, prepared.threads
        self.duplicates, self.locality = prepared.duplicates, prepared.locality
        self.values, self.copies, self.data = prepared.values, prepared.copies, prepared.data
        self.plan = prepared.plan
        self.formulation = formulation = formulation or prepared.formulation
        self.problem = formulation.problem
        self.solver_bytes = prepared.solver_bytes(formulation)
        progress.plan(prepared.describe())
        self.reach = self.locality.reach(coupled=formulation.has_sums)
        self.group = np.zeros(len(self.values), np.int32)  # of rows, coupled by no sum
        if not formulation.has_sums:
            self.group = self.locality.group
        n_groups = int(self.group[-1]) + 1
        self.unit = formulation.number * n_groups + self.group[self.problem.rows]
        self.n_units_of_fold = formulation.n_problems_of_fold * n_groups
        n_units = formulation.n_folds * self.n_units_of_fold
        self.units = np.searchsorted(self.unit, np.arange(n_units + 1))
        self.converged = np.zeros(formulation.n_folds, bool)
        self.division: tuple[int, Division] | None = None  # of the level in progress
        self.is_warm = False
        self.state = RunState(
            Iterate.of(formulation.alpha.copy()),
            whole_tolerance=np.full(n_units, np.inf),
            rng=np.random.default_rng(self.options.seed),
            iterations_left=self.options.max_iterations,
            report=TrainReport(
                threads=self.threads,
                n_merged=prepared.n_merged,
                n_groups=self.locality.n_groups,
            ),
        )

    def begin_with(self, alpha: np.ndarray) -> None:
        """Begin with a feasible alpha instead of where solvers begin."""
        self.state.iterate = Iterate.of(alpha)
        self.is_warm = True

    def resume(self) -> None:
        """Go on from the checkpoint, where that is wanted."""
        if self.checkpoint is None or not self.checkpoint.resume:
            return
        names = [name for name, _ in self.steps()]
        variables, rows = self.problem.size, self.data.rows.n_samples
        ends = [rows if name.startswith("level") else variables for name in names]
        self.checkpoint.load(self.state, self.problem, ends)
        self.progress.resume(names[self.state.steps_done])

    @property
    def iterate(self) -> Iterate:
        return self.state.iterate

    @property
    def alpha(self) -> np.ndarray:
        return self.state.iterate.alpha

    @property
    def gradient(self) -> np.ndarray:
        return self.state.iterate.gradient

    @property
    def report(self) -> TrainReport:
        return self.state.report

    @property
    def is_whole(self) -> np.ndarray:
        """Variables of units that a level solved as a whole: their gradient is the problem's."""
        return np.isfinite(self.state.whole_tolerance)[self.unit]

    def objective_of_whole(self, tolerance: float) -> float:
        """Objective of the units that were solved as a whole to a tolerance."""
        own = self.state.whole_tolerance[self.unit] <= tolerance
        alpha, gradient = self.alpha[own], self.gradient[own]
        return float(0.5 * np.dot(alpha, gradient - self.problem.linear[own]))

    def sizes_of(self, variables: np.ndarray) -> np.ndarray:
        """How many of these variables, ascending, are in each unit."""
        return np.diff(np.searchsorted(variables, self.units))

    def steps(self) -> list[tuple[str, Callable[[], None]]]:
        """What there is to do, by names, in order."""
        steps = []
        for level in self.plan.levels:
            steps.append((f"level {level}", partial(self.divide, level)))
            if self.options.early and level == self.plan.early_level:
                return steps
        # where rows are dear the solver computes them once, for the gradient and its steps
        if (self.plan.levels or self.is_warm) and not self.data.has_dear_rows:
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

    def set_seconds(self) -> None:
        self.report.seconds_train = (
            self.state.seconds_before + time.perf_counter() - self.prepared.start
        )

    def save(self) -> None:
        """Store a checkpoint, if one is kept."""
        if self.checkpoint is not None:
            self.set_seconds()
            self.checkpoint.save(self.state, self.model_of_early)

    def model_of_early(self, early: EarlyModel) -> Model:
        kernel, labels = self.data.kernel, self.task.labels
        return Model(kernel, labels, None, early, svm_type=self.options.svm_type)

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
        run = Run(self.prepared, part, formulation, stop=self.stop)
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
        """Theorem 1 per level, with C of every row and merged rows counted as many times."""
        for report, level in zip(self.report.levels, self.state.levels, strict=True):
            if level is None:
                continue
            rng = np.random.default_rng(self.options.seed)
            report.off_diagonal_mass = off_diagonal_mass(
                self.data, level.cluster, self.copies, rng, self.threads
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

    def extend_gradient(self) -> None:
        """The gradient of all variables from that of those where it is known, which hold all
        support vectors or none."""
        start, state = time.perf_counter(), self.state
        others = np.flatnonzero(~self.iterate.is_known)
        gradient, n_values = self.gradient_of(others, self.reach, float64=False, stop=self.stop)
        self.iterate.learn(others, gradient)
        left_out = self.reach.value * float(np.abs(self.alpha).sum())
        state.neglected = max(state.neglected, left_out)
        self.report.phases["rebuild"] += time.perf_counter() - start
        self.report.counts["kernel_evaluations"] += n_values

    def gradient_of(
        self,
        variables: np.ndarray,
        reach: Reach,
        *,
        float64: bool,
        stop: _core.Stop | None = None,
    ) -> tuple[np.ndarray, int]:
        """Gradient of some variables, from float64 or from float32 kernel values, those between
        groups and out of reach left out; and the number of kernel values. Raises Stopped."""
        support = np.flatnonzero(self.alpha)
        formulation, n_groups = self.formulation, self.locality.n_groups
        unit = formulation.number * n_groups + self.locality.group[self.problem.rows]
        terms = Terms(self.problem.rows, unit, unit % (formulation.n_problems_of_fold * n_groups))
        sums, n_values = sums_of_units(
            self.data,
            terms.take(variables),
            terms.take(support),
            self.alpha[support],
            reach,
            self.threads,
            float64=float64,
            stop=stop,
        )
        return sums - self.problem.linear[variables], n_values

    def conquer(self) -> None:
        """Solve the whole problem to the tolerance or gap and check it with float64 kernel values.

        The check leaves float64 values in the gradient wherever float32 ones could hide a
        violation; while there is one, the solver goes on from them.
        """
        start, state = time.perf_counter(), self.state
        if not state.is_global:
            self.iterate.forget(np.arange(self.problem.size))
            state.is_global = True
        self.progress.begin("conquer", self.problem.size)
        tolerance = self.options.tolerance if self.options.gap is None else FIRST_GAP_TOLERANCE
        folds = list(range(self.formulation.n_folds))
        certificates: dict[int, Certificate] = {}
        for attempt in range(LARGEST_REFINEMENTS):
            members = np.concatenate([self.formulation.variables_of_fold(k) for k in folds])
            attainable = ROUNDING * float(np.abs(self.alpha[members]).sum()) / len(folds)
            self.solve(
                members, self.sizes_of(members), max(SOLVER_TOLERANCE * tolerance, attainable)
            )
            certificates |= self.verify(folds, attempt)
            folds = [k for k in folds if not self.is_reached(certificates[k])]
            if not folds or state.iterations_left == 0 or tolerance < attainable:
                break
            if self.options.gap is not None:
                wanted = 0.5 * self.options.gap / max(certificates[k].relative_gap for k in folds)
                tolerance *= min(max(wanted, 0.01), 0.5)
        found = [certificates[k] for k in sorted(certificates)]
        self.converged = np.array([self.is_reached(one) for one in found])
        self.settle(Certificate.of_all(found), [part for one in found for part in one.parts])
        self.report.converged = bool(self.converged.all())
        self.report.conquer_seconds = time.perf_counter() - start
        self.progress.end("conquer", self.report.conquer_seconds, int(np.count_nonzero(self.alpha)))

    def is_reached(self, certificate: Certificate) -> bool:
        """Whether the answer is as good as was asked for."""
        if self.options.gap is None:
            return certificate.violation <= self.options.tolerance
        return certificate.relative_gap <= self.options.gap

    def verify(self, folds: list[int], attempt: int) -> dict[int, Certificate]:
        """The certificates of some folds; every attempt draws other random rows."""
        start = time.perf_counter()
        parts = [self.formulation.parts_of_fold(k) for k in folds]
        found = iter(
            check(
                self.problem,
                [part for own in parts for part in own],
                self.alpha,
                self.gradient,
                self.exact_gradient_of,
                self.data,
                self.locality,
                neglected=self.state.neglected,
                every_row=self.options.certify,
                seed=self.options.seed + attempt,
            )
        )
        self.report.seconds_verify += time.perf_counter() - start
        return {
            k: Certificate.of_all([next(found) for _ in own])
            for k, own in zip(folds, parts, strict=True)
        }

    def exact_gradient_of(self, variables: np.ndarray) -> np.ndarray:
        reach = self.locality.between
        return self.gradient_of(variables, reach, float64=True, stop=self.stop)[0]

    def solve(self, members: np.ndarray, sizes: np.ndarray, tolerance: float) -> list[dict]:
        """Solve parts of the problem, `sizes` of the variables `members`, in place. Raises Stopped
        where it is stopped before all are solved."""
        state = self.state
        solved = _core.solve_clusters(
            self.data.setup,
            self.data.points,
            self.problem,
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            members,
            state.iterate,
            tolerance,
            state.iterations_left,
            self.solver_bytes,
            self.threads,
            _CoreProgress(self),
            self.reach,
            state.neglected,
            self.stop,
        )
        state.neglected = max([state.neglected, *(one["neglected"] for one in solved)])
        self.report.add(solved)
        if state.iterations_left >= 0:
            used = sum(one["iterations"] for one in solved) // self.formulation.n_folds
            state.iterations_left = max(0, state.iterations_left - used)
        if self.stop.is_requested and not all(one["converged"] for one in solved):
            raise _core.Stopped
        return solved

    def settle(self, certificate: Certificate, parts: list[Certificate]) -> None:
        """Report what is known of the solution, `parts` of its problems."""
        self.report.objective = certificate.objective
        self.report.violation = certificate.violation
        self.report.duality_gap = certificate.gap
        self.report.relative_gap = certificate.relative_gap
        self.report.kernel_error = certificate.kernel_error
        self.report.n_checked = certificate.n_checked
        self.certificates = parts
