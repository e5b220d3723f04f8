"""How good predictions are, in svm-train's and svm-predict's words."""

from __future__ import annotations

import numpy as np

from dcsvm.problem.svm_types import REGRESSIONS


def quality_of_folds(svm_type: str, predicted: np.ndarray, labels: np.ndarray) -> list[str]:
    """svm-train's lines on a cross validation."""
    quality = Quality(svm_type, np.empty(0))
    quality.add(predicted, labels)
    if svm_type in REGRESSIONS:
        error, correlation = quality.regression_errors()
        return [
            f"Cross Validation Mean squared error = {error:g}",
            f"Cross Validation Squared correlation coefficient = {correlation:g}",
        ]
    return [f"Cross Validation Accuracy = {100 * quality.n_correct / quality.n_rows:g}%"]


class Quality:
    """svm-predict's lines on rows that come in pieces; `n_features` is for whom reads these."""

    def __init__(self, svm_type: str, known: np.ndarray):
        self.svm_type, self.known = svm_type, known
        self.n_rows = self.n_correct = self.n_features = 0
        self.has_known_label = False
        self.squared_error = 0.0
        self.mean, self.spread = np.zeros(2), np.zeros((2, 2))

    def add(self, predicted: np.ndarray, labels: np.ndarray) -> None:
        """More rows, at least one. Their spreads are added as by Chan, Golub and LeVeque (1983)."""
        before, n = self.n_rows, len(predicted)
        self.n_rows += n
        if self.svm_type not in REGRESSIONS:
            self.n_correct += int(np.count_nonzero(predicted == labels))
            self.has_known_label |= bool(np.isin(labels, self.known).any())
            return
        self.squared_error += float(((predicted - labels) ** 2).sum())
        both = np.stack((predicted, labels))
        mean = both.mean(axis=1)
        own, apart = both - mean[:, None], mean - self.mean
        self.spread += own @ own.T + np.outer(apart, apart) * (before * n / self.n_rows)
        self.mean += apart * (n / self.n_rows)

    def lines(self) -> list[str]:
        if self.svm_type not in REGRESSIONS:
            correct, total = self.n_correct, self.n_rows
            return [f"Accuracy = {100 * correct / total:g}% ({correct}/{total}) (classification)"]
        error, correlation = self.regression_errors()
        return [
            f"Mean squared error = {error:g} (regression)",
            f"Squared correlation coefficient = {correlation:g} (regression)",
        ]

    def regression_errors(self) -> tuple[float, float]:
        """Mean squared error and squared correlation coefficient, nan where either is constant."""
        (p, cross), (_, y) = self.spread
        correlation = float(cross**2 / (p * y)) if p * y > 0 else float("nan")
        return self.squared_error / self.n_rows, correlation
