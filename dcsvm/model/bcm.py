"""Prediction by a committee of the early level's clusters, for comparison with early prediction.

Tresp, "A Bayesian Committee Machine" (Neural Computation 12, 2000), for one row at a time. Clusters
m = 1..M that learnt f ~ N(0, K) from different rows know f(x) with mean f_m and variance v_m; all
of them know it with the precision P = sum_m 1/v_m - (M - 1)/K(x, x) and the mean sum_m f_m/v_m / P.
f_m is the decision value of the cluster's SVM, and v_m the variance left where f was observed at
its support vectors S with a noise of RIDGE: K(x, x) - k'(K_SS + RIDGE)^-1 k for k = K(S, x). It is
taken of some of S where they are many, which can only make it larger. A cluster far from x has v_m
= K(x, x) and says nothing. With a bias the prior means are -rho_m, and their average for all.

Of a pair of classes that a cluster has one class of it says nothing if it has no support vectors
for it, as with a bias. Not for kernels that are no covariances, nor for precomputed ones, of which
K(x, x) is unknown. Rows are predicted each for itself, where Tresp lets them inform each other.
"""

from __future__ import annotations

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import two_sides
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import Meeting
from dcsvm.model.pair_weights import PairWeights, local_offsets
from dcsvm.model.parts import EarlyModel

LARGEST_COVARIANCE = 256  # support vectors of a cluster's pair, evenly spaced, that it is taken of
RIDGE = 1e-3  # of the mean prior variance of the support vectors, and the least part left of one
ROWS_AT_ONCE = 8192
SQUARE = Kernel("polynomial", gamma=1.0, coef0=0.0, degree=2)


def check_committee(kernel: Kernel) -> None:
    """Raise ValueError for a kernel that gives no variances."""
    if kernel.is_precomputed:
        raise ValueError(
            "bcm prediction needs K(x, x) of the rows to predict, which precomputed kernels lack"
        )
    if not kernel.is_positive_semidefinite:
        raise ValueError(
            f"bcm prediction needs a positive semidefinite kernel, not {kernel.describe()}"
        )


def committee_values(
    part: EarlyModel,
    weights: PairWeights,
    meeting: Meeting,
) -> np.ndarray:
    """Mean of the committee float64 (n, n_pairs) for the targets; 0 or the average offset where no
    cluster says anything."""
    offset = local_offsets(part, weights)
    n_models = np.count_nonzero(~np.isnan(part.rho), axis=0)
    prior = prior_variances(meeting.sources.kernel, meeting.rows)
    total = np.tile(offset.sum(axis=0) / np.maximum(n_models, 1), (len(prior), 1))
    precision = np.ones_like(total)  # times the prior variance
    owner, pair, _ = weights.entries()
    first = np.searchsorted(part.cluster, np.arange(len(offset) + 1))
    for c, (begin, end) in enumerate(zip(first[:-1], first[1:], strict=True)):
        sources = np.arange(begin, end, dtype=np.int32)
        sums = meeting.product(weights.of(begin, end), sources)
        local = slice(*np.searchsorted(owner, [begin, end]))
        for p in np.unique(pair[local]):
            chosen = some_of(owner[local][pair[local] == p])
            gained = gained_precision(meeting, prior, chosen)
            total[:, p] += (1.0 + gained) * sums[:, p] + gained * offset[c, p]
            precision[:, p] += gained
    return total / precision


def some_of(support_vectors: np.ndarray) -> np.ndarray:
    """At most LARGEST_COVARIANCE of them, int32, evenly spaced."""
    n = len(support_vectors)
    size = min(n, LARGEST_COVARIANCE)
    return support_vectors[np.arange(size) * n // max(size, 1)].astype(np.int32)


def prior_variances(kernel: Kernel, rows: Rows) -> np.ndarray:
    """K(x, x) of the rows, float64 (n,)."""
    if kernel.name == "rbf":
        return np.ones(rows.n_samples)
    if rows.is_dense:
        features = rows.features
        squared = np.einsum("ij,ij->i", features, features, dtype=np.float64)
    else:
        row = np.repeat(np.arange(rows.n_samples), np.diff(rows.indptr))
        squares = rows.values.astype(np.float64) ** 2
        squared = np.bincount(row, weights=squares, minlength=rows.n_samples)
    if kernel.name == "linear":
        return squared
    return (kernel.gamma * squared + kernel.coef0) ** kernel.degree


def gained_precision(meeting: Meeting, prior: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """K(x, x) / v(x) - 1 of the targets (n,): what observing f at the `chosen` support vectors adds
    to the precision, in units of the prior's. At most 1/RIDGE - 1."""
    from scipy.linalg import solve_triangular  # slow to import, and used here alone

    support = meeting.sources
    matrix = support.matrix(chosen, target_rows=chosen)
    scale = float(np.mean(np.diagonal(matrix), dtype=np.float64))
    if scale == 0:
        return np.zeros(len(prior))
    identity = np.eye(len(chosen))
    root = np.linalg.cholesky(matrix.astype(np.float64) / scale + RIDGE * identity)
    whitening = dense_rows(solve_triangular(root, identity, lower=True))
    explained = np.empty(len(prior))
    for begin in range(0, len(prior), ROWS_AT_ONCE):
        some = np.arange(begin, min(begin + ROWS_AT_ONCE, len(prior)), dtype=np.int32)
        near = meeting.matrix(chosen, some)
        # |L^-1 k|^2 is a sum of kernel values (l'k)^2 over the rows l of L^-1
        a, b = two_sides(dense_rows(near / scale), whitening, SQUARE, support.threads)
        ones = np.ones(len(chosen))
        explained[some] = b.product(ones, targets=a)[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.clip(1.0 - explained * (scale / prior), RIDGE, 1.0)
    return np.where(prior > 0, 1.0 / left - 1.0, 0.0)


def dense_rows(matrix: np.ndarray) -> Rows:
    return Rows(*matrix.shape, dense=np.ascontiguousarray(matrix, dtype=np.float32))
