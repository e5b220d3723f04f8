"""The base class of SVC and NuSVC: labels, votes, probabilities."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from dcsvm.model.model import Model
from dcsvm.model.pair_weights import coupled, most_voted, pair_probabilities
from dcsvm.problem.options import CENTERED
from dcsvm.problem.task import balanced_factors
from dcsvm.sklearn.checks import Input, Weights
from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.fitted import ModelFileRows, TrainingRows
from dcsvm.sklearn.reference import labels_of
from dcsvm.solving.report import TrainReport


class Classifier(ClassifierMixin, Estimator):
    """Base class of the classifiers. Classes are sorted, as in `classes_`."""

    @property
    def _has_probability(self) -> bool:
        return self.probability not in (False, "deprecated")

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
        values = column_or_1d(y, warn=True)
        check_classification_targets(y)
        classes, codes = np.unique(values, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(classes)} class"
            )
        if weights is not None and len(weights) == len(codes):
            classes, codes = _classes_with_weight(classes, codes, weights)
        if len(classes) < 2:
            raise ValueError(self._one_class_left)
        if isinstance(self.class_weight, str):  # "balanced"
            self.class_weight_ = balanced_factors(codes, weights, len(classes))
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=classes, y=classes)
        wrong = ~(np.isfinite(self.class_weight_) & (self.class_weight_ > 0))
        if wrong.any():
            factor, label = self.class_weight_[wrong][0], classes[wrong][0]
            raise ValueError(
                f"class_weight must be positive and finite, got {factor:g} for class {label}"
            )
        self.classes_ = classes
        self._labels = labels_of(classes)
        return codes.astype(np.uint32), weights

    _one_class_left = "Invalid input - all samples with positive weights belong to the same class."

    def _options(self, seed: int) -> dict[str, Any]:
        probability = CENTERED if self._has_probability else False
        return {"probability": probability, "seed": seed if probability else 0}

    def _keep(
        self, model: Model, report: TrainReport | None, rows: TrainingRows | ModelFileRows
    ) -> None:
        super()._keep(replace(model, labels=self._labels), report, rows)
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
        return self.classes_[self._reduced_values(X, method, self._chosen)]

    def _chosen(self, values: np.ndarray) -> np.ndarray:
        """Return the predicted class indices (n,) for decision values (n, n_pairs)."""
        if len(self.classes_) == 2:
            return (values[:, 0] < 0).astype(np.intp)
        if len(self._probA):
            return self._probabilities(values).argmax(axis=1)
        if self.break_ties:
            return class_scores(values).argmax(axis=1)
        return most_voted(values, len(self.classes_))

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
        return self._probabilities(self._values(X, method))

    @available_if(_check_probability)
    def predict_log_proba(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Compute the logarithms of predict_proba, float64 (n, k)."""
        return np.log(self.predict_proba(X, method=method))

    def _probabilities(self, values: np.ndarray) -> np.ndarray:
        pairs = pair_probabilities(values, self._probA, self._probB)
        proba = coupled(pairs, len(self.classes_))
        if proba.shape[1] == 2:  # rounding may lose the sign of a decision value near 0
            proba[:, 0] = np.where(values[:, 0] >= 0, np.maximum(proba[:, 0], ABOVE_HALF),
                                   np.minimum(proba[:, 0], 1 - ABOVE_HALF))  # fmt: skip
            proba[:, 1] = 1 - proba[:, 0]
        return proba


ABOVE_HALF = 0.5 + 2.0**-52


def _classes_with_weight(
    classes: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Drop classes without weight; return the other classes and the index of each row's class.

    Rows of dropped classes, which have no weight, get the index of any class.
    """
    present = np.unique(codes[weights > 0])
    return classes[present], np.clip(np.searchsorted(present, codes), 0, len(present) - 1)


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
