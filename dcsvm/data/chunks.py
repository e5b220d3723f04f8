"""Data in chunks that tasks hold on workers: their columns, labels, encoding and scaling.

Chunks are values (arrays, sparse matrices, data frames) or byte ranges of a LIBSVM file: a path
that all workers can read, or a URL. Each task reads its own ranges. A range owns the lines that
begin in it. The ranges depend only on the size of the file. The number of ranges in a chunk also
depends on the number of threads.

The columns of data frames are those of the first chunk with rows. Other chunks with rows have the
same columns, matched by name: their order is free. Arrays have equal widths. Sparse matrices may
lack the last columns, as parts of a LIBSVM file do.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import accumulate, pairwise
from typing import Any, BinaryIO, TypeVar

import numpy as np

from dcsvm.data.arrays import (
    Csr,
    RowError,
    array_of_numbers,
    as_labels,
    label_array,
    unmasked,
)
from dcsvm.data.columns import Frame, TableEncoding, Values, joined
from dcsvm.data.dataset import OWN_SCALINGS, Dataset, loaded
from dcsvm.data.files import COMPRESSED, HEAD, DataError, TextForm
from dcsvm.data.frames import (
    as_arrow,
    column_at,
    has_only_numbers,
    is_arrow,
    is_frame,
    known_frame,
    matrix_names,
    names_of,
    plain_column,
)
from dcsvm.data.reading import (
    Encoding,
    FileOptions,
    MatrixRows,
    Source,
    encoding_of,
    read_values,
    text_rows,
)
from dcsvm.data.rows import Rows
from dcsvm.data.scaling import (
    RANKED_VALUES,
    Extremes,
    Scaling,
    quantile_scaling,
    rounded_away,
    rounding_of,
)
from dcsvm.data.used_columns import columns_far_from_zero

Parsed = TypeVar("Parsed")
Future = Any  # the result of a task, which stays on a worker
Section = tuple[Rows, np.ndarray]  # consecutive rows as read, with labels or targets (n,)

MIN_RANGES, MAX_RANGES = 16, 256
MIN_RANGE, MAX_RANGE = 2**20, 2**25  # bytes of a range; more if the file exceeds MAX_RANGES of them
PIECE = 2**20  # bytes read at a time in search of an end of line
# maximum number of chunks per thread, and bytes of a chunk; MAX_CHUNK takes precedence. Every step
# runs a task for each chunk.
CHUNKS_OF_THREAD, MIN_CHUNK, MAX_CHUNK = 2, 2**23, 2**26


Opener = Callable[[str], BinaryIO]  # opens a file by its name, also in a task, as fsspec.open
Place = Callable[[], str]  # names the worker of a task, in errors; empty outside tasks


def opened(name: str, opener: Opener, place: Place) -> BinaryIO:
    """Open a file. Raises DataError."""
    try:
        return opener(name)
    except FileNotFoundError:
        reason = "no such file"
    except IsADirectoryError:
        reason = "is a directory"
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except (ImportError, ValueError) as error:  # ValueError: unknown protocol
        reason = str(error)
    where = place()
    where = where and f" on the {where}; all workers must read it"
    raise DataError(f"{name}: {reason}{where}")


@dataclass(frozen=True)
class FileRange:
    """The lines of the file `name` that begin at the bytes `begin`, ..., `end` - 1."""

    name: str
    begin: int
    end: int
    opener: Opener
    place: Place

    def lines(self) -> bytes:
        """Read the lines. Raises DataError."""
        with opened(self.name, self.opener, self.place) as file:
            before = max(self.begin - 1, 0)  # this byte may end the previous line
            file.seek(before)
            text = file.read(self.end - before)
            if self.begin > 0:
                newline = text.find(b"\n")
                if newline < 0:
                    return b""
                text = text[newline + 1 :]
            while text and not text.endswith(b"\n") and (more := file.readline(PIECE)):
                text += more
            return text if self.begin > 0 else text.removeprefix(BOM_UTF8)

    def parsed(self, parse: Callable[..., Parsed]) -> Parsed | None:
        """Return parse(lines, name), or None if no line begins in the range.

        An error names the line of the file: the lines before the range are counted only then.
        """
        text = self.lines()
        if not text:
            return None
        try:
            return parse(text, self.name)
        except DataError:
            return parse(text, self.name, first_line=1 + self._n_lines_before())

    def _n_lines_before(self) -> int:
        with opened(self.name, self.opener, self.place) as file:
            count, remaining = int(self.begin > 0), max(self.begin - 1, 0)
            while remaining and (piece := file.read(min(remaining, PIECE))):
                count, remaining = count + piece.count(b"\n"), remaining - len(piece)
        return count


def file_ranges(name: str, opener: Opener, place: Place) -> list[FileRange]:
    """Divide a file into ranges. Raises DataError for an empty, compressed or UTF-16 file.

    A path becomes absolute, since workers may run in other folders.
    """
    with opened(name, opener, place) as file:
        head = file.read(HEAD)
        size = file.seek(0, 2)
    if size == 0:
        raise DataError(f"{name}: no rows")
    if any(head.startswith(magic) for magic in COMPRESSED):
        raise DataError(f"{name}: workers cannot read a compressed file: unpack it first")
    form = TextForm.of(head, name)
    if form.is_foreign:
        raise DataError(f"{name}: workers cannot read {form.description}: save it as UTF-8 first")
    name = os.path.abspath(name) if os.path.exists(name) else name
    step = min(max(size // MIN_RANGES, MIN_RANGE), max(MAX_RANGE, size // MAX_RANGES)) + 1
    begins = range(0, size, step)
    return [FileRange(name, begin, min(begin + step, size), opener, place) for begin in begins]


def chunks_of_ranges(ranges: list[FileRange], n_threads: int) -> list[list[FileRange]]:
    """Group consecutive ranges into the fewest chunks that keep all threads busy."""
    size = ranges[-1].end
    n_chunks = min(max(size // MIN_CHUNK, n_threads), CHUNKS_OF_THREAD * n_threads)
    n_chunks = min(max(n_chunks, -(-size // MAX_CHUNK)), len(ranges))
    ends = np.linspace(0, len(ranges), n_chunks + 1).round().astype(int).tolist()
    return [ranges[begin:end] for begin, end in pairwise(ends)]


@dataclass(frozen=True)
class ChunkColumns:
    """The size and the columns of a chunk: `names` of a data frame, None for other chunks."""

    n_rows: int
    n_columns: int
    names: tuple[str, ...] | None = None
    is_sparse: bool = False
    has_gaps: bool = False  # of an array
    error: RowError | None = None  # of a value that is no finite number

    @staticmethod
    def of(chunk: Any) -> ChunkColumns:
        """Look at an array, a sparse matrix or a data frame. Raises ValueError."""
        frame = known_frame(chunk)
        if frame is not None:
            names = names_of(frame)
            return ChunkColumns(frame.shape[0], len(names), names)
        try:
            rows = MatrixRows(chunk)
            has_gaps = rows.find_gaps()
        except RowError as error:  # the client knows how many rows are before
            return ChunkColumns(len(chunk), chunk.shape[1], error=error)
        return ChunkColumns(
            rows.n_rows, rows.n_features, is_sparse=rows.is_sparse, has_gaps=has_gaps
        )


@dataclass(frozen=True, eq=False)
class Chunks:
    """Data in chunks, `name` in errors.

    Attributes
    ----------
    tasks : carries functions to workers, see `Tasks` in dcsvm/distributed/connection.py.
    blocks : for each chunk, its FileRanges, or a task whose result is an array, a sparse matrix or
        a data frame.
    labels : for each chunk, a task whose result are its labels, or None.
    lenient : accept malformed lines that LIBSVM's reader accepts.
    columns : columns of the chunks, of values that are `matched`.
    names : names of the columns of data frames, None for other chunks.
    """

    tasks: Any
    name: str
    blocks: list[Any]
    labels: list[Any]
    lenient: bool = False
    columns: Sequence[ChunkColumns] = ()
    names: tuple[str, ...] | None = None

    @staticmethod
    def of_file(
        tasks: Any, name: str, opener: Opener, place: Place, n_threads: int, *, lenient: bool
    ) -> Chunks:
        """Divide a file into chunks for a number of threads, see `file_ranges`."""
        chunks = chunks_of_ranges(file_ranges(name, opener, place), n_threads)
        return Chunks(tasks, name, list(chunks), [None] * len(chunks), lenient)

    @property
    def is_file(self) -> bool:
        return is_in_file(self.blocks[0])

    @property
    def n_columns(self) -> int | None:
        """Number of columns before encoding; None for a file, where it is unknown."""
        if self.names is not None:
            return len(self.names)
        return max(one.n_columns for one in self.columns) if self.columns else None

    @property
    def first_rows(self) -> list[int]:
        """Number of the first row of each chunk of values; zeros for a file."""
        sizes = [one.n_rows for one in self.columns] or [0] * len(self.blocks)
        return [0, *accumulate(sizes)][: len(self.blocks)]

    def matched(self) -> Chunks:
        """Return the chunks with the same columns in the same order. Raises DataError."""
        # chunks without rows may have other columns: the first one with rows names them
        columns = self.results("form", ChunkColumns.of, self.blocks)
        for k, one in enumerate(columns):
            if one.error is not None:
                raise one.error.after(sum(other.n_rows for other in columns[:k]))
        first = next((k for k, one in enumerate(columns) if one.n_rows), 0)
        names = columns[first].names
        _check_kinds(columns)
        if names is None:
            _check_widths(columns)
            return replace(self, columns=columns)
        places = [_places(one, names, k, first) for k, one in enumerate(columns)]
        blocks = [
            block
            if one.names == names
            else self.tasks.submit(f"match-chunk{k}", chosen_columns, block, own)
            for k, (block, one, own) in enumerate(zip(self.blocks, columns, places, strict=True))
        ]
        return replace(self, blocks=blocks, columns=columns, names=names)

    def table(self, *, encode_numbers: bool) -> TableEncoding | None:
        """Return the encoding of data frames, or of arrays with missing values; None for others.

        Without `encode_numbers`, data frames of numbers without gaps have none. The columns are
        fetched to the client one by one. Raises DataError.
        """
        if not encode_numbers and all(self.results("numbers", _has_only_numbers, self.blocks)):
            return None
        if self.names is None and not _have_gaps(self.columns):
            return None
        names = self.names or matrix_names(self.n_columns or 0)

        def column(name: str) -> Any:
            k = names.index(name)
            return joined(self.results(f"column{k}", column_of, self.blocks, place=k, column=name))

        n_rows = sum(one.n_rows for one in self.columns)
        return encoding_of(Frame("X", names, n_rows, column, has_names=self.names is not None))

    def fetch_labels(self, sections: list[Future] | None) -> tuple[np.ndarray, np.dtype]:
        """Fetch the labels (n,); return also their type as given, as integers or booleans.

        Those of a file are in its `sections`, the tasks of `read`.
        """
        if sections is not None:
            return np.concatenate(self.results("labels", labels_of, sections)), np.dtype(float)
        of_chunks = self.results("labels", typed_labels, self.labels, self.first_rows)
        labels = np.concatenate([own for own, _ in of_chunks])
        types = [kind for own, kind in of_chunks if len(own)]
        return labels, np.result_type(*types) if types else labels.dtype

    def known_scaling(self, scale: Any) -> Any:
        """Read a range file, which may scale a file; return other values unchanged."""
        return loaded(scale) if self.is_file else scale

    def scaling(self, scale: Any, table: TableEncoding | None) -> Scaling | None:
        """Return the scaling to apply, as without workers. Raises ValueError."""
        if scale is None or isinstance(scale, Scaling):
            return scale
        if scale not in OWN_SCALINGS:
            raise ValueError(f"scale must be one of {', '.join(OWN_SCALINGS)}, got {scale!r}")
        one_hot = None if table is None else table.one_hot
        options = {"encoding": Encoding(table), "lenient": self.lenient}
        if scale == "auto":
            extremes = self.results("ranges", extremes_of, self.blocks, **options)
            return Extremes.joined(extremes).scaling(self.name, one_hot=one_hot)
        sizes = self.results("sizes", sizes_of, self.blocks, **options)
        n_rows, n_values = np.array(sizes, np.int64).reshape(-1, 2).T
        # as many values as one process would rank
        step = max(-(-int(n_values.sum()) // RANKED_VALUES), 1)
        first = [int(one) for one in np.cumsum(n_rows) - n_rows]
        samples = self.results("sample", sample_of, self.blocks, first, step=step, **options)
        parts = [part for own in samples for part in own]
        return quantile_scaling(parts, self.name, one_hot=one_hot)

    def rounded_away(
        self, sections: list[Future], table: TableEncoding | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what `Source.rounded_away` returns without workers; `sections` are of `read`."""
        suspects = self.results("suspects", suspects_of, sections)
        own = [columns for columns in suspects if columns is not None]
        columns = reduce(np.intersect1d, own) if own else np.zeros(0, np.int64)
        if len(columns) == 0:
            return columns, np.zeros((3, 0))
        rounding = self.results(
            "rounding", rounding_of_block, self.blocks, columns=columns, encoding=Encoding(table),
            lenient=self.lenient,
        )  # fmt: skip
        return rounded_away(columns, np.max(rounding, axis=0))

    def read(self, table: TableEncoding | None, scaling: Scaling | None) -> list[Future]:
        """Submit the tasks that read, encode and scale the chunks, as lists of Sections."""
        return self.tasks.on_chunks(
            "read", sections_of, self.blocks, self.labels, self.first_rows,
            encoding=Encoding(table, scaling), lenient=self.lenient,
        )  # fmt: skip

    def results(
        self, name: str, function: Callable[..., Any], *columns: Sequence[Any], **kwargs: Any
    ) -> list[Any]:
        """Return the results of a task for each chunk."""
        return self.tasks.results(self.tasks.on_chunks(name, function, *columns, **kwargs))


def is_in_file(block: object) -> bool:
    """Return whether a block is a list of ranges of a file."""
    return isinstance(block, list) and bool(block) and isinstance(block[0], FileRange)


def _check_kinds(columns: Sequence[ChunkColumns]) -> None:
    """Raise DataError if some chunks are data frames and others are not."""
    are_frames = [one.names is not None for one in columns]
    if len(set(are_frames)) > 1:
        frame, other = are_frames.index(True), are_frames.index(False)
        raise DataError(f"chunk {frame} is a data frame, chunk {other} is not")


def _have_gaps(columns: Sequence[ChunkColumns]) -> bool:
    """Return whether arrays have missing values. Raises DataError if others are sparse."""
    with_gaps = [k for k, one in enumerate(columns) if one.has_gaps]
    sparse = [k for k, one in enumerate(columns) if one.is_sparse]
    if with_gaps and sparse:
        raise DataError(
            f"chunk {with_gaps[0]} has missing values, but chunk {sparse[0]} is a sparse matrix, "
            "which cannot have them"
        )
    return bool(with_gaps)


def _check_widths(columns: Sequence[ChunkColumns]) -> None:
    """Raise DataError if a dense array has fewer columns than another chunk."""
    widest = max(range(len(columns)), key=lambda k: columns[k].n_columns)
    n_columns = columns[widest].n_columns
    for k, one in enumerate(columns):
        if one.n_columns < n_columns and not one.is_sparse:
            raise DataError(
                f"chunk {k} has {one.n_columns} features, chunk {widest} has {n_columns}"
            )


def _places(columns: ChunkColumns, names: tuple[str, ...], k: int, first: int) -> list[int]:
    """Return the places of the named columns in chunk k. Raises DataError if it has others."""
    place_of = {name: place for place, name in enumerate(columns.names or ())}
    missing = [name for name in names if name not in place_of]
    if missing:
        raise DataError(f"chunk {k}: no column {missing[0]}, which chunk {first} has")
    more = [name for name in place_of if name not in names]
    if more and columns.n_rows:
        raise DataError(f"chunk {first}: no column {more[0]}, which chunk {k} has")
    return [place_of[name] for name in names]


def chosen_columns(block: Any, places: list[int]) -> Any:
    """Return the columns of a data frame at some places, in that order."""
    if is_arrow(block):
        return as_arrow(block).select(places)
    return block.iloc[:, places] if hasattr(block, "iloc") else block[:, places]


def column_of(block: Any, place: int, column: str) -> Values:
    """Return the column of an array or a data frame at a place. Raises DataError."""
    if is_frame(block):
        return column_at(block, place, column)
    return plain_column(np.asarray(unmasked(block))[:, place], "X", column)


def _has_only_numbers(block: Any) -> bool:
    return is_frame(block) and has_only_numbers(block)


def typed_labels(labels: Any, first: int) -> tuple[np.ndarray, np.dtype]:
    """Return labels as `as_labels`, and their type as given, of numbers also in objects.

    The first one belongs to the row `first`, for errors.
    """
    values = label_array(labels.to_numpy() if hasattr(labels, "to_numpy") else labels)
    try:
        converted = as_labels(values)
    except RowError as error:
        raise error.after(first) from None
    if values.dtype.kind == "O" and converted.dtype.kind != "U":
        values = array_of_numbers(values.tolist())
    return converted, values.dtype


def sections_of(
    block: Any, labels: Any, first: int, encoding: Encoding, *, lenient: bool
) -> list[Section]:
    """Read a block, encoded and scaled; a section is a range of a file, or all values.

    The row `first` is the first one of values. Raises ValueError, which names the row, and
    DataError, which names the line of the file.
    """
    if not is_in_file(block):
        try:
            data = Dataset(block, labels, like=encoding)
            return [(data.rows, data.labels)]
        except RowError as error:
            raise error.after(first) from None
    read = partial(Dataset.of_text, like=encoding, lenient=lenient)
    parts = [part.parsed(read) for part in block]
    nothing = Rows(0, 0, dense=np.zeros((0, 0), np.float32)), np.zeros(0)
    return [nothing if data is None else (data.rows, data.labels) for data in parts]


def labels_of(sections: Sequence[Section]) -> np.ndarray:
    """Return the labels of a chunk."""
    return np.concatenate([labels for _, labels in sections])


def suspects_of(sections: Sequence[Section]) -> np.ndarray | None:
    """Return the columns of a chunk that float32 may round too much, None for no rows."""
    own = [columns_far_from_zero(rows) for rows, _ in sections if rows.n_samples]
    return reduce(np.intersect1d, own) if own else None


def rounding_of_block(
    block: Any, columns: np.ndarray, encoding: Encoding, *, lenient: bool
) -> np.ndarray:
    """Compute `rounding_of` the columns of a block before scaling, float64 (3, n_columns)."""
    none = rounding_of(np.zeros((0, len(columns))))

    def work(rows: Source) -> np.ndarray:
        return rounding_of(rows.of_columns(columns))

    return np.max([none, *_of_sources(block, encoding, work, lenient=lenient)], axis=0)


def extremes_of(block: Any, encoding: Encoding, *, lenient: bool) -> Extremes:
    """Compute the extremes of the features of a block before scaling."""
    return Extremes.joined(_of_sources(block, encoding, Extremes.of, lenient=lenient))


def sizes_of(block: Any, encoding: Encoding, *, lenient: bool) -> tuple[int, int]:
    """Count the rows and the values of a block before scaling."""

    def size(rows: Source) -> tuple[int, int]:
        ends = [(len(indptr) - 1, int(indptr[-1])) for indptr, _, _ in rows]
        return sum(n_rows for n_rows, _ in ends), sum(n_values for _, n_values in ends)

    sizes = _of_sources(block, encoding, size, lenient=lenient)
    return sum(n_rows for n_rows, _ in sizes), sum(n_values for _, n_values in sizes)


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
    if not is_in_file(block):
        return [work(read_values(block, encoding))]

    def of_text(text: bytes, name: str, first_line: int = 1) -> Parsed:
        rows = text_rows(text, name, encoding, FileOptions(lenient=lenient), first_line)
        return rows.first_pass(partial(work, rows))

    parsed = [part.parsed(of_text) for part in block]
    return [of_range for of_range in parsed if of_range is not None]
