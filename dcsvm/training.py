"""Algorithm 1 of Hsieh, Si and Dhillon, "A Divide-and-Conquer Solver for Kernel SVMs" (2014).

Levels from the finest up: cluster the rows, solve the clusters from the solution of the level
below; then the support vectors of level 1 alone (refine), then all rows (conquer) to the
tolerance, checked with float64 kernel values.
"""

from __future__ import annotations

import time

import numpy as np

from dcsvm import _core
from dcsvm.certificate import Certificate, check
from dcsvm.dataset import Rows
from dcsvm.extraction import Coefficients, Division, early_model, exact_model
from dcsvm.formulation import Formulation
from dcsvm.held_out import (
    alpha_without_held_out,
    folds_for_probability,
    formulation_of_folds,
    probability_of,
)
from dcsvm.kernel_sums import Terms, sums_of_units
from dcsvm.kernels import Kernel
from dcsvm.level_measure import LevelState, glued_objective, off_diagonal_mass
from dcsvm.locality import Reach
from dcsvm.model import EarlyModel, Model, Probability
from dcsvm.options import TrainOptions
from dcsvm.partition import Partition, two_step_kernel_kmeans
from dcsvm.preparation import Prepared, prepare
from dcsvm.report import LevelReport, PartOfProgress, Progress, TrainReport

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
    rows: Rows, labels: np.ndarray, options: TrainOptions, progress: Progress | None = None
) -> tuple[Model, TrainReport]:
    """Train a model; returns it and a report.

    `labels` float64 (n,): classes, or targets of a regression; one-class takes no notice of them.
    Raises ValueError for anything that does not fit.
    """
    return Run(prepare(rows, labels, options), progress or Progress()).run()


class Run:
    """One training run: its fixed inputs, and the state that goes from level to level.

    Rows are those that are left when equal ones are merged, in the order of the locality. Variables
    belong to problems (one against one), each to one row; a unit is a problem, or its part in one
    independent group of rows where no sum couples them; a family the units of all folds that have
    the same problem and group.
    """

    def __init__(
        self, prepared: Prepared, progress: Progress, formulation: Formulation | None = None
    ):
        self.prepared, self.progress = prepared, progress
        self.options, self.task, self.threads = prepared.options, prepared.task, prepared.threads
        self.duplicates, self.locality = prepared.duplicates, prepared.locality
        self.values, self.copies, self.data = prepared.values, prepared.copies, prepared.data
        self.plan = prepared.plan
        self.formulation = formulation = formulation or prepared.formulation
        self.problem = formulation.problem
        self.cache_bytes = prepared.cache_mb * 1_000_000
        progress.plan(prepared.describe())
        self.rng = np.random.default_rng(self.options.seed)
        self.alpha = formulation.alpha.copy()
        self.gradient = np.zeros(self.problem.size)
        self.reach = self.locality.reach(coupled=formulation.has_sums)
        self.group = np.zeros(len(self.values), np.int64)  # of rows, coupled by no sum
        if not formulation.has_sums:
            self.group = self.locality.group
        n_groups = int(self.group[-1]) + 1
        self.unit = formulation.number * n_groups + self.group[self.problem.rows]
        self.n_units_of_fold = formulation.n_problems_of_fold * n_groups
        n_units = formulation.n_folds * self.n_units_of_fold
        self.units = np.searchsorted(self.unit, np.arange(n_units + 1))
        self.whole_tolerance = np.full(n_units, np.inf)  # a level solved it to
        self.levels: list[LevelState] = []
        self.neglected = 0.0  # bound of what the solver left out of any entry of the gradient
        self.converged = np.zeros(formulation.n_folds, bool)
        self.early: EarlyModel | None = None
        self.report = TrainReport(
            threads=self.threads,
            n_merged=prepared.n_merged,
            n_groups=self.locality.n_groups,
        )
        self.iterations_left = self.options.max_iterations  # of a fold

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

    def run(self) -> tuple[Model, TrainReport]:
        self.improve()
        self.report.seconds_train = time.perf_counter() - self.prepared.start
        exact = None if self.options.early else exact_model(self)
        if self.options.measure_levels:
            self.measure_levels()
        model = Model(
            self.data.kernel,
            self.task.labels,
            exact,
            self.early,
            svm_type=self.options.svm_type,
            probability=self.probability() if self.options.probability else None,
            report=self.report,
        )
        return model, self.report

    def probability(self) -> Probability:
        """What turns decision values into probabilities, from folds that start from the solution
        of all rows."""
        folds = folds_for_probability(self.prepared)
        formulation = formulation_of_folds(self.prepared, folds, range(folds.n_folds))
        n_rows = self.data.rows.n_samples
        start = time.perf_counter()
        self.progress.begin("probabilities", n_rows)
        run = Run(self.prepared, PartOfProgress(self.progress, 1, 0, n_rows), formulation)
        run.alpha = alpha_without_held_out(self, folds, run.formulation)
        run.extend_gradient(np.zeros(0, np.int64))
        run.conquer(gradient_given=True)
        self.report.include(run.report)
        found = probability_of(run, folds)
        self.progress.end("probabilities", time.perf_counter() - start, np.count_nonzero(run.alpha))
        return found

    def improve(self) -> None:
        """Algorithm 1, from the alpha there is."""
        for level in self.plan.levels:
            division = self.divide(level)
            if level == self.plan.early_level:
                self.keep_early(level, division)
                if self.options.early:
                    return
        # where rows are dear the solver computes them once, for the gradient and its steps
        known = bool(self.plan.levels) and not self.data.has_dear_rows
        if known:
            self.extend_gradient(self.refine())
        self.conquer(gradient_given=known)

    def keep_early(self, level: int, division: Division) -> None:
        self.early = early_model(self, level, division)

    def clustering(self, level: int) -> tuple[Partition, np.ndarray]:
        """The partition of a level, and the cluster of every row."""
        kernel = self.data.kernel if self.options.clustering == "kernel" else Kernel("linear")
        partition = two_step_kernel_kmeans(
            self.data.rows,
            kernel,
            self.plan.branching**level,
            sample_from=self.rows_to_sample(),
            sample_size=max(self.options.sample, self.plan.branching**level),
            rng=self.rng,
            threads=self.threads,
            group=None if self.formulation.has_sums else self.locality.group,
        )
        return partition, partition.assign(self.data.rows, self.threads)

    def rows_to_sample(self) -> np.ndarray:
        """Rows with support vectors, at first all rows."""
        support = np.unique(self.problem.rows[self.alpha != 0])
        return support if len(support) else np.arange(self.data.rows.n_samples)

    def divide(self, level: int) -> Division:
        """Cluster the rows for a level and solve its clusters from the current alpha."""
        start = time.perf_counter()
        partition, cluster = self.clustering(level)
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
        self.note_level(
            LevelReport(
                level=level,
                n_clusters=n_clusters,
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
        self.converged[missed // (n_clusters * self.n_units_of_fold)] = False
        self.report.converged = bool(self.converged.all())
        return Division(partition, cluster, members, sizes)

    def note_level(self, report: LevelReport, cluster: np.ndarray) -> None:
        """Report a level, and keep what measuring it will need."""
        rows = Coefficients(self).row_numbers
        report.n_sv = len(rows)
        self.report.levels.append(report)
        self.report.support_by_level.append(np.sort(rows))
        if self.options.measure_levels and self.formulation.n_problems == 1:
            variables = np.flatnonzero(self.alpha)
            self.levels.append(
                LevelState(
                    cluster,
                    self.problem.rows[variables],
                    self.alpha[variables],
                    self.problem.linear[variables],
                    report.objective,
                )
            )
        self.progress.end_level(report)

    def measure_levels(self) -> None:
        """Theorem 1 per level, with C of every row and merged rows counted as many times."""
        for report, level in zip(self.report.levels, self.levels, strict=False):
            rng = np.random.default_rng(self.options.seed)
            report.off_diagonal_mass = off_diagonal_mass(
                self.data, level.cluster, self.copies, rng, self.threads
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
        self.gradient[others], n_values = self.gradient_of(others, self.reach, float64=False)
        left_out = self.reach.value * float(np.abs(self.alpha).sum())
        self.neglected = max(self.neglected, left_out)
        self.report.phases["rebuild"] += time.perf_counter() - start
        self.report.counts["kernel_evaluations"] += n_values

    def gradient_of(
        self, variables: np.ndarray, reach: Reach, *, float64: bool
    ) -> tuple[np.ndarray, int]:
        """Gradient of some variables, from float64 or from float32 kernel values, those between
        units and out of reach left out; and the number of kernel values."""
        support = np.flatnonzero(self.alpha)
        terms = Terms(self.problem.rows, self.unit, self.unit % self.n_units_of_fold)
        sums, n_values = sums_of_units(
            self.data,
            terms.take(variables),
            terms.take(support),
            self.alpha[support],
            reach,
            self.threads,
            float64=float64,
        )
        return sums - self.problem.linear[variables], n_values

    def conquer(self, *, gradient_given: bool) -> None:
        """Solve the whole problem to the tolerance or gap and check it with float64 kernel values.

        The check leaves float64 values in the gradient wherever float32 ones could hide a
        violation; while there is one, the solver goes on from them.
        """
        start = time.perf_counter()
        self.progress.begin("conquer", self.problem.size)
        tolerance = self.options.tolerance if self.options.gap is None else FIRST_GAP_TOLERANCE
        folds = list(range(self.formulation.n_folds))
        certificates: dict[int, Certificate] = {}
        for attempt in range(LARGEST_REFINEMENTS):
            first = attempt == 0
            members = np.concatenate([self.formulation.variables_of_fold(k) for k in folds])
            attainable = ROUNDING * float(np.abs(self.alpha[members]).sum()) / len(folds)
            self.solve(
                members,
                self.sizes_of(members),
                max(SOLVER_TOLERANCE * tolerance, attainable),
                gradient_given=gradient_given or not first,
            )
            certificates |= self.verify(folds, attempt)
            folds = [k for k in folds if not self.is_reached(certificates[k])]
            if (
                not folds
                or self.iterations_left == 0
                or self.progress.stop
                or tolerance < attainable
            ):
                break
            if self.options.gap is not None:
                wanted = 0.5 * self.options.gap / max(certificates[k].relative_gap for k in folds)
                tolerance *= min(max(wanted, 0.01), 0.5)
        self.settle([certificates[k] for k in sorted(certificates)])
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
                lambda some: self.gradient_of(some, self.locality.between, float64=True)[0],
                self.data,
                self.locality,
                neglected=self.neglected,
                every_row=self.options.certify,
                seed=self.options.seed + attempt,
            )
        )
        self.report.seconds_verify += time.perf_counter() - start
        return {
            k: Certificate.of_all([next(found) for _ in own])
            for k, own in zip(folds, parts, strict=True)
        }

    def solve(
        self,
        members: np.ndarray,
        sizes: np.ndarray,
        tolerance: float,
        *,
        gradient_given: bool = False,
    ) -> list[dict]:
        """Solve parts of the problem, `sizes` of the variables `members`, in place."""
        if self.progress.stop:
            tolerance = float("inf")
        solved = _core.solve_clusters(
            self.data.setup,
            self.data.points,
            self.problem,
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            members,
            self.alpha,
            self.gradient,
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
            used = sum(one["iterations"] for one in solved) // self.formulation.n_folds
            self.iterations_left = max(0, self.iterations_left - used)
        return solved

    def settle(self, folds: list[Certificate]) -> None:
        certificate = Certificate.of_all(folds)
        self.report.objective = certificate.objective
        self.report.violation = certificate.violation
        self.report.duality_gap = certificate.gap
        self.report.relative_gap = certificate.relative_gap
        self.report.kernel_error = certificate.kernel_error
        self.converged = np.array([self.is_reached(fold) for fold in folds])
        self.report.converged = bool(self.converged.all())
        self.certificates = [part for fold in folds for part in fold.parts]
