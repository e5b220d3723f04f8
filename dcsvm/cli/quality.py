"""How good predictions are, in svm-train's and svm-predict's words."""

from __future__ import annotations

import numpy as np

from dcsvm.problem.svm_types import REGRESSIONS


def quality_of_folds(svm_type: str, predicted: np.ndarray, labels: np.ndarray) -> list[str]:
    """svm-train's lines on a cross validation."""
    if svm_type in REGRESSIONS:
        error, correlation = regression_errors(predicted, labels)
        return [
            f"Cross Validation Mean squared error = {error:g}",
            f"Cross Validation Squared correlation coefficient = {correlation:g}",
        ]
    return [f"Cross Validation Accuracy = {100 * np.mean(predicted == labels):g}%"]


def quality(svm_type: str, predicted: np.ndarray, labels: np.ndarray) -> list[str]:
    """svm-predict's lines."""
    if svm_type in REGRESSIONS:
        error, correlation = regression_errors(predicted, labels)
        return [
            f"Mean squared error = {error:g} (regression)",
            f"Squared correlation coefficient = {correlation:g} (regression)",
        ]
    correct, total = int(np.count_nonzero(predicted == labels)), len(predicted)
    return [f"Accuracy = {100 * correct / total:g}% ({correct}/{total}) (classification)"]


def regression_errors(predicted: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean squared error and squared correlation coefficient, nan where either is constant."""
    error = float(np.mean((predicted - labels) ** 2))
    p, y = predicted - predicted.mean(), labels - labels.mean()
    spread = (p @ p) * (y @ y)
    return error, float((p @ y) ** 2 / spread) if spread > 0 else float("nan")
