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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from dcsvm.data.columns import (
    BOOLEAN,
    CATEGORY,
    MISSING_TEXTS,
    NUMBER,
    Frame,
    TableEncoding,
    Texts,
    column_of,
    columns_of,
    label_column,
)
from dcsvm.data.dialect import BLANKS, SAMPLE, collapsed, find_dialect, records, table_hint
from dcsvm.data.files import HEAD, DataError, FileText, as_file, check_room, first_lines, read_text
from dcsvm.data.frames import INSTALL, frame_of_arrow, safe_pyarrow, without_index
from dcsvm.data.notations import CODE, TRUTH
from dcsvm.data.reading import Encoded, FileOptions, TableRows, encoding_of

HEAD_BYTES = 2**20  # of text that show the dialect
HEAD_ROWS = 1000  # of Parquet
HEAD_BATCH = 2**16  # bytes of text; the last record of a head may be cut, and is beyond it
BATCH = 2**20  # bytes of text in a batch
LARGE = 2**24  # bytes of text that show the types of the columns; limit of a line
INDEX_NAMES = ("", "Unnamed: 0")  # pandas reads the first one as the second one
LABEL = "label"  # kind of a column whose text, booleans and dates are labels as they are spelled
DROP = "--drop it"


class TableReader:
    """The reader of a table in a file: it knows the names, and reads columns of known kinds.

    `names` are those of the columns. A table of text has a `dialect`; `header` says whether it has
    names, None that its first lines tell. `known` is the encoding of the training set of rows to
    predict. With `is_head` only the first rows are read, if the format allows. Raises DataError
    for a file that cannot be opened or is damaged.
    """

    def __init__(
        self,
        path: str,
        format: str,
        *,
        header: bool | None = None,
        known: TableEncoding | None = None,
        is_head: bool = False,
    ):
        self.path, self.format, self.is_head = path, format, is_head
        is_text = format in ("csv", "tsv")
        self.text: bytearray | FileText = (
            bytearray(first_lines(path)) if is_head and is_text else read_text(path)
        )
        if not len(self.text):
            raise DataError(f"{path}: no rows")
        self.arrow = _pyarrow(path, format)
        self.csv = _Csv(self, header, known) if is_text else None
        if self.csv is not None:
            self.names = self.csv.dialect.names
        else:
            self.table: Any = self._columnar()
            self.names = tuple(map(str, self.table.column_names))
        if not self.names:
            raise DataError(f"{path}: no columns")

    @property
    def has_names(self) -> bool:
        return self.csv is None or self.csv.dialect.has_names

    def frame(self, kinds: Mapping[str, str] | None = None) -> Frame:
        """Read the columns; `kinds` are the kinds of those whose kind is known.

        Raises DataError.
        """
        if self.csv is not None:
            frame = self.csv.frame(kinds or {})
        else:
            frame = frame_of_arrow(self.path, self.table, drop=DROP)
        if frame.n_rows == 0:
            raise DataError(f"{self.path}: no rows")
        return frame

    def _columnar(self) -> Any:
        """Read a Parquet, Arrow or Feather file, or its first rows, as a pyarrow.Table."""
        path, format, source = self.path, self.format, as_file(self.text)
        arrow = self.arrow
        try:
            if format != "parquet":
                table = _arrow_table(source, is_head=self.is_head)
            else:
                from pyarrow import parquet

                table = _head(source, HEAD_ROWS) if self.is_head else parquet.read_table(source)
            table.validate(full=True)  # reading damaged columns would crash
            return without_index(_with_categories(table, source) if format == "parquet" else table)
        except DataError:
            raise
        except (arrow.ArrowException, OSError, ValueError, EOFError, KeyError, TypeError) as error:
            raise DataError(f"{path}: not a readable {format} file: {_sentence(error)}") from None


def read_table(path: str, format: str, *, is_head: bool = False) -> Frame:
    """Read a table; with `is_head` only the first rows, if the format allows. Raises DataError."""
    return TableReader(path, format, is_head=is_head).frame()


def _pyarrow(path: str, format: str) -> Any:
    """Import pyarrow; None if it is missing and the format is text. Raises DataError."""
    try:
        return safe_pyarrow(path)
    except ImportError:
        if format in ("csv", "tsv"):
            return None
        raise DataError(f"{path}: reading {format} needs pyarrow: {INSTALL}") from None


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
    try:
        return feather.read_table(source)
    except pyarrow.ArrowInvalid:  # so is a stream
        source.seek(0)
        return pyarrow.ipc.open_stream(source).read_all()


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


class _Csv:
    """The text of a table, as its `reader` found it, and its dialect."""

    def __init__(self, reader: TableReader, header: bool | None, known: TableEncoding | None):
        self.path, self.text, self.arrow = reader.path, reader.text, reader.arrow
        self.is_head = reader.is_head
        head = bytes(self.text[:HEAD_BYTES])
        if b"\0" in head:
            raise DataError(f"{self.path}: not a text file{table_hint(head)}")
        lines = head.splitlines(keepends=True)
        decoded = [line.decode(self.encoding, errors="replace") for line in lines]
        is_cut = len(head) >= (HEAD if self.is_head else HEAD_BYTES)
        dialect = find_dialect(
            decoded, is_cut=is_cut, delimiter="\t" if reader.format == "tsv" else None,
            header=header, known=known,
        )  # fmt: skip
        if dialect is None:
            raise DataError(f"{self.path}: no rows")
        self.dialect = dialect
        for k, name in enumerate(dialect.names):
            if name in dialect.names[:k]:
                place = f"{self.path}:{dialect.line_of_names}"
                raise DataError(f"{place}: two columns have the name {name or 'of no text'}")
        self.begin = sum(map(len, lines[: dialect.n_lines]))  # of the first row, in bytes
        self.row_bytes = max(len(head) - self.begin, 1) / max(len(lines) - dialect.n_lines, 1)
        if dialect.delimiter == BLANKS:
            rows = (collapsed(line) for line in self._rows())
            self.text, self.begin = bytearray(b"".join(rows)), 0

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
        return "utf-8"

    def _rows(self) -> Any:
        """Return a file of the text from the first row on."""
        source = as_file(self.text)
        source.seek(self.begin)
        return source

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line and the fields of each row, as Python's reader finds them."""
        line = self.dialect.n_lines + 1
        lines = (text.decode(self.encoding) for text in self._rows())
        try:
            for end, fields in records(lines, self.dialect.delimiter, self.dialect.n_lines):
                yield line, fields
                line = end + 1
        except csv.Error as error:
            reason = str(error)
            if "new-line" in reason:
                reason = "a carriage return without a newline: lines must end in newlines"
            raise DataError(f"{self.path}:{line}: {reason}") from None

    def frame(self, kinds: Mapping[str, str]) -> Frame:
        n_rows = len(self.text) / self.row_bytes
        check_room(self.path, int(8 * n_rows * len(self.dialect.names)))
        return self._numbers() if self.arrow is None else self._read(kinds)

    def _read(self, kinds: Mapping[str, str]) -> Frame:
        """Read the rows by pyarrow: types are given, or likely; what does not fit them is text."""
        arrow, names = self.arrow, self.dialect.names
        if self.encoding == "latin-1":
            warnings.warn(f"{self.path} is not UTF-8: read as Latin-1", stacklevel=2)
        types: dict[str, Any] = {}
        sample = HEAD_BATCH if self.is_head else LARGE
        size = min(BATCH, sample)
        for _ in range(len(names) + 2):
            try:
                if not types:
                    types = self._likely_types(self._opened(types, sample), kinds)
                batches = self._opened(types, size)
                wanted = islice(batches, 1 if self.is_head else None)
                table = arrow.Table.from_batches(list(wanted), batches.schema)
            except (arrow.ArrowException, ValueError, OSError) as error:
                named = re.search(r"In CSV column #(\d+)", str(error))
                place = int(named[1]) if named else -1
                if 0 <= place < len(names) and types.get(names[place]) != arrow.string():
                    types[names[place]] = arrow.string()
                    continue
                if size < LARGE:  # a line may be longer than a batch
                    size = sample = LARGE
                    continue
                raise self._error(error) from None
            frame = frame_of_arrow(
                self.path, table, self._line_of, has_names=self.dialect.has_names, drop=DROP
            )
            return replace(frame, decimal="," if self.dialect.delimiter == ";" else ".")
        raise AssertionError("each column becomes text once, and the size changes once")

    def _likely_types(self, batches: Any, kinds: Mapping[str, str]) -> dict[str, Any]:
        """Return the type of each column: that of its kind, or that of its first batch.

        A number may have decimals later.
        """
        arrow = self.arrow

        def likely(name: str, kind: Any) -> Any:
            if kinds.get(name) in (CATEGORY, BOOLEAN):
                return arrow.string()
            if kinds.get(name) == LABEL and arrow.types.is_integer(kind) and is_code(name):
                return arrow.string()
            is_number = arrow.types.is_integer(kind) or arrow.types.is_null(kind)
            if is_number or kinds.get(name) == NUMBER:
                return arrow.float64()
            is_other = not arrow.types.is_floating(kind)
            return arrow.string() if kinds.get(name) == LABEL and is_other else kind

        def is_code(name: str) -> bool:
            """Return whether the first labels have leading zeros."""
            place = self.dialect.names.index(name)
            fields = (row[place] for _, row in islice(self.records(), SAMPLE) if place < len(row))
            return any(CODE.fullmatch(field.strip()) for field in fields)

        return {field.name: likely(field.name, field.type) for field in batches.schema}

    def _opened(self, types: dict[str, Any], size: int) -> Any:
        """Return a reader of batches, about `size` bytes of text each."""
        from pyarrow import csv as arrow_csv

        return arrow_csv.open_csv(
            self._rows(),
            arrow_csv.ReadOptions(
                column_names=self.dialect.names, block_size=size,
                encoding="latin-1" if self.encoding == "latin-1" else "utf8",
            ),
            arrow_csv.ParseOptions(
                delimiter=self.dialect.delimiter, newlines_in_values=True,
                invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
            ),
            arrow_csv.ConvertOptions(
                null_values=MISSING_TEXTS, strings_can_be_null=True, column_types=types,
                decimal_point=self.dialect.decimal,
            ),
        )  # fmt: skip

    def _error(self, error: Exception) -> DataError:
        """Return an error with the line of the first record of a wrong length."""
        line = 0
        for line, fields in self.records():
            if len(fields) != len(self.dialect.names):
                return self._length_error(line, len(fields))
        return DataError(f"{self.path}: {_sentence(error) if line else 'no rows'}")

    def _length_error(self, line: int, n_fields: int) -> DataError:
        first = self.dialect.line_of_names
        others = "the first line has" if first == 1 else f"line {first} has"
        columns = f"{n_fields} column{'s'[: n_fields != 1]}"
        return DataError(f"{self.path}:{line}: {columns}, {others} {len(self.dialect.names)}")

    def _line_of(self, row: int) -> int:
        """Return the line of a row."""
        lines = (line for line, _ in self.records())
        return next(islice(lines, row, None), row + 1 + self.dialect.n_lines)

    def _numbers(self) -> Frame:
        """Read numbers without pyarrow; text columns are its work."""
        names, decimal = self.dialect.names, self.dialect.decimal
        values = array("d")
        for line, fields in islice(self.records(), HEAD_ROWS if self.is_head else None):
            if len(fields) != len(names):
                raise self._length_error(line, len(fields))
            for name, field in zip(names, fields, strict=True):
                text = field.strip()
                try:
                    number = text.replace(decimal, ".")
                    values.append(math.nan if text in MISSING_TEXTS else float(number))
                except ValueError:
                    raise DataError(
                        f"{self.path}:{line}: column {name}: {field[:40]!r} is not a number; text "
                        f"needs pyarrow: {INSTALL}"
                    ) from None
        rows = np.frombuffer(values, np.float64).reshape(-1, len(names))
        places = {name: k for k, name in enumerate(names)}
        return Frame(
            self.path, names, len(rows), lambda name: rows[:, places[name]],
            self._line_of, self.dialect.has_names,
        )  # fmt: skip


def training_table(path: str, format: str, options: FileOptions) -> TableRows:
    """Read a training set and find its encoding. Raises DataError."""
    reader = TableReader(path, format, header=options.header)
    # the columns that the options name
    dropped = columns_of(options.drop, reader.names, path, "to drop")
    categories = columns_of(options.category, reader.names, path, "of categories")
    weight = column_of(options.weight, reader.names, path, "of weights")
    is_padded = reader.csv is not None and reader.csv.dialect.is_padded
    names = reader.names[:-1] if is_padded else reader.names
    if set(names) <= {*dropped, weight}:
        raise DataError(f"{path}: no columns are left")
    if len(reader.names) == 1 and options.is_labelled:
        raise DataError(f"{path}: no column is left for features{_hint(reader)}")
    label, choice = None, ""
    if options.is_labelled or options.label is not None:
        label, choice = label_column(names, options.label, path, [*dropped, weight])
    # their values
    kinds = dict.fromkeys(categories, CATEGORY)
    frame = reader.frame(kinds if label is None else kinds | {label: LABEL})
    sample_weight = None if weight is None else _weights(frame, weight)
    dropped = [*dropped, *([] if weight is None else [weight])]
    if _numbers_rows(frame, [label, *dropped]):
        warnings.warn(f"{path}: column 1 has no name and numbers the rows: left out", stacklevel=2)
        dropped.append(frame.names[0])
    encoding = encoding_of(frame, label, dropped, f"{path}: ", categories)
    rows = TableRows(encoding, frame, label, sample_weight)
    rows.description = _described(reader, rows, choice)
    return rows


def _hint(reader: TableReader) -> str:
    """Return a hint for a table of one column."""
    if reader.csv is None:
        return ""
    return ": columns are separated by commas, semicolons, tabs, | or blanks"


def _numbers_rows(frame: Frame, without: Sequence[str | None]) -> bool:
    """Return whether the first column is an index, as pandas and R write it: without a name."""
    name = frame.names[0]
    if name not in INDEX_NAMES or name in without or len(frame.names) == 1:
        return False
    values = frame.column(name)
    if isinstance(values, Texts):
        return len(values.values) == frame.n_rows  # names of rows
    return values.dtype.kind == "f" and bool(np.all(values == np.floor(values)))


def _weights(frame: Frame, name: str) -> np.ndarray:
    """Return the sample weights in a column. Raises DataError."""
    values = frame.column(name)
    if isinstance(values, Texts) or values.dtype.kind != "f":
        raise DataError(f"{frame.name}: column {name}: weights must be numbers")
    is_valid = np.isfinite(values) & (values >= 0)
    if not is_valid.all():
        row = int(np.argmin(is_valid))
        raise frame.error(name, f"a weight must be at least 0, found {values[row]:g}", row)
    return values


def _described(reader: TableReader, rows: TableRows, choice: str) -> str:
    """Describe a training table; `choice` says how the label was found."""
    encoding = rows.table
    kinds = [one.kind == CATEGORY for one in encoding.columns]
    n_missing = sum(one.has_indicator for one in encoding.columns)
    numbers, texts = kinds.count(False), kinds.count(True)
    missing = f" ({n_missing} with missing values)" if n_missing else ""
    parts = [
        f"{numbers} numeric column{'s'[: numbers != 1]}{missing}",
        f"{texts} text column{'s'[: texts != 1]}",
    ]
    label = "no label" if encoding.label is None else f"label {encoding.label} ({choice})"
    lines = [
        f"table of {rows.n_rows} rows: {label}; {' and '.join(parts)} become "
        f"{encoding.n_features} feature{'s'[: encoding.n_features != 1]}"
    ]
    if reader.csv is not None and reader.csv.dialect.are_names_numbers:
        line, names = reader.csv.dialect.line_of_names, ", ".join(reader.names[:4])
        lines.append(
            f"line {line} ({names}{', ...' if len(reader.names) > 4 else ''}) contains the "
            "column names; with --no-header, it is a row of data"
        )
    return "\n".join([*lines, *encoding.notes])


def other_table(
    path: str, format: str, like: Encoded, options: FileOptions, *, is_head: bool = False
) -> TableRows:
    """Read rows to predict or to test, or the first of them, encoded as the training set.

    The types of the columns are those of the training set. Raises DataError.
    """
    encoding = like.table
    reader = TableReader(path, format, header=options.header, known=encoding, is_head=is_head)
    # rows without names have the label if they have one more column
    name = options.label or encoding.label
    if options.label is not None and name not in reader.names:
        name, _ = label_column(reader.names, options.label, path)
    may_have_label = options.label or reader.has_names or len(reader.names) > len(encoding.columns)
    label = name if name in reader.names and may_have_label else None
    if label is None and not reader.has_names and len(reader.names) == len(encoding.columns) + 1:
        label = reader.names[-1] if encoding.label is not None else None
    # other notations than Arrow's are read as text
    kinds = {
        column.name: CATEGORY if column.notation.decimal else column.kind
        for column in encoding.columns
    }
    if not set(kinds) <= set(reader.names):  # they match by position
        others = [one for one in reader.names if one != label]
        kinds = dict(zip(others, kinds.values(), strict=False))
    labels = getattr(like, "labels", None)
    are_text = labels is not None and labels.dtype.kind == "U"
    spelled = np.unique(labels).tolist() if labels is not None and are_text else []
    if label is not None:
        kinds[label] = CATEGORY if are_text else LABEL
    frame = reader.frame(kinds)
    rows = TableRows(encoding, frame, label, may_lack=True, are_numbers=not are_text)
    truths = {one.lower(): one for one in spelled}
    if rows.labels is not None and truths.keys() == set(TRUTH):  # spelled as in the training set
        lowered = np.char.lower(rows.labels.astype(str))
        rows.labels = np.array([truths.get(one, one) for one in lowered.tolist()], str)
    return rows
