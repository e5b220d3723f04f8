"""The rows of dcsvm-grid: to learn from, and to be scored by."""

from __future__ import annotations

import numpy as np

from dcsvm.cli.files import read_test_set, read_training_set
from dcsvm.cli.grid_job import GridJob
from dcsvm.data.coded_rows import coded
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.grid_search import with_test_rows
from dcsvm.selection.search import Search, fold_of_rows
from dcsvm.solving.control import Control
from dcsvm.solving.report import TrainReport
from dcsvm.training.train import train_rows


class GridRows:
    """Rows to learn from and to be scored by; `fold` (n,) is which fold holds a row out, -1 for
    none, and `scaling` is that of the values, or None; `first_index` is that of column 0."""

    def __init__(self, job: GridJob, options: TrainOptions):
        self.data = read_training_set(job, options, to_train=job.test_file is None)
        self.scaling, self.first_index = self.data.scaling, self.data.first_index
        self.rows, self.labels = self.data.rows, self.data.labels
        if job.test_file is None:
            self.fold = fold_of_rows(self.labels, options, min(job.n_folds, len(self.labels)))
            return
        test = read_test_set(job, options, self.data)
        rows, self.labels, self.fold = with_test_rows(
            self.rows, self.labels, test.rows, test.labels
        )
        self.rows = coded(rows, options.threads)

    @property
    def n_held(self) -> int:
        return int(np.count_nonzero(self.fold >= 0))

    def search(self, options: TrainOptions, **how) -> Search:
        return Search(self.rows, self.labels, self.fold, options, **how)

    def train(self, options: TrainOptions, control: Control) -> tuple[Model, TrainReport]:
        """Train on the rows to learn from, the last that is done with them. Raises Stopped."""
        del self.rows, self.labels
        return train_rows(self.data.rows, self.data.labels, options, control, consume=True)
