"""Measure predictions: confusion matrix, precision, recall, F1, AUC, log loss; MAE, RMSE, R2.

The definitions are scikit-learn's. A class that is never predicted has precision 0, and a class
without rows has recall 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcsvm.data.sorting import distinct
from dcsvm.problem.option_table import REGRESSION_METRICS

MAX_CLASSES = 20  # with more, the text has no confusion matrix, and only the worst classes
N_WORST = 10
MIN_PROBABILITY = 1e-15


def loss_of(
    metric: str,
    labels: np.ndarray,
    predicted: np.ndarray,
    values: np.ndarray | None = None,
    probabilities: np.ndarray | None = None,
) -> float:
    """Compute the loss of a metric: 1 minus a gain such as the accuracy, or an error.

    f1 is the mean over the classes, so no class is the positive one. `values` (n,), needed for auc,
    are decision values of two classes, positive for the smaller label. `probabilities` (n, k),
    needed for log-loss, are those of the sorted labels.
    """
    if metric in REGRESSION_METRICS:
        found = RegressionMetrics.of(labels, predicted)
        return 1.0 - found.r2 if metric == "r2" else getattr(found, metric)
    if metric == "accuracy":
        return float(np.mean(labels != predicted))
    if metric == "auc":
        assert values is not None
        return 1.0 - area_under_curve(labels == distinct(labels)[0], values)
    if metric == "log-loss":
        assert probabilities is not None
        return log_loss(np.unique(labels, return_inverse=True)[1], probabilities)
    matrix = Confusion.of(labels, predicted)
    return 1.0 - (matrix.balanced_accuracy if metric == "balanced-accuracy" else matrix.macro_f1)


def area_under_curve(is_first: np.ndarray, values: np.ndarray) -> float:
    """Compute the area under the ROC curve: P(value of a first > value of another), ties half.

    nan if there are no first or no other rows.
    """
    n_first = int(np.count_nonzero(is_first))
    n_others = len(is_first) - n_first
    if n_first == 0 or n_others == 0:
        return math.nan
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts - 1))[place.reshape(-1)]
    return float((ranks[is_first].sum() - 0.5 * n_first * (n_first + 1)) / (n_first * n_others))


def log_loss(classes: np.ndarray, probabilities: np.ndarray) -> float:
    """Compute the mean of -log of the probability of each row's class, from its index (n,)."""
    own = probabilities[np.arange(len(classes)), classes]
    return float(-np.mean(np.log(np.clip(own, MIN_PROBABILITY, 1.0))))


@dataclass(frozen=True, eq=False)
class Confusion:
    """Number of rows by true and predicted label.

    `labels` (k,) are sorted; `counts` int64 (k, k) has true labels in rows.
    """

    labels: np.ndarray
    counts: np.ndarray

    @staticmethod
    def of(labels: np.ndarray, predicted: np.ndarray, known: np.ndarray | None = None) -> Confusion:
        """Count labels (n,) and predictions (n,); `known` are more labels."""
        several = [labels, predicted, *([] if known is None else [known])]
        if any(one.dtype.kind == "U" for one in several):
            several = [one.astype(str) for one in several]
        found, place = np.unique(np.concatenate(several), return_inverse=True)
        true, guess = place[: len(labels)], place[len(labels) : 2 * len(labels)]
        k = len(found)
        return Confusion(found, np.bincount(true * k + guess, minlength=k * k).reshape(k, k))

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


@dataclass(frozen=True, eq=False)
class ClassMetrics:
    """Metrics of a classifier; `auc` and `log_loss` are None where they cannot be computed."""

    confusion: Confusion
    auc: float | None = None
    log_loss: float | None = None

    @staticmethod
    def of(
        labels: np.ndarray,
        predicted: np.ndarray,
        known: np.ndarray,
        values: np.ndarray | None = None,
        probabilities: np.ndarray | None = None,
    ) -> ClassMetrics:
        """Measure predictions.

        `known` (k,) are the labels of the model, in its order. `values` (n,) are decision values of
        two classes, positive for the first. `probabilities` (n, k) are in the order of `known`;
        their log loss needs rows with known labels only.
        """
        confusion = Confusion.of(labels, predicted, known)
        auc = loss = None
        order = np.argsort(known)
        place = order[np.searchsorted(known, labels, sorter=order).clip(0, len(known) - 1)]
        is_known = len(labels) > 0 and bool(np.all(known[place] == labels))
        if values is not None and len(known) == 2 and is_known:
            auc = area_under_curve(labels == known[0], values)
        if probabilities is not None and is_known:
            loss = log_loss(place, probabilities)
            if len(known) > 2:
                each = [
                    area_under_curve(place == k, probabilities[:, k]) for k in range(len(known))
                ]
                auc = float(np.mean(each))
        return ClassMetrics(confusion, None if auc is not None and math.isnan(auc) else auc, loss)

    def lines(self, text_of: Any = str) -> Iterator[str]:
        """Yield lines of text; `text_of` formats a label."""
        one = self.confusion
        texts = [text_of(label) for label in one.labels]
        shown, title = np.arange(len(texts)), "class"
        if len(texts) > MAX_CLASSES:
            shown, title = np.argsort(one.f1, kind="stable")[:N_WORST], f"worst {N_WORST} classes"
        rows = [(title, "precision", "recall", "F1", "rows")]
        rows += [
            (texts[k], f"{one.precision[k]:.4f}", f"{one.recall[k]:.4f}", f"{one.f1[k]:.4f}",
             str(one.support[k]))
            for k in shown
        ]  # fmt: skip
        yield from _aligned(rows)
        yield f"balanced accuracy {one.balanced_accuracy:.4f}, mean F1 {one.macro_f1:.4f}"
        if self.auc is not None:
            kind = " (mean of one class against the rest)" if len(texts) > 2 else ""
            yield f"AUC {self.auc:.4f}{kind}"
        if self.log_loss is not None:
            yield f"log loss {self.log_loss:.4f}"
        if len(texts) <= MAX_CLASSES:
            yield "confusion matrix (rows: true class; columns: predicted class):"
            table: list[tuple[str, ...]] = [("", *texts)]
            table += [(text, *map(str, line)) for text, line in zip(texts, one.counts, strict=True)]
            yield from _aligned(table)

    def as_dict(self) -> dict[str, Any]:
        """Return the metrics for JSON."""
        one = self.confusion
        each = {
            name: getattr(one, name).tolist() for name in ("precision", "recall", "f1", "support")
        }
        return {
            "accuracy": one.accuracy, "balanced_accuracy": one.balanced_accuracy,
            "macro_f1": one.macro_f1, "auc": self.auc, "log_loss": self.log_loss,
            "labels": one.labels.tolist(), **each, "confusion": one.counts.tolist(),
        }  # fmt: skip


@dataclass(frozen=True)
class RegressionMetrics:
    """Mean absolute error, root mean squared error, and R2; R2 is nan for equal targets."""

    mae: float
    rmse: float
    r2: float

    @staticmethod
    def of(targets: np.ndarray, predicted: np.ndarray) -> RegressionMetrics:
        errors = predicted - targets
        total = float(np.sum((targets - np.mean(targets)) ** 2))
        squared = float(np.sum(errors**2))
        return RegressionMetrics(
            float(np.mean(np.abs(errors))),
            math.sqrt(squared / len(targets)),
            1.0 - squared / total if total > 0 else math.nan,
        )

    def lines(self, _text_of: Any = str) -> Iterator[str]:
        """Yield a line of text."""
        yield f"MAE {self.mae:.6g}, RMSE {self.rmse:.6g}, R2 {self.r2:.4f}"

    def as_dict(self) -> dict[str, Any]:
        """Return the metrics for JSON; nan becomes None."""
        values = vars(self).items()
        return {name: None if math.isnan(value) else value for name, value in values}


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield lines of columns: the first one to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()
