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


SVM_TYPES = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")  # -s 0 to 4


@dataclass(frozen=True, eq=False)
class ExactModel:
    rows: Rows
    coef: np.ndarray
    rho: np.ndarray
    n_sv: np.ndarray | None
    row_numbers: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class EarlyModel:
    level: int
    partition: Partition
    cluster: np.ndarray
    class_: np.ndarray | None
    rows: Rows
    coef: np.ndarray
    rho: np.ndarray
    row_numbers: np.ndarray


@dataclass(frozen=True, eq=False)
class Probability:
    A: np.ndarray
    B: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Model:
    kernel: Kernel
    labels: np.ndarray
    exact: ExactModel | None
    early: EarlyModel | None
    svm_type: str = "c_svc"
    probability: object | None = None
    report: object | None = None

    def decision_function(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Decision values float64 (n,) for rows (n, d), positive for labels[0].

        `method` is "exact", "early" or "naive"; None is exact where the model has it, else early.
        `threads` None is the default of the commands.
        """
        from dcsvm.plan import default_threads
        from dcsvm.predict import decision_values

        rows = X if isinstance(X, Rows) else Rows.from_array(X)
        method = method or ("exact" if self.exact else "early")
        return decision_values(self, rows, method, threads or default_threads())

    def predict(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Predicted labels (n,): labels[0] where the decision value is positive, else labels[1]."""
        values = self.decision_function(X, method=method, threads=threads)
        return self.labels_of(values)

    def labels_of(self, values: np.ndarray) -> np.ndarray:
        return np.where(values > 0, self.labels[0], self.labels[1])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; an interrupted save leaves an existing file as it was."""
        from dcsvm.model_file import save_model

        save_model(self, path)
