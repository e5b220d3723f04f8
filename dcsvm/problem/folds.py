"""Which fold holds which row out in cross validation: seeded, and by class where there are any.

LIBSVM (svm_cross_validation) splits the same way, with other random numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

FOLDS_FOR_PROBABILITY = 5


@dataclass(frozen=True, eq=False)
class Folds:
    """What each of `n_folds` folds holds out of rows that stand for equal ones.

    Entry j is `counts[j]` given rows int64, of `weight[j]` float64 together, that have become
    row `row[j]` and that fold `fold[j]` holds out; entries ascend by fold, then row. Fold -1 is of
    rows that none holds out. `entry` int64 (n,) is the one of each row as it was given.
    """

    n_folds: int
    fold: np.ndarray
    row: np.ndarray
    counts: np.ndarray
    weight: np.ndarray
    entry: np.ndarray

    @staticmethod
    def of(n_folds: int, fold: np.ndarray, row: np.ndarray, weights: np.ndarray) -> Folds:
        """From the fold that holds each given row out, the row it has become and its weight."""
        n_rows = int(row.max()) + 1
        key, entry, counts = np.unique(fold * n_rows + row, return_inverse=True, return_counts=True)
        entry = entry.reshape(-1)
        weight = np.bincount(entry, weights)
        return Folds(n_folds, key // n_rows, key % n_rows, counts, weight, entry)

    def entries(self, fold: int) -> slice:
        return slice(*np.searchsorted(self.fold, [fold, fold + 1]))

    def n_held(self, some: Iterable[int]) -> int:
        """How many rows, as they were given, some folds hold out."""
        return int(sum(self.counts[self.entries(k)].sum() for k in some))

    @property
    def filled(self) -> np.ndarray:
        """The folds that hold anything out."""
        return np.unique(self.fold[self.held])

    @property
    def held(self) -> slice:
        """The entries that some fold holds out."""
        return slice(int(np.searchsorted(self.fold, 0)), len(self.fold))

    def left(self, fold: int) -> np.ndarray:
        """The weight float64 (n_rows,) of each row that is not held out by a fold."""
        others = self.fold != fold
        return np.bincount(self.row[others], self.weight[others], int(self.row.max()) + 1)

    def learns(self, classes: np.ndarray, n_classes: int) -> np.ndarray:
        """Whether each fold has rows of each class to learn from, bool (n_folds, n_classes), by the
        class of every entry."""
        held = np.zeros((self.n_folds + 1, n_classes), np.int64)
        np.add.at(held, (self.fold, classes), self.counts)
        return held[: self.n_folds] < held.sum(axis=0)

    def classes_alone(self, classes: np.ndarray, n_classes: int) -> np.ndarray:
        """The class of each entry whose fold has rows of one class only to learn from, int64 (m,),
        else -1; by the class of every entry."""
        is_known = self.learns(classes, n_classes)
        alone = np.where(is_known.sum(axis=1) == 1, is_known.argmax(axis=1), -1)
        return np.where(self.fold >= 0, alone[self.fold], -1)


def stratified_folds(labels: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """The fold 0..n_folds-1 of each row, int64 (n,): every class spread as evenly as possible.

    Both the rows of a class in a fold and the rows of a fold differ by at most one between folds.
    Raises ValueError unless 2 <= n_folds <= n.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(np.asarray(labels)[order], kind="stable")]
    return _dealt(order, n_folds)


def shuffled_folds(n_samples: int, n_folds: int, seed: int) -> np.ndarray:
    """The fold 0..n_folds-1 of each row, int64 (n_samples,), whatever its label.

    The rows of a fold differ by at most one between folds. Raises ValueError unless
    2 <= n_folds <= n_samples.
    """
    return _dealt(np.random.default_rng(seed).permutation(n_samples), n_folds)


def _dealt(order: np.ndarray, n_folds: int) -> np.ndarray:
    """Rows dealt to the folds in turn, class after class without starting anew."""
    if not 2 <= n_folds <= len(order):
        raise ValueError(f"{len(order)} rows cannot be divided into {n_folds} folds")
    fold = np.empty(len(order), np.int64)
    fold[order] = np.arange(len(order)) % n_folds
    return fold
