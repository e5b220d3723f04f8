"""Rows of features in one of four storage formats, or rows of a precomputed kernel.

This module does not read files, scale features, or depend on labels and kernels. A kernel may
compute with an encoding of the rows, see dcsvm/kernel/kernel_rows.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm import _core, _svmlight
from dcsvm.data.arrays import (
    BATCH_SIZE,
    BYTES_OF_VALUE,
    Csr,
    as_float32,
    check_finite,
    check_form,
    distinct,
    fits_memory,
    gather,
    is_mapped,
    page_by_page,
    slices,
    zeros,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

WORD = 4  # bytes
# Costs of a kernel evaluation, a byte and a CSR value, in units of the cost of a float feature, by
# the cost model of csrc/kernel/kernel_setup.cc.
VALUE_WORK, BYTE_WORK, SPARSE_WORK = 11, 0.07, 5.5
BATCH_VALUES = 2**22  # largest number of values in a batch of rows encoded in memory


def zero_bytes(
    n_samples: int, n_features: int, zeros: Callable[..., np.ndarray] = np.zeros
) -> np.ndarray:
    """Allocate byte rows of zeros, uint8 (n_samples, n_features), with the allocator `zeros`.

    Each row is padded to a multiple of 4 bytes.
    """
    return zeros((n_samples, _row_size(n_features)), np.uint8)[:, :n_features]


def with_ends(rows: np.ndarray) -> np.ndarray:
    """Return a C-contiguous view of byte rows that includes their padding.

    Raises ValueError if rows are not padded to a multiple of 4 bytes.
    """
    n_samples, n_features = rows.shape
    shape = n_samples, _row_size(n_features)
    if n_samples and rows.strides != (shape[1], 1):
        raise ValueError("rows of bytes do not begin at multiples of 4 bytes")
    return np.lib.stride_tricks.as_strided(
        rows, shape, (shape[1], 1), writeable=rows.flags.writeable
    )


def as_byte_rows(values: np.ndarray) -> np.ndarray:
    """Convert uint8 or bool values (n, d) to padded byte rows.

    Values that need no padding are not copied.
    """
    values = values.view(np.uint8)
    if values.strides == (_row_size(values.shape[1]), 1) and values.shape[1] % WORD == 0:
        return values
    rows = zero_bytes(*values.shape)
    rows[:] = values
    return rows


def _row_size(n_features: int) -> int:
    return -(-n_features // WORD) * WORD


class Storage(Enum):
    """Storage format of rows.

    `PACKED` rows are dense rows stored as CSR to save memory: a kernel encodes or unpacks them.
    `SPARSE` rows are used as CSR.
    """

    FLOATS = "float32"
    BYTES = "uint8"
    PACKED = "packed"
    SPARSE = "sparse"


DENSE_FEATURES = 64
DENSE_DENSITY = 0.05
PACKED_DENSITY = 1 / 8  # at this density floats take 4 times the memory of CSR
TRIED_ROWS = 100  # rows tested first for byte values; most data with other values fail there


def storage_of(n_samples: int, n_features: int, n_values: int, *, are_bytes: bool) -> Storage:
    """Choose the storage of rows from their size and the number of nonzero values.

    `are_bytes`: all values are integers from 0 to 255.

    Rows are dense if they have at most 64 features, or at least 5 % nonzero values: tiles of dense
    rows are many times faster per entry than sparse rows. Dense rows with `are_bytes` are stored as
    bytes if the number of features suits tiles of bytes. Other dense rows are packed if they have
    more than 64 features and would take more than 4 times the memory of CSR. The choice depends
    only on counts, which can be summed over parts of the data. So it does not depend on how the
    rows are divided into parts.
    """
    size = n_samples * n_features
    is_narrow = n_features <= DENSE_FEATURES
    if not (is_narrow or n_values >= DENSE_DENSITY * size > 0):
        return Storage.SPARSE
    if are_bytes and _core.suit_bytes(n_features):
        return Storage.BYTES
    return Storage.FLOATS if is_narrow or n_values >= PACKED_DENSITY * size else Storage.PACKED


@dataclass(frozen=True, eq=False)
class Rows:
    """Feature rows in one storage format, or rows of a precomputed kernel.

    Dense rows have `dense` (n_samples, n_features), either float32 C-contiguous or uint8. Rows of
    uint8 are a view of an array padded with zeros to a multiple of 4 columns, because tiles read
    four bytes at once.

    CSR rows have `indptr` int64 (n_samples + 1,), `indices` int32, ascending within a row, and
    `values` float32 without zeros. `is_packed` marks CSR rows that a kernel uses as dense, see
    Storage.

    Rows of a precomputed kernel have rows of its matrix in `dense`. Training rows also have
    `columns` int32 (n_samples,), the matrix column that belongs to each row: its serial number
    minus 1. A model's rows have only `columns`.

    The arrays are shared, not copied: treat them as read-only.
    """

    n_samples: int
    n_features: int
    dense: np.ndarray | None = None
    indptr: np.ndarray | None = None
    indices: np.ndarray | None = None
    values: np.ndarray | None = None
    columns: np.ndarray | None = None
    is_packed: bool = False

    @staticmethod
    def of_csr(
        indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, n_features: int
    ) -> Rows:
        """Create rows from CSR arrays, in the storage chosen by `storage_of`."""
        rows = Rows(len(indptr) - 1, n_features, indptr=indptr, indices=indices, values=values)
        return rows.in_chosen_storage()

    @staticmethod
    def from_array(X: Any) -> Rows:
        """Create rows from a 2-D NumPy array or SciPy sparse matrix of real numbers.

        `storage_of` chooses the storage. A dense X that has this storage is not copied. Raises
        ValueError for values that are not finite float32 numbers.
        """
        if hasattr(X, "tocsr"):
            return Rows.of_csr(*Csr.of_matrix(X), X.shape[1])
        dense = np.asarray(X)
        check_form(dense.shape, dense.dtype)
        n_samples, n_features = dense.shape
        if dense.dtype in (np.uint8, np.bool_) and _core.suit_bytes(n_features):
            dense = as_byte_rows(dense)
        else:
            dense = as_float32(dense)
            check_finite(dense, lambda k: divmod(k, n_features))
        return Rows(n_samples, n_features, dense=dense).in_chosen_storage()

    def in_chosen_storage(self) -> Rows:
        """Convert the rows to the storage that `storage_of` chooses.

        Dense rows are returned unchanged if the copy does not fit in memory.
        """
        storage = storage_of(
            self.n_samples, self.n_features, self.count_values(), are_bytes=self.are_bytes()
        )
        n_bytes = self.n_samples * self.n_features
        if storage is Storage.PACKED:
            n_bytes = BYTES_OF_VALUE * self.count_values()
        if self.dense is None or storage is self.storage or fits_memory(n_bytes):
            return self.in_storage(storage)
        return self

    @property
    def storage(self) -> Storage:
        if self.indptr is not None:
            return Storage.PACKED if self.is_packed else Storage.SPARSE
        return Storage.BYTES if self.is_bytes else Storage.FLOATS

    @property
    def is_dense(self) -> bool:
        """Whether kernels use the rows as dense; True for packed rows."""
        return self.indptr is None or self.is_packed

    @property
    def is_bytes(self) -> bool:
        return self.dense is not None and self.dense.dtype == np.uint8

    @property
    def matrix(self) -> np.ndarray:
        """The array `dense` (n_samples, n_features); CSR rows, packed or not, have none."""
        assert self.dense is not None
        return self.dense

    @property
    def stored(self) -> np.ndarray:
        """The array `dense`, C-contiguous, with the padding of byte rows."""
        return with_ends(self.matrix) if self.is_bytes else self.matrix

    @property
    def is_mapped(self) -> bool:
        """Whether the rows are in a mapped file, which may be larger than memory."""
        return is_mapped(self.values if self.dense is None else self.dense)

    @property
    def is_in_file(self) -> bool:
        """Whether kernels read the rows directly from a mapped file; False for CSR rows."""
        return self.dense is not None and self.is_mapped

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling; byte rows keep their padding."""
        return vars(self) | {"dense": self.stored if self.is_bytes else self.dense}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.is_bytes:
            vars(self)["dense"] = self.matrix[:, : self.n_features]

    def count_values(self) -> int:
        """Count the nonzero values."""
        return len(self.csr.values) if self.dense is None else int(np.count_nonzero(self.dense))

    def are_bytes(self) -> bool:
        """Return whether all values are integers from 0 to 255."""
        if self.is_bytes:
            return True
        if self.dense is None:
            values = self.csr.values
            parts = (values[batch] for batch in slices(len(values), BATCH_SIZE))
            return all(are_byte_values(part) for part in parts)
        dense = self.dense
        if not are_byte_values(dense[:: -(-self.n_samples // TRIED_ROWS) or 1]):
            return False
        return all(are_byte_values(dense[batch]) for batch in self.slices())

    def in_storage(self, storage: Storage) -> Rows:
        """Convert the rows to a storage; BYTES requires integers from 0 to 255."""
        if storage is self.storage:
            return self
        if storage is Storage.FLOATS:
            return self._dense_floats(1)
        if storage is Storage.BYTES:
            dense = zero_bytes(self.n_samples, self.n_features)
            for batch in self.slices():
                dense[batch] = self.part(batch)._dense_floats(1).dense  # noqa: SLF001  # this class
            return Rows(self.n_samples, self.n_features, dense=dense)
        csr = self.csr if self.dense is None else Csr.of_dense(self.dense)
        is_packed = storage is Storage.PACKED
        return Rows(self.n_samples, self.n_features, **csr._asdict(), is_packed=is_packed)

    def as_floats(self, threads: int = 1) -> Rows:
        """Convert byte and packed rows to dense float32; return other rows unchanged.

        Packed rows are unpacked into a mapped file if they do not fit in memory.
        """
        return self._dense_floats(threads) if self.is_bytes or self.is_packed else self

    def _dense_floats(self, threads: int) -> Rows:
        if self.is_bytes:
            return replace(self, dense=self.matrix.astype(np.float32))
        if self.indptr is None:
            return self
        is_batch = self.n_samples * self.n_features <= BATCH_VALUES
        make = np.zeros if is_batch else partial(zeros, name="the rows")
        dense = _svmlight.densify(*self.csr, self.n_features, threads, make)
        return Rows(self.n_samples, self.n_features, dense=dense)

    @property
    def features(self) -> np.ndarray:
        """Values of dense rows (n_samples, n_features), float32 or uint8; a copy if packed."""
        return self.as_floats().matrix if self.is_packed else self.matrix

    def weighted(self, weights: np.ndarray, columns: np.ndarray | None = None) -> Rows:
        """Multiply the columns by weights in float32.

        `columns`, ascending, are the columns of the weights; others have weight 0. None means all.
        """
        factors, floats = weights.astype(np.float32), self.as_floats()
        if floats.dense is not None:
            if columns is not None:
                factors = of_columns(factors, columns, np.arange(self.n_features))
            return replace(floats, dense=floats.dense * factors)
        csr = floats.csr
        if columns is None:
            values = csr.values * factors[csr.indices]
        else:
            values = csr.values * of_columns(factors, columns, csr.indices)
        return Rows.of_csr(*csr._replace(values=values).without_zeros(), self.n_features)

    def squared_norms(self) -> np.ndarray:
        """Return |x|^2 of each row, float64 (n_samples,); inf beyond float64."""
        if self.is_dense:
            parts = (self.part(batch).features for batch in self.slices())
            squares = [np.square(x, dtype=np.float64).sum(axis=1) for x in parts]
            return np.concatenate([np.zeros(0), *squares])
        row = np.repeat(np.arange(self.n_samples), np.diff(self.csr.indptr))
        return np.bincount(row, np.square(self.csr.values, dtype=np.float64), self.n_samples)

    def mean_squared_distance(self) -> float:
        """Return the mean of |x - z|^2 over all pairs of rows.

        It is twice the sum of the variances of the features.
        """
        if self.is_dense:
            return 2.0 * float(np.var(self.features, axis=0, dtype=np.float64).sum())
        csr = self.csr
        places, n_columns = csr.indices, int(csr.indices.max(initial=-1)) + 1
        if are_far(self.n_features, len(csr.values)):
            used = distinct(csr.indices)
            places, n_columns = np.searchsorted(used, csr.indices), len(used)
        sums, squares = np.zeros(n_columns), 0.0
        for batch in slices(len(csr.values), BATCH_SIZE):
            values = csr.values[batch].astype(np.float64)
            sums += np.bincount(places[batch], values, len(sums))
            squares += float(values @ values)
        means = sums / self.n_samples
        return 2.0 * float(squares / self.n_samples - means @ means)

    def __sizeof__(self) -> int:
        """Return the size for Dask, which runs a task where most bytes of its arguments are."""
        return object.__sizeof__(self) + self.nbytes

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    @property
    def nbytes_in_memory(self) -> int:
        """Bytes of the arrays that are not in a mapped file."""
        return sum(array.nbytes for array in self._arrays if not is_mapped(array))

    @property
    def _arrays(self) -> list[np.ndarray]:
        arrays = (self.dense, self.indptr, self.indices, self.values, self.columns)
        return [array for array in arrays if array is not None]

    @property
    def csr(self) -> Csr:
        assert self.indptr is not None and self.indices is not None and self.values is not None
        return Csr(self.indptr, self.indices, self.values)

    @property
    def row_size(self) -> int:
        """Number of values that a kernel reads per row, at least 1; for sparse rows the mean."""
        if self.storage is Storage.SPARSE:
            return max(len(self.csr.values) // max(self.n_samples, 1), 1)
        return max(self.n_features, 1) if self.is_packed or self.dense is not None else 1

    def work_with(self, n_others: int) -> float:
        """Estimate the work of kernel values with `n_others` rows, in costs of a float feature."""
        if self.is_bytes:
            features = BYTE_WORK * self.n_features
        else:
            features = self.row_size if self.is_dense else SPARSE_WORK * self.row_size
        return float(self.n_samples) * n_others * (VALUE_WORK + features)

    def slices(self, n_values: int = BATCH_SIZE) -> list[slice]:
        """Return slices that split the rows into batches of about `n_values` values."""
        return slices(self.n_samples, n_values // self.row_size)

    def unlike(self, single: Rows) -> np.ndarray:
        """Mark the rows that differ from a single row in the same storage, bool (n_samples,)."""
        differ = np.zeros(self.n_samples, bool)
        for batch in self.slices():
            part = self.part(batch)
            if self.is_dense:
                differ[batch] = (part.features != single.features).any(axis=1)
                continue
            csr, row = part.csr, single.csr
            # only rows with as many values need be compared value by value
            is_other = np.diff(csr.indptr) != len(row.values)
            alike = np.flatnonzero(~is_other)
            at = csr.indptr[alike, None] + np.arange(len(row.values))
            is_other[alike] = (csr.indices[at] != row.indices).any(axis=1)
            is_other[alike] |= (csr.values[at] != row.values).any(axis=1)
            differ[batch] = is_other
        return differ

    def part(self, batch: slice) -> Rows:
        """Return consecutive rows; their values share memory with these rows."""
        n_samples = batch.stop - batch.start
        if self.indptr is None:
            dense = None if self.dense is None else self.dense[batch]
            columns = None if self.columns is None else self.columns[batch]
            return replace(self, n_samples=n_samples, dense=dense, columns=columns)
        return replace(self, n_samples=n_samples, **self.csr.part(batch)._asdict())

    def take(self, row_numbers: ArrayLike) -> Rows:
        """Copy the rows with the given indices, in that order and the same storage.

        Indices may repeat.
        """
        row_numbers = np.asarray(row_numbers, dtype=np.int64)
        if self.indptr is None:
            dense = None if self.dense is None else self._taken(row_numbers)
            columns = None if self.columns is None else self.columns[row_numbers]
            return replace(self, n_samples=len(row_numbers), dense=dense, columns=columns)
        taken = self.csr.take(row_numbers)
        return replace(self, n_samples=len(row_numbers), **taken._asdict())

    def _taken(self, row_numbers: np.ndarray) -> np.ndarray:
        """Copy dense rows by index, into a mapped file if they do not fit in memory."""
        stored = self.stored
        n_columns = self.matrix.shape[1]
        if not self.is_mapped:
            return stored[row_numbers][:, :n_columns]
        if fits_memory(len(row_numbers) * stored[:1].nbytes):
            with page_by_page(stored):
                return stored[row_numbers][:, :n_columns]
        taken = zeros((len(row_numbers), stored.shape[1]), stored.dtype, "the rows")
        gather(stored, row_numbers, taken)
        return taken[:, :n_columns]

    def reordered(self, row_numbers: np.ndarray, threads: int = 1) -> Rows:
        """Return the rows with the given indices, in that order, in place if possible.

        These rows must not be used afterwards. Indices must not repeat.
        """
        is_copied = self.dense is None or self.columns is not None or self.is_mapped
        if is_copied or self.n_features == 0:
            return self.take(row_numbers)
        order = row_numbers.astype(np.int32, copy=False)
        if len(order) < self.n_samples:
            others = np.ones(self.n_samples, bool)
            others[order] = False
            order = np.concatenate((order, np.flatnonzero(others)), dtype=np.int32)
        _core.reorder_rows(self.stored.view(np.uint8), order, threads)
        n_samples = len(row_numbers)
        return replace(self, n_samples=n_samples, dense=self.matrix[:n_samples])

    def take_for_model(self, row_numbers: ArrayLike) -> Rows:
        """Return the rows with the given indices as a model stores them.

        For a precomputed kernel, a model stores only `columns` of training rows.
        """
        rows = self if self.columns is None else replace(self, dense=None)
        return rows.take(row_numbers)

    def with_features(self, n_features: int) -> Rows:
        """Append columns of zeros up to `n_features`.

        Dense rows become sparse if they would have more than 64 features, and more than twice as
        many as now.
        """
        if n_features < self.n_features:
            raise ValueError(f"rows of {self.n_features} features do not fit {n_features}")
        if n_features == self.n_features or self.storage is Storage.SPARSE:
            return replace(self, n_features=n_features)
        if n_features > max(DENSE_FEATURES, 2 * self.n_features):
            return replace(self.in_storage(Storage.SPARSE), n_features=n_features)
        if self.is_packed:
            return replace(self, n_features=n_features)
        is_bytes = self.is_bytes and _core.suit_bytes(n_features)
        shape = self.n_samples, n_features
        dense = zero_bytes(*shape) if is_bytes else np.zeros(shape, np.float32)
        dense[:, : self.n_features] = self.dense
        return replace(self, n_features=n_features, dense=dense)

    def with_columns(self, columns: np.ndarray, values: np.ndarray) -> Rows:
        """Replace ascending columns by float32 values (n_samples, n_columns), in a copy.

        Rows with fewer columns get those that they lack. Dense rows become floats.
        """
        if self.n_samples == 0 or len(columns) == 0:
            return self
        rows = self.with_features(max(self.n_features, int(columns[-1]) + 1))
        if not rows.is_dense:
            parts = [rows.csr.part(at).with_columns(columns, values[at]) for at in rows.slices()]
            indptr, indices, values = Csr.joined(parts)
            return replace(rows, indptr=indptr, indices=indices, values=values)
        dense = zeros((rows.n_samples, rows.n_features), np.float32, "the rows")
        for batch in rows.slices():
            dense[batch] = rows.part(batch).features
            dense[batch, columns] = values[batch]
        return Rows(rows.n_samples, rows.n_features, dense=dense)

    def after_empty_column(self) -> Rows:
        """Return the rows with a column of zeros inserted before the first."""
        csr = self.in_storage(Storage.SPARSE).csr
        return Rows.of_csr(csr.indptr, csr.indices + 1, csr.values, self.n_features + 1)

    def in_form_of(self, other: Rows, threads: int) -> Rows:
        """Convert the rows to dense or sparse, whichever `other` is."""
        if self.is_dense == other.is_dense:
            return self
        if not other.is_dense:
            return self.in_storage(Storage.SPARSE)
        return replace(self, is_packed=True) if other.is_packed else self._dense_floats(threads)


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Selection of rows by their indices `numbers`, copied batch by batch when they are read."""

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

    def part(self, batch: slice) -> Rows:
        return self.rows.take(self.numbers[batch])

    def take(self, row_numbers: np.ndarray) -> Rows:
        return self.rows.take(self.numbers[row_numbers])

    def with_features(self, n_features: int) -> Rows:
        return self.rows.take(self.numbers).with_features(n_features)


def stacked(*parts: Rows) -> Rows:
    """Join the rows of all parts in order; either all parts are dense, or all are sparse."""
    n_samples, n_features = sum(part.n_samples for part in parts), parts[0].n_features
    if any(part.is_packed for part in parts):
        parts = tuple(part.in_storage(Storage.PACKED) for part in parts)
    if all(part.is_bytes for part in parts):
        dense = np.concatenate([part.stored for part in parts])[:, :n_features]
        return Rows(n_samples, n_features, dense=dense)
    if parts[0].indptr is None:
        dense = np.concatenate([part.as_floats().matrix for part in parts])
        return Rows(n_samples, n_features, dense=dense)
    csr = Csr.joined([part.csr for part in parts])
    return Rows(n_samples, n_features, **csr._asdict(), is_packed=parts[0].is_packed)


def copy_rows(target: np.ndarray, at: np.ndarray, source: np.ndarray, index: np.ndarray) -> None:
    """Copy row index[k] of `source` (n, d) to row at[k] of `target` (m, d), for all k."""
    for batch in slices(len(index), BATCH_SIZE // max(source.shape[1], 1)):
        target[at[batch]] = source[index[batch]]


def row_hashes(
    rows: Rows, seed: int = 0, *, by_value: bool = False, threads: int = 1
) -> np.ndarray:
    """Return a 64-bit hash of each row of features, uint64 (n,).

    Equal rows in the same storage have equal hashes; with `by_value` also rows in other storages,
    and rows that differ in the sign of zeros.
    """
    words = None
    if rows.dense is not None and not by_value:  # bytes are hashed by fours
        words = rows.stored.view(np.uint32)
    n_words = rows.n_features if words is None else words.shape[1]
    factors = np.random.default_rng(seed).integers(2**63, size=n_words, dtype=np.uint64)
    factors |= np.uint64(1)
    if words is not None:
        return _core.hash_rows(words, factors, threads)
    hashes = np.empty(rows.n_samples, np.uint64)
    for batch in rows.slices(BATCH_SIZE // 4):
        part = rows.part(batch)
        if by_value and rows.is_dense:
            part = part.as_floats()
        if part.dense is None:  # a zero adds nothing
            csr = part.csr
            terms = _mixed(csr.values) * factors[csr.indices]
            sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms)))
            sums = np.diff(sums[csr.indptr])
            hashes[batch] = sums ^ (sums >> np.uint64(32))
        else:
            values = part.matrix + np.float32(0)  # no negative zeros
            hashes[batch] = _core.hash_rows(values.view(np.uint32), factors, threads)
    return hashes


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return the 32-bit words of values as uint64, with upper bits mixed into lower bits."""
    words = values.view(np.uint32).astype(np.uint64)
    return words ^ (words >> np.uint64(15))


def are_byte_values(values: np.ndarray) -> bool:
    """Return whether all float32 values are integers from 0 to 255."""
    is_inside = values.min(initial=0.0) >= 0 and values.max(initial=0.0) <= 255
    return bool(is_inside and np.array_equal(values, np.floor(values)))


def of_columns(values: np.ndarray, columns: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Look up the values of `wanted` columns among ascending `columns`; 0 for absent ones."""
    place = np.searchsorted(columns, wanted)
    is_known = np.append(columns, -1)[place] == wanted
    return np.where(is_known, np.append(values, values.dtype.type(0))[place], values.dtype.type(0))


# largest excess of columns over values; training then takes up to 64 MB of scratch memory
LARGE_N_FEATURES = 2**20


def are_far(n_features: int, n_values: int) -> bool:
    """Return whether there are far more columns than values."""
    return n_features > LARGE_N_FEATURES + n_values
