"""The rows of a run on the workers of a Dask cluster, as a RowSource."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Future

from dcsvm import _core
from dcsvm.data.rows import Rows, are_far
from dcsvm.data.sorting import distinct
from dcsvm.data.used_columns import UsedColumns
from dcsvm.distributed.chunks import (
    Section,
    SectionFormat,
    SectionStats,
    columns_of,
    facts_of,
    formed,
    variance_of,
)
from dcsvm.distributed.connection import WorkerMemory, plan_worker_memory
from dcsvm.distributed.dask_engine import DaskEngine
from dcsvm.distributed.remote_components import find_remote_components
from dcsvm.distributed.remote_rows import RemoteKernelRows, RemoteRows
from dcsvm.distributed.tasks import Tasks
from dcsvm.kernel.kernel_rows import median_distance
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import RowComponents
from dcsvm.problem.data_gamma import RowStatistics
from dcsvm.problem.duplicates import Duplicates, all_different, duplicates_by_keys, row_keys
from dcsvm.problem.formulation import Formulation
from dcsvm.problem.options import OptionError, TrainOptions
from dcsvm.solving.checkpoint import RunControl, fingerprint
from dcsvm.solving.memory import Plan

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
        return variance_of(self.facts, self.rows.n_samples * self.columns.n_features)

    def with_kernel(self, options: TrainOptions) -> "tuple[DaskRows, Kernel]":
        if options.kernel_type.is_precomputed:
            raise OptionError("kernel", "precomputed cannot be used on workers")
        return self, options.kernel_on(self.rows.n_features)

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
