"""Scale features linearly as svm-scale does, or to normal quantiles.

The ranges of features are read from a range file, as by svm-scale -r, or computed from the data.
Ranges of the data are scaled to -1 to 1, the default of svm-scale -s. A range file has the range of
each feature and the limits to which the ranges are scaled.

A feature is mapped linearly: the minimum of its range goes to the lower limit, the maximum to the
upper limit. Values outside the range go beyond the limits. Features without a range, constant
features, and values scaled to zero are dropped. Values are parsed and scaled in float64, then
rounded to float32. svm-scale writes six significant digits, so its values differ from these by up
to half a unit of the sixth digit.

Quantile scaling maps the values of a column to a normal distribution by their ranks. Skewed columns
and columns with outliers then have the same range as others. Equal values stay equal.

Values far from 0 that differ little, such as dates written as 20180131, lose their differences in
float32. A shift subtracts the smallest value of such columns in float64; other columns stay as they
are. It does not change kernels of differences.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from dcsvm.data.arrays import BATCH_SIZE, BYTES_OF_VALUE, MAX_N_FEATURES, Csr, group_order, slices
from dcsvm.data.files import DataError, check_room, read_text
from dcsvm.data.rows import (
    Rows,
    Storage,
    are_byte_values,
    of_columns,
    storage_of,
    zero_bytes,
)

FOUND_LIMITS = (-1.0, 1.0)  # svm-scale's default
ONE_HOT = 0.5  # |u - v|_1 of two categories is 1, the width of a range [0, 1]
MAX_KNOTS = 254  # per column, in addition to the smallest and largest value
RANKED_VALUES = 2**24  # largest number of values to rank; larger data are sampled
# Rounding to float32 changes a value v by up to 2^-24 |v|. A column is shifted if this is more than
# ROUNDED of its spread, unless the spread is itself rounding of float64: below NOISE of the values.
ROUNDED, NOISE = 2.0**-16, 2.0**-45


@dataclass(frozen=True)
class Interval:
    """Linear map of an interval [minimum, maximum], or of one per column, to [lower, upper]."""

    lower: float
    upper: float
    minimum: Any  # a float, or float64 (n_columns,)
    maximum: Any

    def scaled(self, values: np.ndarray) -> np.ndarray:
        """Scale values to float64; overflow gives values that are not finite."""
        with np.errstate(all="ignore"):
            inside = self.lower + (self.upper - self.lower) * (values - self.minimum) / (
                np.subtract(self.maximum, self.minimum)
            )
        inside = np.where(values == self.maximum, self.upper, inside)
        return np.where(values == self.minimum, self.lower, inside)

    def of(self, which: np.ndarray) -> Interval:
        """Return the maps of the columns `which`."""
        return Interval(self.lower, self.upper, self.minimum[which], self.maximum[which])

    def scaled_at(self, which: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Scale each values[k] (m,) by the map of column which[k]."""
        return self.of(which).scaled(values)


@dataclass(frozen=True, eq=False)
class Quantiles:
    """Maps of columns to normal quantiles: linear between knots, constant beyond them.

    The knots of column j are the values knots[start[j]:start[j + 1]], ascending. `levels` has the
    normal quantile of each knot. Both are float64.
    """

    start: np.ndarray
    knots: np.ndarray
    levels: np.ndarray

    @staticmethod
    def joined(columns: list[tuple[np.ndarray, np.ndarray]]) -> Quantiles:
        """Create the maps of columns from their knots and levels."""
        none = np.zeros(0)
        start = np.cumsum([0, *(len(knots) for knots, _ in columns)])
        knots = np.concatenate([none, *(knots for knots, _ in columns)])
        return Quantiles(start, knots, np.concatenate([none, *(levels for _, levels in columns)]))

    def of(self, which: np.ndarray) -> Quantiles:
        """Return the maps of the columns `which`."""
        return Quantiles.joined([self._column(j) for j in which])

    def scaled_at(self, which: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Scale each values[k] (m,) by the map of column which[k]."""
        scaled = np.empty(len(values))
        if len(values) == 0:
            return scaled
        order = np.argsort(which, kind="stable")
        columns, first = np.unique(which[order], return_index=True)
        for j, members in zip(columns, np.split(order, first[1:]), strict=True):
            scaled[members] = np.interp(values[members], *self._column(j))
        return scaled

    def _column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        entries = slice(self.start[j], self.start[j + 1])
        return self.knots[entries], self.levels[entries]


@dataclass(frozen=True, eq=False)
class Offsets:
    """Maps of columns that subtract an offset from each, float64 (n_columns,)."""

    offset: np.ndarray

    def of(self, which: np.ndarray) -> Offsets:
        """Return the maps of the columns `which`."""
        return Offsets(self.offset[which])

    def scaled_at(self, which: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Scale each values[k] (m,) by the map of column which[k]."""
        return values - self.offset[which]


@dataclass(frozen=True)
class Scaling:
    """Scaling of the features of a data set, and of its labels.

    `name` is the range file, for errors. `columns`, int64, are the scaled columns, counted from 0,
    ascending. `features` has their maps; the minimum of an interval is below its maximum. Scaled
    values are multiplied by `weights`, float64, one per column; None means ones. `labels` is the
    interval of the labels, None if they are not scaled. `first_index` is the index of column 0 in
    files, 0 or 1. `n_features` is the number of features of the arrays or tables that it was made
    of, constant ones included; None for files, in which features may be absent.

    Other columns are dropped, but a shift, which has offsets and no weights, leaves them as they
    are.
    """

    name: str
    columns: np.ndarray
    features: Interval | Quantiles | Offsets
    labels: Interval | None
    first_index: int = 1
    weights: np.ndarray | None = None
    n_features: int | None = None

    @staticmethod
    def identity(columns: int | np.ndarray, name: str, first_index: int = 1) -> Scaling:
        """Return the scaling without effect on `columns`, given as indices or as their number."""
        columns = np.arange(columns) if isinstance(columns, int) else columns
        features = Interval(0.0, 1.0, np.zeros(len(columns)), np.ones(len(columns)))
        return Scaling(name, columns, features, None, first_index)

    @property
    def is_shift(self) -> bool:
        """Whether only offsets are subtracted from the columns, and others stay as they are."""
        return isinstance(self.features, Offsets) and self.weights is None

    @property
    def has_only_weights(self) -> bool:
        """Whether this is `identity`, with weights."""
        maps = self.features
        if self.weights is None or not isinstance(maps, Interval):
            return False
        is_same = not maps.minimum.any() and (maps.maximum == 1).all()
        return bool(is_same and (maps.lower, maps.upper) == (0, 1))

    def with_all(self, columns: np.ndarray) -> Scaling:
        """Return a shift with an offset for each of ascending columns, 0 for further ones."""
        assert isinstance(self.features, Offsets)
        offset = of_columns(self.features.offset, self.columns, columns)
        return replace(self, columns=columns, features=Offsets(offset))

    def shifted(self, rows: Rows, values: np.ndarray) -> Rows:
        """Shift rows, given the float64 values (n_samples, n_columns) of the shifted columns."""
        assert isinstance(self.features, Offsets)
        with np.errstate(over="ignore"):
            differences = (values - self.features.offset).astype(np.float32)
        return rows.with_columns(self.columns, differences)

    def shifted_array(self, X: Any) -> Any:
        """Shift an array (n, d) of real numbers, in float64; return anything else unchanged."""
        assert isinstance(self.features, Offsets)
        if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.kind not in "biuf":
            return X
        if len(self.columns) == 0 or X.shape[1] <= self.columns[-1]:
            return X
        shifted = X.astype(np.float64)
        shifted[:, self.columns] -= self.features.offset
        return shifted

    def restored(self, rows: Rows) -> Csr:
        """Return shifted rows in the units of the data, float64; `shifted` reverses this."""
        assert isinstance(self.features, Offsets)
        csr = Csr.of_dense(rows.features) if rows.is_dense else rows.csr
        csr = csr._replace(values=csr.values.astype(np.float64))
        values = csr.of_columns(self.columns) + self.features.offset
        return csr.with_columns(self.columns, values)

    @property
    def indices(self) -> np.ndarray:
        """Indices of the columns in a file."""
        return self.columns + self.first_index

    def with_first_index(self, first_index: int) -> Scaling:
        """Return this scaling for a file where column 0 has another index."""
        if first_index == self.first_index:
            return self
        columns = self.indices - first_index
        kept = columns >= 0  # a file with indices from 1 has no feature 0
        return replace(
            self.of_columns(np.flatnonzero(kept)), columns=columns[kept], first_index=first_index
        )

    def weighted(self, weights: np.ndarray) -> Scaling:
        """Multiply the scaled columns by weights (n_columns,); drop columns of weight 0."""
        weights = weights if self.weights is None else weights * self.weights
        return replace(self, weights=weights).of_columns(np.flatnonzero(weights))

    def of_columns(self, which: np.ndarray) -> Scaling:
        """Return the scaling of only columns[which]."""
        weights = None if self.weights is None else self.weights[which]
        features = self.features.of(which)
        return replace(self, columns=self.columns[which], features=features, weights=weights)

    def _scaled(self, which: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Scale each values[k] (m,) as a value of columns[which[k]]."""
        scaled = self.features.scaled_at(which, values)
        if self.weights is None:
            return scaled
        with np.errstate(over="ignore"):  # same bits as Rows.weighted
            return scaled.astype(np.float32) * self.weights[which].astype(np.float32)

    @cached_property
    def _absent(self) -> np.ndarray:
        """The scaled value of 0 in each column."""
        return self._scaled(np.arange(len(self.columns)), np.zeros(len(self.columns)))

    def scaled_labels(self, labels: np.ndarray, name: str) -> np.ndarray:
        """Scale labels (float64) of the file `name`, if the range file has a range for labels."""
        if self.labels is None:
            return labels
        scaled = self.labels.scaled(labels)
        row = _first_overflow(scaled)
        if row is not None:
            raise DataError(f"{name}:{row + 1}: the label{self._too_large(name)}")
        return scaled

    def scaled_rows(
        self,
        parts: Iterable[Csr],
        name: str,
        error_of: Callable[[int, int, str], DataError] | None = None,
    ) -> Rows:
        """Scale the rows of the file `name`; their storage is as if read from scaled text.

        The method iterates over `parts` twice. Raises DataError for values beyond float32, and for
        rows that do not fit in memory. `error_of` makes the error of a row, a column and a reason.
        """
        absent = self._absent
        k = _first_overflow(absent)
        if k is not None:
            raise DataError(f"{name}: 0 of feature {self.indices[k]}{self._too_large(name)}")
        # count the nonzero values, and see whether bytes can hold them: both tell the storage
        used, n_present = absent != 0, np.zeros(len(absent), np.int64)
        n_samples, n_values, are_bytes = 0, 0, True
        for part in parts:
            row, position, present = self._present(part)
            k = _first_overflow(present)
            if k is not None:
                at, column, reason = n_samples + int(row[k]), position[k], self._too_large(name)
                if error_of is not None:
                    raise error_of(at, int(self.columns[column]), f"the value{reason}")
                raise DataError(f"{name}:{at + 1}: feature {self.indices[column]}{reason}")
            used[position[present != 0]] = True
            n_present += np.bincount(position, minlength=len(absent))
            present = present.astype(np.float32)
            n_values += int(np.count_nonzero(present))
            are_bytes = are_bytes and are_byte_values(present)
            n_samples += len(part[0]) - 1
        # rows that do not list a feature have its scaled value of 0
        n_features = int(self.columns[used].max()) + 1 if used.any() else 0
        is_filled = (n_samples > n_present) & (absent.astype(np.float32) != 0)
        n_values += int((n_samples - n_present)[is_filled].sum())
        are_bytes = are_bytes and are_byte_values(absent[is_filled].astype(np.float32))
        storage = storage_of(n_samples, n_features, n_values, are_bytes=are_bytes)
        is_dense = storage in (Storage.BYTES, Storage.FLOATS)
        n_bytes = BYTES_OF_VALUE * n_values
        if is_dense:
            n_bytes = n_samples * n_features * (4 if storage is Storage.FLOATS else 1)
        check_room(name + self._by(name), n_bytes)
        if is_dense:
            return self._dense_rows(parts, n_samples, n_features, storage)
        return self._csr_rows(parts, n_samples, n_features, n_values).in_storage(storage)

    def _dense_rows(
        self, parts: Iterable[Csr], n_samples: int, n_features: int, storage: Storage
    ) -> Rows:
        is_bytes, first = storage is Storage.BYTES, 0
        shape = n_samples, n_features
        dense = zero_bytes(*shape) if is_bytes else np.empty(shape, np.float32)
        filled, fill = self._filled
        for part in parts:
            row, column, values = self._entries(part, n_features)
            block = dense[first : first + len(part[0]) - 1]
            block[:] = 0
            block[:, filled] = fill
            block[row, column] = values + np.float32(0)  # removes negative zeros
            first += len(block)
        return Rows(*shape, dense=dense)

    def _csr_rows(
        self, parts: Iterable[Csr], n_samples: int, n_features: int, n_values: int
    ) -> Rows:
        indptr = np.zeros(n_samples + 1, np.int64)
        indices, values = np.empty(n_values, np.int32), np.empty(n_values, np.float32)
        filled, fill = self._filled
        first = begin = 0
        for part in parts:
            n_rows, (row, column, present) = len(part[0]) - 1, self._entries(part, n_features)
            # a batch of rows in which all columns of `filled` have values fits in memory
            for batch in slices(n_rows, BATCH_SIZE // (len(filled) + 1)):
                # a key is row * n_features + column; absent ones have a value of `fill`
                n_own = batch.stop - batch.start
                own = slice(*np.searchsorted(row, [batch.start, batch.stop]))
                keys = (row[own] - batch.start) * n_features + column[own]
                fill_keys = (np.arange(n_own)[:, None] * n_features + filled).ravel()
                rest = ~np.isin(fill_keys, keys, assume_unique=True)
                stored = present[own] != 0
                keys = np.concatenate((keys[stored], fill_keys[rest]))
                fills = np.broadcast_to(fill, (n_own, len(filled))).ravel()[rest]
                order = np.argsort(keys, kind="stable")
                rows, columns = np.divmod(keys[order], max(n_features, 1))
                end = begin + len(keys)
                indices[begin:end] = columns
                values[begin:end] = np.concatenate((present[own][stored], fills))[order]
                ends = begin + np.cumsum(np.bincount(rows, minlength=n_own))
                indptr[first + batch.start + 1 : first + batch.stop + 1] = ends
                begin = end
            first += n_rows
        return Rows(n_samples, n_features, indptr=indptr, indices=indices, values=values)

    @property
    def _filled(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns where rows that do not list them have a value, and these float32 values."""
        absent = self._absent.astype(np.float32)
        return self.columns[absent != 0], absent[absent != 0]

    def _entries(self, part: Csr, n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (row in the part, column, scaled float32 value) of the listed features."""
        row, position, present = self._present(part)
        column = self.columns[position]
        kept = column < n_features
        return row[kept], column[kept], present[kept].astype(np.float32)

    def _present(self, part: Csr) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scale the values of the features in `columns`, the listed ones.

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
        return row, position, self._scaled(position, values[listed])

    def _by(self, name: str) -> str:
        """Return the words that name the scaling of the file `name`; empty for the identity."""
        return "" if self.name == name else f" scaled by {self.name}"

    def _too_large(self, name: str) -> str:
        by = self._by(name)
        return f" is too large for float32{by and ' when'}{by}"


def _first_overflow(values: np.ndarray) -> int | None:
    """Return the index of the first value beyond float32, or None."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(values.astype(np.float32))
    return None if finite.all() else int(np.argmin(finite))


@dataclass(frozen=True, eq=False)
class Extremes:
    """Minimum, maximum and number of the values of each column of `n_samples` rows.

    `columns` are the columns with values, ascending. Others are not stored, so memory does not grow
    with the largest index.
    """

    columns: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    counts: np.ndarray
    n_samples: int

    @staticmethod
    def of(parts: Iterable[Csr]) -> Extremes:
        total = Extremes.joined([])
        for indptr, indices, values in parts:
            ones = np.ones(len(values), np.int64)
            part = Extremes(indices, values, values, ones, len(indptr) - 1)
            total = Extremes.joined([total, part])
        return total

    @staticmethod
    def joined(several: Iterable[Extremes]) -> Extremes:
        """Merge extremes; their columns may be unsorted and repeated."""
        # without any, the arrays must have their types all the same
        empty = Extremes(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, np.int64), 0)
        several = [empty, *several]
        columns, minimum, maximum, counts = (
            np.concatenate([getattr(one, field.name) for one in several])
            for field in fields(Extremes)[:4]
        )
        order = group_order(columns)
        columns = columns[order]
        first = np.flatnonzero(np.diff(columns, prepend=-1))
        return Extremes(
            columns[first],
            np.minimum.reduceat(minimum[order], first),
            np.maximum.reduceat(maximum[order], first),
            np.add.reduceat(counts[order], first),
            sum(one.n_samples for one in several),
        )

    def scaling(
        self, name: str, first_index: int = 1, one_hot: np.ndarray | None = None
    ) -> Scaling:
        """Return the scaling by these ranges, without constant features.

        A value that a row does not list counts as 0. `name` is the file name for errors. Features
        marked in `one_hot`, bool (n_features,), have the values 0 and ONE_HOT; they become 0 and 1,
        half the width of a range.
        """
        absent = self.counts < self.n_samples
        minimum = np.where(absent, np.minimum(self.minimum, 0), self.minimum)
        maximum = np.where(absent, np.maximum(self.maximum, 0), self.maximum)
        varies = minimum < maximum
        if one_hot is not None:
            is_fixed = one_hot[self.columns]
            minimum, maximum = (
                np.where(is_fixed, -ONE_HOT, minimum),
                np.where(is_fixed, ONE_HOT, maximum),
            )
        features = Interval(*FOUND_LIMITS, minimum[varies], maximum[varies])
        return Scaling(f"the ranges of {name}", self.columns[varies], features, None, first_index)


def quantile_scaling(
    parts: Iterable[Csr], name: str, first_index: int = 1, one_hot: np.ndarray | None = None
) -> Scaling:
    """Return the scaling of data to normal quantiles, without constant columns.

    Features marked in `one_hot`, bool (n_features,), keep their values 0 and ONE_HOT.

    Equal values get their mean rank. Ranks are divided by the number n of rows and clipped to
    1/n to 1 - 1/n. A value that a row does not list counts as 0. Large data are sampled. The
    function iterates over `parts` twice. `name` is the file name for errors.
    """
    # the first pass tells which rows to sample, the second takes their values
    n_rows = n_values = 0
    for indptr, _, _ in parts:
        n_rows, n_values = n_rows + len(indptr) - 1, n_values + int(indptr[-1])
    step = max(-(-n_values // RANKED_VALUES), 1)
    chosen, begin = [(np.zeros(0, np.int64), np.zeros(0))], 0
    for indptr, indices, values in parts:
        row = begin + np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        is_sampled = row % step == 0
        chosen.append((indices[is_sampled], values[is_sampled]))
        begin += len(indptr) - 1
    indices, values = (np.concatenate(side) for side in zip(*chosen, strict=True))
    # find the knots of each column that has values
    n_sampled = -(-n_rows // step)
    order = np.argsort(indices, kind="stable")
    columns, first = np.unique(indices[order], return_index=True)
    members = np.split(order, first[1:])[: len(columns)]
    maps = [_knots(values[entries], n_sampled) for entries in members]
    varies = np.array([len(knots) > 1 for knots, _ in maps], bool)
    if one_hot is not None:
        unchanged = np.array([0.0, ONE_HOT])
        maps = [
            (unchanged, unchanged) if is_fixed else (knots, levels)
            for (knots, levels), is_fixed in zip(maps, one_hot[columns], strict=True)
        ]
    features = Quantiles.joined(list(compress(maps, varies)))
    return Scaling(f"the quantiles of {name}", columns[varies], features, None, first_index)


def _knots(values: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (knots, levels) of a column with n_rows rows; unlisted values are 0."""
    from scipy.special import ndtri

    knots, counts = np.unique(values, return_counts=True)
    # zeros of sparse rows are values, too
    n_absent = n_rows - len(values)
    if n_absent:
        knots, inverse = np.unique(np.append(knots, 0.0), return_inverse=True)
        counts = np.bincount(inverse, np.append(counts, n_absent))
    # the normal quantile of the middle rank of equal values
    ranks = (np.cumsum(counts) - 0.5 * counts) / n_rows
    lowest = min(1.0 / n_rows, 0.25)
    levels = ndtri(np.clip(ranks, lowest, 1.0 - lowest))
    # few knots at equal distances of ranks are as good, the ends always
    if len(knots) > MAX_KNOTS:
        wanted = np.linspace(ranks[0], ranks[-1], MAX_KNOTS)
        kept = np.unique(np.searchsorted(ranks, wanted).clip(0, len(knots) - 1))
        kept = np.union1d(kept, [0, len(knots) - 1])
        knots, levels = knots[kept], levels[kept]
    return knots, levels


def rounding_of(values: np.ndarray) -> np.ndarray:
    """Return -minimum, maximum and largest rounding error of columns (n, k), float64 (3, k)."""
    with np.errstate(over="ignore"):
        error = np.abs(values.astype(np.float32) - values).max(axis=0, initial=0.0)
    smallest = values.min(axis=0, initial=np.inf)
    return np.stack([-smallest, values.max(axis=0, initial=-np.inf), error])


def rounded_away(columns: np.ndarray, rounding: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that lose too much of their spread in float32, and their `rounding_of`."""
    lowest, highest, error = rounding
    spread, size = lowest + highest, np.maximum(np.abs(lowest), np.abs(highest))
    is_lost = (error > ROUNDED * spread) & (spread > NOISE * size)
    return columns[is_lost], rounding[:, is_lost]


def shift_of(columns: np.ndarray, rounding: np.ndarray, name: str, first_index: int) -> Scaling:
    """Return the shift of columns by their smallest values; `rounding` is of `rounding_of`."""
    offsets = Offsets(-rounding[0])
    return Scaling(f"the smallest values of {name}", columns, offsets, None, first_index)


def range_file_of(model_file: str | os.PathLike[str]) -> str:
    """Return the path of a model's range file."""
    return f"{os.fspath(model_file)}.range"


def load_scaling(path: str | os.PathLike[str]) -> Scaling:
    """Read a range file of svm-scale. Raises DataError (`file:line: reason`) if it is invalid."""
    name = os.fspath(path)
    return parse_scaling(bytes(read_text(name)), name)


def parse_scaling(text: bytes, name: str) -> Scaling:
    """Parse the text of a range file; `name` is the file name for errors."""
    lines = text.decode("ascii", "replace").splitlines()
    words_of = ((f"{name}:{k}", line.split()) for k, line in enumerate(lines, 1))
    at_end = f"{name}:{max(len(lines), 1)}", None

    def next_line() -> tuple[str, list[str]]:
        place, words = next(words_of, at_end)
        if words is None:
            raise DataError(f"{place}: the range file ends too early")
        return place, words

    place, words = next_line()
    labels = None
    if words == ["y"]:
        labels = Interval(*_limits(*next_line()), *_extent(*next_line()))
        place, words = next_line()
    if words != ["x"]:
        raise DataError(f"{place}: this is not a range file of svm-scale: expected a line x")
    # a line for each feature; constant ones have no scaling
    limits = _limits(*next_line())
    indices, extents, previous = [], [], -1
    for place, words in words_of:
        word, *rest = words or [""]
        previous = _index(place, word, previous)
        minimum, maximum = _extent(place, rest)
        if minimum < maximum:
            indices.append(previous)
            extents.append((minimum, maximum))
    minima, maxima = np.array(extents, np.float64).reshape(-1, 2).T
    first_index = 0 if indices[:1] == [0] else 1
    columns = np.array(indices, np.int64) - first_index
    return Scaling(name, columns, Interval(*limits, minima, maxima), labels, first_index)


def _limits(place: str, words: list[str]) -> tuple[float, float]:
    lower, upper = _two_numbers(place, words, "a lower and an upper limit")
    if lower >= upper:
        raise DataError(
            f"{place}: the lower limit {lower:g} is not below the upper limit {upper:g}"
        )
    return lower, upper


def _extent(place: str, words: list[str]) -> tuple[float, float]:
    minimum, maximum = _two_numbers(place, words, "a minimum and a maximum")
    if minimum > maximum:
        raise DataError(f"{place}: the minimum {minimum:g} is above the maximum {maximum:g}")
    return minimum, maximum


def _two_numbers(place: str, words: list[str], what: str) -> tuple[float, float]:
    try:
        first, second = (float(word) for word in words)
    except ValueError:
        shown = " ".join(words)[:40]
        raise DataError(f"{place}: expected {what}, found {shown!r}") from None
    if not (math.isfinite(first) and math.isfinite(second)):
        raise DataError(f"{place}: {what} must be finite numbers")
    return first, second


def _index(place: str, word: str, previous: int) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) <= 10):
        raise DataError(f"{place}: the feature index {word[:40]!r} is not a whole number")
    index = int(word)
    if index > MAX_N_FEATURES:
        raise DataError(f"{place}: the feature index {index} is above {MAX_N_FEATURES}")
    if index <= previous:
        raise DataError(f"{place}: feature indices must ascend: {index} follows {previous}")
    return index


def range_text(scaling: Scaling) -> bytes:
    """Format a scaling as svm-scale -s does, but with 17 digits, which keep float64 exact."""
    labels, features = scaling.labels, scaling.features
    assert isinstance(features, Interval)
    lines = []
    if labels is not None:
        limits = _pair_text(labels.lower, labels.upper)
        lines += ["y", limits, _pair_text(labels.minimum, labels.maximum)]
    lines += ["x", _pair_text(features.lower, features.upper)]
    ranges = zip(features.minimum.tolist(), features.maximum.tolist(), strict=True)
    lines += [
        f"{index} {_pair_text(*extent)}"
        for index, extent in zip(scaling.indices.tolist(), ranges, strict=True)
    ]
    return "\n".join([*lines, ""]).encode()


def is_range(scaling: Scaling) -> bool:
    """Return whether a range file can represent the scaling: ranges without weights."""
    return isinstance(scaling.features, Interval) and scaling.weights is None


def _pair_text(first: float, second: float) -> str:
    return f"{first:.17g} {second:.17g}"
