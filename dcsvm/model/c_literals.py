"""Constants of C99: numbers that round-trip, texts in ASCII, arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

WIDTH = 100  # of the lines of arrays
MAX_TEXT = 4000  # bytes of a literal; C99 promises 4095
MAX_DIGITS = 7  # of whole numbers that are written as int: float holds them
NAMES = {"nan": "NAN", "inf": "HUGE_VAL", "-inf": "-HUGE_VAL"}
UNSIGNED = (("unsigned char", 2**8), ("unsigned short", 2**16))


def doubles(values: np.ndarray) -> list[str]:
    """Format float64 values with the fewest digits that keep them."""
    return [_number(repr(one)) for one in np.asarray(values, np.float64).ravel().tolist()]


def floats(values: np.ndarray) -> list[str]:
    """Format float32 values with the fewest digits that keep them."""
    different, which = np.unique(np.asarray(values, np.float32).ravel(), return_inverse=True)
    known = np.array([_number(str(one), "f") for one in different] or [""], object)
    return list(known[which.reshape(-1)])


def _number(text: str, suffix: str = "") -> str:
    """Return the constant of a number as Python writes it."""
    if text in NAMES:
        return NAMES[text]
    whole, _, fraction = text.partition(".")
    if fraction == "0" and len(whole.lstrip("-")) <= MAX_DIGITS:
        return whole
    for sign in ("", "-"):
        if text.startswith(f"{sign}0."):
            text = text.replace("0.", ".", 1)
    return f"{text}{suffix}"


def number(value: float) -> str:
    """Return a float64 as a constant of an expression."""
    text = repr(float(value))
    return NAMES.get(text, text)


def array(kind: str, name: str, values: Iterable[str], *, is_public: bool = False) -> str:
    """Define a constant array; an empty one, which C lacks, has an element."""
    static = "" if is_public else "static "
    return f"{static}const {kind} {name}[] = {{\n{_lines(values) or '0'}\n}};\n"


def integers(name: str, values: np.ndarray) -> str:
    """Define a constant array of integers from 0 or -1, of the shortest type."""
    values = np.asarray(values, np.int64)
    most = int(values.max(initial=0))
    kind = "int"
    if not (values < 0).any():
        kind = next((kind for kind, end in UNSIGNED if most < end), kind)
    return array(kind, name, map(str, values.ravel().tolist()))


def texts(name: str, values: Sequence[str], *, is_public: bool = False) -> str:
    """Define a constant array of texts, in UTF-8."""
    long_ones, items = "", []
    for k, value in enumerate(values):
        encoded = value.encode("utf-8", "replace")
        if len(encoded) <= MAX_TEXT:
            items.append(f'"{_escaped(encoded)}"')
            continue
        characters = [f"'{_escaped(bytes([one]))}'" for one in encoded]
        long_ones += array("char", f"{name}_{k}", [*characters, "0"])
        items.append(f"{name}_{k}")
    return long_ones + array("char *const", name, items, is_public=is_public)


def _escaped(encoded: bytes) -> str:
    r"""Escape bytes for a literal; `\?` spoils trigraphs."""
    return "".join(
        f"\\{chr(one)}" if one in b"\\\"'?" else chr(one) if 32 <= one < 127 else f"\\{one:03o}"
        for one in encoded
    )


def _lines(values: Iterable[str]) -> str:
    lines, line = [], ""
    for value in values:
        if line and len(line) + len(value) >= WIDTH:
            lines.append(line)
            line = ""
        line += f"{value},"
    return "\n".join([*lines, line])
