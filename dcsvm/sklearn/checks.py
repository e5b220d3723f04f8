"""What is given to fit, as training takes it: rows in float32, and weights."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse

from dcsvm.data.rows import Rows

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
    values = rows.dense if rows.is_dense else rows.values
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
