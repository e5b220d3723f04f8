"""Implementation of dcsvm-train: read, train, write the model, report its quality."""

import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dcsvm._core import Stop, Stopped
from dcsvm.cli.files import LEARN, print_result, print_status, show_beside
from dcsvm.cli.guard import FAILED, NOT_CONVERGED, Interrupts, status_of
from dcsvm.cli.job_data import (
    check_first_rows,
    model_for_file,
    read_test_set,
    read_training_set,
)
from dcsvm.cli.jobs import TrainJob
from dcsvm.cli.report import (
    TerminalProgress,
    quality_of_folds,
    say_not_converged,
    say_result,
    say_stopped,
    write_report,
)
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError
from dcsvm.data.scaling import Scaling
from dcsvm.machine import usable_threads
from dcsvm.model.model import Model
from dcsvm.model.reader import load_model
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.checkpoint import Checkpoint, RunControl
from dcsvm.solving.report import TrainReport, report_dict
from dcsvm.training.early_level import TestRows
from dcsvm.training.train import train_rows

if TYPE_CHECKING:
    from dcsvm.cli.train_remote import RemoteSet
    from dcsvm.training.feature_weights import FeatureWeights

Train = Callable[..., tuple[Model, TrainReport]]


def train_file(job: TrainJob, options: TrainOptions) -> int:
    """Run a training job; return the exit status."""
    start = time.perf_counter()
    threads = usable_threads(options.threads)
    options = replace(options, threads=threads)
    progress = TerminalProgress(job.quiet)
    control = RunControl(progress, Stop(job.time_limit), checkpoint_of(job))
    init_model = None
    if job.init_model_file is not None:
        init_model = load_model(job.init_model_file, threads=threads)
    with ExitStack() as at_end:
        data: Dataset | RemoteSet
        if job.is_remote:
            from dcsvm.cli.train_remote import RemoteSet as Remote

            data = Remote(job, options, at_end)
            train: Train = data.train
        else:
            data = read_training_set(job, options)
            if job.weights is not None:
                check_first_rows(job.test_file, job, data.table, data.first_index)
                try:
                    data = with_weights(data, job, options, control.stop)
                except Stopped:
                    print_status("error: stopped before a model existed")
                    return FAILED
            train = partial(
                train_rows, data.rows, data.labels, sample_weight=data.sample_weight, consume=True
            )
            if job.n_folds is not None:
                return cross_validate_data(data, options, job.n_folds, progress)
        test = None
        if job.test_file is not None:
            test_set = read_test_set(job.test_file, job, options, data)
            test, options = TestRows(test_set.rows, test_set.labels), options.choosing_by_test()
        for_file = partial(model_for_file, job=job, data=data)
        if control.checkpoint is not None:
            control.checkpoint.for_file = for_file
        read = time.perf_counter()
        interrupts = at_end.enter_context(Interrupts(control.stop))
        try:
            model, report = train(options, control, init_model=init_model, test=test)
        except Stopped:
            print_status("error: stopped before a model existed")
            return status_of(interrupts.received, FAILED)
        trained = time.perf_counter()
        assert job.model_file is not None  # only cross-validation writes no model
        for_file(model).save(job.model_file, job.model_format)
        written = time.perf_counter()
    seconds = {"read": read - start, "write": written - trained, "total": written - start}
    if job.report_file is not None:
        values = report_dict(report)
        values["seconds"] |= seconds
        values["feature_weights"] = None if job.weights is None else weights_by_index(data.scaling)
        write_report(job.report_file, values)
    if not job.quiet:
        print_line = show_beside(job.model_file, job.report_file)
        say_result(report, print_line, is_classifier=model.is_classifier)
    return conclude(job, options, report, control.checkpoint, interrupts.received)


def with_weights(data: Dataset, job: TrainJob, options: TrainOptions, stop: Stop) -> Dataset:
    """Apply feature weights, learned or of a model file, to a training set.

    Raises ValueError and Stopped.
    """
    from dcsvm.training.feature_weights import learn_weights_of_used, weighted_rows

    if job.weights == LEARN:
        weights = learn_weights_of_used(data.rows, data.labels, options, stop)
    else:
        weights = weights_of_file(job, data, usable_threads(options.threads))
    rows, scaling = weighted_rows(
        data.rows, weights, data.scaling, job.training_set_file, data.first_index
    )
    return replace(data, rows=rows, scaling=scaling)


def weights_of_file(job: TrainJob, data: Dataset, threads: int) -> "FeatureWeights":
    """Return the weights in the model file given by --weights. Raises DataError."""
    from dcsvm.training.feature_weights import FeatureWeights

    assert job.weights is not None
    scaling = load_model(job.weights, threads=threads).scaling
    if scaling is None or scaling.weights is None:
        raise DataError(f"{job.weights}: the model has no feature weights")
    columns = scaling.indices - data.first_index
    absent = scaling.indices[(columns < 0) | (columns >= data.rows.n_features)]
    if len(absent):
        raise DataError(
            f"{job.weights}: feature {absent[0]} has a weight, but {job.training_set_file} "
            "has no values of it"
        )
    return FeatureWeights(scaling.weights, columns)


def weights_by_index(scaling: Scaling | None) -> dict[int, float]:
    """Return the weight of each feature index; features of weight 0 are absent."""
    assert scaling is not None and scaling.weights is not None
    return dict(zip(scaling.indices.tolist(), scaling.weights.tolist(), strict=True))


def cross_validate_data(
    data: Dataset, options: TrainOptions, n_folds: int, progress: TerminalProgress
) -> int:
    """Cross-validate and print the result, on stdout even when quiet; return the exit status.

    If there are more folds than rows, leave-one-out is used.
    """
    from dcsvm.training.cross_validation import cross_validate

    n_rows = data.rows.n_samples
    if n_folds > n_rows:
        progress.print_status(f"warning: {n_folds} folds, but {n_rows} rows: leave-one-out instead")
        n_folds = n_rows
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predicted = cross_validate(data.rows, data.labels, options, n_folds, progress, consume=True)
    for warning in caught:
        print_status(f"warning: {warning.message}")
    for line in quality_of_folds(options.svm_type, predicted, data.labels):
        print_result(line)
    return NOT_CONVERGED if caught else 0


def checkpoint_of(job: TrainJob) -> Checkpoint | None:
    """Return the checkpoint of a job, or None.

    With --checkpoint, training starts anew if --resume finds no checkpoint.
    """
    if job.resume_folder is None:
        return None if job.checkpoint_folder is None else Checkpoint(job.checkpoint_folder)
    may_start = job.checkpoint_folder is not None
    resume = not may_start or Checkpoint.exists(job.resume_folder)
    return Checkpoint(job.resume_folder, resume=resume)


def conclude(
    job: TrainJob,
    options: TrainOptions,
    report: TrainReport,
    checkpoint: Checkpoint | None,
    received: int | None,
) -> int:
    """Warn of an unfinished model and return the exit status.

    `received` is the number of the signal that stopped training.
    """
    if report.stopped:
        say_stopped(report, None if received else job.time_limit, checkpoint)
        return status_of(received, NOT_CONVERGED)
    if checkpoint is not None:
        checkpoint.remove()
    if not report.converged:
        say_not_converged(report, options.tolerance, options.gap)
    return 0 if report.converged else NOT_CONVERGED
