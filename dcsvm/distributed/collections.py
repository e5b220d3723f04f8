"""Chunks from dask's collections: arrays, dataframes, lists of delayed values."""

from __future__ import annotations

import numpy as np
from dask.delayed import Delayed
from distributed import Client, Future

from dcsvm.data.rows import Rows
from dcsvm.distributed.chunks import Section
from dcsvm.distributed.tasks import Tasks
from dcsvm.problem.task import as_labels


def chunks_of(tasks: Tasks, X, y) -> list[Future]:
    """Tasks whose results are the chunks of rows X with labels y. Raises ValueError for what does
    not belong together."""
    parts = _parts(X)
    has_known_sizes = hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any()
    if has_known_sizes and hasattr(y, "rechunk"):
        y = y.rechunk((X.chunks[0],))
    labels = _parts(y)
    if len(parts) != len(labels):
        raise ValueError(f"X has {len(parts)} chunks, y has {len(labels)}")
    futures = tasks.client.compute([*parts, *labels])
    rows, labels = futures[: len(parts)], futures[len(parts) :]
    return [
        tasks.submit(f"chunk{number}", chunk_of, *one)
        for number, one in enumerate(zip(rows, labels, strict=True))
    ]


def chunk_of(X, y) -> list[Section]:
    """A chunk, one section, of an array, matrix or dataframe and its labels. Raises ValueError."""
    rows = Rows.from_array(_plain(X))
    labels = as_labels(_plain(y))
    if len(labels) != rows.n_samples:
        raise ValueError(f"a chunk of {rows.n_samples} rows has {len(labels)} labels")
    return [Section(rows, labels)]


def is_collection(values) -> bool:
    """Whether values are dask's, or a list of delayed chunks."""
    if isinstance(values, (list, tuple)):
        return len(values) > 0 and all(isinstance(one, Delayed) for one in values)
    return hasattr(values, "__dask_graph__")


def whole_array(client: Client, values) -> np.ndarray | None:
    """The values of an array of dask, at the client; any other as it is."""
    if values is None or not hasattr(values, "dask"):
        return values
    return np.asarray(client.compute(values).result())


def _parts(collection) -> list[Delayed]:
    """The chunks of a collection along its rows, delayed."""
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


def _plain(values):
    """An array or matrix of a part of a dataframe."""
    return values.to_numpy() if hasattr(values, "to_numpy") else values
