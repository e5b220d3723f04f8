"""What is to be learnt: the problem type with its labels, and how it becomes a Formulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.problem.formulation import (
    Formulate,
    c_svc_pairs,
    epsilon_svr,
    nu_svc_pairs,
    nu_svr,
    one_class,
)


@dataclass(frozen=True, eq=False)
class Task:
    """`values` per row are classes int32 from 0 ("classification"), targets float64 ("regression")
    or zeros ("one_class"); `labels` float64 (k,) are the classes' labels in LIBSVM's order.

    `formulate` takes values and copies of rows; `class_C` float64 is the bound of |alpha| of a row
    of each class, or of any row, of weight 1.
    """

    kind: str
    labels: np.ndarray
    values: np.ndarray
    formulate: Formulate
    class_C: np.ndarray

    @property
    def n_classes(self) -> int:
        return len(self.labels)

    def bound_of(self, values: np.ndarray) -> np.ndarray:
        """Bound of |alpha| of a row of weight 1 with each of these values."""
        if self.kind == "classification":
            return self.class_C[values.astype(np.int64)]
        return np.full(len(values), self.class_C[0])


def task_of(labels: np.ndarray, weights: np.ndarray, options) -> Task:
    """The task of training options on labels float64 (n,) of rows with weights float64 (n,);
    ValueError for what does not fit."""
    if not np.all(np.isfinite(labels)):
        raise ValueError("labels must be finite numbers")
    if len(labels) == 0:
        raise ValueError("there are no rows")
    name = options.svm_type
    none = np.zeros(0)
    if name == "one_class":
        return Task("one_class", none, np.zeros(len(labels)),
                    lambda values, copies: one_class(copies, options.nu),
                    np.ones(1))  # fmt: skip
    if name == "epsilon_svr":
        return Task("regression", none, labels.astype(np.float64),
                    lambda values, copies: epsilon_svr(values, copies, options.C, options.epsilon),
                    np.array([options.C]))  # fmt: skip
    if name == "nu_svr":
        return Task("regression", none, labels.astype(np.float64),
                    lambda values, copies: nu_svr(values, copies, options.C, options.nu),
                    np.array([options.C]))  # fmt: skip
    order, classes = _classes(labels, weights)
    if name == "nu_svc":
        return Task("classification", order, classes,
                    lambda values, copies: nu_svc_pairs(values, copies, len(order), options.nu),
                    np.ones(len(order)))  # fmt: skip
    weights = options.class_weight or {}
    class_C = np.array([options.C * weights.get(float(label), 1.0) for label in order])
    return Task("classification", order, classes,
                lambda values, copies: c_svc_pairs(values, copies, class_C, bias=options.bias),
                class_C)  # fmt: skip


def _classes(labels: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`class_order` of the rows that have a weight; the others are in any class."""
    there = weights > 0
    if there.all():
        return class_order(labels)
    absent = np.setdiff1d(labels, labels[there])
    if len(absent):
        raise ValueError(f"all rows of class {absent[0]:.10g} have sample weight 0")
    classes = np.zeros(len(labels), np.int64)
    order, classes[there] = class_order(labels[there])
    return order, classes


def class_order(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels (k,) of the classes in LIBSVM's order, and the class int32 (n,) of each row.

    The order is that of first appearance, except that of just -1 and +1 the +1 comes first.
    Raises ValueError for fewer than two distinct labels, which are finite.
    """
    distinct, first_row = np.unique(labels, return_index=True)
    if len(distinct) < 2:
        found = f"one: {_plain(distinct[0])}" if len(distinct) else "none"
        raise ValueError(f"training needs two classes, found {found}")
    order = distinct[np.argsort(first_row)]
    if set(order) == {-1.0, 1.0}:
        order = np.array([1.0, -1.0])
    rank = np.empty(len(order), np.int32)
    rank[np.searchsorted(distinct, order)] = np.arange(len(order))
    return order, rank[np.searchsorted(distinct, labels)]


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(float(number))
