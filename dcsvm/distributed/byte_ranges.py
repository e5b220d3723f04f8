"""A LIBSVM file in byte ranges, each read by a worker on its own.

A range has the lines that begin in it. The file is any that fsspec opens: a path that all workers
see, or a URL. How it is cut depends on its size alone, how many ranges a task reads on the workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import fsspec
import numpy as np
from distributed import get_worker

from dcsvm.data.dataset import extremes_of_text, parse_dataset
from dcsvm.data.pieces import COMPRESSED, DataError
from dcsvm.data.rows import Rows
from dcsvm.data.scaling import Extremes, Scaling
from dcsvm.distributed.chunks import Section

FEWEST_RANGES, MOST_RANGES = 16, 256
SMALLEST, LARGEST = 2**20, 2**25  # bytes of a range, unless there would be more than MOST_RANGES
PIECE = 2**20  # bytes read at a time, where the end of a line is looked for
# of chunks, each of which is a task in every step: for each thread one, or two of larger files, and
# bytes of their ranges
CHUNKS_OF_THREAD, SMALLEST_CHUNK, LARGEST_CHUNK = 2, 2**23, 2**26


@dataclass(frozen=True)
class ByteRange:
    """The lines of the file `name` that begin at bytes `begin` to before `end`."""

    name: str
    begin: int
    end: int


def byte_ranges(name: str) -> list[ByteRange]:
    """The ranges of a file; a path is made absolute, since workers may be in other folders. Raises
    DataError for one that cannot be cut."""
    with _opened(name) as file:
        head = file.read(8)
        size = file.seek(0, 2)
    if size == 0:
        raise DataError(f"{name}: no rows")
    if any(head.startswith(magic) for magic in COMPRESSED):
        raise DataError(f"{name}: workers read parts of the file: unpack it first")
    name = os.path.abspath(name) if os.path.exists(name) else name
    step = min(max(size // FEWEST_RANGES, SMALLEST), max(LARGEST, size // MOST_RANGES)) + 1
    return [ByteRange(name, begin, min(begin + step, size)) for begin in range(0, size, step)]


def chunks_of_ranges(ranges: list[ByteRange], n_threads: int) -> list[list[ByteRange]]:
    """Consecutive ranges for each chunk, of as few chunks as keep the threads of all workers
    busy."""
    size = ranges[-1].end
    n_chunks = min(max(size // SMALLEST_CHUNK, n_threads), CHUNKS_OF_THREAD * n_threads)
    n_chunks = min(max(n_chunks, -(-size // LARGEST_CHUNK)), len(ranges))
    ends = np.linspace(0, len(ranges), n_chunks + 1).round().astype(int).tolist()
    return [ranges[begin:end] for begin, end in pairwise(ends)]


def read_ranges(
    parts: list[ByteRange], *, lenient: bool = False, scaling: Scaling | None = None
) -> list[Section]:
    """The rows of some ranges. Raises as `read_range`."""
    return [read_range(one, lenient=lenient, scaling=scaling) for one in parts]


def read_range(
    part: ByteRange, *, lenient: bool = False, scaling: Scaling | None = None
) -> Section:
    """The rows of a range, none where no line begins in it. Raises DataError, with the line of the
    file."""
    found = _parsed(part, partial(parse_dataset, lenient=lenient, scaling=scaling, first_index=1))
    if found is None:
        return Section(Rows(0, 0, dense=np.zeros((0, 0), np.float32)), np.zeros(0))
    return Section(found.rows, found.labels)


def extremes_of_range(part: ByteRange, *, lenient: bool = False) -> Extremes:
    """The extremes of the features of a range. Raises as `read_range`."""
    return _parsed(part, partial(extremes_of_text, lenient=lenient)) or Extremes.joined([])


def _parsed(part: ByteRange, parse: Callable):
    """What is made of the text of a range and the name of its file, None where no line begins in
    it."""
    with _seen(part.name) as file:
        text = _lines(file, part)
    if not text:
        return None
    try:
        return parse(text, part.name)
    except DataError:
        return parse(text, part.name, first_line=1 + _lines_before(part))


def _opened(name: str):
    """The file, whatever opens it; what goes wrong is a DataError."""
    try:
        return fsspec.open(name, "rb").open()
    except FileNotFoundError:
        raise DataError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{name}: is a directory") from None
    except OSError as error:
        raise DataError(f"{name}: {(error.strerror or str(error)).lower()}") from None
    except (ImportError, ValueError) as error:  # ValueError: of an unknown protocol
        raise DataError(f"{name}: {error}") from None


def _seen(name: str):
    """The file, opened; an error says which worker does not see it."""
    try:
        return _opened(name)
    except DataError as error:
        try:
            where = get_worker().address
        except ValueError:  # in no task
            raise error from None
        raise DataError(f"{error} on the worker {where}; all workers have to see it") from None


def _lines(file, part: ByteRange) -> bytes:
    """The text of the lines that begin in a range."""
    before = max(part.begin - 1, 0)  # a line begins after the end of another
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
    """How many lines of the file begin before a range."""
    with _opened(part.name) as file:
        count, left = int(part.begin > 0), max(part.begin - 1, 0)
        while left and (piece := file.read(min(left, PIECE))):
            count, left = count + piece.count(b"\n"), left - len(piece)
    return count
