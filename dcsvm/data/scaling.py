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
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from dcsvm.data.arrays import BATCH_SIZE, BYTES_OF_VALUE, MAX_N_FEATURES, group_order, slices
from dcsvm.data.files import DataError, check_room, read_text
from dcsvm.data.rows import Rows, Storage, are_byte_values, storage_of, zero_bytes

FOUND_LIMITS = (-1.0, 1.0)  # svm-scale's default
ONE_HOT = 0.5  # |u - v|_1 of two categories is 1, the width of a range [0, 1]
MAX_KNOTS = 254  # per column, in addition to the smallest and largest value
RANKED_VALUES = 2**24  # largest number of values to rank; larger data are sampled
# consecutive rows as CSR arrays (indptr, indices, values) with float64 values
Part = tuple[np.ndarray, np.ndarray, np.ndarray]


class Source(Protocol):
    """Rows before they are scaled or rounded, in batches of `Part`."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    def __iter__(self) -> Iterator[Part]: ...

    def take(self, row_numbers: np.ndarray) -> Source:
        """Copy the rows with the given indices, which ascend."""


@dataclass(frozen=True, eq=False)
class PartsInMemory:
    """A Source of rows that were copied from another one."""

    parts: list[Part]
    n_features: int

    @property
    def n_rows(self) -> int:
        return sum(len(indptr) - 1 for indptr, _, _ in self.parts)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    def take(self, row_numbers: np.ndarray) -> PartsInMemory:
        """Copy the rows with the given indices, which ascend."""
        taken, begin = [], 0
        for indptr, indices, values in self.parts:
            end = begin + len(indptr) - 1
            own = row_numbers[(row_numbers >= begin) & (row_numbers < end)] - begin
            lengths = np.diff(indptr)[own]
            ends = np.concatenate(([0], np.cumsum(lengths)))
            at = np.arange(ends[-1]) + np.repeat(indptr[own] - ends[:-1], lengths)
            taken.append((ends, indices[at], values[at]))
            begin = end
        return PartsInMemory(taken, self.n_features)


@runtime_checkable
class NamesColumns(Protocol):
    """Rows of a table, whose errors name the column of a feature."""

    def error(self, row: int, feature: int, reason: str) -> DataError: ...


Bound = TypeVar("Bound", float, np.ndarray)


@dataclass(frozen=True)
class Interval(Generic[Bound]):
    """Linear map of the interval [minimum, maximum] to [lower, upper]."""

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
        """Return the maps of the columns `which`."""
        return Interval(self.lower, self.upper, self.minimum[which], self.maximum[which])

    def scaled_at(self: Interval[np.ndarray], which: np.ndarray, values: np.ndarray) -> np.ndarray:
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
        own = slice(self.start[j], self.start[j + 1])
        return self.knots[own], self.levels[own]


@dataclass(frozen=True)
class Scaling:
    """Scaling of the features of a data set, and of its labels.

    `name` is the range file, for errors. `columns`, int64, are the scaled columns, counted from 0,
    ascending. `features` has their maps; the minimum of an interval is below its maximum. Scaled
    values are multiplied by `weights`, float64, one per column; None means ones. `labels` is the
    interval of the labels, None if they are not scaled. `first_index` is the index of column 0 in
    files, 0 or 1. `n_features` is the number of features of the arrays or tables that it was made
    of, constant ones included; None for files, in which features may be absent.
    """

    name: str
    columns: np.ndarray
    features: Interval[np.ndarray] | Quantiles
    labels: Interval[float] | None
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

    def scaled_rows(self, parts: Iterable[Part], name: str) -> Rows:
        """Scale the rows of the file `name`; their storage is as if read from scaled text.

        The method iterates over `parts` twice. Raises DataError for values beyond
        float32, and for rows that do not fit in memory.
        """
        absent = self._absent
        k = _first_overflow(absent)
        if k is not None:
            raise DataError(f"{name}: 0 of feature {self.indices[k]}{self._too_large(name)}")
        used, n_present = absent != 0, np.zeros(len(absent), np.int64)
        n_samples, n_values, are_bytes = 0, 0, True
        for part in parts:
            row, position, present = self._present(part)
            k = _first_overflow(present)
            if k is not None:
                at, reason = n_samples + int(row[k]), self._too_large(name)
                if isinstance(parts, NamesColumns):
                    raise parts.error(at, int(self.columns[position[k]]), f"the value{reason}")
                raise DataError(f"{name}:{at + 1}: feature {self.indices[position[k]]}{reason}")
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
        check_room(name + self._by(name), n_bytes)

        def blocks() -> Iterator[_Block]:
            for part in parts:
                n_rows, present = len(part[0]) - 1, self._present(part)
                yield _Block(self.columns, n_features, absent, n_rows, *present)

        if storage in (Storage.BYTES, Storage.FLOATS):
            return _dense_rows(blocks(), n_samples, n_features, storage)
        return _csr_rows(blocks(), n_samples, n_features, n_values).in_storage(storage)

    def _present(self, part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


class _Block:
    """Batch of scaled rows.

    The value present[k] is in row row[k], column columns[position[k]]. Rows without a value in
    column columns[j] have absent[j] there.
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
        dense[self.row, self.column] = self.values + np.float32(0)  # removes negative zeros

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

    `columns` are the columns with values, ascending. Others are not stored, so memory does not grow
    with the largest index.
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
    parts: Iterable[Part], name: str, first_index: int = 1, one_hot: np.ndarray | None = None
) -> Scaling:
    """Return the scaling of data to normal quantiles, without constant columns.

    Features marked in `one_hot`, bool (n_features,), keep their values 0 and ONE_HOT.

    Equal values get their mean rank. Ranks are divided by the number n of rows and clipped to
    1/n to 1 - 1/n. A value that a row does not list counts as 0. Large data are sampled. The
    function iterates over `parts` twice. `name` is the file name for errors.
    """
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
    n_sampled = -(-n_rows // step)
    order = np.argsort(indices, kind="stable")
    columns, first = np.unique(indices[order], return_index=True)
    found = [_knots(values[own], n_sampled) for own in np.split(order, first[1:])[: len(columns)]]
    varies = np.array([len(knots) > 1 for knots, _ in found], bool)
    if one_hot is not None:
        unchanged = np.array([0.0, ONE_HOT])
        found = [
            (unchanged, unchanged) if is_fixed and len(one[0]) > 1 else one
            for one, is_fixed in zip(found, one_hot[columns], strict=True)
        ]
    features = Quantiles.joined([one for one in found if len(one[0]) > 1])
    return Scaling(f"the quantiles of {name}", columns[varies], features, None, first_index)


def _knots(values: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (knots, levels) of a column with n_rows rows; unlisted values are 0."""
    from scipy.special import ndtri

    knots, counts = np.unique(values, return_counts=True)
    n_absent = n_rows - len(values)
    if n_absent:
        knots, inverse = np.unique(np.append(knots, 0.0), return_inverse=True)
        counts = np.bincount(inverse, np.append(counts, n_absent))
    ranks = (np.cumsum(counts) - 0.5 * counts) / n_rows
    lowest = min(1.0 / n_rows, 0.25)
    levels = ndtri(np.clip(ranks, lowest, 1.0 - lowest))
    if len(knots) > MAX_KNOTS:
        wanted = np.linspace(ranks[0], ranks[-1], MAX_KNOTS)
        kept = np.unique(np.searchsorted(ranks, wanted).clip(0, len(knots) - 1))
        kept = np.union1d(kept, [0, len(knots) - 1])
        knots, levels = knots[kept], levels[kept]
    return knots, levels


def range_file_of(model_file: str | os.PathLike[str]) -> str:
    """Return the path of a model's range file."""
    return f"{os.fspath(model_file)}.range"


def load_scaling(path: str | os.PathLike[str]) -> Scaling:
    """Read a range file of svm-scale. Raises DataError (`file:line: reason`) if it is invalid."""
    name = os.fspath(path)
    return parse_scaling(bytes(read_text(name)), name)


def parse_scaling(text: bytes, name: str) -> Scaling:
    """Parse the text of a range file; `name` is the file name for errors."""
    return _RangeReader(name, text.decode("ascii", "replace").splitlines()).read()


def range_text(scaling: Scaling) -> bytes:
    """Format a scaling as svm-scale -s does, but with 17 digits, which keep float64 exact."""
    labels, features = scaling.labels, scaling.features
    assert isinstance(features, Interval)
    lines = []
    if labels is not None:
        lines += ["y", _two(labels.lower, labels.upper), _two(labels.minimum, labels.maximum)]
    lines += ["x", _two(features.lower, features.upper)]
    ranges = zip(features.minimum.tolist(), features.maximum.tolist(), strict=True)
    lines += [
        f"{index} {_two(*extent)}"
        for index, extent in zip(scaling.indices.tolist(), ranges, strict=True)
    ]
    return "\n".join([*lines, ""]).encode()


def is_range(scaling: Scaling) -> bool:
    """Return whether a range file can represent the scaling: ranges without weights."""
    return isinstance(scaling.features, Interval) and scaling.weights is None


def _two(first: float, second: float) -> str:
    return f"{first:.17g} {second:.17g}"


class _RangeReader:
    """Parser of a range file, line by line."""

    def __init__(self, name: str, lines: list[str]):
        self.name, self.lines = name, lines
        self.line = 0  # number of lines read

    def error(self, reason: str) -> DataError:
        return DataError(f"{self.name}:{max(self.line, 1)}: {reason}")

    def words(self) -> list[str]:
        if self.line == len(self.lines):
            raise self.error("the range file ends too early")
        self.line += 1
        return self.lines[self.line - 1].split()

    def numbers(self, words: list[str], what: str) -> tuple[float, float]:
        """Parse two finite numbers."""
        try:
            first, second = (float(word) for word in words)
        except ValueError:
            raise self.error(f"expected {what}, found {' '.join(words)[:40]!r}") from None
        if not (math.isfinite(first) and math.isfinite(second)):
            raise self.error(f"{what} must be finite numbers")
        return first, second

    def limits(self) -> tuple[float, float]:
        lower, upper = self.numbers(self.words(), "a lower and an upper limit")
        if lower >= upper:
            raise self.error(f"the lower limit {lower:g} is not below the upper limit {upper:g}")
        return lower, upper

    def extent(self, words: list[str]) -> tuple[float, float]:
        minimum, maximum = self.numbers(words, "a minimum and a maximum")
        if minimum > maximum:
            raise self.error(f"the minimum {minimum:g} is above the maximum {maximum:g}")
        return minimum, maximum

    def index(self, word: str, previous: int) -> int:
        if not (word.isascii() and word.isdecimal() and len(word) <= 10):
            raise self.error(f"the feature index {word[:40]!r} is not a whole number")
        index = int(word)
        if index > MAX_N_FEATURES:
            raise self.error(f"the feature index {index} is above {MAX_N_FEATURES}")
        if index <= previous:
            raise self.error(f"feature indices must ascend: {index} follows {previous}")
        return index

    def read(self) -> Scaling:
        words = self.words()
        labels = None
        if words == ["y"]:
            limits = self.limits()
            labels = Interval(*limits, *self.extent(self.words()))
            words = self.words()
        if words != ["x"]:
            raise self.error("this is not a range file of svm-scale: expected a line x")
        limits = self.limits()
        indices, extents, previous = [], [], -1
        while self.line < len(self.lines):
            word, *rest = self.words() or [""]
            previous = self.index(word, previous)
            minimum, maximum = self.extent(rest)
            if minimum < maximum:
                indices.append(previous)
                extents.append((minimum, maximum))
        minima, maxima = np.array(extents, np.float64).reshape(-1, 2).T
        first_index = 0 if indices[:1] == [0] else 1
        columns = np.array(indices, np.int64) - first_index
        features = Interval(*limits, minima, maxima)
        return Scaling(self.name, columns, features, labels, first_index)
