"""Tables in files: encoded rows, labels and sample weights."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dcsvm.data.columns import (
    CATEGORY,
    Frame,
    TableEncoding,
    TableRows,
    Texts,
    label_column,
    labels_of,
)
from dcsvm.data.files import DataError
from dcsvm.data.table_file import read_table


@dataclass(frozen=True, eq=False)
class Table:
    """A table from a file. `labels` (n,) is None without a label column."""

    rows: TableRows
    encoding: TableEncoding
    labels: np.ndarray | None
    sample_weight: np.ndarray | None = None
    description: str = ""


def training_table(
    path: str, format: str, label: str | None, drop: Sequence[str], weight: str | None
) -> Table:
    """Read a training set and find its encoding.

    `label`, `drop` and `weight` name columns. Raises DataError.
    """
    frame = read_table(path, format)
    for name in drop:
        if name not in frame.names:
            raise DataError(f"{path}: no column {name} to drop")
    left = [name for name in frame.names if name not in drop and name != weight]
    if not left:
        raise DataError(f"{path}: no columns are left")
    label, how = label_column(left, label, path)
    sample_weight = None if weight is None else _weights(frame, weight)
    dropped = [*drop, *([] if weight is None else [weight])]
    encoding = TableEncoding.of(frame, label, dropped)
    lost = set(left) - {label} - {one.name for one in encoding.columns}
    for name in sorted(lost):
        warnings.warn(f"{path}: column {name} has no values: dropped", stacklevel=2)
    rows, labels = encoding.rows(frame), labels_of(frame, label)
    return Table(rows, encoding, labels, sample_weight, _described(encoding, frame, how))


def _weights(frame: Frame, name: str) -> np.ndarray:
    """Return the sample weights in a column. Raises DataError."""
    if name not in frame.names:
        raise DataError(f"{frame.name}: no column {name} of weights")
    values = frame.column(name)
    if isinstance(values, Texts) or values.dtype.kind != "f":
        raise DataError(f"{frame.name}: column {name}: weights must be numbers")
    is_wrong = ~(np.isfinite(values) & (values >= 0))
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise frame.error(name, f"a weight must be at least 0, found {values[row]:g}", row)
    return values


def _described(encoding: TableEncoding, frame: Frame, how: str) -> str:
    """Describe a training table in one line."""
    kinds = [one.kind == CATEGORY for one in encoding.columns]
    n_missing = sum(one.has_indicator for one in encoding.columns)
    numbers, texts = kinds.count(False), kinds.count(True)
    parts = [f"{numbers} number{'s'[: numbers != 1]}", f"{texts} text column{'s'[: texts != 1]}"]
    missing = f", {n_missing} with missing numbers" if n_missing else ""
    return (
        f"table of {frame.n_rows} rows: label {encoding.label} ({how}); {' and '.join(parts)}"
        f"{missing} give {encoding.n_features} feature{'s'[: encoding.n_features != 1]}"
    )


def other_table(path: str, format: str, encoding: TableEncoding, label: str | None) -> Table:
    """Read rows to predict or to test, encoded as the training set.

    Unknown categories give a warning. Raises DataError.
    """
    rows, labels = _encoded(read_table(path, format), encoding, label)
    for sentence in rows.warnings():
        warnings.warn(f"{path}: {sentence}", stacklevel=2)
    return Table(rows, encoding, labels)


def first_table_rows(
    path: str, format: str, encoding: TableEncoding, label: str | None
) -> TableRows:
    """Encode the first rows of a table to predict or to test. Raises DataError."""
    return _encoded(read_table(path, format, is_head=True), encoding, label)[0]


def _encoded(
    frame: Frame, encoding: TableEncoding, label: str | None
) -> tuple[TableRows, np.ndarray | None]:
    """Return the rows of a frame, and their labels if it has them. Raises DataError."""
    name = label or encoding.label
    if label is not None and label not in frame.names:
        name, _ = label_column(frame.names, label, frame.name)
    rows = encoding.rows(frame)
    has_labels = name in frame.names and (label or _has_label(encoding, frame))
    return rows, labels_of(frame, name) if name is not None and has_labels else None


def _has_label(encoding: TableEncoding, frame: Frame) -> bool:
    """Return whether a table without names has the label column, by its number of columns."""
    return frame.has_names or len(frame.names) > len(encoding.columns)
