"""Room for rows: memory or, where that is too small, a temporary file that is mapped into it.

The file is in TMPDIR. It has no name and goes with the process. The system keeps in memory what is
used of it and fits.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dcsvm.data.pieces import DataError
from dcsvm.data.sorting import slices
from dcsvm.machine import available_memory, usable_memory

MEMORY_SHARE = 0.6  # of what this process may use, for rows; the rest is for working on them


def fits_memory(n_bytes: int) -> bool:
    return n_bytes <= min(MEMORY_SHARE * usable_memory(), available_memory())


def zeros(shape: tuple[int, ...], dtype, name: str, in_all: int | None = None) -> np.ndarray:
    """An array for the rows of `name`, which take so many bytes `in_all`, None for an array that is
    all of it. Raises DataError where neither memory nor disk has room for it."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes == 0 or fits_memory(in_all or n_bytes):
        return np.zeros(shape, dtype)
    folder = "TMPDIR"
    try:
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if _is_memory(folder):
            raise OSError("it is memory itself")
        if n_bytes > free:
            raise OSError(f"only {_mb(free)} MB are free")
        with tempfile.TemporaryFile(dir=folder) as file:
            _reserve(file.fileno(), n_bytes)
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
    except OSError as error:
        raise DataError(
            f"{name}: the rows take {_mb(n_bytes)} MB, more than the "
            f"{available_memory() // 1_000_000} MB of memory allow, and there is no room in "
            f"{folder} (TMPDIR): {error.strerror.lower() if error.strerror else error}"
        ) from error


def is_mapped(array: np.ndarray | None) -> bool:
    """Whether an array is a part of a mapped file on a disk."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return array.filename is None or not _is_memory(os.path.dirname(array.filename))
        array = array.base
    return False


def _is_memory(folder: str) -> bool:
    """Whether the files of a folder are kept in memory."""
    folder = os.path.join(os.path.realpath(folder), "")
    try:
        with open("/proc/mounts", encoding="utf-8", errors="replace") as file:
            mounts = [line.split()[1:3] for line in file]
    except OSError:
        return False
    above = [(path, kind) for path, kind in mounts if folder.startswith(os.path.join(path, ""))]
    return max(above, key=lambda one: len(one[0]), default=("", ""))[1] in ("tmpfs", "ramfs")


def _reserve(descriptor: int, n_bytes: int) -> None:
    """Make a file so long, now, where the system can: a full disk is found before the work."""
    try:
        os.posix_fallocate(descriptor, 0, n_bytes)
    except (AttributeError, OSError) as error:
        if getattr(error, "errno", None) not in (None, errno.EOPNOTSUPP, errno.EINVAL):
            raise
        os.truncate(descriptor, n_bytes)


def _mb(n_bytes: int) -> int:
    return -(-n_bytes // 1_000_000)


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
