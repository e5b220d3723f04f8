"""Chunks of rows, held by tasks: their statistics, common storage, and selections of rows.

Chunks come from Dask collections, or from byte ranges of a LIBSVM file: a path that all workers can
read, or a URL for fsspec. Each task reads its own ranges. A range owns the lines that begin in it.
The ranges depend only on the size of the file. The number of ranges in a chunk also depends on the
number of threads.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, BinaryIO, TypeVar

import fsspec
import numpy as np
from dask.sizeof import sizeof
from distributed import get_worker

from dcsvm.data.arrays import BATCH_SIZE, Csr, distinct, slices
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import COMPRESSED, DataError
from dcsvm.data.reading import Encoding, FileOptions, Source, read_values, text_rows
from dcsvm.data.rows import Rows, Storage, stacked, storage_of
from dcsvm.data.scaling import Extremes
from dcsvm.data.used_columns import narrowed
from dcsvm.kernel.kernel_rows import TermIndex
from dcsvm.training.state import digest_of


@dataclass(frozen=True, eq=False)
class Section:
    """Consecutive rows as read, with labels or targets (n,); a chunk has one or more."""

    rows: Rows
    labels: np.ndarray


def share(*values: object) -> tuple[object, ...]:
    """Return the arguments: a task that holds values, so that the client sends them only once."""
    return values


def nbytes_of(value: object) -> int:
    """Count the bytes of the arrays in a value."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(nbytes_of(one) for one in value)
    if hasattr(value, "__dataclass_fields__"):
        return sum(nbytes_of(getattr(value, name)) for name in value.__dataclass_fields__)
    return 0


# Dask prefers the worker that holds most bytes of a task's arguments, but can only size arrays
sizeof.register((Rows, Section, TermIndex), nbytes_of)


@dataclass(frozen=True, eq=False)
class SectionStats:
    """Statistics of a section, for the client.

    `n_values` counts nonzero values. The `n_stored` values, all of a dense section, have the `mean`
    and the sum `squares` of squared deviations from it. `nbytes` is the size of the rows. `digest`
    identifies the rows in checkpoints.
    """

    n_rows: int
    n_features: int
    n_values: int
    are_bytes: bool
    nbytes: int
    n_stored: int
    mean: float
    squares: float
    digest: str | None = None


@dataclass(frozen=True, eq=False)
class SectionFormat:
    """The storage format of all rows, and their number of features.

    `used` are the columns that the rows keep, ascending, None for all.
    """

    n_features: int
    storage: Storage
    used: np.ndarray | None = None

    @staticmethod
    def of_all(facts: Sequence[SectionStats]) -> "SectionFormat":
        """Choose the format that the rows of all sections would have in one process."""
        n_rows, n_values = sum(one.n_rows for one in facts), sum(one.n_values for one in facts)
        n_features = max(one.n_features for one in facts)
        are_bytes = all(one.are_bytes for one in facts)
        return SectionFormat(
            n_features, storage_of(n_rows, n_features, n_values, are_bytes=are_bytes)
        )

    @property
    def no_rows(self) -> Rows:
        """Make an empty matrix of this format."""
        empty, start = np.zeros(0, np.float32), np.zeros(1, np.int64)
        n_features = self.n_features if self.used is None else len(self.used)
        rows = Rows(0, n_features, indptr=start, indices=empty.astype(np.int32), values=empty)
        return rows.in_storage(self.storage)


def facts_of(chunk: Sequence[Section], *, with_digest: bool) -> list[SectionStats]:
    """Compute the statistics of each section of a chunk."""
    return [_facts_of(section, with_digest=with_digest) for section in chunk]


def _facts_of(section: Section, *, with_digest: bool) -> SectionStats:
    rows = section.rows
    values = rows.values if rows.dense is None else rows.dense.reshape(-1)
    assert values is not None  # rows are dense or CSR
    mean, squares = mean_and_squares(values)
    return SectionStats(
        rows.n_samples,
        rows.n_features,
        rows.count_values(),
        rows.are_bytes(),
        rows.nbytes,
        values.size,
        mean,
        squares,
        digest_of(rows) if with_digest else None,
    )


def mean_and_squares(values: np.ndarray) -> tuple[float, float]:
    """Return the mean of values and the sum of squared deviations, exact for equal values."""
    if values.size == 0:
        return 0.0, 0.0
    first, total, squares = values[0], 0.0, 0.0
    for some in slices(values.size, BATCH_SIZE):
        total += float(np.subtract(values[some], first, dtype=np.float64).sum())
    mean = float(first) + total / values.size
    for some in slices(values.size, BATCH_SIZE):
        squares += float(np.square(np.subtract(values[some], mean, dtype=np.float64)).sum())
    return mean, squares


def variance_of(facts: Sequence[SectionStats], size: int) -> float:
    """Return the variance of all `size` values of sections, as `numpy.var`.

    Sums are merged as by Chan, Golub and LeVeque (1983); values that are not stored are zeros.
    """
    groups = [(one.n_stored, one.mean, one.squares) for one in facts if one.n_stored]
    n_zeros = size - sum(n for n, _, _ in groups)
    groups += [(n_zeros, 0.0, 0.0)] if n_zeros else []
    if not groups:
        return 0.0
    shift = groups[0][1]
    mean = shift + sum(n * (own - shift) for n, own, _ in groups) / size
    return sum(squares + n * (own - mean) ** 2 for n, own, squares in groups) / size


def columns_of(chunk: Sequence[Section]) -> np.ndarray:
    """Return the columns with values in a chunk, int32 ascending."""
    stored = [one.rows.in_storage(Storage.SPARSE) for one in chunk]
    return distinct(np.concatenate([rows.csr.indices for rows in stored]))


def formed(chunk: Sequence[Section], form: SectionFormat) -> Rows:
    """Convert the rows of a chunk to a storage format."""
    return put_together([_formed(one, form) for one in chunk if one.rows.n_samples], None)


def _formed(section: Section, form: SectionFormat) -> Rows:
    rows = section.rows.with_features(form.n_features).in_storage(form.storage)
    return rows if form.used is None else narrowed(rows, form.used)


def taken(rows: Rows, indices: np.ndarray | None) -> Rows:
    """Select rows; None selects all."""
    return rows if indices is None else rows.take(indices)


def put_together(pieces: Sequence[Rows], order: np.ndarray | None) -> Rows:
    """Concatenate pieces and reorder the rows; row i of the result is row order[i]."""
    return taken(pieces[0] if len(pieces) == 1 else stacked(*pieces), order)


Parsed = TypeVar("Parsed")

MIN_RANGES, MAX_RANGES = 16, 256
MIN_RANGE, MAX_RANGE = 2**20, 2**25  # bytes of a range; more if the file exceeds MAX_RANGES of them
PIECE = 2**20  # bytes read at a time in search of an end of line
# maximum number of chunks per thread, and bytes of a chunk; MAX_CHUNK takes precedence. Every step
# runs a task for each chunk.
CHUNKS_OF_THREAD, MIN_CHUNK, MAX_CHUNK = 2, 2**23, 2**26


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
    step = min(max(size // MIN_RANGES, MIN_RANGE), max(MAX_RANGE, size // MAX_RANGES)) + 1
    return [ByteRange(name, begin, min(begin + step, size)) for begin in range(0, size, step)]


def chunks_of_ranges(ranges: list[ByteRange], n_threads: int) -> list[list[ByteRange]]:
    """Group consecutive ranges into the fewest chunks that keep all threads busy."""
    size = ranges[-1].end
    n_chunks = min(max(size // MIN_CHUNK, n_threads), CHUNKS_OF_THREAD * n_threads)
    n_chunks = min(max(n_chunks, -(-size // MAX_CHUNK)), len(ranges))
    ends = np.linspace(0, len(ranges), n_chunks + 1).round().astype(int).tolist()
    return [ranges[begin:end] for begin, end in pairwise(ends)]


def sections_of(block: Any, labels: Any, encoding: Encoding, *, lenient: bool) -> list[Section]:
    """Read a block, encoded and scaled: ranges of a file, or values with their labels.

    Raises ValueError, and DataError, which names the line of the file.
    """
    if is_ranges(block):
        return [read_range(one, encoding, lenient=lenient) for one in block]
    data = Dataset(block, labels, like=encoding)
    return [Section(data.rows, data.labels)]


def read_range(part: ByteRange, encoding: Encoding, *, lenient: bool = False) -> Section:
    """Read the rows of a range, see `sections_of`."""
    data = _parse_range(part, partial(Dataset.of_text, like=encoding, lenient=lenient))
    if data is None:
        return Section(Rows(0, 0, dense=np.zeros((0, 0), np.float32)), np.zeros(0))
    return Section(data.rows, data.labels)


def extremes_of(block: Any, encoding: Encoding, *, lenient: bool) -> Extremes:
    """Compute the extremes of the features of a block before scaling."""
    return Extremes.joined(_of_sources(block, encoding, Extremes.of, lenient=lenient))


def sizes_of(block: Any, encoding: Encoding, *, lenient: bool) -> tuple[int, int]:
    """Count the rows and the values of a block before scaling."""
    found = _of_sources(block, encoding, _size, lenient=lenient)
    return sum(n_rows for n_rows, _ in found), sum(n_values for _, n_values in found)


def _size(rows: Source) -> tuple[int, int]:
    ends = [(len(indptr) - 1, int(indptr[-1])) for indptr, _, _ in rows]
    return sum(n_rows for n_rows, _ in ends), sum(n_values for _, n_values in ends)


def sample_of(block: Any, first: int, step: int, encoding: Encoding, *, lenient: bool) -> list[Csr]:
    """Return every `step`-th row of a block before scaling; its first row has number `first`."""
    parts: list[Csr] = []
    for own in _of_sources(block, encoding, list, lenient=lenient):
        for part in own:
            n_rows = len(part[0]) - 1
            chosen = np.flatnonzero((first + np.arange(n_rows)) % step == 0)
            parts.append(part.take(chosen))
            first += n_rows
    return parts


def _of_sources(
    block: Any, encoding: Encoding, work: Callable[[Source], Parsed], *, lenient: bool
) -> list[Parsed]:
    """Apply `work` to the rows before scaling of each range of a block, or of its values."""
    if not is_ranges(block):
        return [work(read_values(block, encoding))]

    def of_text(text: bytes, name: str, first_line: int = 1) -> Parsed:
        rows = text_rows(text, name, encoding, FileOptions(lenient=lenient), first_line)
        return rows.first_pass(partial(work, rows))

    found = [_parse_range(one, of_text) for one in block]
    return [one for one in found if one is not None]


def is_ranges(block: object) -> bool:
    """Return whether a block is a list of ranges of a file."""
    return isinstance(block, list) and bool(block) and isinstance(block[0], ByteRange)


def labels_of(sections: Sequence[Section]) -> np.ndarray:
    """Return the labels of a chunk."""
    return np.concatenate([one.labels for one in sections])


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
    before = max(part.begin - 1, 0)  # this byte may end the previous line
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
