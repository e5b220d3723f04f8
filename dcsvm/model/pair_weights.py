"""What support vectors weigh in the decision values of all pairs of classes.

A support vector of class i counts in the k - 1 pairs of i, where its coefficient is not 0.
"""

from __future__ import annotations

import weakref

import numpy as np

from dcsvm.model.parts import EarlyModel, ExactModel

_kept: weakref.WeakKeyDictionary[ExactModel | EarlyModel, PairWeights] = weakref.WeakKeyDictionary()


class PairWeights:
    """The weights of a model's support vectors, as KernelRows.product takes them."""

    def __init__(self, part: ExactModel | EarlyModel, n_pairs: int):
        self.coefficients, self.n_pairs = part.dual_coef, n_pairs
        if n_pairs == 1:
            self.coefficients = np.ascontiguousarray(part.dual_coef[0])
            return
        coef = part.dual_coef.T
        pair = pairs_of_lines(part.class_, coef.shape[1] + 1)
        used = coef != 0
        self.indptr = np.concatenate(([0], np.cumsum(used.sum(axis=1)))).astype(np.int64)
        self.pair, self.coefficients = pair[used], coef[used]

    @staticmethod
    def kept(part: ExactModel | EarlyModel, n_pairs: int) -> PairWeights:
        """Those of an earlier call with this very part, which are kept for as long as it is, or new
        ones. Of two threads that come first one may make them in vain."""
        weights = _kept.get(part)
        if weights is None:
            weights = _kept[part] = PairWeights(part, n_pairs)
        return weights

    def all(self):
        if self.n_pairs == 1:
            return self.coefficients
        return self.indptr, self.pair, self.coefficients, self.n_pairs

    def ordered(self, order: np.ndarray):
        """Those of the support vectors in another order."""
        if self.n_pairs == 1:
            return self.coefficients[order]
        lengths = np.diff(self.indptr)[order]
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[order] - indptr[:-1], lengths)
        return indptr, self.pair[places], self.coefficients[places], self.n_pairs

    def totals(self) -> np.ndarray:
        """Sum of |coefficients| of every pair, float64 (n_pairs,)."""
        _, pair, coefficients = self.entries()
        return np.bincount(pair, np.abs(coefficients), self.n_pairs)

    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(support vector, pair, coefficient) of all coefficients that are not 0, support vectors
        ascending."""
        if self.n_pairs == 1:
            owner = np.flatnonzero(self.coefficients)
            return owner, np.zeros(len(owner), np.int64), self.coefficients[owner]
        owner = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return owner, self.pair, self.coefficients


def pairs_of_lines(class_: np.ndarray, n_classes: int) -> np.ndarray:
    """The pair that each line of the coefficients is for, int32 (n, n_classes - 1), of support
    vectors of these classes (n,)."""
    class_, n_others = class_[:, None].astype(np.int32), n_classes - 1
    every = np.arange(n_others, dtype=np.int32)
    other = every + (every >= class_)
    first, second = np.minimum(other, class_), np.maximum(other, class_)
    return first * n_others - first * (first - 1) // 2 + second - first - 1
