"""A trained model: predictions, and its file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dcsvm.data.output_file import write_beside
from dcsvm.data.rows import Rows
from dcsvm.machine import default_threads
from dcsvm.model.parts import ModelParts
from dcsvm.model.predict import class_probabilities, decision_values, predictions
from dcsvm.model.writer import model_text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Model(ModelParts):
    """A trained model: the exact solution, the early level, or both.

    `report` is the TrainReport of the run that made it, None for a model that was loaded.

    The methods take rows (n, d); `method` is "exact", "early", "naive" (the sum over all clusters
    of the early level) or "bcm" (their Bayesian committee machine, not for precomputed and
    indefinite kernels), None is exact where the model has it, else early; `threads` None is the
    default of the commands. They raise ValueError for what the model does not have.
    """

    report: object | None = None

    def decision_function(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Decision values float64, (n,) where a row has one, else (n, n_pairs), one against one:
        of the pairs (0, 1), (0, 2), ..., (k - 2, k - 1), positive for the first class. For a
        precomputed kernel the rows are kernel values (n, n_training_rows).

        nan where early prediction has neither class of the pair in the cluster of the row.
        """
        values = decision_values(self, *self._arguments(X, method, threads))
        return values[:, 0] if self.n_pairs == 1 else values

    def predict(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Predictions float64 (n,): labels by the votes of the pairs, of equal votes the first
        label; +1 or -1 (outlier) for one-class; values for regression."""
        return predictions(self, *self._arguments(X, method, threads))

    def predict_probability(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Probabilities of the classes float64 (n, k), in the order of `labels`."""
        return class_probabilities(self, *self._arguments(X, method, threads))

    def _arguments(self, X, method, threads) -> tuple[Rows, str, int]:
        rows = X if isinstance(X, Rows) else Rows.from_array(X)
        return rows, method or ("exact" if self.exact else "early"), threads or default_threads()

    def save(self, path: str | os.PathLike[str], format: str = "dcsvm") -> None:
        """Write the model file; an interrupted save leaves an existing file as it was.

        The format "libsvm" is nothing but LIBSVM: no early level, no numbers of rows.
        """
        write_beside(path, model_text(self, format))
