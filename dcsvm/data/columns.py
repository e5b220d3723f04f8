"""Encode the columns of a table as features.

Numbers keep their values, booleans become 0 and 1, and a column of text or of categories becomes
one feature of value 0.5 for each category (one-hot). A date becomes the days since the first one,
and its year, month, weekday and hour where they vary; a time of day or a duration becomes hours. A
missing number is the median of its column; if numbers were missing in training, another feature
marks them. Missing text is a category of its own. Categories that are numbers or booleans are named
by their text.

Text that is numbers, dates or times is read in its notation, see notations.py. Text with nearly a
value for each row names the rows and is left out, unless it is declared a category.

The words in MISSING_TEXTS are missing values in files and in data frames.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np

from dcsvm.data.arrays import NUMBERS
from dcsvm.data.files import DataError
from dcsvm.data.notations import (
    BOOLEAN,
    CATEGORY,
    CODE,
    DATE,
    DAY_FIRST,
    MONTH_FIRST,
    NUMBER,
    PARTS,
    PLAIN,
    TIME,
    TRUTH,
    Notation,
    are_ids,
    days_of,
    hours_of,
    is_plain_number,
    part_of_date,
    reading_of,
)

LABELS = ("target", "label", "class", "y")  # names of the label column, by preference
MISSING = ""  # the category of missing text
MISSING_TEXTS = ("", "NA", "N/A", "n/a", "nan", "NaN", "NAN", "null", "NULL", "None", "?")
MAX_NUMBERS = 32  # different numbers that are classes
SHOWN = 3  # unknown categories in a warning
NUMERIC_SHARE = 0.9  # of the text of a column that is likely to be numeric
NO_VALUES = "has no values: dropped"
KEEP = "--category {} (in a data frame, dtype category) keeps it"
DESCRIBED = {NUMBER: "number", BOOLEAN: "boolean", DATE: "date", TIME: "time"}
KIND_OF_TYPE = {"f": NUMBER, "b": BOOLEAN, "M": DATE, "m": TIME}  # of an array


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of text: row k has values[codes[k]]; codes are int32, -1 for missing text.

    `has_words` says that some missing texts were words such as "?", `is_declared` that the user's
    type of the column is a category.
    """

    codes: np.ndarray
    values: tuple[str, ...]
    has_words: bool = False
    is_declared: bool = False

    @staticmethod
    def of(texts: Sequence[str | None]) -> Texts:
        """Make a column of texts."""
        places: dict[str, int] = {}
        codes = [-1 if one is None else places.setdefault(one, len(places)) for one in texts]
        return Texts(np.array(codes, np.int32), tuple(places))

    @staticmethod
    def joined(parts: Sequence[Texts]) -> Texts:
        """Join the rows of several parts of a column."""
        places: dict[str, int] = {}
        codes = [
            np.array([*(places.setdefault(one, len(places)) for one in part.values), -1], np.int32)
            for part in parts
        ]  # the last one for missing texts
        return Texts(
            np.concatenate([own[part.codes] for own, part in zip(codes, parts, strict=True)]),
            tuple(places),
            any(part.has_words for part in parts),
            any(part.is_declared for part in parts),
        )

    def mapped(self, convert: Callable[[str], str | None]) -> Texts:
        """Convert each value; None makes it missing."""
        merged = Texts.of([convert(one) for one in self.values])
        codes = np.append(merged.codes, -1)  # the last one for missing texts
        return replace(self, codes=codes[self.codes], values=merged.values)

    def read(self) -> Texts:
        """Strip blanks around the texts; words for missing values become missing."""
        read = self.mapped(stripped)
        n_missing, n_read = (int(np.count_nonzero(one.codes < 0)) for one in (self, read))
        return replace(read, has_words=self.has_words or n_read > n_missing)

    @property
    def counts(self) -> np.ndarray:
        """Number of rows of each value, int64 (n_values,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))


def stripped(text: str) -> str | None:
    """Return a text without blanks around it; None if it means a missing value."""
    text = text.strip()
    return None if text in MISSING_TEXTS else text


# a column: float64 with nan for missing numbers, bool, datetime64, timedelta64, or text
Values = np.ndarray | Texts


@dataclass(frozen=True, eq=False)
class Frame:
    """A table: names of its columns and a function that returns a column.

    `line_of` returns the line of a row in the file; None if there is no file. `has_names` is False
    if the file has no header. `decimal` is the decimal mark of text that leaves it open.
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

    `fill` replaces missing numbers; it is in days since 1970 for dates, in hours for times.
    `has_indicator` says that a feature marks missing numbers. `categories` are the texts of a
    category column, in the order of its features. `notation` is that of text. `first` is the first
    date, in days since 1970, and `parts` are the features of dates, see `part_of_date`. `note` says
    how text was read in training.
    """

    name: str
    kind: str
    fill: float = 0.0
    has_indicator: bool = False
    categories: tuple[str, ...] = ()
    notation: Notation = PLAIN
    first: float = 0.0
    parts: tuple[str, ...] = ()
    note: str = field(default="", compare=False)

    @property
    def n_features(self) -> int:
        return len(self.categories if self.kind == CATEGORY else self.feature_names)

    @property
    def feature_names(self) -> list[str]:
        if self.kind == CATEGORY:
            return [f"{self.name}={text or 'missing'}" for text in self.categories]
        names = [self.name]
        if self.kind == TIME:
            names = [f"{self.name} (hours)"]
        elif self.kind == DATE:
            names = [f"{self.name} ({part})" for part in self.parts]
        return [*names, f"{self.name} is missing"] if self.has_indicator else names

    @staticmethod
    def of(frame: Frame, name: str, *, is_category: bool = False) -> Column | str:
        """Find the encoding of a column, or say why it is left out. Raises DataError.

        `is_category` keeps numbers and ids as categories.
        """
        values = frame.column(name)
        if is_category:
            values = replace(as_texts(values), is_declared=True)
        if not isinstance(values, Texts):
            return _of_numbers(frame, Column(name, KIND_OF_TYPE[values.dtype.kind]), values)
        reading, note = None, ""
        if not values.is_declared:
            reading = reading_of(
                values.values, values.counts, frame.n_rows, frame.decimal,
                has_gaps=values.has_words,
            )  # fmt: skip
        if reading is None and not values.is_declared:
            _check_not_numeric(frame, name, values)
        elif reading is not None and reading.is_unclear:
            note = "dates whose days and months could change places are text: write 2020-12-31"
        elif reading is not None:
            note = _note(values, reading.kind, reading.notation)
            column = Column(name, reading.kind, notation=reading.notation, note=note)
            return _of_numbers(frame, column, values)
        return _of_texts(name, values, note)

    @property
    def is_doubtful(self) -> bool:
        """Whether the note is a warning."""
        return bool(self.note) and (self.kind == CATEGORY or bool(self.notation.words))

    @cached_property
    def places(self) -> dict[str, int]:
        """Index of each category, as written and as `stripped` returns it.

        Model files may have texts with blanks around them, or words for missing values. Booleans
        may be spelled in other cases, and be 0 and 1.
        """
        read = {stripped(text) or MISSING: k for k, text in enumerate(self.categories)}
        as_written = read | {text: k for k, text in enumerate(self.categories)}
        truths = {text: k for text, k in read.items() if text.lower() in TRUTH}
        spelled = {
            spelling: k
            for text, k in truths.items()
            for spelling in (text.lower(), text.title(), text.upper())
        }
        if set(truths) == set(read) - {MISSING}:
            spelled |= {str(int(TRUTH[text.lower()])): k for text, k in truths.items()}
        return spelled | as_written

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
                [self.places.get(one, -1) for one in (*texts.values, MISSING)], np.int32
            )
            # code -1 is missing: the last of the places and counts
            counts = np.append(texts.counts, np.count_nonzero(texts.codes < 0))
            for code in np.flatnonzero((places < 0) & (counts > 0)):
                counted = unknown.setdefault(self.name, {})
                counted[(*texts.values, MISSING)[code]] = int(counts[code])
            return places[texts.codes]
        numbers = as_numbers(frame, self.name, values, self.kind, self.notation)
        _check_finite(frame, self.name, numbers)
        return numbers

    def features(self, numbers: np.ndarray) -> list[np.ndarray]:
        """Return the features of encoded numbers, each float64 (n,)."""
        is_missing = np.isnan(numbers)
        filled = np.where(is_missing, self.fill, numbers)
        features = [filled]
        if self.kind == DATE:
            features = [part_of_date(filled, part, self.first) for part in self.parts]
        return [*features, is_missing.astype(np.float64)] if self.has_indicator else features


def _of_numbers(frame: Frame, column: Column, values: Values) -> Column | str:
    """Return a column of numbers, dates or times with its median, or say why it is left out."""
    numbers = as_numbers(frame, column.name, values, column.kind, column.notation)
    _check_finite(frame, column.name, numbers)
    present = numbers[~np.isnan(numbers)]
    if len(present) == 0:
        return NO_VALUES
    column = replace(
        column, fill=float(np.median(present)), has_indicator=len(present) < len(numbers)
    )
    if column.kind == BOOLEAN:
        return replace(column, fill=float(column.fill > 0.5))
    if column.kind != DATE:
        return column
    varies = [part for part in PARTS[1:] if np.ptp(part_of_date(present, part)) > 0]
    return replace(column, first=float(present.min()), parts=(PARTS[0], *varies))


def _of_texts(name: str, values: Texts, note: str) -> Column | str:
    """Return a column of categories, or say why it is left out."""
    if values.has_words and {one.lower() for one in values.values} <= set(TRUTH):
        values = values.mapped(str.lower)  # as in a file without such words
    texts = [text for text, n in zip(values.values, values.counts.tolist(), strict=True) if n]
    if not texts:
        return NO_VALUES
    if are_ids(len(texts), len(values.codes)) and not values.is_declared:
        reason = f"has {len(texts)} different texts in {len(values.codes)} rows: dropped"
        return f"{reason}; {KEEP.format(name)}" + (f" ({note})" if note else "")
    missing = [MISSING] if np.any(values.codes < 0) else []
    return Column(name, CATEGORY, categories=(*sorted(texts), *missing), note=note)


def _note(texts: Texts, kind: str, notation: Notation) -> str:
    """Say how the text of a column was read."""
    count = dict(zip(texts.values, texts.counts.tolist(), strict=True))
    words = [one for one in notation.words if count[one]]
    n_values = sum(count.values()) - sum(count[one] for one in words)
    described = f"{n_values} {DESCRIBED[kind]}s"
    if words:
        gaps = " and ".join(f"{count[one]} of {one[:40]!r}" for one in words)
        return f"{described}, {gaps} as missing"
    shown = next((one for one in texts.values if not is_plain_number(one)), texts.values[0])
    order = {DAY_FIRST: " (day first)", MONTH_FIRST: " (month first)"}.get(notation.order, "")
    return f"{described} such as {shown[:40]!r}{order}"


def as_texts(values: Values) -> Texts:
    """Return a column as text."""
    if isinstance(values, Texts):
        return values
    if values.dtype.kind == "b":
        return Texts(values.astype(np.int32), ("false", "true"))
    if values.dtype.kind in "Mm":
        values = values.astype(f"{values.dtype.kind}8[us]")  # which have Python's types
    distinct, codes = np.unique(values, return_inverse=True)
    texts = [None if one is None else category_text(one) for one in distinct.tolist()]
    merged = Texts.of(texts)
    return Texts(merged.codes[codes.reshape(-1)], merged.values)


def as_numbers(
    frame: Frame, name: str, values: Values, kind: str, notation: Notation = PLAIN
) -> np.ndarray:
    """Return a column of a kind as float64: numbers, days since 1970, or hours.

    Raises DataError for text that is none, and for values of another kind.
    """
    if not isinstance(values, Texts):
        kind_of_values = KIND_OF_TYPE[values.dtype.kind]
        if not {kind_of_values, kind} <= {NUMBER, BOOLEAN} and kind_of_values != kind:
            is_value = ~np.isnan(values)
            if is_value.any():  # a column without values has no type
                row = int(np.argmax(is_value))
                raise frame.error(name, f"{values[row]!s} is not a {DESCRIBED[kind]}", row)
            return np.full(len(values), np.nan)
        if kind in (DATE, TIME):
            return days_of(values) if kind == DATE else hours_of(values)
        return values.astype(np.float64, copy=False)
    distinct = notation.values(values.values, kind)
    is_text = np.array([number is None for number in distinct], bool) & (values.counts > 0)
    if is_text.any():
        described = DESCRIBED[NUMBER if kind == BOOLEAN else kind]
        raise _no_number(
            frame, name, values, is_text, f"is not a {described}; leave the cell empty"
        )
    # missing texts have the code -1, the last place
    numbers = np.array([np.nan if number is None else number for number in (*distinct, None)])
    return numbers[values.codes]


def joined(parts: Sequence[Values]) -> Values:
    """Join the parts of a column; one without values may have any type."""
    full = [one for one in parts if not _is_empty(one)]
    arrays = [one for one in full if isinstance(one, np.ndarray)]
    types = {one.dtype.kind for one in arrays}
    has_gaps = any(_is_empty(one) and _n_rows(one) for one in parts)
    # as one frame has them: booleans beside numbers are numbers, with gaps they are text
    has_text = len(arrays) < len(full) or len(types - {"b"}) > 1
    if has_text or (types == {"b"} and has_gaps):
        return Texts.joined([as_texts(one) for one in parts])
    gap = np.array("NaT", arrays[0].dtype) if types & {"M", "m"} else np.nan
    filled = [
        np.full(_n_rows(one), gap) if isinstance(one, Texts) or _is_empty(one) else one
        for one in parts
    ]
    return np.concatenate([one for one in filled if len(one)] or filled)


def _is_empty(values: Values) -> bool:
    if isinstance(values, Texts):
        return not values.values
    return not len(values) or (values.dtype.kind == "f" and bool(np.isnan(values).all()))


def _n_rows(values: Values) -> int:
    return len(values.codes if isinstance(values, Texts) else values)


def category_text(value: Any) -> str | None:
    """Return the text of a category of any type; None for nan."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, date):
        return str(value).removesuffix(" 00:00:00")
    if not isinstance(value, NUMBERS):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return None if value != value else number_text(float(value))


def number_text(number: float) -> str:
    """Format a number as text; whole numbers have no decimal point."""
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def _check_finite(frame: Frame, name: str, values: np.ndarray) -> None:
    is_infinite = np.isinf(values)
    if is_infinite.any():
        row = int(np.argmax(is_infinite))
        raise frame.error(name, f"{values[row]:g} is not a finite number", row)


def _check_not_numeric(frame: Frame, name: str, texts: Texts) -> None:
    """Raise DataError if almost all texts of a column are numbers."""
    if any(map(CODE.fullmatch, texts.values)):
        return  # codes such as 01 may have letters
    is_word = np.array([not is_plain_number(text) for text in texts.values], bool)
    n_words = int(texts.counts[is_word].sum())
    if 0 < n_words < (1 - NUMERIC_SHARE) * texts.counts.sum():
        reason = f"is not a number; leave the cell empty, or {KEEP.format(name)} as text"
        raise _no_number(frame, name, texts, is_word, reason)


def _no_number(
    frame: Frame, name: str, texts: Texts, is_word: np.ndarray, reason: str
) -> DataError:
    """Return the error of the first text that is no number, one of those marked in `is_word`."""
    row = int(np.argmax(np.append(is_word, False)[texts.codes]))
    text = texts.values[texts.codes[row]]
    return frame.error(name, f"{text[:40]!r} {reason}", row)


@dataclass(frozen=True)
class TableEncoding:
    """Encoding of a table.

    `label` is the name of the label column, None without one. `has_names` is False for a file
    without a header; its columns are matched by position. `dropped` has a sentence for each column
    that was left out as it has no values, or ids.
    """

    columns: tuple[Column, ...]
    label: str | None = None
    has_names: bool = True
    dropped: tuple[str, ...] = field(default=(), compare=False)

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
        """Find the encoding of training data; `categories` stay text. Raises DataError."""
        for name in categories:
            if name not in frame.names:
                raise DataError(f"{frame.name}: no column {name} of categories")
        columns = {
            name: Column.of(frame, name, is_category=name in categories)
            for name in frame.names
            if name != label and name not in dropped
        }
        return TableEncoding(
            tuple(one for one in columns.values() if isinstance(one, Column)),
            label,
            frame.has_names,
            tuple(f"column {name} {one}" for name, one in columns.items() if isinstance(one, str)),
        )

    @property
    def warnings(self) -> list[str]:
        """A sentence for each column that training left out, or whose values it may misread."""
        return [*self.dropped, *self._notes(is_doubtful=True)]

    @property
    def notes(self) -> list[str]:
        """A sentence for each column of numbers or dates in another notation."""
        return self._notes(is_doubtful=False)

    def _notes(self, *, is_doubtful: bool) -> list[str]:
        return [
            f"column {one.name}: {one.note}"
            for one in self.columns
            if one.note and one.is_doubtful == is_doubtful
        ]

    @property
    def n_features(self) -> int:
        return int(self.start[-1])

    @property
    def n_columns(self) -> int:
        """Number of features, where those of a category column count as one."""
        return sum(1 if one.kind == CATEGORY else one.n_features for one in self.columns)

    @property
    def are_numbers(self) -> bool:
        """Whether all columns are numbers or booleans."""
        return all(one.kind in (NUMBER, BOOLEAN) for one in self.columns)

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

    def matched(self, frame: Frame, label: str | None = None) -> Frame:
        """Check that a frame has the columns, by name; rename them if they match by position.

        The column `label` is none of them then. Raises DataError.
        """
        names = [one.name for one in self.columns]
        if self.has_names and frame.has_names:
            missing = [name for name in names if name not in frame.names]
            if missing:
                raise DataError(f"{frame.name}: no column {missing[0]}, which the model needs")
            return frame
        if label is not None and not set(names) <= set(frame.names):
            frame = replace(frame, names=tuple(one for one in frame.names if one != label))
        known = [*names, *([] if self.label is None else [self.label])]
        if self.has_names or frame.has_names:
            return frame if set(names) <= set(frame.names) else _renamed(frame, names)
        is_same = set(known) <= set(frame.names)
        return frame if is_same or set(names) == set(frame.names) else _renamed(frame, names)


def _renamed(frame: Frame, names: list[str]) -> Frame:
    """Give columns other names, in order. Raises DataError for another number of columns."""
    if len(frame.names) != len(names):
        raise DataError(f"{frame.name}: {len(frame.names)} columns, the model needs {len(names)}")
    old = dict(zip(names, frame.names, strict=True))
    return replace(frame, names=tuple(names), column=lambda name: frame.column(old[name]))


def label_column(
    names: Sequence[str], given: str | None, file_name: str, others: Collection[str | None] = ()
) -> tuple[str, str]:
    """Return the label column and how it was found.

    It is the last one that is not among `others`, unless given. Raises DataError, also if another
    column alone has the name of a label: a wrong label would be trained without a sign.
    """
    if given is not None:
        found = "given" if given in names else f"column {given}"
        label = str(column_of(given, names, file_name))
        if label in others:
            reason = "is the label: it can neither be dropped nor have the weights"
            raise DataError(f"{file_name}: column {label} {reason}")
        return label, found
    names = [name for name in names if name not in others]
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


def labels_of(
    frame: Frame, name: str, *, may_lack: bool = False, are_numbers: bool = False
) -> np.ndarray:
    """Return labels: float64 (n,), or str (n,) for text, booleans and dates.

    With `may_lack` missing labels are nan or "", else they raise DataError, as infinite ones do.
    Text of numbers in another notation, such as 12,5 %, is a target if the labels of the training
    set `are_numbers`, or if there are more values than classes of numbers may have.
    """
    values = frame.column(name)
    if isinstance(values, Texts) and (are_numbers or len(values.values) > MAX_NUMBERS):
        read = values.read()
        reading = reading_of(
            read.values, read.counts, frame.n_rows, frame.decimal, has_gaps=read.has_words
        )
        if reading is not None and reading.kind == NUMBER:
            if reading.notation.words:
                is_word = np.array([one in reading.notation.words for one in read.values])
                raise _no_number(frame, name, read, is_word, "is not a number, as other labels are")
            values = as_numbers(frame, name, read, NUMBER, reading.notation)
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
