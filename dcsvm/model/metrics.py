"""Metrics of predictions: losses that settings are chosen by, and reports as text, JSON or HTML.

The definitions are scikit-learn's. A class that is never predicted has precision 0, and a class
without rows has recall 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dcsvm.data.arrays import distinct, has_label
from dcsvm.problem.option_table import REGRESSIONS, checked_metric
from dcsvm.problem.options import TrainOptions


def table_html(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Return a table with a title and a line for each name and value; text is escaped."""
    from html import escape  # only notebooks need it

    lines = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in rows
    )
    return f"<table><caption>{escape(title)}</caption>{lines}</table>"


MIN_PROBABILITY = 1e-15  # smaller ones are clipped, so that the log loss is finite
MAX_CLASSES = 20  # with more, the text has no confusion matrix, and only the worst classes
N_WORST = 10


@dataclass(frozen=True, eq=False)
class Outcome:
    """Rows, their predictions, and the metrics of a classifier on them.

    `labels` (n,), empty if the data have none, and `predicted` (n,) are labels, class indices or
    targets. `values` are decision values (n, n_pairs) of pairs of classes, positive for the first.
    `probabilities` (n, k) are those of `classes` (k,), by default the
    sorted labels. `weights` (n,) are numbers of copies of the rows. `n_features` is the number of
    features of rows of a file.
    """

    labels: np.ndarray
    predicted: np.ndarray
    values: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    weights: np.ndarray | None = None
    classes: np.ndarray | None = None
    n_features: int = 0

    def take(self, chosen: np.ndarray) -> Outcome:
        """Return the outcome of some rows, a mask or indices; the classes remain."""
        values, probabilities, weights = (
            None if array is None else array[chosen]
            for array in (self.values, self.probabilities, self.weights)
        )
        return replace(
            self, labels=self.labels[chosen], predicted=self.predicted[chosen],
            values=values, probabilities=probabilities, weights=weights,
        )  # fmt: skip

    @property
    def is_weightless(self) -> bool:
        """Whether no row counts, so that means are undefined."""
        return self.weights is not None and not self.weights.any()

    @cached_property
    def _known(self) -> np.ndarray:
        return distinct(self.labels) if self.classes is None else self.classes

    @property
    def is_first(self) -> np.ndarray:
        """Whether each row has the first class, bool (n,)."""
        return self.labels == self._known[0]

    @cached_property
    def _places(self) -> np.ndarray | None:
        """Index of the class of each row, int64 (n,); None if a label is not among the classes."""
        order = np.argsort(self._known)
        at = np.searchsorted(self._known, self.labels, sorter=order)
        place = order[at.clip(0, len(order) - 1)]
        return place if len(place) and np.all(self._known[place] == self.labels) else None

    @cached_property
    def confusion(self) -> tuple[np.ndarray, np.ndarray]:
        """All labels (k,), sorted, and the confusion matrix, true labels in its rows (k, k).

        It has numbers of rows, int64, or sums of weights, float64.
        """
        arrays = [self.labels, self.predicted, *([] if self.classes is None else [self.classes])]
        if any(array.dtype.kind == "U" for array in arrays):
            arrays = [array.astype(str) for array in arrays]
        labels, place = np.unique(np.concatenate(arrays), return_inverse=True)
        n, k = len(self.labels), len(labels)
        true, guess = place[:n], place[n : 2 * n]
        counts = np.bincount(true * k + guess, self.weights, minlength=k * k)
        return labels, counts.reshape(k, k)

    @property
    def support(self) -> np.ndarray:
        """Number of rows of each true label."""
        return self.confusion[1].sum(axis=1)

    @property
    def _n_predicted(self) -> np.ndarray:
        return self.confusion[1].sum(axis=0)

    @property
    def accuracy(self) -> float:
        _, counts = self.confusion
        return float(np.trace(counts) / counts.sum())

    @property
    def precision(self) -> np.ndarray:
        return _ratio(np.diag(self.confusion[1]), self._n_predicted)

    @property
    def recall(self) -> np.ndarray:
        return _ratio(np.diag(self.confusion[1]), self.support)

    @property
    def f1(self) -> np.ndarray:
        return _ratio(2 * np.diag(self.confusion[1]), self.support + self._n_predicted)

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the labels that have rows."""
        return float(np.mean(self.recall[self.support > 0]))

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the labels that have rows or predictions."""
        return float(np.mean(self.f1[self.support + self._n_predicted > 0]))

    @cached_property
    def auc(self) -> float:
        """Area under the ROC curve, of several classes the mean of one against the rest.

        Those of two classes are ordered by decision values, several ones by probabilities. The mean
        is over the classes that have rows. nan if it cannot be computed.
        """
        k, probabilities = len(self._known), self.probabilities
        if self._places is None:
            return math.nan
        if k == 2 and self.values is not None:
            return area_under_curve(self.is_first, self.values[:, 0], self.weights)
        if k <= 2 or probabilities is None:
            return math.nan
        areas = [
            area_under_curve(self._places == c, probabilities[:, c], self.weights) for c in range(k)
        ]
        areas = [area for area in areas if not math.isnan(area)]
        return float(np.mean(areas)) if areas else math.nan

    @cached_property
    def log_loss(self) -> float:
        """Mean of -log of the probability of each row's class; nan if it cannot be computed."""
        if self._places is None or self.probabilities is None or self.is_weightless:
            return math.nan
        own = self.probabilities[np.arange(len(self.labels)), self._places]
        return float(-np.average(np.log(np.clip(own, MIN_PROBABILITY, 1.0)), weights=self.weights))

    def lines(self, text_of: Callable[[Any], str] = str) -> Iterator[str]:
        """Yield the metrics of a classifier as lines of text; `text_of` formats a label."""
        labels, counts = self.confusion
        texts = [text_of(label) for label in labels]
        precision, recall, f1, support = self.precision, self.recall, self.f1, self.support
        # a table of all classes, or of the worst of many
        shown, title = np.arange(len(texts)), "class"
        if len(texts) > MAX_CLASSES:
            shown, title = np.argsort(f1, kind="stable")[:N_WORST], f"worst {N_WORST} classes"
        rows = [(title, "precision", "recall", "F1", "rows")]
        rows += [
            (texts[k], f"{precision[k]:.4f}", f"{recall[k]:.4f}", f"{f1[k]:.4f}", str(support[k]))
            for k in shown
        ]
        yield from _aligned(rows)
        # the metrics of all classes together
        yield f"balanced accuracy {self.balanced_accuracy:.4f}, macro F1 {self.macro_f1:.4f}"
        if not math.isnan(self.auc):
            kind = " (mean of one class against the rest)" if len(texts) > 2 else ""
            yield f"AUC {self.auc:.4f}{kind}"
        if not math.isnan(self.log_loss):
            yield f"log loss {self.log_loss:.4f}"
        if len(texts) <= MAX_CLASSES:
            yield "confusion matrix (rows: true class; columns: predicted class):"
            table: list[tuple[str, ...]] = [("", *texts)]
            table += [(text, *map(str, line)) for text, line in zip(texts, counts, strict=True)]
            yield from _aligned(table)

    def class_metrics(self) -> dict[str, Any]:
        """Return the metrics of a classifier for JSON."""
        labels, counts = self.confusion
        of_classes = {
            name: getattr(self, name).tolist() for name in ("precision", "recall", "f1", "support")
        }
        return {
            "accuracy": self.accuracy, "balanced_accuracy": self.balanced_accuracy,
            "macro_f1": self.macro_f1, "auc": _or_none(self.auc),
            "log_loss": _or_none(self.log_loss),
            "labels": labels.tolist(), **of_classes, "confusion": counts.tolist(),
        }  # fmt: skip

    def regression_metrics(self) -> dict[str, float]:
        """Return the mean absolute error, the root mean squared error and R2, by name.

        R2 is nan for equal targets.
        """
        return {
            name: DEFINITIONS[name].shown(DEFINITIONS[name].loss(self))
            for name in ("mae", "rmse", "r2")
        }


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def _or_none(value: float) -> float | None:
    """Return nan as None, since JSON lacks it."""
    return None if math.isnan(value) else value


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
    needs_values : whether an Outcome must have decision values, or probabilities made of them.
    """

    row_losses: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    is_relative: bool = False
    power: float = 1.0
    is_balanced: bool = False
    loss_of_all: Callable[[Outcome], float] | None = None
    is_gain: bool = False
    is_percent: bool = False
    needs_values: bool = False

    def loss(self, outcome: Outcome) -> float:
        """Compute the loss; nan if it is undefined, such as R2 for equal targets."""
        if outcome.is_weightless:
            return math.nan
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


DEFINITIONS = {
    "accuracy": Metric(row_losses=_errors, is_gain=True, is_percent=True),
    "balanced-accuracy": Metric(
        row_losses=_errors, is_balanced=True, is_gain=True, is_percent=True,
        loss_of_all=lambda outcome: 1.0 - outcome.balanced_accuracy,
    ),
    "f1": Metric(  # the mean over the classes, so no class is the positive one
        loss_of_all=lambda outcome: 1.0 - outcome.macro_f1, is_gain=True, is_percent=True
    ),
    "auc": Metric(
        loss_of_all=lambda outcome: 1.0 - outcome.auc,
        is_gain=True, is_percent=True, needs_values=True,
    ),
    "log-loss": Metric(loss_of_all=lambda outcome: outcome.log_loss, needs_values=True),
    "mse": Metric(row_losses=_squared_errors),
    "rmse": Metric(row_losses=_squared_errors, power=0.5),
    "mae": Metric(row_losses=_absolute_errors),
    "r2": Metric(row_losses=_squared_errors, is_relative=True, is_gain=True),
}  # fmt: skip


def shown_loss(metric: str, loss: float, error: float) -> str:
    """Format a loss and its standard error as the value of the metric."""
    shown = DEFINITIONS[metric].shown(loss)
    if DEFINITIONS[metric].is_percent:
        return f"{metric} {shown:.2f} +- {100 * error:.2f} %"
    return f"{metric} {shown:.5g} +- {error:.2g}"


def chosen_metric(metric: str | None, options: TrainOptions, labels: np.ndarray) -> str:
    """Return a metric that fits the SVM type and the labels, by default accuracy or mse.

    Raises ValueError.
    """
    metric = checked_metric(metric, options.svm_type)
    check_labels(metric, labels)
    return metric


def check_labels(metric: str, labels: np.ndarray) -> None:
    """Raise ValueError if a metric is undefined for labels or targets (n,)."""
    definition, n_different = DEFINITIONS[metric], len(distinct(labels))
    if definition.needs_values and n_different < 2:
        raise ValueError(f"the metric {metric} needs two classes")
    if definition.is_relative and n_different < 2:
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


class Measurement:
    """Measures predictions that come block by block.

    `known` are the labels of the model. Metrics need all predictions: they are kept if `is_kept`.
    `n_rows` counts all rows, `n_measured` those with labels.
    """

    def __init__(self, svm_type: str, known: np.ndarray, *, is_kept: bool = False):
        self.svm_type, self.known, self.is_kept = svm_type, known, is_kept
        self.n_rows = self.n_measured = self.n_correct = self.n_features = 0
        self.has_known_label = False
        self.squared_error = 0.0
        self.mean, self.spread = np.zeros(2), np.zeros((2, 2))
        self.kept: list[Outcome] = []

    @property
    def is_regression(self) -> bool:
        return self.svm_type in REGRESSIONS

    def add(self, block: Outcome) -> None:
        """Add at least one row; moments are merged as by Chan, Golub and LeVeque (1983)."""
        self.n_rows += len(block.predicted)
        self.n_features = max(self.n_features, block.n_features)
        if len(block.labels) == 0:
            return
        is_known = has_label(block.labels)
        if not is_known.all():
            block = block.take(is_known)
            if not is_known.any():
                return
        if self.is_kept:
            self.kept.append(block)
        predicted, labels = block.predicted, block.labels
        before, n = self.n_measured, len(predicted)
        self.n_measured += n
        if not self.is_regression:
            self.n_correct += int(np.count_nonzero(predicted == labels))
            self.has_known_label |= bool(np.isin(labels, self.known).any())
            return
        self.squared_error += float(((predicted - labels) ** 2).sum())
        # merge the moments of the block with those of the rows before
        both = np.stack((predicted, labels))
        mean = both.mean(axis=1)
        deviation, shift = both - mean[:, None], mean - self.mean
        between = np.outer(shift, shift) * (before * n / self.n_measured)
        self.spread += deviation @ deviation.T + between
        self.mean += shift * (n / self.n_measured)

    def lines(self) -> list[str]:
        """Format svm-predict's lines; none without labels."""
        if self.n_measured == 0:
            return []
        share = f"({self.n_correct}/{self.n_measured})"
        kind = "(regression)" if self.is_regression else f"{share} (classification)"
        return [f"{line} {kind}" for line in self._results()]

    def lines_of_folds(self) -> list[str]:
        """Format svm-train's lines of a cross-validation."""
        return [f"Cross Validation {line}" for line in self._results()]

    def _results(self) -> Iterator[str]:
        """Yield LIBSVM's names and numbers; a correlation is nan if predictions are constant."""
        if not self.is_regression:
            yield f"Accuracy = {100 * self.n_correct / self.n_measured:g}%"
            return
        (p, cross), (_, y) = self.spread
        correlation = float(cross**2 / (p * y)) if p * y > 0 else float("nan")
        yield f"Mean squared error = {self.squared_error / self.n_measured:g}"
        yield f"Squared correlation coefficient = {correlation:g}"

    @cached_property
    def outcome(self) -> Outcome | None:
        """All rows that were kept, None without any; joined once, after the last block."""
        if not self.kept:
            return None
        first, is_of_two = self.kept[0], len(self.known) == 2
        has_probabilities = first.probabilities is not None and len(self.known) > 0

        def joined(name: str) -> np.ndarray:
            return np.concatenate([getattr(block, name) for block in self.kept])

        return Outcome(
            joined("labels"),
            joined("predicted"),
            joined("values") if is_of_two and first.values is not None else None,
            joined("probabilities") if has_probabilities else None,
            classes=self.known if len(self.known) else None,
        )

    def lines_of_metrics(self, text_of: Callable[[Any], str] = str) -> Iterator[str]:
        """Yield the metrics of the rows that were kept as lines; `text_of` formats a label."""
        if self.outcome is not None and self.is_regression:
            mae, rmse, r2 = self.outcome.regression_metrics().values()
            yield f"MAE {mae:.6g}, RMSE {rmse:.6g}, R2 {r2:.4f}"
        elif self.outcome is not None:
            yield from self.outcome.lines(text_of)

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics of the rows that were kept for JSON, None without any."""
        if self.outcome is None:
            return None
        if self.is_regression:
            values = self.outcome.regression_metrics().items()
            return {name: _or_none(value) for name, value in values}
        return self.outcome.class_metrics()


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield lines of columns: the first one to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()
