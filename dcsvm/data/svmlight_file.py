"""Read labels and rows from LIBSVM text. The parser is in csrc/text."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import numpy as np

from dcsvm import _core, _svmlight
from dcsvm.data.allocation import zeros
from dcsvm.data.arrays import BYTES_OF_VALUE
from dcsvm.data.files import DataError, FileText, check_room
from dcsvm.data.rows import Rows, Storage, storage_of, with_ends, zero_bytes
from dcsvm.data.scaling import Part, PartsInMemory, Source

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
