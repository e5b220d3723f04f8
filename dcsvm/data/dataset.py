"""Read labels and rows from LIBSVM text.

Labels are float64. The parser is in csrc/text, and scaling is in scaling.py. This module does not
split or weight the data, and does not interpret labels.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypedDict

import numpy as np

from dcsvm import _core, _svmlight
from dcsvm.data.allocation import zeros
from dcsvm.data.arrays import BYTES_OF_VALUE
from dcsvm.data.columns import TableEncoding
from dcsvm.data.files import DataError, FileText, check_room, read_text, text_pieces
from dcsvm.data.rows import Rows, Storage, storage_of, with_ends, zero_bytes
from dcsvm.data.scaling import Extremes, Part, Scaling, quantile_scaling

if TYPE_CHECKING:
    from typing_extensions import Unpack

PART_BYTES = 2**23  # bytes of text parsed at once when rows are scaled
# scalings computed from the data
OWN_RANGES: Final = "own ranges"
OWN_QUANTILES: Final = "own quantiles"

Buffer = bytes | bytearray | FileText
Serials = Literal["training", "any"]
ScalingOption = Scaling | Literal["own ranges", "own quantiles"]


class ReadOptions(TypedDict, total=False):
    """Keyword arguments of the readers, see `parse_dataset`."""

    first_index: int | None
    lenient: bool
    scaling: ScalingOption | None
    serials: Serials | None
    threads: int


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with their labels.

    `labels` is float64 (n_samples,). `scaling` has been applied to the rows; None if they
    are not scaled. `first_index` is the index of column 0 in the text, 0 or 1. `n_features` counts
    the features of the text, including features that the scaling drops. `table` is the encoding of
    a table, None for LIBSVM text. `sample_weight` is float64 (n_samples,) or None. `has_labels` is
    False for rows to predict without a label column; their labels are zeros.
    """

    rows: Rows
    labels: np.ndarray
    scaling: Scaling | None = None
    first_index: int = 1
    n_features: int = 0
    table: TableEncoding | None = None
    sample_weight: np.ndarray | None = None
    has_labels: bool = True


class Unscaled(Protocol):
    """Rows before they are scaled or rounded: batches as CSR arrays with float64 values."""

    n_features: int

    def __iter__(self) -> Iterator[Part]: ...

    def take(self, row_numbers: np.ndarray) -> Iterable[Part]:
        """Copy the rows with the given indices, which ascend."""


@dataclass(frozen=True, eq=False)
class UnscaledSet:
    """Training rows before scaling; the other attributes are as in Dataset."""

    rows: Unscaled
    labels: np.ndarray
    first_index: int = 1
    table: TableEncoding | None = None
    sample_weight: np.ndarray | None = None


@dataclass(frozen=True)
class _Source:
    """LIBSVM text and the options of its parser."""

    text: Buffer
    name: str
    first_line: int = 1
    first_index: int = 1
    lenient: bool = False
    threads: int = 1

    def parser(
        self, first_line: int, serials: Serials | None = None, part: tuple[int, int] | None = None
    ) -> _svmlight.Text:
        return _svmlight.Text(
            self.text, 1, first_line, self.threads,
            lenient=self.lenient, serials=serials, first_index=self.first_index, part=part,
        )  # fmt: skip

    def parts(self, n_bytes: int) -> Iterator[_svmlight.Text]:
        """Yield the text in parts of whole lines, about `n_bytes` each."""
        begin, line = 0, self.first_line
        while begin < len(self.text):
            newline = self.text.find(b"\n", begin + n_bytes)
            end = newline + 1 if newline >= 0 else len(self.text)
            part = self.parser(line, part=(begin, end))
            yield part
            begin, line = end, line + part.n_lines


def read_dataset(path: str | os.PathLike[str], **options: Unpack[ReadOptions]) -> Dataset:
    """Read a LIBSVM file, compressed or not, with the options of `parse_dataset`.

    "-" and /dev/stdin are the standard input, which may be a pipe. Raises DataError for a file that
    cannot be opened or parsed.
    """
    name = os.fspath(path)
    return parse_dataset(read_text(name), name, **options)


def read_pieces(path: str | os.PathLike[str], **options: Unpack[ReadOptions]) -> Iterator[Dataset]:
    """Read a LIBSVM file piece by piece; only one piece is in memory.

    Options and errors are as for `read_dataset`. Each piece has its own number of features.
    """
    name, first_line = os.fspath(path), 1
    n_rows = 0
    for text in text_pieces(name):
        if not (options.get("lenient") and _is_comment(text)):
            data = parse_dataset(text, name, first_line, **options)
            n_rows += data.rows.n_samples
            yield data
        first_line += text.count(b"\n")
    if n_rows == 0:
        raise DataError(f"{name}: no rows")


def _is_comment(text: bytes) -> bool:
    return all(line.lstrip(b" \t").startswith(b"#") for line in io.BytesIO(text))


def parse_dataset(
    text: Buffer, name: str, first_line: int = 1, **options: Unpack[ReadOptions]
) -> Dataset:
    """Parse the text of a LIBSVM file.

    `name` is the file name and `first_line` the number of the first line of `text`, both for
    errors. Options:

    - first_index: index of column 0; None (default) means 0 if a feature has index 0, else 1
    - lenient: accept comments, and malformed lines that LIBSVM's reader accepts
    - scaling: applied to the values in the text; OWN_RANGES and OWN_QUANTILES come from the data
    - serials: only for a precomputed kernel; "training" for training rows, "any" for rows to
      predict, whose serial numbers are arbitrary

    Raises DataError for text that cannot be parsed.
    """
    first_index, serials = options.get("first_index"), options.get("serials")
    lenient, threads = options.get("lenient", False), options.get("threads", 1)
    source = _Source(
        text, name, first_line, 1 if first_index is None else first_index, lenient, threads
    )
    scaling = options.get("scaling")
    try:
        return _parsed(source, scaling, serials)
    except _svmlight.ZeroIndex as error:
        if first_index is None and serials is None:
            return _parsed(replace(source, first_index=0), scaling, serials)
        raise DataError(f"{name}:{error}") from None


def _parsed(source: _Source, scaling: ScalingOption | None, serials: Serials | None) -> Dataset:
    """Parse text with a known first index. Raises ZeroIndex if it is 1 but an index is 0."""
    name = source.name
    if serials is not None and scaling is not None:
        raise DataError(f"{name}: the values of a precomputed kernel cannot be scaled")
    if not len(source.text):
        raise DataError(f"{name}: no rows")
    try:
        if scaling is not None:
            return _scaled_dataset(source, scaling)
        text = source.parser(source.first_line, serials)
        if serials is not None:
            check_room(name, text.n_rows * (8 + 4 * text.n_features))
            return _kernel_dataset(text, serials)
        prefix, rows = parsed_rows(text, name=name)
    except _svmlight.ZeroIndex:
        raise
    except _svmlight.ParseError as error:
        raise DataError(f"{name}:{error}") from None
    return Dataset(rows, prefix[:, 0], None, source.first_index, rows.n_features)


def _scaled_dataset(source: _Source, scaling: ScalingOption) -> Dataset:
    name, parts = source.name, _Float64Text(source)
    if scaling == OWN_QUANTILES:
        scaling = quantile_scaling(parts, name, source.first_index)
    elif scaling == OWN_RANGES:
        scaling = Extremes.of(parts).scaling(name, source.first_index)
    assert isinstance(scaling, Scaling)
    scaling = scaling.with_first_index(source.first_index)
    rows = scaling.scaled_rows(parts, name)
    labels = scaling.scaled_labels(np.concatenate(parts.labels), name)
    return Dataset(rows, labels, scaling, source.first_index, parts.n_features)


def read_unscaled(
    path: str | os.PathLike[str], *, lenient: bool = False, threads: int = 1
) -> UnscaledSet:
    """Read a LIBSVM file to be scaled later; `take` parses its text again.

    Raises DataError as `read_dataset`.
    """
    name = os.fspath(path)
    source = _Source(read_text(name), name, lenient=lenient, threads=threads)
    if not len(source.text):
        raise DataError(f"{name}: no rows")
    rows = _Float64Text(source)
    try:
        rows.check()
    except _svmlight.ZeroIndex:
        rows = _Float64Text(replace(source, first_index=0))
        rows.check()
    return UnscaledSet(rows, np.concatenate(rows.labels), rows.source.first_index)


def extremes_of_text(
    text: Buffer, name: str, *, lenient: bool = False, first_line: int = 1
) -> Extremes:
    """Return the extremes of the features of a text. Raises DataError for invalid text."""
    try:
        return Extremes.of(_Float64Text(_Source(text, name, first_line, lenient=lenient)))
    except _svmlight.ZeroIndex as error:
        raise DataError(f"{name}:{error}") from None


def check_lines(text: bytes, name: str, *, lenient: bool = False, first_index: int = 1) -> None:
    """Check the first lines of a LIBSVM file. Raises DataError for an empty or an invalid text."""
    if not text:
        raise DataError(f"{name}: no rows")
    if lenient and _is_comment(text):  # rows may follow
        return
    try:
        _Float64Text(_Source(text, name, first_index=first_index, lenient=lenient)).check()
    except _svmlight.ZeroIndex as error:
        raise DataError(f"{name}:{error}") from None


class _Float64Text:
    """Rows of a text in batches of CSR arrays with float64 values, for `Scaling.scaled_rows`.

    After an iteration, `labels` has the labels of each batch, and `n_features` is the number of
    features in the whole text. Iterating raises DataError, and ZeroIndex if the first index is 1
    and an index is 0.
    """

    def __init__(self, source: _Source):
        self.source, self.n_features = source, 0
        self.labels: list[np.ndarray] = []

    def __iter__(self) -> Iterator[Part]:
        self.labels = []
        try:
            for part in self.source.parts(PART_BYTES):
                prefix, indptr, indices, values, n_features = part.csr(float64=True)
                self.labels.append(prefix[:, 0])
                self.n_features = max(self.n_features, n_features)
                yield indptr, indices, values
        except _svmlight.ZeroIndex:
            raise
        except _svmlight.ParseError as error:
            raise DataError(f"{self.source.name}:{error}") from None

    def check(self) -> None:
        """Parse the text."""
        for _ in self:
            pass

    def take(self, row_numbers: np.ndarray) -> list[Part]:
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
        return [(np.cumsum(np.concatenate(counts)), np.concatenate(columns), np.concatenate(taken))]


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


def _kernel_dataset(text: _svmlight.Text, serials: Serials) -> Dataset:
    if text.n_pairs < text.n_rows * (text.n_features + 1):
        text.csr()  # raises an error that names the missing value; needs no dense rows
    n_samples, n_features = text.n_rows, text.n_features
    dense = np.zeros((n_samples, n_features), np.float32)
    prefix, _ = text.dense(dense)
    columns = prefix[:, 1].astype(np.int32) - 1 if serials == "training" else None
    return Dataset(Rows(n_samples, n_features, dense=dense, columns=columns), prefix[:, 0].copy())
