"""What a trained model consists of: plain data, as a file holds it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.partition import Partition
from dcsvm.problem.option_rules import CLASSIFIERS


@dataclass(frozen=True)
class Worth:
    """What an exact solution is worth: whether training converged, the largest violation that was
    found, and the duality gap, None where it is not known."""

    converged: bool
    violation: float
    gap: float | None


@dataclass(frozen=True, eq=False)
class ExactModel:
    """Support vectors of the whole problem.

    `rows` are n_sv support vectors, of a classifier class by class in the order of the labels.
    `dual_coef` float64 (k - 1, n_sv) is LIBSVM's sv_coef: of a support vector of class i, line j is
    for its pair with class j, or class j + 1 where j >= i; there is one line where there are no
    classes. `rho` float64 (n_pairs,): a decision value is sum dual_coef K - rho, of the pairs
    (0, 1), (0, 2), ..., (k - 2, k - 1). `n_sv` int64 (k,) counts the support vectors of each class,
    None where there are none. `row_numbers` int64 (n_sv,) are the rows of the training file, from
    0 (landmarks of a compressed model are no rows: they are counted), and `worth` is what the
    solution is worth; None where the file of the model does not say.
    """

    rows: Rows
    dual_coef: np.ndarray
    rho: np.ndarray
    n_sv: np.ndarray | None = None
    row_numbers: np.ndarray | None = None
    worth: Worth | None = None

    @property
    def class_(self) -> np.ndarray | None:
        """Number of the class of each support vector, int64 (n_sv,)."""
        return None if self.n_sv is None else np.repeat(np.arange(len(self.n_sv)), self.n_sv)

    def with_features(self, n_features: int) -> ExactModel:
        if n_features == self.rows.n_features:
            return self
        return replace(self, rows=self.rows.with_features(n_features))


@dataclass(frozen=True, eq=False)
class EarlyModel:
    """One model per cluster of a level, and the partition that routes rows to them.

    A row may be a support vector of two clusters. They are sorted by `cluster` int32 (n_sv,), then
    `class_` int32 (n_sv,), None where there are no classes, then the file's order. `dual_coef` is
    as in ExactModel, inside the cluster. `rho` float64 (n_clusters, n_pairs): of a pair of which
    the cluster has only one class the coefficients are 0 and rho is -1 (the first class) or +1 (the
    second); of a pair of which it has none rho is nan, and the pair does not vote.
    """

    level: int
    partition: Partition
    cluster: np.ndarray
    class_: np.ndarray | None
    rows: Rows
    dual_coef: np.ndarray
    rho: np.ndarray
    row_numbers: np.ndarray

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
    """What turns decision values f into probabilities: LIBSVM's probA and probB.

    Of a classifier `A` and `B` are float64 (n_pairs,), and 1 / (1 + exp(A f + B)) is the
    probability of the first class of the pair. Of a regression `A` (1,) is the sigma of the
    Laplace distribution of the errors, and `B` is None.
    """

    A: np.ndarray
    B: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class ModelParts:
    """All that a model file holds: the exact solution, the early level, or both.

    `labels` (k,) are those of the classes, float64 or strings, none for one-class and regression.
    `range_file_crc32` is the checksum (data/range_file.py) of the ranges by which the training rows
    were scaled, None where the model's file does not say. `first_index` is that of column 0 in
    files, 0 or 1.
    """

    kernel: Kernel
    labels: np.ndarray
    exact: ExactModel | None
    early: EarlyModel | None
    svm_type: str = "c_svc"
    probability: Probability | None = None
    range_file_crc32: str | None = None
    first_index: int = 1

    @property
    def says_first_index(self) -> bool:
        """Whether `first_index` is known; a LIBSVM file shows it only by a vector with index 0."""
        return self.first_index == 0 or self.exact is None or self.exact.row_numbers is not None

    def for_first_index(self, first_index: int) -> ModelParts:
        """Return a model whose first index is unknown for rows with this one."""
        if first_index == self.first_index:
            return self
        exact = replace(self.exact, rows=self.exact.rows.after_empty_column())
        return replace(self, exact=exact, first_index=first_index)

    @property
    def is_classifier(self) -> bool:
        return self.svm_type in CLASSIFIERS

    @property
    def n_pairs(self) -> int:
        """Number of decision values of a row."""
        k = len(self.labels)
        return k * (k - 1) // 2 if self.is_classifier else 1
