"""Encode the columns of a table as features.

Numbers keep their values, booleans become 0 and 1, and a column of text or of categories becomes
one feature of value 0.5 for each category (one-hot). A missing number is the median of its column;
if numbers were missing in training, another feature marks them. Missing text is a category of its
own. Categories that are numbers or booleans are named by their text.

The words in MISSING_TEXTS are missing values in files and in data frames.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dcsvm.data.files import DataError

NUMBER, BOOLEAN, CATEGORY = KINDS = ("number", "boolean", "category")
LABELS = ("target", "label", "class", "y")  # names of the label column, by preference
MISSING = ""  # the category of missing text
MISSING_TEXTS = ("", "NA", "N/A", "n/a", "nan", "NaN", "NAN", "null", "NULL", "None", "?")
TRUTH = {"false": 0.0, "true": 1.0}
SHOWN = 3  # unknown categories in a warning
NUMERIC_SHARE = 0.9  # of the text of a column that is likely to be numeric


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of text: row k has values[codes[k]]; codes are int32, -1 for missing text.

    `has_words` says that some missing texts were words such as "?".
    """

    codes: np.ndarray
    values: tuple[str, ...]
    has_words: bool = False

    @staticmethod
    def of(texts: Sequence[str | None]) -> Texts:
        """Make a column of texts."""
        places: dict[str, int] = {}
        codes = [-1 if one is None else places.setdefault(one, len(places)) for one in texts]
        return Texts(np.array(codes, np.int32), tuple(places))

    def mapped(self, convert: Callable[[str], str | None]) -> Texts:
        """Convert each value; None makes it missing."""
        merged = Texts.of([convert(one) for one in self.values])
        codes = np.append(merged.codes, -1)  # the last one for missing texts
        return Texts(codes[self.codes], merged.values)

    def read(self) -> Texts:
        """Strip blanks around the texts; words for missing values become missing.

        Booleans beside such words are spelled in lower case, as in a file without text.
        """
        read = self.mapped(stripped)
        if np.count_nonzero(read.codes < 0) == np.count_nonzero(self.codes < 0):
            return read
        if {one.lower() for one in read.values} <= set(TRUTH):
            read = read.mapped(str.lower)
        return replace(read, has_words=True)

    @property
    def counts(self) -> np.ndarray:
        """Number of rows of each value, int64 (n_values,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))

    def as_numbers(self, kind: str) -> list[float | None]:
        """Return the number of each value for a column of a kind, None for other text."""
        if kind == BOOLEAN and {one.lower() for one in self.values} <= set(TRUTH):
            return [TRUTH[one.lower()] for one in self.values]
        return [_as_number(one) for one in self.values]


def stripped(text: str) -> str | None:
    """Return a text without blanks around it; None if it means a missing value."""
    text = text.strip()
    return None if text in MISSING_TEXTS else text


# a column: float64 with nan for missing numbers, bool, or text
Values = np.ndarray | Texts


@dataclass(frozen=True, eq=False)
class Frame:
    """A table: names of its columns and a function that returns a column.

    `line_of` returns the line of a row in the file; None if there is no file. `has_names` is False
    if the file has no header.
    """

    name: str
    names: tuple[str, ...]
    n_rows: int
    column: Callable[[str], Values]
    line_of: Callable[[int], int] | None = None
    has_names: bool = True
    decimal: str = "."

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise DataError(f"{self.name}: two columns have the name {name}")
            seen.add(name)

    def error(self, column: str, reason: str, row: int) -> DataError:
        """Return an error that names the file, the line and the column."""
        if self.line_of is None:
            return DataError(f"{self.name}: row {row}, column {column}: {reason}")
        return DataError(f"{self.name}:{self.line_of(row)}: column {column}: {reason}")


@dataclass(frozen=True)
class Column:
    """How a column becomes features.

    `fill` replaces missing numbers. `has_indicator` says that a feature marks missing numbers.
    `categories` are the texts of a category column, in the order of its features.
    """

    name: str
    kind: str
    fill: float = 0.0
    has_indicator: bool = False
    categories: tuple[str, ...] = ()

    @property
    def n_features(self) -> int:
        return len(self.categories) if self.kind == CATEGORY else 1 + self.has_indicator

    @property
    def feature_names(self) -> list[str]:
        if self.kind == CATEGORY:
            return [f"{self.name}={text or 'missing'}" for text in self.categories]
        return [self.name, f"{self.name} is missing"][: self.n_features]

    @staticmethod
    def of(frame: Frame, name: str) -> Column | None:
        """Find the encoding of a column; None if all its values are missing. Raises DataError."""
        values = frame.column(name)
        if (
            isinstance(values, Texts)
            and values.has_words
            and None not in map(_as_number, values.values)
        ):  # numbers, as a CSV file has them
            values = as_numbers(frame, name, values, NUMBER)
        if isinstance(values, Texts):
            _check_not_numeric(frame, name, values)
            used = values.counts > 0
            texts = {text for text, is_used in zip(values.values, used, strict=True) if is_used}
            missing = [MISSING] if np.any(values.codes < 0) else []
            categories = (*sorted(texts), *missing)
            return Column(name, CATEGORY, categories=categories) if texts else None
        if values.dtype.kind == "b":
            return Column(name, BOOLEAN)
        _check_finite(frame, name, values)
        present = values[~np.isnan(values)]
        if len(present) == 0:
            return None
        return Column(name, NUMBER, float(np.median(present)), len(present) < len(values))

    @cached_property
    def _places(self) -> dict[str, int]:
        """Index of each category, as written and as `stripped` returns it.

        Model files may have texts with blanks around them, or words for missing values. Booleans
        may be spelled in other cases, and be 0 and 1.
        """
        read = {stripped(text) or MISSING: k for k, text in enumerate(self.categories)}
        as_written = read | {text: k for k, text in enumerate(self.categories)}
        truths = {text: k for text, k in read.items() if text}
        if not {text.lower() for text in truths} <= set(TRUTH):
            return as_written
        return {
            spelled: k
            for text, k in truths.items()
            for spelled in (text.lower(), text.title(), text.upper(), str(int(TRUTH[text.lower()])))
        } | as_written

    def encode(self, frame: Frame, unknown: dict[str, dict[str, int]]) -> np.ndarray:
        """Encode a column of a frame.

        Returns numbers, float64 (n,), nan where they are missing, or the category of each row,
        int32 (n,), -1 for none. Numbers are not copied. Unknown categories are counted in
        `unknown`. Raises DataError.
        """
        values = frame.column(self.name)
        if self.kind == CATEGORY:
            texts = as_texts(values)
            places = np.array(
                [self._places.get(one, -1) for one in (*texts.values, MISSING)], np.int32
            )
            # code -1 is missing: the last of the places and counts
            counts = np.append(texts.counts, np.count_nonzero(texts.codes < 0))
            for code in np.flatnonzero((places < 0) & (counts > 0)):
                counted = unknown.setdefault(self.name, {})
                counted[(*texts.values, MISSING)[code]] = int(counts[code])
            return places[texts.codes]
        numbers = as_numbers(frame, self.name, values, self.kind)
        _check_finite(frame, self.name, numbers)
        n_missing = int(np.count_nonzero(np.isnan(numbers)))
        if self.kind == BOOLEAN and n_missing:
            unknown[self.name] = {MISSING: n_missing}
        return numbers


def as_texts(values: Values) -> Texts:
    """Return a column as text."""
    if isinstance(values, Texts):
        return values
    if values.dtype.kind == "b":
        return Texts(values.astype(np.int32), ("false", "true"))
    distinct, codes = np.unique(values, return_inverse=True)
    texts = [None if np.isnan(one) else number_text(one) for one in distinct.tolist()]
    merged = Texts.of(texts)
    return Texts(merged.codes[codes.reshape(-1)], merged.values)


def as_numbers(frame: Frame, name: str, values: Values, kind: str) -> np.ndarray:
    """Return a column of a kind as float64. Raises DataError for text that is no number."""
    if not isinstance(values, Texts):
        return values.astype(np.float64, copy=False)
    distinct = values.as_numbers(kind)
    is_text = np.array([number is None for number in distinct], bool) & (values.counts > 0)
    if is_text.any():
        raise _no_number(frame, name, values, is_text)
    # missing texts have the code -1, the last place
    numbers = np.array([np.nan if number is None else number for number in (*distinct, None)])
    return numbers[values.codes]


def category_text(value: Any) -> str | None:
    """Return the text of a category that may be a number or a boolean; None for nan."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return None if value != value else number_text(float(value))


def number_text(number: float) -> str:
    """Format a number as text; whole numbers have no decimal point."""
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _check_finite(frame: Frame, name: str, values: np.ndarray) -> None:
    is_infinite = np.isinf(values)
    if is_infinite.any():
        row = int(np.argmax(is_infinite))
        raise frame.error(name, f"{values[row]:g} is not a finite number", row)


def _check_not_numeric(frame: Frame, name: str, texts: Texts) -> None:
    """Raise DataError if almost all texts of a column are numbers."""
    is_word = np.array([_as_number(text) is None for text in texts.values], bool)
    n_words = int(texts.counts[is_word].sum())
    if 0 < n_words < (1 - NUMERIC_SHARE) * texts.counts.sum():
        raise _no_number(frame, name, texts, is_word)


def _no_number(frame: Frame, name: str, texts: Texts, is_word: np.ndarray) -> DataError:
    """Return the error of the first text that is no number, one of those marked in `is_word`."""
    row = int(np.argmax(np.append(is_word, False)[texts.codes]))
    text = texts.values[texts.codes[row]]
    return frame.error(name, f"{text[:40]!r} is not a number; leave the cell empty", row)


@dataclass(frozen=True)
class TableEncoding:
    """Encoding of a table.

    `label` is the name of the label column, None without one. `has_names` is False for a file
    without a header; its columns are matched by position.
    """

    columns: tuple[Column, ...]
    label: str | None = None
    has_names: bool = True

    @cached_property
    def start(self) -> np.ndarray:
        """The first feature of each column, and the number of features; int64 (n_columns + 1,)."""
        return np.cumsum([0, *(one.n_features for one in self.columns)])

    @staticmethod
    def of(
        frame: Frame,
        label: str | None = None,
        dropped: Sequence[str] = (),
        categories: Sequence[str] = (),
    ) -> TableEncoding:
        """Find the encoding of training data. Raises DataError."""
        columns = [
            Column.of(frame, name) for name in frame.names if name != label and name not in dropped
        ]
        return TableEncoding(
            tuple(one for one in columns if one is not None), label, frame.has_names
        )

    @property
    def n_features(self) -> int:
        return int(self.start[-1])

    def notes(self, frame: Frame) -> list[str]:
        return []

    @property
    def are_numbers(self) -> bool:
        """Whether no column has text."""
        return all(one.kind != CATEGORY for one in self.columns)

    @property
    def is_of_matrix(self) -> bool:
        """Whether this is the encoding of an array with missing values, not of a table."""
        has_names = self.has_names or any(not one.name.startswith("x") for one in self.columns)
        return not has_names and self.label is None

    @property
    def n_columns_of_matrix(self) -> int:
        """Number of columns of the array, up to the last one with values."""
        return 1 + max((int(one.name[1:]) for one in self.columns), default=-1)

    @property
    def feature_names(self) -> list[str]:
        return [name for one in self.columns for name in one.feature_names]

    @property
    def one_hot(self) -> np.ndarray:
        """Mark the one-hot features, bool (n_features,)."""
        sizes = [one.n_features for one in self.columns]
        return np.repeat([one.kind == CATEGORY for one in self.columns], sizes).astype(bool)

    def matched(self, frame: Frame) -> Frame:
        """Check that a frame has the columns, by name; rename them if they match by position.

        Raises DataError.
        """
        names = [one.name for one in self.columns]
        if self.has_names and frame.has_names:
            missing = [name for name in names if name not in frame.names]
            if missing:
                raise DataError(f"{frame.name}: no column {missing[0]}, which the model needs")
            return frame
        known = [*names, *([] if self.label is None else [self.label])]
        if self.has_names or frame.has_names:
            return frame if set(names) <= set(frame.names) else _renamed(frame, names)
        return frame if set(known) <= set(frame.names) else _renamed(frame, names)


def _renamed(frame: Frame, names: list[str]) -> Frame:
    """Give columns other names, in order. Raises DataError for another number of columns."""
    if len(frame.names) != len(names):
        raise DataError(f"{frame.name}: {len(frame.names)} columns, the model needs {len(names)}")
    old = dict(zip(names, frame.names, strict=True))
    return Frame(
        frame.name, tuple(names), frame.n_rows, lambda name: frame.column(old[name]), frame.line_of
    )


def label_column(names: Sequence[str], given: str | None, file_name: str) -> tuple[str, str]:
    """Return the label column and how it was found.

    It is the last one unless given. Raises DataError, also if another column alone has the name of
    a label: a wrong label would be trained without a sign.
    """
    if given is not None:
        found = "given" if given in names else f"column {given}"
        return str(column_of(given, names, file_name)), found
    last, by_name = names[-1], {name.lower(): name for name in reversed(names)}
    likely = [by_name[name] for name in LABELS if name in by_name]
    if likely and last.lower() not in LABELS:
        raise DataError(
            f"{file_name}: the label may be column {likely[0]} or the last column, {last}: "
            f"give --label {likely[0]} or --label {last}"
        )
    return last, "the last column"


def column_of(given: str | None, names: Sequence[str], file_name: str, use: str = "") -> str | None:
    """Return a column given by its name or number, counted from 1; None for None.

    `use` says what it is for. Raises DataError.
    """
    if given is None or given in names:
        return given
    if given.isdecimal() and 1 <= int(given) <= len(names):
        return names[int(given) - 1]
    described = f"no column {given}{' ' * bool(use)}{use}"
    raise DataError(f"{file_name}: {described}; the columns are {_listed(names)}")


def columns_of(given: Sequence[str], names: Sequence[str], file_name: str, use: str) -> list[str]:
    """Return columns that are given by names or numbers, or by lists of them.

    A list has commas and, around a name with commas, quotes; a name as a whole comes first. Raises
    DataError.
    """
    columns: list[str] = []
    for text in given:
        parts = [text] if text in names else next(csv.reader([text], skipinitialspace=True))
        columns += [str(column_of(part.strip(), names, file_name, use)) for part in parts]
    return columns


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


def labels_of(frame: Frame, name: str, *, may_lack: bool = False) -> np.ndarray:
    """Return labels: float64 (n,), or str (n,) for text, booleans and dates.

    With `may_lack` missing labels are nan or "", else they raise DataError, as infinite ones do.
    """
    values = frame.column(name)
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        labels, is_missing, is_infinite = values, np.isnan(values), np.isinf(values)
        if is_infinite.any():
            row = int(np.argmax(is_infinite))
            raise frame.error(name, f"the label {values[row]:g} is not a finite number", row)
    else:
        texts = as_texts(values)
        is_missing, labels = texts.codes < 0, np.array([*texts.values, ""], str)[texts.codes]
    if is_missing.any() and not may_lack:
        raise frame.error(name, "the label is missing", int(np.argmax(is_missing)))
    return labels
