"""Checks of numbers that estimators share: sizes, offsets, weights, variance."""

import warnings
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

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
