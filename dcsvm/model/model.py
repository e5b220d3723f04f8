"""A trained model: predictions, and its file."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dcsvm.data.arrays import Float64Parts
from dcsvm.data.output_file import write_beside
from dcsvm.data.range_file import checksum, range_file_of, range_text
from dcsvm.data.rows import Rows
from dcsvm.data.scaling import Scaling
from dcsvm.kernel.kernel_rows import threads_that_pay
from dcsvm.machine import default_threads, usable_threads
from dcsvm.model.few_rows import few_values
from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts
from dcsvm.model.predict import (
    class_probabilities,
    decision_values,
    predicted_from,
    predictions,
    probabilities_from,
)
from dcsvm.model.writer import model_text
from dcsvm.problem.options import TrainOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class Model(ModelParts):
    """A trained model: the exact solution, the early level, or both.

    `report` is the TrainReport of the run that made it, the CompressionReport of `compress`, None
    for a model that was loaded. `scaling` is what the methods scale rows by, and `save` writes
    beside the model: the ranges of the training rows where these were scaled by `--scale auto`.

    The methods take rows (n, d); `method` is "exact" or "early", None is exact where the model has
    it, else early; `threads` None is the default of the commands. They raise ValueError for what
    the model does not have.

    Of many rows, rbf kernel values of support vectors that are provably far may be left out. That
    changes no decision value by more than 2^-24 of the largest coefficient, and no label. Where the
    coefficients are so large that float32 kernel values would show, they are float64.
    """

    report: object | None = None
    scaling: Scaling | None = None

    def __repr__(self) -> str:
        described = [self.svm_type, self.kernel.describe()]
        if self.is_classifier:
            described.append(f"{len(self.labels)} classes")
        if self.exact is not None:
            described.append(f"exact: {self.exact.rows.n_samples} support vectors")
        if self.early is not None:
            described.append(
                f"early: {self.early.rows.n_samples} support vectors "
                f"in {self.early.partition.n_clusters} clusters"
            )
        if self.scaling is not None:
            described.append(f"rows are scaled by {self.scaling.name}")
        return f"Model({', '.join(described)})"

    def decision_function(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Decision values float64, (n,) where a row has one, else (n, n_pairs), one against one:
        of the pairs (0, 1), (0, 2), ..., (k - 2, k - 1), positive for the first class. For a
        precomputed kernel the rows are kernel values (n, n_training_rows).

        nan where early prediction has neither class of the pair in the cluster of the row.
        """
        values = self._few_values(X, method, threads)
        if values is None:
            values = decision_values(self, *self._arguments(X, method, threads))
        return values[:, 0] if self.n_pairs == 1 else values

    def predict(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Predictions (n,): labels, float64 or strings as they were trained with, by the votes of
        the pairs, of equal votes the first label; float64 +1 or -1 (outlier) for one-class; float64
        values for regression."""
        values = self._few_values(X, method, threads)
        if values is not None:
            return predicted_from(self, values)
        return predictions(self, *self._arguments(X, method, threads))

    def predict_probability(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Probabilities of the classes float64 (n, k), in the order of `labels`."""
        if self.is_classifier and self.probability is not None:
            values = self._few_values(X, method, threads)
            if values is not None:
                return probabilities_from(self, values)
        return class_probabilities(self, *self._arguments(X, method, threads))

    @property
    def _part(self) -> ExactModel | EarlyModel:
        return self.exact or self.early

    def _few_values(self, X, method, threads) -> np.ndarray | None:
        """Decision values (n, n_pairs) of a few rows; None for what takes `_arguments`."""
        TrainOptions.check("threads", threads)
        return few_values(self, X, method) if self.scaling is None else None

    def _arguments(self, X, method, threads) -> tuple[Rows, str, int]:
        method = method or ("exact" if self.exact else "early")
        rows = X if isinstance(X, Rows) else self.rows_of(X)
        if TrainOptions.check("threads", threads) is None:
            n_others = self._part.rows.n_samples
            return rows, method, threads_that_pay(default_threads(), rows, n_others)
        return rows, method, usable_threads(threads)

    def rows_of(self, X: ArrayLike) -> Rows:
        """Convert an array or matrix to rows, scaled where the training rows were.

        Dense rows must have the features that the model was trained on, sparse ones may have fewer.
        The file of a LIBSVM model does not say how many there were; features that ranges do not
        name are left out. Raises ValueError.
        """
        parts = None if self.scaling is None else Float64Parts(X)
        rows = Rows.from_array(X) if parts is None else self.scaling.scaled_rows(parts, "X")
        n_given = rows.n_features if parts is None else parts.n_features
        n_trained = self._part.rows.n_features
        is_longer_allowed = self._part.row_numbers is None or self.scaling is not None
        too_few = n_given < n_trained and not hasattr(X, "tocsr")
        too_many = n_given > n_trained and not is_longer_allowed
        if (too_few and not self.kernel.is_precomputed) or too_many:
            what = "kernel values" if self.kernel.is_precomputed else "features"
            raise ValueError(f"rows have {n_given} {what}, the model was trained on {n_trained}")
        return rows

    def compress(
        self, X: ArrayLike | Rows | None = None, *, test: ArrayLike | Rows | None = None, **options
    ) -> Model:
        """A smaller model: landmarks in place of the support vectors of the exact solution, or of
        the early level, fitted to the decision values on rows X (n, d), the training rows or others
        like them; on the support vectors alone where there are none. `test` rows (m, d) are some
        that the model has not seen. The options are (type, default); one of the first three is
        needed.

        - vectors (int, None): at most so many.
        - times (float, None): about so many times fewer kernel values for a row.
        - loss (float, None): percent of the labels that may change, by the test rows and with 95 %
          confidence.
        - method (str, None): "exact" or "early", as above.
        - steps (int, None): of the landmarks of a cluster, or of all; more are better.
        - seed (int, 0): of what is random.
        - threads (int, None): as above.

        The `report` of the model is a CompressionReport. Raises ValueError for what cannot be
        compressed, rows that cannot tell a loss, and a loss that no size keeps, and TypeError for
        an unknown option.
        """
        from dcsvm.model.compress import compress
        from dcsvm.problem.compress_options import CompressOptions

        asked = CompressOptions.of(**options)
        asked = replace(asked, threads=usable_threads(asked.threads))
        given = [
            rows if rows is None or isinstance(rows, Rows) else self.rows_of(rows)
            for rows in (X, test)
        ]
        parts, report = compress(self, *given, asked)
        return replace(self, exact=parts.exact, early=parts.early, report=report)

    def save(self, path: str | os.PathLike[str], format: str = "dcsvm") -> None:
        """Write the model file; an interrupted save leaves an existing file as it was.

        The format "libsvm" is nothing but LIBSVM: no early level, no numbers of rows. Raises
        ValueError for what the file cannot hold, labels that are strings above all.
        """
        if self.scaling is not None:
            write_beside(range_file_of(path), [range_text(self.scaling)])
        write_beside(path, model_text(self, format))

    def scaled_by(self, scaling: Scaling) -> Model:
        """Return the model as one of rows that were scaled so."""
        return replace(self, scaling=scaling, range_file_crc32=checksum(scaling))
