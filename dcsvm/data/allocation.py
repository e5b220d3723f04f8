"""Allocate arrays for rows: in memory or, if they do not fit, in a mapped temporary file.

The file is in TMPDIR. It has no name, and the system deletes it when the process ends.
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
from typing import TYPE_CHECKING

import numpy as np

from dcsvm.data.files import DataError
from dcsvm.data.sorting import slices
from dcsvm.machine import available_memory, usable_memory

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

MEMORY_SHARE = 0.6  # fraction of the usable memory for rows; the rest is for computations


def fits_memory(n_bytes: int) -> bool:
    """Return whether rows of this size may be held in memory."""
    return n_bytes <= min(MEMORY_SHARE * usable_memory(), available_memory())


def zeros(
    shape: tuple[int, ...], dtype: DTypeLike, name: str, total_bytes: int | None = None
) -> np.ndarray:
    """Allocate an array of zeros for rows.

    `name` is the file name for errors. `total_bytes` is the total size of all arrays that hold
    the rows; None means that this is the only one. Raises DataError if neither memory nor disk
    has enough space.
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes == 0 or fits_memory(total_bytes or n_bytes):
        return np.zeros(shape, dtype)
    folder = "TMPDIR"
    try:
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if _is_memory(folder):
            raise OSError("it is a file system in memory")
        if n_bytes > free:
            raise OSError(f"only {_mb(free)} MB are free")
        with tempfile.TemporaryFile(dir=folder) as file:
            _reserve(file.fileno(), n_bytes)
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
    except OSError as error:
        raise DataError(
            f"{name}: the rows take {_mb(n_bytes)} MB, more than the "
            f"{available_memory() // 1_000_000} MB of memory allow, and cannot be stored in "
            f"{folder} (TMPDIR): {error.strerror.lower() if error.strerror else error}"
        ) from error


def is_mapped(array: np.ndarray | None) -> bool:
    """Return whether an array is memory-mapped from a file on disk."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return array.filename is None or not _is_memory(os.path.dirname(array.filename))
        array = array.base
    return False


def _is_memory(folder: str) -> bool:
    """Return whether a folder is on a file system in memory."""
    folder = os.path.join(os.path.realpath(folder), "")
    try:
        with open("/proc/mounts", encoding="utf-8", errors="replace") as file:
            mounts = [line.split()[1:3] for line in file]
    except OSError:
        return False
    above = [(path, kind) for path, kind in mounts if folder.startswith(os.path.join(path, ""))]
    return max(above, key=lambda mount: len(mount[0]), default=("", ""))[1] in ("tmpfs", "ramfs")


def _reserve(descriptor: int, n_bytes: int) -> None:
    """Reserve disk space, if the system can, so that a full disk is an error now, not later."""
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
    """Copy row row_numbers[i] of `source` (n, d) to row i of `out` (m, d), for all i.

    `out` is C-contiguous and may be mapped; indices may repeat.
    """
    size = max(BLOCK_BYTES // max(source[:1].nbytes, 1), 1)
    # rows of `out`, in the order of their source rows
    targets = np.argsort(row_numbers, kind="stable").astype(np.int32)
    blocks = slices(len(targets), size)
    filled = np.array([block.start for block in blocks])
    with page_by_page(out):
        for batch in blocks:
            target = targets[batch]
            target = target[np.argsort(target // size, kind="stable")]
            rows, begin = source[row_numbers[target]], 0
            for block, count in zip(*np.unique(target // size, return_counts=True), strict=True):
                out[filled[block] : filled[block] + count] = rows[begin : begin + count]
                filled[block] += count
                begin += count
    # each block of `out` now has its own rows, in source order: move them to their targets
    targets = targets[np.argsort(targets // size, kind="stable")]
    for batch in blocks:
        rows = np.array(out[batch])
        out[targets[batch]] = rows


@contextmanager
def page_by_page(array: np.ndarray | None) -> Iterator[None]:
    """Disable the system's read-ahead for a mapped array, for random access."""
    memory: object = array
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
