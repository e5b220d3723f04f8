"""Report predictions: precision, recall, F1, AUC, log loss; MAE, RMSE, R2; as text or JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcsvm.model.metrics import DEFINITIONS, Confusion, area_under_curve, log_loss, loss_of
from dcsvm.problem.option_table import REGRESSIONS

MAX_CLASSES = 20  # with more, the text has no confusion matrix, and only the worst classes
N_WORST = 10


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of a block of rows.

    `predicted` (n,) are labels or values. `values` float64 (n, n_pairs) are decision values or
    values of a regression, `probabilities` float64 (n, k) or None. `labels` (n,) are the true ones,
    None if the data have none. `n_features` is the number of features of the data.
    """

    predicted: np.ndarray
    values: np.ndarray
    probabilities: np.ndarray | None = None
    labels: np.ndarray | None = None
    n_features: int = 0


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
        self.kept: list[Predicted] = []

    @property
    def is_regression(self) -> bool:
        return self.svm_type in REGRESSIONS

    def add(self, block: Predicted) -> None:
        """Add at least one row; moments are merged as by Chan, Golub and LeVeque (1983)."""
        self.n_rows += len(block.predicted)
        self.n_features = max(self.n_features, block.n_features)
        if block.labels is None:
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
        if not self.is_regression:
            share = f"({self.n_correct}/{self.n_measured})"
            return [f"Accuracy = {self._percentage:g}% {share} (classification)"]
        error, correlation = self._errors
        return [
            f"Mean squared error = {error:g} (regression)",
            f"Squared correlation coefficient = {correlation:g} (regression)",
        ]

    def lines_of_folds(self) -> list[str]:
        """Format svm-train's lines of a cross-validation."""
        if not self.is_regression:
            return [f"Cross Validation Accuracy = {self._percentage:g}%"]
        error, correlation = self._errors
        return [
            f"Cross Validation Mean squared error = {error:g}",
            f"Cross Validation Squared correlation coefficient = {correlation:g}",
        ]

    @property
    def _percentage(self) -> float:
        return 100 * self.n_correct / self.n_measured

    @property
    def _errors(self) -> tuple[float, float]:
        """Mean squared error and squared correlation, nan if predictions are constant."""
        (p, cross), (_, y) = self.spread
        correlation = float(cross**2 / (p * y)) if p * y > 0 else float("nan")
        return self.squared_error / self.n_measured, correlation

    @property
    def metrics(self) -> ClassMetrics | RegressionMetrics | None:
        """The metrics of all rows that were kept, None without any."""
        if not self.kept:
            return None
        labels, predicted = (
            np.concatenate([getattr(one, name) for one in self.kept])
            for name in ("labels", "predicted")
        )
        if self.is_regression:
            return RegressionMetrics.of(labels, predicted)
        values = probabilities = None
        if len(self.known) == 2:
            values = np.concatenate([one.values[:, 0] for one in self.kept])
        found = [one.probabilities for one in self.kept if one.probabilities is not None]
        if found:
            probabilities = np.concatenate(found)
        known = self.known if len(self.known) else np.unique(labels)
        return ClassMetrics.of(labels, predicted, known, values, probabilities)


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
        mae, rmse, r2 = (
            DEFINITIONS[name].shown(loss_of(name, targets, predicted))
            for name in ("mae", "rmse", "r2")
        )
        return RegressionMetrics(mae, rmse, r2)

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
