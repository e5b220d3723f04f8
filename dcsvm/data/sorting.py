"""Entries by the numbers of their groups, which are whole numbers of at least 0: what np.argsort
and np.unique answer, in a small part of their time. And entries of many groups, one after the
other, all reduced at once."""

from __future__ import annotations

import numpy as np

DIGIT_BITS = 16  # NumPy sorts integers of so many bits by counting, longer ones by comparing
SPARSE = 8  # times as many numbers as entries: too many to count each


def group_order(group: np.ndarray) -> np.ndarray:
    """The entries int64 (n,) group by group, those of one in their order."""
    order = np.argsort(group.astype(np.uint16), kind="stable")
    for shift in range(DIGIT_BITS, int(group.max(initial=0)).bit_length(), DIGIT_BITS):
        digits = (group >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order


def group_sizes(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The groups that have entries, ascending, and how many each has, int64."""
    if group.max(initial=0) > SPARSE * len(group):
        return np.unique(group, return_counts=True)
    counts = np.bincount(group)
    found = np.flatnonzero(counts)
    return found, counts[found]


def reduce_parts(
    ufunc: np.ufunc, values: np.ndarray, start: np.ndarray, initial: float = 0.0
) -> np.ndarray:
    """`ufunc.reduce` of each part, float64 (n_parts,), to the last bit; `initial` of one without
    entries. Part c has the values float64 (n,) from start[c] to before start[c + 1], `start` int64
    (n_parts + 1,)."""
    sizes, n_parts = np.diff(start), len(start) - 1
    # begun with `initial`, as `reduce` is: sums would be rounded in another order without it
    padded = np.full(len(values) + n_parts, initial)
    padded[np.arange(len(values)) + np.repeat(np.arange(1, n_parts + 1), sizes)] = values
    return ufunc.reduceat(padded, start[:-1] + np.arange(n_parts))


AT_ONCE = 2**20  # values that are worked on together


def slices(end: int, size: int, begin: int = 0) -> list[slice]:
    """Slices of so many of the entries up to the end, or at least of one, all of them together."""
    starts = range(begin, end, max(size, 1))
    return [slice(first, min(first + starts.step, end)) for first in starts]
