"""Make models from a solution: coefficients of input rows, offsets and counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.data.arrays import group_order, group_sizes, reduce_parts
from dcsvm.kernel.sources import Partition
from dcsvm.model.parts import ConvergenceStatus, EarlyModel, ExactModel
from dcsvm.problem.formulation import Formulation, Task, pairs_of
from dcsvm.training.certificate import Certificate, Iterate, Subproblems, known_or_none
from dcsvm.training.engine import Prepared
from dcsvm.training.report import ProblemReports

# smallest margin that float64 resolves, as a share of the sum of |alpha|
MIN_NUMBER = 2.0**-40
# A variable counts as bounded if its distance to a bound is at most this share of
# min(upper - lower, largest |alpha|).
AT_BOUND = 1e-12


class NoMarginError(ValueError):
    """A nu-SVC solution without a positive margin."""

    def __init__(self) -> None:
        super().__init__("nu-SVC found no margin between two classes: try another nu, or C-SVC")


@dataclass(frozen=True, eq=False)
class Solution:
    """A solution of a formulation over prepared rows: the alpha of an iterate."""

    prepared: Prepared
    formulation: Formulation
    iterate: Iterate

    @property
    def task(self) -> Task:
        return self.prepared.task

    @property
    def alpha(self) -> np.ndarray:
        return self.iterate.alpha

    @property
    def n_sv(self) -> int | None:
        """The number of input rows that are support vectors; None with several folds."""
        return None if self.formulation.n_folds > 1 else len(Coefficients(self).row_numbers)

    def offsets_and_margins(self, parts: Subproblems) -> tuple[np.ndarray, np.ndarray]:
        """Return (rho, r), each float64 (n_parts,).

        The decision value is (sum a K - rho) / r. The gradients of free variables give rho, as in
        LIBSVM's calculate_rho; variables with an unknown gradient are ignored. r is the margin for
        nu-SVC and 1 for C-SVC, epsilon-SVR and one-class. For nu-SVR it is -epsilon, and decision
        values are not divided by it.
        """
        problem, n_parts = parts.problem, len(parts.sizes)
        if problem.constraint_of is None:
            return np.zeros(n_parts), np.ones(n_parts)
        known = self.iterate.is_known[parts.members]
        sizes = np.where(known, np.abs(self.alpha[parts.members]), 0.0)
        largest = reduce_parts(np.maximum, sizes, parts.start)
        members, part = parts.members[known], np.repeat(np.arange(n_parts), parts.sizes)[known]
        # index of the equality constraint of each variable, over all parts; ascending from here on
        sums = part * problem.n_constraints + problem.constraint_of[members]
        if problem.n_constraints > 1:
            order = group_order(sums)
            members, part, sums = members[order], part[order], sums[order]
        alpha, gradient = self.alpha[members], self.iterate.gradient[members]
        lower, upper = problem.lower[members], problem.upper[members]
        # a warm start corrects alpha to satisfy the constraints, with rounding errors
        rounding = AT_BOUND * np.minimum(upper - lower, largest[part])
        can_rise, can_fall = alpha < upper - rounding, alpha > lower + rounding

        def of_sums(ufunc: np.ufunc, some: np.ndarray, initial: float) -> np.ndarray:
            start = np.searchsorted(sums[some], np.arange(n_parts * problem.n_constraints + 1))
            return reduce_parts(ufunc, gradient[some], start, initial)

        free = can_rise & can_fall
        n_free = np.bincount(sums[free], minlength=n_parts * problem.n_constraints)
        least = of_sums(np.fmin, can_rise, np.nan)
        most = of_sums(np.fmax, can_fall, np.nan)
        ends = np.where(np.isnan(least), most, least) + np.where(np.isnan(most), least, most)
        ends = np.nan_to_num(0.5 * ends)
        offsets = np.where(n_free, of_sums(np.add, free, 0.0) / np.maximum(n_free, 1), ends)
        if problem.n_constraints == 1:
            return offsets, np.ones(n_parts)
        first, second = offsets.reshape(n_parts, 2).T
        return 0.5 * (first + second), 0.5 * (first - second)

    def offsets_of_clusters(self, cluster_of: np.ndarray, n_clusters: int) -> np.ndarray:
        """Return rho (n_clusters, n_problems), given the cluster of every variable.

        A cluster whose rows are all of one class predicts that class. An unsolved cluster predicts
        the majority class of its rows. rho is NaN if a cluster has no rows of the problem.
        """
        formulation = self.formulation
        rho = np.full((formulation.n_problems, n_clusters), np.nan)
        part = formulation.problem_index.astype(np.int64) * n_clusters + cluster_of
        if formulation.has_constraints:
            found, sizes = group_sizes(part)
            parts = Subproblems.of_sizes(formulation.problem, group_order(part), sizes)
            rho.reshape(-1)[found] = self.offsets_and_margins(parts)[0]
        return self._deciding(rho.T, part)

    def _deciding(self, rho: np.ndarray, part: np.ndarray) -> np.ndarray:
        """Fill in rho for parts without a solution.

        Without a bias rho is 0. In any case, a part of one class predicts that class, and a part
        without support vectors predicts its majority class.
        """
        n_clusters, n_problems = rho.shape
        linear, size = self.formulation.problem.linear, n_clusters * n_problems
        counts = np.bincount(part, minlength=size)
        there = counts > 0
        total, some = np.bincount(part, linear, size), np.zeros(size, bool)
        some[part[self.alpha != 0]] = True
        found = rho.T.reshape(-1)
        found[there & np.isnan(found)] = 0.0
        decided = there & ~some
        if self.task.is_classification:
            decided |= there & (np.abs(total) == counts)
        found[decided] = -total[decided] / counts[decided]
        return np.ascontiguousarray(found.reshape(n_problems, n_clusters).T)


class Coefficients:
    """Support vectors of a solution, by input row, and by cluster if `cluster_of` is given.

    Attributes
    ----------
    row : index of the prepared row of each support vector.
    row_numbers : index of its input row.
    cluster : its cluster.
    coef : float64 (k - 1, n_sv), as LIBSVM's sv_coef.
    bound : upper bound of the absolute value of its coefficients.
    """

    def __init__(self, solution: Solution, cluster_of: np.ndarray | None = None):
        task, targets = solution.task, solution.prepared.targets
        variables = np.flatnonzero(solution.alpha)
        rows = solution.formulation.problem.rows[variables]
        column = np.zeros(len(variables), np.int64)
        if task.n_classes > 2:
            first, second = np.triu_indices(task.n_classes, 1)
            pair = solution.formulation.problem_index[variables]
            is_first = targets[rows] == first[pair]
            column = np.where(is_first, second[pair] - 1, first[pair])
        cluster = np.zeros(len(rows), np.int64)
        if cluster_of is not None:
            cluster += cluster_of[variables]
        member, place = np.unique(cluster * len(targets) + rows, return_inverse=True)
        support = member % len(targets)
        coef = np.zeros((max(task.n_classes - 1, 1), len(support)))
        np.add.at(coef, (column, place.reshape(-1)), solution.alpha[variables])
        found = solution.prepared.row_map.split(support, coef, task.bound_of(targets[support]))
        place, self.row_numbers, self.coef, self.bound = found
        self.row, self.cluster = support[place], member[place] // len(targets)

    @property
    def n_bounded(self) -> int:
        return int(np.count_nonzero(np.any(np.abs(self.coef) >= self.bound, axis=0)))


@dataclass(frozen=True, eq=False)
class ExactResult:
    """The exact model and its report values.

    `n_bsv` counts bounded support vectors; `gap` has the scale of LIBSVM's objective.
    """

    model: ExactModel
    problems: ProblemReports
    n_bsv: int
    violation: float
    gap: float | None

    @property
    def objective(self) -> float | None:
        return known_or_none(sum(self.problems.objective.tolist()))


def exact_model(solution: Solution, certificate: Certificate, converged: bool) -> ExactResult:
    """Make the model of the whole problem. Raises NoMarginError."""
    task, targets = solution.task, solution.prepared.targets
    found, gap, violation = Coefficients(solution), certificate.gap, certificate.violation
    rho, margin = solution.offsets_and_margins(Subproblems.of_problems(solution.formulation))
    if task.divides_by_margin:
        check_margins(margin)
        gap = known_or_none(np.sum(certificate.gaps / margin**2))
        if not converged:  # before convergence estimates of the margin differ
            violation = float((certificate.violations * certificate.units / margin).max())
    problems = _problem_reports(solution, certificate, rho, margin)
    coef, classes, counts = found.coef, targets[found.row], None
    order = np.argsort(found.row_numbers)
    if task.is_classification:
        order = np.lexsort((found.row_numbers, classes))
        counts = np.bincount(classes, minlength=task.n_classes).astype(np.int64)
        if task.divides_by_margin:
            coef = coef / _margins(task.n_classes, classes, margin)
    model = ExactModel(
        rows=solution.prepared.rows_for_model(found.row[order]),
        dual_coef=coef[:, order],
        rho=rho / margin if task.divides_by_margin else rho,
        n_sv=counts,
        row_numbers=found.row_numbers[order],
        status=ConvergenceStatus(converged, violation, gap),
    )
    return ExactResult(model, problems, found.n_bounded, violation, gap)


def check_margins(margin: np.ndarray) -> None:
    """Raise NoMarginError if a margin of nu-SVC is not positive."""
    if not np.all(margin > 0):
        raise NoMarginError


def check_told(margins: list[float], size: float) -> None:
    """Raise NoMarginError for margins within rounding error of zero.

    A margin is the difference of two sums; `size` is their magnitude.
    """
    if any(margin <= MIN_NUMBER * size for margin in margins):
        raise NoMarginError


def _problem_reports(
    solution: Solution, certificate: Certificate, rho: np.ndarray, margin: np.ndarray
) -> ProblemReports:
    """Report the values that svm-train prints for each problem.

    `rho` and `margin` are the results of `offsets_and_margins`.
    """
    task, prepared, formulation = solution.task, solution.prepared, solution.formulation
    rows, start = formulation.problem.rows, formulation.start
    size, bound = np.abs(solution.alpha), task.bound_of(prepared.targets[rows])
    scale = margin if task.divides_by_margin else np.ones_like(margin)
    n_rows = reduce_parts(np.add, prepared.sample_weight[rows], start)
    name, parameters = task.parameters(
        size, bound, start, n_rows / (2 if task.is_regression else 1), margin
    )
    some = np.flatnonzero(size)
    filled = prepared.row_map.count_filled(rows[some], size[some] / bound[some])
    own = formulation.problem_of(some)
    n_sv, n_bsv = (np.bincount(own, n, formulation.n_problems).astype(np.int64) for n in filled)
    return ProblemReports(
        objective=certificate.objectives / scale**2,
        rho=rho / scale,
        n_sv=n_sv,
        n_bsv=n_bsv,
        parameter_name=name,
        parameter=parameters,
        iterations=np.zeros(formulation.n_problems, np.int64),
    )


def _margins(n_classes: int, classes: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """Return the margin of each coefficient's binary problem, float64 (k - 1, n_sv)."""
    table = np.ones((n_classes, n_classes - 1))
    for value, (first, second) in zip(margin, pairs_of(n_classes), strict=True):
        table[first, second - 1] = table[second, first] = value
    return table[classes].T


def early_model(
    solution: Solution, level: int, partition: Partition, cluster_of: np.ndarray
) -> tuple[EarlyModel, int]:
    """Make the early model of a level and count its bounded support vectors.

    `cluster_of` is the cluster of every variable.
    """
    found, targets = Coefficients(solution, cluster_of), solution.prepared.targets
    cluster, class_ = found.cluster, None
    order = np.lexsort((found.row_numbers, cluster))
    if solution.task.is_classification:
        class_ = targets[found.row]
        order = np.lexsort((found.row_numbers, class_, cluster))
        class_ = class_[order].astype(np.int32)
    model = EarlyModel(
        level=level,
        partition=partition,
        cluster=cluster[order].astype(np.int32),
        class_=class_,
        rows=solution.prepared.rows_for_model(found.row[order]),
        dual_coef=found.coef[:, order],
        rho=solution.offsets_of_clusters(cluster_of, partition.n_clusters),
        row_numbers=found.row_numbers[order],
    )
    return model, found.n_bounded
