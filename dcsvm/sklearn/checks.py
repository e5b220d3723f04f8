"""Convert the input of a fit: rows in float32, weights, gamma, and threads."""

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.data.sorting import slices
from dcsvm.kernel.kernel_rows import of_square, threads_that_pay
from dcsvm.kernel.kernels import Kernel
from dcsvm.machine import default_threads, is_forked, usable_threads
from dcsvm.problem.data_gamma import RowStatistics, with_number
from dcsvm.problem.option_table import is_per_median
from dcsvm.problem.options import TrainOptions
from dcsvm.sklearn.parameters import KERNELS, kernel_type

Input: TypeAlias = "ArrayLike | sparse.spmatrix | sparse.sparray"  # from users; also data frames
Matrix: TypeAlias = np.ndarray | sparse.csr_matrix  # rows checked by scikit-learn
Weights = np.ndarray | None  # float64 (n,)
Arguments = tuple[Input, ArrayLike | None, ArrayLike | None]  # X, y and sample_weight of fit

MIN_SIZE, MAX_SIZE = 1e-15, 1e15  # magnitudes whose squares float32 can represent
LOOKED_AT = 1000  # rows sampled to check the offsets of features
MAX_OFFSET = 1e5  # |mean| / standard deviation of a feature; float32 has 7 digits
NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values"
    " and need to be preprocessed."
)


def rows_to_fit(X: Matrix) -> Rows:
    """Convert checked input to rows. Raises ValueError if squares of values overflow float32."""
    try:
        rows = Rows.from_array(X)
    except ValueError as reason:
        if "finite float32" not in str(reason):
            raise
        raise ValueError(f"{NOT_FINITE} ({reason})") from None
    values = rows.csr.values if rows.dense is None else rows.dense
    size = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    if size > MAX_SIZE or 0 < size < MIN_SIZE:
        raise ValueError(f"{NOT_FINITE} (squares of features of {size:.0e} are beyond float32)")
    return rows


def warn_of_offsets(X: Matrix) -> None:
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
            stacklevel=5,
        )


def checked_weights(sample_weight: ArrayLike | None, X: Matrix) -> Weights:
    """Convert sample weights to float64 (n,) and set negative weights to 0; None stays None.

    Raises ValueError.
    """
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
_n_active = 0  # fits and predictions in progress


@contextmanager
def threads_for(threads: int | None, rows: Rows, n_others: int) -> Iterator[int]:
    """Choose the number of threads to evaluate the kernel of `rows` with `n_others` rows.

    The default is the limit set by OMP_NUM_THREADS, threadpoolctl and joblib. It is divided among
    the active fits and predictions of this process. Small work and forked processes use 1 thread.
    """
    global _n_active
    with _lock:
        _n_active += 1
        n_shares = _n_active
    try:
        if is_forked():
            yield 1
        elif threads is not None:
            yield usable_threads(threads)
        else:
            limit = min(default_threads(), _core.allowed_threads())
            yield threads_that_pay(max(1, limit // n_shares), rows, n_others)
    finally:
        with _lock:
            _n_active -= 1


BATCH_SIZE = 2**16  # values per batch, which fits the cache


def gamma_of(
    kernel: Any, gamma: str | float | None, rows: RowStatistics, variance: Callable[[], float]
) -> float:
    """Compute gamma: 'scale' is 1 / (n_features variance), 'auto' is 1 / n_features.

    'F/median' is computed by `with_number`. gamma is 0 for kernels that have none. Raises
    OptionError.
    """
    if is_per_median(gamma):
        known = kernel_type(kernel)
        assert known is not None  # scikit-learn has validated it
        number = with_number(TrainOptions(kernel=known.name, gamma=gamma), rows).gamma
        assert isinstance(number, float)
        return number
    if callable(kernel) or not KERNELS[kernel].has_gamma:
        return 0.0
    if isinstance(gamma, Real):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / rows.n_features
    with np.errstate(over="ignore", invalid="ignore"):
        value = variance()
    return 1.0 / (rows.n_features * value) if value > 0 else 1.0


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
    batches = slices(len(X), BATCH_SIZE // X.shape[1])
    total = weights.sum() * X.shape[1]
    mean = sum(float(weights[at] @ X[at].sum(axis=1, dtype=np.float64)) for at in batches) / total
    squares = 0.0
    for at in batches:
        deviation = np.subtract(X[at], mean, dtype=np.float64)
        squares += float(weights[at] @ np.einsum("ij,ij->i", deviation, deviation))
    return squares / total


def largest_value(rows: Rows, options: dict[str, Any]) -> float:
    """Return the largest |K(x, x)| of the rows, but at least 1; `options` give the kernel."""
    kernel = Kernel(options["kernel"], options["gamma"], options["coef0"], options["degree"])
    if kernel.is_precomputed:
        return max(1.0, float(np.abs(np.diagonal(of_square(rows, 1).features)).max()))
    diagonal = kernel.type.diagonal
    if diagonal is None:
        return 1.0
    with np.errstate(over="ignore"):
        if rows.is_dense:
            parts = (rows.part(batch).features for batch in rows.slices())
            squares = np.concatenate([np.square(x, dtype=np.float64).sum(axis=1) for x in parts])
        else:
            row = np.repeat(np.arange(rows.n_samples), np.diff(rows.csr.indptr))
            squares = np.bincount(row, np.square(rows.csr.values, dtype=np.float64), rows.n_samples)
        return max(1.0, float(diagonal(kernel, squares).max()))


def kernel_matrix(kernel: Callable[..., Any], X: Input, others: Input) -> np.ndarray:
    """Compute the kernel matrix, float64 (n, m), of a callable kernel."""
    return np.asarray(dense(kernel(X, others)), dtype=np.float64, order="C")


def dense(values: Any) -> np.ndarray:
    """Convert an array or a sparse matrix to an array."""
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)
