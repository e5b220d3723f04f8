"""Data frames of pandas, polars, and all others with Arrow's C stream, as a Frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dcsvm.data.arrays import NUMBERS, as_float, is_missing
from dcsvm.data.columns import BOOLEAN, Frame, Texts, Values, as_numbers, category_text
from dcsvm.data.files import DataError

INSTALL = "pip install 'dcsvm[tables]'"
DROP = "drop the column"
HINT = f": turn them into numbers, such as the year, or {DROP}"


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
        isinstance(values, Texts) or np.isnan(values).any() for values in _columns(frame, name)
    )


def _columns(frame: Any, name: str) -> Iterator[Values]:
    """Yield the columns of a data frame, whose names may be equal."""
    for k, key in enumerate(names_of(frame)):
        if is_arrow(frame):
            yield _column(frame.column(k), name, key)
        else:
            yield plain_column(array_of(frame, k, name), name, key)


def frame_of(X: Any, name: str = "X") -> Frame:
    """Make a frame of a data frame. Raises DataError."""
    if is_arrow(X):
        return frame_of_arrow(name, as_arrow(X, name))
    names = names_of(X)
    places = {one: k for k, one in enumerate(names)}

    def column(key: str) -> Values:
        return plain_column(array_of(X, places[key], name), name, key)

    return Frame(name, names, len(X), column)


def as_arrow(X: Any, name: str = "X") -> Any:
    """Return a pyarrow.Table of an object with Arrow's C stream. Raises DataError."""
    try:
        import pyarrow
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


def array_of(table: Any, k: int, name: str = "X") -> np.ndarray:
    """Return column k of a data frame, categories as text. Raises DataError for nested types."""
    if is_arrow(table):
        return _array_of_arrow(as_arrow(table).column(k))
    if not hasattr(table, "iloc"):
        return _array_of_polars(table[table.columns[k]], name)
    column = table.iloc[:, k]
    if hasattr(column.dtype, "categories"):
        return _spelled(column.array.codes, column.array.categories.tolist())
    if str(getattr(column.dtype, "pyarrow_dtype", "")).startswith("dictionary"):
        return _array_of_arrow(column.array.__arrow_array__())
    return np.asarray(column)


def _array_of_arrow(column: Any) -> np.ndarray:
    from pyarrow import types

    if types.is_dictionary(column.type):
        return _spelled(*_coded(_decoded(column)))
    return _decoded(column).to_numpy()


def _array_of_polars(column: Any, name: str) -> np.ndarray:
    if column.dtype.is_nested():
        raise DataError(f"{name}: column {column.name} has values of type {column.dtype}{HINT}")
    has_128_bits = str(column.dtype).endswith("Int128")  # which NumPy lacks
    return np.asarray(column.cast(float) if has_128_bits else column)


def _spelled(codes: np.ndarray, categories: list[Any]) -> np.ndarray:
    """Return the text of the category of each row, None for code -1; object (n,).

    Categories that are no numbers or text remain, for `plain_column` to refuse.
    """
    texts = [category_text(one) if isinstance(one, (*NUMBERS, str)) else one for one in categories]
    values = np.empty(len(texts) + 1, object)  # the last one for missing values
    values[:-1], values[-1] = texts, None
    return values[codes]


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
    described = "dates or times" if kind in "Mm" else f"values of type {values.dtype}"
    raise DataError(f"{name}: column {column} has {described}{HINT}")


def _of_objects(values: np.ndarray, name: str, column: str) -> Values:
    objects = [None if is_missing(one) else one for one in values.tolist()]
    kinds = {type(one) for one in objects} - {type(None)}
    if kinds and kinds <= {bool, np.bool_}:
        if None not in objects:
            return values.astype(bool)
        return Texts.of([None if one is None else str(one).lower() for one in objects])
    if kinds and all(issubclass(one, NUMBERS) for one in kinds):
        return np.array([np.nan if one is None else as_float(one) for one in objects])
    for one in kinds:
        if not issubclass(one, (str, *NUMBERS)):
            raise DataError(f"{name}: column {column} has values of type {one.__name__}{HINT}")
    return Texts.of([None if one is None else str(one) for one in objects]).read()


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
    """Convert an Arrow column. Raises DataError for a type that is no number or text."""
    from pyarrow import types

    is_category = types.is_dictionary(column.type)
    column = _decoded(column)
    kind = column.type
    if types.is_boolean(kind):
        is_plain = column.null_count == 0 and not is_category
        return column.to_numpy() if is_plain else _spelled_texts(column)
    if types.is_string(kind) or types.is_large_string(kind):
        return _texts(column)
    if str(kind) == "string_view":  # of polars
        return _texts(column.cast("large_string"))
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_integer(kind) or types.is_floating(kind):
        if is_category:
            return _spelled_texts(column)
        return column.cast("float64", safe=False).to_numpy()
    hint = ""
    if types.is_temporal(kind):
        hint = f": turn it into numbers, such as the year, or {drop}"
    raise DataError(f"{path}: column {name} has the type {kind}, which is no number or text{hint}")


def _decoded(column: Any) -> Any:
    """Convert an Arrow column of categories to their values, and one of decimals to numbers."""
    from pyarrow import ArrowNotImplementedError, types

    kind = column.type
    if types.is_dictionary(kind):
        try:
            return _decoded(column.cast(kind.value_type))
        except ArrowNotImplementedError:  # of a type that no column may have
            return column
    return column.cast("float64", safe=False) if types.is_decimal(kind) else column


def _texts(column: Any) -> Texts:
    """Convert an Arrow column of text."""
    codes, values = _coded(column)
    return Texts(codes, tuple(values)).read()


def _spelled_texts(column: Any) -> Texts:
    """Convert an Arrow column of booleans or numbers to their texts, as categories."""
    codes, values = _coded(column)
    return Texts(codes, tuple(values)).mapped(category_text).read()


def _coded(column: Any) -> tuple[np.ndarray, list[Any]]:
    """Return the distinct values of an Arrow column, and the place of each row's, int32 (n,)."""
    encoded = column.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes.astype(np.int32), encoded.dictionary.to_pylist()
