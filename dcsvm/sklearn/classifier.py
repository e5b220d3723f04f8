"""What SVC and NuSVC share: labels, votes, probabilities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from dcsvm.model.pair_weights import coupled, most_voted, pair_probabilities
from dcsvm.problem.options import CENTERED
from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.theirs import labels_of


def _is_probable(estimator: Classifier) -> bool:
    if estimator._has_probability:
        return True
    raise AttributeError("predict_proba is not available when probability=False")


class Classifier(ClassifierMixin, Estimator):
    """Base of the classifiers. Classes are in the order of `classes_`, sorted."""

    @property
    def _has_probability(self) -> bool:
        return self.probability not in (False, "deprecated")

    @property
    def n_iter_(self) -> np.ndarray:
        """Coordinate updates of each pair of classes."""
        return self._iterations

    @property
    def probA_(self) -> np.ndarray:
        """A of each pair: 1 / (1 + exp(A f)) is the probability of its first class."""
        return self._probA

    @property
    def probB_(self) -> np.ndarray:
        """B of each pair: 0, so that probabilities agree with decision values."""
        return self._probB

    def _targets(self, y, weights):
        values = column_or_1d(y, warn=True)
        check_classification_targets(y)
        classes, codes = np.unique(values, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(classes)} class"
            )
        if weights is not None and len(weights) == len(codes):
            classes, codes = _there(classes, codes, weights)
        if len(classes) < 2:
            raise ValueError(self._one_class_left)
        counts = np.bincount(codes, weights, minlength=len(classes))
        if isinstance(self.class_weight, str):  # "balanced"
            self.class_weight_ = counts.sum() / (len(classes) * counts)
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=classes, y=classes)
        wrong = ~(np.isfinite(self.class_weight_) & (self.class_weight_ > 0))
        if wrong.any():
            factor, label = self.class_weight_[wrong][0], classes[wrong][0]
            raise ValueError(
                f"class_weight must be positive and finite, not {factor:g} for class {label}"
            )
        self.classes_ = classes
        self._labels = labels_of(classes)
        return codes.astype(np.uint32), weights

    _one_class_left = "Invalid input - all samples with positive weights belong to the same class."

    def _options(self, seed):
        probability = CENTERED if self._has_probability else False
        return {"probability": probability, "seed": seed if probability else 0}

    def _keep(self, model, report, given):
        super()._keep(replace(model, labels=self._labels), report, given)
        found = self.model_.probability
        fits = (found.A, found.B) if found else (np.empty(0), np.empty(0))
        self._probA, self._probB = map(np.ascontiguousarray, fits)

    def decision_function(self, X, *, method=None):
        """Decision values (n,) of two classes, positive for classes_[1]; of k classes (n, k), or
        (n, k (k - 1) / 2), positive for the first class of a pair, where decision_function_shape
        is 'ovo'. `method` is 'exact' or 'early'; None is what was fitted.
        """
        values = self._values(X, method)
        if len(self.classes_) == 2:
            return -values[:, 0]
        return values if self.decision_function_shape == "ovo" else _of_classes(values)

    def predict(self, X, *, method=None):
        """Labels (n,). With probability=True the classes of the highest probability, else those
        of most votes of the pairs, of equal votes the first, or with break_ties that of the
        highest decision value. `method` as in decision_function."""
        self._check_is_fitted()
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        return self.classes_[self._reduced_values(X, method, self._chosen)]

    def _chosen(self, values: np.ndarray) -> np.ndarray:
        """The numbers of the classes that decision values (n, n_pairs) choose, (n,)."""
        if len(self.classes_) == 2:
            return (values[:, 0] < 0).astype(np.intp)
        if len(self._probA):
            return self._probabilities(values).argmax(axis=1)
        if self.break_ties:
            return _of_classes(values).argmax(axis=1)
        return most_voted(values, len(self.classes_))

    @available_if(_is_probable)
    def predict_proba(self, X, *, method=None):
        """Probabilities (n, k) of the classes, the highest that of the label that predict gives.
        `method` as in decision_function."""
        self._check_is_fitted()
        if not len(self._probA):
            if self.report_ and "probabilities" in self.report_.missing:
                raise NotFittedError("the fit was stopped before the probabilities")
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        return self._probabilities(self._values(X, method))

    @available_if(_is_probable)
    def predict_log_proba(self, X, *, method=None):
        """Logarithms (n, k) of what predict_proba gives."""
        return np.log(self.predict_proba(X, method=method))

    def _probabilities(self, values: np.ndarray) -> np.ndarray:
        pairs = pair_probabilities(values, self._probA, self._probB)
        found = coupled(pairs, len(self.classes_))
        if found.shape[1] == 2:  # a decision value near 0 may be lost in rounding
            found[:, 0] = np.where(values[:, 0] >= 0, np.maximum(found[:, 0], ABOVE_HALF),
                                   np.minimum(found[:, 0], 1 - ABOVE_HALF))  # fmt: skip
            found[:, 1] = 1 - found[:, 0]
        return found


ABOVE_HALF = 0.5 + 2.0**-52


def _there(classes, codes, weights):
    """The classes that have weight, and codes of all rows among them."""
    found = np.unique(codes[weights > 0])
    return classes[found], np.clip(np.searchsorted(found, codes), 0, len(found) - 1)


def _of_classes(values: np.ndarray) -> np.ndarray:
    """Values (n, k) of classes from those of pairs (n, k (k - 1) / 2): their votes, and less than
    half a vote by the sum of their decision values. A pair that is nan has no say."""
    n_pairs = values.shape[1]
    k = int((1 + np.sqrt(1 + 8 * n_pairs)) / 2)
    first, second = np.triu_indices(k, 1)
    known = np.nan_to_num(values)
    sums, votes = np.zeros((2, len(values), k))
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        value = known[:, pair]
        is_there = ~np.isnan(values[:, pair])
        sums[:, i] += value
        sums[:, j] -= value
        votes[:, i] += is_there & (value >= 0)
        votes[:, j] += is_there & (value < 0)
    return votes + sums / (3 * (np.abs(sums) + 1))
