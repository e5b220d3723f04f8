"""Scale data as svm-scale does, by given ranges or by the ranges of the data.

Given ranges are read from a file (range_file.py), as by svm-scale -r. The ranges of the data are
scaled to -1 to 1, the default of svm-scale -s.

A feature is mapped linearly: the minimum of its range to the lower limit, the maximum to the upper
limit, values outside the range beyond the limits. Features without a range, constant features, and
values scaled to zero are dropped. Values are scaled in float64 from the text of the data and then
rounded to float32. svm-scale writes six significant digits, so its values differ from these by up
to half a unit of the sixth digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Generic, TypeVar

import numpy as np

from dcsvm.data.arrays import BYTES_OF_VALUE
from dcsvm.data.pieces import DataError, check_room
from dcsvm.data.rows import Rows, Storage, are_byte_values, storage_of, zero_bytes
from dcsvm.data.sorting import BATCH_SIZE, slices

FOUND_LIMITS = (-1.0, 1.0)  # svm-scale's default
# consecutive rows as CSR arrays (indptr, indices, values) with float64 values
Part = tuple[np.ndarray, np.ndarray, np.ndarray]
Bound = TypeVar("Bound", float, np.ndarray)


@dataclass(frozen=True)
class Interval(Generic[Bound]):
    """Linear map of the values from `minimum` to `maximum` to the range `lower` to `upper`."""

    lower: float
    upper: float
    minimum: Bound
    maximum: Bound

    def scaled(self, values: np.ndarray) -> np.ndarray:
        """Scale values to float64; overflow gives values that are not finite."""
        with np.errstate(all="ignore"):
            inside = self.lower + (self.upper - self.lower) * (values - self.minimum) / (
                np.subtract(self.maximum, self.minimum)
            )
        inside = np.where(values == self.maximum, self.upper, inside)
        return np.where(values == self.minimum, self.lower, inside)

    def of(self: Interval[np.ndarray], which: np.ndarray) -> Interval[np.ndarray]:
        return Interval(self.lower, self.upper, self.minimum[which], self.maximum[which])


@dataclass(frozen=True)
class Scaling:
    """Scaling of the features of a data set, and of its labels.

    `name` is the range file, for errors. `columns` int64 are the scaled columns from 0, ascending,
    `features` their intervals, with the minimum below the maximum. `labels` is the interval of the
    labels, None if they are not scaled. `first_index` is the index of column 0 in files, 0 or 1.
    """

    name: str
    columns: np.ndarray
    features: Interval[np.ndarray]
    labels: Interval[float] | None
    first_index: int = 1

    @property
    def indices(self) -> np.ndarray:
        """Indices of the columns in a file."""
        return self.columns + self.first_index

    def with_first_index(self, first_index: int) -> Scaling:
        """Return this scaling for a file with another index of column 0."""
        if first_index == self.first_index:
            return self
        columns = self.indices - first_index
        kept = columns >= 0  # files without index 0 do not have that feature
        return replace(
            self,
            columns=columns[kept],
            features=self.features.of(np.flatnonzero(kept)),
            first_index=first_index,
        )

    def scaled_labels(self, labels: np.ndarray, name: str) -> np.ndarray:
        """Scale the labels of the file `name`, float64, if the range file has a range for them."""
        if self.labels is None:
            return labels
        scaled = self.labels.scaled(labels)
        row = _first_overflow(scaled)
        if row is not None:
            raise self._error(f"{name}:{row + 1}: the label")
        return scaled

    def scaled_rows(self, parts: Iterable[Part], name: str) -> Rows:
        """Scale the rows of the file `name`; their storage is as if read from scaled text.

        The `parts` are iterated over twice.
        Raises DataError for values beyond float32, and for rows that do not fit in memory.
        """
        absent = self.features.scaled(np.zeros(len(self.columns)))
        k = _first_overflow(absent)
        if k is not None:
            raise self._error(f"{name}: 0 of feature {self.indices[k]}")
        used, n_present = absent != 0, np.zeros(len(absent), np.int64)
        n_samples, n_values, are_bytes = 0, 0, True
        for part in parts:
            row, position, present = self._present(part)
            k = _first_overflow(present)
            if k is not None:
                feature = self.indices[position[k]]
                raise self._error(f"{name}:{n_samples + row[k] + 1}: feature {feature}")
            used[position[present != 0]] = True
            n_present += np.bincount(position, minlength=len(absent))
            present = present.astype(np.float32)
            n_values += int(np.count_nonzero(present))
            are_bytes = are_bytes and are_byte_values(present)
            n_samples += len(part[0]) - 1
        n_features = int(self.columns[used].max()) + 1 if used.any() else 0
        is_filled = (n_samples > n_present) & (absent.astype(np.float32) != 0)
        n_values += int((n_samples - n_present)[is_filled].sum())
        are_bytes = are_bytes and are_byte_values(absent[is_filled].astype(np.float32))
        storage = storage_of(n_samples, n_features, n_values, are_bytes=are_bytes)
        n_bytes = BYTES_OF_VALUE * n_values
        if storage in (Storage.BYTES, Storage.FLOATS):
            n_bytes = n_samples * n_features * (4 if storage is Storage.FLOATS else 1)
        check_room(f"{name} scaled by {self.name}", n_bytes)

        def blocks() -> Iterator[_Block]:
            for part in parts:
                n_rows, present = len(part[0]) - 1, self._present(part)
                yield _Block(self.columns, n_features, absent, n_rows, *present)

        if storage in (Storage.BYTES, Storage.FLOATS):
            return _dense_rows(blocks(), n_samples, n_features, storage)
        return _csr_rows(blocks(), n_samples, n_features, n_values).in_storage(storage)

    def _present(self, part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scale the values of the listed features.

        Returns (row in the part, position of the feature in `columns`, scaled value), each of
        shape (n_listed,).
        """
        indptr, indices, values = part
        row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        position = np.searchsorted(self.columns, indices)
        position[position == len(self.columns)] = 0
        listed = np.zeros(len(indices), bool)
        if len(self.columns):
            listed = self.columns[position] == indices
        row, position = row[listed], position[listed]
        return row, position, self.features.of(position).scaled(values[listed])

    def _error(self, value: str) -> DataError:
        return DataError(f"{value} is too large for float32 when scaled by {self.name}")


def _first_overflow(values: np.ndarray) -> int | None:
    """Return the index of the first value beyond float32, or None."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(values.astype(np.float32))
    return None if finite.all() else int(np.argmin(finite))


class _Block:
    """Scaled rows: the value present[k] is in row row[k] and column columns[position[k]].

    Column columns[j] has the value absent[j] in all rows without a value there.
    """

    def __init__(
        self,
        columns: np.ndarray,
        n_features: int,
        absent: np.ndarray,
        n_rows: int,
        row: np.ndarray,
        position: np.ndarray,
        present: np.ndarray,
    ):
        kept = columns[position] < n_features
        self.n_rows, self.n_features = n_rows, n_features
        self.row, self.column = row[kept], columns[position[kept]]
        self.values = present[kept].astype(np.float32)
        absent = absent.astype(np.float32)
        self.filled, self.fill = columns[absent != 0], absent[absent != 0]

    def write_dense(self, dense: np.ndarray) -> None:
        dense[:] = 0
        dense[:, self.filled] = self.fill
        dense[self.row, self.column] = self.values + np.float32(0)  # no negative zeros

    def csr(self, batch: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (number of values of each row, columns, values) of consecutive rows."""
        n_rows = batch.stop - batch.start
        own = slice(*np.searchsorted(self.row, [batch.start, batch.stop]))
        # a key is row * n_features + column
        keys = (self.row[own] - batch.start) * self.n_features + self.column[own]
        filled = (np.arange(n_rows)[:, None] * self.n_features + self.filled).ravel()
        rest = ~np.isin(filled, keys, assume_unique=True)
        fill = np.broadcast_to(self.fill, (n_rows, len(self.filled))).ravel()[rest]
        stored = self.values[own] != 0
        keys = np.concatenate((keys[stored], filled[rest]))
        values = np.concatenate((self.values[own][stored], fill))
        order = np.argsort(keys, kind="stable")
        rows, columns = np.divmod(keys[order], max(self.n_features, 1))
        return np.bincount(rows, minlength=n_rows), columns, values[order]


def _dense_rows(
    blocks: Iterable[_Block], n_samples: int, n_features: int, storage: Storage
) -> Rows:
    is_bytes, first = storage is Storage.BYTES, 0
    shape = n_samples, n_features
    dense = zero_bytes(*shape) if is_bytes else np.empty(shape, np.float32)
    for block in blocks:
        block.write_dense(dense[first : first + block.n_rows])
        first += block.n_rows
    return Rows(*shape, dense=dense)


def _csr_rows(blocks: Iterable[_Block], n_samples: int, n_features: int, n_values: int) -> Rows:
    indptr = np.zeros(n_samples + 1, np.int64)
    indices, values = np.empty(n_values, np.int32), np.empty(n_values, np.float32)
    first = begin = 0
    for block in blocks:
        for batch in slices(block.n_rows, BATCH_SIZE // (len(block.filled) + 1)):
            lengths, columns, stored = block.csr(batch)
            end = begin + len(stored)
            indices[begin:end], values[begin:end] = columns, stored
            indptr[first + batch.start + 1 : first + batch.stop + 1] = begin + np.cumsum(lengths)
            begin = end
        first += block.n_rows
    return Rows(n_samples, n_features, indptr=indptr, indices=indices, values=values)


@dataclass(frozen=True, eq=False)
class Extremes:
    """Minimum, maximum and number of the values of each column of `n_samples` rows.

    `columns` are the columns with values, ascending: memory does not grow with the largest index.
    """

    columns: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    counts: np.ndarray
    n_samples: int

    @staticmethod
    def of(parts: Iterable[Part]) -> Extremes:
        total = Extremes.joined([])
        for indptr, indices, values in parts:
            ones = np.ones(len(values), np.int64)
            part = Extremes(indices, values, values, ones, len(indptr) - 1)
            total = Extremes.joined([total, part])
        return total

    @staticmethod
    def joined(several: Iterable[Extremes]) -> Extremes:
        """Merge extremes; their columns may be unsorted and repeated."""
        empty = Extremes(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, np.int64), 0)
        several = [empty, *several]
        columns, minimum, maximum, counts = (
            np.concatenate([getattr(one, field.name) for one in several])
            for field in fields(Extremes)[:4]
        )
        order = np.argsort(columns)
        columns = columns[order]
        first = np.flatnonzero(np.diff(columns, prepend=-1))
        return Extremes(
            columns[first],
            np.minimum.reduceat(minimum[order], first),
            np.maximum.reduceat(maximum[order], first),
            np.add.reduceat(counts[order], first),
            sum(one.n_samples for one in several),
        )

    def scaling(self, name: str, first_index: int = 1) -> Scaling:
        """Return the scaling by these ranges, without constant features.

        A row without a value of a feature counts as 0. `name` is the file in errors.
        """
        absent = self.counts < self.n_samples
        minimum = np.where(absent, np.minimum(self.minimum, 0), self.minimum)
        maximum = np.where(absent, np.maximum(self.maximum, 0), self.maximum)
        varies = minimum < maximum
        features = Interval(*FOUND_LIMITS, minimum[varies], maximum[varies])
        return Scaling(f"the ranges of {name}", self.columns[varies], features, None, first_index)
