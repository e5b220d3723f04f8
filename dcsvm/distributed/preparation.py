"""Everything of a run on remote rows that no solution has touched; as solving/preparation.py, of
rows that stay where they are.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from distributed import Future

from dcsvm import _core
from dcsvm.distributed.chunks import Facts, Form, facts_of, formed
from dcsvm.distributed.groups import find_remote_locality
from dcsvm.distributed.remote_rows import RemoteKernelRows, RemoteRows
from dcsvm.distributed.remote_work import RemoteWork
from dcsvm.distributed.tasks import Tasks
from dcsvm.distributed.worker_memory import plan_worker_memory
from dcsvm.problem.duplicates import Duplicates, all_different, duplicates_by_keys, row_keys
from dcsvm.problem.options import OptionError, TrainOptions
from dcsvm.problem.row_map import RowMap
from dcsvm.problem.task import task_of
from dcsvm.solving.checkpoint import fingerprint
from dcsvm.solving.control import Control
from dcsvm.solving.preparation import Prepared, kernel_of, negligible, plan_of


@dataclass(frozen=True, eq=False)
class RemoteData:
    """Rows on workers, and at the client their `labels` (n,). `facts` are those of the sections."""

    rows: RemoteRows
    labels: np.ndarray
    facts: list[Facts]

    def with_labels(self, labels: np.ndarray) -> RemoteData:
        return replace(self, labels=labels)

    def fingerprint(self, sample_weight: np.ndarray) -> dict:
        """What tells the data from others; the sections are part of it."""
        values = " ".join(one.digest for one in self.facts)
        shape = self.rows.n_samples, self.rows.n_features
        return fingerprint(*shape, values, self.labels, sample_weight)

    @property
    def variance(self) -> float:
        """That of all values, as NumPy's."""
        size = self.rows.n_samples * self.rows.n_features
        mean, square = (
            sum(getattr(one, name) for one in self.facts) / size for name in ("total", "squares")
        )
        return square - mean**2


def remote_data(tasks: Tasks, chunks: list[Future], control: Control) -> RemoteData:
    """The data of tasks whose results are chunks, some Sections each. Raises what they raise, and
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
    return RemoteData(RemoteRows(tasks, rows, sizes, form, row_bytes), labels, facts)


def prepare_remote(
    data: RemoteData, options: TrainOptions, sample_weight: np.ndarray, stop: _core.Stop
) -> Prepared:
    """Prepare to train on remote data; ValueError for what does not fit. Raises Stopped."""
    start, rows = time.perf_counter(), data.rows
    if options.kernel == "precomputed":
        raise OptionError("kernel", "precomputed is for one process: its matrix is in one memory")
    task = task_of(data.labels, sample_weight, options)
    nbytes = rows.n_samples * rows.row_bytes
    memory = plan_worker_memory(rows.tasks.client, nbytes, options.cache_mb)
    kernel = kernel_of(options, rows.n_features)
    duplicates = _duplicates(rows, task.targets, sample_weight, stop)
    rows, targets = rows.reordered(duplicates.first), task.targets[duplicates.first]
    formulation = task.formulate(targets, duplicates.sample_weight)
    budget = negligible(formulation, options)
    locality = find_remote_locality(rows, kernel, formulation.weight, budget, stop)
    rows, targets = rows.reordered(locality.order), targets[locality.order]
    weights = duplicates.sample_weight[locality.order]
    formulation = task.formulate(targets, weights)
    remote = RemoteKernelRows(rows, kernel, memory.threads, memory.megabytes, stop=stop)
    return Prepared(
        start=start,
        options=options,
        task=task,
        threads=memory.threads,
        memory=memory,
        owns_rows=False,
        row_map=RowMap(duplicates, locality.order, len(data.labels)),
        locality=locality,
        targets=targets,
        sample_weight=weights,
        formulation=formulation,
        data=remote,
        work=RemoteWork(remote),
        plan=plan_of(options, formulation, rows.n_samples),
    )


def _duplicates(
    rows: RemoteRows, targets: np.ndarray, sample_weight: np.ndarray, stop: _core.Stop
) -> Duplicates:
    if not rows.is_dense:
        return all_different(sample_weight)
    futures = [
        rows.tasks.submit(f"keys-chunk{number}", row_keys, chunk)
        for number, chunk in enumerate(rows.chunks)
    ]
    keys = np.concatenate(rows.tasks.results(futures, stop))
    return duplicates_by_keys(keys, targets, sample_weight)
