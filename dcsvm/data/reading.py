"""Read any kind of data as rows before scaling: arrays, data frames, LIBSVM text and tables."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dcsvm.data.arrays import Float64Parts
from dcsvm.data.columns import Frame, TableEncoding
from dcsvm.data.files import DataError, read_text
from dcsvm.data.formats import table_format
from dcsvm.data.frames import check_collected, frame_of, frame_of_matrix, is_frame, matrix_of
from dcsvm.data.scaling import Scaling, Source
from dcsvm.data.svmlight_file import Buffer, SvmlightRows
from dcsvm.machine import usable_threads


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
