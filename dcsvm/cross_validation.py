"""Cross validation by refits: every fold is predicted by a model of the other rows, each trained to
the tolerance. Nothing is shared between folds.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from dcsvm.dataset import Rows
from dcsvm.folds import shuffled_folds, stratified_folds
from dcsvm.model import CLASSIFIERS
from dcsvm.options import TrainOptions
from dcsvm.report import Progress
from dcsvm.training import train_rows


def cross_validate(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    n_folds: int,
    progress: Progress | None = None,
) -> np.ndarray:
    """Held-out predictions float64 (n,) of `labels` float64 (n,): each row by the models of the
    other folds.

    Folds are stratified for classes and shuffled otherwise, by the seed of the options. Where
    the other folds have rows of one class only, that class is predicted. Warns of folds that did
    not converge; raises ValueError for what does not fit.
    """
    start = time.perf_counter()
    progress = progress or Progress()
    of_classes = options.svm_type in CLASSIFIERS
    if of_classes:
        fold = stratified_folds(labels, n_folds, options.seed)
    else:
        fold = shuffled_folds(len(labels), n_folds, options.seed)
    progress.begin("cross validation", rows.n_samples)
    predicted = np.empty(len(labels))
    n_done = n_sv = n_failed = 0
    for k in range(n_folds):
        held_out, others = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        if of_classes and len(np.unique(labels[others])) == 1:
            predicted[held_out] = labels[others[0]]
            continue
        model, report = train_rows(rows.take(others), labels[others], options)
        predicted[held_out] = model.predict(rows.take(held_out), threads=options.threads)
        n_done, n_sv = n_done + len(held_out), n_sv + report.n_sv
        n_failed += not report.converged
        progress.advance(n_done, report.violation or 0.0, 0)
    progress.end("cross validation", time.perf_counter() - start, n_sv)
    if n_failed:
        warnings.warn(f"{n_failed} of {n_folds} folds did not converge", stacklevel=2)
    return predicted
