"""Algorithm 1 of Hsieh, Si and Dhillon, "A Divide-and-Conquer Solver for Kernel SVMs" (2014).

Levels from the finest up: cluster the rows, solve the clusters from the solution of the level
below; then the support vectors of level 1 alone (refine), then all rows (conquer) to the
tolerance, checked with float64 kernel values.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.certificate import Certificate, check, gradient_of
from dcsvm.dataset import Rows, encode_labels
from dcsvm.duplicates import find_duplicates
from dcsvm.formulation import BoxProblem, c_svc
from dcsvm.kernels import Kernel, KernelRows
from dcsvm.level_measure import LevelState, glued_objective, off_diagonal_mass
from dcsvm.locality import find_locality
from dcsvm.model import EarlyModel, ExactModel, Model
from dcsvm.partition import CLUSTERINGS, Partition, two_step_kernel_kmeans
from dcsvm.plan import Plan, default_cache_mb, default_threads, make_plan
from dcsvm.precomputed import training_matrix
from dcsvm.report import LevelReport, Progress, TrainReport

LEVEL_TOLERANCE = 1e-1  # a level that only starts the next one is not solved further than this
EARLY_TOLERANCE = 1e-3
SOLVER_TOLERANCE = 0.9  # of the tolerance: leaves room for the float64 check
LARGEST_REFINEMENTS = 10
FIRST_GAP_TOLERANCE = 1e-2  # violation the first answer to a wanted gap is solved to
ROUNDING = 2.0**-46  # of the sum of |alpha|: a violation that float64 gradients can state


@dataclass(frozen=True)
class TrainOptions:
    """Everything `train` can be told, with the defaults of the command and of the Python API.

    gamma None is 1/n_features; levels and early_level None are chosen from the number of rows;
    cache_mb and threads None from the machine; max_iterations -1 is no limit. `gap` stops at a
    duality gap relative to the objective instead of at a violation of `tolerance`. `early` stops
    after the early level; `certify` checks every row in float64; `measure_levels` adds to the
    report of each level what it left out.
    """

    C: float = 1.0
    kernel: str = "rbf"
    gamma: float | None = None
    coef0: float = 0.0
    degree: int = 3
    tolerance: float = 1e-3
    gap: float | None = None
    levels: int | None = None
    branching: int = 4
    sample: int = 1000
    early: bool = False
    early_level: int | None = None
    clustering: str = "kernel"
    seed: int = 0
    threads: int | None = None
    cache_mb: int | None = None
    max_iterations: int = -1
    certify: bool = False
    measure_levels: bool = False

    def __post_init__(self):
        if not self.tolerance > 0:
            raise ValueError(f"tolerance must be positive, not {self.tolerance:g}")
        if self.gap is not None and not self.gap > 0:
            raise ValueError(f"gap must be positive, not {self.gap:g}")
        if self.sample < 1:
            raise ValueError(f"sample must be at least 1, not {self.sample}")
        if self.clustering not in CLUSTERINGS:
            raise ValueError(
                f"clustering must be one of {', '.join(CLUSTERINGS)}, not {self.clustering!r}"
            )
        if self.kernel == "precomputed" and self.clustering == "kmeans":
            raise ValueError("clustering kmeans needs features, a precomputed kernel has none")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads must be at least 1, not {self.threads}")
        if self.cache_mb is not None and self.cache_mb < 1:
            raise ValueError(f"cache must be at least 1 MB, not {self.cache_mb}")


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
    """Train a binary C-SVC without bias; returns the model and a report.

    `labels` float64 (n,) of two distinct values. Raises ValueError for anything that does not fit.
    """
    return _Run(rows, labels, options, progress or Progress()).run()


class _Run:
    """One training run: its fixed inputs, and the state that goes from level to level."""

    def __init__(self, rows: Rows, labels: np.ndarray, options: TrainOptions, progress: Progress):
        self.start = time.perf_counter()
        self.options, self.progress = options, progress
        if len(labels) != rows.n_samples:
            raise ValueError(f"{rows.n_samples} rows have {len(labels)} labels")
        self.label_order, sign = encode_labels(labels)
        self.threads = _core.usable_threads(options.threads or default_threads())
        gamma = 1.0 / max(rows.n_features, 1) if options.gamma is None else options.gamma
        kernel = Kernel(options.kernel, gamma, options.coef0, options.degree)
        if kernel.is_precomputed:
            rows, kernel = training_matrix(rows, kernel, self.threads)
        if options.gap is not None and not kernel.is_positive_semidefinite:
            raise ValueError(f"a duality gap cannot be stated for the kernel {kernel.describe()}")
        n_rows = rows.n_samples
        self.duplicates = find_duplicates(rows, sign)
        sign, copies = sign[self.duplicates.first], self.duplicates.counts
        if len(sign) < n_rows:
            rows = rows.take(self.duplicates.first)
        problem = c_svc(sign, options.C, copies)
        budget = min(options.tolerance, options.gap or options.tolerance)
        self.locality = find_locality(rows, kernel, problem, budget, self.threads)
        if self.locality.is_ordered:
            order = self.locality.order
            rows, problem = rows.take(order), c_svc(sign[order], options.C, copies[order])
        self.problem: BoxProblem = problem
        self.data = KernelRows(rows, kernel, self.threads, coded=True)
        self.plan: Plan = make_plan(
            rows.n_samples,
            options.levels,
            options.branching,
            options.early_level,
            dear_rows=self.data.has_dear_rows,
        )
        if options.early and self.plan.early_level is None:
            raise ValueError(f"there is no early level: {rows.n_samples} rows are solved directly")
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
        self.alpha = np.zeros(self.problem.size)
        self.group = np.repeat(np.arange(self.locality.n_groups), np.diff(self.locality.start))
        self.whole_tolerance = np.full(self.locality.n_groups, np.inf)  # a level solved it to
        self.gradient = np.zeros(self.problem.size)
        self.levels: list[LevelState] = []
        self.neglected = 0.0  # bound of what the solver left out of any entry of the gradient
        self.report = TrainReport(
            threads=self.threads,
            n_merged=n_rows - self.problem.size,
            n_groups=self.locality.n_groups,
        )
        self.iterations_left = options.max_iterations

    @property
    def is_whole(self) -> np.ndarray:
        """Rows of groups that a level solved as a whole: their gradient is the problem's."""
        return np.isfinite(self.whole_tolerance)[self.group]

    def objective_of_whole(self, tolerance: float) -> float:
        """Objective of the groups that were solved as a whole to a tolerance."""
        rows = self.whole_tolerance[self.group] <= tolerance
        alpha, gradient = self.alpha[rows], self.gradient[rows]
        return float(0.5 * np.dot(alpha, gradient - self.problem.linear[rows]))

    def describe_duplicates(self) -> str:
        merged = len(self.duplicates.rows) - len(self.duplicates.first)
        return f" ({merged} repeat others)" if merged else ""

    def describe_groups(self) -> str:
        sizes = np.diff(self.locality.start)
        if len(sizes) == 1:
            return ""
        return f", {len(sizes)} independent groups of up to {sizes.max()} rows"

    def run(self) -> tuple[Model, TrainReport]:
        early = None
        for level in self.plan.levels:
            partition, cluster = self.divide(level)
            if level == self.plan.early_level:
                early = self.early_model(level, partition, cluster)
                if self.options.early:
                    break
        if not self.options.early:
            # where rows are dear the solver computes them once, for the gradient and its steps
            known = bool(self.plan.levels) and not self.data.has_dear_rows
            if known:
                self.extend_gradient(self.refine())
            self.conquer(gradient_given=known)
        self.report.seconds_train = time.perf_counter() - self.start
        self.count_support_vectors()
        exact = None if self.options.early else self.exact_model()
        if self.options.measure_levels:
            self.measure_levels()
        return Model(self.data.kernel, self.label_order, exact, early, self.report), self.report

    def divide(self, level: int) -> tuple[Partition, np.ndarray]:
        """Cluster the rows for a level and solve its clusters from the current alpha."""
        start = time.perf_counter()
        kernel = self.data.kernel if self.options.clustering == "kernel" else Kernel("linear")
        support = np.flatnonzero(self.alpha)
        partition = two_step_kernel_kmeans(
            self.data.rows,
            kernel,
            self.plan.branching**level,
            sample_from=support if len(support) else np.arange(self.problem.size),
            sample_size=max(self.options.sample, self.plan.branching**level),
            rng=self.rng,
            threads=self.threads,
            group=self.group,
        )
        cluster = partition.assign(self.data.rows, self.threads)
        clustered = time.perf_counter()
        wanted = EARLY_TOLERANCE if level == self.plan.early_level else LEVEL_TOLERANCE
        tolerance = max(self.options.tolerance, wanted)
        # the parts of a cluster in different groups are independent
        part = self.group * partition.n_clusters + cluster
        open_ = np.flatnonzero(self.whole_tolerance[self.group] > tolerance)
        members = open_[np.argsort(part[open_], kind="stable")].astype(np.int32)
        parts, sizes = np.unique(part[open_], return_counts=True)
        self.progress.begin(f"level {level}", self.problem.size)
        before = self.report.counts["kernel_evaluations"], self.report.counts["pairs_skipped"]
        solved = self.solve(members, sizes, tolerance)
        objective = sum(one["objective"] for one in solved) + self.objective_of_whole(tolerance)
        groups, n_parts = np.unique(parts // partition.n_clusters, return_counts=True)
        self.whole_tolerance[groups] = np.where(n_parts == 1, tolerance, np.inf)
        support = self.support()[1]
        level_report = LevelReport(
            level=level,
            n_clusters=partition.n_clusters,
            largest_cluster=int(np.unique(part, return_counts=True)[1].max()),
            seconds_clustering=clustered - start,
            seconds_training=time.perf_counter() - clustered,
            n_sv=len(support),
            objective=objective,
            kernel_evaluations=self.report.counts["kernel_evaluations"] - before[0],
            pairs_skipped=self.report.counts["pairs_skipped"] - before[1],
        )
        self.report.levels.append(level_report)
        self.report.support_by_level.append(np.sort(support))
        self.report.converged = all(one["converged"] for one in solved)
        if self.options.measure_levels:
            variables = np.flatnonzero(self.alpha)
            self.levels.append(LevelState(cluster, variables, self.alpha[variables], objective))
        self.progress.end_level(level_report)
        return partition, cluster

    def measure_levels(self) -> None:
        """Theorem 1 per level, with C of every row and merged rows counted as many times."""
        copies = self.duplicates.counts[self.locality.order]
        for report, level in zip(self.report.levels, self.levels, strict=True):
            rng = np.random.default_rng(self.options.seed)
            report.off_diagonal_mass = off_diagonal_mass(
                self.data,
                level.cluster,
                copies,
                rng,
                self.threads,
            )
            report.bound = 0.5 * self.options.C**2 * report.off_diagonal_mass
            if self.report.objective is not None:
                glued = glued_objective(self.data, level, rng, self.threads)
                report.distance = glued - self.report.objective

    def refine(self) -> np.ndarray:
        """Solve the problem of the support vectors of level 1 alone; returns them.

        Groups that a level solved as a whole are left out.
        """
        start = time.perf_counter()
        members = np.flatnonzero((self.alpha != 0) & ~self.is_whole).astype(np.int32)
        self.progress.begin("refine", len(members))
        sizes = self.locality.sizes_of(members)
        self.solve(members, sizes, max(self.options.tolerance, LEVEL_TOLERANCE))
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
            self.locality,
            self.threads,
            float64=False,
        )
        left_out = self.locality.within.value * float(np.abs(self.alpha).sum())
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
        sizes = np.diff(self.locality.start)
        self.progress.begin("conquer", self.problem.size)
        tolerance = self.options.tolerance if self.options.gap is None else FIRST_GAP_TOLERANCE
        for attempt in range(LARGEST_REFINEMENTS):
            first = attempt == 0
            attainable = ROUNDING * float(np.abs(self.alpha).sum())
            self.solve(
                everything,
                sizes,
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
        certificate = check(
            self.data,
            self.problem,
            self.alpha,
            self.gradient,
            self.locality,
            neglected=self.neglected,
            every_row=self.options.certify,
            seed=self.options.seed + attempt,
            threads=self.threads,
        )
        self.report.seconds_verify += time.perf_counter() - start
        return certificate

    def solve(
        self,
        members,
        sizes,
        tolerance: float,
        *,
        gradient_given: bool = False,
    ) -> list[dict]:
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
            self.locality.within,
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

    def support(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(variable, row, alpha of the row) of all support vectors, rows as they were given."""
        variables = np.flatnonzero(self.alpha)
        place, row, alpha = self.duplicates.split(
            self.locality.order[variables], self.alpha[variables], self.options.C
        )
        return variables[place], row, alpha

    def count_support_vectors(self) -> None:
        alpha = self.support()[2]
        self.report.n_sv = len(alpha)
        self.report.n_bsv = int(np.count_nonzero(np.abs(alpha) == self.options.C))

    def exact_model(self) -> ExactModel:
        variable, row, alpha = self.support()
        # as LIBSVM writes them: the first label's, then the second's, each in the file's order
        order = np.lexsort((row, alpha < 0))
        return ExactModel(
            rows=self.data.rows.take_for_model(variable[order]),
            alpha=alpha[order],
            row_numbers=row[order],
        )

    def early_model(self, level: int, partition: Partition, cluster: np.ndarray) -> EarlyModel:
        variable, row, alpha = self.support()
        order = np.lexsort((row, cluster[variable]))
        return EarlyModel(
            level=level,
            partition=partition,
            cluster=cluster[variable[order]],
            rows=self.data.rows.take_for_model(variable[order]),
            alpha=alpha[order],
            row_numbers=row[order],
        )
