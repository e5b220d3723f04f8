"""Tables in HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable


def table_html(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Return a table with a title and a line for each name and value; text is escaped."""
    from html import escape  # only notebooks need it

    lines = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in rows
    )
    return f"<table><caption>{escape(title)}</caption>{lines}</table>"
