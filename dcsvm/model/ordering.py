"""Models with their classes in another order; predictions stay the same, except for ties."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts, Probability

Part = TypeVar("Part", ExactModel, EarlyModel)
Parts = TypeVar("Parts", bound=ModelParts)


def with_label_order(model: Parts, labels: np.ndarray) -> Parts:
    """Return the model with its classes in the order of `labels` (k,).

    Raises ValueError if these are other labels.
    """
    if np.array_equal(model.labels, labels):
        return model
    if not np.array_equal(np.sort(model.labels), np.sort(labels)):
        raise ValueError("the model has other labels")
    rank = np.argsort(np.argsort(model.labels))  # among the sorted labels
    order = _Order(np.argsort(labels)[rank])
    probability = model.probability
    if probability is not None and probability.B is not None:
        # with -f for f the other class of the pair has 1 / (1 + exp(A f - B))
        offsets = order.of_pairs(probability.B) * order.sign
        probability = Probability(order.of_pairs(probability.A), offsets)
    return replace(
        model,
        labels=labels,
        exact=model.exact and _reordered(model.exact, order),
        early=model.early and _reordered(model.early, order),
        probability=probability,
    )


class _Order:
    """A permutation of the classes.

    `rank` (k,) is the new index of each class, `sign` (n_pairs,) is -1 for a new pair with its
    classes swapped.
    """

    def __init__(self, rank: np.ndarray):
        self.rank, k = rank, len(rank)
        self.old = np.argsort(rank)
        first, second = np.triu_indices(k, 1)
        a, b = self.old[first], self.old[second]
        self.sign = np.where(a < b, 1.0, -1.0)
        low, high = np.minimum(a, b), np.maximum(a, b)
        self.pair = low * k - low * (low + 1) // 2 + high - low - 1

    def of_pairs(self, values: np.ndarray) -> np.ndarray:
        """Reorder values (..., n_pairs) of pairs."""
        return np.ascontiguousarray(values[..., self.pair])

    def coefficients(self, coef: np.ndarray, class_: np.ndarray) -> np.ndarray:
        """Convert LIBSVM's sv_coef (k - 1, n) of support vectors with these old classes."""
        line = np.arange(len(coef))[:, None]
        new = self.rank[class_]
        other = self.old[line + (line >= new)]  # old index of the other class of each line
        flipped = (class_ < other) != (new < self.rank[other])
        signs = np.where(flipped, -1.0, 1.0)
        return np.take_along_axis(coef, other - (other > class_), axis=0) * signs


def _reordered(part: Part, order: _Order) -> Part:
    assert part.class_ is not None  # labels have classes
    class_ = order.rank[part.class_]
    cluster = part.cluster if isinstance(part, EarlyModel) else np.zeros(len(class_), np.int32)
    index = np.lexsort((class_, cluster))
    rows, rho = part.rows.take(index), order.of_pairs(part.rho) * order.sign
    coef = order.coefficients(part.dual_coef, part.class_)[:, index]
    numbers = None if part.row_numbers is None else part.row_numbers[index]
    part = replace(part, rows=rows, dual_coef=coef, rho=rho, row_numbers=numbers)
    if isinstance(part, EarlyModel):
        return replace(part, class_=class_[index].astype(np.int32))
    assert part.n_sv is not None
    return replace(part, n_sv=part.n_sv[order.old])
