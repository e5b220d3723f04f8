"""The parts of a trained model, as stored in a model file; their predictions, votes, probabilities.

A support vector of class i has a coefficient for each of the k - 1 pairs that contain i. Only
nonzero coefficients are stored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from dcsvm import _core
from dcsvm.data.columns import TableEncoding
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.data.scaling import Scaling
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import Partition, fields_only
from dcsvm.model.predict import Predictor
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

    __getstate__ = fields_only  # without the predictor

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

    def predictor(self, kernel: Kernel, *, is_regression: bool) -> Predictor:
        """Return the support vectors prepared to predict; this part keeps them."""
        return _kept_predictor(self, kernel, is_regression)


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

    __getstate__ = fields_only  # without the predictor

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
        partition = self.partition.with_features(n_features)
        return replace(self, rows=self.rows.with_features(n_features), partition=partition)

    def predictor(self, kernel: Kernel, *, is_regression: bool) -> Predictor:
        """Return the support vectors prepared to predict; this part keeps them."""
        return _kept_predictor(self, kernel, is_regression)


_lock = threading.Lock()


def _kept_predictor(
    part: ExactModel | EarlyModel, kernel: Kernel, is_regression: bool
) -> Predictor:
    """Return the predictor that a part keeps; one of another kernel takes its place."""
    kept: Predictor | None = vars(part).get("_predictor")
    if kept is not None and kept.suits(kernel, is_regression):
        return kept
    with _lock:
        kept = vars(part).get("_predictor")  # another thread may have made it
        if kept is None or not kept.suits(kernel, is_regression):
            kept = Predictor(
                kernel, part.rows, part.dual_coef, part.class_, part.rho,
                part.cluster if isinstance(part, EarlyModel) else None,
                part.partition if isinstance(part, EarlyModel) else None,
                is_regression=is_regression,
            )  # fmt: skip
            vars(part)["_predictor"] = kept
    return kept


@dataclass(frozen=True, eq=False)
class Probability:
    """Parameters of probability estimates from decision values f.

    They are LIBSVM's probA and probB. For a classifier `A` and `B` are float64 (n_pairs,), and the
    first class of a pair has the probability 1 / (1 + exp(A f + B)). For regression `A` (1,) is the
    scale of the Laplace distribution of the errors, and `B` is None. For one-class `A` (N_MARKS,)
    are LIBSVM's prob_density_marks, ascending, and `B` is None: a row whose value reaches k of them
    is normal with the probability k / N_MARKS.
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

    def predictor(self, method: str | None = None) -> Predictor:
        """Return the predictor of a part, see `part`."""
        return self.part(method).predictor(self.kernel, is_regression=self.is_regression)

    def few_values(self, X: object, method: str | None = None) -> np.ndarray | None:
        """Compute decision values (n, n_pairs) on the fast path for few rows, None if unsuited."""
        if self.table is not None:
            return None
        if self.scaling is not None:
            if not self.scaling.is_shift:
                return None
            X = self.scaling.shifted_array(X)
        return self.predictor(method).few_values(X)

    def pair_values(
        self,
        rows: Rows,
        method: str | None,
        threads: int,
        reduce: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> np.ndarray:
        """Compute decision values float64 (n, n_pairs) of rows as of `rows_of`.

        They are positive for the first class of a pair. `reduce` is applied to the values of a
        block of rows, and the results are joined. Raises ValueError if the model does not have the
        part, or if kernel values of a precomputed kernel are missing.
        """
        predictor = self.predictor(method)
        if reduce is None:
            return predictor.values(rows, threads)
        nothing = reduce(np.empty((0, self.n_pairs)))  # its type is that of the other results
        blocks = predictor.blocks(rows, threads)
        return np.concatenate([nothing, *(reduce(values) for _, values in blocks)])

    def predictions(self, rows: Rows, method: str | None, threads: int) -> np.ndarray:
        """Predict labels, +1 or -1 (one-class), or regression values, (n,).

        Raises as `pair_values`.
        """
        return self.pair_values(rows, method, threads, self.predicted_from)

    def predicted_from(self, values: np.ndarray) -> np.ndarray:
        """Convert decision values (n, n_pairs) to predictions (n,)."""
        if self.is_classifier:
            return self.labels[self.most_voted(values)]
        return values[:, 0] if self.is_regression else np.where(values[:, 0] > 0, 1.0, -1.0)

    def most_voted(self, values: np.ndarray) -> np.ndarray:
        """Return the class index (n,) with the most votes for decision values (n, n_pairs)."""
        return most_voted(values, len(self.labels))

    def class_probabilities(self, rows: Rows, method: str | None, threads: int) -> np.ndarray:
        """Estimate class probabilities, float64 (n, k); (n, 2) for one-class: normal, outlier.

        Raises ValueError if the model has no probabilities, and as `pair_values`.
        """
        if self.is_regression:
            raise ValueError(f"a model of type {self.svm_type} has no class probabilities")
        if self.probability is None:
            raise ValueError(
                "the model has no probabilities: train it with probability=True (-b 1)"
            )
        return self.pair_values(rows, method, threads, self.probabilities_from)

    def probabilities_from(self, values: np.ndarray) -> np.ndarray:
        """Convert decision values (n, n_pairs) to class probabilities (n, k)."""
        sigmoids = self.probability
        if sigmoids is not None and self.svm_type == "one_class":
            n_below = np.searchsorted(sigmoids.A, values[:, 0], side="right")
            normal = np.clip(n_below / N_MARKS, MIN_NORMAL, 1 - MIN_NORMAL)
            return np.column_stack([normal, 1 - normal])
        assert sigmoids is not None and sigmoids.B is not None  # of a classifier that has them
        return coupled(pair_probabilities(values, sigmoids.A, sigmoids.B), len(self.labels))

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
    def is_scaled(self) -> bool:
        """Whether the vectors are in other units than the data, more than shifted."""
        return self.scaling is not None and not self.scaling.is_shift

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


N_MARKS, MIN_NORMAL = 10, 0.001  # marks of one-class, smallest probability of either kind of row
MIN_PROBABILITY = 1e-7  # smallest probability of a class in its pair
TOLERANCE = 0.005  # of the optimality condition in _minimize; divided by the number of classes
MAX_SWEEPS = 100  # of _minimize; the number of classes if that is larger


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
        # rows at their minimum are done
        active = np.abs(product - value[:, None]).max(axis=1) >= TOLERANCE / k
        if not active.all():
            result[remaining[~active]] = p[~active]
            remaining, Q, p = remaining[active], Q[active], p[active]
            product, value = product[active], value[active]
        if len(remaining) == 0:
            return result
        # a sweep over the classes; product and value are updated instead of computed anew
        for t in range(k):
            step = (value - product[:, t]) / Q[:, t, t]
            scale = 1.0 / (1.0 + step)
            value = (value + step * (2.0 * product[:, t] + step * Q[:, t, t])) * scale**2
            product = (product + step[:, None] * Q[:, t]) * scale[:, None]
            p[:, t] += step
            p *= scale[:, None]
    result[remaining] = p
    return result
