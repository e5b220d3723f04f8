"""Which fold holds which row out in cross validation: seeded, and by class where there are any.

LIBSVM (svm_cross_validation) splits the same way, with other random numbers.
"""

from __future__ import annotations

import numpy as np


def stratified_folds(labels: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """The fold 0..n_folds-1 of each row, int64 (n,): every class spread as evenly as it goes.

    Both the rows of a class in a fold and the rows of a fold differ by at most one between folds.
    Raises ValueError unless 2 <= n_folds <= n.
    """
    _check(len(labels), n_folds)
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(np.asarray(labels)[order], kind="stable")]
    return _dealt(order, n_folds)


def shuffled_folds(n_samples: int, n_folds: int, seed: int) -> np.ndarray:
    """The fold 0..n_folds-1 of each row, int64 (n_samples,), whatever its label.

    The rows of a fold differ by at most one between folds. Raises ValueError unless
    2 <= n_folds <= n_samples.
    """
    _check(n_samples, n_folds)
    return _dealt(np.random.default_rng(seed).permutation(n_samples), n_folds)


def _dealt(order: np.ndarray, n_folds: int) -> np.ndarray:
    """Rows dealt to the folds in turn, class after class without starting anew."""
    fold = np.empty(len(order), np.int64)
    fold[order] = np.arange(len(order)) % n_folds
    return fold


def _check(n_samples: int, n_folds: int) -> None:
    if not 2 <= n_folds <= n_samples:
        raise ValueError(f"{n_samples} rows cannot be divided into {n_folds} folds")
