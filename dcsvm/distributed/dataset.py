"""A Dataset whose rows stay on the workers of a Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

import fsspec
import numpy as np
from dask.delayed import Delayed
from distributed import Client, Future, get_worker

from dcsvm.data.chunks import Chunks
from dcsvm.data.dataset import Dataset
from dcsvm.data.scaling import Scaling
from dcsvm.distributed.connection import (
    Tasks,
    threads_of_hosts,
    workers_of_scheduler,
    workers_of_this_machine,
)
from dcsvm.machine import usable_threads
from dcsvm.training.remote_engine import RemoteEngine

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Collection = Any  # a dask array or dataframe, or a list of delayed chunks


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
    Chunks.of_file(None, path, open_file, worker_name, 1, lenient=False)  # before workers start
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
    n_threads = n_threads or sum(threads_of_hosts(client).values())
    chunks = Chunks.of_file(Tasks(client), path, open_file, worker_name, n_threads, lenient=lenient)
    return RemoteDataset(client, chunks, scale=scale)


def open_file(name: str) -> BinaryIO:
    """Open a path or a URL."""
    return fsspec.open(name, "rb").open()


def worker_name() -> str:
    """Name the worker of the current task; empty outside tasks."""
    try:
        return f"worker {get_worker().address}"
    except ValueError:
        return ""


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
        The weight of each row, at least 0.
    scale, feature_weights : as for `dcsvm.Dataset`
        How features are scaled and weighted.
    encode_numbers : bool, default True
        Encode the columns of a data frame of numbers without gaps, too: rows to predict may then
        have gaps, and columns in another order.

    Raises
    ------
    ValueError, TypeError
        For invalid input.
    """

    def __init__(
        self,
        client: Client,
        X: Collection | Chunks,
        y: Collection | None = None,
        *,
        sample_weight: Any = None,
        scale: str | Scaling | None = None,
        feature_weights: ArrayLike | None = None,
        encode_numbers: bool = True,
    ):
        self._read: list[Future] | None = None  # tasks of encoded and scaled chunks
        self._engine: RemoteEngine | None = None  # on the rows in the storage of training
        self.first_index, self.table, self.is_disposable = 1, None, False
        self.has_labels = y is not None or isinstance(X, Chunks)
        if isinstance(X, Chunks):
            self._chunks = X
        else:
            self._chunks = computed(client, X, y).matched()
            self.table = self._chunks.table(encode_numbers=encode_numbers)
        self.name, self.tasks = self._chunks.name, self._chunks.tasks
        known = self._chunks.known_scaling(scale)
        self.is_scaling_stored = known is scale
        self.scaling = self._chunks.scaling(known, self.table)
        if self.has_labels:
            sections = self._sections() if self._chunks.is_file else None
            self.labels, self._label_type = self._chunks.fetch_labels(sections)
        else:
            self.labels = np.zeros(self.rows.n_samples)
            self._label_type = self.labels.dtype
        given = self.with_labels(self.labels, whole_array(client, sample_weight))
        self.sample_weight = given.sample_weight
        if feature_weights is not None:
            self.scaling = self.weighted(feature_weights).scaling
            self.forget_rows()  # without weights

    @property
    def given_labels(self) -> np.ndarray:
        """The labels in the type as given, such as integers or booleans."""
        return self.labels.astype(self._label_type)

    def _sections(self) -> list[Future]:
        """Submit the tasks that read, encode and scale the chunks, unless they are submitted."""
        if self._read is None:
            self._read = self._chunks.read(self.table, self.scaling)
        return self._read

    @property
    def rows(self) -> Any:
        """The rows on the workers: RemoteRows."""
        return self._own_engine().rows

    def _own_engine(self) -> RemoteEngine:
        """Put the rows into the storage of training, once."""
        if self._engine is None:
            self._engine = RemoteEngine.of(self.tasks, self._sections())
        return self._engine

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def n_features(self) -> int:
        if self.table is not None:
            return self.table.n_features
        return self._chunks.n_columns or self.rows.used.n_features

    def variance(self) -> float:
        """Return the variance of all feature values, as `numpy.var`."""
        return self._own_engine().variance()

    @property
    def _has_source(self) -> bool:
        return len(self._chunks.blocks) > 0

    def _rounded_away(self) -> tuple[np.ndarray, np.ndarray]:
        columns, rounding = self._chunks.rounded_away(self._sections(), self.table)
        if len(columns):
            self.forget_rows()  # they are made again, shifted
        return columns, rounding

    @property
    def _counts_in_file(self) -> bool:
        return self._chunks.is_file

    def scaled(self, scale: str | Scaling | None) -> RemoteDataset:
        """Return the data set in a scaling, without weights."""
        return self._in_scaling(self._chunks.scaling(scale, self.table))

    def weighted(self, weights: Any, columns: np.ndarray | None = None) -> RemoteDataset:
        """Multiply the scaled features by weights, float64 (n_features,), all at least 0."""
        return self._in_scaling(self._weighted_scaling(np.asarray(weights, np.float64), columns))

    def _in_scaling(self, scaling: Scaling | None, **changes: Any) -> RemoteDataset:
        return self._with(
            scaling=scaling, is_scaling_stored=True, _read=None, _engine=None, **changes
        )

    def changed(self, sample_weight: Any = None, scale: str | Scaling | None = None) -> Dataset:
        """Return the data set with other weights or another scaling, where they are given."""
        return super().changed(whole_array(self.tasks.client, sample_weight), scale)

    def disposable(self) -> RemoteDataset:
        """Return the data set for one training: the workers then forget the rows as given."""
        return self._with(is_disposable=True)

    def forget_rows(self) -> None:
        """Let the workers forget the rows as trained, which are made again if they are needed."""
        self._read = self._engine = None

    def check_is_here(self) -> None:
        raise TypeError("only dcsvm.train takes a RemoteDataset, as its training rows")

    def remote_engine(self, control: Any, test: Dataset | None) -> RemoteEngine:
        """Return the engine on the rows for a run. Raises Stopped."""
        sections, engine = self._sections(), self._engine
        self.forget_rows()
        if self.is_disposable:  # Dask forgets values without futures, once they are read
            self._chunks = replace(self._chunks, blocks=[], labels=[])
        if engine is not None and test is None and control.checkpoint is None:
            return engine  # checkpoints need digests of the rows, test rows their columns
        return RemoteEngine.of(
            self.tasks, sections, test=None if test is None else test.rows, stop=control.stop,
            with_digest=control.checkpoint is not None,
        )  # fmt: skip


def computed(client: Client, X: Collection, y: Collection | None) -> Chunks:
    """Start to compute collections on the workers. Raises ValueError and TypeError."""
    parts, labels = parts_of(X), [] if y is None else parts_of(_chunked_as(X, y))
    if y is not None and len(parts) != len(labels):
        raise ValueError(f"X has {len(parts)} chunks, y has {len(labels)}")
    futures = client.compute([*parts, *labels])
    blocks, of_labels = futures[: len(parts)], futures[len(parts) :]
    return Chunks(Tasks(client), "X", blocks, of_labels or [None] * len(parts))


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
    """Fetch a dask array or delayed chunks to the client as an array; return others unchanged.

    The array of masked chunks is masked.
    """
    if isinstance(values, (list, tuple)) and is_collection(values):
        chunks = client.gather(client.compute(list(values)))
        return np.ma.concatenate(chunks)
    if values is None or not hasattr(values, "dask"):
        return values
    return np.asanyarray(client.compute(values).result())


def parts_of(collection: Collection) -> list[Delayed]:
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
