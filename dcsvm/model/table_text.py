"""Write and read the encoding of a table in a model file: words of JSON without spaces."""

from __future__ import annotations

import json
from typing import Any

from dcsvm.data.columns import CATEGORY, KINDS, NUMBER, Column, TableEncoding

# keys of a model file; LABEL_NAMES are the labels that the numbers of `label` stand for
TABLE, TABLE_LABEL, LABEL_NAMES = "table_columns", "table_label", "label_names"
TABLE_KEYS = {TABLE, TABLE_LABEL, LABEL_NAMES}


def word_of(value: object) -> str:
    """Return JSON without whitespace: one word of a line."""
    return json.dumps(value, separators=(",", ":")).replace(" ", "\\u0020")


def table_lines(table: TableEncoding) -> list[str]:
    """Return the lines of an encoding."""
    words = [word_of(_values(column)) for column in table.columns]
    label = {"name": table.label, "has_names": table.has_names}
    return [f"{TABLE} {' '.join(words)}".rstrip(), f"{TABLE_LABEL} {word_of(label)}"]


def _values(column: Column) -> dict[str, Any]:
    values: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == CATEGORY:
        return values | {"categories": column.categories}
    if column.kind == NUMBER:
        return values | {"fill": column.fill, "missing": column.has_indicator}
    return values


def table_of(columns: list[str], label: list[str]) -> TableEncoding:
    """Return the encoding in the words of TABLE and TABLE_LABEL. Raises ValueError."""
    found = [_column_of(_object(word)) for word in columns]
    if len({one.name for one in found}) < len(found):
        raise ValueError("two columns have the same name")
    if len(label) != 1:
        raise ValueError("must be one JSON object")
    values = _object(label[0])
    name, has_names = values.get("name"), values.get("has_names")
    if not (name is None or isinstance(name, str)) or not isinstance(has_names, bool):
        raise ValueError("must have a name and has_names")
    return TableEncoding(tuple(found), name, has_names)


def text_of(word: str) -> str:
    """Return the text of a JSON word. Raises ValueError."""
    value = _parsed(word)
    if not isinstance(value, str):
        raise ValueError(f"{word[:40]!r} is no JSON text")
    return value


def _parsed(word: str) -> Any:
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        raise ValueError(f"{word[:40]!r} is not JSON") from None


def _object(word: str) -> dict[str, Any]:
    value = _parsed(word)
    if not isinstance(value, dict):
        raise ValueError(f"{word[:40]!r} is no JSON object")
    return value


def _column_of(values: dict[str, Any]) -> Column:
    name, kind = values.get("name"), values.get("kind")
    if not isinstance(name, str) or kind not in KINDS:
        raise ValueError("a column must have a name and a kind")
    fill, missing = values.get("fill", 0.0), values.get("missing", False)
    is_number = isinstance(fill, (int, float)) and not isinstance(fill, bool)
    if not (is_number and abs(fill) < float("inf") and isinstance(missing, bool)):
        raise ValueError(f"column {name[:40]!r} has a wrong fill or missing")
    categories = values.get("categories", [])
    are_texts = isinstance(categories, list) and all(isinstance(one, str) for one in categories)
    if not are_texts or len(set(categories)) < len(categories):
        raise ValueError(f"column {name[:40]!r} has wrong categories")
    return Column(name, kind, float(fill), missing, tuple(categories))
