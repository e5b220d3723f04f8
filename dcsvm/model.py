"""Trained models: the exact solution, the early level, or both. Their file is in model_file.py."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dcsvm.dataset import Rows
from dcsvm.kernels import Kernel
from dcsvm.partition import Partition

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")  # LIBSVM's -s 0 to 4
CLASSIFIERS = ("c_svc", "nu_svc")


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
    `coef` float64 (k - 1, n_sv) is LIBSVM's sv_coef: of a support vector of class i, line j is for
    its pair with class j, or class j + 1 where j >= i; there is one line where there are no
    classes. `rho` float64 (n_pairs,): a decision value is sum coef K - rho, of the pairs (0, 1),
    (0, 2), ..., (k - 2, k - 1). `n_sv` int64 (k,) counts the support vectors of each class, None
    where there are none. `row_numbers` int64 (n_sv,) are the rows of the training file, from 0, and
    `worth` is what the solution is worth; None where the file of the model does not say.
    """

    rows: Rows
    coef: np.ndarray
    rho: np.ndarray
    n_sv: np.ndarray | None = None
    row_numbers: np.ndarray | None = None
    worth: Worth | None = None

    @property
    def class_(self) -> np.ndarray | None:
        """Number of the class of each support vector, int64 (n_sv,)."""
        return None if self.n_sv is None else np.repeat(np.arange(len(self.n_sv)), self.n_sv)

    def with_features(self, n_features: int) -> ExactModel:
        return replace(self, rows=self.rows.with_features(n_features))


@dataclass(frozen=True, eq=False)
class EarlyModel:
    """One model per cluster of a level, and the partition that routes rows to them.

    Support vectors are sorted by `cluster` int32 (n_sv,), then `class_` int32 (n_sv,), None where
    there are no classes, then the file's order. `coef` is as in ExactModel, inside the cluster.
    `rho` float64 (n_clusters, n_pairs): of a pair of which the cluster has only one class the
    coefficients are 0 and rho is -1 (the first class) or +1 (the second); of a pair of which it
    has none rho is nan, and the pair does not vote.
    """

    level: int
    partition: Partition
    cluster: np.ndarray
    class_: np.ndarray | None
    rows: Rows
    coef: np.ndarray
    rho: np.ndarray
    row_numbers: np.ndarray

    def with_features(self, n_features: int) -> EarlyModel:
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
class Model:
    """A trained model: the exact solution, the early level, or both.

    `labels` float64 (k,) are those of the classes, none for one-class and regression. `report` is
    the TrainReport of the run that made it, None for a model that was loaded.

    The methods take rows (n, d); `method` is "exact", "early", "naive" (the sum over all clusters
    of the early level) or "bcm" (their Bayesian committee machine, not for precomputed and
    indefinite kernels), None is exact where the model has it, else early; `threads` None is the
    default of the commands. They raise ValueError for what the model does not have.
    """

    kernel: Kernel
    labels: np.ndarray
    exact: ExactModel | None
    early: EarlyModel | None
    svm_type: str = "c_svc"
    probability: Probability | None = None
    report: object | None = None

    @property
    def is_classifier(self) -> bool:
        return self.svm_type in CLASSIFIERS

    @property
    def n_pairs(self) -> int:
        """Number of decision values of a row."""
        k = len(self.labels)
        return k * (k - 1) // 2 if self.is_classifier else 1

    def decision_function(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Decision values float64, (n,) where a row has one, else (n, n_pairs), one against one:
        of the pairs (0, 1), (0, 2), ..., (k - 2, k - 1), positive for the first class. For a
        precomputed kernel the rows are kernel values (n, n_training_rows).

        nan where early prediction has neither class of the pair in the cluster of the row.
        """
        from dcsvm.predict import decision_values

        values = decision_values(self, *self._arguments(X, method, threads))
        return values[:, 0] if self.n_pairs == 1 else values

    def predict(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Predictions float64 (n,): labels by the votes of the pairs, of equal votes the first
        label; +1 or -1 (outlier) for one-class; values for regression."""
        from dcsvm.predict import predictions

        return predictions(self, *self._arguments(X, method, threads))

    def predict_probability(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Probabilities of the classes float64 (n, k), in the order of `labels`."""
        from dcsvm.predict import class_probabilities

        return class_probabilities(self, *self._arguments(X, method, threads))

    def _arguments(self, X, method, threads) -> tuple[Rows, str, int]:
        from dcsvm.plan import default_threads

        rows = X if isinstance(X, Rows) else Rows.from_array(X)
        return rows, method or ("exact" if self.exact else "early"), threads or default_threads()

    def save(self, path: str | os.PathLike[str], format: str = "dcsvm") -> None:
        """Write the model file; an interrupted save leaves an existing file as it was.

        The format "libsvm" is nothing but LIBSVM: no early level, no numbers of rows.
        """
        from dcsvm.model_file import save_model

        save_model(self, path, format)
