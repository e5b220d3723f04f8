"""Warm starts from a model of the same rows, or of the first of them.

The model may have another C, gamma, kernel or tolerance. Training runs its levels from there: on
50,000 rows of covtype a start from 48,000 of them saves a third of the time, one from half of C
little; without levels it costs more than it saves.

Support vectors at the old bound start at the new one, others at their alpha. The equality
constraints are then restored by changing support vectors.
"""

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.model.model import Model
from dcsvm.model.ordering import with_label_order
from dcsvm.model.parts import EarlyModel, ExactModel
from dcsvm.problem.dual_problems import pairs_of
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.task import Task
from dcsvm.solving.preparation import Prepared

AT_BOUND = 1.0 - 1e-9  # of the largest coefficient


class OtherModel(ValueError):  # noqa: N818 (renamed together with its users)
    """A model that training cannot start from."""


def check_rows(model: Model, rows: Rows, options: TrainOptions) -> None:
    """Check that the support vectors of a model are training rows. Raises OtherModel."""
    part, numbers = _support_of(model)
    if numbers.max(initial=-1) >= rows.n_samples:
        raise OtherModel(
            f"the initial model has row {numbers.max() + 1}, there are {rows.n_samples} rows"
        )
    is_precomputed = options.kernel_type.is_precomputed
    if model.kernel.is_precomputed != is_precomputed:
        raise OtherModel("the initial model and the rows must both have a kernel matrix, or none")
    if is_precomputed:
        return
    if not _are_equal(rows.take_for_model(numbers), part.rows, options.threads or 1):
        raise OtherModel("the initial model has other rows: support vectors differ")


def first_alpha(prepared: Prepared, model: Model) -> np.ndarray:
    """Make a feasible alpha for prepared rows from a model of them.

    Raises OtherModel if the model has other labels or another problem type.
    """
    task, formulation = prepared.task, prepared.formulation
    part, numbers = _support_of(_of_task(task, model))
    weight = prepared.row_map.weight_of_given
    mask = weight[numbers] > 0
    numbers, stored = numbers[mask], part.dual_coef[:, mask]
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


def _support_of(model: Model) -> tuple[ExactModel | EarlyModel, np.ndarray]:
    """Return the part of a model to start from, and the row numbers of its support vectors."""
    part = model.exact or model.early
    if part is None or part.row_numbers is None:
        raise OtherModel("the initial model has no row numbers of its support vectors")
    return part, part.row_numbers


def _of_task(task: Task, model: Model) -> Model:
    """Return the model with its classes in the order of the task. Raises OtherModel."""
    if model.svm_type != task.svm_type:
        raise OtherModel(f"the initial model has type {model.svm_type}, not {task.svm_type}")
    try:
        model = with_label_order(model, task.labels)
    except ValueError:
        raise OtherModel("the initial model has other labels") from None
    part, numbers = _support_of(model)
    classes = part.class_
    if classes is not None and not np.array_equal(classes, task.targets[numbers]):
        raise OtherModel("the initial model has other rows: support vectors differ")
    return model


def _are_equal(rows: Rows, others: Rows, threads: int) -> bool:
    n_features = max(rows.n_features, others.n_features)
    rows = rows.with_features(n_features)
    others = others.with_features(n_features).in_form_of(rows, threads)
    names = ("dense", "indptr", "indices", "values", "columns")
    pairs = [(getattr(rows, name), getattr(others, name)) for name in names]
    return all((a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in pairs)


def _coefficients(task: Task, number: int, targets: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Return the signed alpha of the support vectors in one problem, 0 for other classes."""
    if task.n_classes < 2:
        return coef[0]
    first, second = pairs_of(task.n_classes)[number]
    of_first = np.where(targets == first, coef[second - 1], 0.0)
    return np.where(targets == second, coef[first], of_first)


def _add(
    prepared: Prepared, variables: slice, row: np.ndarray, signed: np.ndarray, alpha: np.ndarray
) -> None:
    """Add the signed values of rows to alpha of their variables with that sign."""
    problem = prepared.formulation.problem.part(variables)
    for negative in (False, True):
        of_row = np.full(prepared.data.rows.n_samples, -1)
        side = np.flatnonzero((problem.lower < 0) == negative)
        of_row[problem.rows[side]] = variables.start + side
        chosen = (signed != 0) & ((signed < 0) == negative) & (of_row[row] >= 0)
        np.add.at(alpha, of_row[row[chosen]], signed[chosen])
