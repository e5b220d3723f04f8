"""Data scaled as svm-scale -r does, by the ranges of a file (range_file.py) or by those that
svm-scale -s would find in data, with which each feature of the rows goes from -1 to 1.

A feature is mapped linearly: the minimum of its range to the lower limit, the maximum to the
upper one, values outside beyond them. Features without a range, or whose minimum is
their maximum, are dropped, and so are values scaled to zero. Values are scaled in float64 from
the data's text and then rounded to float32; svm-scale writes six significant digits, so a value
here differs from what is read from its text by up to half a unit of the sixth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from dcsvm.data.arrays import BYTES_OF_VALUE
from dcsvm.data.pieces import DataError, check_room
from dcsvm.data.rows import Rows, Storage, are_byte_values, storage_of, zero_bytes
from dcsvm.data.sorting import AT_ONCE, slices

FOUND_LIMITS = (-1.0, 1.0)  # svm-scale's default
# consecutive rows of a text, CSR arrays (indptr, indices, values) with float64 values
Part = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Interval:
    """Where values from `minimum` to `maximum` (numbers or arrays) go: from `lower` to `upper`."""

    lower: float
    upper: float
    minimum: float | np.ndarray
    maximum: float | np.ndarray

    def scaled(self, values: np.ndarray) -> np.ndarray:
        """float64; not finite where the result is beyond it."""
        with np.errstate(all="ignore"):
            inside = self.lower + (self.upper - self.lower) * (values - self.minimum) / (
                np.subtract(self.maximum, self.minimum)
            )
        inside = np.where(values == self.maximum, self.upper, inside)
        return np.where(values == self.minimum, self.lower, inside)

    def of(self, which: np.ndarray) -> Interval:
        return Interval(self.lower, self.upper, self.minimum[which], self.maximum[which])


@dataclass(frozen=True)
class Scaling:
    """`columns` (from 0, ascending) with their `features` interval, whose minimum is below its
    maximum; the labels' interval if they are scaled; what errors call it, the range file's name;
    and the index of column 0 in files, 0 or 1."""

    name: str
    columns: np.ndarray
    features: Interval
    labels: Interval | None
    first_index: int = 1

    @property
    def indices(self) -> np.ndarray:
        """The indices of the columns in a file."""
        return self.columns + self.first_index

    def with_first_index(self, first_index: int) -> Scaling:
        """Return the scaling for rows of a file with this index of column 0."""
        if first_index == self.first_index:
            return self
        columns = self.indices - first_index
        kept = columns >= 0  # rows without an index 0 do not have that feature
        return replace(
            self,
            columns=columns[kept],
            features=self.features.of(np.flatnonzero(kept)),
            first_index=first_index,
        )

    def scaled_labels(self, labels: np.ndarray, name: str) -> np.ndarray:
        """The labels of the file `name`, float64, scaled if the range file says so."""
        if self.labels is None:
            return labels
        scaled = self.labels.scaled(labels)
        self._check(scaled, lambda row: f"{name}:{row + 1}: the label")
        return scaled

    def scaled_rows(self, parts: Iterable[Part], name: str, threads: int = 1) -> Rows:
        """Scale the rows of the file `name`, in the storage that their scaled text would have. The
        `parts` are gone through twice.

        Raises DataError for a value that does not fit float32, and for more rows than there is
        memory for.
        """
        absent = self.features.scaled(np.zeros(len(self.columns)))
        self._check(absent, lambda k: f"{name}: 0 of feature {self.indices[k]}")
        used, n_present = absent != 0, np.zeros(len(absent), np.int64)
        n_samples, n_values, are_bytes = 0, 0, True
        for part in parts:
            row, at, present = self._present(part)
            self._check(
                present,
                lambda k, row=row + n_samples, at=at: (
                    f"{name}:{row[k] + 1}: feature {self.indices[at[k]]}"
                ),
            )
            used[at[present != 0]] = True
            n_present += np.bincount(at, minlength=len(absent))
            present = present.astype(np.float32)
            n_values += np.count_nonzero(present)
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
        """Of every value of a listed feature its row in the part, the place of the feature, and the
        value scaled."""
        indptr, indices, values = part
        row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        at = np.searchsorted(self.columns, indices)
        at[at == len(self.columns)] = 0
        listed = self.columns[at] == indices if len(self.columns) else np.zeros(len(at), bool)
        row, at = row[listed], at[listed]
        return row, at, self.features.of(at).scaled(values[listed])

    def _check(self, scaled: np.ndarray, told: Callable[[int], str]) -> None:
        """Complain of the first value that is too large; `told` says which it is."""
        with np.errstate(over="ignore"):
            finite = np.isfinite(scaled.astype(np.float32))
        if not finite.all():
            what = told(int(np.argmin(finite)))
            raise DataError(f"{what} is too large for float32 when scaled by {self.name}")


class _Block:
    """`n_rows` rows with the value `present[k]` in row `row[k]` and column `columns[at[k]]`, and
    `absent[j]` in column `columns[j]` of all rows without one there."""

    def __init__(self, columns, n_features, absent, n_rows, row, at, present):
        kept = columns[at] < n_features
        self.n_rows, self.n_features = n_rows, n_features
        self.row, self.column = row[kept], columns[at[kept]]
        self.values = present[kept].astype(np.float32)
        absent = absent.astype(np.float32)
        self.filled, self.fill = columns[absent != 0], absent[absent != 0]

    def write_dense(self, dense: np.ndarray) -> None:
        dense[:] = 0
        dense[:, self.filled] = self.fill
        dense[self.row, self.column] = self.values + np.float32(0)  # no negative zeros

    def csr(self, some: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(number of values of each row, columns, values) of some of the rows."""
        n_rows = some.stop - some.start
        own = slice(*np.searchsorted(self.row, [some.start, some.stop]))
        # a place is row * n_features + column
        places = (self.row[own] - some.start) * self.n_features + self.column[own]
        every = (np.arange(n_rows)[:, None] * self.n_features + self.filled).ravel()
        rest = ~np.isin(every, places, assume_unique=True)
        fill = np.broadcast_to(self.fill, (n_rows, len(self.filled))).ravel()[rest]
        stored = self.values[own] != 0
        places = np.concatenate((places[stored], every[rest]))
        values = np.concatenate((self.values[own][stored], fill))
        order = np.argsort(places, kind="stable")
        rows, columns = np.divmod(places[order], max(self.n_features, 1))
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
        for some in slices(block.n_rows, AT_ONCE // (len(block.filled) + 1)):
            lengths, columns, own = block.csr(some)
            end = begin + len(own)
            indices[begin:end], values[begin:end] = columns, own
            indptr[first + some.start + 1 : first + some.stop + 1] = begin + np.cumsum(lengths)
            begin = end
        first += block.n_rows
    return Rows(n_samples, n_features, indptr=indptr, indices=indices, values=values)


@dataclass(frozen=True, eq=False)
class Extremes:
    """Of `n_samples` rows the `columns` with values, ascending, the smallest and the largest value
    in each, and `counts`, how many there are. Takes no more memory for a huge index than for a
    small one."""

    columns: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    counts: np.ndarray
    n_samples: int

    @staticmethod
    def of(parts: Iterable[Part]) -> Extremes:
        found = Extremes.joined([])
        for indptr, indices, values in parts:
            ones = np.ones(len(values), np.int64)
            found = Extremes.joined(
                [found, Extremes(indices, values, values, ones, len(indptr) - 1)]
            )
        return found

    @staticmethod
    def joined(several: Iterable[Extremes]) -> Extremes:
        """Those of all rows together; columns need neither ascend nor differ."""
        nothing = Extremes(
            np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, np.int64), 0
        )
        several = [nothing, *several]
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
        """The scaling by these ranges, in float64; rows without a feature count as 0 of it, and
        features of one value are not in it. `name` stands for their file in errors."""
        absent = self.counts < self.n_samples
        minimum = np.where(absent, np.minimum(self.minimum, 0), self.minimum)
        maximum = np.where(absent, np.maximum(self.maximum, 0), self.maximum)
        varies = minimum < maximum
        features = Interval(*FOUND_LIMITS, minimum[varies], maximum[varies])
        return Scaling(f"the ranges of {name}", self.columns[varies], features, None, first_index)
