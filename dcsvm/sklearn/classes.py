"""Classes of a fit: labels, class indices, class weights, and scores of classes."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from dcsvm.sklearn.checks import Weights


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
