"""The lines of a model file: headers, numbers, and rows after some numbers.

Nothing in the file is trusted: every count is checked against what follows before anything of its
size is allocated, and every complaint is one sentence with its line.
"""

from __future__ import annotations

import math
import mmap

import numpy as np

from dcsvm import _svmlight
from dcsvm.data.arrays import LARGEST_N_FEATURES
from dcsvm.data.dataset import parsed_rows
from dcsvm.data.rows import Rows
from dcsvm.data.sorting import slices

LONGEST_QUOTE = 40
SCANNED_AT_ONCE = 2**22  # bytes, whole pages
LARGEST_EXPANSION = 256  # bytes of dense rows for a byte of text


class ModelError(ValueError):
    """A model file that cannot be used: `file:line: reason` or `file: reason`."""


def shown(words: list[str]) -> str:
    """Words of a file for an error: not too long, and printable."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(words))
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."


class Lines:
    """Walks through the lines of a model file; `name` stands for it in errors."""

    def __init__(self, text: bytearray | mmap.mmap, name: str, threads: int):
        self.text, self.name, self.threads = text, name, threads
        self.ends = _ends_of_lines(text)
        self.line = 0  # number of lines read
        self.first_index = 1  # of the features
        self.says_first_index = True  # a file of LIBSVM does not
        self.has_serials = False  # rows are serial numbers: a precomputed kernel

    def error(self, reason: str) -> ModelError:
        return ModelError(f"{self.name}:{self.line}: {reason}")

    def next_line(self) -> str | None:
        if self.line >= len(self.ends):
            return None
        begin = self.ends[self.line - 1] + 1 if self.line else 0
        line = self.text[begin : self.ends[self.line]]
        self.line += 1
        return line.decode("utf-8", "replace").strip()

    def header(self, last_key: str, known: set[str], *, may_end=False) -> dict[str, list[str]]:
        """Keys and values of the lines up to the one that is `last_key`, or the file's end."""
        values: dict[str, list[str]] = {}
        while (line := self.next_line()) is not None:
            words = line.split()
            if not words:
                raise self.error("blank line")
            if words[0] == last_key:
                return values
            if words[0] not in known:
                raise self.error(f"unknown key {shown(words[:1])}")
            values[words[0]] = words[1:]
        if may_end:
            return values
        raise self.error(f"the file ends before the line {last_key}")

    def number(self, values: dict[str, list[str]], key: str, kind):
        """The one value of a key: finite, and from 0 to 2^31 - 2 where kind is int."""
        try:
            (word,) = values[key]
            number = _number(kind, word)
        except KeyError:
            raise self.error(f"the key {key} is missing") from None
        except ValueError:
            raise self.error(f"{key} {shown(values[key])!r} is not one {kind.__name__}") from None
        if kind is int and not 0 <= number <= LARGEST_N_FEATURES:
            raise self.error(f"{key} {shown([word])} is not between 0 and {LARGEST_N_FEATURES}")
        if not math.isfinite(number):
            raise self.error(f"{key} {number} is not finite")
        return number

    def numbers(self, values: dict[str, list[str]], key: str, count: int, **allowed) -> np.ndarray:
        """The values of a key, float64 (count,), finite unless `allowed` says otherwise."""
        if key not in values:
            raise self.error(f"the key {key} is missing")
        return self.floats(values[key], key, count, **allowed)

    def floats(
        self, words: list[str], what: str, count: int, *, nan_allowed=False, inf_allowed=False
    ) -> np.ndarray:
        try:
            numbers = np.array([_number(float, word) for word in words], dtype=np.float64)
        except ValueError:
            raise self.error(f"{what} {shown(words)!r} is not a list of numbers") from None
        if len(numbers) != count:
            raise self.error(f"{what} has {len(numbers)} numbers, not {count}")
        allowed = np.isnan(numbers) & nan_allowed | np.isinf(numbers) & inf_allowed
        if not np.all(np.isfinite(numbers) | allowed):
            raise self.error(f"a number of {what} is not finite")
        return numbers

    def lines(self, n_lines: int, n_prefix: int, what: bytes, features=(None, None)):
        """The next n_lines as (prefix, rows); `features` are how many there are and the rows' form,
        or None for what is best."""
        n_features, form = features
        if n_lines == 0:
            return np.empty((0, n_prefix)), self.no_rows(n_features or 0, form)
        begin, end = self.extent(n_lines)
        if 2 * n_lines * n_prefix > end - begin + 1:
            raise self.error(f"{n_lines} lines do not hold {n_prefix} numbers each")
        part = memoryview(self.text)[begin:end]
        how = {"serials": "any" if self.has_serials else None, "first_index": self.first_index}
        try:
            text = _svmlight.Text(part, n_prefix, self.line + 1, self.threads, what, **how)
            if self.has_serials:
                prefix, rows = self.serial_rows(text, n_features)
            else:
                self.check_features(text, n_features, form)
                prefix, rows = parsed_rows(text, form)
        except _svmlight.ZeroIndex as error:
            if self.says_first_index:
                raise ModelError(f"{self.name}:{error}") from None
            self.first_index, self.says_first_index = 0, True
            return self.lines(n_lines, n_prefix, what, features)
        except _svmlight.ParseError as error:
            raise ModelError(f"{self.name}:{error}") from None
        self.line += n_lines
        if len(prefix) < n_lines:  # the last one is not a row for the parser
            raise self.error("blank line")
        return prefix, rows

    def extent(self, n_lines: int) -> tuple[int, int]:
        """Where the next n_lines begin and end in the text."""
        if n_lines > len(self.ends) - self.line:
            raise self.error(f"{n_lines} lines are announced, {len(self.ends) - self.line} follow")
        return int(self.ends[self.line - 1]) + 1, int(self.ends[self.line + n_lines - 1])

    def no_rows(self, n_features: int, form: str | None) -> Rows:
        if self.has_serials:
            return Rows(0, n_features, columns=np.empty(0, np.int32))
        if form == "sparse":
            none = np.empty(0, np.float32)
            return Rows(0, n_features, indptr=np.zeros(1, np.int64),
                        indices=none.astype(np.int32), values=none)  # fmt: skip
        return Rows(0, n_features, dense=np.empty((0, n_features), np.float32))

    def serial_rows(self, text: _svmlight.Text, n_features: int | None):
        """Lines that end in serial numbers."""
        prefix, _, _, _, n_columns = text.csr()
        if n_columns:
            raise self.error("the rows of a precomputed kernel have more than a serial number")
        serial = prefix[:, -1]
        wrong = (serial != np.floor(serial)) | (serial < 1) | (serial > LARGEST_N_FEATURES)
        if wrong.any():
            self.line += int(wrong.argmax()) + 1
            raise self.error("a serial number is not a whole number from 1")
        columns = serial.astype(np.int32) - 1
        if n_features is None:
            n_features = int(serial.max())
        elif serial.max() > n_features:
            self.line += text.n_rows
            raise self.error(
                f"a feature index {int(serial.max())} is above n_features {n_features}"
            )
        return prefix[:, :-1], Rows(len(columns), n_features, columns=columns)

    def check_features(self, text: _svmlight.Text, n_features: int | None, form: str | None):
        """Make it rows of n_features, if that is possible."""
        if n_features is None:
            return
        if text.n_features > n_features:
            text.csr()  # an error in the text comes first
            self.line += text.n_rows
            index = text.n_features - 1 + self.first_index
            raise self.error(f"a feature index {index} is above n_features {n_features}")
        if form == "dense" and text.n_rows * n_features * 4 > (
            LARGEST_EXPANSION * len(self.text) + 2**20
        ):
            self.line += text.n_rows
            raise self.error(f"dense rows of {n_features} features do not fit this file")
        text.widen(n_features)

    def whole(self, numbers: np.ndarray) -> np.ndarray:
        if np.any((numbers != np.floor(numbers)) | (numbers < 0) | (numbers > 2**53)):
            raise self.error("a number of a row, a cluster or a class is not a whole number")
        return numbers.astype(np.int64)

    def below(self, numbers: np.ndarray, end: int, what: str) -> np.ndarray:
        whole = self.whole(numbers)
        if np.any(whole >= end):
            raise self.error(f"a {what} number is not below {end}")
        return whole.astype(np.int32)


def _ends_of_lines(text: bytes | mmap.mmap) -> np.ndarray:
    """Where the lines end, int64; pages of a mapped file are let go again."""
    parts = []
    for some in slices(len(text), SCANNED_AT_ONCE):
        block = np.frombuffer(text, np.uint8, some.stop - some.start, some.start)
        parts.append(np.flatnonzero(block == ord("\n")) + some.start)
        if isinstance(text, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            text.madvise(mmap.MADV_DONTNEED, some.start, some.stop - some.start)
    if len(text) and text[-1:] != b"\n":
        parts.append(np.array([len(text)]))
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _number(kind, word: str):
    """int or float of a word, but not with the underscores that Python allows."""
    if "_" in word:
        raise ValueError(word)
    return kind(word)
