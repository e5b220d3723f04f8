"""Sort, count and reduce entries by group number, faster than np.argsort and np.unique.

Group numbers are nonnegative integers.
"""

from __future__ import annotations

import numpy as np

DIGIT_BITS = 16  # NumPy uses radix sort for 16-bit integers, comparisons for longer ones
SPARSE = 8  # largest group number per entry; above it, np.bincount is slower than np.unique


def group_order(group: np.ndarray) -> np.ndarray:
    """Return the indices of the entries sorted by group, int64 (n,); the sort is stable."""
    order = np.argsort(group.astype(np.uint16), kind="stable")
    for shift in range(DIGIT_BITS, int(group.max(initial=0)).bit_length(), DIGIT_BITS):
        digits = (group >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order


def distinct(values: np.ndarray) -> np.ndarray:
    """Return the different values, ascending.

    Without counts, np.unique of NumPy 2.4 imports numpy.ma: 14 ms of the start of a command.
    """
    return np.unique(values, return_counts=True)[0]


def group_sizes(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the groups with entries, ascending, and the number of entries of each, int64."""
    if group.max(initial=0) > SPARSE * len(group):
        return np.unique(group, return_counts=True)
    counts = np.bincount(group)
    found = np.flatnonzero(counts)
    return found, counts[found]


def reduce_parts(
    ufunc: np.ufunc, values: np.ndarray, start: np.ndarray, initial: float = 0.0
) -> np.ndarray:
    """Reduce each of several consecutive parts, with the same bits as `ufunc.reduce`.

    Part c is values[start[c]:start[c + 1]]; `values` is float64 (n,), `start` int64 (n_parts + 1,).
    Returns float64 (n_parts,), `initial` for an empty part.
    """
    sizes, n_parts = np.diff(start), len(start) - 1
    # each part starts with `initial`, as in `reduce`: otherwise sums round differently
    padded = np.full(len(values) + n_parts, initial)
    padded[np.arange(len(values)) + np.repeat(np.arange(1, n_parts + 1), sizes)] = values
    return ufunc.reduceat(padded, start[:-1] + np.arange(n_parts))


BATCH_SIZE = 2**20  # values per batch


def slices(end: int, size: int, begin: int = 0) -> list[slice]:
    """Return slices that split range(begin, end) into batches of max(size, 1)."""
    starts = range(begin, end, max(size, 1))
    return [slice(first, min(first + starts.step, end)) for first in starts]
