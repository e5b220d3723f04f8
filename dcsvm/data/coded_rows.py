"""Training rows with exclusive 0/1 columns as codes: each row has its numeric columns as float32,
then a byte for each code, then zeros up to a multiple of 4 bytes.

One-hot columns are recognised by their values alone. A row of 509 columns that are 33 categories
and 7 numbers takes 64 bytes in place of 2,036.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from dcsvm import _core
from dcsvm.data.room import zeros
from dcsvm.data.rows import Rows

WORTH_CODING = 1.3  # times fewer operations; half costs a9a 1.2 times, double nothing
TRIED_ROWS = 1000  # in which most data show that they have no codes

Make = Callable[[tuple[int, int], type], np.ndarray]


def coded(rows: Rows, threads: int) -> Rows:
    """Dense rows with codes, where these are worth it; else the same."""
    if not rows.is_dense or rows.columns is not None or rows.coding or rows.n_samples == 0:
        return rows
    some = rows.take(np.arange(0, rows.n_samples, -(-rows.n_samples // TRIED_ROWS)))
    coding = _coding_of(some, threads) and _coding_of(rows, threads)
    return _encoded([rows], coding, threads, partial(zeros, name="the rows")) if coding else rows


def coded_parts(parts: Iterable[Rows], n_features: int, threads: int, make: Make) -> Rows | None:
    """Dense rows that come part by part, with codes in an array that `make` makes; None where these
    are not worth it, which most data show in the first part."""
    search, held, are_bytes, coding = _core.CodingSearch(n_features), [], True, None
    for part in parts:
        search.see(_points(part, threads), threads)
        are_bytes &= part.is_bytes
        coding = search.found(WORTH_CODING, are_bytes)
        if coding is None:
            return None
        held.append(_encoded([part], coding, threads, np.empty))
    return _encoded(held, coding, threads, make) if held else None


def _points(rows: Rows, threads: int) -> _core.Points:
    return _core.Points(rows, threads, with_norms=False)


def _coding_of(rows: Rows, threads: int) -> _core.Coding | None:
    search = _core.CodingSearch(rows.n_features)
    search.see(_points(rows, threads), threads)
    return search.found(WORTH_CODING, rows.is_bytes)


def _encoded(parts: list[Rows], coding: _core.Coding, threads: int, make: Make) -> Rows:
    """The rows of all parts, which are taken from the list one after the other."""
    n_samples, n_features, first = sum(part.n_samples for part in parts), parts[0].n_features, 0
    dense = make((n_samples, coding.row_size), np.uint8)
    while parts:
        part = parts.pop(0)
        own = dense[first : first + part.n_samples]
        if part.coding == coding:
            own[:] = part.dense
        else:
            coding.encode(_points(part, threads), own, threads)
        first += part.n_samples
    return Rows(n_samples, n_features, dense=dense, coding=coding)
