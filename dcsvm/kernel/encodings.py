"""Encodings: what a kernel computes with in place of rows, of the same values in fewer operations.

Exclusive 0/1 columns become codes (csrc/rows/codes.h), a byte for up to 254 columns: one-hot
columns are recognised by their values alone, and 509 columns that are 33 categories and 7 numbers
take 64 bytes a row. Integers from 0 to 255 meet as bytes, and so do other evenly spaced values
(uniform_grid.py). Which of them pays is decided here alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import BATCH_VALUES, Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.uniform_grid import SUM_BYTES, UniformGrid, find_uniform_grid, row_bytes

# times fewer operations for a pair of rows; half costs a9a 1.2 times, double nothing
CODING_THRESHOLD = 1.3

Choice: TypeAlias = UniformGrid | _core.Coding | None


@dataclass(frozen=True, eq=False)
class Encoding:
    """Rows as a kernel computes with them.

    Attributes
    ----------
    points : the encoded rows.
    grid : the uniform grid of their integers, or None.
    n_bytes : memory of the encoding beside the rows.
    largest_squared_norm : largest |x|^2, if `encode` made the encoding.
    """

    points: _core.Points
    grid: UniformGrid | None = None
    n_bytes: int = 0
    largest_squared_norm: float = 0.0

    def of_others(
        self, points: _core.Points, rows: Rows, setup: _core.Setup, threads: int
    ) -> tuple[_core.Points, np.ndarray] | None:
        """Encode the points of other rows in the same way.

        Returns the points and which rows lost nothing, bool (n,), or None if these rows are not
        encoded.
        """
        if self.grid is None:
            return points.encoded_as(self.points, setup, threads)
        return points.with_bytes(self.grid.codes(rows)), self.grid.rows_on(rows)


def encode(
    rows: Rows, kernel: Kernel, threads: int, memory_bytes: int, chosen: Choice = None
) -> Encoding:
    """Encode rows for a kernel as `chosen`, by default in the best way.

    The default takes at most `memory_bytes` beside the rows. Packed rows have no limit, as they
    would take more memory unpacked.
    """
    if chosen is None:
        limit = _core.NO_LIMIT if rows.is_packed else memory_bytes
        chosen = choose_encoding(rows, kernel, threads, limit)
    grid = chosen if isinstance(chosen, UniformGrid) else None
    if isinstance(chosen, _core.Coding):
        points = encoded = coded_points(rows, chosen, threads)
    elif grid is not None:  # which stands for all values: packed rows stay so
        points = _core.Points(replace(rows, is_packed=False), threads)
        encoded = points.with_bytes(grid.codes(rows))
    else:
        points = encoded = _core.Points(rows, threads)
        if _meet_as_bytes(rows, kernel):
            encoded = points.as_bytes(threads)
    return Encoding(encoded, grid, encoded.bytes_beside, points.largest_squared_norm)


def choose_encoding(rows: Rows, kernel: Kernel, threads: int, memory_bytes: int) -> Choice:
    """Choose the encoding that saves most for a kernel, within `memory_bytes`.

    None if the rows are used as they are.
    """
    if kernel.is_precomputed or rows.n_samples == 0:
        return None
    if kernel.type.fall and kernel.type.is_from_products and _bytes_pay(rows, threads):
        grid = find_uniform_grid(rows, memory_bytes)
        if grid is not None:
            return grid
    coding = None
    if rows.is_dense:
        coding = find_coding(rows, threads, with_bytes=kernel.type.is_from_products)
    is_small = coding is not None and rows.n_samples * coding.row_size <= memory_bytes
    return coding if is_small else None


def _meet_as_bytes(rows: Rows, kernel: Kernel) -> bool:
    is_open = rows.is_bytes and rows.n_samples > 0 and kernel.type.is_from_products
    return is_open and _core.may_be_bytes(rows.n_features)


def encoded_row_bytes(chosen: UniformGrid | _core.Coding, n_features: int) -> int:
    """Return what a row of so many features takes encoded."""
    if isinstance(chosen, _core.Coding):
        return chosen.row_size
    return row_bytes(n_features) + SUM_BYTES


def _bytes_pay(rows: Rows, threads: int) -> bool:
    """Return whether bytes are possible on this machine and cheaper than sparse rows."""
    if not _core.may_be_bytes(rows.n_features):
        return False
    return rows.is_dense or _core.Points(rows, threads).bytes_beat_sparse


def find_coding(rows: Rows, threads: int, *, with_bytes: bool = True) -> _core.Coding | None:
    """Find the codes of dense rows; None if they do not pay.

    Most data show that in the first batch: more rows only cost more. `with_bytes`: rows of bytes
    may be combined as bytes instead.
    """
    search, coding = _core.CodingSearch(rows.n_features), None
    for batch in rows.slices(BATCH_VALUES):
        search.see(_core.Points(rows.part(batch), threads), threads)
        coding = search.found(CODING_THRESHOLD, rows.is_bytes and with_bytes)
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
