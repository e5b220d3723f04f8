"""The splits of scikit-learn as folds: for each row the number of the one that holds it out."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from dcsvm.training.held_out import fold_numbers

DEFAULT_FOLDS = 5


def fold_of_rows(estimator, X, y, targets: np.ndarray, seed: int) -> np.ndarray:
    """The fold int64 (n,) that holds each row out by the `cv` of an estimator, -1 where none does.

    X and y are as they were given, `targets` (n,) are classes, or values of a regression. Raises
    ValueError for splits that are no folds.
    """
    cv, n_rows = estimator.cv, len(targets)
    if cv is not None and not isinstance(cv, Integral):
        return _fold_of_splits(check_cv(cv).split(X, y), n_rows)
    n_folds = DEFAULT_FOLDS if cv is None else int(cv)
    if n_folds > n_rows:
        raise ValueError(f"n_samples={n_rows} cannot be divided into {n_folds} folds: cv is less")
    return fold_numbers(targets if is_classifier(estimator) else None, n_rows, n_folds, seed)


def _fold_of_splits(splits, n_rows: int) -> np.ndarray:
    fold, every = np.full(n_rows, -1), np.arange(n_rows)
    for k, (train, test) in enumerate(splits):
        try:
            train, test = every[np.asarray(train)], every[np.asarray(test)]
        except IndexError as error:
            raise ValueError(f"split {k} of cv is not one of {n_rows} rows: {error}") from None
        if not len(test):
            raise ValueError(f"split {k} of cv has no row to test")
        if len(np.unique(test)) < len(test) or (fold[test] >= 0).any():
            raise ValueError("cv tests a row twice: test sets must have no row in common")
        if not np.array_equal(np.sort(train), np.setdiff1d(every, test)):
            raise ValueError(
                f"split {k} of cv does not train on all rows that it does not test: "
                f"{len(train)} and {len(test)} of {n_rows}"
            )
        fold[test] = k
    if (fold < 0).all():
        raise ValueError("cv has no splits")
    return fold
