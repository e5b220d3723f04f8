"""Define the metrics that settings are chosen by, as losses, and the confusion matrix.

The definitions are scikit-learn's. A class that is never predicted has precision 0, and a class
without rows has recall 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcsvm.data.sorting import distinct
from dcsvm.problem.option_table import checked_metric
from dcsvm.problem.options import TrainOptions

MIN_PROBABILITY = 1e-15


@dataclass(frozen=True, eq=False)
class Outcome:
    """Rows and their predictions.

    `labels` (n,) and `predicted` (n,) are labels, class indices or targets. `values` (n,) are
    decision values of two classes, positive for the first. `probabilities` (n, k) are those of
    `classes` (k,), by default the sorted labels. `weights` (n,) are numbers of copies of the rows.
    """

    labels: np.ndarray
    predicted: np.ndarray
    values: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    weights: np.ndarray | None = None
    classes: np.ndarray | None = None

    @property
    def is_first(self) -> np.ndarray:
        """Whether each row has the first class, bool (n,)."""
        return self.labels == self._known[0]

    @property
    def places(self) -> np.ndarray:
        """Index of the class of each row, int64 (n,)."""
        return np.searchsorted(self._known, self.labels)

    @property
    def _known(self) -> np.ndarray:
        return distinct(self.labels) if self.classes is None else self.classes

    def take(self, chosen: np.ndarray) -> Outcome:
        """Return the outcome of some rows, a mask or indices; the classes remain."""
        values, probabilities, weights = (
            None if one is None else one[chosen]
            for one in (self.values, self.probabilities, self.weights)
        )
        labels, predicted = self.labels[chosen], self.predicted[chosen]
        return Outcome(labels, predicted, values, probabilities, weights, self.classes)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric as a loss: an error, or 1 minus a gain such as the accuracy.

    Attributes
    ----------
    row_losses : function of labels and predictions (n,): the losses of single rows (n,). The loss
        is (their mean / the variance of the targets)^power. None if the loss has no such form.
    is_relative, power : whether there is a variance, and the power; 1 by default.
    is_balanced : whether each class has the same total weight in the mean.
    loss_of_all : function of an Outcome: the loss, if it is not computed from the losses of rows.
    is_gain, is_percent : whether reports show 1 minus the loss, and 100 times the value.
    needs_values, needs_probabilities : what an Outcome must have.
    """

    row_losses: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    is_relative: bool = False
    power: float = 1.0
    is_balanced: bool = False
    loss_of_all: Callable[[Outcome], float] | None = None
    is_gain: bool = False
    is_percent: bool = False
    needs_values: bool = False
    needs_probabilities: bool = False

    def loss(self, outcome: Outcome) -> float:
        """Compute the loss; nan if it is undefined, such as R2 for equal targets."""
        if self.loss_of_all is not None:
            return self.loss_of_all(outcome)
        assert self.row_losses is not None
        losses = self.row_losses(outcome.labels, outcome.predicted)
        variance = variance_of(outcome.labels, outcome.weights) if self.is_relative else 1.0
        return float(self.of_mean(np.average(losses, weights=outcome.weights), variance))

    def of_mean(self, mean: Any, variance: Any) -> Any:
        """Convert means of the losses of rows, numbers or arrays, to losses."""
        variance = np.where(variance > 0, variance, np.nan)
        return (mean / variance) ** self.power

    def mean_of(self, loss: float, variance: float) -> float:
        """Return the mean of the losses of rows that has this loss."""
        with np.errstate(over="ignore"):
            return float(np.power(loss, 1.0 / self.power) * variance)

    def shown(self, loss: Any) -> Any:
        """Convert losses, a number or an array, to the values of the metric in reports."""
        value = 1.0 - loss if self.is_gain else loss
        return 100.0 * value if self.is_percent else value

    def score(self, loss: Any) -> Any:
        """Convert losses, a number or an array, to scores of which more is better."""
        return 1.0 - loss if self.is_gain else -loss

    def loss_of_shown(self, value: float) -> float:
        value = value / 100.0 if self.is_percent else value
        return 1.0 - value if self.is_gain else value


def variance_of(targets: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Compute the weighted variance of targets (n,)."""
    mean = np.average(targets, weights=weights)
    return float(np.average((targets - mean) ** 2, weights=weights))


def _errors(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return (predicted != labels).astype(np.float64)


def _absolute_errors(targets: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return np.abs(predicted - targets)


def _squared_errors(targets: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return (predicted - targets) ** 2


def _balanced_error(one: Outcome) -> float:
    matrix = Confusion.of(one.labels, one.predicted, weights=one.weights)
    return 1.0 - matrix.balanced_accuracy


def _f1_loss(one: Outcome) -> float:
    """Compute 1 minus the mean F1 over the classes, so no class is the positive one."""
    return 1.0 - Confusion.of(one.labels, one.predicted, weights=one.weights).macro_f1


def _auc_loss(one: Outcome) -> float:
    assert one.values is not None
    return 1.0 - area_under_curve(one.is_first, one.values, one.weights)


def _log_loss(one: Outcome) -> float:
    assert one.probabilities is not None
    return log_loss(one.places, one.probabilities, one.weights)


DEFINITIONS = {
    "accuracy": Metric(row_losses=_errors, is_gain=True, is_percent=True),
    "balanced-accuracy": Metric(
        row_losses=_errors, is_balanced=True, loss_of_all=_balanced_error, is_gain=True,
        is_percent=True,
    ),
    "f1": Metric(loss_of_all=_f1_loss, is_gain=True, is_percent=True),
    "auc": Metric(loss_of_all=_auc_loss, is_gain=True, is_percent=True, needs_values=True),
    "log-loss": Metric(loss_of_all=_log_loss, needs_values=True, needs_probabilities=True),
    "mse": Metric(row_losses=_squared_errors),
    "rmse": Metric(row_losses=_squared_errors, power=0.5),
    "mae": Metric(row_losses=_absolute_errors),
    "r2": Metric(row_losses=_squared_errors, is_relative=True, is_gain=True),
}  # fmt: skip


def loss_of(
    metric: str,
    labels: np.ndarray,
    predicted: np.ndarray,
    values: np.ndarray | None = None,
    probabilities: np.ndarray | None = None,
) -> float:
    """Compute the loss of a metric from the arrays of an Outcome of rows of weight 1."""
    return DEFINITIONS[metric].loss(Outcome(labels, predicted, values, probabilities))


def shown_loss(metric: str, loss: float, error: float) -> str:
    """Format a loss and its standard error as the value of the metric."""
    one = DEFINITIONS[metric]
    if one.is_percent:
        return f"{metric} {one.shown(loss):.2f} +- {100 * error:.2f} %"
    return f"{metric} {one.shown(loss):.5g} +- {error:.2g}"


def chosen_metric(metric: str | None, options: TrainOptions, labels: np.ndarray) -> str:
    """Return a metric that fits the SVM type and the labels, by default accuracy or mse.

    Raises ValueError.
    """
    metric = checked_metric(metric, options.svm_type)
    check_labels(metric, labels)
    return metric


def check_labels(metric: str, labels: np.ndarray) -> None:
    """Raise ValueError if a metric is undefined for labels or targets (n,)."""
    one, n_different = DEFINITIONS[metric], len(distinct(labels))
    if one.needs_values and n_different != 2:
        raise ValueError(f"the metric {metric} needs two classes")
    if one.is_relative and n_different < 2:
        raise ValueError(f"the metric {metric} needs targets that differ")


def area_under_curve(
    is_first: np.ndarray, values: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Compute the area under the ROC curve: P(value of a first > value of another), ties half.

    nan if there are no first or no other rows.
    """
    weights = np.ones(len(values)) if weights is None else weights
    _, place = np.unique(values, return_inverse=True)
    place = place.reshape(-1)
    n_first = np.bincount(place, weights * is_first)
    n_others = np.bincount(place, weights * ~is_first)
    n_pairs = n_first.sum() * n_others.sum()
    if n_pairs == 0:
        return math.nan
    smaller = np.cumsum(n_others) - 0.5 * n_others
    return float(n_first @ smaller / n_pairs)


def log_loss(
    classes: np.ndarray, probabilities: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Compute the mean of -log of the probability of each row's class, from its index (n,)."""
    own = probabilities[np.arange(len(classes)), classes]
    return float(-np.average(np.log(np.clip(own, MIN_PROBABILITY, 1.0)), weights=weights))


@dataclass(frozen=True, eq=False)
class Confusion:
    """Number of rows by true and predicted label.

    `labels` (k,) are sorted; `counts` int64 (k, k) has true labels in rows; float64 with weights.
    """

    labels: np.ndarray
    counts: np.ndarray

    @staticmethod
    def of(
        labels: np.ndarray,
        predicted: np.ndarray,
        known: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> Confusion:
        """Count labels (n,) and predictions (n,), or add weights (n,); `known` are more labels."""
        several = [labels, predicted, *([] if known is None else [known])]
        if any(one.dtype.kind == "U" for one in several):
            several = [one.astype(str) for one in several]
        found, place = np.unique(np.concatenate(several), return_inverse=True)
        true, guess = place[: len(labels)], place[len(labels) : 2 * len(labels)]
        k = len(found)
        counts = np.bincount(true * k + guess, weights, minlength=k * k)
        return Confusion(found, counts.reshape(k, k))

    @property
    def support(self) -> np.ndarray:
        """Number of rows of each true label."""
        return self.counts.sum(axis=1)

    @property
    def accuracy(self) -> float:
        return float(np.trace(self.counts) / self.counts.sum())

    @property
    def precision(self) -> np.ndarray:
        return _ratio(np.diag(self.counts), self.counts.sum(axis=0))

    @property
    def recall(self) -> np.ndarray:
        return _ratio(np.diag(self.counts), self.support)

    @property
    def f1(self) -> np.ndarray:
        return _ratio(2 * np.diag(self.counts), self.support + self.counts.sum(axis=0))

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the labels that have rows."""
        return float(np.mean(self.recall[self.support > 0]))

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the labels that have rows or predictions."""
        is_used = self.support + self.counts.sum(axis=0) > 0
        return float(np.mean(self.f1[is_used]))


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
