"""Sources: rows of any kind of data before scaling, of arrays, data frames, LIBSVM text and tables.

The parser of LIBSVM text is in csrc/text.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from dcsvm import _core, _svmlight
from dcsvm.data.arrays import (
    BATCH_SIZE,
    BYTES_OF_VALUE,
    Csr,
    as_matrix,
    check_finite,
    check_form,
    slices,
    zeros,
)
from dcsvm.data.columns import CATEGORY, Frame, TableEncoding, labels_of
from dcsvm.data.dialect import table_hint
from dcsvm.data.files import (
    HEAD,
    DataError,
    FileText,
    as_file,
    check_room,
    slices_of_lines,
    table_format,
)
from dcsvm.data.frames import check_collected, frame_of, frame_of_matrix, is_frame, matrix_of
from dcsvm.data.rows import Rows, Storage, storage_of, with_ends, zero_bytes
from dcsvm.data.scaling import (
    ONE_HOT,
    Extremes,
    Scaling,
    quantile_scaling,
    rounded_away,
    rounding_of,
    shift_of,
)
from dcsvm.data.used_columns import columns_far_from_zero
from dcsvm.machine import usable_threads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

PART_BYTES = 2**21  # of text parsed at once into float64; scaling takes some ten bytes for each
SHOWN = 3  # unknown categories in a warning

Buffer = bytes | bytearray | FileText
Encoded = Any  # a Dataset, a Model or an Encoding: rows to predict are encoded as its rows
Serials = Literal["training", "any"]
Result = TypeVar("Result")


class Source:
    """Rows before scaling, with what is known of them; iterate for batches with float64 values.

    `name` is for errors. `labels` (n_rows,) is None without labels. `table` encodes the columns of
    a table, and `description` is a line on it. `first_index` is the index of column 0 in the file.
    """

    name: str
    n_rows: int
    n_features: int
    labels: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    table: TableEncoding | None = None
    description: str = ""
    first_index: int = 1

    def __iter__(self) -> Iterator[Csr]:
        raise NotImplementedError

    def take(self, row_numbers: np.ndarray) -> Source:
        """Copy the rows with the given indices, which ascend, without their labels."""
        raise NotImplementedError

    def fits(self, n_features: int) -> bool:
        """Return whether a scaling made of arrays or tables with `n_features` features suits."""
        return self.n_features == n_features

    def scaling(self, kind: str) -> Scaling:
        """Compute a scaling of these rows: "auto" or "quantile"."""
        one_hot = None if self.table is None else self.table.one_hot
        if kind == "auto":
            return Extremes.of(self).scaling(self.name, self.first_index, one_hot)
        return quantile_scaling(self, self.name, self.first_index, one_hot)

    def scaled(self, scaling: Scaling) -> Rows:
        """Return the scaled rows. Raises DataError for values beyond float32."""
        return scaling.scaled_rows(self, self.name)

    def shifted(self, scaling: Scaling) -> Rows:
        """Return the rows as `unscaled`, but for the columns of a shift. Raises ValueError."""
        rows = self.unscaled()  # tells the first index
        scaling = scaling.with_first_index(self.first_index)
        values = self.of_columns(scaling.columns)
        return scaling.shifted(rows, values).in_chosen_storage()

    def of_columns(self, columns: np.ndarray) -> np.ndarray:
        """Return the values of ascending columns, float64 (n_rows, n_columns)."""
        none = np.zeros((0, len(columns)))
        return np.concatenate([none, *(part.of_columns(columns) for part in self)])

    def rounded_away(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns that float32 rounds too much, ascending, and their `rounding_of`.

        `rows` are these as float32. Columns whose first batch is exact in float32, such as years,
        are taken for exact, so that a text is rarely read again.
        """
        columns = columns_far_from_zero(rows)
        if len(columns):
            first = next(iter(copy(self))).of_columns(columns)
            columns = columns[rounding_of(first)[2] > 0]
        if len(columns) == 0:
            return columns, np.zeros((3, 0))
        return rounded_away(columns, rounding_of(self.of_columns(columns)))

    def unscaled(self) -> Rows:
        """Return the rows as they are, in the storage that suits them. Raises ValueError."""
        return self.scaled(Scaling.identity(self.n_features, self.name, self.first_index))


class MatrixRows(Source):
    """The rows (n, d) of an array or a sparse matrix of real numbers.

    An iteration raises ValueError for values that are not finite.
    """

    def __init__(self, X: ArrayLike, name: str = "X", table: TableEncoding | None = None):
        self.name, self.table, self.is_sparse = name, table, hasattr(X, "tocsr")
        self.matrix: Any  # a CSR matrix or an ndarray
        self.matrix = X.tocsr() if hasattr(X, "tocsr") else as_matrix(X)
        check_form(self.matrix.shape, self.matrix.dtype)
        if self.is_sparse and not self.matrix.has_canonical_format:
            self.matrix = self.matrix.copy()  # of the caller
            self.matrix.sum_duplicates()
        self.n_rows, self.n_features = self.matrix.shape
        n_values = self.matrix.nnz if self.is_sparse else self.matrix.size
        mean_values = max(n_values // max(self.n_rows, 1), 1)
        self.slices = slices(self.n_rows, BATCH_SIZE // mean_values)

    def find_gaps(self) -> bool:
        """Return whether values of an array are nan; a sparse matrix has no missing values.

        Raises ValueError for other values that are not finite.
        """
        if self.matrix.dtype.kind != "f":
            return False
        values = self.matrix.data if self.is_sparse else None
        parts = (self.matrix[batch] for batch in self.slices) if values is None else [values]
        if all(np.isfinite(part).all() for part in parts):
            return False
        if not self.is_sparse and any(np.isnan(self.matrix[batch]).any() for batch in self.slices):
            return True
        for _ in self:  # raises the error of the value
            pass
        raise AssertionError("a value is not finite")

    def __iter__(self) -> Iterator[Csr]:
        for batch in self.slices:
            part = self.matrix[batch]
            if self.is_sparse:
                csr = Csr(part.indptr, part.indices, part.data.astype(np.float64))
            else:
                csr = Csr.of_dense(part, np.float64)

            def locate(k: int, csr: Csr = csr, first: int = batch.start) -> tuple[int, int]:
                row, column = csr.place_of(k)
                return first + row, column

            check_finite(csr.values, locate, "is not finite")
            yield csr

    def take(self, row_numbers: np.ndarray) -> MatrixRows:
        return MatrixRows(self.matrix[row_numbers], self.name, self.table)

    def of_columns(self, columns: np.ndarray) -> np.ndarray:
        if self.is_sparse or not self.n_features > columns.max(initial=-1):
            return super().of_columns(columns)
        return self.matrix[:, columns].astype(np.float64)

    def fits(self, n_features: int) -> bool:
        """Sparse rows may lack the last features."""
        is_narrow = self.is_sparse and self.n_features < n_features
        return is_narrow or self.n_features == n_features

    def unscaled(self) -> Rows:
        return Rows.from_array(self.matrix)


@dataclass(eq=False)
class SvmlightRows(Source):
    """The rows of a LIBSVM text, or some of them, and their labels.

    Attributes
    ----------
    name, first_line : name of the file and number of the first line of `text`, for errors.
    first_index : index of column 0. Unless `is_index_known`, the first pass over the text decides:
        it is 0 if a feature has index 0, else 1.
    lenient : accept comments, and malformed lines that LIBSVM's reader accepts.
    serials : only for a precomputed kernel; "training" for training rows, "any" for rows to
        predict, whose serial numbers are arbitrary.
    labels : float64 (n_rows,), known after a pass over the text, as are n_rows and n_features.

    A pass raises DataError for text that cannot be parsed.
    """

    text: Buffer
    name: str
    first_line: int = 1
    first_index: int = 1
    is_index_known: bool = False
    lenient: bool = False
    threads: int = 1
    serials: Serials | None = None
    labels: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.labels, self.n_rows, self.n_features = np.zeros(0), 0, 0
        self.taken: Csr | None = None  # the chosen rows
        if not len(self.text):
            raise DataError(f"{self.name}: no rows")

    def first_pass(self, work: Callable[[], Result]) -> Result:
        """Return work(), which passes over the text; repeat it if the first index is 0."""
        try:
            try:
                return work()
            except _svmlight.ZeroIndex:
                if self.is_index_known or self.serials is not None:
                    raise
                self.first_index = 0
                return work()
        except _svmlight.ParseError as error:
            hint = table_hint(bytes(self.text[:HEAD]))
            raise DataError(f"{self.name}:{error}{hint}") from None

    def fits(self, n_features: int) -> bool:  # noqa: ARG002  # features may be absent in a text
        return True

    def scaling(self, kind: str) -> Scaling:
        return self.first_pass(partial(super().scaling, kind))

    def scaled(self, scaling: Scaling) -> Rows:
        return self.first_pass(
            lambda: scaling.with_first_index(self.first_index).scaled_rows(self, self.name)
        )

    def unscaled(self) -> Rows:
        """Parse the text into the rows, which takes one pass."""
        return self.first_pass(self._parsed) if self.taken is None else super().unscaled()

    def _parsed(self) -> Rows:
        text = self._parser(self.first_line)
        if self.serials is not None:
            check_room(self.name, text.n_rows * (8 + 4 * text.n_features))
            labels, rows = _kernel_rows(text, self.serials)
        else:
            prefix, rows = parsed_rows(text, name=self.name)
            labels = prefix[:, 0]
        self.labels, self.n_rows, self.n_features = labels, len(labels), rows.n_features
        return rows

    def check(self) -> None:
        """Parse the text. Raises DataError."""
        self.first_pass(lambda: [None for _ in self])

    def __iter__(self) -> Iterator[Csr]:
        if self.taken is not None:
            yield self.taken
            return
        if self.serials is not None:
            raise DataError(f"{self.name}: the values of a precomputed kernel cannot be scaled")
        labels, self.n_features = [], 0
        for part in self._parts(PART_BYTES):
            prefix, indptr, indices, values, n_features = part.csr(float64=True)
            labels.append(prefix[:, 0])
            self.n_features = max(self.n_features, n_features)
            yield Csr(indptr, indices, values)
        self.labels = np.concatenate(labels)
        self.n_rows = len(self.labels)

    def take(self, row_numbers: np.ndarray) -> SvmlightRows:
        """Copy the rows with the given indices, which ascend: the text is parsed again."""
        parts, begin = [], 0
        for part in self:
            end = begin + len(part.indptr) - 1
            first, last = np.searchsorted(row_numbers, [begin, end])
            parts.append(part.take(row_numbers[first:last] - begin))
            begin = end
        taken = copy(self)
        taken.text, taken.taken = b"", Csr.joined(parts)
        taken.labels, taken.n_rows = self.labels[row_numbers], len(row_numbers)
        return taken

    def _parser(self, first_line: int, part: tuple[int, int] | None = None) -> _svmlight.Text:
        return _svmlight.Text(
            self.text, 1, first_line, self.threads,
            lenient=self.lenient, serials=self.serials, first_index=self.first_index, part=part,
        )  # fmt: skip

    def _parts(self, n_bytes: int) -> Iterator[_svmlight.Text]:
        """Yield the text in parts of whole lines, about `n_bytes` each."""
        line = self.first_line
        for lines in slices_of_lines(self.text, n_bytes):
            part = self._parser(line, (lines.start, lines.stop))
            yield part
            line += part.n_lines


def is_comment(text: Buffer) -> bool:
    """Return whether all lines of a text are comments."""
    return all(line.lstrip(b" \t").startswith(b"#") for line in as_file(text))


def check_lines(text: bytes, name: str, *, lenient: bool = False, first_index: int = 1) -> None:
    """Check the first lines of a LIBSVM file. Raises DataError for an empty or an invalid text."""
    rows = SvmlightRows(text, name, first_index=first_index, is_index_known=True, lenient=lenient)
    if not (lenient and is_comment(text)):  # rows may follow
        rows.check()


def parsed_rows(
    text: _svmlight.Text, kind: str | None = None, *, name: str = "a model"
) -> tuple[np.ndarray, Rows]:
    """Parse a text. Return (numbers before the features, rows).

    `kind` is "dense", "sparse", or None for the storage that `storage_of` chooses. Raises
    DataError, which names the file `name`, if the rows do not fit in memory.
    """
    if kind == "sparse":
        return _csr_rows(text, name)
    # n_pairs also counts explicit zeros: without them, the rows may need a sparser storage
    likely = storage_of(text.n_rows, text.n_features, text.n_pairs, are_bytes=False)
    tried: list[Storage] = []
    if kind == "dense" or likely is Storage.FLOATS:
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
        if kind == "dense" or storage is chosen:
            return prefix, Rows(n_rows, n_features, dense=dense)
        del parsed, prefix, dense
    prefix, rows = _csr_rows(text, name)
    return prefix, rows.in_chosen_storage()


def shift_of_text(text: _svmlight.Text, rows: Rows, name: str, first_index: int) -> Scaling | None:
    """Return the shift of the rows of a text, None if float32 keeps their differences."""
    columns = columns_far_from_zero(rows)
    if len(columns):
        columns, rounding = rounded_away(columns, rounding_of(_float64(text).of_columns(columns)))
    return shift_of(columns, rounding, name, first_index) if len(columns) else None


def shifted_text(text: _svmlight.Text, rows: Rows, shift: Scaling | None, kind: str | None) -> Rows:
    """Shift the rows of a text, if they have a shift; `kind` is as of `parsed_rows`."""
    if shift is None:
        return rows
    rows = shift.shifted(rows, _float64(text).of_columns(shift.columns))
    if kind is None:
        return rows.in_chosen_storage()
    is_bytes = kind == "dense" and rows.are_bytes() and _core.suit_bytes(rows.n_features)
    return rows.in_storage(Storage.BYTES) if is_bytes else rows


def _float64(text: _svmlight.Text) -> Csr:
    return Csr(*text.csr(float64=True)[1:4])


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


class TableRows(Source):
    """The rows of a table, encoded; `label` is the column of their labels, None without labels.

    With `may_lack` rows may lack their label, which is then nan or ""; `are_numbers` says that the
    labels of the training set are. `unknown` counts the categories that the training set lacks, by
    column and text. Raises DataError.
    """

    table: TableEncoding

    def __init__(
        self,
        table: TableEncoding,
        frame: Frame,
        label: str | None = None,
        sample_weight: np.ndarray | None = None,
        name: str = "",
        *,
        may_lack: bool = False,
        are_numbers: bool = False,
    ):
        self.table, self.frame = table, table.matched(frame, label)
        self.name, self.n_rows = name or frame.name, frame.n_rows
        self.n_features, self.sample_weight = table.n_features, sample_weight
        self.unknown: dict[str, dict[str, int]] = {}
        self.encoded = [column.encode(self.frame, self.unknown) for column in table.columns]
        self.first_features = table.start[:-1].tolist()  # of each column
        self.row_numbers: np.ndarray = np.arange(self.n_rows)
        self.labels = None
        if label is not None:
            self.labels = labels_of(frame, label, may_lack=may_lack, are_numbers=are_numbers)

    def __iter__(self) -> Iterator[Csr]:
        for batch in slices(self.n_rows, BATCH_SIZE // max(2 * len(self.encoded), 1)):
            yield self._csr(batch)

    def _csr(self, batch: slice) -> Csr:
        n_rows = batch.stop - batch.start
        blocks: list[tuple[np.ndarray, np.ndarray]] = []  # (feature, value) of each row
        columns = zip(self.encoded, self.first_features, self.table.columns, strict=True)
        for encoded, first, column in columns:
            codes = numbers = encoded[batch]
            if column.kind == CATEGORY:
                blocks.append((first + codes, np.where(codes >= 0, ONE_HOT, 0.0)))
                continue
            for k, values in enumerate(column.features(numbers)):
                blocks.append((np.full(n_rows, first + k), values))
        if not blocks:
            return Csr(np.zeros(n_rows + 1, np.int64), np.zeros(0, np.int64), np.zeros(0))
        features, values = (np.stack([block[k] for block in blocks], axis=1) for k in (0, 1))
        present = values != 0
        indptr = np.concatenate(([0], np.cumsum(present.sum(axis=1))))
        return Csr(indptr, features[present].astype(np.int64), values[present])

    def take(self, row_numbers: np.ndarray) -> TableRows:
        taken = copy(self)
        taken.row_numbers = self.row_numbers[row_numbers]
        taken.n_rows = len(taken.row_numbers)
        taken.encoded = [values[row_numbers] for values in self.encoded]
        return taken

    def scaled(self, scaling: Scaling) -> Rows:
        return scaling.scaled_rows(self, self.name, self.error)

    def error(self, row: int, feature: int, reason: str) -> DataError:
        """Return an error that names the file, the line and the column of a feature."""
        column = self.table.columns[bisect_right(self.first_features, feature) - 1]
        return self.frame.error(column.name, reason, int(self.row_numbers[row]))

    def warnings(self) -> list[str]:
        """Return a sentence for each column with unknown categories."""
        sentences = []
        for name, counts in self.unknown.items():
            shown = ", ".join(repr(text) if text else "missing" for text in sorted(counts)[:SHOWN])
            more = ", ..." if len(counts) > SHOWN else ""
            n_rows = sum(counts.values())
            sentences.append(
                f"column {name}: {n_rows} row{'s'[: n_rows != 1]} with categories that the "
                f"training set lacks: {shown}{more}"
            )
        return sentences


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
    header: bool | None = None
    label: str | None = None
    is_labelled: bool = True
    drop: Sequence[str] = ()
    category: Sequence[str] = ()
    weight: str | None = None
    lenient: bool = False
    kernel_values: bool = False
    threads: int | None = None


def read_values(X: Any, like: Encoded | None) -> Source:
    """Take the rows of an array, a sparse matrix or a data frame. Raises ValueError."""
    name = "X" if like is None else "the rows"
    table = None if like is None else like.table
    check_collected(X)
    if is_frame(X) and like is not None and table is None:
        X = matrix_of(X, name)
    if is_frame(X):
        frame = frame_of(X, name)
        return TableRows(table or encoding_of(frame), frame)
    rows = MatrixRows(X, name, table)
    if table is not None:
        return _in_columns(rows, table)
    if like is not None or not rows.find_gaps():
        return rows
    frame = frame_of_matrix(rows.matrix)
    return TableRows(encoding_of(frame), frame)


def text_rows(
    text: Buffer, name: str, like: Encoded | None, options: FileOptions, first_line: int = 1
) -> SvmlightRows:
    """Return the rows of a LIBSVM text, read with the options of `Dataset.read`."""
    encoding = Encoding(says_first_index=False) if like is None else like
    return SvmlightRows(
        text, name, first_line, encoding.first_index if encoding.says_first_index else 1,
        encoding.says_first_index,
        lenient=options.lenient, threads=usable_threads(options.threads),
        serials=("training" if like is None else "any") if options.kernel_values else None,
    )  # fmt: skip


def kind_of(path: str, options: FileOptions, like: Encoded | None) -> str | None:
    """Return the format of a table, or None for LIBSVM text.

    Raises DataError if options of a table are given for LIBSVM text, or if only one of the file and
    the training set is a table.
    """
    kind = table_format(path, options.format)
    of_tables = ("label", "drop", "category", "weight")
    given = [name for name in of_tables if getattr(options, name)]
    given += [] if options.header is None else ["header" if options.header else "no-header"]
    # without a model the ending or --format decides; with one, both must be of a kind
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


def encoding_of(
    frame: Frame,
    label: str | None = None,
    dropped: Sequence[str] = (),
    prefix: str = "",
    categories: Sequence[str] = (),
) -> TableEncoding:
    """Return the encoding of a frame without some columns, see `TableEncoding.of`.

    Columns that are left out or doubtful give a warning, which begins with `prefix`. Raises
    DataError.
    """
    encoding = TableEncoding.of(frame, label, dropped, categories)
    for sentence in encoding.warnings:
        warnings.warn(f"{prefix}{sentence}", stacklevel=5)
    if frame.names and not encoding.columns:
        raise DataError(f"{prefix}no column is left for features")
    return encoding


def _in_columns(rows: MatrixRows, table: TableEncoding) -> Source:
    """Return the rows of an array for the model of a table. Raises ValueError.

    The array has the columns of a table of numbers, or the encoded features.
    """
    # an array with gaps was trained as columns without names
    if table.is_of_matrix:
        n_features = table.n_columns_of_matrix
        if rows.is_sparse or rows.n_features < n_features:
            given = "a sparse matrix" if rows.is_sparse else f"{rows.n_features} features"
            raise ValueError(
                f"the model was trained on an array of {n_features} features with missing values, "
                f"got {given}"
            )
        return TableRows(table, frame_of_matrix(rows.matrix), name=rows.name)
    if table.are_numbers and rows.n_features == len(table.columns) and not rows.is_sparse:
        names = tuple(column.name for column in table.columns)
        return TableRows(table, frame_of_matrix(rows.matrix, names), name=rows.name)
    if rows.n_features != table.n_features:
        raise ValueError(
            f"the model was trained on a table: give a data frame, or {table.n_features} features "
            f"instead of {rows.n_features}"
        )
    return rows
