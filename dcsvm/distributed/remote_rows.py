"""Rows held by workers, addressed by run index, and kernel products on them."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import ArrayLike

from dcsvm import _core
from dcsvm.data.rows import Rows, Storage
from dcsvm.distributed.chunks import SectionFormat, put_together, share, taken
from dcsvm.distributed.tasks import Tasks
from dcsvm.distributed.worker_tasks import TaskResources, Weights, product, run_on_rows
from dcsvm.kernel.cluster_tree import inverse
from dcsvm.kernel.kernel_rows import Cutoff, KernelEvalOptions, KernelRows
from dcsvm.kernel.kernels import Kernel

SAMPLE = 1000  # rows from which the client estimates the cost of kernel values


class RemoteRows:
    """Rows in chunks on workers, with the properties of Rows that training uses.

    Each chunk is the result of a task and consists of sections; `sizes` has the number of rows of
    each section. Chunks may depend on the workers, but sections do not. Therefore results may
    depend on sections but not on chunks. Row i of a run is row `given[i]` (int32) of the
    concatenated chunks. A row takes about `row_bytes` bytes.
    """

    columns = None

    def __init__(
        self,
        tasks: Tasks,
        chunks: Sequence[Future],
        sizes: Sequence[Sequence[int]],
        form: SectionFormat,
        row_bytes: int,
    ):
        self.tasks, self.chunks, self.form, self.row_bytes = tasks, chunks, form, row_bytes
        self.n_features = form.n_features if form.used is None else len(form.used)
        self.is_dense = form.storage is not Storage.SPARSE
        self.sections = [np.cumsum(of_chunk) for of_chunk in sizes]  # ends of sections, by chunk
        ends = np.cumsum([of_chunk[-1] for of_chunk in self.sections])
        self.start = np.concatenate(([0], ends)).astype(np.int64)
        self.given = np.arange(self.start[-1], dtype=np.int32)

    @property
    def n_samples(self) -> int:
        return len(self.given)

    @property
    def n_sections(self) -> int:
        return sum(len(ends) for ends in self.sections)

    def reordered(self, indices: np.ndarray) -> "RemoteRows":
        """Select and reorder rows without moving them."""
        other = copy(self)
        other.given = self.given[indices]
        return other

    def by_chunk(self, indices: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """Locate rows by chunk.

        Returns (chunk, positions in `indices`, rows in the chunk, int32) for each chunk used.
        """
        given = self.given[indices]
        chunk_of = np.searchsorted(self.start, given, side="right") - 1
        order = np.argsort(chunk_of, kind="stable")
        ends = np.searchsorted(chunk_of[order], np.arange(len(self.chunks) + 1))
        parts = []
        for chunk in np.flatnonzero(np.diff(ends)).tolist():
            positions = order[ends[chunk] : ends[chunk + 1]]
            rows = (given[positions] - self.start[chunk]).astype(np.int32)
            parts.append((chunk, positions, rows))
        return parts

    @property
    def in_chunks(self) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """Yield (chunk, run indices of its rows, rows in the chunk) for each chunk used.

        The rows in the chunk are int32, or None for all.
        """
        index = np.full(self.start[-1], -1, np.int32)
        index[self.given] = np.arange(self.n_samples, dtype=np.int32)
        for chunk, (begin, end) in enumerate(pairwise(self.start)):
            selected = np.flatnonzero(index[begin:end] >= 0).astype(np.int32)
            if len(selected):
                is_all = len(selected) == end - begin
                yield chunk, index[begin:end][selected], None if is_all else selected

    def distinct_by_chunk(
        self, indices: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray | None, np.ndarray]]:
        """Locate rows by chunk, without repeated rows.

        Yields (chunk, positions in `indices`, distinct rows, index) for each chunk used. Distinct
        rows are indices in the chunk, or None for all. `index` has for each position the index
        among the distinct rows.
        """
        for chunk, positions, rows in self.by_chunk(indices):
            distinct, index = np.unique(rows, return_inverse=True)
            is_all = len(distinct) == self.start[chunk + 1] - self.start[chunk]
            yield chunk, positions, None if is_all else distinct, index.reshape(-1)

    def pieces(self, indices: np.ndarray, name: str) -> tuple[list[Future], np.ndarray | None]:
        """Submit one task for each chunk used, to select rows.

        Returns the tasks, and the argument `order` of `put_together`, None for the identity.
        """
        parts = self.by_chunk(indices)
        pieces, partial = [self.chunks[chunk] for chunk, _, _ in parts], []
        for k, (chunk, _, rows) in enumerate(parts):
            size = self.start[chunk + 1] - self.start[chunk]
            if len(rows) < size or not np.array_equal(rows, np.arange(size)):
                partial.append(k)
        futures = self.tasks.submit_each(
            f"{name}-rows", taken, [pieces[k] for k in partial], [parts[k][2] for k in partial]
        )
        for k, future in zip(partial, futures, strict=True):
            pieces[k] = future
        self.tasks.traffic.bytes_moved += len(indices) * self.row_bytes
        positions = [positions for _, positions, _ in parts]
        order = np.concatenate(positions) if positions else np.zeros(0, np.int64)
        if np.array_equal(order, np.arange(len(order))):
            return pieces, None
        return pieces, inverse(order)

    def assembled(self, indices: np.ndarray, name: str) -> Future:
        """Submit a task that assembles rows in the order of `indices`."""
        pieces, order = self.pieces(indices, name)
        return self.tasks.submit(f"{name}-rows", put_together, pieces, order)

    def take(self, indices: ArrayLike, stop: _core.Stop | None = None) -> Rows:
        """Fetch rows to the client. Raises Stopped."""
        indices = np.asarray(indices, dtype=np.int64)
        if len(indices) == 0:
            return self.form.no_rows
        pieces, order = self.pieces(indices, "sample")
        return put_together(self.tasks.results(pieces, stop), order)

    take_for_model = take

    def unlike(self, one: Rows) -> np.ndarray:
        """Mark the rows that differ from a single row, bool (n_samples,)."""
        futures = [
            self.tasks.submit(f"unlike-chunk{k}", Rows.unlike, chunk, one)
            for k, chunk in enumerate(self.chunks)
        ]
        return np.concatenate(self.tasks.results(futures))[self.given]


class RemoteKernelRows:
    """Remote rows and a kernel, with the part of KernelRows that training on workers uses.

    `setup` and `points` are made from a `sample` of the rows, to estimate costs. Each task has
    `megabytes` MB for caches and copies.
    """

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
        self.means = TaskResources(kernel, megabytes)
        if sample is None:
            step = -(-rows.n_samples // SAMPLE)
            sample = rows.take(np.arange(0, rows.n_samples, step), stop)
        self.sample = sample
        local = KernelRows(sample, kernel, 1, coded=True)
        self.setup, self.points = local.setup, local.points

    def with_kernel(self, kernel: Kernel) -> "RemoteKernelRows":
        return RemoteKernelRows(self.rows, kernel, self.threads, self.means.megabytes, self.sample)

    def product(
        self, weights: Weights, rows: np.ndarray, *, target_rows: np.ndarray, how: KernelEvalOptions
    ) -> np.ndarray:
        """Compute the kernel product K(target rows, rows) W, as `KernelRows.product`."""
        n_columns = weights[3] if isinstance(weights, tuple) else 1
        result = np.zeros((len(target_rows), n_columns))
        if len(rows) and len(target_rows):
            for positions, index, values in self.on_chunks(
                "product", product, target_rows, rows, (weights,), how
            ):
                result[positions] = values[index]
        return result

    def on_chunks(
        self,
        name: str,
        work: Callable[..., Any],
        targets: np.ndarray,
        sources: np.ndarray,
        shared: tuple[object, ...],
        how: KernelEvalOptions,
        *,
        cutoff: Cutoff | None = None,
        arguments_of: Callable[[np.ndarray, np.ndarray], tuple[object, ...]] | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Run a task for each chunk: `work` on its target rows and all source rows.

        All tasks get the `shared` values. `arguments_of(positions, index)` returns further
        arguments of a task. Yields (positions, index, result) as tasks finish: `positions` in the
        targets, and for each of them its index among the rows of the task. Raises Stopped.
        """
        tasks = self.rows.tasks
        assembled = self.rows.assembled(sources, f"{name}-sources")
        values = tasks.submit(f"{name}-values", share, *shared)
        stop, how = how.stop, replace(how, stop=None)
        located: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        futures: dict[int, Future] = {}
        for chunk, positions, selected, index in self.rows.distinct_by_chunk(targets):
            located[chunk] = positions, index
            args = () if arguments_of is None else arguments_of(positions, index)
            futures[chunk] = tasks.submit(
                f"{name}-chunk{chunk}", run_on_rows, work, self.means,
                [self.rows.chunks[chunk], assembled], selected, None, cutoff, values, how, *args,
            )  # fmt: skip
        for chunk, result in tasks.finished(futures, stop):
            yield *located[chunk], result
