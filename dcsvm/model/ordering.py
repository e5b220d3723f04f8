"""A model with its classes in another order: what it predicts stays, but for ties of votes."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts, Probability

Part = TypeVar("Part", ExactModel, EarlyModel)
Parts = TypeVar("Parts", bound=ModelParts)


def with_label_order(model: Parts, labels: np.ndarray) -> Parts:
    """The model with its classes in the order of `labels` (k,), which are the same ones.

    Raises ValueError for other labels.
    """
    if np.array_equal(model.labels, labels):
        return model
    if not np.array_equal(np.sort(model.labels), np.sort(labels)):
        raise ValueError("the model has other labels")
    place = np.argsort(np.argsort(model.labels))  # among the sorted labels
    order = _Order(np.argsort(labels)[place])
    probability = model.probability
    if probability is not None:
        # with -f for f the other class of the pair has 1 / (1 + exp(A f - B))
        A, B = order.of_pairs(probability.A), order.of_pairs(probability.B) * order.sign
        probability = Probability(A, B)
    return replace(
        model,
        labels=labels,
        exact=model.exact and _reordered(model.exact, order),
        early=model.early and _reordered(model.early, order),
        probability=probability,
    )


class _Order:
    """`rank` (k,) is the new number of each class, `sign` (n_pairs,) -1 where a new pair has its
    classes the other way round."""

    def __init__(self, rank: np.ndarray):
        self.rank, k = rank, len(rank)
        self.old = np.argsort(rank)
        first, second = np.triu_indices(k, 1)
        a, b = self.old[first], self.old[second]
        self.sign = np.where(a < b, 1.0, -1.0)
        low, high = np.minimum(a, b), np.maximum(a, b)
        self.pair = low * k - low * (low + 1) // 2 + high - low - 1

    def of_pairs(self, values: np.ndarray) -> np.ndarray:
        """Values (..., n_pairs) of the pairs as they are now."""
        return np.ascontiguousarray(values[..., self.pair])

    def coefficients(self, coef: np.ndarray, class_: np.ndarray) -> np.ndarray:
        """LIBSVM's sv_coef (k - 1, n) of support vectors of these old classes."""
        every = np.arange(len(coef))[:, None]
        new = self.rank[class_]
        other = self.old[every + (every >= new)]  # of each line, by the old number
        line = other - (other > class_)
        flipped = (class_ < other) != (new < self.rank[other])
        return np.take_along_axis(coef, line, axis=0) * np.where(flipped, -1.0, 1.0)


def _reordered(part: Part, order: _Order) -> Part:
    class_ = order.rank[part.class_]
    cluster = part.cluster if isinstance(part, EarlyModel) else np.zeros(len(class_), np.int32)
    place = np.lexsort((class_, cluster))
    changed = {
        "rows": part.rows.take(place),
        "dual_coef": order.coefficients(part.dual_coef, part.class_)[:, place],
        "rho": order.of_pairs(part.rho) * order.sign,
        "row_numbers": None if part.row_numbers is None else part.row_numbers[place],
    }
    if isinstance(part, EarlyModel):
        return replace(part, class_=class_[place].astype(np.int32), **changed)
    return replace(part, n_sv=part.n_sv[order.old], **changed)
