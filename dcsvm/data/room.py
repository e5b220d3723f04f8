"""Room for rows: memory or, where that is too small, a temporary file that is mapped into it.

The file is in TMPDIR. It has no name and goes with the process. The system keeps in memory what is
used of it and fits.
"""

from __future__ import annotations

import math
import mmap
import os
import shutil
import tempfile

import numpy as np

from dcsvm.data.input_file import DataError
from dcsvm.machine import available_memory, usable_memory

MEMORY_SHARE = 0.6  # of what this process may use, for rows; the rest is for working on them


def fits_memory(n_bytes: int) -> bool:
    return n_bytes <= min(MEMORY_SHARE * usable_memory(), available_memory())


def zeros(shape: tuple[int, int], dtype, name: str) -> np.ndarray:
    """An array for the rows of `name`. Raises DataError where neither memory nor disk has room for
    it."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if fits_memory(n_bytes):
        return np.zeros(shape, dtype)
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    try:
        if n_bytes > free:
            raise OSError("it is full")
        with tempfile.TemporaryFile(dir=folder) as file:
            _reserve(file.fileno(), n_bytes)
            mapped = mmap.mmap(file.fileno(), n_bytes)
    except OSError as error:
        raise DataError(
            f"{name}: the rows take {_mb(n_bytes)} MB, more than the "
            f"{available_memory() // 1_000_000} MB of memory allow, and the {_mb(free)} MB free "
            f"in {folder}, where TMPDIR says, are no room for them either: "
            f"{(error.strerror or str(error)).lower()}"
        ) from error
    return np.frombuffer(mapped, dtype).reshape(shape)


def is_mapped(array: np.ndarray | None) -> bool:
    """Whether an array is a part of a mapped file."""
    while array is not None:
        if isinstance(array, mmap.mmap):
            return True
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return False


def _reserve(descriptor: int, n_bytes: int) -> None:
    """Make a file so long, now, where the system can: a full disk is found before the work."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, n_bytes)
    else:
        os.truncate(descriptor, n_bytes)


def _mb(n_bytes: int) -> int:
    return -(-n_bytes // 1_000_000)
