"""dcsvm-train with --scheduler, --scheduler-file or --workers: the training set is read by workers
of a Dask cluster, and trained on there."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from dcsvm.cli.jobs import TrainJob
from dcsvm.data.range_file import load_scaling
from dcsvm.data.scaling import Scaling
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.control import Control
from dcsvm.solving.report import TrainReport

try:
    from dcsvm.distributed.byte_ranges import byte_ranges, read_range
    from dcsvm.distributed.connection import workers_of_scheduler, workers_of_this_machine
    from dcsvm.distributed.tasks import Tasks
    from dcsvm.distributed.training import train_chunks
except ImportError as error:
    raise ValueError(
        f"there is no {error.name}, which workers need: pip install 'dcsvm[dask]'"
    ) from None


class RemoteSet:
    """A training set that workers read; `scaling` is that of its values, or None."""

    def __init__(self, tasks: Tasks, job: TrainJob, scaling: Scaling | None):
        self.scaling = scaling
        self.chunks = [
            tasks.submit(f"read-chunk{number}", read_range, part,
                         lenient=job.lenient, scaling=scaling)
            for number, part in enumerate(byte_ranges(job.training_set_file))
        ]  # fmt: skip
        self.tasks = tasks

    @staticmethod
    def opened(job: TrainJob, options: TrainOptions, at_end: ExitStack) -> RemoteSet:
        """That of a job, with workers until the end. Raises ValueError for what cannot be."""
        byte_ranges(job.training_set_file)  # before there are workers
        scaling = None if job.scale_file is None else load_scaling(job.scale_file)
        _silence()
        if job.n_workers is not None:
            workers = workers_of_this_machine(job.n_workers, options.threads)
        else:
            workers = workers_of_scheduler(job.scheduler, job.scheduler_file)
        return RemoteSet(Tasks(at_end.enter_context(workers)), job, scaling)

    def train(self, options: TrainOptions, control: Control, **how) -> tuple[Model, TrainReport]:
        return train_chunks(self.tasks, self.chunks, options, control, **how)


def _silence() -> None:
    """Dask's own words on lost connections: the sentence of the command says it."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
