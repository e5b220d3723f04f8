"""What support vectors weigh in the decision values of all pairs of classes.

A support vector of class i counts in the k - 1 pairs of i, where its coefficient is not 0.
"""

from __future__ import annotations

import weakref

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import ClusterRanges, Evaluation, KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import Sources
from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts

_kept: weakref.WeakKeyDictionary[ExactModel | EarlyModel, PairWeights] = weakref.WeakKeyDictionary()


class PairWeights:
    """The weights of a model's support vectors, as KernelRows.product takes them."""

    def __init__(self, part: ExactModel | EarlyModel, n_pairs: int):
        self.coefficients, self.n_pairs = part.dual_coef, n_pairs
        if n_pairs == 1:
            self.coefficients = np.ascontiguousarray(part.dual_coef[0])
            return
        coef = part.dual_coef.T
        pair = pairs_of_lines(part.class_, coef.shape[1] + 1)
        used = coef != 0
        self.indptr = np.concatenate(([0], np.cumsum(used.sum(axis=1)))).astype(np.int64)
        self.pair, self.coefficients = pair[used], coef[used]

    @staticmethod
    def kept(part: ExactModel | EarlyModel, n_pairs: int) -> PairWeights:
        """Those of an earlier call with this very part, which are kept for as long as it is, or new
        ones. Of two threads that come first one may make them in vain."""
        weights = _kept.get(part)
        if weights is None:
            weights = _kept[part] = PairWeights(part, n_pairs)
        return weights

    def all(self):
        if self.n_pairs == 1:
            return self.coefficients
        return self.indptr, self.pair, self.coefficients, self.n_pairs

    def ordered(self, order: np.ndarray):
        """Those of the support vectors in another order."""
        if self.n_pairs == 1:
            return self.coefficients[order]
        lengths = np.diff(self.indptr)[order]
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[order] - indptr[:-1], lengths)
        return indptr, self.pair[places], self.coefficients[places], self.n_pairs

    def totals(self) -> np.ndarray:
        """Sum of |coefficients| of every pair, float64 (n_pairs,)."""
        _, pair, coefficients = self.entries()
        return np.bincount(pair, np.abs(coefficients), self.n_pairs)

    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(support vector, pair, coefficient) of all coefficients that are not 0, support vectors
        ascending."""
        if self.n_pairs == 1:
            owner = np.flatnonzero(self.coefficients)
            return owner, np.zeros(len(owner), np.int64), self.coefficients[owner]
        owner = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return owner, self.pair, self.coefficients


def pairs_of_lines(class_: np.ndarray, n_classes: int) -> np.ndarray:
    """The pair that each line of the coefficients is for, int32 (n, n_classes - 1), of support
    vectors of these classes (n,)."""
    class_, n_others = class_[:, None].astype(np.int32), n_classes - 1
    every = np.arange(n_others, dtype=np.int32)
    other = every + (every >= class_)
    first, second = np.minimum(other, class_), np.maximum(other, class_)
    return first * n_others - first * (first - 1) // 2 + second - first - 1


SAMPLED = 64  # support vectors
# Errors that show nowhere: of the margin, which training knows to 1e-3, and of the spread of the
# values of a regression. a9a with C = 32 has 4e-5.
SMALL, SMALL_OF_REGRESSION = 1e-4, 2e-5
ROUNDING = 2.0**-22  # at most, of a kernel value that is at most 1

_is_needed: weakref.WeakKeyDictionary[ExactModel | EarlyModel, tuple[Kernel, bool]]
_is_needed = weakref.WeakKeyDictionary()


def is_seen(error: float, size: float, *, is_regression: bool = False) -> bool:
    """Whether an error of decision values shows beside what they are compared with: the margin, or
    the spread of the values of a regression. One that is not a number does."""
    return not error <= (SMALL_OF_REGRESSION if is_regression else SMALL) * size


def needs_float64(model: ModelParts, part: ExactModel | EarlyModel) -> bool:
    """Whether float32 kernel values would show in the decision values of a part of a model: each is
    off by some 2^-24 of it. That is found once for a model, from its weights and some of its
    support vectors, so that it does not depend on the rows that are predicted."""
    found = _is_needed.get(part)
    if found is None or found[0] != model.kernel:
        found = _is_needed[part] = model.kernel, _shows(model, part)
    return found[1]


def _shows(model: ModelParts, part: ExactModel | EarlyModel) -> bool:
    kernel, weights = model.kernel, PairWeights.kept(part, model.n_pairs)
    if kernel.is_precomputed or part.rows.n_samples == 0:
        return False
    is_regression = not (model.is_classifier or model.svm_type == "one_class")
    margin = 1.0 if model.is_classifier else float(np.nanmax(np.abs(part.rho), initial=0.0))
    if kernel.type.is_within_one and not is_regression:
        most = ROUNDING * weights.totals().max(initial=0.0)
        if not is_seen(most, margin, is_regression=False):
            return False
    sources = Sources.kept(part.rows, kernel).form()
    n = part.rows.n_samples
    some = np.unique(np.linspace(0, n - 1, SAMPLED).astype(np.int32))
    rounded, exact = (_values(part, sources, weights.all(), some, float64=f) for f in (False, True))
    if is_regression:
        margin = float(np.std(exact))
    error = float(np.max(np.abs(rounded - exact)))  # nan where float32 does not hold them
    return is_seen(error, margin, is_regression=is_regression)


def _values(
    part: ExactModel | EarlyModel, sources: KernelRows, weights, some: np.ndarray, *, float64: bool
) -> np.ndarray:
    """Decision values, but for rho, of some support vectors (ascending), each in its cluster."""
    if isinstance(part, ExactModel):
        return sources.product(weights, target_rows=some, how=Evaluation(float64))
    ranges = ClusterRanges.of(part.cluster[some], part.cluster)
    return sources.cluster_product(weights, ranges, sources, some, float64)


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

    The second method of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by
    Pairwise Coupling" (JMLR 5, 2004), with the start and the stopping rule of LIBSVM, so that they
    agree to the digits that it prints.
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
