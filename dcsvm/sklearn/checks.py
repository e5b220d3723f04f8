"""What a fit is given, as training takes it: rows in float32, weights, and threads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real

import numpy as np
from scipy import sparse

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.data.sorting import slices
from dcsvm.kernel.kernel_rows import of_square, threads_that_pay
from dcsvm.machine import default_threads, is_forked, usable_threads

SMALLEST, LARGEST = 1e-15, 1e15  # features whose squares are float32
LOOKED_AT = 1000  # rows, for the offsets of features
LARGEST_OFFSET = 1e5  # of a feature, in its standard deviations: float32 keeps 7 digits of the sum
NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values"
    " and need to be preprocessed."
)


def rows_to_fit(X) -> Rows:
    """The rows of checked input. Raises ValueError for values whose squares float32 does not
    hold."""
    try:
        rows = Rows.from_array(X)
    except ValueError as reason:
        if "finite float32" not in str(reason):
            raise
        raise ValueError(f"{NOT_FINITE} ({reason})") from None
    values = rows.values if rows.dense is None else rows.dense
    size = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    if size > LARGEST or 0 < size < SMALLEST:
        raise ValueError(f"{NOT_FINITE} (float32 does not hold squares of features of {size:.0e})")
    return rows


def warn_of_offsets(X) -> None:
    """Warn where rounding to float32 takes most of what a feature says."""
    if sparse.issparse(X) or X.dtype != np.float64 or len(X) < 2:
        return
    some = X[:: -(-len(X) // LOOKED_AT)]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = np.abs(some.mean(axis=0)), some.std(axis=0)
        far = np.flatnonzero((deviation > 0) & (mean > LARGEST_OFFSET * deviation))
    if len(far):
        column = int(far[0])
        warnings.warn(
            f"feature {column} is about {some[:, column].mean():.3g} with a standard deviation of "
            f"{deviation[column]:.2g}: float32 keeps little of it, subtract its mean",
            UserWarning,
            stacklevel=5,
        )


def checked_weights(sample_weight, X) -> np.ndarray | None:
    """The weights float64 (n,), 0 where they are below, or None. Raises ValueError."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (X.shape[0],):
        raise ValueError(
            f"sample_weight and X have incompatible shapes: {weights.shape!r} vs {X.shape!r}\n"
            "Note: Sparse matrices cannot be indexed w/boolean masks (use `indices=True` in CV)."
        )
    weights = np.where(weights < 0, 0.0, weights)
    if not np.any(weights):
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    return weights


_lock = threading.Lock()
_at_work = 0


@contextmanager
def threads_for(wanted: int | None, rows: Rows, n_others: int) -> Iterator[int]:
    """The number of threads for the kernel values of rows with others: what is wanted, else what
    OMP_NUM_THREADS, threadpoolctl and joblib leave this process, shared among the fits and
    predictions that are at work in it, where so many pay."""
    global _at_work
    with _lock:
        _at_work += 1
        share = _at_work
    try:
        if is_forked():
            yield 1
        elif wanted is not None:
            yield usable_threads(wanted)
        else:
            there = min(default_threads(), _core.allowed_threads())
            yield threads_that_pay(max(1, there // share), rows, n_others)
    finally:
        with _lock:
            _at_work -= 1


SCALED_KERNELS = ("rbf", "poly", "sigmoid")
AT_ONCE = 2**16  # values, which stay in a cache between two passes


def gamma_of(kernel, gamma: str | float, n_features: int, variance: Callable[[], float]) -> float:
    """gamma for rows of d features whose values have a variance: 'scale' is 1 / (d variance),
    'auto' 1 / d; 0 of kernels that have none."""
    if kernel not in SCALED_KERNELS:
        return 0.0
    if isinstance(gamma, Real):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / n_features
    with np.errstate(over="ignore", invalid="ignore"):
        found = variance()
    return 1.0 / (n_features * found) if found > 0 else 1.0


def variance_of(X, weights: np.ndarray | None) -> float:
    """The variance of all entries of an array or sparse matrix (n, d), in float64. Weights (n,)
    or None count rows as copies."""
    if sparse.issparse(X):
        X = X.astype(np.float64)
        if weights is not None:
            X, weights = X[weights > 0], weights[weights > 0]
            total = weights.sum() * X.shape[1]
            row_sums = np.asarray(X.sum(axis=1)).ravel(), np.asarray(X.multiply(X).sum(axis=1))
            mean = weights @ row_sums[0] / total
            return float(weights @ row_sums[1].ravel() / total - mean**2)
        return float(X.multiply(X).mean() - X.mean() ** 2)
    if weights is None:
        weights = np.ones(len(X))
    some = slices(len(X), AT_ONCE // X.shape[1])
    total = weights.sum() * X.shape[1]
    mean = sum(float(weights[own] @ X[own].sum(axis=1, dtype=np.float64)) for own in some) / total
    squares = 0.0
    for own in some:
        from_mean = np.subtract(X[own], mean, dtype=np.float64)
        squares += float(weights[own] @ np.einsum("ij,ij->i", from_mean, from_mean))
    return squares / total


def largest_value(rows: Rows, options: dict) -> float:
    """The largest |K(x, x)| of rows under the kernel of training options, at least 1."""
    name = options["kernel"]
    if name == "precomputed":
        return max(1.0, float(np.abs(np.diagonal(of_square(rows, 1).dense)).max()))
    if name in ("rbf", "sigmoid"):
        return 1.0
    with np.errstate(over="ignore"):
        if rows.is_dense:
            parts = (rows.part(some).features for some in rows.slices())
            squares = np.concatenate([np.square(x, dtype=np.float64).sum(axis=1) for x in parts])
        else:
            row = np.repeat(np.arange(rows.n_samples), np.diff(rows.indptr))
            squares = np.bincount(row, np.square(rows.values, dtype=np.float64), rows.n_samples)
        if name == "polynomial":
            squares = np.abs(options["gamma"] * squares + options["coef0"]) ** options["degree"]
    return max(1.0, float(squares.max()))


def kernel_matrix(kernel, X, others) -> np.ndarray:
    """Values float64 (n, m) of a callable kernel of rows with others."""
    return np.asarray(dense(kernel(X, others)), dtype=np.float64, order="C")


def dense(values) -> np.ndarray:
    return values.toarray() if sparse.issparse(values) else np.asarray(values)
