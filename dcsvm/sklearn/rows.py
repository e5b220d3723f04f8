"""Input of fit and predict: rows by scikit-learn's checks, data frames, weights and classes.

A data frame with text or gaps stays one: its columns are encoded, and predictions match them by
name. Other frames become arrays, but the medians of their columns are kept for gaps in later rows.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _get_feature_names,
    check_array,
    check_consistent_length,
    validate_data,
)

from dcsvm.data.arrays import as_float64
from dcsvm.data.dataset import Dataset
from dcsvm.data.frames import has_only_numbers, known_frame

Input: TypeAlias = "ArrayLike | sparse.spmatrix | sparse.sparray"  # from users; also data frames
Matrix: TypeAlias = np.ndarray | sparse.csr_matrix
Weights = np.ndarray | None  # float64 (n,)

MIN_SIZE, MAX_SIZE = 1e-15, 1e15  # magnitudes whose squares float32 can represent
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


def given_weights(sample_weight: ArrayLike | None, shape: tuple[int, ...]) -> Weights:
    """Convert the weights of rows of a shape to float64 (n,). None stays None.

    Raises ValueError for another number of weights, if they are no numbers, and if none is
    positive.
    """
    if sample_weight is None:
        return None
    weights = as_float64(sample_weight, "sample weights")
    if weights.shape != (shape[0],):
        raise ValueError(
            f"sample_weight and X have incompatible shapes: {weights.shape!r} vs {shape!r}\n"
            "Note: Sparse matrices cannot be indexed w/boolean masks (use `indices=True` in CV)."
        )
    if np.all(weights <= 0):
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    return weights


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


def matrix_of(rows: Any, scaling: Any = None) -> Matrix:
    """Return Rows of dcsvm as an array or a CSR matrix, of float32 or bytes.

    Rows that a `scaling` only shifted are in the units of the data, as float64.
    """
    is_shifted = scaling is not None and scaling.is_shift
    if rows.is_dense and not is_shifted:
        return rows.features
    csr = scaling.restored(rows) if is_shifted else rows.csr
    arrays = csr.values, csr.indices, csr.indptr
    matrix = sparse.csr_matrix(arrays, shape=(rows.n_samples, rows.n_features))
    return dense(matrix) if rows.is_dense else matrix


def dense(values: Any) -> np.ndarray:
    """Convert an array or a sparse matrix to an array."""
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


# dtypes that are not converted to float64
DTYPES = [np.float64, np.float32, np.float16, np.uint8, np.int8, np.uint16, np.int16, np.uint32,
          np.int32, np.uint64, np.int64, np.bool_]  # fmt: skip
CHECKS: dict[str, Any] = {"dtype": DTYPES, "order": "C", "accept_sparse": "csr"}


def in_known_frame(X: Any) -> Any:
    """Return X, but a stream of Arrow, which may be read once, as a table of pyarrow.

    Masked values become nan. Raises TypeError for a Dataset.
    """
    if isinstance(X, Dataset):
        raise TypeError("estimators take X and y, not a Dataset: dcsvm.train takes a Dataset")
    frame = known_frame(X)
    return Dataset.unmasked(X) if frame is None else frame


def _finite(X: Input, allows_gaps: bool) -> bool | str:
    """Return scikit-learn's setting for values that are not finite; sparse rows have no gaps."""
    return "allow-nan" if allows_gaps and not sparse.issparse(X) else True


def _has_nan(rows: Any) -> bool:
    return bool(np.isnan(rows.data if sparse.issparse(rows) else rows).any())


def _encoding(X: Any) -> Any:
    """Return the encoding of numbers without gaps; None if names of columns are equal."""
    try:
        return Dataset.table_of(X)
    except ValueError:
        return None


def checked_data(
    estimator: BaseEstimator,
    X: Any,
    y: ArrayLike,
    *,
    is_kernel: bool = False,
    takes_gaps: bool = False,
    least_rows: int = 1,
) -> tuple[Any, ArrayLike, Any]:
    """Check the X, of `in_known_frame`, and y of fit, and set the estimator's names of columns.

    X may be kernel values. `takes_gaps` encodes all data frames, and missing values in arrays.
    Returns X as an array, a CSR matrix or a frame to encode; y; and the encoding of later rows with
    gaps if these rows are numbers without gaps, else None.
    """
    check_frame_size(estimator, X, least_rows)
    is_table = not is_kernel and known_frame(X) is not None
    # columns are encoded: scikit-learn checks only their names and y
    if is_table and (takes_gaps or not has_only_numbers(X)):
        y = validate_data(estimator, "no_validation", y)
        validate_data(estimator, named(X), y, skip_check_array=True)
        check_consistent_length(X, y)
        return X, y, None
    rows, y = validate_data(
        estimator, X, y,
        ensure_all_finite=_finite(X, takes_gaps),
        ensure_min_samples=least_rows, **CHECKS,
    )  # fmt: skip
    if is_table:
        validate_data(estimator, named(X), skip_check_array=True)
        return rows, y, _encoding(X)
    has_encoding = takes_gaps and not sparse.issparse(rows) and not _has_nan(rows)
    return rows, y, _encoding(rows) if has_encoding else None


def checked_rows(
    estimator: BaseEstimator, X: Any, model: Any, encoding: Any, *, takes_gaps: bool = False
) -> tuple[Any, Any]:
    """Check rows to predict; return them with the model that predicts them.

    `encoding` is that of `checked_data`: if only the rows to predict have gaps, the model returned
    encodes them. Frames for a model with encoded columns stay frames.
    """
    check_frame_size(estimator, X)
    is_table = not model.kernel.is_precomputed and known_frame(X) is not None
    has_table, is_encoded = model.table is not None, needs_encoding(X, encoding)
    if is_table and (has_table or is_encoded):
        check_columns(estimator, X, in_order=is_encoded)
        return X, replace(model, table=encoding) if is_encoded else model
    finite = _finite(X, takes_gaps or has_table or is_table)
    if is_table:
        validate_data(estimator, named(X), reset=False, skip_check_array=True)
        rows = check_array(X, ensure_all_finite=finite, estimator=estimator, **CHECKS)
    else:
        rows = validate_data(estimator, X, reset=False, ensure_all_finite=finite, **CHECKS)
    if finite is True or has_table or not _has_nan(rows):
        return rows, model
    if encoding is None:
        raise ValueError("Input X contains NaN, but no row of the fit had a missing value.")
    return rows, replace(model, table=encoding)


def needs_encoding(X: Any, encoding: Any) -> bool:
    """Whether X is a data frame with gaps or text for a model of numbers without gaps."""
    return encoding is not None and known_frame(X) is not None and not has_only_numbers(X)


class _Columns:
    """The shape of a frame and the names of its columns."""

    def __init__(self, frame: Any):
        self.shape, self.names = frame.shape, frame.columns

    def __dataframe__(self) -> _Columns:
        return self

    def column_names(self) -> Any:
        return self.names


def named(frame: Any) -> Any:
    """Return what scikit-learn finds the names of the columns of a data frame in.

    Before version 1.8 it asks a frame for `__dataframe__`, which polars 2 lacks.
    """
    return frame if _get_feature_names(frame) is not None else _Columns(frame)


def check_frame_size(estimator: BaseEstimator, X: Any, least_rows: int = 1) -> None:
    """Refuse a frame without columns or with too few rows in scikit-learn's words."""
    if known_frame(X) is not None and (X.shape[0] < least_rows or not X.shape[1]):
        check_array(np.zeros(X.shape), ensure_min_samples=least_rows, estimator=estimator)


def check_columns(estimator: BaseEstimator, frame: Any, *, in_order: bool) -> None:
    """Check the names of columns, or their number. Raises ValueError."""
    frame = named(frame)
    names, known = _get_feature_names(frame), getattr(estimator, "feature_names_in_", ())
    if in_order or names is None or sorted(names) != sorted(known):
        validate_data(estimator, frame, reset=False, skip_check_array=True)


ONE_CLASS = "Invalid input - all samples with positive weights belong to the same class."


def encoded_classes(
    y: ArrayLike, weights: Weights, class_weight: Any, one_class: str = ONE_CLASS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the classes (k,), sorted; their weights (k,); and the class of each row, uint32 (n,).

    Classes without weight are dropped; their rows, which have no weight, get any class. Raises
    ValueError, with the sentence `one_class` if only one class has weight.
    """
    labels = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, indices = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"The number of classes has to be greater than one; got {len(classes)} class"
        )
    if weights is not None and len(weights) == len(indices):
        present = np.unique(indices[weights > 0])
        classes, indices = classes[present], np.searchsorted(present, indices)
        indices = np.minimum(indices, len(present) - 1)
    if len(classes) < 2:
        raise ValueError(one_class)
    if isinstance(class_weight, str):  # "balanced": sample weights count as copies of rows
        totals = np.bincount(indices, weights, minlength=len(classes))
        factors = totals.sum() / (len(classes) * totals)
    else:
        factors = _factors_by_class(class_weight or {}, classes.tolist())
    invalid = ~(np.isfinite(factors) & (factors > 0))
    if invalid.any():
        raise ValueError(
            f"class_weight must be positive and finite, got {factors[invalid][0]:g} "
            f"for class {classes[invalid][0]}"
        )
    return classes, factors, indices.astype(np.uint32)


def _factors_by_class(class_weight: dict[Any, Any], labels: list[Any]) -> np.ndarray:
    """Return the factor of each label, float64 (k,), by default 1.

    A label of text may also be given as its integer, as scikit-learn allows. Raises ValueError.
    """
    for key, factor in class_weight.items():
        if not isinstance(factor, Real):
            raise ValueError(f"class_weight must be a number, got {factor!r} for class {key!r}")
    keys = [label if label in class_weight else _as_integer(label) for label in labels]
    absent = [key for key in keys if key not in class_weight]
    if absent and len(keys) - len(absent) != len(class_weight):
        raise ValueError(f"The classes, {absent}, are not in class_weight")
    return np.array([class_weight.get(key, 1.0) for key in keys], np.float64)


def _as_integer(label: Any) -> Any:
    return int(label) if isinstance(label, str) and label.isdecimal() else label
