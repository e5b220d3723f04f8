"""Rows in CSR form: `indptr` int64 (n + 1,), `indices` int32 ascending within a row, and `values`
float32 without zeros."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from dcsvm.data.room import is_mapped, zeros
from dcsvm.data.slices import AT_ONCE, slices

BYTES_OF_VALUE = 8


class Csr(NamedTuple):
    """The arrays are shared, not copied: treat them as read-only."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @staticmethod
    def of_dense(dense: np.ndarray) -> Csr:
        some = slices(len(dense), AT_ONCE // max(dense.shape[1], 1))
        lengths = [np.count_nonzero(dense[own], axis=1) for own in some]
        indptr = _indptr(np.concatenate([np.zeros(0, np.int64), *lengths]))
        made = Csr(indptr, np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32))
        for rows in some:
            own = slice(indptr[rows.start], indptr[rows.stop])
            row, made.indices[own] = np.nonzero(dense[rows])
            made.values[own] = dense[rows][row, made.indices[own]]
        return made

    def part(self, some: slice) -> Csr:
        """Consecutive rows, which share memory with these."""
        indptr = self.indptr[some.start : some.stop + 1]
        own = slice(indptr[0], indptr[-1])
        return Csr(indptr - indptr[0], self.indices[own], self.values[own])

    def take(self, row_numbers: np.ndarray) -> Csr:
        """The rows of these numbers, in this order; numbers may repeat. They are mapped where these
        are and they do not fit the memory."""
        starts = self.indptr[row_numbers]
        lengths = self.indptr[row_numbers + 1] - starts
        indptr = _indptr(lengths)
        size = (indptr[-1].item(),)
        make = np.empty
        if is_mapped(self.values):
            make = partial(zeros, name="the rows", in_all=BYTES_OF_VALUE * size[0])
        made = Csr(indptr, make(size, np.int32), make(size, np.float32))
        for some in slices(len(starts), AT_ONCE // max(size[0] // max(len(starts), 1), 1)):
            own = slice(indptr[some.start], indptr[some.stop])
            first = starts[some] - indptr[some]
            places = np.arange(own.start, own.stop) + np.repeat(first, lengths[some])
            made.indices[own], made.values[own] = self.indices[places], self.values[places]
        return made


def _indptr(lengths: np.ndarray) -> np.ndarray:
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr
