"""Rows that landmarks are fitted to, with what a model says of them.

A row is near the border where some decision value that its label depends on is within the margin,
as it is for support vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dcsvm.compression.landmarks import Wanted
from dcsvm.data.rows import Rows
from dcsvm.model.coupling import most_voted
from dcsvm.model.pair_weights import pairs_of_lines
from dcsvm.model.parts import ModelParts

MARGIN = 1.01  # a decision value of support vectors, and what the tolerance may add
OTHER_PAIRS = 0.1  # what the pairs count that the label of a row does not depend on


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to fit landmarks to: what is `wanted` there, with decision values in units of `scale`,
    the `class_` (n,) that the model predicts, and whether each is `near` the border."""

    wanted: Wanted
    class_: np.ndarray
    near: np.ndarray
    scale: float

    @staticmethod
    def of(model: ModelParts, rows: Rows, values: np.ndarray) -> Sample:
        """Of rows with these decision values (n, n_pairs) of the model, nan for none."""
        known = np.isfinite(values)
        filled, weights = np.where(known, values, 0.0), known.astype(np.float32)
        class_, near, scale = np.zeros(len(values), np.int32), np.ones(len(values), bool), 1.0
        if model.is_classifier:
            k = len(model.labels)
            class_ = most_voted(values, k).astype(np.int32)
            own = pairs_of_lines(class_, k)
            others = np.ones(values.shape, bool)
            np.put_along_axis(others, own, False, axis=1)
            weights[others] *= OTHER_PAIRS
            of_own = np.take_along_axis(np.where(known, np.abs(values), np.inf), own, axis=1)
            near = of_own.min(axis=1, initial=np.inf) <= MARGIN
        else:
            scale = float(values.std()) or 1.0
        by_sign = model.is_classifier or model.svm_type == "one_class"
        values = (filled / scale).astype(np.float32)
        return Sample(Wanted(rows, values, weights, by_sign), class_, near, scale)

    def take(self, numbers: np.ndarray) -> Sample:
        return replace(
            self,
            wanted=self.wanted.take(numbers),
            class_=self.class_[numbers],
            near=self.near[numbers],
        )

    def starts(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of n random rows, or of all, near ones before the others; class by class."""
        order = rng.permutation(len(self.near))
        order = order[np.argsort(~self.near[order], kind="stable")][:n]
        return order[np.lexsort((order, self.class_[order]))]
