"""Rows with evenly spaced values (counts, grades, -1/0/1, halves) as 8-bit integers.

The core multiplies them faster than floats and without rounding. For kernels of a distance only:
squared distances of x = origin + step k are those of k times step^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.data.sorting import AT_ONCE, slices

MAX_CODE = 255  # of 8 bits
SUM_BYTES = 4  # of the sum of a row, which goes with its integers
TRIED_VALUES = 10_000  # in which most data show that they are not evenly spaced


@dataclass(frozen=True)
class UniformGrid:
    """Values origin + step k with integers k from 0 to 255, exactly."""

    origin: float
    step: float

    def holds(self, values: np.ndarray) -> bool:
        """Tell whether all values are on the grid."""
        return bool(self._has(values).all())

    def may_meet_bytes(self, rows: Rows) -> bool:
        """Return whether rows on the grid may be combined with rows of bytes.

        With step 1 the rows of bytes are on the grid themselves.
        """
        return self.step > 1 and _core.may_step(rows.n_features, self.origin, self.step)

    def codes(self, rows: Rows) -> np.ndarray:
        """Return the integers k of all values, uint8 (n, d), padded with zeros to 4 columns."""
        result = np.zeros((rows.n_samples, row_bytes(rows.n_features)), np.uint8)
        if not rows.is_dense:
            result[:, : rows.n_features] = self._of(np.zeros(1))
            owner = np.repeat(np.arange(rows.n_samples), np.diff(rows.csr.indptr))
            result[owner, rows.csr.indices] = self._of(rows.csr.values)
            return result
        for batch in slices(rows.n_samples, AT_ONCE // rows.row_size):
            result[batch, : rows.n_features] = self._of(rows.part(batch).features)
        return result

    def rows_on(self, rows: Rows) -> np.ndarray:
        """Return which rows have no other values, bool (n,). The codes of the rest mean nothing."""
        if not rows.is_dense:
            owner = np.repeat(np.arange(rows.n_samples), np.diff(rows.csr.indptr))
            return np.bincount(owner, ~self._has(rows.csr.values), rows.n_samples) == 0
        result = np.empty(rows.n_samples, bool)
        for batch in slices(rows.n_samples, AT_ONCE // rows.row_size):
            result[batch] = self._has(rows.part(batch).features).all(axis=1)
        return result

    def _has(self, values: np.ndarray) -> np.ndarray:
        k = self._indices(values)
        return (k >= 0) & (k <= MAX_CODE) & (self.origin + self.step * k == values)

    def _of(self, values: np.ndarray) -> np.ndarray:
        return np.clip(self._indices(values), 0, MAX_CODE).astype(np.uint8)

    def _indices(self, values: np.ndarray) -> np.ndarray:
        return np.rint((values.astype(np.float64) - self.origin) / self.step)


def row_bytes(n_features: int) -> int:
    """Return the bytes of a row of 8-bit integers."""
    return -(-n_features // 4) * 4


def find_uniform_grid(rows: Rows, memory_bytes: int) -> UniformGrid | None:
    """Find the grid of all values, zeros that are not stored included.

    None where there is none, where its integers would take more than `memory_bytes`, and for dense
    rows that are such integers themselves, which need no grid.
    """
    if rows.is_bytes:
        return None
    n_bytes = rows.n_samples * (row_bytes(rows.n_features) + SUM_BYTES)
    n_values = rows.n_samples * rows.n_features if rows.is_dense else len(rows.csr.values)
    if n_bytes > memory_bytes or n_values == 0:
        return None
    tried = _values_at(rows, np.arange(0, n_values, -(-n_values // TRIED_VALUES)))
    always = [min(part.min() for part in _parts(rows)), *([] if rows.is_dense else [0.0])]
    grid = _grid_of(np.unique(np.append(tried, always).astype(np.float64)))
    if grid is None or (rows.is_dense and grid == UniformGrid(0.0, 1.0)):
        return None
    return grid if all(grid.holds(part) for part in _parts(rows)) else None


def _parts(rows: Rows) -> Iterator[np.ndarray]:
    """Yield all values of dense rows, and those that are stored of others, part by part."""
    if rows.is_dense:
        return (rows.part(batch).features for batch in rows.slices())
    return (rows.csr.values[batch] for batch in slices(len(rows.csr.values), AT_ONCE))


def _values_at(rows: Rows, places: np.ndarray) -> np.ndarray:
    """Return some of these values, of dense rows counted row by row."""
    if not rows.is_dense:
        return rows.csr.values[places]
    row, column = np.divmod(places, rows.n_features)
    row, at = np.unique(row, return_inverse=True)
    return rows.take(row).features[at, column]


def _grid_of(distinct: np.ndarray) -> UniformGrid | None:
    """Return the grid of distinct values, ascending, from the first."""
    if not 2 <= len(distinct) <= MAX_CODE + 1:
        return None
    grid = UniformGrid(float(distinct[0]), float(np.diff(distinct).min()))
    return grid if grid.holds(distinct) else None
