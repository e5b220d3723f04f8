"""Tables, numbers and lists for RESULTS.md."""

from __future__ import annotations

from collections.abc import Iterable

MINUTE, HOUR, DAY = 60, 3600, 86_400
BAR = " | "
SHORTEST = 1e-3  # seconds that can be told apart from none


def table(heading: str, lines: list[Iterable[str]]) -> str:
    """Make a table with the first column aligned to the left, the others to the right.

    " | " separates the columns of the heading. Without lines there is no table.
    """
    rule = "---" + " | ---:" * heading.count(BAR)
    return "\n".join(f"| {line} |" for line in (heading, rule, *map(BAR.join, lines)) if lines)


def number(value: float | None) -> str:
    """Format a number with about three digits, without an exponent; "-" for None."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if size >= 10 else 2 if size >= 1 else 3}f}"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"


def points(difference: float) -> str:
    """Format a difference of shares in per cent, with its sign."""
    return f"{100 * difference:+.2f}".replace("-0.00", "+0.00").replace("+0.00", "0.00")


def duration(seconds: float) -> str:
    for unit, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.1f} s"


def times(value: float) -> str:
    """Format a factor with two digits, or as a whole number."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def joined(parts: Iterable[str]) -> str:
    """Join with commas and a final "and"; with semicolons if there is a comma in a part."""
    parts = list(parts)
    if not parts:
        return ""
    *most, last = parts
    comma = "; " if any("," in part for part in parts) else ", "
    return f"{comma.join(most)} and {last}" if most else last


def counted(count: int, what: str) -> str:
    """Format a count with a noun: "1 cell", "2 cells"."""
    return f"{count} {what}{'s' * (count != 1)}"


def over(theirs: float, ours: float) -> str:
    """Format a quotient of seconds, which is unknown or a bound if they are too short to tell."""
    if ours < SHORTEST:
        return "-"
    return number(theirs / ours) if theirs >= SHORTEST else f"<{number(SHORTEST / ours)}"


def paragraphs(parts: Iterable[str]) -> str:
    """Join the paragraphs that there are."""
    return "\n\n".join(part for part in parts if part)


def compared(value: float, other: float, more: str, less: str) -> str:
    """Return the word for value > other or value < other, "equal" if they are equal."""
    if value == other:
        return "equal"
    return more if value > other else less


def powers(log2_c: float, log2_gamma: float) -> str:
    return f"2^{log2_c:g}, 2^{log2_gamma:g}"
