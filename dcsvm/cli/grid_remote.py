"""The rows of dcsvm-grid on the workers of a Dask cluster."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict

import numpy as np

from dcsvm.cli.grid_job import GridJob
from dcsvm.cli.train_remote import RemoteSet, byte_ranges
from dcsvm.distributed.preparation import remote_data
from dcsvm.distributed.search import RemoteSearch
from dcsvm.distributed.tasks import Tasks
from dcsvm.distributed.training import train_data
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.search import fold_of_rows
from dcsvm.solving.control import Control
from dcsvm.solving.report import TrainReport


class RemoteGridRows:
    """As GridRows, with workers until the end."""

    def __init__(self, job: GridJob, options: TrainOptions, at_end: ExitStack):
        test = [] if job.test_file is None else byte_ranges(job.test_file)
        training = RemoteSet.opened(job, options, at_end)
        self.scaling, self.first_index = training.scaling, training.first_index
        chunks = training.chunks
        self.data = self.all = remote_data(training.tasks, chunks, Control())
        n_rows = len(self.data.labels)
        if test:
            chunks += training.read_more("test", test)
            self.all = remote_data(training.tasks, chunks, Control())
            self.fold = np.repeat([-1, 0], [n_rows, len(self.all.labels) - n_rows])
        else:
            self.fold = fold_of_rows(self.data.labels, options, min(job.n_folds, n_rows))
        self.tasks = training.tasks

    @property
    def n_held(self) -> int:
        return int(np.count_nonzero(self.fold >= 0))

    @property
    def traffic(self) -> dict:
        """That of the search."""
        self.tasks.note_workers()
        return asdict(self.tasks.traffic)

    def search(self, options: TrainOptions, **how) -> RemoteSearch:
        return RemoteSearch(self.all, self.fold, options, **how)

    def train(self, options: TrainOptions, control: Control) -> tuple[Model, TrainReport]:
        del self.all
        return train_data(self.data.by(Tasks(self.tasks.client)), options, control)
