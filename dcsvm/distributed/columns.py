"""The columns of chunks: matched, compared, and encoded as those of one table.

The columns of data frames are those of the first chunk with rows. Other chunks with rows have the
same columns, matched by name: their order is free. Arrays have equal widths.
Sparse matrices may lack the last columns, as parts of a LIBSVM file do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Future

from dcsvm.data.arrays import Float64Parts
from dcsvm.data.columns import Frame, TableEncoding, Values
from dcsvm.data.files import DataError
from dcsvm.data.frames import (
    array_of,
    as_arrow,
    is_arrow,
    is_frame,
    known_frame,
    matrix_names,
    names_of,
    plain_column,
)
from dcsvm.data.reading import encoding_of
from dcsvm.distributed.tasks import Tasks


@dataclass(frozen=True)
class ChunkForm:
    """The form of a chunk; `names` are the columns of a data frame, None for other chunks."""

    n_rows: int
    n_columns: int
    names: tuple[str, ...] | None = None
    is_sparse: bool = False
    has_gaps: bool = False  # of an array

    @staticmethod
    def of(chunk: Any) -> ChunkForm:
        """Find the form of an array, a sparse matrix or a data frame. Raises ValueError."""
        frame = known_frame(chunk)
        if frame is not None:
            names = names_of(frame)
            return ChunkForm(frame.shape[0], len(names), names)
        parts = Float64Parts(chunk)
        return ChunkForm(
            parts.n_rows, parts.n_features, is_sparse=parts.is_sparse, has_gaps=parts.find_gaps()
        )


@dataclass(frozen=True, eq=False)
class MatchedChunks:
    """Chunks with the same columns in the same order.

    Each of `chunks` is a task whose result is an array, a sparse matrix or a data frame. `names`
    are the columns of data frames, None for other chunks.
    """

    tasks: Tasks
    chunks: list[Future]
    forms: list[ChunkForm]
    names: tuple[str, ...] | None

    @staticmethod
    def of(tasks: Tasks, chunks: list[Future]) -> MatchedChunks:
        """Match the columns of chunks. Raises DataError if they differ."""
        forms = tasks.results(
            [tasks.submit(f"form-chunk{k}", ChunkForm.of, one) for k, one in enumerate(chunks)]
        )
        first = next((k for k, form in enumerate(forms) if form.n_rows), 0)
        names = forms[first].names
        _check_kinds(forms)
        if names is None:
            _check_widths(forms)
            return MatchedChunks(tasks, chunks, forms, None)
        placed = [_places(form, names, k, first) for k, form in enumerate(forms)]
        matched = [
            one if form.names == names else tasks.submit(f"match-chunk{k}", chosen, one, places)
            for k, (one, form, places) in enumerate(zip(chunks, forms, placed, strict=True))
        ]
        return MatchedChunks(tasks, matched, forms, names)

    @property
    def n_columns(self) -> int:
        return max(one.n_columns for one in self.forms) if self.names is None else len(self.names)

    def encoding(self) -> TableEncoding | None:
        """Return the encoding of data frames, or of arrays with missing values; None for others.

        The columns are fetched to the client one by one. Raises DataError.
        """
        if self.names is None and not _have_gaps(self.forms):
            return None
        names = self.names or matrix_names(self.n_columns)

        def column(name: str) -> Values:
            return plain_column(self._column(names.index(name)), "X", name)

        n_rows = sum(one.n_rows for one in self.forms)
        return encoding_of(Frame("X", names, n_rows, column, has_names=self.names is not None))

    def _column(self, place: int) -> np.ndarray:
        """Fetch a column of all chunks."""
        futures = [
            self.tasks.submit(f"column{place}-chunk{k}", column_of, one, place)
            for k, one in enumerate(self.chunks)
        ]
        arrays = self.tasks.results(futures)
        used = [one for one in arrays if len(one)] or arrays[:1]  # empty chunks may differ in type
        return np.concatenate(used)


def _check_kinds(forms: Sequence[ChunkForm]) -> None:
    """Raise DataError if some chunks are data frames and others are not."""
    are_frames = [form.names is not None for form in forms]
    if len(set(are_frames)) > 1:
        frame, other = are_frames.index(True), are_frames.index(False)
        raise DataError(f"chunk {frame} is a data frame, chunk {other} is not")


def _have_gaps(forms: Sequence[ChunkForm]) -> bool:
    """Return whether arrays have missing values. Raises DataError if others are sparse."""
    with_gaps = [k for k, form in enumerate(forms) if form.has_gaps]
    sparse = [k for k, form in enumerate(forms) if form.is_sparse]
    if with_gaps and sparse:
        raise DataError(
            f"chunk {with_gaps[0]} has missing values, but chunk {sparse[0]} is a sparse matrix, "
            "which cannot have them"
        )
    return bool(with_gaps)


def _check_widths(forms: Sequence[ChunkForm]) -> None:
    """Raise DataError if a dense array has fewer columns than another chunk."""
    widest = max(range(len(forms)), key=lambda k: forms[k].n_columns)
    n_columns = forms[widest].n_columns
    for k, form in enumerate(forms):
        if form.n_columns < n_columns and not form.is_sparse:
            raise DataError(
                f"chunk {k} has {form.n_columns} features, chunk {widest} has {n_columns}"
            )


def _places(form: ChunkForm, names: tuple[str, ...], k: int, first: int) -> list[int]:
    """Return the places of the named columns in chunk k. Raises DataError if it has others."""
    place_of = {name: place for place, name in enumerate(form.names or ())}
    missing = [name for name in names if name not in place_of]
    if missing:
        raise DataError(f"chunk {k}: no column {missing[0]}, which chunk {first} has")
    more = [name for name in place_of if name not in names]
    if more and form.n_rows:
        raise DataError(f"chunk {first}: no column {more[0]}, which chunk {k} has")
    return [place_of[name] for name in names]


def chosen(chunk: Any, places: list[int]) -> Any:
    """Return the columns of a data frame at some places, in that order."""
    if is_arrow(chunk):
        return as_arrow(chunk).select(places)
    return chunk.iloc[:, places] if hasattr(chunk, "iloc") else chunk[:, places]


def column_of(chunk: Any, place: int) -> np.ndarray:
    """Return the column of an array or a data frame at a place."""
    return array_of(chunk, place) if is_frame(chunk) else np.asarray(chunk)[:, place]
