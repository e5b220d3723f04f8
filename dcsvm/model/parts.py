"""The parts of a trained model, as stored in a model file; pair coefficients, votes, probabilities.

A support vector of class i has a coefficient for each of the k - 1 pairs that contain i. Only
nonzero coefficients are stored.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import distinct
from dcsvm.data.columns import TableEncoding
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.data.scaling import Scaling
from dcsvm.kernel.kernel_rows import ClusterRanges, KernelEvalOptions, KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import EncodedSources, Partition
from dcsvm.problem.option_table import CLASSIFIERS

AnyParts = TypeVar("AnyParts", bound="ModelParts")


@dataclass(frozen=True)
class ConvergenceStatus:
    """Convergence status of an exact solution.

    `violation` is the largest KKT violation found. `gap` is the duality gap, or None without one.
    """

    converged: bool
    violation: float
    gap: float | None


@dataclass(frozen=True, eq=False)
class ExactModel:
    """Exact solution: support vectors of the whole problem.

    Attributes
    ----------
    rows : Rows (n_sv, n_features)
        Support vectors, sorted by class in the order of the labels.
    dual_coef : float64 (k - 1, n_sv), or (1, n_sv) without classes
        LIBSVM's sv_coef. For a support vector of class i, row j has its coefficient in the pair
        with class j if j < i, and with class j + 1 if j >= i.
    rho : float64 (n_pairs,)
        The decision value of a pair is sum dual_coef K - rho. Pairs are (0, 1), (0, 2), ...,
        (k - 2, k - 1).
    n_sv : int64 (k,) or None
        Number of support vectors of each class; None without classes.
    row_numbers : int64 (n_sv,) or None
        Indices of the support vectors in the training file, from 0. A compressed model has
        0, 1, ..., n_sv - 1. None if the model file lacks them.
    status : ConvergenceStatus or None
        Convergence status; None if the model file lacks it.
    """

    rows: Rows
    dual_coef: np.ndarray
    rho: np.ndarray
    n_sv: np.ndarray | None = None
    row_numbers: np.ndarray | None = None
    status: ConvergenceStatus | None = None

    @property
    def class_(self) -> np.ndarray | None:
        """The class index of each support vector, int64 (n_sv,)."""
        return None if self.n_sv is None else np.repeat(np.arange(len(self.n_sv)), self.n_sv)

    @property
    def distinct(self) -> np.ndarray:
        """Positions of the distinct support vectors, by class: all of them."""
        return np.arange(self.rows.n_samples)

    def with_features(self, n_features: int) -> ExactModel:
        if n_features == self.rows.n_features:
            return self
        return replace(self, rows=self.rows.with_features(n_features))


@dataclass(frozen=True, eq=False)
class EarlyModel:
    """One model per cluster of a level, and the partition that assigns rows to clusters.

    Support vectors are sorted by cluster, then class, then index in the training file. A row can be
    a support vector of two clusters.

    Attributes
    ----------
    level : int
        The level of the clusters.
    partition : Partition
        The tree of clusters.
    cluster : int32 (n_sv,)
        Cluster of each support vector.
    class_ : int32 (n_sv,) or None
        Class index of each support vector; None without classes.
    rows : Rows (n_sv, n_features)
        Support vectors.
    dual_coef : float64 (k - 1, n_sv), or (1, n_sv) without classes
        As in ExactModel, within the cluster.
    rho : float64 (n_clusters, n_pairs)
        If a cluster has only one class of a pair, the coefficients of the pair are 0, and rho is -1
        for the first class, +1 for the second. If it has neither, rho is nan and the pair does not
        vote.
    row_numbers : int64 (n_sv,)
        Indices of the support vectors in the training file, from 0.
    """

    level: int
    partition: Partition
    cluster: np.ndarray
    class_: np.ndarray | None
    rows: Rows
    dual_coef: np.ndarray
    rho: np.ndarray
    row_numbers: np.ndarray

    @property
    def distinct(self) -> np.ndarray:
        """Positions of the distinct support vectors, by class; some are in several clusters."""
        _, first = np.unique(self.row_numbers, return_index=True)
        if self.class_ is None:
            return first
        return first[np.argsort(self.class_[first], kind="stable")]

    def with_features(self, n_features: int) -> EarlyModel:
        if n_features == self.rows.n_features:
            return self
        sample = self.partition.sample.with_features(n_features)
        return replace(
            self,
            rows=self.rows.with_features(n_features),
            partition=replace(self.partition, sample=sample),
        )


@dataclass(frozen=True, eq=False)
class Probability:
    """Parameters of probability estimates from decision values f: LIBSVM's probA and probB.

    For a classifier `A` and `B` are float64 (n_pairs,), and the first class of a pair has the
    probability 1 / (1 + exp(A f + B)). For regression `A` (1,) is the scale of the Laplace
    distribution of the errors, and `B` is None.
    """

    A: np.ndarray
    B: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class ModelParts:
    """Contents of a model file: the exact solution, the early level, or both.

    `labels` (k,) are the labels of the classes, float64 or strings, empty for one-class and
    regression. `scaling` was applied to the training rows, and is applied to the rows to predict;
    None without scaling. `first_index` is the index of column 0 in files, 0 or 1. `table` encodes
    the columns of a table as features; None if the training set was no table.
    """

    kernel: Kernel
    labels: np.ndarray
    exact: ExactModel | None
    early: EarlyModel | None
    svm_type: str = "c_svc"
    probability: Probability | None = None
    scaling: Scaling | None = None
    first_index: int = 1
    table: TableEncoding | None = None

    def part(self, method: str | None = None) -> ExactModel | EarlyModel:
        """Return the part that a method uses; None prefers the exact solution.

        Raises ValueError if the model has no such part.
        """
        if method not in (None, "exact", "early"):
            raise ValueError(f"method must be one of exact, early, got {method!r}")
        part: ExactModel | EarlyModel | None = self.early if method == "early" else self.exact
        if method is None:
            part = self.exact or self.early
        if part is None:
            missing = "exact solution" if method == "exact" else "early level"
            raise ValueError(f"the model has no {missing}")
        return part

    def with_only(self, part: ExactModel | EarlyModel) -> ModelParts:
        """Return the model with this part and without the other."""
        if isinstance(part, ExactModel):
            return replace(self, exact=part, early=None)
        return replace(self, exact=None, early=part)

    def with_own_rows(self: AnyParts) -> AnyParts:
        """Return the model with copies of support vectors that are a selection of other rows."""
        return replace(self, exact=_with_own_rows(self.exact), early=_with_own_rows(self.early))

    @property
    def says_first_index(self) -> bool:
        """Whether `first_index` is known. A LIBSVM file reveals only 0, by a feature index 0."""
        return self.first_index == 0 or self.exact is None or self.exact.row_numbers is not None

    def for_first_index(self, first_index: int) -> ModelParts:
        """Return the model with this first index; its own must be unknown or the same."""
        if first_index == self.first_index:
            return self
        assert self.exact is not None  # the file of an early model states its first index
        exact = replace(self.exact, rows=self.exact.rows.after_empty_column())
        return replace(self, exact=exact, first_index=first_index)

    @property
    def feature_names(self) -> list[str]:
        """Names of the scaled features of a table, or their indices; empty without a scaling."""
        if self.scaling is None:
            return []
        if self.table is None:
            return [str(index) for index in self.scaling.indices]
        names = self.table.feature_names
        return [names[column] for column in self.scaling.columns]

    @property
    def is_classifier(self) -> bool:
        return self.svm_type in CLASSIFIERS

    @property
    def is_regression(self) -> bool:
        return not self.is_classifier and self.svm_type != "one_class"

    @property
    def n_pairs(self) -> int:
        """The number of decision values of a row."""
        k = len(self.labels)
        return k * (k - 1) // 2 if self.is_classifier else 1


def _with_own_rows(part: Any) -> Any:
    """Copy the rows of a part, or None, if they are a selection."""
    if part is None or not isinstance(part.rows, ChosenRows):
        return part
    return replace(part, rows=part.rows.part(slice(None)))


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
