"""Tables in files: CSV, TSV, Parquet, Arrow and Feather as encoded rows, labels and weights.

pyarrow (the extra `tables`) reads them. Without it, files of numbers can be read. Text may be
packed by gzip, bzip2 or xz.
"""

from __future__ import annotations

import base64
import codecs
import csv
import math
import re
import warnings
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from dcsvm.data.columns import (
    CATEGORY,
    MISSING_TEXTS,
    Frame,
    TableEncoding,
    Texts,
    label_column,
)
from dcsvm.data.files import DataError, as_file, check_room, first_lines, read_text
from dcsvm.data.frames import frame_of_arrow
from dcsvm.data.reading import TableRows, encoding_of

DELIMITERS = ",;\t"
FIRST_LINE = 2**16  # bytes that have the first line
HEAD_ROWS = 1000  # of Parquet
HEAD_BATCH = 2**16  # bytes of text; the last record of a head may be cut, and is beyond it
BATCH = 2**20  # bytes of text in a batch
LARGE = 2**24  # bytes of text that show the types of the columns; limit of a line
DROP = "--drop it"
INSTALL = "pip install 'dcsvm[tables]'"


def read_table(path: str, format: str, *, is_head: bool = False) -> Frame:
    """Read a table; with `is_head` only the first rows, if the format allows.

    Raises DataError for a file that cannot be opened or is damaged.
    """
    is_text = format in ("csv", "tsv")
    text = first_lines(path) if is_head and is_text else read_text(path)
    if not len(text):
        raise DataError(f"{path}: no rows")
    if is_text:
        csv = _Csv(path, bytes(text[:FIRST_LINE]), text, format, is_head)
        frame = csv.frame(_pyarrow(path, format))
    else:
        n_rows = HEAD_ROWS if is_head else None
        frame = _columnar(path, text, format, _pyarrow(path, format), n_rows)
    if frame.n_rows == 0:
        raise DataError(f"{path}: no rows")
    if not frame.names:
        raise DataError(f"{path}: no columns")
    return frame


def _pyarrow(path: str, format: str) -> Any:
    """Import pyarrow; None if it is missing and the format is text. Raises DataError."""
    try:
        import pyarrow
    except ImportError:
        if format in ("csv", "tsv"):
            return None
        raise DataError(f"{path}: reading {format} needs pyarrow: {INSTALL}") from None
    return pyarrow


def _columnar(path: str, text: Any, format: str, arrow: Any, n_rows: int | None) -> Frame:
    """Read a Parquet, Arrow or Feather file, or its first rows: `n_rows` of Parquet, or a batch."""
    source = as_file(text)
    try:
        if format == "parquet":
            from pyarrow import parquet

            table = parquet.read_table(source) if n_rows is None else _head(source, n_rows)
        else:
            table = _arrow_table(source, is_head=n_rows is not None)
        table.validate(full=True)  # reading damaged columns would crash
        if format == "parquet":
            table = _with_categories(table, source)
        return frame_of_arrow(path, table, drop=DROP)
    except DataError:
        raise
    except (arrow.ArrowException, OSError, ValueError, EOFError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a readable {format} file: {_sentence(error)}") from None


def _arrow_table(source: Any, *, is_head: bool) -> Any:
    """Read an Arrow or Feather file, or its first batch."""
    import pyarrow
    from pyarrow import feather

    if is_head:
        try:
            with pyarrow.ipc.open_file(source) as file:
                batches = [file.get_batch(0)] if file.num_record_batches else []
                return pyarrow.Table.from_batches(batches, file.schema)
        except pyarrow.ArrowInvalid:  # the first version of Feather is another format
            source.seek(0)
    return feather.read_table(source)


def _head(source: Any, n_rows: int) -> Any:
    """Read the first rows of a Parquet file."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(source)
    batch = next(file.iter_batches(batch_size=n_rows), None)
    return pyarrow.Table.from_batches([] if batch is None else [batch], file.schema_arrow)


def _with_categories(table: Any, source: Any) -> Any:
    """Make columns of a Parquet file categories that were categories when Arrow wrote the file.

    pyarrow does so only for text.
    """
    from pyarrow import ipc, parquet, py_buffer, types

    written = (parquet.read_metadata(source).metadata or {}).get(b"ARROW:schema")
    if written is None:
        return table
    for field in ipc.read_schema(py_buffer(base64.b64decode(written))):
        k = table.schema.get_field_index(field.name)  # -1 if there is no such column, or several
        is_lost = k >= 0 and types.is_dictionary(field.type)
        if is_lost and not types.is_dictionary(table.schema.field(k).type):
            table = table.set_column(k, field.name, table.column(k).dictionary_encode())
    return table


def _sentence(error: Exception) -> str:
    """Return the first line of an error of pyarrow."""
    lines = str(error).strip().splitlines()
    return lines[0][:200].rstrip(". ") if lines else type(error).__name__


def _likely_types(batches: Any) -> dict[str, Any]:
    """Return the type of each column in the first batch; a number may have decimals later."""
    import pyarrow

    def likely(kind: Any) -> Any:
        is_number = pyarrow.types.is_integer(kind) or pyarrow.types.is_null(kind)
        return pyarrow.float64() if is_number else kind

    return {field.name: likely(field.type) for field in batches.schema}


@dataclass
class _Csv:
    """A text table: its beginning, its text, and its format; `is_head` for its first rows."""

    path: str
    head: bytes
    text: Any
    format: str
    is_head: bool = False

    def __post_init__(self) -> None:
        if b"\0" in self.head:
            raise DataError(f"{self.path}: not a text file")

    @property
    def delimiter(self) -> str:
        """The most frequent delimiter of the first line, outside of quotes."""
        if self.format == "tsv":
            return "\t"
        line = re.sub(rb'"[^"]*"', b"", self.head.split(b"\n", 1)[0]).decode("latin-1")
        return max(DELIMITERS, key=line.count)

    @cached_property
    def encoding(self) -> str:
        """UTF-8, or Latin-1 for text that is not UTF-8."""
        decoder, source = codecs.getincrementaldecoder("utf-8")(), as_file(self.text)
        try:
            while piece := source.read(LARGE):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "latin-1"
        return "utf-8-sig"

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line and the fields of each record, as Python's reader finds them."""
        reader = csv.reader(self._lines(), delimiter=self.delimiter)
        line = 1
        try:
            for fields in reader:
                if fields:
                    yield line, fields
                line = reader.line_num + 1
        except csv.Error as error:
            reason = str(error)
            if "new-line" in reason:
                reason = "a carriage return without a newline: lines must end in newlines"
            raise DataError(f"{self.path}:{line}: {reason}") from None

    def _lines(self) -> Iterator[str]:
        encoding = self.encoding
        for line in as_file(self.text):
            yield line.decode(encoding)
            encoding = self.encoding.removesuffix("-sig")  # only line 1 has a byte order mark

    def frame(self, arrow: Any) -> Frame:
        first = next(self.records(), None)
        if first is None:
            raise DataError(f"{self.path}: no rows")
        has_names = not _are_values(first[1])
        names = first[1] if has_names else [str(k + 1) for k in range(len(first[1]))]
        names = [name.strip() for name in names]
        if len(names) > len(set(names)):
            again = next(name for k, name in enumerate(names) if name in names[:k])
            raise DataError(
                f"{self.path}:{first[0]}: two columns have the name {again or 'of no text'}"
            )
        n_rows = len(self.text) * self.head.count(b"\n") // len(self.head)  # of the same length
        check_room(self.path, 8 * n_rows * len(names))
        if arrow is None:
            return self._numbers(names, has_names=has_names)
        return self._read(arrow, names, has_names=has_names)

    def _read(self, arrow: Any, names: list[str], *, has_names: bool) -> Frame:
        from pyarrow import csv as arrow_csv

        encoding = self.encoding
        if encoding == "latin-1":
            warnings.warn(f"{self.path} is not UTF-8: read as Latin-1", stacklevel=2)
        types: dict[str, Any] = {}
        sample = HEAD_BATCH if self.is_head else LARGE
        size = min(BATCH, sample)
        for _ in range(len(names) + 2):
            try:
                if not types:
                    types = _likely_types(self._opened(arrow_csv, names, has_names, types, sample))
                batches = self._opened(arrow_csv, names, has_names, types, size)
                wanted = islice(batches, 1 if self.is_head else None)
                table = arrow.Table.from_batches(list(wanted), batches.schema)
            except DataError:
                raise
            except (arrow.ArrowException, ValueError, OSError) as error:
                named = re.search(r"In CSV column #(\d+)", str(error))
                place = int(named[1]) if named else -1
                if 0 <= place < len(names) and types.get(names[place]) != arrow.string():
                    types[names[place]] = arrow.string()
                    continue
                if size < LARGE:  # a line may be longer than a batch
                    size = sample = LARGE
                    continue
                raise self._error(error, len(names)) from None
            return frame_of_arrow(
                self.path, table, self._line_of(has_names), has_names=has_names, drop=DROP
            )
        raise AssertionError("each column becomes text once, and the size changes once")

    def _opened(
        self, arrow_csv: Any, names: list[str], has_names: bool, types: dict[str, Any], size: int
    ) -> Any:
        """Return a reader of batches, about `size` bytes of text each."""
        return arrow_csv.open_csv(
            as_file(self.text),
            arrow_csv.ReadOptions(
                column_names=names, skip_rows=int(has_names), block_size=size,
                encoding="latin-1" if self.encoding == "latin-1" else "utf8",
            ),
            arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                null_values=MISSING_TEXTS, strings_can_be_null=True, column_types=types
            ),
        )  # fmt: skip

    def _error(self, error: Exception, n_columns: int) -> DataError:
        """Return an error with the line of the first record of a wrong length."""
        for line, fields in self.records():
            if len(fields) != n_columns:
                fields_word = f"{len(fields)} column{'s'[: len(fields) != 1]}"
                return DataError(
                    f"{self.path}:{line}: {fields_word}, the first line has {n_columns}"
                )
        return DataError(f"{self.path}: {_sentence(error)}")

    def _line_of(self, has_names: bool) -> Any:
        def line_of(row: int) -> int:
            for k, (line, _) in enumerate(self.records()):
                if k == row + has_names:
                    return line
            return row + 1 + has_names

        return line_of

    def _numbers(self, names: list[str], *, has_names: bool) -> Frame:
        """Read numbers without pyarrow."""
        # numbers only: text columns are the work of pyarrow
        values, end = array("d"), HEAD_ROWS if self.is_head else None
        for line, fields in islice(self.records(), int(has_names), end):
            if len(fields) != len(names):
                raise DataError(
                    f"{self.path}:{line}: {len(fields)} columns, the first line has {len(names)}"
                )
            for name, text in zip(names, fields, strict=True):
                if text.strip() not in MISSING_TEXTS and not _is_number(text):
                    raise DataError(
                        f"{self.path}:{line}: column {name}: {text[:40]!r} is not a number; text "
                        f"needs pyarrow: {INSTALL}"
                    )
            values.extend(
                math.nan if text.strip() in MISSING_TEXTS else float(text) for text in fields
            )
        rows = np.frombuffer(values, np.float64).reshape(-1, len(names))
        places = {name: k for k, name in enumerate(names)}
        return Frame(
            self.path, tuple(names), len(rows), lambda name: rows[:, places[name]],
            self._line_of(has_names), has_names,
        )  # fmt: skip


def _are_values(fields: list[str]) -> bool:
    """Return whether the fields of the first line are numbers, not names."""
    present = [one for one in fields if one.strip() not in MISSING_TEXTS]
    return bool(present) and all(map(_is_number, present))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def training_table(
    path: str, format: str, label: str | None, drop: Sequence[str], weight: str | None
) -> TableRows:
    """Read a training set and find its encoding.

    `label`, `drop` and `weight` name columns. Raises DataError.
    """
    frame = read_table(path, format)
    for name in drop:
        if name not in frame.names:
            raise DataError(f"{path}: no column {name} to drop")
    kept = [name for name in frame.names if name not in drop and name != weight]
    if not kept:
        raise DataError(f"{path}: no columns are left")
    label, choice = label_column(kept, label, path)
    sample_weight = None if weight is None else _weights(frame, weight)
    dropped = [*drop, *([] if weight is None else [weight])]
    encoding = encoding_of(frame, label, dropped, f"{path}: ")
    return TableRows(encoding, frame, label, sample_weight, _described(encoding, frame, choice))


def _weights(frame: Frame, name: str) -> np.ndarray:
    """Return the sample weights in a column. Raises DataError."""
    if name not in frame.names:
        raise DataError(f"{frame.name}: no column {name} of weights")
    values = frame.column(name)
    if isinstance(values, Texts) or values.dtype.kind != "f":
        raise DataError(f"{frame.name}: column {name}: weights must be numbers")
    is_valid = np.isfinite(values) & (values >= 0)
    if not is_valid.all():
        row = int(np.argmin(is_valid))
        raise frame.error(name, f"a weight must be at least 0, found {values[row]:g}", row)
    return values


def _described(encoding: TableEncoding, frame: Frame, choice: str) -> str:
    """Describe a training table in one line; `choice` says how the label was found."""
    kinds = [one.kind == CATEGORY for one in encoding.columns]
    n_missing = sum(one.has_indicator for one in encoding.columns)
    numbers, texts = kinds.count(False), kinds.count(True)
    parts = [f"{numbers} number{'s'[: numbers != 1]}", f"{texts} text column{'s'[: texts != 1]}"]
    missing = f", {n_missing} with missing numbers" if n_missing else ""
    return (
        f"table of {frame.n_rows} rows: label {encoding.label} ({choice}); {' and '.join(parts)}"
        f"{missing} give {encoding.n_features} feature{'s'[: encoding.n_features != 1]}"
    )


def other_table(path: str, format: str, encoding: TableEncoding, label: str | None) -> TableRows:
    """Read rows to predict or to test, encoded as the training set.

    Unknown categories give a warning. Raises DataError.
    """
    rows = _encoded(read_table(path, format), encoding, label)
    for sentence in rows.warnings():
        warnings.warn(f"{path}: {sentence}", stacklevel=2)
    return rows


def first_table_rows(
    path: str, format: str, encoding: TableEncoding, label: str | None
) -> TableRows:
    """Encode the first rows of a table to predict or to test. Raises DataError."""
    return _encoded(read_table(path, format, is_head=True), encoding, label)


def _encoded(frame: Frame, encoding: TableEncoding, label: str | None) -> TableRows:
    """Return the rows of a frame, with their labels if it has them. Raises DataError."""
    name = label or encoding.label
    if label is not None and label not in frame.names:
        name, _ = label_column(frame.names, label, frame.name)
    # without names, the number of columns tells whether the label is among them
    may_have_label = label or frame.has_names or len(frame.names) > len(encoding.columns)
    return TableRows(encoding, frame, name if name in frame.names and may_have_label else None)
