"""Data frames of pandas, polars, and all others with Arrow's C stream, as a Frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, time, timedelta, timezone
from typing import Any

import numpy as np

from dcsvm.data.arrays import NUMBERS, as_float, is_missing
from dcsvm.data.columns import (
    BOOLEAN,
    Frame,
    Texts,
    Values,
    as_numbers,
    category_text,
)
from dcsvm.data.files import DataError

INSTALL = "pip install 'dcsvm[tables]'"
# Before 14.0.1 it ran code of its input (CVE-2023-47248); 14 may hang after an error in a CSV file.
SAFE_PYARROW = 15
DROP = "drop the column"
HINT = f": turn them into numbers or text, or {DROP}"


def is_frame(X: object) -> bool:
    """Return whether X is a data frame: of pandas, of polars, or with Arrow's C stream."""
    if hasattr(X, "tocsr"):
        return False
    return is_arrow(X) or (hasattr(X, "columns") and hasattr(X, "shape"))


def is_arrow(X: object) -> bool:
    """Return whether X is read as an Arrow stream; frames of pandas and polars need no Arrow."""
    is_known = hasattr(X, "iloc") or hasattr(X, "get_column")
    is_column = hasattr(X, "__array__") and not hasattr(X, "columns")
    return hasattr(X, "__arrow_c_stream__") and not is_known and not is_column


def check_collected(X: object) -> None:
    """Raise DataError for a lazy frame, such as one of polars."""
    kind = type(X)  # the columns of a lazy frame would be computed
    if hasattr(kind, "collect") and hasattr(kind, "columns") and not hasattr(kind, "shape"):
        raise DataError(f"the rows are a {kind.__name__}: call .collect() first")


def known_frame(X: Any) -> Any | None:
    """Return a data frame as one of pandas, polars or pyarrow; None for other values.

    Raises DataError.
    """
    check_collected(X)
    if not is_frame(X):
        return None
    return as_arrow(X) if is_arrow(X) else X


def has_only_numbers(frame: Any, name: str = "X") -> bool:
    """Return whether a data frame has numbers and booleans only, and no gaps. Raises DataError."""
    dtypes = frame.dtypes if hasattr(frame, "iloc") else [None]
    if all(isinstance(one, np.dtype) and one.kind in "biuf" for one in dtypes):  # of many columns
        return not frame.isna().to_numpy().any()
    return not any(
        isinstance(values, Texts) or values.dtype.kind in "Mm" or np.isnan(values).any()
        for values in _columns(frame, name)
    )


def _columns(frame: Any, name: str) -> Iterator[Values]:
    """Yield the columns of a data frame, whose names may be equal."""
    for k, key in enumerate(names_of(frame)):
        yield column_at(frame, k, key, name)


def frame_of(X: Any, name: str = "X") -> Frame:
    """Make a frame of a data frame. Raises DataError."""
    if is_arrow(X):
        return frame_of_arrow(name, as_arrow(X, name))
    names = names_of(X)
    places = {one: k for k, one in enumerate(names)}

    def column(key: str) -> Values:
        return column_at(X, places[key], key, name)

    return Frame(name, names, len(X), column)


def safe_pyarrow(name: str) -> Any:
    """Import pyarrow. Raises ImportError, and DataError for a version that is not safe."""
    import pyarrow

    version = pyarrow.__version__
    if int(version.split(".")[0]) < SAFE_PYARROW:
        needed = f"pyarrow {SAFE_PYARROW} or newer, not the unsafe {version}"
        raise DataError(f"{name}: this needs {needed}: {INSTALL}")
    return pyarrow


def as_arrow(X: Any, name: str = "X") -> Any:
    """Return a pyarrow.Table of an object with Arrow's C stream. Raises DataError."""
    try:
        pyarrow = safe_pyarrow(name)
    except ImportError:
        raise DataError(f"{name}: reading Arrow data needs pyarrow: {INSTALL}") from None
    try:
        return without_index(pyarrow.table(X))
    except (pyarrow.ArrowException, ValueError, TypeError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(f"{name}: not an Arrow table: {reason[0][:200].rstrip('. ')}") from None


def without_index(table: Any) -> Any:
    """Return a pyarrow.Table without the columns that were pandas' index, if others remain."""
    written = (table.schema.pandas_metadata or {}).get("index_columns", ())
    index = {one for one in written if isinstance(one, str)} & set(table.column_names)
    return table.drop_columns(sorted(index)) if len(index) < table.num_columns else table


def matrix_of(X: Any, name: str = "X") -> np.ndarray:
    """Return a data frame of numbers and booleans as an array. Raises DataError for text."""
    if hasattr(X, "iloc"):
        values = np.asarray(X)
        if values.dtype.kind in "biuf":
            return values
    table = as_arrow(X, name) if is_arrow(X) else X
    values = np.empty(table.shape)
    for k, (key, column) in enumerate(zip(names_of(table), _columns(table, name), strict=True)):
        frame = Frame(name, (key,), len(values), {key: column}.__getitem__)
        values[:, k] = as_numbers(frame, key, column, BOOLEAN)
    return values


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


def column_at(table: Any, k: int, column: str, name: str = "X") -> Values:
    """Return column k of a data frame, called `column`. Raises DataError for nested types."""
    if is_arrow(table):
        return _column(as_arrow(table).column(k), name, column)
    if not hasattr(table, "iloc"):
        return _column_of_polars(table[table.columns[k]], name, column)
    values = table.iloc[:, k]
    dtype = values.dtype
    if hasattr(dtype, "categories"):
        return _declared(values.array.codes, values.array.categories.tolist())
    if hasattr(dtype, "pyarrow_dtype"):
        return _column(values.array.__arrow_array__(), name, column)
    if getattr(dtype, "tz", None) is not None:
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    elif str(dtype).startswith("period"):
        values = values.dt.to_timestamp()
    return plain_column(np.asarray(values), name, column)


def _column_of_polars(values: Any, name: str, column: str) -> Values:
    kind = str(values.dtype)
    if values.dtype.is_nested():
        raise DataError(f"{name}: column {column} has values of type {kind}{HINT}")
    if kind.startswith(("Categorical", "Enum")):
        return replace(Texts.of(values.cast(str).to_list()).read(), is_declared=True)
    # NumPy lacks integers of 128 bits
    array = np.asarray(values.cast(float) if kind.endswith("Int128") else values)
    return plain_column(array, name, column)


def _declared(codes: np.ndarray, categories: list[Any]) -> Texts:
    """Return a column of categories, whose codes are -1 for missing values."""
    merged = Texts.of([category_text(one) for one in categories])
    own = np.append(merged.codes, -1)  # the last one for missing values
    return Texts(own[codes], merged.values, is_declared=True).read()


def plain_column(values: np.ndarray, name: str, column: str) -> Values:
    """Convert a column to one of the types of Values. Raises DataError for other types."""
    kind = values.dtype.kind
    if kind in "bMm":
        return values
    if kind in "iuf":
        return values.astype(np.float64)
    if kind in "USTO":
        return _of_objects(values, name, column)
    raise DataError(f"{name}: column {column} has values of type {values.dtype}{HINT}")


def _of_objects(values: np.ndarray, name: str, column: str) -> Values:
    objects = [None if is_missing(one) else one for one in values.tolist()]
    kinds = {type(one) for one in objects} - {type(None)}

    def are(*classes: type) -> bool:
        return bool(kinds) and all(issubclass(one, classes) for one in kinds)

    if are(bool, np.bool_):
        if None not in objects:
            return values.astype(bool)
        return Texts.of([None if one is None else str(one).lower() for one in objects])
    if are(*NUMBERS):
        return np.array([np.nan if one is None else as_float(one) for one in objects])
    if are(date, np.datetime64):
        return np.array([_in_utc(one) for one in objects], "M8[us]")
    if are(time, timedelta, np.timedelta64):
        return np.array([_since_midnight(one) for one in objects], "m8[us]")
    for one in kinds:
        if not issubclass(one, (str, bytes, *NUMBERS)):
            raise DataError(f"{name}: column {column} has values of type {one.__name__}{HINT}")
    return Texts.of([None if one is None else _text(one, name, column) for one in objects]).read()


def _in_utc(value: Any) -> Any:
    """Return a date, or a time in UTC without its zone."""
    if getattr(value, "tzinfo", None) is None:
        return value
    return value.astimezone(timezone.utc).replace(tzinfo=None)


def _since_midnight(value: Any) -> Any:
    """Return a time of day as a duration."""
    if not isinstance(value, time):
        return value
    return timedelta(0, value.second, value.microsecond, 0, value.minute, value.hour)


def _text(value: Any, name: str, column: str) -> str:
    """Return the text of a value; bytes are UTF-8. Raises DataError."""
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise DataError(f"{name}: column {column} has bytes that are not UTF-8{HINT}") from None


def frame_of_arrow(
    path: str, table: Any, line_of: Any = None, *, has_names: bool = True, drop: str = DROP
) -> Frame:
    """Make a frame of a pyarrow.Table. `path` is its name in errors, `drop` their last words."""
    names = tuple(str(name) for name in table.column_names)
    unread = dict(zip(names, table.columns, strict=True))
    converted: dict[str, Values] = {}
    n_rows = table.num_rows

    def column(name: str) -> Values:
        if name not in converted:  # then the column of Arrow is not kept
            converted[name] = _column(unread[name], path, name, drop)
            del unread[name]
            _release()
        return converted[name]

    return Frame(path, names, n_rows, column, line_of, has_names)


def _release() -> None:
    """Return freed memory of Arrow columns to the system."""
    import pyarrow

    pyarrow.default_memory_pool().release_unused()


def _column(column: Any, path: str, name: str, drop: str = DROP) -> Values:
    """Convert an Arrow column. Raises DataError for a type that is none of Values."""
    import pyarrow
    from pyarrow import compute, types

    kind = column.type
    refused = f"{path}: column {name} has the type {kind}, which is no number or text; {drop}"
    if str(kind).startswith("run_end_encoded"):
        try:
            return _column(compute.run_end_decode(column), path, name, drop)
        except pyarrow.ArrowNotImplementedError:  # of categories
            raise DataError(refused) from None
    if types.is_dictionary(kind):
        if types.is_nested(kind.value_type) or isinstance(
            kind.value_type, pyarrow.BaseExtensionType
        ):
            raise DataError(refused)
        return _categories(column)
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_boolean(kind):
        return (
            column.to_numpy() if column.null_count == 0 else _categories(column.dictionary_encode())
        )
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return column.cast("float64", safe=False).to_numpy()
    if types.is_temporal(kind) and not types.is_interval(kind):
        return _times(column)
    if not str(kind).removeprefix("large_").startswith(("string", "binary", "fixed_size_binary")):
        raise DataError(refused)
    try:
        column = column if str(kind) in ("string", "large_string") else column.cast("large_string")
    except pyarrow.ArrowInvalid:
        raise DataError(f"{path}: column {name} has bytes that are not UTF-8; {drop}") from None
    return _texts(column)


def _times(column: Any) -> np.ndarray:
    """Convert an Arrow column of dates or times; a time of day is a duration."""
    from pyarrow import types

    if types.is_date(column.type):
        column = column.cast("timestamp[us]")
    elif types.is_time(column.type):
        column = column.cast("time64[us]", safe=False).cast("int64").cast("duration[us]")
    return column.to_numpy()


def _texts(column: Any) -> Texts:
    """Convert an Arrow column of text."""
    encoded = column.combine_chunks().dictionary_encode()
    return Texts(_codes(encoded), tuple(encoded.dictionary.to_pylist())).read()


def _categories(column: Any) -> Texts:
    """Convert an Arrow dictionary of any values."""
    parts = [_declared(_codes(chunk), chunk.dictionary.to_pylist()) for chunk in column.chunks]
    return Texts.joined(parts)


def _codes(encoded: Any) -> np.ndarray:
    """Return the place of each row's value in the dictionary, int32 (n,), -1 for none."""
    codes = encoded.indices.cast("int32").fill_null(-1)  # indices may be unsigned
    return codes.to_numpy(zero_copy_only=False)
