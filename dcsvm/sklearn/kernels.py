"""Kernels as scikit-learn's users give them: gamma by the data, and kernels that are functions."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np
from scipy import sparse

from dcsvm.data.rows import Rows
from dcsvm.data.slices import slices
from dcsvm.kernel.precomputed import of_square

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
