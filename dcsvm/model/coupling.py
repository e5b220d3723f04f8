"""From decision values of pairs of classes to labels and to probabilities of classes.

Labels are LIBSVM's votes. Probabilities are the second method of Wu, Lin and Weng, "Probability
Estimates for Multi-class Classification by Pairwise Coupling" (JMLR 5, 2004), with the start and
the stopping rule of LIBSVM, so that they agree to the digits that it prints.
"""

from __future__ import annotations

import numpy as np

from dcsvm import _core

SMALLEST = 1e-7  # probability of a class of a pair
TOLERANCE = 0.005  # over the number of classes
LARGEST_SWEEPS = 100  # or the number of classes


def most_voted(values: np.ndarray, n_classes: int) -> np.ndarray:
    """Number of the class with most votes, int64 (n,), of equal votes the first.

    `values` (n, n_pairs) are decision values of the pairs (0, 1), (0, 2), ...: positive is a vote
    for the first class, nan is none, all else is one for the second.
    """
    return _core.most_voted(np.asarray(values, np.float64), n_classes)


def pair_probabilities(values: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Probability of the first class of each pair, (n, n_pairs): 1 / (1 + exp(A f + B)), at least
    1e-7 from 0 and 1, and one half where that is nan."""
    with np.errstate(over="ignore", invalid="ignore"):
        first = 1.0 / (1.0 + np.exp(A * values + B))
    return np.where(np.isnan(first), 0.5, np.clip(first, SMALLEST, 1.0 - SMALLEST))


def coupled(first: np.ndarray, n_classes: int) -> np.ndarray:
    """Probabilities (n, n_classes) of all classes from those of the first of each pair.

    They minimise sum_ij (r_ji p_i - r_ij p_j)^2 with sum p = 1, where r_ij is the probability of i
    in the pair of i and j: p'Qp with Q_ij = -r_ij r_ji and Q_ii = sum_s r_si^2.
    """
    if n_classes == 1:
        return np.ones((len(first), 1))
    if n_classes == 2:
        return np.hstack([first, 1.0 - first])
    r = np.zeros((len(first), n_classes, n_classes))
    i, j = np.triu_indices(n_classes, 1)
    r[:, i, j], r[:, j, i] = first, 1.0 - first
    Q = -r * r.transpose(0, 2, 1)
    diagonal = np.arange(n_classes)
    Q[:, diagonal, diagonal] = (r**2).sum(axis=1)
    return _minimised(Q)


def _minimised(Q: np.ndarray) -> np.ndarray:
    """p (n, k) with sum p = 1 that minimises p'Qp for Q (n, k, k).

    At the minimum Qp = (p'Qp) e (equation 47 of the paper). A step of its algorithm 2 makes
    entry t of that true and divides p by its new sum, 1 + step.
    """
    n, k = Q.shape[:2]
    result = np.empty((n, k))
    left = np.arange(n)
    p = np.full((n, k), 1.0 / k)
    for _ in range(max(LARGEST_SWEEPS, k)):
        Qp = np.einsum("nij,nj->ni", Q, p)
        pQp = (p * Qp).sum(axis=1)
        going = np.abs(Qp - pQp[:, None]).max(axis=1) >= TOLERANCE / k
        if not going.all():
            result[left[~going]] = p[~going]
            left, Q, p, Qp, pQp = left[going], Q[going], p[going], Qp[going], pQp[going]
        if len(left) == 0:
            return result
        for t in range(k):
            step = (pQp - Qp[:, t]) / Q[:, t, t]
            scale = 1.0 / (1.0 + step)
            pQp = (pQp + step * (2.0 * Qp[:, t] + step * Q[:, t, t])) * scale**2
            Qp = (Qp + step[:, None] * Q[:, t]) * scale[:, None]
            p[:, t] += step
            p *= scale[:, None]
    result[left] = p
    return result
