"""Training on the workers of a Dask cluster: Algorithm 1 with its rows somewhere else."""

from __future__ import annotations

import numpy as np
from distributed import Future

from dcsvm.distributed.preparation import DaskRows, RemoteData, remote_data
from dcsvm.distributed.tasks import Tasks
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.control import Control
from dcsvm.solving.report import TrainReport
from dcsvm.training.early_level import TestRows
from dcsvm.training.train import begun, finished
from dcsvm.training.warm_start import check_rows


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
        run = begun(
            DaskRows(data.rows),
            data.labels,
            options,
            control,
            data.fingerprint,
            sample_weight=sample_weight,
            init_model=init_model,
            test=test,
        )
        model = finished(run)
        return model, model.report
