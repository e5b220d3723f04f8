"""Read and write the range files of svm-scale -s.

A range file has the range of each feature and the limits to which the ranges are scaled. Error
messages are one sentence and name the line.
"""

from __future__ import annotations

import math
import os

import numpy as np

from dcsvm.data.arrays import MAX_N_FEATURES
from dcsvm.data.files import DataError, read_text
from dcsvm.data.scaling import Interval, Scaling


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
