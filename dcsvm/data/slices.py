"""Work cut into parts, to avoid a copy of all of it."""

AT_ONCE = 2**20  # values that are worked on together


def slices(end: int, size: int, begin: int = 0) -> list[slice]:
    """Slices of so many of the entries up to the end, or at least of one, all of them together."""
    starts = range(begin, end, max(size, 1))
    return [slice(first, min(first + starts.step, end)) for first in starts]
