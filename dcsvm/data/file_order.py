"""Rows of a mapped file: some of them, or all in another order, where neither side fits the memory.

To put rows in order, both files are gone through from front to back: first every row goes to the
block of the result that it belongs to, then the rows of each block to their places in it.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dcsvm.data.slices import slices

BLOCK_BYTES = 2**25


def gather(source: np.ndarray, row_numbers: np.ndarray, out: np.ndarray) -> None:
    """Write row row_numbers[i] of `source` (n, d) to row i of `out` (m, d), C-contiguous; numbers
    may repeat."""
    size = max(BLOCK_BYTES // max(source[:1].nbytes, 1), 1)
    places = np.argsort(row_numbers, kind="stable").astype(np.int32)  # in the order of the source
    blocks = slices(len(places), size)
    filled = np.array([block.start for block in blocks])
    with page_by_page(out):
        for some in slices(len(places), size):
            place = places[some]
            place = place[np.argsort(place // size, kind="stable")]
            rows, begin = source[row_numbers[place]], 0
            for block, count in zip(*np.unique(place // size, return_counts=True), strict=True):
                out[filled[block] : filled[block] + count] = rows[begin : begin + count]
                filled[block] += count
                begin += count
    places = places[np.argsort(places // size, kind="stable")]  # block by block, as they are in it
    for block in blocks:
        rows = np.array(out[block])
        out[places[block]] = rows


@contextmanager
def page_by_page(array: np.ndarray | None) -> Iterator[None]:
    """The system reads no more of a mapped array than what is used, where it can be told."""
    memory = array
    while memory is not None and not isinstance(memory, mmap.mmap):
        memory = getattr(memory, "base", None)
    if memory is None or not hasattr(mmap, "MADV_RANDOM"):
        yield
        return
    memory.madvise(mmap.MADV_RANDOM)
    try:
        yield
    finally:
        memory.madvise(mmap.MADV_NORMAL)
