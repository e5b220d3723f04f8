"""The rows of dcsvm-grid: to learn from, and to be scored by."""

from __future__ import annotations

import numpy as np

from dcsvm.cli.files import read_data
from dcsvm.cli.grid_job import GridJob
from dcsvm.cli.streams import say
from dcsvm.data.advice import advice
from dcsvm.data.coded_rows import coded
from dcsvm.data.dataset import Dataset
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.svm_types import REGRESSIONS
from dcsvm.selection.grid_search import with_test_rows
from dcsvm.selection.search import Search, fold_of_rows
from dcsvm.solving.control import Control
from dcsvm.solving.report import TrainReport
from dcsvm.training.train import train_rows


class GridRows:
    """Rows to learn from and to be scored by; `fold` (n,) is which fold holds a row out, -1 for
    none, and `scaling` is that of the values, or None; `first_index` is that of column 0."""

    def __init__(self, job: GridJob, options: TrainOptions):
        self.data = _read(job, options)
        self.scaling, self.first_index = self.data.scaling, self.data.first_index
        self.rows, self.labels = self.data.rows, self.data.labels
        if job.test_file is None:
            self.fold = fold_of_rows(self.labels, options, min(job.n_folds, len(self.labels)))
            return
        test = read_data(
            job.test_file,
            lenient=job.lenient,
            threads=options.threads,
            scaling=self.scaling,
            first_index=self.data.first_index,
        )
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


def _read(job: GridJob, options: TrainOptions) -> Dataset:
    """The training set, and warnings of what looks wrong with it."""
    data = read_data(
        job.training_set_file,
        lenient=job.lenient,
        scale_file=job.scale_file,
        threads=options.threads,
        serials="training" if options.kernel == "precomputed" else None,
        to_train=job.test_file is None,
    )
    classes = None if options.svm_type in REGRESSIONS else data.labels
    for sentence in [] if job.quiet else advice(data.rows, classes, data.first_index):
        say(f"warning: {sentence}")
    return data
