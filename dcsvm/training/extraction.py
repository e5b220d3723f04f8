"""Make models from a solution: coefficients of input rows, offsets and counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.data.arrays import group_order, numbered, reduce_parts
from dcsvm.model.parts import ConvergenceStatus, EarlyModel, ExactModel
from dcsvm.problem.formulation import pairs_of
from dcsvm.training.certificate import Certificate, Subproblems, known_or_none
from dcsvm.training.report import ProblemReports
from dcsvm.training.solver import FormulationSolver, LevelSolver

# smallest margin that float64 resolves, as a share of the sum of |alpha|
MIN_NUMBER = 2.0**-40


class NoMarginError(ValueError):
    """A nu-SVC solution without a positive margin."""

    def __init__(self) -> None:
        super().__init__("nu-SVC found no margin between two classes: try another nu, or C-SVC")


class Coefficients:
    """Support vectors of a solver, by input row, and by cluster if `cluster_of` is given.

    Attributes
    ----------
    row : index of the prepared row of each support vector.
    row_numbers : index of its input row.
    cluster : its cluster.
    coef : float64 (k - 1, n_sv), as LIBSVM's sv_coef.
    bound : upper bound of the absolute value of its coefficients.
    """

    def __init__(self, solver: FormulationSolver, cluster_of: np.ndarray | None = None):
        task, targets = solver.task, solver.prepared.targets
        variables = np.flatnonzero(solver.alpha != 0)  # faster than of float64
        alpha, support = solver.alpha[variables], solver.formulation.problem.rows[variables]
        cluster = np.zeros(len(support), np.int64)
        if cluster_of is not None:
            cluster += cluster_of[variables]
        coef = alpha[None]
        if solver.formulation.n_problems > 1 or task.is_regression:
            # the column of sv_coef: each support vector has one for every other class
            column = np.zeros(len(variables), np.int64)
            if task.n_classes > 2:
                first, second = np.triu_indices(task.n_classes, 1)
                pair = solver.formulation.problem_index[variables]
                is_first = targets[support] == first[pair]
                column = np.where(is_first, second[pair] - 1, first[pair])
            # a row is one support vector of its cluster, whatever its variables
            member, place = numbered(cluster * len(targets) + support)
            support, cluster = member % len(targets), member // len(targets)
            n_columns = max(task.n_classes - 1, 1)
            place += column * len(support)
            coef = np.bincount(place, alpha, n_columns * len(support))
            coef = coef.reshape(n_columns, len(support))
        # duplicates get their parts of the coefficient
        bound = task.bound_of(targets[support])
        place, self.row_numbers, self.coef, self.bound = solver.prepared.row_map.split(
            support, coef, bound
        )
        self.row, self.cluster = support[place], cluster[place]

    @property
    def n_bounded(self) -> int:
        return int(np.count_nonzero(np.any(np.abs(self.coef) >= self.bound, axis=0)))


@dataclass(frozen=True, eq=False)
class ExactResult:
    """The exact model, the report of each problem, and the number of bounded support vectors."""

    model: ExactModel
    problems: ProblemReports
    n_bsv: int


def exact_model(
    solver: FormulationSolver, certificate: Certificate, converged: bool
) -> ExactResult:
    """Make the model of the whole problem. Raises NoMarginError."""
    task, targets = solver.task, solver.prepared.targets
    support, gap, violation = Coefficients(solver), certificate.gap, certificate.violation
    rho, margin = solver.offsets_and_margins(Subproblems.of_problems(solver.formulation))
    if task.divides_by_margin:
        check_margins(margin)
        gap = known_or_none(np.sum(certificate.gaps / margin**2))
        if not converged:  # before convergence estimates of the margin differ
            violation = float((certificate.violations * certificate.scales / margin).max())
    problems = _problem_reports(solver, certificate, rho, margin)
    # the order of LIBSVM: by class, then by row
    coef, classes, counts = support.coef, targets[support.row], None
    order = group_order(support.row_numbers)
    if task.is_classification:
        order = order[group_order(classes[order])]
        counts = np.bincount(classes, minlength=task.n_classes).astype(np.int64)
        if task.divides_by_margin:
            coef = coef / _margins(task.n_classes, classes, margin)
    model = ExactModel(
        rows=solver.prepared.rows_for_model(support.row[order]),
        dual_coef=coef[:, order],
        rho=rho / margin if task.divides_by_margin else rho,
        n_sv=counts,
        row_numbers=support.row_numbers[order],
        status=ConvergenceStatus(converged, violation, gap),
    )
    return ExactResult(model, problems, support.n_bounded)


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
    solver: FormulationSolver, certificate: Certificate, rho: np.ndarray, margin: np.ndarray
) -> ProblemReports:
    """Report the values that svm-train prints for each problem.

    `rho` and `margin` are the results of `offsets_and_margins`.
    """
    task, prepared, formulation = solver.task, solver.prepared, solver.formulation
    rows, start = formulation.problem.rows, formulation.start
    size, bound = np.abs(solver.alpha), task.bound_of(prepared.targets[rows])
    scale = margin if task.divides_by_margin else np.ones_like(margin)
    n_rows = reduce_parts(np.add, prepared.sample_weight[rows], start)
    name, parameters = task.parameters(
        size, bound, start, n_rows / (2 if task.is_regression else 1), margin
    )
    # count input rows: a variable of several may fill only some of them
    support = np.flatnonzero(size != 0)
    filled = prepared.row_map.count_filled(rows[support], size[support] / bound[support])
    own = formulation.problem_of(support)
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


def support_numbers(solver: FormulationSolver) -> np.ndarray:
    """Return the indices of the input rows that are support vectors, int64, ascending."""
    row_map = solver.prepared.row_map
    if row_map.n_merged or solver.task.is_regression:
        return np.sort(Coefficients(solver).row_numbers)
    # each variable is a coefficient of one input row
    is_support = np.zeros(row_map.n_input_rows, bool)
    variables = np.flatnonzero(solver.alpha != 0)
    is_support[row_map.input_rows[solver.problem.rows[variables]]] = True
    return np.flatnonzero(is_support)


def count_support(solver: FormulationSolver) -> int | None:
    """Return the number of input rows that are support vectors; None with several folds."""
    return len(support_numbers(solver)) if solver.formulation.n_folds == 1 else None


def early_model(level: LevelSolver) -> tuple[EarlyModel, int]:
    """Make the early model of a level and count its bounded support vectors."""
    solver = level.solver
    support, targets = Coefficients(solver, level.cluster), solver.prepared.targets
    # the order of the model file: by cluster, by class, then by row
    cluster, class_ = support.cluster, None
    order = group_order(support.row_numbers)
    if solver.task.is_classification:
        class_ = targets[support.row]
        order = order[group_order(class_[order])]
    order = order[group_order(cluster[order])]
    if class_ is not None:
        class_ = class_[order].astype(np.int32)
    model = EarlyModel(
        level=level.level,
        partition=level.division.partition,
        cluster=cluster[order].astype(np.int32),
        class_=class_,
        rows=solver.prepared.rows_for_model(support.row[order]),
        dual_coef=support.coef[:, order],
        rho=level.offsets(),
        row_numbers=support.row_numbers[order],
    )
    return model, support.n_bounded
