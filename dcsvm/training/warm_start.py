"""Where a run begins that is given a model of the same rows, trained with another C, gamma, kernel
or tolerance, or before more rows were appended.

Levels go on from it: on 50,000 rows of covtype a start from 48,000 of them saves a third of the
time, one from half of C little, and without levels it costs more than it saves.

Support vectors at their bound begin at the new one, the others where they are; what that does to
sums is put right among the support vectors.
"""

from __future__ import annotations

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.model.model import Model
from dcsvm.model.ordering import with_label_order
from dcsvm.problem.dual_problems import pairs_of
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.task import Task
from dcsvm.solving.preparation import Prepared

AT_BOUND = 1.0 - 1e-9  # of the largest coefficient


class OtherModel(ValueError):
    """A model that training cannot begin with; the sentence says why."""


def check_rows(model: Model, rows: Rows, options: TrainOptions) -> None:
    """Raise OtherModel where the support vectors of a model are not among the rows to train on."""
    part = model.exact or model.early
    if part.row_numbers is None:
        raise OtherModel("the model to begin with does not say which rows its support vectors are")
    if part.row_numbers.max(initial=-1) >= rows.n_samples:
        raise OtherModel(
            f"the model to begin with is of {part.row_numbers.max() + 1} rows or more, "
            f"there are {rows.n_samples}"
        )
    is_precomputed = options.kernel_type.is_precomputed
    if model.kernel.is_precomputed != is_precomputed:
        raise OtherModel("the model to begin with is not of such rows: one has a kernel matrix")
    if is_precomputed:
        return
    if not _are_equal(rows.take_for_model(part.row_numbers), part.rows, options.threads or 1):
        raise OtherModel("the model to begin with is of other rows: its support vectors differ")


def first_alpha(prepared: Prepared, model: Model) -> np.ndarray:
    """A feasible alpha for every variable of a problem, from a model of its rows.

    Raises OtherModel where the model is not of its labels and problem type.
    """
    task, formulation = prepared.task, prepared.formulation
    model = _of_task(task, model)
    part = model.exact or model.early
    weight = prepared.row_map.weight_of_given
    there = weight[part.row_numbers] > 0
    numbers, stored = part.row_numbers[there], part.dual_coef[:, there]
    row, weight = prepared.row_map.row_of_given[numbers], weight[numbers]
    targets = prepared.targets[row]
    bound = task.bound_of(targets)
    alpha = np.zeros(formulation.problem.size)
    for number, variables in enumerate(formulation.parts()):
        coef = _coefficients(task, number, targets, stored) / weight
        largest = np.abs(coef).max(initial=0.0)
        if task.divides_by_margin and largest > 0:
            coef = coef / largest
            largest = 1.0
        at_bound = np.abs(coef) >= AT_BOUND * largest
        size = weight * np.where(at_bound, bound, np.minimum(np.abs(coef), bound))
        signed = np.where(coef == 0, 0.0, np.copysign(size, coef))
        _add(prepared, variables, row, signed, alpha)
    return formulation.with_sums(alpha)


def _of_task(task: Task, model: Model) -> Model:
    """The model with its classes in the order of the task."""
    if model.svm_type != task.svm_type:
        raise OtherModel(f"the model to begin with is of {model.svm_type}")
    try:
        model = with_label_order(model, task.labels)
    except ValueError:
        raise OtherModel("the model to begin with has other labels") from None
    part = model.exact or model.early
    classes = part.class_
    if classes is not None and not np.array_equal(classes, task.targets[part.row_numbers]):
        raise OtherModel("the model to begin with is of other rows: its support vectors differ")
    return model


def _are_equal(rows: Rows, others: Rows, threads: int) -> bool:
    n_features = max(rows.n_features, others.n_features)
    rows = rows.with_features(n_features)
    others = others.with_features(n_features).in_form_of(rows, threads)
    names = ("dense", "indptr", "indices", "values", "columns")
    pairs = [(getattr(rows, name), getattr(others, name)) for name in names]
    return all((a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in pairs)


def _coefficients(task: Task, number: int, targets: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Signed alpha of the support vectors in one problem, 0 where they are not in it."""
    if task.n_classes < 2:
        return coef[0]
    first, second = pairs_of(task.n_classes)[number]
    of_first = np.where(targets == first, coef[second - 1], 0.0)
    return np.where(targets == second, coef[first], of_first)


def _add(
    prepared: Prepared, variables: slice, row: np.ndarray, signed: np.ndarray, alpha: np.ndarray
) -> None:
    """Add signed values of rows to alpha of the variables they have, of the side that has their
    sign."""
    problem = prepared.formulation.problem.part(variables)
    for negative in (False, True):
        of_row = np.full(prepared.data.rows.n_samples, -1)
        side = np.flatnonzero((problem.lower < 0) == negative)
        of_row[problem.rows[side]] = variables.start + side
        chosen = (signed != 0) & ((signed < 0) == negative) & (of_row[row] >= 0)
        np.add.at(alpha, of_row[row[chosen]], signed[chosen])
