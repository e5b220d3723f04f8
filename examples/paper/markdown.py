"""Tables and numbers for RESULTS.md."""

from __future__ import annotations

MINUTE, HOUR, DAY = 60, 3600, 86_400


def table(heading: list[str], lines: list[list[str]]) -> str:
    """Make a table with the first column aligned to the left, the others to the right."""
    rule = ["---", *["---:"] * (len(heading) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heading, rule, *lines))


def number(value: float | None) -> str:
    """Format a number with about three digits, without an exponent."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if size >= 10 else 2 if size >= 1 else 3}f}"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"


def duration(seconds: float) -> str:
    for unit, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.1f} s"
