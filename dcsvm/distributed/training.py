"""Training on the workers of a Dask cluster: Algorithm 1 with its rows somewhere else."""

from __future__ import annotations

import numpy as np
from distributed import Future

from dcsvm.distributed.preparation import RemoteData, prepare_remote, remote_data
from dcsvm.distributed.tasks import Tasks
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.sample_weights import checked_weights
from dcsvm.solving.control import Control
from dcsvm.solving.report import EarlyChoice, LevelReport, Progress, TrainReport
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
        weights = checked_weights(sample_weight, len(data.labels))
        if control.checkpoint is not None:
            is_warm = init_model is not None
            control.checkpoint.begin(data.fingerprint(weights), options, is_warm=is_warm)
        prepared = prepare_remote(data, options, weights, control.stop)
        progress = Named(control.progress, prepared.work)
        control = Control(progress, control.stop, control.checkpoint)
        run = begun(prepared, control, init_model, test)
        model = finished(run)
        return model, model.report


class Named(Progress):
    """Passes on what happens, and names the tasks of a phase after it."""

    def __init__(self, whole: Progress, work):
        self.whole, self.work = whole, work

    def begin(self, name: str, n_rows: int) -> None:
        self.work.phase = name.replace(" ", "")
        self.whole.begin(name, n_rows)

    def plan(self, text: str) -> None:
        self.whole.plan(text)

    def resume(self, name: str) -> None:
        self.whole.resume(name)

    def warn(self, sentence: str) -> None:
        self.whole.warn(sentence)

    def advance(
        self, rows_done: int, violation: float | None = None, n_active: int | None = None
    ) -> None:
        self.whole.advance(rows_done, violation, n_active)

    def end_level(self, report: LevelReport) -> None:
        self.whole.end_level(report)

    def end_choice(self, choice: EarlyChoice) -> None:
        self.whole.end_choice(choice)

    def end(self, name: str, seconds: float, n_sv: int | None = None) -> None:
        self.whole.end(name, seconds, n_sv)
