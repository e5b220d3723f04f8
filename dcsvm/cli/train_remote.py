"""A training set that is read by the workers of a Dask cluster, and trained on there: --scheduler,
--scheduler-file and --workers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack

from dcsvm.cli.files import AUTO
from dcsvm.cli.jobs import TrainJob
from dcsvm.data.range_file import load_scaling
from dcsvm.data.scaling import Extremes
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.checkpoint import Control
from dcsvm.solving.report import TrainReport

try:
    from dcsvm.distributed.byte_ranges import (
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
        f"there is no {error.name}, which workers need: pip install 'dcsvm[dask]'"
    ) from None


class RemoteSet:
    """A training set that workers read; `scaling` is that of its values, or None."""

    first_index = 1  # of the features: each worker sees a part of them

    def __init__(self, job: TrainJob, options: TrainOptions, at_end: ExitStack):
        """That of a job, with workers until the end. Raises ValueError for what cannot be."""
        ranges = byte_ranges(job.training_set_file)  # before there are workers
        _silence()
        if job.n_workers is not None:
            workers = workers_of_this_machine(job.n_workers, options.threads)
        else:
            workers = workers_of_scheduler(job.scheduler, job.scheduler_file)
        tasks = Tasks(at_end.enter_context(workers))
        self.tasks, self.scaling = tasks, None
        if job.scale_file == AUTO:
            extremes = self.read("ranges", extremes_of_range, ranges, lenient=job.lenient)
            found = Extremes.joined(tasks.results(extremes))
            self.scaling = found.scaling(job.training_set_file)
        elif job.scale_file is not None:
            self.scaling = load_scaling(job.scale_file)
        n_threads = sum(threads_of_hosts(tasks.client).values())
        ranges = chunks_of_ranges(ranges, n_threads)
        how = {"lenient": job.lenient, "scaling": self.scaling}
        self.chunks = self.read("read", read_ranges, ranges, **how)

    def read(self, name: str, function: Callable, parts: list, **how) -> list[Future]:
        return [
            self.tasks.submit(f"{name}-chunk{number}", function, part, **how)
            for number, part in enumerate(parts)
        ]

    def train(self, options: TrainOptions, control: Control, **how) -> tuple[Model, TrainReport]:
        return train_chunks(self.tasks, self.chunks, options, control, **how)


def _silence() -> None:
    """Dask's own words on lost connections: the sentence of the command says it."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
