"""NumPy arrays and SciPy matrices of the caller, checked and as float32, or in float64 parts; and
rows in CSR form: `indptr` int64 (n + 1,), `indices` int32 ascending within a row, and `values`
float32 without zeros."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from dcsvm.data.room import is_mapped, zeros
from dcsvm.data.sorting import AT_ONCE, slices

LARGEST_N_FEATURES = 2**31 - 2
BYTES_OF_VALUE = 8  # of CSR


def check_form(shape: tuple[int, ...], dtype: np.dtype) -> None:
    if len(shape) != 2:
        raise ValueError(f"expected rows and columns, got an array of {len(shape)} dimensions")
    if dtype.kind not in "biuf":
        raise ValueError(f"expected real numbers, got an array of {dtype}")
    if shape[1] > LARGEST_N_FEATURES:
        raise ValueError(f"{shape[1]} features are more than {LARGEST_N_FEATURES}")


def as_float32(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def check_finite(values: np.ndarray, place) -> None:
    """`place` turns a position in the flattened values into (row, column)."""
    finite = np.isfinite(values)
    if not finite.all():
        row, column = place(int(np.argmin(finite)))
        raise ValueError(f"the value in row {row}, column {column} is not a finite float32")


def csr_arrays(X) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    check_form(X.shape, X.dtype)
    csr = X.tocsr(copy=True)
    csr.check_format(full_check=True)
    csr.sum_duplicates()
    values = as_float32(csr.data)
    indptr = np.asarray(csr.indptr, dtype=np.int64)
    indices = np.asarray(csr.indices, dtype=np.int32)
    check_finite(values, lambda k: (np.searchsorted(indptr, k, side="right") - 1, indices[k]))
    stored = values != 0
    if not stored.all():
        indptr = np.concatenate(([0], np.cumsum(stored)))[indptr]
        indices, values = indices[stored], values[stored]
    return indptr, indices, values, X.shape[1]


class Float64Parts:
    """Rows (n, d) of an array or sparse matrix in parts, CSR arrays (indptr, indices, values) with
    float64 values, as `Scaling.scaled_rows` takes them. Raises ValueError for other than finite
    real numbers."""

    def __init__(self, X):
        self.is_sparse = hasattr(X, "tocsr")
        self.X = X.tocsr(copy=True) if self.is_sparse else np.asarray(X)
        check_form(self.X.shape, self.X.dtype)
        if self.is_sparse:
            self.X.sum_duplicates()
        n_samples, self.n_features = self.X.shape
        n_values = self.X.nnz if self.is_sparse else self.X.size
        self.slices = slices(n_samples, AT_ONCE // max(n_values // max(n_samples, 1), 1))

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for some in self.slices:
            indptr, indices, values = self._csr(self.X[some])
            finite = np.isfinite(values)
            if not finite.all():
                k = int(np.argmin(finite))
                row = some.start + np.searchsorted(indptr, k, side="right") - 1
                raise ValueError(f"the value in row {row}, column {indices[k]} is not finite")
            yield indptr, indices, values

    def _csr(self, part):
        if self.is_sparse:
            return part.indptr, part.indices, part.data.astype(np.float64)
        row, column = np.nonzero(part)
        return (
            _indptr(np.bincount(row, minlength=len(part))),
            column,
            part[row, column].astype(np.float64),
        )


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
