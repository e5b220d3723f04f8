"""Predict by all clusters of an early model at once, as the paper compares with early prediction.

Both methods take an early model of two classes, without a bias and with an rbf kernel, so that
K(x, x) = 1, and return decision values.

Tresp, "A Bayesian Committee Machine" (Neural Computation 12, 2000), for one row at a time: clusters
m = 1..M that learnt f ~ N(0, K) from different rows know f(x) with mean f_m and variance v_m; all
of them know it with the precision P = sum_m 1/v_m - (M - 1) and the mean sum_m f_m/v_m / P. f_m is
the decision value of the cluster's SVM, and v_m the variance left where f was observed at its
support vectors S with a noise of RIDGE: 1 - k'(K_SS + RIDGE)^-1 k for k = K(S, x). A cluster far
from x has v_m = 1 and does not count.
"""

from __future__ import annotations

import numpy as np

from dcsvm.kernel.kernels import Kernel
from dcsvm.model.model import Model
from paper.fitted import expansion, in_blocks, kernel_matrix
from paper.problems import dense

MAX_COVARIANCE = 256  # support vectors per cluster, evenly spaced: fewer only increase v_m
RIDGE = 1e-3  # and the smallest variance


def naive(model: Model, X: np.ndarray, threads: int) -> np.ndarray:
    """Sum the models of all clusters on rows X (n, d): float64 (n,)."""
    early = model.early
    return expansion(model.kernel, dense(early.rows), early.dual_coef[0], threads)(X)


def bcm(model: Model, X: np.ndarray, threads: int) -> np.ndarray:
    """Compute the mean of the Bayesian committee on rows X (n, d): float64 (n,)."""
    early, rows = model.early, dense(model.early.rows)
    total, precision = np.zeros(len(X)), np.ones(len(X))
    for cluster in np.unique(early.cluster):
        own = early.cluster == cluster
        support, alpha = rows[own], early.dual_coef[0][own]
        values = expansion(model.kernel, support, alpha, threads)(X)
        gained = gained_precision(model.kernel, evenly_spaced(support), X)
        total += (1 + gained) * values
        precision += gained
    return total / precision


def evenly_spaced(support: np.ndarray) -> np.ndarray:
    """Select at most MAX_COVARIANCE of the rows (n, d)."""
    size = min(len(support), MAX_COVARIANCE)
    return support[np.arange(size) * len(support) // size]


def gained_precision(kernel: Kernel, support: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Compute the precision 1 / v - 1 (n,) of f(x) gained by observing f at the rows `support`."""
    noisy = kernel_matrix(kernel, *(support.astype(float),) * 2) + RIDGE * np.eye(len(support))
    whitening = np.linalg.inv(np.linalg.cholesky(noisy)).T.astype(X.dtype)

    def explained(block: np.ndarray) -> np.ndarray:
        return np.sum((kernel_matrix(kernel, block, support) @ whitening) ** 2, axis=1)

    variance = np.clip(1.0 - in_blocks(explained, X).astype(float), RIDGE, 1.0)
    return 1.0 / variance - 1.0
