"""Encode rows so that a kernel computes the same values in fewer operations.

0/1 columns become codes (csrc/rows/codes.h), one byte for up to 255 columns of which a row has at
most one set. They are recognised by their values alone. For example, 33 categories and 7 numbers in
509 columns take 64 bytes a row. Only the codes that a row has set cost time. Integers
from 0 to 255 are multiplied as bytes, or compared as bytes for the Laplacian kernel. This is faster
than with floats and does not round.

Kernels of a distance also use bytes for other evenly spaced values (grades, -1/0/1, halves): the
integers k of values x = origin + step k. The squared distance of two rows x is step^2 times that of
their integers; the sum of absolute differences is step times that of the integers.

Only this module chooses encodings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import BATCH_SIZE, distinct, slices
from dcsvm.data.rows import BATCH_VALUES, Rows
from dcsvm.kernel.kernels import SQUARED_DISTANCE, Kernel

MAX_CODE = 255  # largest 8-bit integer
SUM_BYTES = 4  # of the row sum, which is stored with the integers of a row
TRIED_VALUES = 10_000  # values tried first; they rule out a grid for most data


@dataclass(frozen=True)
class UniformGrid:
    """Values origin + step k with integers k from 0 to 255, exactly."""

    origin: float
    step: float

    def holds(self, values: np.ndarray) -> bool:
        """Tell whether all values are on the grid."""
        return bool(self._has(values).all())

    def may_meet_bytes(self, rows: Rows) -> bool:
        """Return whether rows on the grid need and allow products with rows of bytes.

        With step 1 they are not needed, as the rows of bytes are on the grid themselves.
        """
        return self.step > 1 and _core.may_step(rows.n_features, self.origin, self.step)

    def codes(self, rows: Rows) -> np.ndarray:
        """Return the integers k of all values, uint8 (n, row_bytes(d)), padded with zeros."""
        result = np.zeros((rows.n_samples, row_bytes(rows.n_features)), np.uint8)
        if not rows.is_dense:
            result[:, : rows.n_features] = self._of(np.zeros(1))
            owner = np.repeat(np.arange(rows.n_samples), np.diff(rows.csr.indptr))
            result[owner, rows.csr.indices] = self._of(rows.csr.values)
            return result
        for batch in slices(rows.n_samples, BATCH_SIZE // rows.row_size):
            result[batch, : rows.n_features] = self._of(rows.part(batch).features)
        return result

    def rows_on(self, rows: Rows) -> np.ndarray:
        """Return which rows are entirely on the grid, bool (n,); codes of others are invalid."""
        if not rows.is_dense:
            owner = np.repeat(np.arange(rows.n_samples), np.diff(rows.csr.indptr))
            return np.bincount(owner, ~self._has(rows.csr.values), rows.n_samples) == 0
        result = np.empty(rows.n_samples, bool)
        for batch in slices(rows.n_samples, BATCH_SIZE // rows.row_size):
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
    """Find the grid of all values, including the zeros that CSR rows do not store.

    Returns None if there is no grid, or if its integers would take more than `memory_bytes`. Dense
    rows of integers from 0 to 255 need no grid: the result is None, too.
    """
    if rows.is_bytes:
        return None
    n_bytes = rows.n_samples * (row_bytes(rows.n_features) + SUM_BYTES)
    n_values = rows.n_samples * rows.n_features if rows.is_dense else len(rows.csr.values)
    if n_bytes > memory_bytes or n_values == 0:
        return None
    tried = _values_at(rows, np.arange(0, n_values, -(-n_values // TRIED_VALUES)))
    always = [min(part.min() for part in _parts(rows)), *([] if rows.is_dense else [0.0])]
    grid = _grid_of(distinct(np.append(tried, always).astype(np.float64)))
    if grid is None or (rows.is_dense and grid == UniformGrid(0.0, 1.0)):
        return None
    return grid if all(grid.holds(part) for part in _parts(rows)) else None


def _parts(rows: Rows) -> Iterator[np.ndarray]:
    """Iterate over batches of all values of dense rows, or of the stored values of CSR rows."""
    if rows.is_dense:
        return (rows.part(batch).features for batch in rows.slices())
    return (rows.csr.values[batch] for batch in slices(len(rows.csr.values), BATCH_SIZE))


def _values_at(rows: Rows, places: np.ndarray) -> np.ndarray:
    """Return the values at some positions: row by row in dense rows, as stored in CSR rows."""
    if not rows.is_dense:
        return rows.csr.values[places]
    row, column = np.divmod(places, rows.n_features)
    row, at = np.unique(row, return_inverse=True)
    return rows.take(row).features[at, column]


def _grid_of(distinct: np.ndarray) -> UniformGrid | None:
    """Return the grid of ascending distinct values, starting at the first, or None."""
    if not 2 <= len(distinct) <= MAX_CODE + 1:
        return None
    grid = UniformGrid(float(distinct[0]), float(np.diff(distinct).min()))
    return grid if grid.holds(distinct) else None


# Codes are used if they divide the operations per pair of rows by this factor or more. With half of
# it a9a takes 1.2 times as long; doubling it costs no time.
CODING_THRESHOLD = 1.3


Choice: TypeAlias = UniformGrid | _core.Coding | None


def encode(
    rows: Rows, kernel: Kernel, threads: int, memory_bytes: int, chosen: Choice = None
) -> tuple[_core.Points, UniformGrid | None, float]:
    """Encode rows for a kernel as `chosen`, by default with `choose_encoding`.

    Returns the encoded points, the uniform grid of their integers or None, and the largest |x|^2 of
    the rows. The default takes at most `memory_bytes` in addition to the rows. There is no limit
    for packed rows, as they would take more memory unpacked.
    """
    if chosen is None:
        limit = _core.NO_LIMIT if rows.is_packed else memory_bytes
        chosen = choose_encoding(rows, kernel, threads, limit)
    grid = chosen if isinstance(chosen, UniformGrid) else None
    if isinstance(chosen, _core.Coding):
        points = encoded = coded_points(rows, chosen, threads)
    elif grid is not None:  # its integers hold all values: no unpacking
        points = _core.Points(replace(rows, is_packed=False), threads)
        encoded = points.with_bytes(grid.codes(rows))
    else:
        points = encoded = _core.Points(rows, threads)
        if _meet_as_bytes(rows, kernel):
            encoded = points.as_bytes(threads)
    return encoded, grid, points.largest_squared_norm


def choose_encoding(rows: Rows, kernel: Kernel, threads: int, memory_bytes: int) -> Choice:
    """Choose the encoding that saves most for a kernel, within `memory_bytes`.

    Returns None if no encoding saves enough.
    """
    if kernel.is_precomputed or rows.n_samples == 0:
        return None
    if kernel.type.is_of_distance and _bytes_pay(rows, kernel, threads):
        grid = find_uniform_grid(rows, memory_bytes)
        if grid is not None:
            return grid
    coding = None
    if rows.is_dense:
        coding = find_coding(rows, threads, kernel.type.argument)
    is_small = coding is not None and rows.n_samples * coding.row_size <= memory_bytes
    return coding if is_small else None


def _meet_as_bytes(rows: Rows, kernel: Kernel) -> bool:
    is_open = rows.is_bytes and rows.n_samples > 0
    return is_open and _core.may_be_bytes(rows.n_features, kernel.type.argument)


def encoded_row_bytes(chosen: UniformGrid | _core.Coding, n_features: int) -> int:
    """Return the bytes of an encoded row with `n_features` features."""
    if isinstance(chosen, _core.Coding):
        return chosen.row_size
    return row_bytes(n_features) + SUM_BYTES


def _bytes_pay(rows: Rows, kernel: Kernel, threads: int) -> bool:
    """Return whether bytes are possible on this machine and cheaper than sparse rows."""
    argument = kernel.type.argument
    if not _core.may_be_bytes(rows.n_features, argument):
        return False
    return rows.is_dense or _core.Points(rows, threads).bytes_beat_sparse(argument)


def find_coding(rows: Rows, threads: int, argument: str = SQUARED_DISTANCE) -> _core.Coding | None:
    """Find codes for dense rows; return None if they save too few operations.

    The search ends at the first batch that shows this, as further rows only raise the cost. For
    rows of bytes the alternative is to combine bytes; its cost depends on the kernel's `argument`.
    """
    search, coding = _core.CodingSearch(rows.n_features), None
    for batch in rows.slices(BATCH_VALUES):
        search.see(_core.Points(rows.part(batch), threads), threads)
        coding = search.found(CODING_THRESHOLD, rows.is_bytes, argument)
        if coding is None:
            return None
    return coding


def coded_points(rows: Rows, coding: _core.Coding, threads: int) -> _core.Points:
    """Encode dense rows by their codes."""
    coded = np.empty((rows.n_samples, coding.row_size), np.uint8)
    for batch in rows.slices(BATCH_VALUES):
        part = _core.Points(rows.part(batch), threads)
        coding.encode(part, coded[batch], threads)
    return _core.Points.of_codes(coding, coded, rows.n_features, threads)
