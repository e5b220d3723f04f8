"""Define data classes for the parts of a trained model, as stored in a model file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from dcsvm.data.columns import TableEncoding
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.data.scaling import Scaling
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.partition import Partition
from dcsvm.problem.option_table import CLASSIFIERS

AnyParts = TypeVar("AnyParts", bound="ModelParts")


@dataclass(frozen=True)
class ConvergenceStatus:
    """Convergence status of an exact solution.

    `violation` is the largest KKT violation found. `gap` is the duality gap, or None without one.
    """

    converged: bool
    violation: float
    gap: float | None


@dataclass(frozen=True, eq=False)
class ExactModel:
    """Exact solution: support vectors of the whole problem.

    Attributes
    ----------
    rows : Rows (n_sv, n_features)
        Support vectors, sorted by class in the order of the labels.
    dual_coef : float64 (k - 1, n_sv), or (1, n_sv) without classes
        LIBSVM's sv_coef. For a support vector of class i, row j has its coefficient in the pair
        with class j if j < i, and with class j + 1 if j >= i.
    rho : float64 (n_pairs,)
        The decision value of a pair is sum dual_coef K - rho. Pairs are (0, 1), (0, 2), ...,
        (k - 2, k - 1).
    n_sv : int64 (k,) or None
        Number of support vectors of each class; None without classes.
    row_numbers : int64 (n_sv,) or None
        Indices of the support vectors in the training file, from 0. A compressed model has
        0, 1, ..., n_sv - 1. None if the model file lacks them.
    status : ConvergenceStatus or None
        Convergence status; None if the model file lacks it.
    """

    rows: Rows
    dual_coef: np.ndarray
    rho: np.ndarray
    n_sv: np.ndarray | None = None
    row_numbers: np.ndarray | None = None
    status: ConvergenceStatus | None = None

    @property
    def class_(self) -> np.ndarray | None:
        """The class index of each support vector, int64 (n_sv,)."""
        return None if self.n_sv is None else np.repeat(np.arange(len(self.n_sv)), self.n_sv)

    @property
    def distinct(self) -> np.ndarray:
        """Positions of the distinct support vectors, by class: all of them."""
        return np.arange(self.rows.n_samples)

    def with_features(self, n_features: int) -> ExactModel:
        if n_features == self.rows.n_features:
            return self
        return replace(self, rows=self.rows.with_features(n_features))


@dataclass(frozen=True, eq=False)
class EarlyModel:
    """One model per cluster of a level, and the partition that assigns rows to clusters.

    Support vectors are sorted by cluster, then class, then index in the training file. A row can be
    a support vector of two clusters.

    Attributes
    ----------
    level : int
        The level of the clusters.
    partition : Partition
        The tree of clusters.
    cluster : int32 (n_sv,)
        Cluster of each support vector.
    class_ : int32 (n_sv,) or None
        Class index of each support vector; None without classes.
    rows : Rows (n_sv, n_features)
        Support vectors.
    dual_coef : float64 (k - 1, n_sv), or (1, n_sv) without classes
        As in ExactModel, within the cluster.
    rho : float64 (n_clusters, n_pairs)
        If a cluster has only one class of a pair, the coefficients of the pair are 0, and rho is -1
        for the first class, +1 for the second. If it has neither, rho is nan and the pair does not
        vote.
    row_numbers : int64 (n_sv,)
        Indices of the support vectors in the training file, from 0.
    """

    level: int
    partition: Partition
    cluster: np.ndarray
    class_: np.ndarray | None
    rows: Rows
    dual_coef: np.ndarray
    rho: np.ndarray
    row_numbers: np.ndarray

    @property
    def distinct(self) -> np.ndarray:
        """Positions of the distinct support vectors, by class; some are in several clusters."""
        _, first = np.unique(self.row_numbers, return_index=True)
        if self.class_ is None:
            return first
        return first[np.argsort(self.class_[first], kind="stable")]

    def with_features(self, n_features: int) -> EarlyModel:
        if n_features == self.rows.n_features:
            return self
        sample = self.partition.sample.with_features(n_features)
        return replace(
            self,
            rows=self.rows.with_features(n_features),
            partition=replace(self.partition, sample=sample),
        )


@dataclass(frozen=True, eq=False)
class Probability:
    """Parameters of probability estimates from decision values f: LIBSVM's probA and probB.

    For a classifier `A` and `B` are float64 (n_pairs,), and the first class of a pair has the
    probability 1 / (1 + exp(A f + B)). For regression `A` (1,) is the scale of the Laplace
    distribution of the errors, and `B` is None.
    """

    A: np.ndarray
    B: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class ModelParts:
    """Contents of a model file: the exact solution, the early level, or both.

    `labels` (k,) are the labels of the classes, float64 or strings, empty for one-class and
    regression. `scaling` was applied to the training rows, and is applied to the rows to predict;
    None without scaling. `first_index` is the index of column 0 in files, 0 or 1. `table` encodes
    the columns of a table as features; None if the training set was no table.
    """

    kernel: Kernel
    labels: np.ndarray
    exact: ExactModel | None
    early: EarlyModel | None
    svm_type: str = "c_svc"
    probability: Probability | None = None
    scaling: Scaling | None = None
    first_index: int = 1
    table: TableEncoding | None = None

    def part(self, method: str | None = None) -> ExactModel | EarlyModel:
        """Return the part that a method uses; None prefers the exact solution.

        Raises ValueError if the model has no such part.
        """
        if method not in (None, "exact", "early"):
            raise ValueError(f"method must be one of exact, early, got {method!r}")
        part: ExactModel | EarlyModel | None = self.early if method == "early" else self.exact
        if method is None:
            part = self.exact or self.early
        if part is None:
            missing = "exact solution" if method == "exact" else "early level"
            raise ValueError(f"the model has no {missing}")
        return part

    def with_only(self, part: ExactModel | EarlyModel) -> ModelParts:
        """Return the model with this part and without the other."""
        if isinstance(part, ExactModel):
            return replace(self, exact=part, early=None)
        return replace(self, exact=None, early=part)

    def with_own_rows(self: AnyParts) -> AnyParts:
        """Return the model with copies of support vectors that are a selection of other rows."""
        return replace(self, exact=_with_own_rows(self.exact), early=_with_own_rows(self.early))

    @property
    def says_first_index(self) -> bool:
        """Whether `first_index` is known. A LIBSVM file reveals only 0, by a feature index 0."""
        return self.first_index == 0 or self.exact is None or self.exact.row_numbers is not None

    def for_first_index(self, first_index: int) -> ModelParts:
        """Return the model with this first index; its own must be unknown or the same."""
        if first_index == self.first_index:
            return self
        assert self.exact is not None  # the file of an early model states its first index
        exact = replace(self.exact, rows=self.exact.rows.after_empty_column())
        return replace(self, exact=exact, first_index=first_index)

    @property
    def feature_names(self) -> list[str]:
        """Names of the scaled features of a table, or their indices; empty without a scaling."""
        if self.scaling is None:
            return []
        if self.table is None:
            return [str(index) for index in self.scaling.indices]
        names = self.table.feature_names
        return [names[column] for column in self.scaling.columns]

    @property
    def is_classifier(self) -> bool:
        return self.svm_type in CLASSIFIERS

    @property
    def is_regression(self) -> bool:
        return not self.is_classifier and self.svm_type != "one_class"

    @property
    def n_pairs(self) -> int:
        """The number of decision values of a row."""
        k = len(self.labels)
        return k * (k - 1) // 2 if self.is_classifier else 1


def _with_own_rows(part: Any) -> Any:
    """Copy the rows of a part, or None, if they are a selection."""
    if part is None or not isinstance(part.rows, ChosenRows):
        return part
    return replace(part, rows=part.rows.part(slice(None)))
