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
from dcsvm.certificate import Certificate, check, gradient_of
from dcsvm.checkpoint import Checkpoint
from dcsvm.dataset import Rows
from dcsvm.duplicates import find_duplicates
from dcsvm.extraction import Coefficients, Division, NoMargin, early_model, exact_model
from dcsvm.held_out import probability_of
from dcsvm.iterate import Iterate
from dcsvm.kernels import Kernel, KernelRows
from dcsvm.level_measure import LevelState, glued_objective, off_diagonal_mass
from dcsvm.locality import find_locality
from dcsvm.model import EarlyModel, ExactModel, Model
from dcsvm.options import TrainOptions
from dcsvm.partition import two_step_kernel_kmeans
from dcsvm.plan import Plan, default_cache_mb, default_threads, make_plan
from dcsvm.precomputed import training_matrix
from dcsvm.report import LevelReport, Progress, TrainReport
from dcsvm.run_state import RunState
from dcsvm.stopped import certificate_of_stopped
from dcsvm.task import task_of
from dcsvm.warm_start import first_alpha

LEVEL_TOLERANCE = 1e-1  # a level that only starts the next one is not solved further than this
EARLY_TOLERANCE = 1e-3
SOLVER_TOLERANCE = 0.9  # of the tolerance: leaves room for the float64 check
LARGEST_REFINEMENTS = 10
FIRST_GAP_TOLERANCE = 1e-2  # violation the first answer to a wanted gap is solved to
ROUNDING = 2.0**-46  # of the sum of |alpha|: a violation that float64 gradients can state


class _CoreProgress:
    """Passes the core's calls on, and stores checkpoints: the iterate is brought up to date when
    one is due, and stored at the call after that."""

    def __init__(self, run: _Run, *, storing: bool):
        self.run, self.stop = run, run.stop
        self.storing = storing and run.checkpoint is not None
        self.is_up_to_date = False
        self.error: BaseException | None = None

    def __call__(self, clusters_done, rows_done, violation, n_active, outer_steps) -> bool:
        self.run.progress.advance(rows_done, violation, n_active)
        if not self.storing or not self.run.checkpoint.is_due:
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
) -> tuple[Model, TrainReport]:
    """Train a model; returns it and a report.

    `labels` float64 (n,): classes, or targets of a regression; one-class takes no notice of them.
    A `stop` ends training early: the model is what there is by then, and the report says so. A
    `checkpoint` is kept up to date, and where it asks for it training goes on from it. An
    `init_model` of the same rows, or of the first of them, is where training begins. Raises
    ValueError for anything that does not fit, and Stopped where there is nothing yet.
    """
    return _Run(rows, labels, options, progress or Progress(), stop, checkpoint, init_model).run()


class _Run:
    """One training run: its fixed inputs, and the state that goes from level to level.

    Rows are those that are left when equal ones are merged, in the order of the locality. Variables
    belong to problems (one against one), each to one row; a unit is a problem, or its part in one
    independent group of rows where no sum couples them.
    """

    def __init__(
        self,
        rows: Rows,
        labels: np.ndarray,
        options: TrainOptions,
        progress: Progress,
        stop: _core.Stop | None = None,
        checkpoint: Checkpoint | None = None,
        init_model: Model | None = None,
    ):
        self.start = time.perf_counter()
        self.options, self.progress, self.stop = options, progress, stop or _core.Stop()
        self.checkpoint = checkpoint
        self.is_warm = init_model is not None
        if len(labels) != rows.n_samples:
            raise ValueError(f"{rows.n_samples} rows have {len(labels)} labels")
        if checkpoint is not None:
            checkpoint.begin(rows, labels, options, is_warm=self.is_warm)
        self.task = task_of(labels, options)
        self.threads = _core.usable_threads(options.threads or default_threads())
        gamma = 1.0 / max(rows.n_features, 1) if options.gamma is None else options.gamma
        kernel = Kernel(options.kernel, gamma, options.coef0, options.degree)
        if kernel.is_precomputed:
            rows, kernel = training_matrix(rows, kernel, self.threads)
        given_rows = rows
        if options.gap is not None and not kernel.is_positive_semidefinite:
            raise ValueError(f"a duality gap cannot be stated for the kernel {kernel.describe()}")
        n_rows = rows.n_samples
        # equal rows leave a fold of held-out values one by one, so they stay apart for those
        kind = np.arange(n_rows) if options.probability else self.task.values
        self.duplicates = find_duplicates(rows, kind)
        values, copies = self.task.values[self.duplicates.first], self.duplicates.counts
        if len(values) < n_rows:
            rows = rows.take(self.duplicates.first)
        formulation = self.task.formulate(values, copies)
        budget = min(options.tolerance, options.gap or options.tolerance)
        self.locality = find_locality(rows, kernel, formulation.weight, budget, self.threads)
        if self.locality.is_ordered:
            order = self.locality.order
            values, copies = values[order], copies[order]
            rows, formulation = rows.take(order), self.task.formulate(values, copies)
        self.formulation = formulation
        self.problem = formulation.problem
        self.values, self.copies = values, copies
        self.data = KernelRows(rows, kernel, self.threads, coded=True)
        self.plan = self.make_plan()
        cache_mb = options.cache_mb or default_cache_mb()
        self.cache_bytes = cache_mb * 1_000_000
        described = "kernel values" if kernel.is_precomputed else "features"
        progress.plan(
            f"{n_rows} rows of {rows.n_features} {described}{self.describe_duplicates()}, "
            f"{kernel.describe()}, "
            f"{self.plan.describe()}, {self.threads} thread{'s'[: self.threads > 1]}, "
            f"{cache_mb} MB for kernel values{self.describe_groups()}"
        )
        self.reach = self.locality.reach(coupled=formulation.has_sums)
        unit = formulation.number
        if not formulation.has_sums:
            unit = unit * self.locality.n_groups + self.locality.group[self.problem.rows]
        self.unit = unit
        self.units = np.searchsorted(unit, np.arange(int(unit[-1]) + 2))
        self.state = RunState(
            Iterate.of(formulation.alpha.copy()),
            whole_tolerance=np.full(len(self.units) - 1, np.inf),
            rng=np.random.default_rng(options.seed),
            iterations_left=options.max_iterations,
            report=TrainReport(
                threads=self.threads,
                n_merged=n_rows - rows.n_samples,
                n_groups=self.locality.n_groups,
            ),
        )
        if init_model is not None:
            self.state.iterate = Iterate.of(first_alpha(self, given_rows, init_model))
        if checkpoint is not None and checkpoint.resume:
            names = [name for name, _ in self.steps()]
            variables, rows = self.problem.size, self.data.rows.n_samples
            ends = [rows if name.startswith("level") else variables for name in names]
            checkpoint.load(self.state, self.problem, ends)
            progress.resume(names[self.state.steps_done])
        self.seconds_before = self.report.seconds_train
        self.division: tuple[int, Division] | None = None  # of the last level that was begun

    def make_plan(self) -> Plan:
        options, n_rows = self.options, self.data.rows.n_samples
        largest = int(np.diff(self.formulation.start).max())
        levels = options.levels if options.has_levels else 0
        plan = make_plan(
            min(largest, n_rows),
            levels,
            options.branching,
            options.early_level,
            dear_rows=self.data.has_dear_rows,
        )
        if options.early and plan.early_level is None:
            raise ValueError(f"there is no early level: {n_rows} rows are solved directly")
        return plan

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

    def describe_duplicates(self) -> str:
        merged = len(self.duplicates.rows) - len(self.duplicates.first)
        return f" ({merged} repeat others)" if merged else ""

    def describe_groups(self) -> str:
        sizes = np.diff(self.locality.start)
        if len(sizes) == 1:
            return ""
        return f", {len(sizes)} independent groups of up to {sizes.max()} rows"

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
        """Algorithm 1, from wherever the state is."""
        probability = None
        try:
            for name, step in self.steps()[self.state.steps_done :]:
                if self.stop.is_requested:
                    raise _core.Stopped
                step()
                self.state.steps_done += name != "conquer"
                self.save()
            self.set_seconds()
            exact = None if self.options.early else exact_model(self)
            if self.options.measure_levels:
                self.measure_levels()
            if self.options.probability:
                probability = probability_of(self)
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

    def set_seconds(self) -> None:
        self.report.seconds_train = self.seconds_before + time.perf_counter() - self.start

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
        if not self.has_whole_gradients:
            self.iterate.forget(np.flatnonzero(~self.is_whole))
        if not np.any(self.alpha) and state.early is None:
            raise _core.Stopped
        if self.options.early and state.early is not None:
            return None
        self.settle(certificate_of_stopped(self), converged=False)
        try:
            return exact_model(self)
        except NoMargin as nothing:
            raise _core.Stopped from nothing

    @property
    def has_whole_gradients(self) -> bool:
        """Whether what is known of the gradient is of the whole problem, not of clusters."""
        steps, number = [name for name, _ in self.steps()], self.state.steps_done
        begun = self.state.begun_with is not None
        return (number > 0 and steps[number - 1] in ("refine", "gradient")) or (
            begun and steps[number] in ("refine", "conquer")
        )

    def divide(self, level: int) -> None:
        """Cluster the rows for a level and solve its clusters from the current alpha."""
        state = self.state
        start = time.perf_counter()
        wanted = EARLY_TOLERANCE if level == self.plan.early_level else LEVEL_TOLERANCE
        tolerance = max(self.options.tolerance, wanted)
        open_ = np.flatnonzero(state.whole_tolerance[self.unit] > tolerance)
        if state.begun_with is None:
            support = np.unique(self.problem.rows[self.alpha != 0])
            everything = np.arange(self.data.rows.n_samples, dtype=np.int32)
            state.begun_with = support if len(support) else everything
            self.iterate.forget(open_)
        # a sum couples the groups, but a part of a level may keep one of its own: not in the early
        # level, whose clusters have one rho
        is_one_sum = self.formulation.has_sums and level == self.plan.early_level
        group = None if is_one_sum else self.locality.group
        rng = copy.deepcopy(state.rng)
        kernel = self.data.kernel if self.options.clustering == "kernel" else Kernel("linear")
        partition = two_step_kernel_kmeans(
            self.data.rows,
            kernel,
            self.plan.branching**level,
            sample_from=state.begun_with,
            sample_size=max(self.options.sample, self.plan.branching**level),
            rng=rng,
            threads=self.threads,
            group=group,
        )
        cluster = partition.assign(self.data.rows, self.threads, self.stop)
        clustered = time.perf_counter()
        n_clusters = partition.n_clusters
        place, n_places = cluster, n_clusters
        if group is not None:
            place, n_places = cluster + n_clusters * group, n_clusters * self.locality.n_groups
        part = self.unit * n_places + place[self.problem.rows]
        members = open_[np.argsort(part[open_], kind="stable")].astype(np.int32)
        parts, sizes = np.unique(part[open_], return_counts=True)
        division = Division(partition, cluster, members, sizes)
        self.division = level, division
        self.progress.begin(f"level {level}", self.problem.size)
        before = self.report.counts["kernel_evaluations"], self.report.counts["pairs_skipped"]
        solved = self.solve(members, sizes, tolerance)
        self.end_if_stopped(solved)
        objective = sum(one["objective"] for one in solved) + self.objective_of_whole(tolerance)
        units, n_parts = np.unique(parts // n_places, return_counts=True)
        state.whole_tolerance[units] = np.where(n_parts == 1, tolerance, np.inf)
        rows = Coefficients(self).row_numbers
        level_report = LevelReport(
            level=level,
            n_clusters=n_clusters,
            largest_cluster=int(np.unique(part, return_counts=True)[1].max()),
            seconds_clustering=clustered - start,
            seconds_training=time.perf_counter() - clustered,
            n_sv=len(rows),
            objective=objective,
            kernel_evaluations=self.report.counts["kernel_evaluations"] - before[0],
            pairs_skipped=self.report.counts["pairs_skipped"] - before[1],
        )
        self.report.levels.append(level_report)
        self.report.support_by_level.append(np.sort(rows))
        self.report.converged = all(one["converged"] for one in solved)
        state.levels.append(self.measured_state(cluster, objective))
        if level >= self.plan.early_level:
            state.early = early_model(self, level, division)
        state.rng, state.begun_with = rng, None
        self.progress.end_level(level_report)

    def end_if_stopped(self, solved: list[dict]) -> None:
        """Raise Stopped where not all is solved that was to be."""
        if self.stop.is_requested and not all(one["converged"] for one in solved):
            raise _core.Stopped

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
        members = state.begun_with
        self.progress.begin("refine", len(members))
        solved = self.solve(
            members, self.sizes_of(members), max(self.options.tolerance, LEVEL_TOLERANCE)
        )
        self.end_if_stopped(solved)
        state.begun_with = None
        self.report.refine_seconds = time.perf_counter() - start
        self.progress.end("refine", self.report.refine_seconds, int(np.count_nonzero(self.alpha)))

    def extend_gradient(self) -> None:
        """The gradient of all variables from that of the refined ones, which hold all support
        vectors."""
        start = time.perf_counter()
        others = np.flatnonzero(~self.iterate.is_known)
        gradient = gradient_of(
            self.data,
            self.problem,
            self.alpha,
            others,
            self.units,
            self.reach,
            self.threads,
            float64=False,
            stop=self.stop,
        )
        self.iterate.learn(others, gradient)
        left_out = self.reach.value * float(np.abs(self.alpha).sum())
        self.state.neglected = max(self.state.neglected, left_out)
        self.report.phases["rebuild"] += time.perf_counter() - start
        self.report.counts["kernel_evaluations"] += len(others) * int(np.count_nonzero(self.alpha))

    def conquer(self) -> None:
        """Solve the whole problem to the tolerance or gap and check it with float64 kernel values.

        The check leaves float64 values in the gradient wherever float32 ones could hide a
        violation; while there is one, the solver goes on from them.
        """
        start, state = time.perf_counter(), self.state
        everything = np.arange(self.problem.size, dtype=np.int32)
        if state.begun_with is None:
            if not self.has_whole_gradients:
                self.iterate.forget(everything)
            state.begun_with = everything[:0]
        self.progress.begin("conquer", self.problem.size)
        tolerance = self.options.tolerance if self.options.gap is None else FIRST_GAP_TOLERANCE
        for attempt in range(LARGEST_REFINEMENTS):
            attainable = ROUNDING * float(np.abs(self.alpha).sum())
            solved = self.solve(
                everything, np.diff(self.units), max(SOLVER_TOLERANCE * tolerance, attainable)
            )
            self.end_if_stopped(solved)
            certificate = self.verify(attempt)
            if (
                self.is_reached(certificate)
                or self.state.iterations_left == 0
                or tolerance < attainable
            ):
                break
            if self.options.gap is not None:
                wanted = 0.5 * self.options.gap / certificate.relative_gap
                tolerance *= min(max(wanted, 0.01), 0.5)
        self.settle(certificate, converged=self.is_reached(certificate))
        self.report.conquer_seconds = time.perf_counter() - start
        self.progress.end("conquer", self.report.conquer_seconds, int(np.count_nonzero(self.alpha)))

    def is_reached(self, certificate: Certificate) -> bool:
        """Whether the answer is as good as was asked for."""
        if self.options.gap is None:
            return certificate.violation <= self.options.tolerance
        return certificate.relative_gap <= self.options.gap

    def verify(self, attempt: int) -> Certificate:
        """The certificate of the current alpha; every attempt draws other random rows."""
        start = time.perf_counter()
        certificates = []
        for part in self.formulation.parts():
            inside = slice(*np.searchsorted(self.units, [part.start, part.stop + 1]))
            certificates.append(
                check(
                    self.data,
                    self.problem.part(part),
                    self.alpha[part],
                    self.gradient[part],
                    self.units[inside] - part.start,
                    self.locality,
                    neglected=self.state.neglected,
                    every_row=self.options.certify,
                    seed=self.options.seed + attempt,
                    threads=self.threads,
                    stop=self.stop,
                )
            )
        self.report.seconds_verify += time.perf_counter() - start
        return Certificate.of_all(certificates)

    def solve(
        self,
        members: np.ndarray,
        sizes: np.ndarray,
        tolerance: float,
        iterate: Iterate | None = None,
    ) -> list[dict]:
        """Solve parts of the problem, `sizes` of the variables `members`, in place: from the run's
        iterate unless another is given."""
        state, own = self.state, iterate is None
        call = _CoreProgress(self, storing=own)
        solved = _core.solve_clusters(
            self.data.setup,
            self.data.points,
            self.problem,
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            members,
            self.iterate if own else iterate,
            tolerance,
            state.iterations_left,
            self.cache_bytes,
            self.threads,
            call,
            self.reach,
            state.neglected,
            self.stop,
        )
        state.neglected = max([state.neglected, *(one["neglected"] for one in solved)])
        self.report.add(solved)
        if state.iterations_left >= 0:
            used = sum(one["iterations"] for one in solved)
            state.iterations_left = max(0, state.iterations_left - used)
        return solved

    def settle(self, certificate: Certificate, *, converged: bool) -> None:
        self.report.objective = certificate.objective
        self.report.violation = certificate.violation
        self.report.duality_gap = certificate.gap
        self.report.relative_gap = certificate.relative_gap
        self.report.kernel_error = certificate.kernel_error
        self.report.n_checked = certificate.n_checked
        self.report.converged = converged
        self.certificates = certificate.parts
