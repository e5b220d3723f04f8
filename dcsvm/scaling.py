"""Range files of svm-scale -s, and data scaled by them as svm-scale -r does.

A feature is mapped linearly: its minimum in the range file to the lower limit, its maximum to the
upper one, values outside beyond them. Features that are not in the file, or whose minimum is
their maximum, are dropped, and so are values scaled to zero. Values are scaled in float64 from
the data's text and then rounded to float32; svm-scale writes six significant digits, so a value
here differs from what is read from its text by up to half a unit of the sixth.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np

from dcsvm.dataset import LARGEST_N_FEATURES, Rows, better_dense
from dcsvm.input_file import DataError, check_room, read_text

FILLING_BYTES = 50  # of a value, at least, while rows are filled


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
    maximum; the labels' interval if they are scaled; the name of the range file for errors."""

    name: str
    columns: np.ndarray
    features: Interval
    labels: Interval | None

    def scaled_labels(self, labels: np.ndarray) -> np.ndarray:
        """The labels, float64, scaled if the range file says so."""
        if self.labels is None:
            return labels
        scaled = self.labels.scaled(labels)
        self._check(scaled, lambda row: (row, "the label"))
        return scaled

    def scaled_rows(self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray) -> Rows:
        """CSR rows with float64 values, scaled, in the form that their scaled text would have.

        Raises DataError for a value that does not fit float32.
        """
        row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        at = np.searchsorted(self.columns, indices)
        at[at == len(self.columns)] = 0
        listed = self.columns[at] == indices if len(self.columns) else np.zeros(len(at), bool)
        row, at = row[listed], at[listed]
        present = self.features.of(at).scaled(values[listed])
        absent = self.features.scaled(np.zeros(len(self.columns)))
        where = self.columns + 1
        self._check(present, lambda k: (row[k], f"feature {where[at[k]]}"))
        self._check(absent, lambda k: (0, f"feature {where[k]}"))
        return _filled(self.name, len(indptr) - 1, row, at, present, absent, self.columns)

    def _check(self, scaled: np.ndarray, place) -> None:
        with np.errstate(over="ignore"):
            finite = np.isfinite(scaled.astype(np.float32))
        if not finite.all():
            row, what = place(int(np.argmin(finite)))
            raise DataError(
                f"{self.name}: {what} of row {row + 1} is too large for float32 when scaled"
            )


def _filled(name: str, n_samples: int, row, at, present, absent, columns) -> Rows:
    """Rows with the value `present[k]` in row `row[k]` and column `columns[at[k]]`, and
    `absent[j]` in column `columns[j]` of all rows without one there; `name` is the range file."""
    used = absent != 0
    used[at[present != 0]] = True
    n_features = int(columns[used].max()) + 1 if used.any() else 0
    kept = columns[at] < n_features
    row, at = row[kept], at[kept]
    present, absent = present[kept].astype(np.float32), absent.astype(np.float32)
    n_absent = n_samples - np.bincount(at, minlength=len(columns))
    n_values = np.count_nonzero(present) + int(n_absent[absent != 0].sum())
    filled = np.flatnonzero(absent)
    if better_dense(n_samples, n_features, n_values):
        check_room(name, 4 * n_samples * n_features)
        dense = np.zeros((n_samples, n_features), np.float32)
        dense[:, columns[filled]] = absent[filled]
        dense[row, columns[at]] = present + np.float32(0)  # no negative zeros
        return Rows(n_samples, n_features, dense=dense)
    check_room(name, FILLING_BYTES * n_values)
    # a place is row * n_features + column
    places = row * n_features + columns[at]
    every = (np.arange(n_samples)[:, None] * n_features + columns[filled]).ravel()
    rest = ~np.isin(every, places, assume_unique=True)
    fill = np.broadcast_to(absent[filled], (n_samples, len(filled))).ravel()[rest]
    stored = present != 0
    places = np.concatenate((places[stored], every[rest]))
    values = np.concatenate((present[stored], fill))
    order = np.argsort(places, kind="stable")
    rows, indices = np.divmod(places[order], n_features)
    return Rows(
        n_samples,
        n_features,
        indptr=np.searchsorted(rows, np.arange(n_samples + 1)).astype(np.int64),
        indices=indices.astype(np.int32),
        values=values[order],
    )


def load_scaling(path: str | os.PathLike[str]) -> Scaling:
    """Read a range file of svm-scale. Raises DataError, `file:line: reason`, for anything else."""
    name = os.fspath(path)
    return parse_scaling(bytes(read_text(name)), name)


def parse_scaling(text: bytes, name: str) -> Scaling:
    """Parse the text of a range file; `name` stands for it in errors."""
    return _RangeReader(name, text.decode("ascii", "replace").splitlines()).read()


class _RangeReader:
    """Walks through the lines of a range file; every complaint names the line it is about."""

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
        """Two finite numbers."""
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
        if not 1 <= index <= LARGEST_N_FEATURES:
            raise self.error(f"the feature index {index} is not in 1..{LARGEST_N_FEATURES}")
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
        indices, extents, previous = [], [], 0
        while self.line < len(self.lines):
            word, *rest = self.words() or [""]
            previous = self.index(word, previous)
            minimum, maximum = self.extent(rest)
            if minimum < maximum:
                indices.append(previous)
                extents.append((minimum, maximum))
        minimum, maximum = np.array(extents, np.float64).reshape(-1, 2).T
        columns = np.array(indices, np.int64) - 1
        return Scaling(self.name, columns, Interval(*limits, minimum, maximum), labels)
