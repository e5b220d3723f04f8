"""CSR rows whose indices are far larger than their values are many: what needs an array of all
columns gets the used ones alone, so that memory follows how many different indices there are.

Inner products and distances remain, bit for bit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcsvm.data.rows import Rows

LARGE_N_FEATURES = 2**20  # more may be worth leaving out those without values


def has_far_columns(*sides: Rows) -> bool:
    """Whether rows with equal n_features have far more columns than values."""
    if any(rows.is_dense for rows in sides):
        return False
    return sides[0].n_features > LARGE_N_FEATURES + sum(len(rows.values) for rows in sides)


def used_columns(*sides: Rows) -> np.ndarray | None:
    """The columns with values in some of the sides, rows with equal n_features, int32 ascending;
    None where all columns may be kept."""
    if not has_far_columns(*sides):
        return None
    return np.unique(np.concatenate([rows.indices for rows in sides]))


def narrowed(rows: Rows, used: np.ndarray) -> Rows:
    """Rows of the used columns alone."""
    indices = np.searchsorted(used, rows.indices).astype(np.int32)
    return replace(rows, n_features=len(used), indices=indices)


def widened(rows: Rows, used: np.ndarray, n_features: int) -> Rows:
    """Rows that were narrowed, with their own columns again."""
    return replace(rows, n_features=n_features, indices=used[rows.indices])


def without_empty_columns(*sides: Rows) -> tuple[Rows, ...]:
    """Rows with equal n_features; where that is huge for the values there are, without the columns
    that are zero in all sides."""
    used = used_columns(*sides)
    return sides if used is None else tuple(narrowed(rows, used) for rows in sides)
