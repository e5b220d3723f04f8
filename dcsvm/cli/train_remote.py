"""A training set on the workers of a Dask cluster: --scheduler, --scheduler-file, --workers."""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from dcsvm.cli.files import AUTO
from dcsvm.cli.jobs import TrainJob
from dcsvm.data.range_file import load_scaling
from dcsvm.data.scaling import Extremes, Scaling
from dcsvm.machine import usable_threads
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.checkpoint import RunControl
from dcsvm.solving.report import TrainReport

try:
    from dcsvm.distributed.chunks import (
        byte_ranges,
        chunks_of_ranges,
        extremes_of_range,
        read_ranges,
    )
    from dcsvm.distributed.connection import (
        threads_of_hosts,
        workers_of_scheduler,
        workers_of_this_machine,
    )
    from dcsvm.distributed.tasks import Future, Tasks
    from dcsvm.distributed.training import train_chunks
except ImportError as error:
    raise ValueError(
        f"workers require {error.name}, which is not installed: pip install 'dcsvm[dask]'"
    ) from None


class RemoteSet:
    """A training set that workers read, scaled by `scaling` if not None."""

    first_index = 1  # no worker reads the whole file, so index 0 cannot be detected
    table = None

    def __init__(self, job: TrainJob, options: TrainOptions, at_end: ExitStack):
        """Start reading on workers; `at_end` releases them. Raises ValueError."""
        ranges = byte_ranges(job.training_set_file)  # reports file errors before workers start
        _silence_dask()
        if job.n_workers is not None:
            workers = workers_of_this_machine(job.n_workers, usable_threads(options.threads))
        else:
            workers = workers_of_scheduler(job.scheduler, job.scheduler_file)
        self.tasks = Tasks(at_end.enter_context(workers))
        self.scaling: Scaling | None = None
        if job.scale_file == AUTO:
            futures = self._submit("ranges", extremes_of_range, ranges, lenient=job.lenient)
            extremes = Extremes.joined(self.tasks.results(futures))
            self.scaling = extremes.scaling(job.training_set_file)
        elif job.scale_file is not None:
            self.scaling = load_scaling(job.scale_file)
        n_threads = sum(threads_of_hosts(self.tasks.client).values())
        chunks = chunks_of_ranges(ranges, n_threads)
        self.chunks = self._submit(
            "read", read_ranges, chunks, lenient=job.lenient, scaling=self.scaling
        )

    def _submit(
        self, name: str, function: Callable[..., Any], parts: Sequence[Any], **kwargs: Any
    ) -> list[Future]:
        return [
            self.tasks.submit(f"{name}-chunk{k}", function, part, **kwargs)
            for k, part in enumerate(parts)
        ]

    def train(
        self, options: TrainOptions, control: RunControl, **kwargs: Any
    ) -> tuple[Model, TrainReport]:
        """Train by `train_chunks`, which releases the chunks."""
        return train_chunks(self.tasks, self.chunks, options, control, **kwargs)


def _silence_dask() -> None:
    """Turn off Dask's log of lost connections, which the command reports itself."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
