"""Rows of features, dense or CSR, or rows of a precomputed kernel.

Values are float32, or bytes where all are integers from 0 to 255; of training rows exclusive 0/1
columns may be codes. Nothing here reads files, scales, or knows labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dcsvm import _core, _svmlight
from dcsvm.data.arrays import Csr, as_float32, check_finite, check_form, csr_arrays
from dcsvm.data.room import fits_memory, gather, is_mapped, page_by_page, zeros
from dcsvm.data.sorting import AT_ONCE, slices

WORD = 4  # bytes


def suit_bytes(n_features: int) -> bool:
    """Whether rows of so many features are held as bytes where their values allow it."""
    return _core.suit_bytes(n_features)


def zero_bytes(n_samples: int, n_features: int, zeros=np.zeros) -> np.ndarray:
    """Rows of zeros, of an array that `zeros` makes."""
    return zeros((n_samples, _row_size(n_features)), np.uint8)[:, :n_features]


def with_ends(rows: np.ndarray) -> np.ndarray:
    """The same memory with what is behind the features, C-contiguous. Raises ValueError for bytes
    that are not such rows."""
    n_samples, n_features = rows.shape
    shape = n_samples, _row_size(n_features)
    if n_samples and rows.strides != (shape[1], 1):
        raise ValueError("rows of bytes do not begin at multiples of 4 bytes")
    return np.lib.stride_tricks.as_strided(
        rows, shape, (shape[1], 1), writeable=rows.flags.writeable
    )


def as_byte_rows(values: np.ndarray) -> np.ndarray:
    """uint8 or bool (n, d) as such rows; the same memory where there is nothing to add."""
    values = values.view(np.uint8)
    if values.strides == (_row_size(values.shape[1]), 1) and values.shape[1] % WORD == 0:
        return values
    rows = zero_bytes(*values.shape)
    rows[:] = values
    return rows


def _row_size(n_features: int) -> int:
    return -(-n_features // WORD) * WORD


DENSE_FEATURES = 64
DENSE_DENSITY = 0.05
TRIED_ROWS = 100  # in which most data show that they are no bytes


def better_dense(n_samples: int, n_features: int, n_values: int) -> bool:
    """Whether rows are better dense than CSR: with at most 64 features, or at least one value in
    twenty not zero.

    Dense tiles are products of matrices, many times faster per entry than sparse ones, and by
    this rule take at most 10 times the bytes of CSR (or 256 bytes a row). The choice depends
    on the data alone, so the same rows get the same form from any source.
    """
    wanted = DENSE_DENSITY * n_samples * n_features
    return n_features <= DENSE_FEATURES or n_values >= wanted > 0


@dataclass(frozen=True, eq=False)
class Rows:
    """Feature rows in one of two forms, or rows of a precomputed kernel.

    Either `dense` (n_samples, n_features), float32 C-contiguous or uint8 (integers from 0 to 255, a
    view of an array with zeros behind the features up to a multiple of 4 columns: tiles take four
    bytes at once), or CSR: `indptr` int64 (n_samples + 1,), `indices` int32 ascending within a row,
    `values` float32 without zeros. The arrays are shared, not copied: treat them as read-only. With
    a `coding` the dense rows are uint8 (n_samples, coding.row_size), see WORTH_CODING.

    Rows of a precomputed kernel have `dense` rows of its matrix and, if they are training rows,
    `columns` int32 (n_samples,): the column of the matrix with the values of each row with others,
    which is the row's serial number - 1. A model's rows have `columns` only.
    """

    n_samples: int
    n_features: int
    dense: np.ndarray | None = None
    indptr: np.ndarray | None = None
    indices: np.ndarray | None = None
    values: np.ndarray | None = None
    columns: np.ndarray | None = None
    coding: _core.Coding | None = None

    @staticmethod
    def chosen(indptr, indices, values, n_features: int, *, threads: int = 1) -> Rows:
        """CSR rows in the better form, as `better_dense` says."""
        shape = len(indptr) - 1, n_features
        rows = Rows(*shape, indptr=indptr, indices=indices, values=values)
        is_better = better_dense(*shape, len(values))
        return rows._as_dense(threads).in_smallest_form() if is_better else rows

    @staticmethod
    def from_array(X) -> Rows:
        """Rows of a 2-D NumPy array or SciPy sparse matrix of real numbers, in the `chosen` form.

        Shares memory with X where X already is what is needed. Raises ValueError for anything that
        does not fit finite float32 numbers.
        """
        if hasattr(X, "tocsr"):
            return Rows.chosen(*csr_arrays(X))
        dense = np.asarray(X)
        check_form(dense.shape, dense.dtype)
        n_samples, n_features = dense.shape
        if dense.dtype in (np.uint8, np.bool_) and suit_bytes(n_features):
            rows = Rows(n_samples, n_features, dense=as_byte_rows(dense))
        else:
            dense = as_float32(dense)
            check_finite(dense, lambda k: divmod(k, n_features))
            rows = Rows(n_samples, n_features, dense=dense).in_smallest_form()
        if n_features <= DENSE_FEATURES:
            return rows
        is_better = better_dense(n_samples, n_features, np.count_nonzero(rows.dense))
        return rows if is_better else rows._as_csr()

    @property
    def is_dense(self) -> bool:
        return self.indptr is None

    @property
    def is_bytes(self) -> bool:
        return self.dense is not None and self.dense.dtype == np.uint8 and self.coding is None

    @property
    def stored(self) -> np.ndarray:
        """The memory of dense rows, C-contiguous."""
        return with_ends(self.dense) if self.is_bytes else self.dense

    @property
    def is_mapped(self) -> bool:
        """Whether rows are in a mapped file, which need not fit the memory."""
        return is_mapped(self.dense if self.is_dense else self.values)

    def __getstate__(self):
        """A copy of a view would not have what is behind the features."""
        return vars(self) | {"dense": self.stored}

    def __setstate__(self, state):
        vars(self).update(state)
        if self.is_bytes:
            vars(self)["dense"] = self.dense[:, : self.n_features]

    def in_smallest_form(self) -> Rows:
        """Dense rows of integers from 0 to 255 as bytes, where there is memory for these."""
        shape = self.n_samples, self.n_features
        if self.is_bytes or not suit_bytes(self.n_features):
            return self
        some = self.dense[:: -(-self.n_samples // TRIED_ROWS) or 1]
        if not _are_bytes(some) or not fits_memory(math.prod(shape)):
            return self
        dense = zero_bytes(*shape)
        for some in self.slices():
            block = self.dense[some]
            if not _are_bytes(block):
                return self
            dense[some] = block
        return replace(self, dense=dense)

    def as_floats(self) -> Rows:
        """The same rows without bytes and codes."""
        if self.coding is not None:
            points = _core.Points(self, 1)
            return replace(self, dense=points.features(1), coding=None)
        return replace(self, dense=self.dense.astype(np.float32)) if self.is_bytes else self

    @property
    def features(self) -> np.ndarray:
        """Values of dense rows (n_samples, n_features), float32 or uint8; of coded rows a copy."""
        return self.dense if self.coding is None else self.as_floats().dense

    def mean_squared_distance(self) -> float:
        """Of all pairs of rows: twice the sum of the variances of the features."""
        if self.is_dense:
            return 2.0 * float(np.var(self.features, axis=0, dtype=np.float64).sum())
        sums, squares = np.zeros(int(self.indices.max(initial=-1)) + 1), 0.0
        for some in slices(len(self.values), AT_ONCE):
            values = self.values[some].astype(np.float64)
            sums += np.bincount(self.indices[some], values, len(sums))
            squares += float(values @ values)
        means = sums / self.n_samples
        return 2.0 * float(squares / self.n_samples - means @ means)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    @property
    def nbytes_in_memory(self) -> int:
        """Of what is not in a mapped file."""
        return sum(array.nbytes for array in self._arrays if not is_mapped(array))

    @property
    def _arrays(self) -> list[np.ndarray]:
        arrays = (self.dense, self.indptr, self.indices, self.values, self.columns)
        return [array for array in arrays if array is not None]

    @property
    def csr(self) -> Csr:
        return Csr(self.indptr, self.indices, self.values)

    @property
    def row_size(self) -> int:
        """Values of a row, on average where they are CSR; at least 1."""
        if self.is_dense:
            return max(1 if self.dense is None else self.n_features, 1)
        return max(len(self.values) // max(self.n_samples, 1), 1)

    def slices(self, n_values: int = AT_ONCE) -> list[slice]:
        """Slices that cut the rows into parts of about `n_values` values."""
        return slices(self.n_samples, n_values // self.row_size)

    def part(self, some: slice) -> Rows:
        """Consecutive rows, which share memory with these."""
        n_samples = some.stop - some.start
        if self.is_dense:
            dense = None if self.dense is None else self.dense[some]
            columns = None if self.columns is None else self.columns[some]
            return replace(self, n_samples=n_samples, dense=dense, columns=columns)
        return replace(self, n_samples=n_samples, **self.csr.part(some)._asdict())

    def take(self, row_numbers) -> Rows:
        """The rows of these numbers, in this order, in the same form; numbers may repeat."""
        row_numbers = np.asarray(row_numbers, dtype=np.int64)
        if self.is_dense:
            dense = None if self.dense is None else self._taken(row_numbers)
            columns = None if self.columns is None else self.columns[row_numbers]
            return replace(self, n_samples=len(row_numbers), dense=dense, columns=columns)
        taken = self.csr.take(row_numbers)
        return replace(self, n_samples=len(row_numbers), **taken._asdict())

    def _taken(self, row_numbers: np.ndarray) -> np.ndarray:
        """Some dense rows, mapped where these are and they do not fit the memory."""
        stored = self.stored
        n_columns = self.dense.shape[1]
        if not self.is_mapped:
            return stored[row_numbers][:, :n_columns]
        if fits_memory(len(row_numbers) * stored[:1].nbytes):
            with page_by_page(stored):
                return stored[row_numbers][:, :n_columns]
        taken = zeros((len(row_numbers), stored.shape[1]), stored.dtype, "the rows")
        gather(stored, row_numbers, taken)
        return taken[:, :n_columns]

    def reordered(self, row_numbers: np.ndarray) -> Rows:
        """take() without a copy: in the memory of these rows, which must not be used afterwards. No
        number repeats."""
        is_copied = self.dense is None or self.columns is not None or self.is_mapped
        if is_copied or self.n_features == 0:
            return self.take(row_numbers)
        others = np.ones(self.n_samples, bool)
        others[row_numbers] = False
        order = np.concatenate((row_numbers, np.flatnonzero(others)), dtype=np.int32)
        _core.reorder_rows(self.stored.view(np.uint8), order)
        n_samples = len(row_numbers)
        return replace(self, n_samples=n_samples, dense=self.dense[:n_samples])

    def take_for_model(self, row_numbers) -> Rows:
        """The rows of these numbers as a model keeps them: of training rows of a precomputed
        kernel it is the `columns`."""
        rows = self if self.columns is None else replace(self, dense=None)
        return rows.take(row_numbers)

    def with_features(self, n_features: int) -> Rows:
        """The same rows with columns of zeros added at the end, up to `n_features`.

        Dense rows become CSR where they would have more than 64 features and twice as many as now.
        """
        if n_features < self.n_features:
            raise ValueError(f"rows of {self.n_features} features do not fit {n_features}")
        if n_features == self.n_features or self.dense is None:
            return replace(self, n_features=n_features)
        if n_features > max(DENSE_FEATURES, 2 * self.n_features):
            return replace(self._as_csr(), n_features=n_features)
        if self.coding is not None:
            return replace(self, n_features=n_features)
        shape, is_bytes = (self.n_samples, n_features), self.is_bytes and suit_bytes(n_features)
        dense = zero_bytes(*shape) if is_bytes else np.zeros(shape, np.float32)
        dense[:, : self.n_features] = self.dense
        return replace(self, n_features=n_features, dense=dense)

    def after_empty_column(self) -> Rows:
        """Insert a column of zeros before the others."""
        csr = Csr.of_dense(self.features) if self.is_dense else self.csr
        return Rows.chosen(csr.indptr, csr.indices + 1, csr.values, self.n_features + 1)

    def in_form_of(self, other: Rows, threads: int) -> Rows:
        """The same rows, dense or CSR as `other` is."""
        if self.is_dense == other.is_dense:
            return self
        return self._as_dense(threads) if other.is_dense else self._as_csr()

    def _as_dense(self, threads: int) -> Rows:
        dense = _svmlight.densify(*self.csr, self.n_features, threads)
        return Rows(self.n_samples, self.n_features, dense=dense)

    def _as_csr(self) -> Rows:
        return Rows(self.n_samples, self.n_features, **Csr.of_dense(self.features)._asdict())


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Rows `numbers` of others, dense or CSR, which are copied only where they are needed."""

    rows: Rows
    numbers: np.ndarray

    @property
    def n_samples(self) -> int:
        return len(self.numbers)

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    @property
    def row_size(self) -> int:
        return self.rows.row_size

    def part(self, some: slice) -> Rows:
        return self.rows.take(self.numbers[some])

    def with_features(self, n_features: int) -> Rows:
        return self.rows.take(self.numbers).with_features(n_features)


def stacked(*parts: Rows) -> Rows:
    """The rows of all parts, which are in the same form, in order."""
    first = parts[0]
    n_samples = sum(part.n_samples for part in parts)
    if all(part.is_bytes for part in parts):
        dense = np.concatenate([part.stored for part in parts])[:, : first.n_features]
        return Rows(n_samples, first.n_features, dense=dense)
    if first.is_dense:
        is_coded = first.coding is not None and all(part.coding == first.coding for part in parts)
        dense = [part.dense if is_coded else part.as_floats().dense for part in parts]
        coding = first.coding if is_coded else None
        return Rows(n_samples, first.n_features, dense=np.concatenate(dense), coding=coding)
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    return Rows(
        n_samples,
        first.n_features,
        indptr=np.concatenate(([0], np.cumsum(lengths))),
        indices=np.concatenate([part.indices for part in parts]),
        values=np.concatenate([part.values for part in parts]),
    )


def _are_bytes(values: np.ndarray) -> bool:
    """Whether all float32 values are integers from 0 to 255."""
    is_inside = values.min(initial=0.0) >= 0 and values.max(initial=0.0) <= 255
    return bool(is_inside and np.array_equal(values, np.floor(values)))


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


# Training rows with exclusive 0/1 columns may be codes: each row has its numeric columns as float32
# and a byte for each code, then zeros up to a multiple of 4 bytes. One-hot columns are recognised
# by their values alone: 509 columns that are 33 categories and 7 numbers take 64 bytes, not 2,036.
WORTH_CODING = 1.3  # times fewer operations; half costs a9a 1.2 times, double nothing
SEARCHED_ROWS = 1000  # in which most data show that they have no codes

Make = Callable[[tuple[int, int], type], np.ndarray]


def coded(rows: Rows, threads: int) -> Rows:
    """Dense rows with codes, where these are worth it; else the same."""
    if not rows.is_dense or rows.columns is not None or rows.coding or rows.n_samples == 0:
        return rows
    some = rows.take(np.arange(0, rows.n_samples, -(-rows.n_samples // SEARCHED_ROWS)))
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
    return _core.Points(rows, threads)


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
