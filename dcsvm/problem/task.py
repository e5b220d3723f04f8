"""The learning task: the SVM type, the labels, and everything that depends on the type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.data.sorting import reduce_parts
from dcsvm.problem.dual_problems import c_svc_pairs, epsilon_svr, nu_svc_pairs, nu_svr, one_class
from dcsvm.problem.formulation import Formulation
from dcsvm.problem.option_table import CLASSIFIERS, REGRESSIONS
from dcsvm.problem.options import TrainOptions


@dataclass(frozen=True, eq=False)
class Task:
    """A learning task.

    `targets` (n,) are class indices int32 for classifiers, float64 targets for regressions, and
    zeros for one-class. `labels` (k,), float64 or strings, are the classes in LIBSVM's order.
    `C_of_class` float64 is the bound of |alpha| for rows of weight 1: (k,) by class for
    classifiers, otherwise (1,).
    """

    options: TrainOptions
    labels: np.ndarray
    targets: np.ndarray
    C_of_class: np.ndarray

    @property
    def svm_type(self) -> str:
        return self.options.svm_type

    @property
    def is_classification(self) -> bool:
        return self.svm_type in CLASSIFIERS

    @property
    def is_regression(self) -> bool:
        return self.svm_type in REGRESSIONS

    @property
    def divides_by_margin(self) -> bool:
        """Whether the solution is divided by its margin (nu-SVC)."""
        return self.svm_type == "nu_svc"

    @property
    def n_classes(self) -> int:
        return len(self.labels)

    def size_of_values(self, targets: np.ndarray, offset: float = 0.0) -> float:
        """Return the scale of decision values.

        For classifiers it is the margin, 1. For regressions it is the standard deviation of the
        targets. For one-class it is |offset|.
        """
        if self.is_classification:
            return 1.0
        return float(np.std(targets)) if self.is_regression else abs(offset)

    def bound_of(self, targets: np.ndarray) -> np.ndarray:
        """Return the bound of |alpha| at weight 1 for rows with these targets, float64 (n,)."""
        if self.is_classification:
            return self.C_of_class[targets.astype(np.int64)]
        return np.full(len(targets), self.C_of_class[0])

    def formulate(self, targets: np.ndarray, sample_weight: np.ndarray) -> Formulation:
        """Formulate the QPs of rows with targets (n,) and sample weights float64 (n,)."""
        options = self.options
        if self.svm_type == "c_svc":
            return c_svc_pairs(targets, sample_weight, self.C_of_class, bias=options.bias)
        if self.svm_type == "nu_svc":
            return nu_svc_pairs(targets, sample_weight, self.n_classes, options.nu)
        if self.svm_type == "one_class":
            return one_class(sample_weight, options.nu)
        if self.svm_type == "epsilon_svr":
            return epsilon_svr(targets, sample_weight, options.C, options.epsilon)
        return nu_svr(targets, sample_weight, options.C, options.nu)

    def parameters(
        self,
        size: np.ndarray,
        bound: np.ndarray,
        start: np.ndarray,
        n_rows: np.ndarray,
        margin: np.ndarray,
    ) -> tuple[str, np.ndarray]:
        """Return the parameter of the equivalent SVM type, which svm-train prints.

        Returns its name and its value for each problem, float64 (n_problems,). The value is NaN
        if svm-train prints none. The parameter is nu for C-SVC with equal bounds and epsilon-SVR,
        C for nu-SVC, and epsilon for nu-SVR.

        `size` is |alpha| of all variables, and `bound` their bound at weight 1. `start` is the
        first variable of each problem. `n_rows` (n_problems,) is the sum of the weights. `margin`
        (n_problems,) is r of nu-SVC or -epsilon of nu-SVR.
        """
        if self.svm_type == "nu_svc":
            return "C", 1.0 / margin
        if self.svm_type == "nu_svr":
            return "epsilon", -margin
        if self.svm_type == "one_class":
            return "", np.full(len(margin), np.nan)
        largest = reduce_parts(np.maximum, bound, start)
        are_equal = reduce_parts(np.minimum, bound, start, np.inf) == largest
        nu = reduce_parts(np.add, size, start) / (largest * n_rows)
        return "nu", np.where(are_equal, nu, np.nan)


def task_of(labels: np.ndarray, sample_weight: np.ndarray, options: TrainOptions) -> Task:
    """Make a task from labels (n,) and sample weights float64 (n,). Raises ValueError."""
    if len(labels) == 0:
        raise ValueError("there are no rows")
    no_labels, C = np.zeros(0), np.array([options.C])
    if options.svm_type == "one_class":
        return Task(options, no_labels, np.zeros(len(labels)), np.ones(1))
    check_labels(labels, options)
    if options.svm_type in REGRESSIONS:
        return Task(options, no_labels, labels.astype(np.float64), C)
    order, classes = _classes(labels, sample_weight)
    if options.svm_type == "nu_svc":
        return Task(options, order, classes, np.ones(len(order)))
    if isinstance(options.class_weight, str):
        factors = balanced_factors(classes, sample_weight, len(order))
    else:
        given = options.class_weight or {}
        factors = np.array([given.get(label, 1.0) for label in order.tolist()])
    return Task(options, order, classes, options.C * factors)


def check_labels(labels: np.ndarray, options: TrainOptions) -> None:
    """Raise ValueError for labels or targets (n,) that cannot be trained."""
    is_text = labels.dtype.kind == "U"
    if not is_text and not np.all(np.isfinite(labels)):
        raise ValueError("labels must be finite numbers")
    if is_text and options.svm_type in REGRESSIONS:
        raise ValueError("the targets of a regression must be numbers, not strings")


def balanced_factors(
    classes: np.ndarray, sample_weight: np.ndarray | None, n_classes: int
) -> np.ndarray:
    """Return the factors of C (k,) that give all classes the same total weight, as in scikit-learn.

    `classes` (n,) are class indices.
    """
    totals = np.bincount(classes, sample_weight, minlength=n_classes)
    return totals.sum() / (n_classes * totals)


def class_order(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes (k,) in LIBSVM's order, and the class int32 (n,) of each row.

    Classes are in order of first appearance. If the classes are +1 and -1, +1 is first. Unsigned
    integers are class indices and ascend. Raises ValueError for fewer than two classes.
    """
    distinct, first_row = np.unique(labels, return_index=True)
    if len(distinct) < 2:
        number = f"one: {_plain(distinct[0])}" if len(distinct) else "none"
        raise ValueError(f"training needs two classes, found {number}")
    order = distinct if distinct.dtype.kind == "u" else distinct[np.argsort(first_row)]
    if set(order.tolist()) == {-1.0, 1.0}:
        order = np.array([1.0, -1.0])
    rank = np.empty(len(order), np.int32)
    rank[np.searchsorted(distinct, order)] = np.arange(len(order))
    return order, rank[np.searchsorted(distinct, labels)]


def _classes(labels: np.ndarray, sample_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `class_order` of the rows with positive weight; other rows get class 0."""
    mask = sample_weight > 0
    if mask.all():
        return class_order(labels)
    absent = np.setdiff1d(labels, labels[mask])
    if len(absent):
        raise ValueError(f"all rows of class {_plain(absent[0])} have sample weight 0")
    classes = np.zeros(len(labels), np.int64)
    order, classes[mask] = class_order(labels[mask])
    return order, classes


def _plain(label: float | str) -> str:
    if isinstance(label, str):
        return repr(str(label))
    return str(int(label)) if label == int(label) else repr(float(label))
