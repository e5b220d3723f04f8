"""Rows of fit and predict: arrays and sparse matrices by scikit-learn's checks, and data frames.

A data frame with text or gaps stays one: its columns are encoded, and predictions match them by
name. Other frames become arrays, but the medians of their columns are kept for gaps in later rows.
Sizes, offsets and weights are checked, too.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _get_feature_names,
    check_array,
    check_consistent_length,
    validate_data,
)

from dcsvm.data.dataset import Dataset
from dcsvm.data.frames import has_only_numbers, known_frame

Input: TypeAlias = "ArrayLike | sparse.spmatrix | sparse.sparray"  # from users; also data frames
Matrix: TypeAlias = np.ndarray | sparse.csr_matrix
Weights = np.ndarray | None  # float64 (n,)

MIN_SIZE, MAX_SIZE = 1e-15, 1e15  # magnitudes whose squares float32 can represent
LOOKED_AT = 1000  # rows sampled to check the offsets of features
MAX_OFFSET = 1e5  # |mean| / standard deviation of a feature; float32 has 7 digits
BATCH_VALUES = 2**16  # values per batch, which fits the cache
NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values"
    " and need to be preprocessed."
)


def check_sizes(X: Matrix) -> None:
    """Raise ValueError if squares of values are not within the range of float32."""
    values = X if isinstance(X, np.ndarray) else X.data
    if values.size == 0:
        return
    size = max(float(values.max()), -float(values.min()))
    if not (size <= 0 or MIN_SIZE <= size <= MAX_SIZE):  # also nan
        raise ValueError(f"{NOT_FINITE} (squares of features of {size:.0e} are beyond float32)")


def warn_of_offsets(X: Any) -> None:
    """Warn of features that lose most of their precision in float32."""
    if not isinstance(X, np.ndarray) or X.dtype != np.float64 or len(X) < 2:
        return
    sample = X[:: -(-len(X) // LOOKED_AT)]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = np.abs(sample.mean(axis=0)), sample.std(axis=0)
        far = np.flatnonzero((deviation > 0) & (mean > MAX_OFFSET * deviation))
    if len(far):
        column = int(far[0])
        warnings.warn(
            f"feature {column} has mean {sample[:, column].mean():.3g} and standard deviation "
            f"{deviation[column]:.2g}: float32 loses its precision, subtract its mean",
            UserWarning,
            stacklevel=6,
        )


def given_weights(sample_weight: ArrayLike | None, shape: tuple[int, ...]) -> Weights:
    """Convert the weights of rows of a shape to float64 (n,). None stays None.

    Raises ValueError for another number of weights, if they are no numbers, and if none is
    positive.
    """
    if sample_weight is None:
        return None
    weights = _real_numbers(np.asarray(sample_weight))
    if weights.shape != (shape[0],):
        raise ValueError(
            f"sample_weight and X have incompatible shapes: {weights.shape!r} vs {shape!r}\n"
            "Note: Sparse matrices cannot be indexed w/boolean masks (use `indices=True` in CV)."
        )
    if np.all(weights <= 0):
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    return weights


def _real_numbers(weights: np.ndarray) -> np.ndarray:
    if weights.dtype.kind in "biufO":
        with suppress(TypeError, ValueError):  # objects may be no numbers
            return weights.astype(np.float64)
    raise ValueError(f"sample weights must be numbers, got values of type {weights.dtype}")


def checked_weights(sample_weight: ArrayLike | None, shape: tuple[int, ...]) -> Weights:
    """Convert weights as `given_weights`; set negative ones to 0, as scikit-learn's SVM does."""
    weights = given_weights(sample_weight, shape)
    return None if weights is None else np.where(weights < 0, 0.0, weights)


def variance_of(X: Matrix, weights: Weights) -> float:
    """Compute the variance of all entries of X (n, d) in float64; weights (n,) count row copies."""
    if not isinstance(X, np.ndarray):
        X = X.astype(np.float64)
        if weights is None:
            return float(X.multiply(X).mean() - X.mean() ** 2)
        X, weights = X[weights > 0], weights[weights > 0]
        total = weights.sum() * X.shape[1]
        sums, squared = (np.asarray(Z.sum(axis=1)).ravel() for Z in (X, X.multiply(X)))
        mean = weights @ sums / total
        return float(weights @ squared / total - mean**2)
    if weights is None:
        weights = np.ones(len(X))
    n_rows = max(BATCH_VALUES // X.shape[1], 1)
    batches = [slice(first, first + n_rows) for first in range(0, len(X), n_rows)]
    total = weights.sum() * X.shape[1]
    mean = sum(float(weights[at] @ X[at].sum(axis=1, dtype=np.float64)) for at in batches) / total
    squares = 0.0
    for at in batches:
        deviation = np.subtract(X[at], mean, dtype=np.float64)
        squares += float(weights[at] @ np.einsum("ij,ij->i", deviation, deviation))
    return squares / total


def matrix_of(rows: Any) -> Matrix:
    """Return Rows of dcsvm as an array or a CSR matrix, of float32 or bytes."""
    if rows.is_dense:
        return rows.features
    csr = rows.csr
    arrays = csr.values, csr.indices, csr.indptr
    return sparse.csr_matrix(arrays, shape=(rows.n_samples, rows.n_features))


def dense(values: Any) -> np.ndarray:
    """Convert an array or a sparse matrix to an array."""
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


# dtypes that are not converted to float64
DTYPES = [np.float64, np.float32, np.float16, np.uint8, np.int8, np.uint16, np.int16, np.uint32,
          np.int32, np.uint64, np.int64, np.bool_]  # fmt: skip
CHECKS: dict[str, Any] = {"dtype": DTYPES, "order": "C", "accept_sparse": "csr"}


def in_known_frame(X: Any) -> Any:
    """Return X, but a stream of Arrow, which may be read once, as a table of pyarrow.

    Raises TypeError for a Dataset.
    """
    if isinstance(X, Dataset):
        raise TypeError("estimators take X and y, not a Dataset: dcsvm.train takes a Dataset")
    frame = known_frame(X)
    return X if frame is None else frame


def _finite(X: Input, allows_gaps: bool) -> bool | str:
    """Return scikit-learn's setting for values that are not finite; sparse rows have no gaps."""
    return "allow-nan" if allows_gaps and not sparse.issparse(X) else True


def _has_nan(rows: Any) -> bool:
    return bool(np.isnan(rows.data if sparse.issparse(rows) else rows).any())


def _table_of(X: Any) -> Any:
    """Return the encoding of numbers without gaps; None if names of columns are equal."""
    try:
        return Dataset.table_of(X)
    except ValueError:
        return None


class TakesRows(BaseEstimator):
    """Estimator that checks the rows of fit and predict.

    Its methods take X as of `in_known_frame`.
    """

    _takes_gaps = False  # NaN in arrays is a missing value, and all data frames are encoded
    _least_rows = 1
    # how rows with gaps are encoded, if the rows of the fit had none and their model has no table
    _table_of_gaps: Any = None

    def _checked_data(self, X: Any, y: ArrayLike) -> tuple[Any, ArrayLike]:
        """Check arguments of fit; return X as an array, a CSR matrix or a frame to encode."""
        self._table_of_gaps = None
        self._check_size(X, self._least_rows)
        if not self._encodes(X):
            rows, y = validate_data(
                self, X, y,
                ensure_all_finite=_finite(X, self._takes_gaps),
                ensure_min_samples=self._least_rows, **CHECKS,
            )  # fmt: skip
            if self._is_table(X):
                self._table_of_gaps = _table_of(X)
            elif self._takes_gaps and not sparse.issparse(rows) and not _has_nan(rows):
                self._table_of_gaps = _table_of(rows)
            return rows, y
        y = validate_data(self, "no_validation", y)
        validate_data(self, X, y, skip_check_array=True)
        check_consistent_length(X, y)
        return X, y

    def _is_table(self, X: Any) -> bool:
        """Whether X is a data frame of features."""
        return known_frame(X) is not None

    def _encodes(self, X: Any) -> bool:
        """Whether X is a data frame whose columns are encoded in a fit."""
        return self._is_table(X) and (self._takes_gaps or not has_only_numbers(X))

    def _check_size(self, X: Any, least_rows: int = 1) -> None:
        """Refuse a frame without columns or with too few rows in scikit-learn's words."""
        if known_frame(X) is not None and (X.shape[0] < least_rows or not X.shape[1]):
            check_array(np.zeros(X.shape), ensure_min_samples=least_rows, estimator=self)

    def _fills(self, X: Any) -> bool:
        """Whether X is a data frame with gaps or text for a model of numbers without gaps."""
        known = self._table_of_gaps is not None and self._is_table(X)
        return known and not has_only_numbers(X)

    def _checked_rows(self, X: Any, model: Any) -> tuple[Any, Any]:
        """Check rows to predict; return them with the model that predicts them.

        Frames for a model with encoded columns stay frames. If rows have gaps and those of the fit
        had none, the model returned encodes them.
        """
        self._check_size(X)
        is_frame, has_table = self._is_table(X), model is not None and model.table is not None
        fills = model is not None and self._fills(X)
        if is_frame and (has_table or fills):
            self._check_columns(X, in_order=fills)
            return X, replace(model, table=self._table_of_gaps) if fills else model
        finite = _finite(X, self._takes_gaps or has_table or is_frame)
        rows = validate_data(self, X, reset=False, ensure_all_finite=finite, **CHECKS)
        if finite is True or has_table or not _has_nan(rows):
            return rows, model
        if self._table_of_gaps is None:
            raise ValueError("Input X contains NaN, but no row of the fit had a missing value.")
        return rows, replace(model, table=self._table_of_gaps)

    def _check_columns(self, frame: Any, *, in_order: bool) -> None:
        """Check the names of columns, or their number. Raises ValueError."""
        names, known = _get_feature_names(frame), getattr(self, "feature_names_in_", ())
        if in_order or names is None or sorted(names) != sorted(known):
            validate_data(self, frame, reset=False, skip_check_array=True)
