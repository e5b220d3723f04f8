"""Work cut into parts, to avoid a copy of all of it."""

AT_ONCE = 2**20  # values that are worked on together


def slices(n: int, size: int) -> list[slice]:
    """Slices of so many of n entries, or at least of one, all of them together."""
    starts = range(0, n, max(size, 1))
    return [slice(begin, min(begin + starts.step, n)) for begin in starts]
