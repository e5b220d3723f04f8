"""The five estimators, with scikit-learn's parameters and defaults and further parameters.

Classifiers have the labels of a fit, class indices and weights, votes, scores and probabilities.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples

from dcsvm.model.model import Model
from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.fitted import THEIRS, TrainingRows, with_parameters
from dcsvm.sklearn.rows import Input, Weights, in_known_frame


class TakesClasses(ClassifierMixin, BaseEstimator):
    """Classifier that numbers its classes, sorted as in `classes_`."""

    classes_: np.ndarray
    class_weight_: np.ndarray
    _one_class_left = "Invalid input - all samples with positive weights belong to the same class."

    @property
    def _has_probability(self) -> bool:
        return self.probability not in (False, "deprecated")

    def _class_indices(self, y: ArrayLike, weights: Weights) -> np.ndarray:
        """Set classes_ and class_weight_; return the class of each row, uint32 (n,).

        Classes without weight are dropped; their rows, which have no weight, get any class.
        """
        values = column_or_1d(y, warn=True)
        check_classification_targets(y)
        classes, indices = np.unique(values, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(classes)} class"
            )
        if weights is not None and len(weights) == len(indices):
            classes, indices = _classes_with_weight(classes, indices, weights)
        if len(classes) < 2:
            raise ValueError(self._one_class_left)
        self.classes_ = classes
        self.class_weight_ = self._factors(indices, weights)
        return indices.astype(np.uint32)

    def _factors(self, indices: np.ndarray, weights: Weights) -> np.ndarray:
        """Return the factor of each class (k,); 'balanced' counts weights as copies of rows."""
        classes = self.classes_
        if isinstance(self.class_weight, str):
            totals = np.bincount(indices, weights, minlength=len(classes))
            factors = totals.sum() / (len(classes) * totals)
        else:
            factors = _given_factors(self.class_weight or {}, classes.tolist())
        wrong = ~(np.isfinite(factors) & (factors > 0))
        if wrong.any():
            raise ValueError(
                f"class_weight must be positive and finite, got {factors[wrong][0]:g} "
                f"for class {classes[wrong][0]}"
            )
        return factors


def _given_factors(given: dict[Any, Any], labels: list[Any]) -> np.ndarray:
    """Return the given factor of each label, float64 (k,), by default 1.

    A label of text may also be given as its integer, as scikit-learn allows. Raises ValueError.
    """
    for key, factor in given.items():
        if not isinstance(factor, Real):
            raise ValueError(f"class_weight must be a number, got {factor!r} for class {key!r}")
    keys = [label if label in given else _as_integer(label) for label in labels]
    absent = [key for key in keys if key not in given]
    if absent and len(keys) - len(absent) != len(given):
        raise ValueError(f"The classes, {absent}, are not in class_weight")
    return np.array([given.get(key, 1.0) for key in keys], np.float64)


def _as_integer(label: Any) -> Any:
    return int(label) if isinstance(label, str) and label.isdecimal() else label


def _classes_with_weight(
    classes: np.ndarray, indices: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    present = np.unique(indices[weights > 0])
    return classes[present], np.clip(np.searchsorted(present, indices), 0, len(present) - 1)


def class_scores(values: np.ndarray) -> np.ndarray:
    """Combine decision values (n, k (k - 1) / 2) of pairs to scores (n, k) of classes.

    A score is the number of votes plus s / (3 (|s| + 1)) for the sum s of the decision values. Thus
    the decision values only break ties of votes.
    Pairs with nan do not vote.
    """
    n_pairs = values.shape[1]
    k = int((1 + np.sqrt(1 + 8 * n_pairs)) / 2)
    first, second = np.triu_indices(k, 1)
    known = np.nan_to_num(values)
    sums, votes = np.zeros((2, len(values), k))
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        value = known[:, pair]
        is_known = ~np.isnan(values[:, pair])
        sums[:, i] += value
        sums[:, j] -= value
        votes[:, i] += is_known & (value >= 0)
        votes[:, j] += is_known & (value < 0)
    return votes + sums / (3 * (np.abs(sums) + 1))


class Classifier(TakesClasses, Estimator):
    """Base class of the classifiers. Classes are sorted, as in `classes_`."""

    def _check_probability(self) -> bool:
        if self._has_probability:
            return True
        raise AttributeError("predict_proba is not available when probability=False")

    @property
    def n_iter_(self) -> np.ndarray:
        """Number of coordinate updates of each pair of classes, int32 (n_pairs,)."""
        return self._iterations

    @property
    def probA_(self) -> np.ndarray:  # noqa: N802  scikit-learn's name
        """A of each pair: 1 / (1 + exp(A f)) is the probability of its first class."""
        return self._probA

    @property
    def probB_(self) -> np.ndarray:  # noqa: N802  scikit-learn's name
        """B of each pair: 0, so that probabilities agree with decision values."""
        return self._probB

    def _targets(self, y: ArrayLike, weights: Weights) -> tuple[np.ndarray, Weights]:
        return self._class_indices(y, weights), weights

    def _class_options(self) -> dict[str, Any]:
        # decision value 0 has probability 1/2, so that probabilities agree with predictions
        return {"probability": "centered" if self._has_probability else False}

    def _keep(self, model: Model, report: Any, rows: TrainingRows) -> None:
        super()._keep(model.with_labels(self.classes_), report, rows)
        fit = model.probability
        sigmoids = (fit.A, fit.B) if fit else (np.empty(0), np.empty(0))
        self._probA, self._probB = map(np.ascontiguousarray, sigmoids)

    def decision_function(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Compute decision values.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
        method : {'exact', 'early'} or None
            Part of the model; None is the exact one, if fitted.

        Returns
        -------
        values : float64 array
            (n,) for two classes; positive values stand for classes_[1]. For k > 2 classes (n, k),
            or (n, k (k - 1) / 2) if decision_function_shape is 'ovo'; positive values then stand
            for the first class of a pair.
        """
        values = self._values(X, method)
        if len(self.classes_) == 2:
            return -values[:, 0]
        return values if self.decision_function_shape == "ovo" else class_scores(values)

    def predict(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
        method : {'exact', 'early'} or None
            Part of the model; None is the exact one, if fitted.

        Returns
        -------
        labels : array (n,)
            With probability=True the most probable classes, else the classes with most votes. Ties
            go to the first class; with break_ties they go to the highest decision value.
        """
        self._check_is_fitted()
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        reference = self._reference
        if self.model_ is None and reference is not None:  # values are beyond float32
            return reference.predict(X)
        return self.classes_[self._values(X, method, self._chosen)]

    def _chosen(self, values: np.ndarray) -> np.ndarray:
        """Return the predicted class indices (n,) for decision values (n, n_pairs)."""
        if len(self.classes_) == 2:
            return (values[:, 0] < 0).astype(np.intp)
        if len(self._probA):
            return self._probabilities(values).argmax(axis=1)
        if self.break_ties:
            return class_scores(values).argmax(axis=1)
        assert self.model_ is not None  # see predict
        return self.model_.most_voted(values)

    @available_if(_check_probability)
    def predict_proba(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Predict the probabilities of the classes, float64 (n, k).

        The label that predict returns has the highest probability. X and method are as for predict.
        """
        self._check_is_fitted()
        if not len(self._probA):
            if self.report_ and "probabilities" in self.report_.missing:
                raise NotFittedError("the fit stopped before the probabilities")
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        reference = self._reference
        if self.model_ is None and reference is not None:  # values are beyond float32
            return reference.predict_proba(X)
        return self._probabilities(self._values(X, method))

    @available_if(_check_probability)
    def predict_log_proba(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Compute the logarithms of predict_proba, float64 (n, k)."""
        return np.log(self.predict_proba(X, method=method))

    def _probabilities(self, values: np.ndarray) -> np.ndarray:
        assert self.model_ is not None  # see predict_proba
        proba = self.model_.probabilities_from(values)
        if proba.shape[1] == 2:  # rounding may lose the sign of a decision value near 0
            proba[:, 0] = np.where(values[:, 0] >= 0, np.maximum(proba[:, 0], ABOVE_HALF),
                                   np.minimum(proba[:, 0], 1 - ABOVE_HALF))  # fmt: skip
            proba[:, 1] = 1 - proba[:, 0]
        return proba


ABOVE_HALF = 0.5 + 2.0**-52


@with_parameters(
    "C",
    "KERNEL",
    "DATA",
    "shrinking",
    "SOLVING",
    "CLASSES",
    "CLUSTERS",
    "LIMITS",
    "MACHINE",
)
class SVC(Classifier):
    """C-support vector classification, one-vs-one, with a bias.

    A drop-in replacement for sklearn.svm.SVC, with certified optimality (`violation_`,
    `duality_gap_`). Sample weights count copies of rows, and predict_proba agrees with predict.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : dcsvm.Model
    report_ : dcsvm.TrainReport or None
        None if scikit-learn's solver was used.
    violation_, duality_gap_ : float or None
        Largest KKT violation and duality gap.

    The other attributes are scikit-learn's: support_, support_vectors_, n_support_, dual_coef_,
    intercept_, coef_, classes_, class_weight_, fit_status_, n_iter_, shape_fit_, n_features_in_,
    feature_names_in_, probA_, probB_. With early=True dual_coef_ and intercept_ do not exist; each
    cluster has its own, in model_.early.

    Notes
    -----
    Features are rounded to float32. Up to 1000 rows are solved to a finer tolerance than tol if
    n (k - 1) is at most 5000 for n rows of k classes, unless max_iter, gap, time_limit or
    checkpoint is set. With probability=True and more than two classes predict returns the most
    probable class.
    """

    _svm_type = "c_svc"

    def _class_options(self) -> dict[str, Any]:
        weights = dict(enumerate(self.class_weight_.tolist()))
        return {**super()._class_options(), "bias": True, "class_weight": weights}


@with_parameters("nu", "KERNEL", "DATA", "shrinking", "SOLVING", "CLASSES", "LIMITS", "MACHINE")
class NuSVC(Classifier):
    """Nu-support vector classification, one-vs-one.

    A drop-in replacement for sklearn.svm.NuSVC, but class_weight is supported: it multiplies sample
    weights, and may make nu infeasible. If a pair of classes has no margin, scikit-learn's solver
    is used, which stops early.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVC, without an early model.
    """

    _svm_type = "nu_svc"
    _one_class_left = (
        "specified nu is infeasible: all samples with positive weights belong to the same class."
    )

    def _targets(self, y: ArrayLike, weights: Weights) -> tuple[np.ndarray, Weights]:
        labels, weights = super()._targets(y, weights)
        if self.class_weight is None or (weights is not None and len(weights) != len(labels)):
            return labels, weights
        return labels, (1.0 if weights is None else weights) * self.class_weight_[labels]


@with_parameters(
    "C",
    "epsilon",
    "KERNEL",
    "DATA",
    "shrinking",
    "SOLVING",
    "CLUSTERS",
    "LIMITS",
    "MACHINE",
)
class SVR(RegressorMixin, Estimator):
    """Epsilon-support vector regression.

    A drop-in replacement for sklearn.svm.SVR, with certified optimality (`violation_`,
    `duality_gap_`). Sample weights count copies of rows.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVC, without classes_, class_weight_, probA_ and probB_.
    """

    _svm_type = "epsilon_svr"

    def predict(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Predict targets, float64 (n,), with the 'exact' or 'early' part of the model."""
        return self._values(X, method)[:, 0]


@with_parameters("nu", "C", "KERNEL", "DATA", "shrinking", "SOLVING", "LIMITS", "MACHINE")
class NuSVR(RegressorMixin, Estimator):
    """Nu-support vector regression: nu instead of epsilon.

    A drop-in replacement for sklearn.svm.NuSVR.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVR, without an early model.
    """

    _svm_type = "nu_svr"

    def predict(self, X: Input) -> np.ndarray:
        """Predict targets, float64 (n,)."""
        return self._values(X, None)[:, 0]


@with_parameters("nu", "KERNEL", "DATA", "shrinking", "SOLVING", "LIMITS", "MACHINE")
class OneClassSVM(OutlierMixin, Estimator):
    """Novelty detection: the support of a distribution.

    A drop-in replacement for sklearn.svm.OneClassSVM.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of NuSVR, and offset_: decision_function is score_samples minus offset_.
    """

    _svm_type = "one_class"

    def fit(
        self,
        X: Input,
        y: ArrayLike | None = None,  # noqa: ARG002  scikit-learn's signature
        sample_weight: ArrayLike | None = None,
    ) -> Estimator:
        """Fit the model; y is ignored. X and sample_weight are as for SVC."""
        X = in_known_frame(X)
        return super().fit(X, np.ones(_num_samples(X)), sample_weight=sample_weight)

    def decision_function(self, X: Input) -> np.ndarray:
        """Compute decision values, float64 (n,); negative values stand for outliers."""
        return self._values(X, None)[:, 0]

    def score_samples(self, X: Input) -> np.ndarray:
        """Compute decision values without the offset, float64 (n,)."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Input) -> np.ndarray:
        """Predict +1 for inliers and -1 for outliers, int (n,)."""
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)

    @property
    def offset_(self) -> np.ndarray:
        """Offset of decision_function, float64 (1,)."""
        return -self.intercept_


OURS = dict(zip(THEIRS, (SVC, NuSVC, SVR, NuSVR, OneClassSVM), strict=True))
