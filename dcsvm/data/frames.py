"""Data frames of pandas, polars, and all others with Arrow's C stream, as a Frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dcsvm.data.columns import Frame, Texts, Values
from dcsvm.data.files import DataError

INSTALL = "pip install 'dcsvm[tables]'"
HINT = ": turn them into numbers, such as the year, or drop the column"


def is_frame(X: object) -> bool:
    """Return whether X is a data frame: of pandas, of polars, or with Arrow's C stream."""
    if hasattr(X, "tocsr"):
        return False
    return is_arrow(X) or (hasattr(X, "columns") and hasattr(X, "shape"))


def is_arrow(X: object) -> bool:
    """Return whether X is read as an Arrow stream; frames of pandas and polars need no Arrow."""
    is_known = hasattr(X, "iloc") or hasattr(X, "get_column")
    return hasattr(X, "__arrow_c_stream__") and not is_known


def known_frame(X: Any) -> Any | None:
    """Return a data frame as one of pandas, polars or pyarrow; None for other values.

    Raises DataError.
    """
    if not is_frame(X):
        return None
    return as_arrow(X) if is_arrow(X) else X


def has_only_numbers(frame: Any, name: str = "X") -> bool:
    """Return whether a data frame has numbers and booleans only, and no gaps. Raises DataError."""
    return not any(
        isinstance(values, Texts) or np.isnan(values).any() for values in _columns(frame, name)
    )


def _columns(frame: Any, name: str) -> Iterator[Values]:
    """Yield the columns of a data frame, whose names may be equal."""
    for k, key in enumerate(names_of(frame)):
        if is_arrow(frame):
            yield _column(frame.column(k), name, key)
        else:
            yield plain_column(array_of(frame, k), name, key)


def frame_of(X: Any, name: str = "X") -> Frame:
    """Make a frame of a data frame. Raises DataError."""
    if is_arrow(X):
        return frame_of_arrow(name, as_arrow(X, name))
    names = names_of(X)
    places = {one: k for k, one in enumerate(names)}

    def column(key: str) -> Values:
        return plain_column(array_of(X, places[key]), name, key)

    return Frame(name, names, len(X), column)


def as_arrow(X: Any, name: str = "X") -> Any:
    """Return a pyarrow.Table of an object with Arrow's C stream. Raises DataError."""
    try:
        import pyarrow
    except ImportError:
        raise DataError(f"{name}: reading Arrow data needs pyarrow: {INSTALL}") from None
    try:
        return pyarrow.table(X)
    except (pyarrow.ArrowException, ValueError, TypeError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(f"{name}: not an Arrow table: {reason[0][:200].rstrip('. ')}") from None


def matrix_of(X: Any) -> np.ndarray:
    """Return a data frame of numbers and booleans as an array."""
    values = np.asarray(as_arrow(X).to_pandas() if is_arrow(X) else X)
    return values.astype(np.float64) if values.dtype.kind == "O" else values


def frame_of_matrix(X: np.ndarray, names: tuple[str, ...] = (), name: str = "X") -> Frame:
    """Make a frame without names of an array (n, d) of numbers; nan is a missing value."""
    names = names or matrix_names(X.shape[1])
    places = {one: k for k, one in enumerate(names)}
    return Frame(
        name, names, len(X), lambda key: X[:, places[key]].astype(np.float64), has_names=False
    )


def matrix_names(n_columns: int) -> tuple[str, ...]:
    """Return the names of the columns of an array, as scikit-learn names them."""
    return tuple(f"x{k}" for k in range(n_columns))


def names_of(table: Any) -> tuple[str, ...]:
    """Return the names of the columns of a data frame."""
    return tuple(str(one) for one in (table.column_names if is_arrow(table) else table.columns))


def array_of(table: Any, k: int) -> np.ndarray:
    """Return column k of a data frame."""
    if is_arrow(table):
        return _decoded(as_arrow(table).column(k)).to_numpy()
    return np.asarray(table.iloc[:, k] if hasattr(table, "iloc") else table[table.columns[k]])


def plain_column(values: np.ndarray, name: str, column: str) -> Values:
    """Convert a column to float64, bool or text. Raises DataError for other types."""
    kind = values.dtype.kind
    if kind == "b":
        return values
    if kind in "iuf":
        return values.astype(np.float64)
    if kind in "UST":
        return Texts.of([str(one) for one in values.tolist()]).read()
    if kind == "O":
        return _of_objects(values, name, column)
    found = "dates or times" if kind in "Mm" else f"values of type {values.dtype}"
    raise DataError(f"{name}: column {column} has {found}{HINT}")


def _of_objects(values: np.ndarray, name: str, column: str) -> Values:
    objects = [None if _is_missing(one) else one for one in values.tolist()]
    kinds = {type(one) for one in objects} - {type(None)}
    if kinds == {bool}:
        if None not in objects:
            return values.astype(bool)
        return Texts.of([None if one is None else str(one).lower() for one in objects])
    if kinds and all(issubclass(one, (int, float, np.number)) for one in kinds - {bool}):
        return np.array([np.nan if one is None else float(one) for one in objects])
    for one in kinds:
        if not issubclass(one, (str, bool, int, float, np.number)):
            raise DataError(f"{name}: column {column} has values of type {one.__name__}{HINT}")
    return Texts.of([None if one is None else str(one) for one in objects]).read()


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def frame_of_arrow(path: str, table: Any, line_of: Any = None, *, has_names: bool = True) -> Frame:
    """Make a frame of a pyarrow.Table. `path` is its name in errors."""
    names = tuple(str(name) for name in table.column_names)
    unread = dict(zip(names, table.columns, strict=True))
    found: dict[str, Values] = {}
    n_rows = table.num_rows

    def column(name: str) -> Values:
        if name not in found:  # one of both is in memory
            found[name] = _column(unread[name], path, name)
            del unread[name]
            _release()
        return found[name]

    return Frame(path, names, n_rows, column, line_of, has_names)


def _release() -> None:
    """Return freed memory of Arrow columns to the system."""
    import pyarrow

    pyarrow.default_memory_pool().release_unused()


def _column(column: Any, path: str, name: str) -> Values:
    """Convert an Arrow column. Raises DataError for a type that is no number or text."""
    from pyarrow import types

    column = _decoded(column)
    kind = column.type
    if types.is_boolean(kind) and column.null_count == 0:
        return column.to_numpy()
    if types.is_boolean(kind):
        return _texts(column.cast("string"))
    if types.is_string(kind) or types.is_large_string(kind):
        return _texts(column)
    if str(kind) == "string_view":  # of polars
        return _texts(column.cast("large_string"))
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_integer(kind) or types.is_floating(kind):
        return column.cast("float64", safe=False).to_numpy()
    hint = ""
    if types.is_temporal(kind):
        hint = ": turn it into numbers, such as the year, or --drop it"
    raise DataError(f"{path}: column {name} has the type {kind}, which is no number or text{hint}")


def _decoded(column: Any) -> Any:
    """Convert an Arrow column of categories to their values, and one of decimals to numbers."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        return _decoded(column.cast(kind.value_type))
    return column.cast("float64", safe=False) if types.is_decimal(kind) else column


def _texts(column: Any) -> Texts:
    """Convert an Arrow column of text."""
    encoded = column.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Texts(codes.astype(np.int32), tuple(encoded.dictionary.to_pylist())).read()
