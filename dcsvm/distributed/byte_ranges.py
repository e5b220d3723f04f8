"""Byte ranges of a LIBSVM file, which workers read separately.

A range owns the lines that begin in it. The file is a path that all workers can read, or a URL for
fsspec. The ranges depend only on the size of the file, the number of ranges in a task on the number
of threads.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import BinaryIO, TypeVar

import fsspec
import numpy as np
from distributed import get_worker

from dcsvm.data.dataset import extremes_of_text, parse_dataset
from dcsvm.data.pieces import COMPRESSED, DataError
from dcsvm.data.rows import Rows
from dcsvm.data.scaling import Extremes, Scaling
from dcsvm.distributed.chunks import Section

Parsed = TypeVar("Parsed")

FEWEST_RANGES, MOST_RANGES = 16, 256
SMALLEST, LARGEST = 2**20, 2**25  # bytes of a range; MOST_RANGES takes precedence
PIECE = 2**20  # bytes read at a time in search of an end of line
# chunks per thread of large files, and bytes of a chunk; each chunk is a task in every step
CHUNKS_OF_THREAD, SMALLEST_CHUNK, LARGEST_CHUNK = 2, 2**23, 2**26


@dataclass(frozen=True)
class ByteRange:
    """The lines of the file `name` that begin at the bytes `begin`, ..., `end` - 1."""

    name: str
    begin: int
    end: int


def byte_ranges(name: str) -> list[ByteRange]:
    """Divide a file into ranges. Raises DataError for an empty or compressed file.

    A path becomes absolute, since workers may run in other folders.
    """
    with _opened(name) as file:
        head = file.read(8)
        size = file.seek(0, 2)
    if size == 0:
        raise DataError(f"{name}: no rows")
    if any(head.startswith(magic) for magic in COMPRESSED):
        raise DataError(f"{name}: workers cannot read a compressed file: unpack it first")
    name = os.path.abspath(name) if os.path.exists(name) else name
    step = min(max(size // FEWEST_RANGES, SMALLEST), max(LARGEST, size // MOST_RANGES)) + 1
    return [ByteRange(name, begin, min(begin + step, size)) for begin in range(0, size, step)]


def chunks_of_ranges(ranges: list[ByteRange], n_threads: int) -> list[list[ByteRange]]:
    """Group consecutive ranges into the fewest chunks that keep all threads busy."""
    size = ranges[-1].end
    n_chunks = min(max(size // SMALLEST_CHUNK, n_threads), CHUNKS_OF_THREAD * n_threads)
    n_chunks = min(max(n_chunks, -(-size // LARGEST_CHUNK)), len(ranges))
    ends = np.linspace(0, len(ranges), n_chunks + 1).round().astype(int).tolist()
    return [ranges[begin:end] for begin, end in pairwise(ends)]


def read_ranges(
    ranges: list[ByteRange], *, lenient: bool = False, scaling: Scaling | None = None
) -> list[Section]:
    """Read the rows of several ranges. Raises as `read_range`."""
    return [read_range(one, lenient=lenient, scaling=scaling) for one in ranges]


def read_range(
    part: ByteRange, *, lenient: bool = False, scaling: Scaling | None = None
) -> Section:
    """Read the rows of a range. Raises DataError, which names the line of the file."""
    parse = partial(parse_dataset, lenient=lenient, scaling=scaling, first_index=1)
    data = _parse_range(part, parse)
    if data is None:
        return Section(Rows(0, 0, dense=np.zeros((0, 0), np.float32)), np.zeros(0))
    return Section(data.rows, data.labels)


def extremes_of_range(part: ByteRange, *, lenient: bool = False) -> Extremes:
    """Compute the extremes of the features of a range. Raises as `read_range`."""
    return _parse_range(part, partial(extremes_of_text, lenient=lenient)) or Extremes.joined([])


def _parse_range(part: ByteRange, parse: Callable[..., Parsed]) -> Parsed | None:
    """Parse the lines of a range; None if no line begins in it."""
    with _open_on_worker(part.name) as file:
        text = _lines(file, part)
    if not text:
        return None
    try:
        return parse(text, part.name)
    except DataError:
        return parse(text, part.name, first_line=1 + _lines_before(part))


def _opened(name: str) -> BinaryIO:
    """Open a file by fsspec. Raises DataError."""
    try:
        return fsspec.open(name, "rb").open()
    except FileNotFoundError:
        raise DataError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{name}: is a directory") from None
    except OSError as error:
        raise DataError(f"{name}: {(error.strerror or str(error)).lower()}") from None
    except (ImportError, ValueError) as error:  # ValueError: unknown protocol
        raise DataError(f"{name}: {error}") from None


def _open_on_worker(name: str) -> BinaryIO:
    """Open a file in a task; an error names the worker."""
    try:
        return _opened(name)
    except DataError as error:
        try:
            address = get_worker().address
        except ValueError:  # not in a task
            raise error from None
        raise DataError(f"{error} on the worker {address}; all workers must read it") from None


def _lines(file: BinaryIO, part: ByteRange) -> bytes:
    """Read the lines that begin in a range."""
    before = max(part.begin - 1, 0)  # may be the end of the previous line
    file.seek(before)
    text = file.read(part.end - before)
    if part.begin > 0:
        newline = text.find(b"\n")
        if newline < 0:
            return b""
        text = text[newline + 1 :]
    while text and not text.endswith(b"\n") and (more := file.readline(PIECE)):
        text += more
    return text


def _lines_before(part: ByteRange) -> int:
    """Count the lines of the file that begin before a range."""
    with _opened(part.name) as file:
        count, remaining = int(part.begin > 0), max(part.begin - 1, 0)
        while remaining and (piece := file.read(min(remaining, PIECE))):
            count, remaining = count + piece.count(b"\n"), remaining - len(piece)
    return count
