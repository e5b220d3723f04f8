"""Assign rows to folds of cross validation, with a seed, stratified for classifiers.

LIBSVM (svm_cross_validation) splits rows in the same way, but with other random numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dcsvm.data.arrays import distinct

FOLDS_FOR_PROBABILITY = 5


@dataclass(frozen=True, eq=False)
class Folds:
    """Held-out rows of each of `n_folds` folds, with duplicates merged.

    An entry is one merged row in one fold. Entry j has `counts[j]` input rows (int64) of total
    weight `weight[j]` (float64). They are merged into row `row[j]` and held out by fold `fold[j]`.
    Entries ascend by fold, then row. Fold -1 has the rows that are never held out. `entry` int64
    (n,) is the entry of each input row.
    """

    n_folds: int
    fold: np.ndarray
    row: np.ndarray
    counts: np.ndarray
    weight: np.ndarray
    entry: np.ndarray

    @staticmethod
    def of(n_folds: int, fold: np.ndarray, row: np.ndarray, weights: np.ndarray) -> Folds:
        """Make folds from the fold, the merged row and the weight of each input row."""
        n_rows = int(row.max()) + 1
        key, entry, counts = np.unique(fold * n_rows + row, return_inverse=True, return_counts=True)
        entry = entry.reshape(-1)
        weight = np.bincount(entry, weights)
        return Folds(n_folds, key // n_rows, key % n_rows, counts, weight, entry)

    def entries(self, fold: int) -> slice:
        return slice(*np.searchsorted(self.fold, [fold, fold + 1]))

    def n_held(self, folds: Iterable[int]) -> int:
        """Count the input rows that some folds hold out."""
        return int(sum(self.counts[self.entries(k)].sum() for k in folds))

    @property
    def nonempty(self) -> np.ndarray:
        """The folds with held-out rows."""
        return distinct(self.fold[self.held])

    @property
    def held(self) -> slice:
        """The entries that a fold holds out."""
        return slice(int(np.searchsorted(self.fold, 0)), len(self.fold))

    def train_weight(self, fold: int) -> np.ndarray:
        """Return the training weight of each row in a fold, float64 (n_rows,)."""
        others = self.fold != fold
        return np.bincount(self.row[others], self.weight[others], int(self.row.max()) + 1)

    def learns(self, classes: np.ndarray, n_classes: int) -> np.ndarray:
        """Return whether each fold trains on each class, bool (n_folds, n_classes).

        `classes` is the class of each entry.
        """
        held = np.zeros((self.n_folds + 1, n_classes), np.int64)
        np.add.at(held, (self.fold, classes), self.counts)
        return held[: self.n_folds] < held.sum(axis=0)

    def classes_alone(self, classes: np.ndarray, n_classes: int) -> np.ndarray:
        """Return the class of each entry's fold if it trains on that class only, else -1; (m,).

        `classes` is the class of each entry.
        """
        is_known = self.learns(classes, n_classes)
        alone = np.where(is_known.sum(axis=1) == 1, is_known.argmax(axis=1), -1)
        return np.where(self.fold >= 0, alone[self.fold], -1)


def stratified_folds(labels: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """Return the fold 0..n_folds-1 of each row, int64 (n,), with balanced classes.

    Fold sizes differ by at most one, and so do the sizes of each class in the folds.
    Raises ValueError unless 2 <= n_folds <= n.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(np.asarray(labels)[order], kind="stable")]
    return _dealt(order, n_folds)


def shuffled_folds(n_samples: int, n_folds: int, seed: int) -> np.ndarray:
    """Return the fold 0..n_folds-1 of each row, int64 (n_samples,), regardless of labels.

    Fold sizes differ by at most one. Raises ValueError unless
    2 <= n_folds <= n_samples.
    """
    return _dealt(np.random.default_rng(seed).permutation(n_samples), n_folds)


def _dealt(order: np.ndarray, n_folds: int) -> np.ndarray:
    """Assign the rows of `order` to the folds in turn."""
    if not 2 <= n_folds <= len(order):
        raise ValueError(f"{len(order)} rows cannot be divided into {n_folds} folds")
    fold = np.empty(len(order), np.int64)
    fold[order] = np.arange(len(order)) % n_folds
    return fold
