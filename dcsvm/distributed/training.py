"""Training on the workers of a Dask cluster: Algorithm 1 with its rows somewhere else. They stay
there; what the client knows of them is here."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from dask.delayed import Delayed
from distributed import Client, Future

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.distributed.chunks import Facts, Form, Section, facts_of, formed
from dcsvm.distributed.connection import WorkerMemory, plan_worker_memory
from dcsvm.distributed.dask_engine import DaskEngine
from dcsvm.distributed.groups import find_remote_locality
from dcsvm.distributed.remote_rows import RemoteKernelRows, RemoteRows
from dcsvm.distributed.tasks import Tasks
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.locality import Locality
from dcsvm.model.model import Model
from dcsvm.problem.duplicates import Duplicates, all_different, duplicates_by_keys, row_keys
from dcsvm.problem.formulation import Formulation
from dcsvm.problem.options import OptionError, TrainOptions
from dcsvm.problem.task import as_labels
from dcsvm.solving.checkpoint import Control, fingerprint
from dcsvm.solving.memory import Plan
from dcsvm.solving.preparation import kernel_of
from dcsvm.solving.report import TrainReport
from dcsvm.training.train import begun, finished
from dcsvm.training.warm_start import check_rows


@dataclass(frozen=True, eq=False)
class DaskRows:
    """The RowSource of rows on workers; their `labels` (n,) and the `facts` of their sections are
    at the client."""

    rows: RemoteRows
    labels: np.ndarray
    facts: list[Facts]
    owns_rows: bool = False

    def fingerprint(self, labels: np.ndarray, sample_weight: np.ndarray) -> dict:
        """The sections are part of it."""
        values = " ".join(one.digest for one in self.facts)
        return fingerprint(self.rows, values, labels, sample_weight)

    @property
    def variance(self) -> float:
        """That of all values, as NumPy's."""
        size = self.rows.n_samples * self.rows.n_features
        mean, square = (
            sum(getattr(one, name) for one in self.facts) / size for name in ("total", "squares")
        )
        return square - mean**2

    def with_kernel(self, options: TrainOptions) -> tuple[DaskRows, Kernel]:
        if options.kernel_type.is_precomputed:
            one = "precomputed is for one process: its matrix is in one memory"
            raise OptionError("kernel", one)
        return self, kernel_of(options, self.rows.n_features)

    def duplicates(
        self, targets: np.ndarray, sample_weight: np.ndarray, stop: _core.Stop
    ) -> Duplicates:
        tasks = self.rows.tasks
        if not self.rows.is_dense:
            return all_different(sample_weight)
        futures = [
            tasks.submit(f"keys-chunk{number}", row_keys, chunk)
            for number, chunk in enumerate(self.rows.chunks)
        ]
        keys = np.concatenate(tasks.results(futures, stop))
        return duplicates_by_keys(keys, targets, sample_weight)

    def plan_memory(
        self, options: TrainOptions, formulation: Formulation, plan: Plan
    ) -> WorkerMemory:
        nbytes = self.rows.n_samples * self.rows.row_bytes
        return plan_worker_memory(self.rows.tasks.client, nbytes, options.cache_mb)

    def reordered(self, numbers: np.ndarray) -> DaskRows:
        return replace(self, rows=self.rows.reordered(numbers))

    def find_locality(
        self, kernel: Kernel, weight: float, tolerance: float, plan: Plan, options: TrainOptions,
        stop: _core.Stop,
    ) -> tuple[Locality, None]:  # fmt: skip
        return find_remote_locality(self.rows, kernel, weight, tolerance, stop), None

    def engine(
        self, kernel: Kernel, memory: WorkerMemory, n_variables: int, stop: _core.Stop
    ) -> DaskEngine:
        threads, megabytes = memory.threads, memory.megabytes
        return DaskEngine(RemoteKernelRows(self.rows, kernel, threads, megabytes, stop=stop))


def remote_data(tasks: Tasks, chunks: list[Future], control: Control) -> DaskRows:
    """The rows of tasks whose results are chunks, some Sections each. Raises what they raise, and
    Stopped."""
    with_digest = control.checkpoint is not None
    futures = [
        tasks.submit(f"facts-chunk{number}", facts_of, chunk, with_digest=with_digest)
        for number, chunk in enumerate(chunks)
    ]
    found = tasks.results(futures, control.stop)
    found = [[one for one in of_chunk if one.n_rows] for of_chunk in found]
    kept = [number for number, of_chunk in enumerate(found) if of_chunk]
    facts = [one for of_chunk in found for one in of_chunk]
    if not facts:
        raise ValueError("there are no rows")
    form = Form.of_all(facts)
    rows = [tasks.submit(f"form-chunk{number}", formed, chunks[number], form) for number in kept]
    sizes = [[one.n_rows for one in found[number]] for number in kept]
    row_bytes = -(-sum(one.nbytes for one in facts) // sum(one.n_rows for one in facts))
    labels = np.concatenate([one.labels for one in facts])
    return DaskRows(RemoteRows(tasks, rows, sizes, form, row_bytes), labels, facts)


def train_chunks(
    tasks: Tasks, chunks: list[Future], options: TrainOptions, control: Control, **how
) -> tuple[Model, TrainReport]:
    """Train a model on rows that are the results of tasks, a chunk each, which are let go. For the
    rest see `train_rows`."""
    data = remote_data(tasks, chunks, control)
    chunks.clear()
    return train_data(data, options, control, **how)


def train_data(
    data: DaskRows,
    options: TrainOptions,
    control: Control,
    *,
    init_model: Model | None = None,
    **given,
) -> tuple[Model, TrainReport]:
    """The same, of remote data."""
    if init_model is not None:
        check_rows(init_model, data.rows, options)
    with control.held():
        run = begun(data, data.labels, options, control, init_model=init_model, **given)
        model = finished(run)
        return model, model.report


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
