"""Algorithm 1 of Hsieh, Si and Dhillon, "A Divide-and-Conquer Solver for Kernel SVMs" (2014).

Levels from the finest up: cluster the rows, solve the clusters from the solution of the level
below; then the support vectors of level 1 alone (refine), then all rows (conquer) to the
tolerance, checked with float64 kernel values.
"""

from __future__ import annotations

import time

import numpy as np

from dcsvm import _core
from dcsvm.certificate import Certificate, check, gradient_of
from dcsvm.dataset import Rows
from dcsvm.duplicates import find_duplicates
from dcsvm.extraction import Coefficients, Division, early_model, exact_model
from dcsvm.held_out import probability_of
from dcsvm.kernels import Kernel, KernelRows
from dcsvm.level_measure import LevelState, glued_objective, off_diagonal_mass
from dcsvm.locality import find_locality
from dcsvm.model import Model
from dcsvm.options import TrainOptions
from dcsvm.partition import two_step_kernel_kmeans
from dcsvm.plan import Plan, default_cache_mb, default_threads, make_plan
from dcsvm.precomputed import training_matrix
from dcsvm.report import LevelReport, Progress, TrainReport
from dcsvm.sample_weights import checked_weights
from dcsvm.task import task_of

LEVEL_TOLERANCE = 1e-1  # a level that only starts the next one is not solved further than this
EARLY_TOLERANCE = 1e-3
SOLVER_TOLERANCE = 0.9  # of the tolerance: leaves room for the float64 check
LARGEST_REFINEMENTS = 10
FIRST_GAP_TOLERANCE = 1e-2  # violation the first answer to a wanted gap is solved to
ROUNDING = 2.0**-46  # of the sum of |alpha|: a violation that float64 gradients can state


class _CoreProgress:
    """Passes the core's calls on."""

    def __init__(self, progress: Progress):
        self.progress = progress
        self.error: BaseException | None = None

    def __call__(self, clusters_done, rows_done, violation, n_active, outer_steps) -> bool:
        self.progress.advance(rows_done, violation, n_active)
        return not self.progress.stop


def train_rows(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    progress: Progress | None = None,
    sample_weight: np.ndarray | None = None,
) -> tuple[Model, TrainReport]:
    """Train a model; returns it and a report.

    `labels` float64 (n,): classes, or targets of a regression; one-class takes no notice of them.
    `sample_weight` float64 (n,): as how many rows each counts, None is one. Raises ValueError for
    anything that does not fit.
    """
    return _Run(rows, labels, options, progress or Progress(), sample_weight).run()


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
        sample_weight: np.ndarray | None = None,
    ):
        self.start = time.perf_counter()
        self.options, self.progress = options, progress
        if len(labels) != rows.n_samples:
            raise ValueError(f"{rows.n_samples} rows have {len(labels)} labels")
        weights = checked_weights(sample_weight, len(labels))
        self.task = task_of(labels, weights, options)
        self.threads = _core.usable_threads(options.threads or default_threads())
        gamma = 1.0 / max(rows.n_features, 1) if options.gamma is None else options.gamma
        kernel = Kernel(options.kernel, gamma, options.coef0, options.degree)
        if kernel.is_precomputed:
            rows, kernel = training_matrix(rows, kernel, self.threads)
        if options.gap is not None and not kernel.is_positive_semidefinite:
            raise ValueError(f"a duality gap cannot be stated for the kernel {kernel.describe()}")
        n_rows = rows.n_samples
        # equal rows leave a fold of held-out values one by one, so they stay apart for those
        kind = np.arange(n_rows) if options.probability else self.task.values
        self.duplicates = find_duplicates(rows, kind, weights)
        values, copies = self.task.values[self.duplicates.first], self.duplicates.copies
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
        self.rng = np.random.default_rng(options.seed)
        self.alpha = formulation.alpha.copy()
        self.gradient = np.zeros(self.problem.size)
        self.reach = self.locality.reach(coupled=formulation.has_sums)
        unit = formulation.number
        if not formulation.has_sums:
            unit = unit * self.locality.n_groups + self.locality.group[self.problem.rows]
        self.unit = unit
        self.units = np.searchsorted(unit, np.arange(int(unit[-1]) + 2))
        self.whole_tolerance = np.full(len(self.units) - 1, np.inf)  # a level solved it to
        self.levels: list[LevelState] = []
        self.neglected = 0.0  # bound of what the solver left out of any entry of the gradient
        self.report = TrainReport(
            threads=self.threads,
            n_merged=self.duplicates.n_merged,
            n_groups=self.locality.n_groups,
        )
        self.iterations_left = options.max_iterations

    def make_plan(self) -> Plan:
        options, n_rows = self.options, self.data.rows.n_samples
        largest = int(np.diff(self.formulation.start).max())
        levels = options.levels if self.task.has_levels else 0
        plan = make_plan(
            min(largest, n_rows),
            levels,
            options.branching,
            options.early_level,
            dear_rows=self.data.has_dear_rows,
        )
        if options.early and not self.task.has_levels:
            raise ValueError(f"there are no early models of {options.svm_type}: it has no levels")
        if options.early and plan.early_level is None:
            raise ValueError(f"there is no early level: {n_rows} rows are solved directly")
        return plan

    @property
    def is_whole(self) -> np.ndarray:
        """Variables of units that a level solved as a whole: their gradient is the problem's."""
        return np.isfinite(self.whole_tolerance)[self.unit]

    def objective_of_whole(self, tolerance: float) -> float:
        """Objective of the units that were solved as a whole to a tolerance."""
        own = self.whole_tolerance[self.unit] <= tolerance
        alpha, gradient = self.alpha[own], self.gradient[own]
        return float(0.5 * np.dot(alpha, gradient - self.problem.linear[own]))

    def sizes_of(self, variables: np.ndarray) -> np.ndarray:
        """How many of these variables, ascending, are in each unit."""
        return np.diff(np.searchsorted(variables, self.units))

    def describe_duplicates(self) -> str:
        merged = self.duplicates.n_merged
        return f" ({merged} repeat others)" if merged else ""

    def describe_groups(self) -> str:
        sizes = np.diff(self.locality.start)
        if len(sizes) == 1:
            return ""
        return f", {len(sizes)} independent groups of up to {sizes.max()} rows"

    def run(self) -> tuple[Model, TrainReport]:
        early = None
        for level in self.plan.levels:
            division = self.divide(level)
            if level == self.plan.early_level:
                early = early_model(self, level, division)
                if self.options.early:
                    break
        if not self.options.early:
            # where rows are dear the solver computes them once, for the gradient and its steps
            known = bool(self.plan.levels) and not self.data.has_dear_rows
            if known:
                self.extend_gradient(self.refine())
            self.conquer(gradient_given=known)
        self.report.seconds_train = time.perf_counter() - self.start
        exact = None if self.options.early else exact_model(self)
        if self.options.measure_levels:
            self.measure_levels()
        model = Model(
            self.data.kernel,
            self.task.labels,
            exact,
            early,
            svm_type=self.options.svm_type,
            probability=probability_of(self) if self.options.probability else None,
            report=self.report,
        )
        return model, self.report

    def divide(self, level: int) -> Division:
        """Cluster the rows for a level and solve its clusters from the current alpha."""
        start = time.perf_counter()
        kernel = self.data.kernel if self.options.clustering == "kernel" else Kernel("linear")
        n_rows = self.data.rows.n_samples
        support = np.unique(self.problem.rows[self.alpha != 0])
        partition = two_step_kernel_kmeans(
            self.data.rows,
            kernel,
            self.plan.branching**level,
            sample_from=support if len(support) else np.arange(n_rows),
            sample_size=max(self.options.sample, self.plan.branching**level),
            rng=self.rng,
            threads=self.threads,
            group=None if self.formulation.has_sums else self.locality.group,
        )
        cluster = partition.assign(self.data.rows, self.threads)
        clustered = time.perf_counter()
        wanted = EARLY_TOLERANCE if level == self.plan.early_level else LEVEL_TOLERANCE
        tolerance = max(self.options.tolerance, wanted)
        n_clusters = partition.n_clusters
        part = self.unit * n_clusters + cluster[self.problem.rows]
        open_ = np.flatnonzero(self.whole_tolerance[self.unit] > tolerance)
        members = open_[np.argsort(part[open_], kind="stable")].astype(np.int32)
        parts, sizes = np.unique(part[open_], return_counts=True)
        self.progress.begin(f"level {level}", self.problem.size)
        before = self.report.counts["kernel_evaluations"], self.report.counts["pairs_skipped"]
        solved = self.solve(members, sizes, tolerance)
        objective = sum(one["objective"] for one in solved) + self.objective_of_whole(tolerance)
        units, n_parts = np.unique(parts // n_clusters, return_counts=True)
        self.whole_tolerance[units] = np.where(n_parts == 1, tolerance, np.inf)
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
        if self.options.measure_levels and self.formulation.n_problems == 1:
            variables = np.flatnonzero(self.alpha)
            self.levels.append(
                LevelState(
                    cluster,
                    self.problem.rows[variables],
                    self.alpha[variables],
                    self.problem.linear[variables],
                    objective,
                )
            )
        self.progress.end_level(level_report)
        return Division(partition, cluster, members, sizes)

    def measure_levels(self) -> None:
        """Theorem 1 per level, with a row counted as often as its bound has C."""
        copies = self.copies * self.task.bound_of(self.values) / self.options.C
        for report, level in zip(self.report.levels, self.levels, strict=False):
            rng = np.random.default_rng(self.options.seed)
            report.off_diagonal_mass = off_diagonal_mass(
                self.data, level.cluster, copies, rng, self.threads
            )
            report.bound = 0.5 * self.options.C**2 * report.off_diagonal_mass
            if self.report.objective is not None:
                glued = glued_objective(self.data, level, self.locality.between, rng, self.threads)
                report.distance = glued - self.report.objective

    def refine(self) -> np.ndarray:
        """Solve the problem of the support vectors of level 1 alone; returns them.

        Units that a level solved as a whole are left out.
        """
        start = time.perf_counter()
        members = np.flatnonzero((self.alpha != 0) & ~self.is_whole).astype(np.int32)
        self.progress.begin("refine", len(members))
        self.solve(members, self.sizes_of(members), max(self.options.tolerance, LEVEL_TOLERANCE))
        self.report.refine_seconds = time.perf_counter() - start
        self.progress.end("refine", self.report.refine_seconds, int(np.count_nonzero(self.alpha)))
        return members

    def extend_gradient(self, known: np.ndarray) -> None:
        """The gradient of all variables from that of `known`, which hold all support vectors."""
        start = time.perf_counter()
        others = np.setdiff1d(np.flatnonzero(~self.is_whole), known, assume_unique=True)
        self.gradient[others] = gradient_of(
            self.data,
            self.problem,
            self.alpha,
            others,
            self.units,
            self.reach,
            self.threads,
            float64=False,
        )
        left_out = self.reach.value * float(np.abs(self.alpha).sum())
        self.neglected = max(self.neglected, left_out)
        self.report.phases["rebuild"] += time.perf_counter() - start
        self.report.counts["kernel_evaluations"] += len(others) * int(np.count_nonzero(self.alpha))

    def conquer(self, *, gradient_given: bool) -> None:
        """Solve the whole problem to the tolerance or gap and check it with float64 kernel values.

        The check leaves float64 values in the gradient wherever float32 ones could hide a
        violation; while there is one, the solver goes on from them.
        """
        start = time.perf_counter()
        everything = np.arange(self.problem.size, dtype=np.int32)
        self.progress.begin("conquer", self.problem.size)
        tolerance = self.options.tolerance if self.options.gap is None else FIRST_GAP_TOLERANCE
        for attempt in range(LARGEST_REFINEMENTS):
            first = attempt == 0
            attainable = ROUNDING * float(np.abs(self.alpha).sum())
            self.solve(
                everything,
                np.diff(self.units),
                max(SOLVER_TOLERANCE * tolerance, attainable),
                gradient_given=gradient_given or not first,
            )
            certificate = self.verify(attempt)
            if (
                self.is_reached(certificate)
                or self.iterations_left == 0
                or self.progress.stop
                or tolerance < attainable
            ):
                break
            if self.options.gap is not None:
                wanted = 0.5 * self.options.gap / certificate.relative_gap
                tolerance *= min(max(wanted, 0.01), 0.5)
        self.settle(certificate)
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
                    neglected=self.neglected,
                    every_row=self.options.certify,
                    seed=self.options.seed + attempt,
                    threads=self.threads,
                )
            )
        self.report.seconds_verify += time.perf_counter() - start
        return Certificate.of_all(certificates)

    def solve(
        self,
        members: np.ndarray,
        sizes: np.ndarray,
        tolerance: float,
        *,
        gradient_given: bool = False,
        alpha: np.ndarray | None = None,
        gradient: np.ndarray | None = None,
    ) -> list[dict]:
        """Solve parts of the problem, `sizes` of the variables `members`, in place: the run's alpha
        and gradient unless others are given."""
        if self.progress.stop:
            tolerance = float("inf")
        solved = _core.solve_clusters(
            self.data.setup,
            self.data.points,
            self.problem,
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            members,
            self.alpha if alpha is None else alpha,
            self.gradient if gradient is None else gradient,
            tolerance,
            self.iterations_left,
            self.cache_bytes,
            self.threads,
            gradient_given,
            _CoreProgress(self.progress),
            self.reach,
            self.neglected,
        )
        self.neglected = max([self.neglected, *(one["neglected"] for one in solved)])
        self.report.add(solved)
        if self.iterations_left >= 0:
            used = sum(one["iterations"] for one in solved)
            self.iterations_left = max(0, self.iterations_left - used)
        return solved

    def settle(self, certificate: Certificate) -> None:
        self.report.objective = certificate.objective
        self.report.violation = certificate.violation
        self.report.duality_gap = certificate.gap
        self.report.relative_gap = certificate.relative_gap
        self.report.kernel_error = certificate.kernel_error
        self.report.converged = self.is_reached(certificate)
        self.certificates = certificate.parts
