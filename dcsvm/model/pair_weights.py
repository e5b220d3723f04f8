"""Compute pair coefficients of support vectors, votes, and coupled probabilities.

A support vector of class i has a coefficient for each of the k - 1 pairs that contain i. Only
nonzero coefficients are stored.
"""

from __future__ import annotations

import weakref

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import distinct
from dcsvm.kernel.kernel_rows import ClusterRanges, KernelEvalOptions, KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import EncodedSources
from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts

# One column, or a CSR matrix (indptr, columns, coefficients, n_columns): see KernelRows.product.
Weights = np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray, int]

SAMPLED = 64  # support vectors on which the rounding error is measured
# Largest negligible error of a decision value: relative to the margin, which training determines to
# 1e-3, or to the standard deviation of a regression's values. a9a with C = 32 has an error of 4e-5.
SMALL, SMALL_OF_REGRESSION = 1e-4, 2e-5
ROUNDING = 2.0**-22  # bound on the rounding error of a kernel value up to 1
MIN_PROBABILITY = 1e-7  # smallest probability of a class in its pair
TOLERANCE = 0.005  # of the optimality condition in _minimize; divided by the number of classes
MAX_SWEEPS = 100  # of _minimize; the number of classes if that is larger

_kept: weakref.WeakKeyDictionary[ExactModel | EarlyModel, PairWeights] = weakref.WeakKeyDictionary()
_is_needed: weakref.WeakKeyDictionary[ExactModel | EarlyModel, tuple[Kernel, bool]]
_is_needed = weakref.WeakKeyDictionary()


class PairWeights:
    """Pair coefficients of a part's support vectors, in the form that KernelRows.product takes."""

    def __init__(self, part: ExactModel | EarlyModel, n_pairs: int):
        self.coefficients, self.n_pairs = part.dual_coef, n_pairs
        if n_pairs == 1:
            self.coefficients = np.ascontiguousarray(part.dual_coef[0])
            return
        assert part.class_ is not None  # several pairs imply classes
        coef = part.dual_coef.T
        pair = pairs_of_lines(part.class_, coef.shape[1] + 1)
        used = coef != 0
        self.indptr = np.concatenate(([0], np.cumsum(used.sum(axis=1)))).astype(np.int64)
        self.pair, self.coefficients = pair[used], coef[used]

    @staticmethod
    def kept(part: ExactModel | EarlyModel, n_pairs: int) -> PairWeights:
        """Return the weights of a part, cached for the lifetime of the part."""
        weights = _kept.get(part)
        if weights is None:  # two threads may both compute them
            weights = _kept[part] = PairWeights(part, n_pairs)
        return weights

    def all(self) -> Weights:
        if self.n_pairs == 1:
            return self.coefficients
        return self.indptr, self.pair, self.coefficients, self.n_pairs

    def ordered(self, order: np.ndarray) -> Weights:
        """Return the weights of the support vectors in another order."""
        if self.n_pairs == 1:
            return self.coefficients[order]
        lengths = np.diff(self.indptr)[order]
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[order] - indptr[:-1], lengths)
        return indptr, self.pair[entries], self.coefficients[entries], self.n_pairs

    def totals(self) -> np.ndarray:
        """Sum the |coefficients| of each pair, float64 (n_pairs,)."""
        _, pair, coefficients = self.entries()
        return np.bincount(pair, np.abs(coefficients), self.n_pairs)

    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return arrays (support vector, pair, coefficient) of nonzeros, by support vector."""
        if self.n_pairs == 1:
            owner = np.flatnonzero(self.coefficients)
            return owner, np.zeros(len(owner), np.int64), self.coefficients[owner]
        owner = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return owner, self.pair, self.coefficients


def pairs_of_lines(class_: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the pair index of each coefficient, int32 (n, n_classes - 1), by classes (n,)."""
    class_, n_others = class_[:, None].astype(np.int32), n_classes - 1
    line = np.arange(n_others, dtype=np.int32)
    other = line + (line >= class_)
    first, second = np.minimum(other, class_), np.maximum(other, class_)
    return first * n_others - first * (first - 1) // 2 + second - first - 1


def is_seen(error: float, size: float, *, is_regression: bool = False) -> bool:
    """Return whether an error of decision values is too large to ignore; nan is too large.

    `size` is the margin, or the standard deviation of the values of a regression.
    """
    return not error <= (SMALL_OF_REGRESSION if is_regression else SMALL) * size


def needs_float64(model: ModelParts, part: ExactModel | EarlyModel) -> bool:
    """Return whether decision values need float64 kernel values.

    Rounding to float32 changes a kernel value by a factor of up to 1 + 2^-24. The effect is
    measured once per part, on some of its support vectors, because the precision must not depend on
    the rows to predict.
    """
    cached = _is_needed.get(part)
    if cached is None or cached[0] != model.kernel:
        cached = _is_needed[part] = model.kernel, _shows(model, part)
    return cached[1]


def _shows(model: ModelParts, part: ExactModel | EarlyModel) -> bool:
    kernel, weights = model.kernel, PairWeights.kept(part, model.n_pairs)
    if kernel.is_precomputed or part.rows.n_samples == 0:
        return False
    margin = 1.0 if model.is_classifier else float(np.nanmax(np.abs(part.rho), initial=0.0))
    if kernel.type.is_within_one and not model.is_regression:
        bound = ROUNDING * weights.totals().max(initial=0.0)
        if not is_seen(bound, margin):
            return False
    sources = EncodedSources.cached(part.rows, kernel).form()
    assert sources is not None  # only the "stepped" form can be missing
    sample = distinct(np.linspace(0, part.rows.n_samples - 1, SAMPLED).astype(np.int32))
    rounded, exact = (_values(part, sources, weights.all(), sample, f) for f in (False, True))
    if model.is_regression:
        margin = float(np.std(exact))
    error = float(np.max(np.abs(rounded - exact)))  # nan if values exceed float32
    return is_seen(error, margin, is_regression=model.is_regression)


def _values(
    part: ExactModel | EarlyModel,
    sources: KernelRows,
    weights: Weights,
    sample: np.ndarray,
    float64: bool,
) -> np.ndarray:
    """Compute decision values, without rho, of the support vectors `sample`, which must ascend.

    In an early model each value uses the support vectors of the same cluster.
    """
    if isinstance(part, ExactModel):
        return sources.product(weights, target_rows=sample, how=KernelEvalOptions(float64))
    ranges = ClusterRanges.of(part.cluster[sample], part.cluster)
    return sources.cluster_product(weights, ranges, sources, sample, float64)


def most_voted(values: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the class index with the most votes, int64 (n,); ties go to the first.

    `values` (n, n_pairs) are decision values of the pairs (0, 1), (0, 2), ...: positive is a vote
    for the first class, nan is no vote, and any other value is a vote for the second.
    """
    return _core.most_voted(np.asarray(values, np.float64), n_classes)


def pair_probabilities(values: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute 1 / (1 + exp(a f + b)), the probability of the first class of each pair (n, n_pairs).

    `values` are the decision values f. Probabilities are clipped to [1e-7, 1 - 1e-7]. A nan gives
    1/2.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        first = 1.0 / (1.0 + np.exp(a * values + b))
    return np.where(np.isnan(first), 0.5, np.clip(first, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY))


def coupled(first: np.ndarray, n_classes: int) -> np.ndarray:
    """Compute class probabilities (n, n_classes) from the probabilities of the pairs.

    This is the second method of Wu, Lin and Weng, "Probability Estimates for Multi-class
    Classification by Pairwise Coupling" (JMLR 5, 2004). The start and the stopping rule are
    LIBSVM's, so results agree with LIBSVM's in all digits that it prints. Let r_ij be the
    probability of class i in the pair of i and j. The method minimizes
    sum_ij (r_ji p_i - r_ij p_j)^2 subject to sum p = 1. The objective is p'Qp, up to a factor, with
    Q_ij = -r_ij r_ji and Q_ii = sum_s r_si^2.
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
    return _minimize(Q)


def _minimize(Q: np.ndarray) -> np.ndarray:
    """Minimize p'Qp subject to sum p = 1 for Q (n, k, k); returns p (n, k).

    At the minimum Qp = (p'Qp) e, where e is all ones (Equation 47 of the paper). A step of the
    paper's Algorithm 2 changes p_t so that entry t of this equation holds. It then divides p by its
    new sum, 1 + step.
    """
    n, k = Q.shape[:2]
    result = np.empty((n, k))
    remaining = np.arange(n)
    p = np.full((n, k), 1.0 / k)
    for _ in range(max(MAX_SWEEPS, k)):
        product = np.einsum("nij,nj->ni", Q, p)
        value = (p * product).sum(axis=1)
        active = np.abs(product - value[:, None]).max(axis=1) >= TOLERANCE / k
        if not active.all():
            result[remaining[~active]] = p[~active]
            remaining, Q, p = remaining[active], Q[active], p[active]
            product, value = product[active], value[active]
        if len(remaining) == 0:
            return result
        for t in range(k):
            step = (value - product[:, t]) / Q[:, t, t]
            scale = 1.0 / (1.0 + step)
            value = (value + step * (2.0 * product[:, t] + step * Q[:, t, t])) * scale**2
            product = (product + step[:, None] * Q[:, t]) * scale[:, None]
            p[:, t] += step
            p *= scale[:, None]
    result[remaining] = p
    return result
