"""Training on the workers of a Dask cluster: Algorithm 1 with its rows somewhere else."""

from __future__ import annotations

import numpy as np
from distributed import Future

from dcsvm.distributed.preparation import RemoteData, prepare_remote, remote_data
from dcsvm.distributed.remote_work import RemoteWork
from dcsvm.distributed.tasks import Tasks
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.sample_weights import checked_weights
from dcsvm.solving.control import Control
from dcsvm.solving.report import Progress, TrainReport
from dcsvm.training.algorithm import Run
from dcsvm.training.early_level import TestRows, check_test_rows
from dcsvm.training.train import finished
from dcsvm.training.warm_start import check_rows, first_alpha


def train_chunks(
    tasks: Tasks, chunks: list[Future], options: TrainOptions, control: Control, **how
) -> tuple[Model, TrainReport]:
    """Train a model on rows that are the results of tasks, a chunk each, which are let go. For the
    rest see `train_rows`."""
    data = remote_data(tasks, chunks, control)
    chunks.clear()
    return train_data(data, options, control, **how)


def train_data(
    data: RemoteData,
    options: TrainOptions,
    control: Control,
    *,
    sample_weight: np.ndarray | None = None,
    init_model: Model | None = None,
    test: TestRows | None = None,
) -> tuple[Model, TrainReport]:
    """The same, of remote data."""
    if init_model is not None:
        check_rows(init_model, data.rows, options)
    with control.held():
        weights = checked_weights(sample_weight, len(data.labels))
        if control.checkpoint is not None:
            is_warm = init_model is not None
            control.checkpoint.begin(data.fingerprint(weights), options, is_warm=is_warm)
        prepared = prepare_remote(data, options, weights, control.stop)
        progress = Named(control.progress, prepared.work)
        progress.plan(prepared.describe())
        run = Run(prepared, Control(progress, control.stop, control.checkpoint))
        if test is not None:
            check_test_rows(test, run.task)
            run.test = test
        if init_model is not None:
            run.begin_with(first_alpha(prepared, init_model))
        run.resume()
        model = finished(run)
        data.rows.tasks.note_workers()
        run.report.traffic = data.rows.tasks.traffic
        return model, run.report


class Named:
    """A Progress that passes on what happens, and names the tasks of a phase after it."""

    def __init__(self, whole: Progress, work: RemoteWork):
        self.whole, self.work = whole, work

    def begin(self, name: str, n_rows: int) -> None:
        self.work.phase = name.replace(" ", "")
        self.whole.begin(name, n_rows)

    def __getattr__(self, name: str):
        return getattr(self.whole, name)
