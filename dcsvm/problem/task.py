"""What is to be learnt: the problem type with its labels, and all that depends on the type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.data.sorting import reduce_parts
from dcsvm.problem.dual_problems import c_svc_pairs, epsilon_svr, nu_svc_pairs, nu_svr, one_class
from dcsvm.problem.formulation import Formulation
from dcsvm.problem.option_rules import CLASSIFIERS, REGRESSIONS
from dcsvm.problem.options import TrainOptions

LARGEST_INTEGER = 2**53  # that float64 tells from its neighbours


@dataclass(frozen=True, eq=False)
class Task:
    """`targets` per row are classes int32 from 0, targets float64 of a regression, or zeros for
    one-class; `labels` (k,), float64 or strings, are those of the classes in LIBSVM's order.
    `class_C` float64 is the bound of |alpha| of a row of each class, or of any row, of weight 1."""

    options: TrainOptions
    labels: np.ndarray
    targets: np.ndarray
    class_C: np.ndarray

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
        """Whether a solution is divided by the margin it has found (nu-SVC)."""
        return self.svm_type == "nu_svc"

    @property
    def n_classes(self) -> int:
        return len(self.labels)

    def size_of_values(self, targets: np.ndarray, offset: float = 0.0) -> float:
        """What decision values are compared with: the margin, the deviation of these targets, or
        the offset of one-class."""
        if self.is_classification:
            return 1.0
        return float(np.std(targets)) if self.is_regression else abs(offset)

    def bound_of(self, targets: np.ndarray) -> np.ndarray:
        """Bound of |alpha| of a row of weight 1 with each of these targets."""
        if self.is_classification:
            return self.class_C[targets.astype(np.int64)]
        return np.full(len(targets), self.class_C[0])

    def formulate(self, targets: np.ndarray, sample_weight: np.ndarray) -> Formulation:
        """The problems of rows with these targets and weights float64 (n,)."""
        options = self.options
        if self.svm_type == "c_svc":
            return c_svc_pairs(targets, sample_weight, self.class_C, bias=options.bias)
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
        """Name the parameter that svm-train states beside the objective, with its value for each
        problem, NaN where it states none: nu of C-SVC with equal bounds and of epsilon-SVR, C of
        nu-SVC, epsilon of nu-SVR.

        `size` is |alpha| of the variables of all problems, which begin at `start`, `bound` that of
        a row of weight 1; (n_problems,) `n_rows` are the sums of the weights of the rows, `margin`
        r of nu-SVC and -epsilon of nu-SVR.
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


def as_labels(y) -> np.ndarray:
    """Labels or targets as training takes them: float64 (n,), or strings. Raises ValueError for
    anything else."""
    labels = np.asarray(y).reshape(-1)
    if labels.dtype.kind == "O":
        is_text = [isinstance(label, str) for label in labels]
        if any(is_text) and not all(is_text):
            raise ValueError("labels must be numbers, or strings all of them")
        labels = np.array(labels.tolist())
    if labels.dtype.kind == "U":
        return labels
    if labels.dtype.kind not in "biuf":
        raise ValueError("labels must be numbers, or strings all of them")
    if labels.dtype.kind in "iu" and np.any(np.abs(labels.astype(np.float64)) > LARGEST_INTEGER):
        raise ValueError("labels that are integers must be within 2^53 in size")
    return labels.astype(np.float64)


def task_of(labels: np.ndarray, sample_weight: np.ndarray, options: TrainOptions) -> Task:
    """The task of training options on labels (n,) of rows with weights float64 (n,); ValueError for
    what does not fit."""
    if len(labels) == 0:
        raise ValueError("there are no rows")
    none, C = np.zeros(0), np.array([options.C])
    if options.svm_type == "one_class":
        return Task(options, none, np.zeros(len(labels)), np.ones(1))
    is_text = labels.dtype.kind == "U"
    if not is_text and not np.all(np.isfinite(labels)):
        raise ValueError("labels must be finite numbers")
    if options.svm_type in REGRESSIONS:
        if is_text:
            raise ValueError("the targets of a regression must be numbers, not strings")
        return Task(options, none, labels.astype(np.float64), C)
    order, classes = _classes(labels, sample_weight)
    if options.svm_type == "nu_svc":
        return Task(options, order, classes, np.ones(len(order)))
    factors = options.class_weight or {}
    class_C = np.array([options.C * factors.get(label, 1.0) for label in order.tolist()])
    return Task(options, order, classes, class_C)


def checked_weights(sample_weight, n_rows: int) -> np.ndarray:
    """How many copies of itself each row counts as, 0 for one that is left out: float64 (n_rows,),
    ones for None; ValueError for what cannot be weights."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        shape = " x ".join(map(str, weights.shape)) or "1 number"
        raise ValueError(f"sample weights must be one for each of {n_rows} rows, not {shape}")
    for wrong, reason in ((~np.isfinite(weights), "finite numbers"), (weights < 0, "at least 0")):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"sample weights must be {reason}, not {weights[row]:g} (row {row})")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not 0 < total < float("inf"):
        raise ValueError(
            f"the sum of the sample weights must be positive and finite, not {total:g}"
        )
    return weights


def class_order(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels (k,) of the classes in LIBSVM's order, and the class int32 (n,) of each row.

    The order is that of first appearance, except that of just -1 and +1 the +1 comes first.
    Unsigned integers are numbers of classes, in their order. Raises ValueError for fewer than two
    distinct labels.
    """
    distinct, first_row = np.unique(labels, return_index=True)
    if len(distinct) < 2:
        found = f"one: {_plain(distinct[0])}" if len(distinct) else "none"
        raise ValueError(f"training needs two classes, found {found}")
    order = distinct if distinct.dtype.kind == "u" else distinct[np.argsort(first_row)]
    if set(order.tolist()) == {-1.0, 1.0}:
        order = np.array([1.0, -1.0])
    rank = np.empty(len(order), np.int32)
    rank[np.searchsorted(distinct, order)] = np.arange(len(order))
    return order, rank[np.searchsorted(distinct, labels)]


def _classes(labels: np.ndarray, sample_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`class_order` of the rows that have a weight; the others are in any class."""
    there = sample_weight > 0
    if there.all():
        return class_order(labels)
    absent = np.setdiff1d(labels, labels[there])
    if len(absent):
        raise ValueError(f"all rows of class {_plain(absent[0])} have sample weight 0")
    classes = np.zeros(len(labels), np.int64)
    order, classes[there] = class_order(labels[there])
    return order, classes


def _plain(label) -> str:
    if isinstance(label, str):
        return repr(str(label))
    return str(int(label)) if label == int(label) else repr(float(label))
