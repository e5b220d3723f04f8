"""Read any kind of data as rows before scaling: arrays, data frames, LIBSVM text and tables.

The parser of LIBSVM text is in csrc/text.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from dcsvm import _core, _svmlight
from dcsvm.data.arrays import BYTES_OF_VALUE, Float64Parts, zeros
from dcsvm.data.columns import Frame, TableEncoding
from dcsvm.data.files import DataError, FileText, check_room, read_text, table_format
from dcsvm.data.frames import check_collected, frame_of, frame_of_matrix, is_frame, matrix_of
from dcsvm.data.rows import Rows, Storage, storage_of, with_ends, zero_bytes
from dcsvm.data.scaling import Part, PartsInMemory, Scaling, Source
from dcsvm.machine import usable_threads

PART_BYTES = 2**23  # bytes of text parsed at once into float64

Buffer = bytes | bytearray | FileText
Serials = Literal["training", "any"]
Result = TypeVar("Result")


@dataclass(eq=False)
class SvmlightRows:
    """The rows of a LIBSVM text, a Source of rows before scaling, and their labels.

    Attributes
    ----------
    name, first_line : name of the file and number of the first line of `text`, for errors.
    first_index : index of column 0; None before the first pass over a text that decides it: 0 if a
        feature has index 0, else 1.
    lenient : accept comments, and malformed lines that LIBSVM's reader accepts.
    serials : only for a precomputed kernel; "training" for training rows, "any" for rows to
        predict, whose serial numbers are arbitrary.
    labels : float64 (n_rows,), known after a pass over the text.
    n_features : number of features, likewise.

    A pass raises DataError for text that cannot be parsed.
    """

    text: Buffer
    name: str
    first_line: int = 1
    first_index: int | None = None
    lenient: bool = False
    threads: int = 1
    serials: Serials | None = None

    def __post_init__(self) -> None:
        self.labels, self.n_features = np.zeros(0), 0
        if not len(self.text):
            raise DataError(f"{self.name}: no rows")

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    def first_pass(self, work: Callable[[Source], Result]) -> Result:
        """Return work(self), which passes over the text; repeat it if the first index is 0."""
        is_known = self.first_index is not None
        self.first_index = self.first_index if is_known else 1
        try:
            try:
                return work(self)
            except _svmlight.ZeroIndex:
                if is_known or self.serials is not None:
                    raise
                self.first_index = 0
                return work(self)
        except _svmlight.ParseError as error:
            raise DataError(f"{self.name}:{error}") from None

    def unscaled(self) -> Rows:
        """Parse the rows as they are, in the storage that suits them."""
        return self.first_pass(lambda _rows: self._unscaled())

    def _unscaled(self) -> Rows:
        text = self._parser(self.first_line)
        if self.serials is not None:
            check_room(self.name, text.n_rows * (8 + 4 * text.n_features))
            self.labels, rows = _kernel_rows(text, self.serials)
        else:
            prefix, rows = parsed_rows(text, name=self.name)
            self.labels = prefix[:, 0]
        self.n_features = rows.n_features
        return rows

    def check(self) -> None:
        """Parse the text."""

        def parse(rows: Source) -> None:
            for _ in rows:
                pass

        self.first_pass(parse)

    def __iter__(self) -> Iterator[Part]:
        """Yield batches as CSR arrays with float64 values."""
        if self.serials is not None:
            raise DataError(f"{self.name}: the values of a precomputed kernel cannot be scaled")
        labels, self.n_features = [], 0
        for part in self._parts(PART_BYTES):
            prefix, indptr, indices, values, n_features = part.csr(float64=True)
            labels.append(prefix[:, 0])
            self.n_features = max(self.n_features, n_features)
            yield indptr, indices, values
        self.labels = np.concatenate(labels)

    def take(self, row_numbers: np.ndarray) -> PartsInMemory:
        """Parse the text again; return the rows with the given indices, which ascend."""
        counts, columns, taken, begin = [np.zeros(1, np.int64)], [], [], 0
        for indptr, indices, values in self:
            lengths, end = np.diff(indptr), begin + len(indptr) - 1
            first, last = np.searchsorted(row_numbers, [begin, end])
            is_taken = np.zeros(len(lengths), bool)
            is_taken[row_numbers[first:last] - begin] = True
            stored = np.repeat(is_taken, lengths)
            counts.append(lengths[is_taken])
            columns.append(indices[stored])
            taken.append(values[stored])
            begin = end
        indptr = np.cumsum(np.concatenate(counts))
        part = indptr, np.concatenate(columns), np.concatenate(taken)
        return PartsInMemory([part], self.n_features)

    def _parser(self, first_line: int, part: tuple[int, int] | None = None) -> _svmlight.Text:
        assert self.first_index is not None  # a pass begins with `first_pass`
        return _svmlight.Text(
            self.text, 1, first_line, self.threads,
            lenient=self.lenient, serials=self.serials, first_index=self.first_index, part=part,
        )  # fmt: skip

    def _parts(self, n_bytes: int) -> Iterator[_svmlight.Text]:
        """Yield the text in parts of whole lines, about `n_bytes` each."""
        begin, line = 0, self.first_line
        while begin < len(self.text):
            newline = self.text.find(b"\n", begin + n_bytes)
            end = newline + 1 if newline >= 0 else len(self.text)
            part = self._parser(line, (begin, end))
            yield part
            begin, line = end, line + part.n_lines


def is_comment(text: bytes) -> bool:
    """Return whether all lines of a text are comments."""
    return all(line.lstrip(b" \t").startswith(b"#") for line in io.BytesIO(text))


def check_lines(text: bytes, name: str, *, lenient: bool = False, first_index: int = 1) -> None:
    """Check the first lines of a LIBSVM file. Raises DataError for an empty or an invalid text."""
    rows = SvmlightRows(text, name, first_index=first_index, lenient=lenient)
    if not (lenient and is_comment(text)):  # rows may follow
        rows.check()


def parsed_rows(
    text: _svmlight.Text, form: str | None = None, *, name: str = "a model"
) -> tuple[np.ndarray, Rows]:
    """Parse a text. Return (numbers before the features, rows).

    `form` is "dense", "sparse", or None for the storage that `storage_of` chooses. Raises
    DataError, which names the file `name`, if the rows do not fit in memory.
    """
    if form == "sparse":
        return _csr_rows(text, name)
    # n_pairs also counts explicit zeros: without them, the rows may need a sparser storage
    likely = storage_of(text.n_rows, text.n_features, text.n_pairs, are_bytes=False)
    tried: list[Storage] = []
    if form == "dense" or likely is Storage.FLOATS:
        tried = [Storage.BYTES, Storage.FLOATS]
    elif likely is Storage.PACKED:
        tried = [Storage.BYTES]
    for storage in tried:
        parsed = _dense_rows(text, storage, name)
        if parsed is None:
            continue
        prefix, dense, n_values = parsed
        n_rows, n_features = dense.shape
        chosen = storage_of(n_rows, n_features, n_values, are_bytes=storage is Storage.BYTES)
        if form == "dense" or storage is chosen:
            return prefix, Rows(n_rows, n_features, dense=dense)
        del parsed, prefix, dense
    prefix, csr = _csr_rows(text, name)
    storage = storage_of(
        csr.n_samples, csr.n_features, csr.count_values(), are_bytes=csr.are_bytes()
    )
    return prefix, csr.in_storage(storage)


def _dense_rows(
    text: _svmlight.Text, storage: Storage, name: str
) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Parse a text. Return (numbers before the features, dense rows, number of nonzero values).

    Returns None if `storage` is BYTES but bytes cannot hold the values, or do not suit the number
    of features.
    """
    shape, make = (text.n_rows, text.n_features), partial(zeros, name=name)
    if storage is Storage.FLOATS:
        rows = make(shape, np.float32)
        prefix, n_values = text.dense(rows)
        return prefix, rows, n_values
    if not _core.suit_bytes(text.n_features):
        return None
    rows = zero_bytes(*shape, zeros=make)
    parsed = text.bytes(with_ends(rows))
    return None if parsed is None else (parsed[0], rows, parsed[1])


def _csr_rows(text: _svmlight.Text, name: str) -> tuple[np.ndarray, Rows]:
    in_memory = 16 * text.n_rows  # labels and indptr
    check_room(name, in_memory)
    make = partial(zeros, name=name, total_bytes=in_memory + BYTES_OF_VALUE * text.n_pairs)
    prefix, indptr, indices, values, n_features = text.csr(make=make)
    return prefix, Rows(len(prefix), n_features, indptr=indptr, indices=indices, values=values)


def _kernel_rows(text: _svmlight.Text, serials: Serials) -> tuple[np.ndarray, Rows]:
    """Parse the rows of a precomputed kernel. Return (labels, rows)."""
    if text.n_pairs < text.n_rows * (text.n_features + 1):
        text.csr()  # raises an error that names the missing value; needs no dense rows
    n_samples, n_features = text.n_rows, text.n_features
    dense = np.zeros((n_samples, n_features), np.float32)
    prefix, _ = text.dense(dense)
    columns = prefix[:, 1].astype(np.int32) - 1 if serials == "training" else None
    return prefix[:, 0].copy(), Rows(n_samples, n_features, dense=dense, columns=columns)


@dataclass(frozen=True, eq=False)
class Encoding:
    """What rows to predict share with the training rows, where it is not a Dataset or a Model."""

    table: TableEncoding | None = None
    scaling: Scaling | None = None
    first_index: int = 1
    says_first_index: bool = True


@dataclass(frozen=True)
class FileOptions:
    """How a file is read, see `Dataset.read`; None means the default."""

    format: str | None = None
    label: str | None = None
    drop: Sequence[str] = ()
    weight: str | None = None
    lenient: bool = False
    kernel_values: bool = False
    threads: int | None = None


class Encoded(Protocol):
    """What rows to predict share with the training rows: a Dataset or a Model."""

    @property
    def table(self) -> TableEncoding | None: ...

    @property
    def scaling(self) -> Scaling | None: ...

    @property
    def first_index(self) -> int: ...

    @property
    def says_first_index(self) -> bool:
        """Whether `first_index` is known to be the index of column 0 in files."""


@dataclass(frozen=True, eq=False)
class Unscaled:
    """Rows before scaling, named `name` in errors.

    `labels` (n,) is None without labels; those of a LIBSVM text are in its rows. `table` encodes
    the columns of a table. `description` is a line on a table.
    """

    name: str
    rows: Source
    labels: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    table: TableEncoding | None = None
    description: str = ""


def read_values(X: Any, like: Encoded | None) -> Unscaled:
    """Take the rows of an array, a sparse matrix or a data frame. Raises ValueError."""
    name = "X" if like is None else "the rows"
    table = None if like is None else like.table
    check_collected(X)
    if is_frame(X) and like is not None and table is None:
        X = matrix_of(X, name)
    if is_frame(X):
        frame = frame_of(X, name)
        table = table or encoding_of(frame)
        return Unscaled(name, table.rows(frame), table=table)
    if table is not None:
        return Unscaled(name, _rows_of_matrix(X, table), table=table)
    parts = Float64Parts(X)
    if like is not None or not parts.find_gaps():
        return Unscaled(name, parts)
    frame = frame_of_matrix(parts.rows)
    table = encoding_of(frame)
    return Unscaled(name, table.rows(frame), table=table)


def read_file(path: str, like: Encoded | None, options: FileOptions) -> Unscaled:
    """Read a file, with the options of `Dataset.read`. Raises DataError."""
    kind = kind_of(path, options, like)
    if kind is None:
        return Unscaled(path, text_rows(read_text(path), path, like, options))
    from dcsvm.data.tables import other_table, training_table

    if like is None:
        found = training_table(path, kind, options.label, options.drop, options.weight)
    else:
        assert like.table is not None
        found = other_table(path, kind, like.table, options.label)
    return Unscaled(
        path, found.rows, found.labels, found.sample_weight, found.encoding, found.description
    )


def text_rows(
    text: Buffer, name: str, like: Encoded | None, options: FileOptions, first_line: int = 1
) -> SvmlightRows:
    """Return the rows of a LIBSVM text, read with the options of `Dataset.read`."""
    is_known = like is not None and like.says_first_index
    return SvmlightRows(
        text, name, first_line, like.first_index if is_known and like is not None else None,
        lenient=options.lenient, threads=usable_threads(options.threads),
        serials=("training" if like is None else "any") if options.kernel_values else None,
    )  # fmt: skip


def kind_of(path: str, options: FileOptions, like: Encoded | None) -> str | None:
    """Return the format of a table, or None for LIBSVM text.

    Raises DataError if options of a table are given for LIBSVM text, or if only one of the file and
    the training set is a table.
    """
    kind = table_format(path, options.format)
    given = [name for name in ("label", "drop", "weight") if getattr(options, name)]
    if like is None:
        if kind is None and given:
            raise DataError(
                f"{path}: --{given[0]} is for tables, and the file is read as LIBSVM text; "
                "--format names another format"
            )
        return kind
    if kind is not None and like.table is None:
        raise DataError(f"{path}: the model was not trained on a table: give LIBSVM text")
    if kind is None and like.table is not None:
        raise DataError(
            f"{path}: the model was trained on a table: give a table, with its ending or --format"
        )
    return kind


def encoding_of(frame: Frame) -> TableEncoding:
    """Return the encoding of a frame; warn of columns without values. Raises DataError."""
    encoding = TableEncoding.of(frame)
    for name in sorted(set(frame.names) - {column.name for column in encoding.columns}):
        warnings.warn(f"column {name} has no values: dropped", stacklevel=5)
    return encoding


def _rows_of_matrix(X: Any, table: TableEncoding) -> Source:
    """Return the rows of an array for the model of a table.

    The array has the columns of a table of numbers, or the encoded features. Raises ValueError.
    """
    parts = Float64Parts(X)
    if table.is_of_matrix:
        n_features = table.n_columns_of_matrix
        if parts.is_sparse or parts.n_features < n_features:
            given = "a sparse matrix" if parts.is_sparse else f"{parts.n_features} features"
            raise ValueError(
                f"the model was trained on an array of {n_features} features with missing values, "
                f"got {given}"
            )
        return table.rows(frame_of_matrix(parts.rows))
    if table.are_numbers and parts.n_features == len(table.columns) and not parts.is_sparse:
        names = tuple(column.name for column in table.columns)
        return table.rows(frame_of_matrix(parts.rows, names))
    if parts.n_features != table.n_features:
        raise ValueError(
            f"the model was trained on a table: give a data frame, or {table.n_features} features "
            f"instead of {parts.n_features}"
        )
    return parts
