"""CSR rows with far more columns than values: leave out the columns without values.

Memory then follows the number of distinct indices. Inner products and distances stay the same bits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcsvm.data.rows import Rows

# features beyond the number of values; fewer take at most 64 MB of scratch in training
LARGE_N_FEATURES = 2**20


def has_far_columns(*sides: Rows) -> bool:
    """Return whether rows with equal n_features have far more columns than values."""
    if any(rows.is_dense for rows in sides):
        return False
    return sides[0].n_features > LARGE_N_FEATURES + sum(len(rows.values) for rows in sides)


def used_columns(*sides: Rows) -> np.ndarray | None:
    """Return the columns with values in any of the sides, int32 ascending; None keeps all columns.
    The sides are rows with equal n_features."""
    if not has_far_columns(*sides):
        return None
    return np.unique(np.concatenate([rows.indices for rows in sides]))


def narrowed(rows: Rows, used: np.ndarray) -> Rows:
    """Return the rows with the used columns alone."""
    indices = np.searchsorted(used, rows.indices).astype(np.int32)
    return replace(rows, n_features=len(used), indices=indices)


def widened(rows: Rows, used: np.ndarray, n_features: int) -> Rows:
    """Return narrowed rows with their original columns."""
    return replace(rows, n_features=n_features, indices=used[rows.indices])


def without_empty_columns(*sides: Rows) -> tuple[Rows, ...]:
    """Leave out the columns that are zero in all sides, rows with equal n_features, where these
    have far more columns than values."""
    used = used_columns(*sides)
    return sides if used is None else tuple(narrowed(rows, used) for rows in sides)
