"""Make data sets of tables: encoded rows, labels and sample weights."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

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
from dcsvm.data.dataset import (
    OWN_QUANTILES,
    OWN_RANGES,
    Dataset,
    ScalingOption,
    UnscaledSet,
)
from dcsvm.data.files import DataError
from dcsvm.data.formats import TableOptions
from dcsvm.data.scaling import Extremes, Scaling, quantile_scaling
from dcsvm.data.sorting import slices
from dcsvm.data.table_file import read_table

PIECE_ROWS = 2**17  # rows of a piece to predict


def training_table(
    path: str, format: str, options: TableOptions, scaling: ScalingOption | None
) -> tuple[Dataset, str]:
    """Read a training set as `unscaled_table`, and scale it."""
    found, described = unscaled_table(path, format, options)
    rows, encoding = found.rows, found.table
    assert isinstance(rows, TableRows) and encoding is not None
    data = _dataset(rows, encoding, found.labels, path, scaling)
    return replace(data, sample_weight=found.sample_weight), described


def unscaled_table(path: str, format: str, options: TableOptions) -> tuple[UnscaledSet, str]:
    """Read a training set and find its encoding. Return it and its description.

    Raises DataError.
    """
    frame = read_table(path, format)
    for name in options.drop:
        if name not in frame.names:
            raise DataError(f"{path}: no column {name} to drop")
    left = [name for name in frame.names if name not in options.drop and name != options.weight]
    if not left:
        raise DataError(f"{path}: no columns are left")
    label, how = label_column(left, options.label, path)
    weight = None
    dropped = [*options.drop]
    if options.weight is not None:
        weight = _weights(frame, options.weight)
        dropped.append(options.weight)
    encoding = TableEncoding.of(frame, label, dropped)
    lost = set(left) - {label} - {one.name for one in encoding.columns}
    for name in sorted(lost):
        warnings.warn(f"{path}: column {name} has no values: dropped", stacklevel=2)
    data = UnscaledSet(encoding.rows(frame), labels_of(frame, label), 1, encoding, weight)
    return data, _described(encoding, frame, how)


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


def other_table(
    path: str,
    format: str,
    encoding: TableEncoding,
    label: str | None,
    scaling: Scaling | None,
    piece_rows: int | None = PIECE_ROWS,
) -> Iterator[Dataset]:
    """Read rows to predict or to test, in pieces or at once, as the training set was encoded.

    Unknown categories give a warning. Raises DataError.
    """
    rows, labels = _encoded(read_table(path, format), encoding, label)
    for sentence in rows.warnings():
        warnings.warn(f"{path}: {sentence}", stacklevel=2)
    for some in slices(rows.n_rows, piece_rows or rows.n_rows):
        piece = rows.part(some)
        data = _dataset(
            piece, encoding, np.zeros(piece.n_rows) if labels is None else labels[some], path,
            scaling,
        )  # fmt: skip
        yield replace(data, has_labels=labels is not None)


def check_first_rows(path: str, format: str, encoding: TableEncoding, label: str | None) -> None:
    """Encode the first rows of a table to predict or to test. Raises DataError."""
    rows, _ = _encoded(read_table(path, format, is_head=True), encoding, label)
    for _ in rows:
        pass


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


def _dataset(
    rows: TableRows,
    encoding: TableEncoding,
    labels: np.ndarray,
    name: str,
    scaling: ScalingOption | None,
) -> Dataset:
    """Scale encoded rows."""
    own = table_scaling(rows, encoding, scaling, name)
    used = own or Scaling.identity(encoding.n_features, name)
    scaled = used.scaled_rows(rows, name)
    return Dataset(scaled, labels, own, 1, encoding.n_features, encoding)


def table_scaling(
    rows: TableRows, encoding: TableEncoding, scaling: ScalingOption | None, name: str
) -> Scaling | None:
    """Return a scaling, computed from the rows if it is OWN_RANGES or OWN_QUANTILES."""
    if scaling == OWN_RANGES:
        return Extremes.of(rows).scaling(name, one_hot=encoding.one_hot)
    if scaling == OWN_QUANTILES:
        return quantile_scaling(rows, name, one_hot=encoding.one_hot)
    assert scaling is None or isinstance(scaling, Scaling)
    return scaling
