"""Rows that are on workers, by the numbers a run gives them, and a kernel on them as far as a
client can tell of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from distributed import Future

from dcsvm import _core
from dcsvm.data.rows import Rows, Storage
from dcsvm.distributed.chunks import Form, kept, put_together, taken
from dcsvm.distributed.on_worker import Means, product, run_on_rows
from dcsvm.distributed.tasks import Tasks
from dcsvm.kernel.cluster_tree import inverse
from dcsvm.kernel.kernel_rows import Evaluation, KernelRows, Reach
from dcsvm.kernel.kernels import Kernel

SAMPLE = 1000  # rows that tell the client what kernel values cost


class RemoteRows:
    """Rows in `chunks`, the results of tasks; a row takes about `row_bytes`. Each chunk is made of
    sections of so many rows (`sizes`): what is computed may depend on these, how many of them are
    in a chunk depends on the workers. Row number r is given row number `given[r]` int32, counted
    through the chunks. They have the properties of Rows that a run asks for."""

    columns = None

    def __init__(
        self,
        tasks: Tasks,
        chunks: Sequence[Future],
        sizes: Sequence[Sequence[int]],
        form: Form,
        row_bytes: int,
    ):
        self.tasks, self.chunks, self.form, self.row_bytes = tasks, chunks, form, row_bytes
        self.n_features = form.n_features
        self.is_dense = form.storage is not Storage.SPARSE
        self.sections = [np.cumsum(of_chunk) for of_chunk in sizes]  # the ends of each, in a chunk
        ends = np.cumsum([of_chunk[-1] for of_chunk in self.sections])
        self.start = np.concatenate(([0], ends)).astype(np.int64)
        self.given = np.arange(self.start[-1], dtype=np.int32)

    @property
    def n_samples(self) -> int:
        return len(self.given)

    @property
    def n_sections(self) -> int:
        return sum(len(ends) for ends in self.sections)

    def reordered(self, numbers: np.ndarray) -> RemoteRows:
        """Some of the rows, in this order; nothing moves."""
        other = copy(self)
        other.given = self.given[numbers]
        return other

    def by_chunk(self, numbers: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """(chunk, places among the numbers, rows int32 of the chunk) of the chunks that have some
        of the rows."""
        given = self.given[numbers]
        chunk = np.searchsorted(self.start, given, side="right") - 1
        order = np.argsort(chunk, kind="stable")
        ends = np.searchsorted(chunk[order], np.arange(len(self.chunks) + 1))
        parts = []
        for number in np.flatnonzero(np.diff(ends)).tolist():
            places = order[ends[number] : ends[number + 1]]
            parts.append((number, places, (given[places] - self.start[number]).astype(np.int32)))
        return parts

    @property
    def in_chunks(self) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """(chunk, which rows are in it, rows int32 of the chunk, None for all of it), in the order
        of the chunks."""
        place = np.full(self.start[-1], -1, np.int32)
        place[self.given] = np.arange(self.n_samples, dtype=np.int32)
        for chunk, (begin, end) in enumerate(zip(self.start[:-1], self.start[1:], strict=True)):
            own = np.flatnonzero(place[begin:end] >= 0).astype(np.int32)
            if len(own):
                is_whole = len(own) == end - begin
                yield chunk, place[begin:end][own], None if is_whole else own

    def distinct_by_chunk(self, numbers: np.ndarray) -> Iterator[tuple]:
        """(chunk, places among the numbers, the rows of the chunk that are among them, None for all
        of it, and which of these each is)."""
        for chunk, places, own in self.by_chunk(numbers):
            distinct, local = np.unique(own, return_inverse=True)
            is_whole = len(distinct) == self.start[chunk + 1] - self.start[chunk]
            yield chunk, places, None if is_whole else distinct, local.reshape(-1)

    def pieces(self, numbers: np.ndarray, name: str) -> tuple[list[Future], np.ndarray | None]:
        """Tasks whose results have these rows, a piece from each chunk, and the order in which they
        have to be put together, None where they are."""
        parts = self.by_chunk(numbers)
        pieces, some = [self.chunks[chunk] for chunk, _, _ in parts], []
        for place, (chunk, _, own) in enumerate(parts):
            size = self.start[chunk + 1] - self.start[chunk]
            if len(own) < size or not np.array_equal(own, np.arange(size)):
                some.append(place)
        owns = [parts[place][2] for place in some]
        taken_rows = self.tasks.submit_each(
            f"{name}-rows", taken, [pieces[place] for place in some], owns
        )
        for place, future in zip(some, taken_rows, strict=True):
            pieces[place] = future
        self.tasks.traffic.moved += len(numbers) * self.row_bytes
        places = [places for _, places, _ in parts]
        order = np.concatenate(places) if places else np.zeros(0, np.int64)
        if np.array_equal(order, np.arange(len(order))):
            return pieces, None
        return pieces, inverse(order)

    def assembled(self, numbers: np.ndarray, name: str) -> Future:
        """A task whose result is these rows, in this order."""
        pieces, order = self.pieces(numbers, name)
        return self.tasks.submit(f"{name}-rows", put_together, pieces, order)

    def take(self, numbers, stop: _core.Stop | None = None) -> Rows:
        """These rows, at the client. Raises Stopped."""
        numbers = np.asarray(numbers, dtype=np.int64)
        if len(numbers) == 0:
            return self.form.no_rows
        pieces, order = self.pieces(numbers, "sample")
        return put_together(self.tasks.results(pieces, stop), order)

    take_for_model = take


class RemoteKernelRows:
    """Remote rows with a kernel on them; `setup` and `points` are those of a `sample` of them,
    which tells what kernel values cost. Tasks have `megabytes` for caches and copies."""

    copy_bytes, is_in_file = 0, False

    def __init__(
        self,
        rows: RemoteRows,
        kernel: Kernel,
        threads: int,
        megabytes: int,
        sample: Rows | None = None,
        stop: _core.Stop | None = None,
    ):
        self.rows, self.kernel, self.threads = rows, kernel, threads
        self.means = Means(kernel, megabytes)
        if sample is None:
            step = -(-rows.n_samples // SAMPLE)
            sample = rows.take(np.arange(0, rows.n_samples, step), stop)
        self.sample = sample
        own = KernelRows(sample, kernel, 1, coded=True)
        self.setup, self.points = own.setup, own.points

    def with_kernel(self, kernel: Kernel) -> RemoteKernelRows:
        return RemoteKernelRows(self.rows, kernel, self.threads, self.means.megabytes, self.sample)

    def product(
        self, weights, rows: np.ndarray, *, target_rows: np.ndarray, how: Evaluation
    ) -> np.ndarray:
        """As `KernelRows.product`."""
        n_columns = weights[3] if isinstance(weights, tuple) else 1
        result = np.zeros((len(target_rows), n_columns))
        if len(rows) and len(target_rows):
            found = self.on_chunks("product", product, target_rows, rows, (weights,), how)
            for places, local, values in found:
                result[places] = values[local]
        return result

    def on_chunks(
        self,
        name: str,
        work: Callable,
        targets: np.ndarray,
        sources: np.ndarray,
        values: tuple,
        how: Evaluation,
        *,
        reach: Reach | None = None,
        more: Callable[[np.ndarray, np.ndarray], tuple] = lambda places, local: (),
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """What `work` makes of the target rows of each chunk and of all source rows, with `values`
        that all tasks have, and `more` of each: (places among the targets, which row of the task
        each is, result) as they come. Raises Stopped."""
        tasks, places, futures = self.rows.tasks, {}, {}
        assembled = self.rows.assembled(sources, f"{name}-sources")
        values = tasks.submit(f"{name}-values", kept, *values)
        stop, how = how.stop, replace(how, stop=None)
        for chunk, own_places, own, local in self.rows.distinct_by_chunk(targets):
            places[chunk] = own_places, local
            futures[chunk] = tasks.submit(
                f"{name}-chunk{chunk}", run_on_rows, work, self.means,
                [self.rows.chunks[chunk], assembled], own, None, reach, values, how,
                *more(own_places, local),
            )  # fmt: skip
        for chunk, found in tasks.finished(futures, stop):
            yield *places[chunk], found
