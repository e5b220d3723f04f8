"""Words for conclusions: comparisons that follow from the numbers, and lists of names."""

from __future__ import annotations


def compared(value: float, other: float, more: str, less: str) -> str:
    """Return the word for value > other or value < other, "equal" if they are equal."""
    if value == other:
        return "equal"
    return more if value > other else less


def listed(words: list[str]) -> str:
    """Join words as in "a, b and c"."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def times(value: float) -> str:
    """Format a factor with two digits, or as a whole number."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
