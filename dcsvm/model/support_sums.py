"""Sums of kernel values with all support vectors, times their weights.

Kernel values of support vectors that are far from a row are left out where all of them together
change no decision value by more than LEFT_OUT times the largest coefficient. A row whose decision
value is so small that its sign could depend on that is computed again with all of them, so that
labels are those of all kernel values.
"""

from __future__ import annotations

import numpy as np

from dcsvm.kernel.kernel_rows import Reach
from dcsvm.kernel.sources import Meeting, Sources
from dcsvm.model.pair_weights import PairWeights

LEFT_OUT = 2.0**-24  # what rounding one kernel value near 1 to float32 may change
LEFT_OUT_FLOAT64 = 2.0**-53  # the same of float64
FEWEST_TARGETS = 1000  # rows; an order of the support vectors costs about as much
FEWEST_VALUES = 2**22  # kernel values; to look whether some are negligible takes some milliseconds
# of the bound: what is below is computed again. Sums in float64 differ by far less than a bound.
UNSURE = 2.0


class SupportSums:
    """Decision values of blocks of some `n_targets` rows from all support vectors: their sums and
    `offset`. `by_sign` says whether signs matter, `float64` how kernel values are computed."""

    def __init__(
        self,
        sources: Sources,
        weights: PairWeights,
        offset: np.ndarray,
        n_targets: int,
        threads: int,
        *,
        by_sign: bool,
        float64: bool = False,
    ):
        self.weights, self.offset, self.by_sign = weights, offset, by_sign
        self.order = None
        n_values = n_targets * sources.rows.n_samples
        is_small = n_targets < FEWEST_TARGETS or n_values < FEWEST_VALUES
        if is_small or sources.kernel.name != "rbf":
            return
        totals = weights.totals()
        if not totals.any():
            return
        left_out = LEFT_OUT_FLOAT64 if float64 else LEFT_OUT
        value = left_out * np.abs(weights.coefficients).max() / totals.max()
        self.reach = Reach.of(sources.kernel, value)
        self.bound = value * totals
        self.order = sources.order(self.reach, threads)
        if self.order is not None:
            self.ordered = weights.ordered(self.order)

    def values(self, meeting: Meeting) -> np.ndarray:
        """Decision values of the targets, float64 (n, n_pairs)."""
        if self.order is None:
            return meeting.product(self.weights.all()) + self.offset
        values = meeting.near_product(self.ordered, self.order, self.reach) + self.offset
        if self.by_sign:
            unsure = (np.abs(values) <= UNSURE * self.bound).any(axis=1)
            some = np.flatnonzero(unsure).astype(np.int32)
            values[some] = meeting.product(self.weights.all(), some=some) + self.offset
        return values
