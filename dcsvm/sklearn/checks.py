"""What a fit is given, as training takes it: rows in float32, weights, and threads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from scipy import sparse

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.small_work import threads_that_pay
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
