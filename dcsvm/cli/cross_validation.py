"""-v N: what svm-train prints of a cross validation, on stdout even when quiet."""

from __future__ import annotations

import warnings

import numpy as np

from dcsvm.cli.options import NOT_CONVERGED
from dcsvm.cli.report import TerminalProgress
from dcsvm.cli.streams import say, show
from dcsvm.data.dataset import Dataset
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.svm_types import REGRESSIONS
from dcsvm.training.cross_validation import cross_validate


def cross_validate_data(
    data: Dataset, options: TrainOptions, n_folds: int, progress: TerminalProgress
) -> int:
    """Cross validate and print; returns the exit status. More folds than rows leave one out."""
    n_rows = data.rows.n_samples
    if n_folds > n_rows:
        progress.say(f"warning: {n_folds} folds of {n_rows} rows: leaving one out instead")
        n_folds = n_rows
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predicted = cross_validate(data.rows, data.labels, options, n_folds, progress, consume=True)
    for warning in caught:
        say(f"warning: {warning.message}")
    if options.svm_type in REGRESSIONS:
        error, correlation = regression_errors(predicted, data.labels)
        show(f"Cross Validation Mean squared error = {error:g}")
        show(f"Cross Validation Squared correlation coefficient = {correlation:g}")
    else:
        accuracy = 100 * np.mean(predicted == data.labels)
        show(f"Cross Validation Accuracy = {accuracy:g}%")
    return NOT_CONVERGED if caught else 0


def regression_errors(predicted: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean squared error and squared correlation coefficient, nan where either is constant."""
    error = float(np.mean((predicted - labels) ** 2))
    p, y = predicted - predicted.mean(), labels - labels.mean()
    spread = (p @ p) * (y @ y)
    return error, float((p @ y) ** 2 / spread) if spread > 0 else float("nan")
