"""Train on the workers of a Dask cluster: Algorithm 1 with rows that stay on the workers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask.delayed import Delayed
from distributed import Client, Future
from numpy.typing import ArrayLike

from dcsvm import _core
from dcsvm.data.columns import (
    Frame,
    TableEncoding,
    Values,
    array_of,
    is_frame,
    names_of,
    plain_column,
)
from dcsvm.data.rows import Rows, are_far
from dcsvm.data.sorting import distinct
from dcsvm.distributed.chunks import (
    Section,
    SectionFormat,
    SectionStats,
    columns_of,
    facts_of,
    formed,
)
from dcsvm.distributed.connection import WorkerMemory, plan_worker_memory
from dcsvm.distributed.dask_engine import DaskEngine
from dcsvm.distributed.remote_components import find_remote_components
from dcsvm.distributed.remote_rows import RemoteKernelRows, RemoteRows
from dcsvm.distributed.tasks import Tasks
from dcsvm.kernel.kernel_rows import median_distance
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import RowComponents
from dcsvm.model.model import Model
from dcsvm.problem.data_gamma import RowStatistics
from dcsvm.problem.duplicates import Duplicates, all_different, duplicates_by_keys, row_keys
from dcsvm.problem.formulation import Formulation
from dcsvm.problem.options import OptionError, TrainOptions
from dcsvm.problem.task import as_labels
from dcsvm.solving.checkpoint import RunControl, fingerprint
from dcsvm.solving.memory import Plan
from dcsvm.solving.preparation import Columns, RowSource, kernel_of
from dcsvm.solving.report import TrainReport
from dcsvm.training.arguments import scaled_rows, table_of_frame
from dcsvm.training.early_level import TestRows
from dcsvm.training.train import begun, finished
from dcsvm.training.warm_start import check_rows

Collection = Any  # a dask array or dataframe, or a list of delayed chunks


@dataclass(frozen=True, eq=False)
class DaskRows:
    """RowSource of remote rows.

    The client holds the labels (n,), and `facts`, the statistics of each section. The rows have
    only the columns in use.
    """

    rows: RemoteRows
    labels: np.ndarray
    facts: list[SectionStats]
    columns: Columns
    owns_rows: bool = False

    def fingerprint(self, labels: np.ndarray, sample_weight: np.ndarray) -> dict[str, Any]:
        """Identify the data and their division into sections, for checkpoints."""
        digests = " ".join(str(one.digest) for one in self.facts)
        return fingerprint(self.rows, digests, labels, sample_weight)

    @property
    def statistics(self) -> RowStatistics:
        return RowStatistics(self.columns.n_features, lambda: self.variance, self._median)

    def _median(self, kernel: Kernel) -> float:
        """Return the median kernel argument of sampled rows, the same rows as without workers."""
        rows: Rows = self.rows  # type: ignore[assignment]  # has RemoteRows instead of Rows
        return median_distance(rows, kernel, 1)

    @property
    def variance(self) -> float:
        """Return the variance of all feature values, as `numpy.var`."""
        size = self.rows.n_samples * self.columns.n_features
        mean = sum(one.total for one in self.facts) / size
        return sum(one.squares for one in self.facts) / size - mean**2

    def with_kernel(self, options: TrainOptions) -> "tuple[DaskRows, Kernel]":
        if options.kernel_type.is_precomputed:
            raise OptionError("kernel", "precomputed cannot be used on workers")
        return self, kernel_of(options, self.rows.n_features)

    def duplicates(
        self, targets: np.ndarray, sample_weight: np.ndarray, stop: _core.Stop
    ) -> Duplicates:
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

    def reordered(self, indices: np.ndarray) -> "DaskRows":
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


def remote_data(
    tasks: Tasks, chunks: list[Future], control: RunControl, test: TestRows | None = None
) -> DaskRows:
    """Make remote rows from chunks; each chunk is a task whose result is a list of Sections.

    The columns of `test` are kept, too. Raises Stopped, ValueError without rows, and any error of a
    task.
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
        columns += [] if test is None else [columns_of([Section(test.rows, test.labels)])]
        form = replace(form, used=distinct(np.concatenate(columns)))
    rows = [tasks.submit(f"form-chunk{k}", formed, chunks[k], form) for k in used]
    sizes = [[one.n_rows for one in by_chunk[k]] for k in used]
    row_bytes = -(-sum(one.nbytes for one in facts) // sum(one.n_rows for one in facts))
    labels = np.concatenate([one.labels for one in facts])
    remote = RemoteRows(tasks, rows, sizes, form, row_bytes)
    return DaskRows(remote, labels, facts, Columns(form.n_features, form.used))


def train_chunks(
    tasks: Tasks,
    chunks: list[Future],
    options: TrainOptions,
    control: RunControl,
    test: TestRows | None = None,
    **kwargs: Any,
) -> tuple[Model, TrainReport]:
    """Train a model on chunks, and release the chunks. For `kwargs` see `train_data`."""
    data = remote_data(tasks, chunks, control, test)
    chunks.clear()
    return train_data(data, options, control, test=test, **kwargs)


def train_data(
    data: DaskRows,
    options: TrainOptions,
    control: RunControl,
    *,
    sample_weight: np.ndarray | None = None,
    init_model: Model | None = None,
    test: TestRows | None = None,
) -> tuple[Model, TrainReport]:
    """Train a model on remote rows. The arguments are as in `train_rows`."""
    source: RowSource = data  # type: ignore[assignment]  # has RemoteRows instead of Rows
    columns = data.columns
    if init_model is not None:
        check_rows(init_model, source.rows, options, columns)
    options = columns.options(options, data.statistics)
    if test is not None:
        test = replace(test, rows=columns.of(test.rows))
    with control.held():
        run = begun(
            source,
            data.labels,
            options,
            control,
            sample_weight=sample_weight,
            init_model=init_model,
            test=test,
        )
        model = finished(run)
        assert isinstance(model.report, TrainReport)
        return columns.model(model), model.report


def chunks_of(
    tasks: Tasks, X: Collection, y: Collection, *, has_table: bool = False
) -> tuple[list[Future], TableEncoding | None]:
    """Submit tasks that make chunks of rows X and labels y.

    With `has_table`, data frames are encoded. Returns the chunks, and the encoding if there is one.
    Raises ValueError or TypeError.
    """
    parts = _parts(X)
    has_known_sizes = hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any()
    if has_known_sizes and hasattr(y, "rechunk"):
        y = y.rechunk((X.chunks[0],))
    labels = _parts(y)
    if len(parts) != len(labels):
        raise ValueError(f"X has {len(parts)} chunks, y has {len(labels)}")
    futures = tasks.client.compute([*parts, *labels])
    blocks = futures[: len(parts)]
    table = _table_of(tasks, blocks) if has_table else None
    pairs = zip(blocks, futures[len(parts) :], strict=True)
    chunks = [tasks.submit(f"chunk{k}", chunk_of, *pair, table) for k, pair in enumerate(pairs)]
    return chunks, table


def _table_of(tasks: Tasks, blocks: list[Future]) -> TableEncoding | None:
    """Return the encoding of the blocks as one data frame; None for arrays.

    The columns are fetched to the client one by one.
    """
    (names,) = tasks.results([tasks.submit("names", _names, blocks[0])])
    if names is None:
        return None

    def column(name: str) -> Values:
        place = names.index(name)
        futures = [
            tasks.submit(f"column{place}-chunk{k}", array_of, block, place)
            for k, block in enumerate(blocks)
        ]
        arrays = tasks.results(futures)
        used = [one for one in arrays if len(one)] or arrays[:1]  # empty blocks may differ in type
        return plain_column(np.concatenate(used), "X", name)

    sizes = [tasks.submit(f"size-chunk{k}", len, block) for k, block in enumerate(blocks)]
    return table_of_frame(Frame("X", names, sum(tasks.results(sizes)), column))


def _names(block: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a data frame, None for an array."""
    return names_of(block) if is_frame(block) else None


def chunk_of(X: ArrayLike, y: ArrayLike, table: TableEncoding | None) -> list[Section]:
    """Make a chunk with one section from a block of X and its labels. Raises ValueError."""
    rows = Rows.from_array(_plain(X)) if table is None else scaled_rows(X, None, table)[0]
    labels = as_labels(_plain(y))
    if len(labels) != rows.n_samples:
        raise ValueError(f"a chunk of {rows.n_samples} rows has {len(labels)} labels")
    return [Section(rows, labels)]


def is_collection(values: object) -> bool:
    """Return whether values are a dask collection or a list of delayed chunks."""
    if isinstance(values, (list, tuple)):
        return len(values) > 0 and all(isinstance(one, Delayed) for one in values)
    return hasattr(values, "__dask_graph__")


def whole_array(client: Client, values: Any) -> np.ndarray | None:
    """Fetch a dask array to the client as a NumPy array; return other values unchanged."""
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
