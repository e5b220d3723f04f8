"""-v N: what svm-train prints of a cross validation, on stdout even when quiet."""

from __future__ import annotations

import warnings

from dcsvm.cli.guard import NOT_CONVERGED
from dcsvm.cli.quality import quality_of_folds
from dcsvm.cli.report import TerminalProgress
from dcsvm.cli.streams import say, show
from dcsvm.data.dataset import Dataset
from dcsvm.problem.options import TrainOptions
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
    for line in quality_of_folds(options.svm_type, predicted, data.labels):
        show(line)
    return NOT_CONVERGED if caught else 0
