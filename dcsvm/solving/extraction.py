"""Models from a solution: coefficients of rows as they were given, offsets, counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.kernel.partition import Partition
from dcsvm.model.parts import EarlyModel, ExactModel, Worth
from dcsvm.problem.formulation import pairs_of
from dcsvm.solving.report import ProblemReport


@dataclass(frozen=True, eq=False)
class Division:
    """A solved level: the partition, the cluster of every row, and the variables of its parts."""

    partition: Partition
    cluster: np.ndarray
    members: np.ndarray
    sizes: np.ndarray


class Coefficients:
    """The support vectors of a run's current alpha, merged rows apart again.

    `place` is the row in the run's order, `row_numbers` the row as it was given, `coef` float64
    (k - 1, n_sv) as LIBSVM's sv_coef.
    """

    def __init__(self, run):
        task, problem = run.task, run.problem
        variables = np.flatnonzero(run.alpha)
        rows, column = problem.rows[variables], np.zeros(len(variables), np.int64)
        n_columns = max(task.n_classes - 1, 1)
        if task.n_classes > 2:
            first, second = np.array(pairs_of(task.n_classes)).T
            pair = run.formulation.number[variables]
            is_first = run.values[rows] == first[pair]
            column = np.where(is_first, second[pair] - 1, first[pair])
        support = np.unique(rows)
        coef = np.zeros((n_columns, len(support)))
        np.add.at(coef, (column, np.searchsorted(support, rows)), run.alpha[variables])
        bound = task.bound_of(run.values[support])
        variables = run.locality.order[support]
        place, own, self.coef = run.duplicates.split(variables, coef, bound)
        self.place = support[place]
        self.row_numbers = run.duplicates.rows[own].astype(np.int64)
        self.bound = bound[place] * run.duplicates.weights[own]

    @property
    def n_bounded(self) -> int:
        return int(np.count_nonzero(np.any(np.abs(self.coef) >= self.bound, axis=0)))


def offset_and_margin(run, members: np.ndarray) -> tuple[float, float]:
    """(rho, r) of the variables of one problem: the decision value is (sum a K - rho) / r.

    Gradients of free variables give the offset (LIBSVM's calculate_rho). Of the types with two sums
    r is the margin of nu-SVC and -epsilon of nu-SVR, whose decision values are not divided by it.
    """
    problem = run.problem
    if problem.sum_of is None:
        return 0.0, 1.0
    alpha, gradient = run.alpha[members], run.gradient[members]
    lower, upper = problem.lower[members], problem.upper[members]
    offsets = []
    for number in range(problem.n_sums):
        own = problem.sum_of[members] == number
        free = own & (alpha > lower) & (alpha < upper)
        if free.any():
            offsets.append(float(gradient[free].mean()))
            continue
        grows, shrinks = own & (alpha < upper), own & (alpha > lower)
        ends = [gradient[grows].min()] if grows.any() else []
        ends += [gradient[shrinks].max()] if shrinks.any() else []
        offsets.append(float(np.mean(ends)) if ends else 0.0)
    if len(offsets) == 1:
        return offsets[0], 1.0
    return 0.5 * (offsets[0] + offsets[1]), 0.5 * (offsets[0] - offsets[1])


def exact_model(run) -> ExactModel:
    """The model of the whole problem; also counts its support vectors for the report."""
    found, known = Coefficients(run), run.iterate.is_known
    offsets = [
        offset_and_margin(run, part.start + np.flatnonzero(known[part]))
        for part in run.formulation.parts()
    ]
    rho, margin = np.array(offsets).T
    if run.options.svm_type == "nu_svc":
        check_margins(margin)
        _scale_gap(run, margin)
    coef = found.coef
    run.report.n_sv, run.report.n_bsv = coef.shape[1], found.n_bounded
    run.report.problems = [
        _problem_report(run, part, *numbers)
        for part, *numbers in zip(
            run.formulation.parts(),
            [part.objective for part in run.certificates],
            rho,
            margin,
            strict=True,
        )
    ]
    objectives = [problem.objective for problem in run.report.problems]
    run.report.objective = None if None in objectives else sum(objectives)
    classes = run.values[found.place]
    counts = None
    if run.task.kind == "classification":
        order = np.lexsort((found.row_numbers, classes))
        counts = np.bincount(classes, minlength=run.task.n_classes).astype(np.int64)
        if run.options.svm_type == "nu_svc":
            coef = coef / _margins(run, classes, margin)
    else:
        order = np.argsort(found.row_numbers)
    return ExactModel(
        rows=run.prepared.rows_for_model(found.place[order]),
        coef=coef[:, order],
        rho=np.array([problem.rho for problem in run.report.problems]),
        n_sv=counts,
        row_numbers=found.row_numbers[order],
        worth=Worth(run.report.converged, run.report.violation, run.report.duality_gap),
    )


class NoMargin(ValueError):
    """A solution of nu-SVC that has no margin to be divided by."""


def check_margins(margin: np.ndarray) -> None:
    """Raise NoMargin where nu-SVC has no margin to divide its solution by."""
    if not np.all(margin > 0):
        raise NoMargin("nu-SVC found no margin between two classes: try another nu, or C-SVC")


def _scale_gap(run, margin: np.ndarray) -> None:
    """The gap in the units of LIBSVM's objective, the problem's over the square of the margin."""
    gaps = [part.gap for part in run.certificates]
    if None not in gaps:
        run.report.duality_gap = float(np.sum(np.array(gaps) / margin**2))


def _problem_report(run, part: slice, objective: float | None, rho: float, margin: float):
    """What svm-train prints of a problem; `margin` is r of nu-SVC, and -epsilon of nu-SVR."""
    problem, name = run.problem, run.options.svm_type
    size = np.abs(run.alpha[part])
    bound = run.task.bound_of(run.values[problem.rows[part]])
    scale = margin if name == "nu_svc" else 1.0
    parameter = None
    if name == "nu_svc":
        parameter = "C", 1.0 / margin
    elif name == "nu_svr":
        parameter = "epsilon", -margin
    elif name == "epsilon_svr" or (name == "c_svc" and np.all(bound == bound[0])):
        n_rows = run.copies[problem.rows[part]].sum() / (2 if name == "epsilon_svr" else 1)
        parameter = "nu", float(size.sum() / (bound[0] * n_rows))
    variables = run.locality.order[problem.rows[part]]
    n_sv, n_bsv = run.duplicates.count_filled(variables, size / bound)
    return ProblemReport(
        objective=None if objective is None else float(objective / scale**2),
        rho=float(rho / scale),
        n_sv=n_sv,
        n_bsv=n_bsv,
        parameter=parameter,
    )


def _margins(run, classes: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """The margin of the problem of each coefficient (k - 1, n_sv)."""
    n_classes = run.task.n_classes
    table = np.ones((n_classes, n_classes - 1))
    for value, (first, second) in zip(margin, pairs_of(n_classes), strict=True):
        table[first, second - 1] = table[second, first] = value
    return table[classes].T


def early_model(run, level: int, division: Division) -> EarlyModel:
    """The models of the clusters of a level."""
    found = Coefficients(run)
    cluster = division.cluster[found.place]
    is_classification = run.task.kind == "classification"
    classes = run.values[found.place] if is_classification else np.zeros(len(cluster), np.int64)
    order = np.lexsort((found.row_numbers, classes, cluster))
    run.report.n_sv, run.report.n_bsv = found.coef.shape[1], found.n_bounded
    return EarlyModel(
        level=level,
        partition=division.partition,
        cluster=cluster[order].astype(np.int32),
        class_=classes[order].astype(np.int32) if is_classification else None,
        rows=run.prepared.rows_for_model(found.place[order]),
        coef=found.coef[:, order],
        rho=offsets_of_clusters(run, division),
        row_numbers=found.row_numbers[order],
    )


def offsets_of_clusters(run, division: Division) -> np.ndarray:
    """rho (n_clusters, n_problems); a cluster that has rows of one class only decides for it, and
    for none where it has neither. One that was not begun decides for most of its rows."""
    n_problems = run.formulation.n_problems
    rho = np.full((division.partition.n_clusters, n_problems), np.nan)
    problem_of = run.formulation.number
    cluster_of = division.cluster[run.problem.rows]
    whole = np.arange(run.problem.size)
    part = problem_of * division.partition.n_clusters + cluster_of
    order = whole[np.argsort(part, kind="stable")]
    starts = np.flatnonzero(np.diff(part[order], prepend=-1))
    for members in np.split(order, starts[1:]):
        place = cluster_of[members[0]], problem_of[members[0]]
        known = members[run.iterate.is_known[members]]
        rho[place] = offset_and_margin(run, known)[0]
        linear = run.problem.linear[members]
        if run.task.kind == "classification" and linear.min() == linear.max():
            rho[place] = -linear[0]
        elif not np.any(run.alpha[members]):
            rho[place] = -np.mean(linear)
    return rho
