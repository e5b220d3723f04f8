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


@dataclass(frozen=True, eq=False)
class ExactModel:
    """Support vectors of the whole problem: `rows`, signed `alpha` float64 (n_sv,), their
    `row_numbers` int64 in the training file (from 0), or None where the file does not say."""

    rows: Rows
    alpha: np.ndarray
    row_numbers: np.ndarray | None = None
    bias: float = 0.0

    def with_features(self, n_features: int) -> ExactModel:
        return replace(self, rows=self.rows.with_features(n_features))


@dataclass(frozen=True, eq=False)
class EarlyModel:
    """One model per cluster of a level: support vectors sorted by `cluster` int32 (n_sv,), and the
    partition that routes rows to them."""

    level: int
    partition: Partition
    cluster: np.ndarray
    rows: Rows
    alpha: np.ndarray
    row_numbers: np.ndarray
    bias = 0.0

    def with_features(self, n_features: int) -> EarlyModel:
        sample = self.partition.sample.with_features(n_features)
        return replace(
            self,
            rows=self.rows.with_features(n_features),
            partition=replace(self.partition, sample=sample),
        )


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model: the exact solution, the early level, or both. `report` is the TrainReport of
    the run that made it, None for a model that was loaded."""

    kernel: Kernel
    labels: np.ndarray
    exact: ExactModel | None
    early: EarlyModel | None
    report: object | None = None

    def decision_function(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Decision values float64 (n,) for rows (n, d), positive for labels[0]; for a precomputed
        kernel the rows are kernel values (n, n_training_rows).

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
