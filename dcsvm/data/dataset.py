"""Labels and rows read from LIBSVM text.

Labels are float64. Text is parsed in csrc/text. How data is scaled is in scaling.py. This module
does not split or weigh the data, and does not say what a label means.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from dcsvm import _core, _svmlight
from dcsvm.data.arrays import BYTES_OF_VALUE
from dcsvm.data.pieces import DataError, check_room, read_text, text_pieces
from dcsvm.data.room import zeros
from dcsvm.data.rows import Rows, Storage, storage_of, with_ends, zero_bytes
from dcsvm.data.scaling import Extremes, Scaling

PART_BYTES = 2**23  # of text that is scaled together
OWN_RANGES = "own ranges"  # in place of a scaling: of the features of the text itself


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and their labels, float64 (n_samples,); by what they were scaled, if they were; the
    index of column 0 in the text: 0 where a feature has that index, else 1; and how many features
    the text has, those that a scaling leaves out too."""

    rows: Rows
    labels: np.ndarray
    scaling: Scaling | None = None
    first_index: int = 1
    n_features: int = 0


def read_dataset(path: str | os.PathLike[str], **how) -> Dataset:
    """Read a LIBSVM file, compressed or not, `how` as in `parse_dataset`; "-" and /dev/stdin are
    the standard input, which may be a pipe.

    Raises DataError for what cannot be opened or parsed.
    """
    name = os.fspath(path)
    return parse_dataset(read_text(name), name, **how)


def read_pieces(path: str | os.PathLike[str], **how) -> Iterator[Dataset]:
    """Read a LIBSVM file piece by piece, which takes the memory of a piece; else as
    `read_dataset`, but each piece has as many features as it needs."""
    name, line = os.fspath(path), 1
    n_rows = 0
    for text in text_pieces(name):
        lines = (line.lstrip(b" \t") for line in io.BytesIO(text))
        if not (how.get("lenient") and all(one.startswith(b"#") for one in lines)):
            data = parse_dataset(text, name, first_line=line, **how)
            n_rows += data.rows.n_samples
            yield data
        line += text.count(b"\n")
    if n_rows == 0:
        raise DataError(f"{name}: no rows")


def parse_dataset(text, name: str, *, first_index: int | None = None, **how) -> Dataset:
    """Parse the text of a LIBSVM file, any buffer of bytes; `name` stands for it in errors, which
    count lines from `first_line`, 1 where it is not given.

    `first_index`, 0 or 1, is the index of column 0; None is 0 where a feature has that index, else
    1. `lenient` accepts what LIBSVM's reader drops or reads in its own way, and lines of comments.
    `scaling` is applied to the numbers in the text; OWN_RANGES is that of their own ranges.
    `serials` is for rows of a precomputed kernel: "training" or, for rows to predict, whose serial
    numbers mean nothing, "any".
    """
    try:
        return _parsed(text, name, 1 if first_index is None else first_index, **how)
    except _svmlight.ZeroIndex as error:
        if first_index is None and how.get("serials") is None:
            return _parsed(text, name, 0, **how)
        raise DataError(f"{name}:{error}") from None


def _parsed(
    text,
    name: str,
    first_index: int,
    *,
    scaling: Scaling | str | None = None,
    serials: str | None = None,
    **how,
) -> Dataset:
    """As `parse_dataset` with a known first index. Raises ZeroIndex where it is not the one."""
    if serials is not None and scaling is not None:
        raise DataError(f"{name}: the values of a precomputed kernel cannot be scaled")
    if not len(text):
        raise DataError(f"{name}: no rows")
    how = {"threads": 1, "lenient": False, "first_line": 1, "first_index": first_index, **how}
    try:
        if scaling is not None:
            parts = _Parts(text, **how)
            if scaling == OWN_RANGES:
                scaling = Extremes.of(parts).scaling(name, first_index)
            scaling = scaling.with_first_index(first_index)
            rows = scaling.scaled_rows(parts, name, how["threads"])
            labels = scaling.scaled_labels(np.concatenate(parts.labels), name)
            return Dataset(rows, labels, scaling, first_index, parts.n_features)
        all_rows = _svmlight.Text(text, serials=serials, **how)
        if serials is not None:
            check_room(name, all_rows.n_rows * (8 + 4 * all_rows.n_features))
            return _kernel_dataset(all_rows, serials)
        prefix, rows = parsed_rows(all_rows, name=name)
    except _svmlight.ZeroIndex:
        raise
    except _svmlight.ParseError as error:
        raise DataError(f"{name}:{error}") from None
    return Dataset(rows, prefix[:, 0], None, first_index, rows.n_features)


def _texts(text, n_bytes: int, first_line: int, **how) -> Iterator[_svmlight.Text]:
    """Parts of a text of about so many bytes, which end with a line."""
    begin, line = 0, first_line
    while begin < len(text):
        newline = text.find(b"\n", begin + n_bytes)
        end = newline + 1 if newline >= 0 else len(text)
        part = _svmlight.Text(memoryview(text)[begin:end], first_line=line, **how)
        yield part
        begin, line = end, line + part.n_lines


def extremes_of_text(text, name: str, *, lenient: bool = False, first_line: int = 1) -> Extremes:
    """The extremes of the features of a text, by which it can be scaled. Raises DataError."""
    try:
        return Extremes.of(_Parts(text, first_line=first_line, threads=1, lenient=lenient))
    except _svmlight.ParseError as error:
        raise DataError(f"{name}:{error}") from None


class _Parts:
    """The rows of a text as CSR arrays (indptr, indices, values) with float64 values, part by part;
    the `labels` are those of the parts gone through last, which have `n_features`."""

    def __init__(self, text, **how):
        self.text, self.how, self.labels, self.n_features = text, how, [], 0

    def __iter__(self):
        self.labels = []
        for part in _texts(self.text, PART_BYTES, **self.how):
            prefix, indptr, indices, values, n_features = part.csr(float64=True)
            self.labels.append(prefix[:, 0])
            self.n_features = max(self.n_features, n_features)
            yield indptr, indices, values


def parsed_rows(
    text: _svmlight.Text, form: str | None = None, *, name: str = "a model"
) -> tuple[np.ndarray, Rows]:
    """Parse text to (numbers before the features, rows), "dense" or "sparse", or in the chosen
    storage. Raises DataError, for the file `name`, where there is no room for them."""
    if form == "sparse":
        return _csr_rows(text, name)
    # as if no value were zero: where many are, rows turn out to be packed or sparse
    likely = storage_of(text.n_rows, text.n_features, text.n_pairs, are_bytes=False)
    may_be = [Storage.BYTES, Storage.FLOATS] if form == "dense" or likely is Storage.FLOATS else []
    may_be = may_be or ([Storage.BYTES] if likely is Storage.PACKED else [])
    for storage in may_be:
        found = _dense_rows(text, storage, name)
        if found is None:
            continue
        prefix, rows, n_values = found
        n_rows, n_features = rows.shape
        chosen = storage_of(n_rows, n_features, n_values, are_bytes=storage is Storage.BYTES)
        if form == "dense" or storage is chosen:
            return prefix, Rows(n_rows, n_features, dense=rows)
        del found, prefix, rows
    prefix, csr = _csr_rows(text, name)
    storage = storage_of(
        csr.n_samples, csr.n_features, csr.count_values(), are_bytes=csr.are_bytes()
    )
    return prefix, csr.in_storage(storage)


def _dense_rows(
    text: _svmlight.Text, storage: Storage, name: str
) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Parse text to (numbers before the features, dense rows, number of values that are not zero);
    None where they are not the bytes that are asked for."""
    shape, make = (text.n_rows, text.n_features), partial(zeros, name=name)
    if storage is Storage.FLOATS:
        rows = make(shape, np.float32)
        prefix, n_values = text.dense(rows)
        return prefix, rows, n_values
    if not _core.suit_bytes(text.n_features):
        return None
    rows = zero_bytes(*shape, zeros=make)
    found = text.bytes(with_ends(rows))
    return None if found is None else (found[0], rows, found[1])


def _csr_rows(text: _svmlight.Text, name: str) -> tuple[np.ndarray, Rows]:
    in_memory = 16 * text.n_rows  # labels, and where rows begin
    check_room(name, in_memory)
    make = partial(zeros, name=name, in_all=in_memory + BYTES_OF_VALUE * text.n_pairs)
    prefix, indptr, indices, values, n_features = text.csr(make=make)
    return prefix, Rows(len(prefix), n_features, indptr=indptr, indices=indices, values=values)


def _kernel_dataset(text: _svmlight.Text, serials: str) -> Dataset:
    if text.n_pairs < text.n_rows * (text.n_features + 1):
        text.csr()  # says which value is missing, without room for all
    dense = np.zeros((text.n_rows, text.n_features), np.float32)
    prefix, _ = text.dense(dense)
    columns = prefix[:, 1].astype(np.int32) - 1 if serials == "training" else None
    return Dataset(Rows(*dense.shape, dense=dense, columns=columns), prefix[:, 0].copy())
