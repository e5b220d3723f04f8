"""Labels and rows read from LIBSVM text.

Labels are float64. Text is parsed in csrc/text. How data is scaled is in scaling.py. This module
does not split or weigh the data, and does not say what a label means.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from dcsvm import _svmlight
from dcsvm.data.byte_rows import suit_bytes, with_ends, zero_bytes
from dcsvm.data.csr import BYTES_OF_VALUE
from dcsvm.data.found_scaling import Extremes, found_scaling
from dcsvm.data.input_file import DataError, check_room, read_text
from dcsvm.data.pieces import text_pieces
from dcsvm.data.room import zeros
from dcsvm.data.rows import Rows, better_dense
from dcsvm.data.scaling import Scaling

PART_BYTES = 2**23  # of text that is scaled together


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and their labels, float64 (n_samples,); by what they were scaled, if they were."""

    rows: Rows
    labels: np.ndarray
    scaling: Scaling | None = None


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
    for text in text_pieces(name):
        data = parse_dataset(text, name, first_line=line, **how)
        line += data.rows.n_samples
        yield data
    if line == 1:
        raise DataError(f"{name}: no rows")


def parse_dataset(
    text,
    name: str,
    *,
    threads: int = 1,
    lenient: bool = False,
    scaling: Scaling | None = None,
    find_scaling: bool = False,
    serials: str | None = None,
    first_line: int = 1,
) -> Dataset:
    """Parse the text of a LIBSVM file, any buffer of bytes; `name` stands for it in errors, which
    count lines from `first_line`.

    `lenient` accepts what LIBSVM's reader drops or reads in its own way. `scaling` is applied to
    the numbers in the text; with `find_scaling` it is that of their own ranges. `serials` is for
    rows of a precomputed kernel: "training" or, for rows to predict, whose serial numbers mean
    nothing, "any". `first_line` is the number of the first line.
    """
    if serials is not None and (scaling is not None or find_scaling):
        raise DataError(f"{name}: the values of a precomputed kernel cannot be scaled")
    if not len(text):
        raise DataError(f"{name}: no rows")
    try:
        if scaling is not None or find_scaling:
            parts = _Parts(text, first_line, threads=threads, lenient=lenient)
            scaling = scaling or found_scaling(parts, name)
            rows = scaling.scaled_rows(parts, name)
            labels = scaling.scaled_labels(np.concatenate(parts.labels), name)
            return Dataset(rows, labels, scaling)
        text = _svmlight.Text(
            text, first_line=first_line, threads=threads, lenient=lenient, serials=serials
        )
        if serials is not None:
            check_room(name, text.n_rows * (8 + 4 * text.n_features))
            return _kernel_dataset(text, serials)
        prefix, rows = parsed_rows(text, name=name)
    except _svmlight.ParseError as error:
        raise DataError(f"{name}:{error}") from None
    return Dataset(rows, prefix[:, 0])


def extremes_of_text(text, name: str, *, lenient: bool = False, first_line: int = 1) -> Extremes:
    """The extremes of the features of a text, by which it can be scaled. Raises DataError."""
    try:
        return Extremes.of(_Parts(text, first_line, threads=1, lenient=lenient))
    except _svmlight.ParseError as error:
        raise DataError(f"{name}:{error}") from None


class _Parts:
    """The rows of a text as CSR arrays (indptr, indices, values) with float64 values, part by part;
    the `labels` are those of the parts gone through last."""

    def __init__(self, text, first_line: int, **how):
        self.text, self.first_line, self.how, self.labels = text, first_line, how, []

    def __iter__(self):
        self.labels = []
        begin, line = 0, self.first_line
        while begin < len(self.text):
            newline = self.text.find(b"\n", begin + PART_BYTES)
            end = newline + 1 if newline >= 0 else len(self.text)
            lines = memoryview(self.text)[begin:end]
            part = _svmlight.Text(lines, first_line=line, **self.how)
            prefix, indptr, indices, values, _ = part.csr(float64=True)
            self.labels.append(prefix[:, 0])
            yield indptr, indices, values
            begin, line = end, line + part.n_rows


def parsed_rows(
    text: _svmlight.Text, form: str | None = None, *, name: str = "a model"
) -> tuple[np.ndarray, Rows]:
    """(numbers before the features, rows) of text, "dense" or "sparse", or in the better form.
    Raises DataError, for the file `name`, where there is no room for dense ones."""
    shape = text.n_rows, text.n_features
    if form == "dense" or (form is None and better_dense(*shape, text.n_pairs)):
        prefix, dense, n_values = _dense_rows(text, name)
        if form == "dense" or better_dense(*shape, n_values):
            return prefix, Rows(*shape, dense=dense)
        del prefix, dense
    in_memory = 16 * text.n_rows  # labels, and where rows begin
    check_room(name, in_memory)
    make = partial(zeros, name=name, in_all=in_memory + BYTES_OF_VALUE * text.n_pairs)
    prefix, indptr, indices, values, n_features = text.csr(make=make)
    return prefix, Rows(len(prefix), n_features, indptr=indptr, indices=indices, values=values)


def _dense_rows(text: _svmlight.Text, name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """(numbers before the features, dense rows, number of values that are not zero) of text."""
    shape, make = (text.n_rows, text.n_features), partial(zeros, name=name)
    if suit_bytes(text.n_features):
        rows = zero_bytes(*shape, zeros=make)
        found = text.bytes(with_ends(rows))
        if found is not None:
            return found[0], rows, found[1]
        del rows
    rows = make(shape, np.float32)
    prefix, n_values = text.dense(rows)
    return prefix, rows, n_values


def _kernel_dataset(text: _svmlight.Text, serials: str) -> Dataset:
    if text.n_pairs < text.n_rows * (text.n_features + 1):
        text.csr()  # says which value is missing, without room for all
    dense = np.zeros((text.n_rows, text.n_features), np.float32)
    prefix, _ = text.dense(dense)
    columns = prefix[:, 1].astype(np.int32) - 1 if serials == "training" else None
    return Dataset(Rows(*dense.shape, dense=dense, columns=columns), prefix[:, 0].copy())
