"""A Dataset whose rows stay on the workers of a Dask cluster, and their source for a run.

The columns of data frames are those of the first chunk with rows. Other chunks with rows have the
same columns, matched by name: their order is free. Arrays have equal widths. Sparse matrices may
lack the last columns, as parts of a LIBSVM file do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.delayed import Delayed
from distributed import Client, Future

from dcsvm import _core
from dcsvm.data.arrays import as_labels, as_weights, distinct
from dcsvm.data.columns import Frame, TableEncoding, Values
from dcsvm.data.dataset import OWN_SCALINGS, Dataset, loaded
from dcsvm.data.files import DataError
from dcsvm.data.frames import (
    array_of,
    as_arrow,
    has_only_numbers,
    is_arrow,
    is_frame,
    known_frame,
    matrix_names,
    names_of,
    plain_column,
)
from dcsvm.data.reading import Encoded, Encoding, MatrixRows, encoding_of
from dcsvm.data.rows import Rows, are_far
from dcsvm.data.scaling import RANKED_VALUES, Extremes, Scaling, quantile_scaling
from dcsvm.data.used_columns import UsedColumns
from dcsvm.distributed.chunks import (
    Section,
    SectionFormat,
    SectionStats,
    byte_ranges,
    chunks_of_ranges,
    columns_of,
    extremes_of,
    facts_of,
    formed,
    labels_of,
    sample_of,
    sections_of,
    sizes_of,
    variance_of,
)
from dcsvm.distributed.connection import (
    Tasks,
    WorkerMemory,
    plan_worker_memory,
    threads_of_hosts,
    workers_of_scheduler,
    workers_of_this_machine,
)
from dcsvm.distributed.engine import (
    DaskEngine,
    RemoteKernelRows,
    RemoteRows,
    find_remote_components,
)
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import RowComponents
from dcsvm.machine import usable_threads
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.duplicates import RowMap, all_different, duplicates_by_keys, row_keys
from dcsvm.problem.formulation import Formulation
from dcsvm.problem.options import OptionError, TrainOptions
from dcsvm.training.memory import Plan
from dcsvm.training.state import RunControl, fingerprint

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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
        rows = MatrixRows(chunk)
        return ChunkForm(
            rows.n_rows, rows.n_features, is_sparse=rows.is_sparse, has_gaps=rows.find_gaps()
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


Collection = Any  # a dask array or dataframe, or a list of delayed chunks


@dataclass(frozen=True, eq=False)
class DaskRows:
    """RowSource of remote rows.

    The client holds `facts`, the statistics of each section. The rows have only the columns in
    use.
    """

    rows: RemoteRows
    facts: list[SectionStats]
    columns: UsedColumns
    owns_rows: bool = False

    def fingerprint(self, labels: np.ndarray, sample_weight: np.ndarray) -> dict[str, Any]:
        """Identify the data and their division into sections, for checkpoints."""
        digests = " ".join(str(one.digest) for one in self.facts)
        return fingerprint(self.rows, digests, labels, sample_weight)

    def with_gamma(self, options: TrainOptions) -> TrainOptions:
        """Replace a gamma that is no number by its number for these rows, as without workers."""
        rows: Rows = self.rows  # type: ignore[assignment]  # has RemoteRows instead of Rows
        return number_of_gamma(options, rows, self.columns.n_features, lambda: self.variance)

    @property
    def variance(self) -> float:
        """Return the variance of all feature values, as `numpy.var`."""
        return variance_of(self.facts, self.rows.n_samples * self.columns.n_features)

    def with_kernel(self, options: TrainOptions) -> tuple[DaskRows, Kernel]:
        if options.kernel_type.is_precomputed:
            raise OptionError("kernel", "precomputed cannot be used on workers")
        return self, options.kernel_on(self.rows.n_features)

    def duplicates(
        self, targets: np.ndarray, sample_weight: np.ndarray, stop: _core.Stop
    ) -> RowMap:
        tasks = self.rows.tasks
        if not self.rows.is_dense:
            return all_different(sample_weight)
        futures = [
            tasks.submit(f"keys-chunk{k}", row_keys, chunk)
            for k, chunk in enumerate(self.rows.chunks)
        ]
        keys = np.concatenate(tasks.results(futures, stop))
        return duplicates_by_keys(keys, targets, sample_weight)

    def plan_memory(
        self, options: TrainOptions, _formulation: Formulation, _plan: Plan
    ) -> WorkerMemory:
        nbytes = self.rows.n_samples * self.rows.row_bytes
        return plan_worker_memory(self.rows.tasks.client, nbytes, options.cache_mb)

    def reordered(self, indices: np.ndarray) -> DaskRows:
        return replace(self, rows=self.rows.reordered(indices))

    def find_components(
        self, kernel: Kernel, weight: float, tolerance: float, _plan: Plan, _options: TrainOptions,
        stop: _core.Stop,
    ) -> tuple[RowComponents, None]:  # fmt: skip
        return find_remote_components(self.rows, kernel, weight, tolerance, stop), None

    def engine(
        self, kernel: Kernel, memory: WorkerMemory, _n_variables: int, stop: _core.Stop
    ) -> DaskEngine:
        threads, megabytes = memory.threads, memory.megabytes
        return DaskEngine(RemoteKernelRows(self.rows, kernel, threads, megabytes, stop=stop))


def remote_rows(
    tasks: Tasks, chunks: list[Future], control: RunControl, test: Rows | None = None
) -> DaskRows:
    """Make remote rows from chunks; each chunk is a task whose result is a list of Sections.

    The columns of `test` rows are kept, too. Raises Stopped, ValueError without rows, and any error
    of a task.
    """
    with_digest = control.checkpoint is not None
    futures = [
        tasks.submit(f"facts-chunk{k}", facts_of, chunk, with_digest=with_digest)
        for k, chunk in enumerate(chunks)
    ]
    by_chunk: list[list[SectionStats]] = [
        [one for one in of_chunk if one.n_rows] for of_chunk in tasks.results(futures, control.stop)
    ]
    used = [k for k, of_chunk in enumerate(by_chunk) if of_chunk]
    facts = [one for of_chunk in by_chunk for one in of_chunk]
    if not facts:
        raise ValueError("no rows to train on")
    form = SectionFormat.of_all(facts)
    if are_far(form.n_features, sum(one.n_values for one in facts)):
        futures = [tasks.submit(f"columns-chunk{k}", columns_of, chunks[k]) for k in used]
        columns = tasks.results(futures, control.stop)
        columns += [] if test is None else [columns_of([Section(test, np.zeros(0))])]
        form = replace(form, used=distinct(np.concatenate(columns)))
    rows = [tasks.submit(f"form-chunk{k}", formed, chunks[k], form) for k in used]
    sizes = [[one.n_rows for one in by_chunk[k]] for k in used]
    row_bytes = -(-sum(one.nbytes for one in facts) // sum(one.n_rows for one in facts))
    remote = RemoteRows(tasks, rows, sizes, form, row_bytes)
    return DaskRows(remote, facts, UsedColumns(form.n_features, form.used))


@dataclass(frozen=True)
class FileOnWorkers:
    """A LIBSVM file in chunks of ranges, which workers read."""

    name: str
    chunks: list[Any]
    lenient: bool = False


@contextmanager
def file_on_workers(
    path: str,
    *,
    scheduler: str | None = None,
    scheduler_file: str | None = None,
    n_workers: int | None = None,
    threads: int | None = None,
    **options: Any,
) -> Iterator[RemoteDataset]:
    """Connect to workers, or start `n_workers` on this machine, and read a file on them.

    `scheduler` is the address of a Dask scheduler, `scheduler_file` a file that has it. Workers of
    this machine share the `threads`. For `options` see `read_on_workers`. Raises ValueError.
    """
    byte_ranges(path)  # reports file errors before workers start
    _silence_dask()
    if n_workers is not None:
        connected = workers_of_this_machine(n_workers, usable_threads(threads))
    else:
        connected = workers_of_scheduler(scheduler, scheduler_file)
    with connected as client:
        yield read_on_workers(client, path, **options)


def _silence_dask() -> None:
    """Turn off Dask's log of lost connections, which errors report."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def read_on_workers(
    client: Client,
    path: str,
    *,
    scale: str | Scaling | None = None,
    lenient: bool = False,
    n_threads: int | None = None,
) -> RemoteDataset:
    """Read a LIBSVM file, which all workers can read, or a URL of fsspec; each reads a part.

    `scale` may also be a range file of svm-scale, which models do not contain. The file is divided
    for `n_threads` threads, by default those of the workers. Raises DataError.
    """
    ranges = byte_ranges(path)
    n_threads = n_threads or sum(threads_of_hosts(client).values())
    chunks: list[Any] = chunks_of_ranges(ranges, n_threads)
    return RemoteDataset(client, FileOnWorkers(path, chunks, lenient), scale=scale)


class RemoteDataset(Dataset):
    """A Dataset of rows that stay on the workers; it can be trained, scaled and weighted.

    Parameters
    ----------
    client : distributed.Client
        A client of the cluster.
    X : dask array of shape (n, d), dask dataframe, or list of delayed chunks
        The rows. A delayed chunk is a NumPy array, a SciPy sparse matrix or a data frame. Data
        frames have the same columns, in any order.
    y : dask array of shape (n,), dask series, or list of delayed chunks, optional
        The labels or targets. A list, or an array with unknown chunk sizes, must be chunked as X.
    sample_weight : array or dask array of shape (n,), or list of delayed chunks, optional
    scale, feature_weights : as for dcsvm.Dataset
    encode_numbers : bool, default True
        Encode the columns of a data frame of numbers without gaps, too: rows to predict may then
        have gaps, and columns in another order.

    Raises ValueError or TypeError for invalid input.
    """

    def __init__(
        self,
        client: Client,
        X: Collection | FileOnWorkers,
        y: Collection | None = None,
        *,
        sample_weight: Any = None,
        scale: str | Scaling | None = None,
        feature_weights: ArrayLike | None = None,
        encode_numbers: bool = True,
    ):
        self.tasks, self.first_index = Tasks(client), 1  # no worker reads a whole file
        self.lenient = False
        self._n_columns: int | None = None  # of a file, unknown
        self._label_type: np.dtype = np.dtype(np.float64)
        self._chunks: list[Future] | None = None
        self._kept: DaskRows | None = None
        self.is_scaling_stored, self.is_disposable, self.has_labels = True, False, True
        if isinstance(X, FileOnWorkers):
            self.name, self.lenient, self.table = X.name, X.lenient, None
            self._blocks, self._labels = X.chunks, [None] * len(X.chunks)
        else:
            self._compute(client, X, y)
            matched = MatchedChunks.of(self.tasks, self._blocks)
            self._blocks, self._n_columns = matched.chunks, matched.n_columns
            if encode_numbers or not self._has_only_numbers:
                self.table = matched.encoding()
        known = loaded(scale) if isinstance(X, FileOnWorkers) else scale
        self.is_scaling_stored = known is scale
        self.scaling = self._scaling_of(known, None)
        if isinstance(X, FileOnWorkers):
            self.labels = np.concatenate(self._results("labels", labels_of, self._sections()))
        elif self.has_labels:
            self._fetch_labels()
        else:
            self.labels = np.zeros(self.rows.n_samples)
        weights = whole_array(client, sample_weight)
        self.sample_weight = None if weights is None else as_weights(weights, len(self.labels))
        if feature_weights is not None:
            self.scaling = self.weighted(feature_weights).scaling
            self.forget_rows()  # without weights

    def _compute(self, client: Client, X: Collection, y: Collection | None) -> None:
        """Start to compute collections on the workers. Raises ValueError and TypeError."""
        parts, labels = _parts(X), [] if y is None else _parts(_chunked_as(X, y))
        if y is not None and len(parts) != len(labels):
            raise ValueError(f"X has {len(parts)} chunks, y has {len(labels)}")
        futures = client.compute([*parts, *labels])
        self.name, self._blocks = "X", futures[: len(parts)]
        self._labels = futures[len(parts) :] or [None] * len(parts)
        self.has_labels, self.table = y is not None, None

    def _fetch_labels(self) -> None:
        """Set the labels, and their type."""
        found = self._results("labels", _as_labels, self._labels)
        self.labels = np.concatenate([labels for labels, _ in found])
        types = [kind for labels, kind in found if len(labels)]
        self._label_type = np.result_type(*types) if types else self.labels.dtype

    @property
    def given_labels(self) -> np.ndarray:
        """The labels in the type as given, such as integers or booleans."""
        return self.labels.astype(self._label_type)

    @property
    def _has_only_numbers(self) -> bool:
        """Whether all blocks are data frames of numbers without gaps."""
        return all(self._results("numbers", _has_only_numbers, self._blocks))

    def _submit(
        self, name: str, function: Callable[..., Any], *columns: Sequence[Any], **kwargs: Any
    ) -> list[Future]:
        """Submit a task for each tuple of `zip(*columns)`."""
        return [
            self.tasks.submit(f"{name}-chunk{k}", function, *values, **kwargs)
            for k, values in enumerate(zip(*columns, strict=True))
        ]

    def _results(
        self, name: str, function: Callable[..., Any], *columns: Sequence[Any], **kwargs: Any
    ) -> list[Any]:
        """Return the results of the tasks of `_submit`."""
        return self.tasks.results(self._submit(name, function, *columns, **kwargs))

    def _sections(self) -> list[Future]:
        """Submit the tasks that read, encode and scale the blocks, unless they are submitted."""
        if self._chunks is None:
            encoding = Encoding(self.table, self.scaling)
            self._chunks = self._submit(
                "read", sections_of, self._blocks, self._labels, encoding=encoding,
                lenient=self.lenient,
            )  # fmt: skip
        return self._chunks

    def _scaling_of(self, scale: Any, like: Encoded | None) -> Scaling | None:  # noqa: ARG002
        """Return the scaling to apply, as without workers. Raises ValueError."""
        if scale is None or isinstance(scale, Scaling):
            return scale
        if scale not in OWN_SCALINGS:
            raise ValueError(f"scale must be one of {', '.join(OWN_SCALINGS)}, got {scale!r}")
        one_hot = None if self.table is None else self.table.one_hot
        options = {"encoding": Encoding(self.table), "lenient": self.lenient}
        if scale == "auto":
            found = self._results("ranges", extremes_of, self._blocks, **options)
            return Extremes.joined(found).scaling(self.name, one_hot=one_hot)
        sizes = self._results("sizes", sizes_of, self._blocks, **options)
        n_rows, n_values = np.array(sizes, np.int64).reshape(-1, 2).T
        step = max(-(-int(n_values.sum()) // RANKED_VALUES), 1)
        first = [int(one) for one in np.cumsum(n_rows) - n_rows]
        found = self._results("sample", sample_of, self._blocks, first, step=step, **options)
        parts = [part for own in found for part in own]
        return quantile_scaling(parts, self.name, one_hot=one_hot)

    @property
    def rows(self) -> Any:
        """The rows on the workers: RemoteRows."""
        if self._kept is None:
            self._kept = remote_rows(self.tasks, self._sections(), RunControl())
        return self._kept.rows

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def n_features(self) -> int:
        if self.table is not None:
            return self.table.n_features
        if self._n_columns is not None:
            return self._n_columns
        assert self.rows
        assert self._kept is not None
        return self._kept.columns.n_features

    def variance(self) -> float:
        """Return the variance of all feature values, as `numpy.var`."""
        assert self.rows
        assert self._kept is not None
        return self._kept.variance

    def scaled(self, scale: str | Scaling | None) -> RemoteDataset:
        """Return the data set in a scaling, without weights."""
        scaling = self._scaling_of(scale, None)
        return self._anew(scaling=scaling, is_scaling_stored=True)

    def weighted(self, weights: Any, columns: np.ndarray | None = None) -> RemoteDataset:
        """Multiply the scaled features by weights, float64 (n_features,), all at least 0."""
        scaling = self._weighted_scaling(np.asarray(weights, np.float64), columns)
        return self._anew(scaling=scaling, is_scaling_stored=True)

    def changed(self, sample_weight: Any = None, scale: str | Scaling | None = None) -> Dataset:
        """Return the data set with other weights or another scaling, where they are given."""
        return super().changed(whole_array(self.tasks.client, sample_weight), scale)

    def disposable(self) -> RemoteDataset:
        """Return the data set for one training: the workers then forget the rows as given."""
        own = {"_blocks": list(self._blocks), "_labels": list(self._labels)}  # to be forgotten
        return self._with(is_disposable=True, **own)

    def forget_rows(self) -> None:
        """Let the workers forget the rows as trained, which are made again if they are needed."""
        self._chunks = self._kept = None

    def _anew(self, **changes: Any) -> RemoteDataset:
        """Return a copy whose rows are encoded anew."""
        return self._with(_chunks=None, _kept=None, **changes)

    def check_is_here(self) -> None:
        raise TypeError("only dcsvm.train takes a RemoteDataset, as its training rows")

    def row_source(self, control: RunControl, test: Dataset | None) -> DaskRows:
        """Return the rows for a run. Raises Stopped."""
        chunks, kept = self._sections(), self._kept
        self._chunks = self._kept = None
        if self.is_disposable:
            self._blocks.clear()
            self._labels.clear()
        if kept is not None and test is None and control.checkpoint is None:
            return kept  # checkpoints need digests of the rows, test rows their columns
        return remote_rows(self.tasks, chunks, control, None if test is None else test.rows)


def _has_only_numbers(block: Any) -> bool:
    return is_frame(block) and has_only_numbers(block)


def _as_labels(labels: Any) -> tuple[np.ndarray, np.dtype]:
    """Return labels as `as_labels`, and their type as given, of numbers also in objects."""
    values = np.asarray(_plain(labels))
    found = as_labels(values)
    if values.dtype.kind == "O" and found.dtype.kind != "U":
        values = np.array(values.tolist())
    return found, values.dtype


def _chunked_as(X: Collection, y: Collection) -> Collection:
    """Divide labels as the rows, if the sizes of their chunks are known."""
    is_known = hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any()
    return y.rechunk((X.chunks[0],)) if is_known and hasattr(y, "rechunk") else y


def is_collection(values: object) -> bool:
    """Return whether values are a dask collection or a list of delayed chunks."""
    if isinstance(values, (list, tuple)):
        return len(values) > 0 and all(isinstance(one, Delayed) for one in values)
    return hasattr(values, "__dask_graph__")


def whole_array(client: Client, values: Any) -> np.ndarray | None:
    """Fetch a dask array or delayed chunks to the client as an array; return others unchanged."""
    if isinstance(values, (list, tuple)) and is_collection(values):
        chunks = client.gather(client.compute(list(values)))
        return np.concatenate([np.asarray(one) for one in chunks])
    if values is None or not hasattr(values, "dask"):
        return values
    return np.asarray(client.compute(values).result())


def _parts(collection: Collection) -> list[Delayed]:
    """Split a collection along its rows into delayed chunks. Raises TypeError."""
    if isinstance(collection, (list, tuple)):
        return list(collection)
    if isinstance(collection, Delayed):
        return [collection]
    if getattr(collection, "ndim", 1) == 2 and hasattr(collection, "rechunk"):
        collection = collection.rechunk({1: -1})
    if not hasattr(collection, "to_delayed"):
        raise TypeError(
            "X and y must be dask arrays, dataframes or lists of delayed chunks, not "
            f"{type(collection).__name__}"
        )
    return np.ravel(collection.to_delayed()).tolist()


def _plain(values: Any) -> Any:
    """Convert dataframes to arrays; return other values unchanged."""
    return values.to_numpy() if hasattr(values, "to_numpy") else values
