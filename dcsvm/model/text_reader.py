"""Parse the lines of a model file: headers, numbers, and rows with a prefix of numbers.

The file is not trusted. Every count is checked against the rest of the file before memory is
allocated. Errors name the line.
"""

import math
from typing import TypeVar

import numpy as np

from dcsvm import _svmlight
from dcsvm.data.arrays import MAX_N_FEATURES
from dcsvm.data.files import FileText
from dcsvm.data.rows import Rows
from dcsvm.data.sorting import slices
from dcsvm.data.svmlight_file import parsed_rows

MAX_QUOTE = 40  # characters of the file in an error message
BATCH_SCANNED = 2**22  # bytes scanned at a time for line ends
MAX_EXPANSION = 256  # bytes of dense rows per byte of the file

Header = dict[str, list[str]]  # keys and the words that follow them
Features = tuple[int | None, str | None]  # n_features and storage format of rows; None: any
Number = TypeVar("Number", int, float)


class ModelError(ValueError):
    """A model file that cannot be used: `file:line: reason` or `file: reason`."""


def shown(words: list[str]) -> str:
    """Return words of a file for an error message, printable and not too long."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(words))
    return text if len(text) <= MAX_QUOTE else text[:MAX_QUOTE] + "..."


class ModelTextReader:
    """A cursor on the lines of a model file; errors name the file `name`."""

    def __init__(self, text: bytearray | FileText, name: str, threads: int):
        self.text, self.name, self.threads = text, name, threads
        self.ends = _ends_of_lines(text)
        self.line = 0  # number of lines read
        self.line_of: dict[str, int] = {}  # the line of each key
        self.first_index = 1  # index of the first feature
        self.says_first_index = True  # false for a LIBSVM file
        self.remark: list[str] = []  # words after the last key of a header, in its line
        self.has_serials = False  # true for a precomputed kernel: rows are serial numbers

    def error(self, reason: str, key: str = "") -> ModelError:
        """Return an error that names the line of a key, else the last line read."""
        return ModelError(f"{self.name}:{self.line_of.get(key, self.line)}: {reason}")

    def next_line(self) -> str | None:
        if self.line >= len(self.ends):
            return None
        begin = self.ends[self.line - 1] + 1 if self.line else 0
        line = self.text[begin : self.ends[self.line]]
        self.line += 1
        return line.decode("utf-8", "replace").strip()

    def header(self, last_key: str, known: set[str], *, may_end: bool = False) -> Header:
        """Read keys and values up to the line `last_key`, or to the end of the file."""
        values: Header = {}
        while (line := self.next_line()) is not None:
            words = line.split()
            if not words:
                raise self.error("blank line")
            if words[0] == last_key:
                self.remark = words[1:]
                return values
            if words[0] not in known:
                raise self.error(f"unknown key {shown(words[:1])}")
            if words[0] in values:
                raise self.error(f"duplicate key {words[0]}")
            values[words[0]] = words[1:]
            self.line_of[words[0]] = self.line
        if may_end:
            return values
        raise self.error(f"the file ends before the line {last_key}")

    def number(self, values: Header, key: str, kind: type[Number]) -> Number:
        """Return the value of a key, which must be finite; an int must be from 0 to 2^31 - 2."""
        try:
            (word,) = values[key]
            number = _number(kind, word)
        except KeyError:
            raise self.error(f"the key {key} is missing") from None
        except ValueError:
            raise self.error(
                f"{key} must be one {kind.__name__}, got {shown(values[key])!r}", key
            ) from None
        if kind is int and not 0 <= number <= MAX_N_FEATURES:
            raise self.error(f"{key} must be from 0 to {MAX_N_FEATURES}, got {shown([word])}", key)
        if not math.isfinite(number):
            raise self.error(f"{key} must be finite, got {number}", key)
        return number

    def numbers(
        self, values: Header, key: str, count: int, *, inf_allowed: bool = False
    ) -> np.ndarray:
        """Return the values of a key, float64 (count,)."""
        if key not in values:
            raise self.error(f"the key {key} is missing")
        return self.floats(values[key], key, count, inf_allowed=inf_allowed)

    def floats(
        self,
        words: list[str],
        name: str,
        count: int,
        *,
        nan_allowed: bool = False,
        inf_allowed: bool = False,
    ) -> np.ndarray:
        try:
            numbers = np.array([_number(float, word) for word in words], dtype=np.float64)
        except ValueError:
            raise self.error(f"{name} must be numbers, got {shown(words)!r}", name) from None
        if len(numbers) != count:
            raise self.error(f"{name} must have {count} numbers, got {len(numbers)}", name)
        allowed = np.isnan(numbers) & nan_allowed | np.isinf(numbers) & inf_allowed
        if not np.all(np.isfinite(numbers) | allowed):
            raise self.error(f"{name} must be finite", name)
        return numbers

    def lines(
        self, n_lines: int, n_prefix: int, name: bytes, features: Features = (None, None)
    ) -> tuple[np.ndarray, Rows]:
        """Read n_lines as (prefix float64 (n_lines, n_prefix), rows).

        In errors, `name` stands for a number of the prefix.
        """
        n_features, form = features
        if n_lines == 0:
            return np.empty((0, n_prefix)), self.no_rows(n_features or 0, form)
        begin, end = self.extent(n_lines)
        if 2 * n_lines * n_prefix > end - begin + 1:
            raise self.error(f"{n_lines} lines are too short for {n_prefix} numbers each")
        try:
            text = _svmlight.Text(
                self.text, n_prefix, self.line + 1, self.threads, name,
                serials="any" if self.has_serials else None, first_index=self.first_index,
                part=(begin, end),
            )  # fmt: skip
            if self.has_serials:
                prefix, rows = self.serial_rows(text, n_features)
            else:
                self.check_features(text, n_features, form)
                prefix, rows = parsed_rows(text, form)
        except _svmlight.ZeroIndex as error:
            if self.says_first_index:
                raise ModelError(f"{self.name}:{error}") from None
            self.first_index, self.says_first_index = 0, True
            return self.lines(n_lines, n_prefix, name, features)
        except _svmlight.ParseError as error:
            raise ModelError(f"{self.name}:{error}") from None
        self.line += n_lines
        if len(prefix) < n_lines:  # the parser ignores a blank line at the end
            raise self.error("blank line")
        return prefix, rows

    def extent(self, n_lines: int) -> tuple[int, int]:
        """Return the byte offsets (begin, end) of the next n_lines in the text."""
        remaining = len(self.ends) - self.line
        if n_lines > remaining:
            raise self.error(f"expected {n_lines} lines, got {remaining}")
        return int(self.ends[self.line - 1]) + 1, int(self.ends[self.line + n_lines - 1])

    def no_rows(self, n_features: int, form: str | None) -> Rows:
        if self.has_serials:
            return Rows(0, n_features, columns=np.empty(0, np.int32))
        if form == "sparse":
            none = np.empty(0, np.float32)
            return Rows(0, n_features, indptr=np.zeros(1, np.int64),
                        indices=none.astype(np.int32), values=none)  # fmt: skip
        return Rows(0, n_features, dense=np.empty((0, n_features), np.float32))

    def serial_rows(self, text: _svmlight.Text, n_features: int | None) -> tuple[np.ndarray, Rows]:
        """Convert lines that end in a serial number to (prefix, rows)."""
        prefix, _, _, _, n_columns = text.csr()
        if n_columns:
            raise self.error("rows of a precomputed kernel must only have a serial number")
        serial = prefix[:, -1]
        wrong = (serial != np.floor(serial)) | (serial < 1) | (serial > MAX_N_FEATURES)
        if wrong.any():
            self.line += int(wrong.argmax()) + 1
            raise self.error("a serial number must be an integer from 1")
        columns = serial.astype(np.int32) - 1
        if n_features is None:
            n_features = int(serial.max())
        elif serial.max() > n_features:
            self.line += text.n_rows
            raise self.error(f"serial number {int(serial.max())} is above n_features {n_features}")
        return prefix[:, :-1], Rows(len(columns), n_features, columns=columns)

    def check_features(
        self, text: _svmlight.Text, n_features: int | None, form: str | None
    ) -> None:
        """Check the features of the text against n_features, and widen it to n_features."""
        if n_features is None:
            return
        if text.n_features > n_features:
            text.csr()  # reports errors in the text first
            self.line += text.n_rows
            index = text.n_features - 1 + self.first_index
            raise self.error(f"a feature index {index} is above n_features {n_features}")
        if form == "dense" and text.n_rows * n_features * 4 > (
            MAX_EXPANSION * len(self.text) + 2**20
        ):
            self.line += text.n_rows
            raise self.error(f"the file is too short for dense rows of {n_features} features")
        text.widen(n_features)

    def integers(self, numbers: np.ndarray) -> np.ndarray:
        if np.any((numbers != np.floor(numbers)) | (numbers < 0) | (numbers > 2**53)):
            raise self.error("numbers of rows, clusters and classes must be integers from 0")
        return numbers.astype(np.int64)

    def below(self, numbers: np.ndarray, end: int, name: str) -> np.ndarray:
        integers = self.integers(numbers)
        if np.any(integers >= end):
            raise self.error(f"a {name} must be below {end}, got {integers.max()}")
        return integers.astype(np.int32)


def _ends_of_lines(text: bytearray | FileText) -> np.ndarray:
    """Return the byte offsets of line ends, int64."""
    parts = []
    for block in slices(len(text), BATCH_SCANNED):
        codes = np.frombuffer(text[block], np.uint8)
        parts.append(np.flatnonzero(codes == ord("\n")) + block.start)
    if len(text) and text[-1:] != b"\n":
        parts.append(np.array([len(text)]))
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _number(kind: type[Number], word: str) -> Number:
    """Convert a word to a number; reject underscores, which Python allows."""
    if "_" in word:
        raise ValueError(word)
    return kind(word)
