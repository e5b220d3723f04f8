"""Words for conclusions that are computed: lists, and comparisons of numbers."""

from __future__ import annotations

from collections.abc import Iterable

from paper.markdown import percent


def joined(parts: Iterable[str]) -> str:
    """Join with commas and a final "and"; with semicolons if there is a comma in a part."""
    *most, last = parts = list(parts)
    comma = "; " if any("," in part for part in parts) else ", "
    return f"{comma.join(most)} and {last}" if most else last


def sentences(parts: Iterable[str]) -> str:
    """Join the sentences that there are."""
    return " ".join(part for part in parts if part)


def relation(difference: float, other: str) -> str:
    """Say how much a share is above or below another's, in per cent: "0.30 % below LIBSVM"."""
    size = percent(abs(difference))
    if size == percent(0.0):
        return f"equal to {other}"
    return f"{size} % {'above' if difference > 0 else 'below'} {other}"


def span(differences: dict[str, float], other: str) -> str:
    """Say between which relations the differences are, and the name of the least and greatest."""
    low, high = (end(differences, key=differences.get) for end in (min, max))
    first, last = (relation(differences[name], other) for name in (low, high))
    if first == last:
        return f"{first} ({low if len(differences) == 1 else f'{len(differences)} of them'})"
    return f"between {first} ({low}) and {last} ({high})"


def compared(value: float, other: float, more: str, less: str) -> str:
    """Return the word for value > other or value < other, "equal" if they are equal."""
    if value == other:
        return "equal"
    return more if value > other else less


def times(value: float) -> str:
    """Format a factor with two digits, or as a whole number."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
