"""Bounds of alpha: those that are worth anything, and a total shared out among them."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-12  # of a sum: what is left of it by rounding
# Of the largest bound of a problem, or of the margin: what no decision value shows in float64, even
# where kernel values are 2^53.
NEGLIGIBLE = 2.0**-106


def counted(bound: np.ndarray, margin: float = np.inf) -> np.ndarray:
    """The bounds of |alpha| of one problem, 0 for those too small to change a decision value, which
    are of the size of the `margin` or smaller."""
    largest = float(bound.max(initial=0.0))
    return np.where(bound > NEGLIGIBLE * min(largest, margin), bound, 0.0)


def fill(bound: np.ndarray, total: float) -> np.ndarray:
    """Values between 0 and `bound` with a sum, the first as large as they may be."""
    return filled(bound, total - (np.cumsum(bound) - bound), ROUNDING * total)


def filled(bound: np.ndarray, left: np.ndarray, rounding: np.ndarray | float) -> np.ndarray:
    """What there is for each `bound` of what is `left` for it; exactly 0 or the bound where it is
    nearly that."""
    return np.where(left >= bound - rounding, bound, np.where(left > rounding, left, 0.0))


def with_sum(alpha: np.ndarray, lower: np.ndarray, upper: np.ndarray, wanted: float) -> np.ndarray:
    """alpha changed to the sum `wanted` as far as its bounds allow, all in proportion to their
    room: the free ones alone where they have enough, else the support vectors."""
    missing = wanted - alpha.sum()
    room = (upper if missing > 0 else lower) - alpha
    for some in ((alpha > lower) & (alpha < upper), alpha != 0):
        if abs(room[some].sum()) >= abs(missing):
            room = np.where(some, room, 0.0)
            break
    if room.sum() == 0:
        return alpha
    return alpha + room * min(missing / room.sum(), 1.0)
