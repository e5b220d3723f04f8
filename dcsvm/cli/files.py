"""Standard streams, input data and output files of the commands."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dcsvm.problem.option_rules import REGRESSIONS

OUTPUT = "standard output"
STANDARD_INPUT = ("-", "/dev/stdin")


def show(line: str) -> None:
    """Print a line of results on stdout. Raises OSError that names standard output."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        click.echo(line)
    except OSError as error:
        point_at_nothing(1)  # else Python reports the unwritten rest at exit
        raise OSError(error.errno, error.strerror, OUTPUT) from None


def show_beside(*outputs: str | None) -> Callable[[str], None]:
    """Return `show`, or `say` if one of the output files is standard output."""
    return say if {"-", "/dev/stdout"} & set(outputs) else show


def say(line: str) -> None:
    """Print a line of status on stderr; write errors are ignored."""
    try:
        click.echo(line, err=True)
    except OSError:
        point_at_nothing(2)


def reason_of(error: OSError) -> str:
    """Format an error as FILE: REASON."""
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def occupy_closed() -> None:
    """Occupy the descriptors of closed standard streams, so that no opened file gets one of them.

    Reading or writing such a stream remains an error.
    """
    for stream in range(3):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if stream == 0 else os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)


def point_at_nothing(stream: int) -> None:
    """Redirect a descriptor to the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream)
    os.close(null)


if TYPE_CHECKING:
    from dcsvm.cli.jobs import DataJob, TrainingJob
    from dcsvm.cli.train_remote import RemoteSet
    from dcsvm.data.dataset import Dataset
    from dcsvm.data.scaling import Scaling
    from dcsvm.model.model import Model
    from dcsvm.problem.options import TrainOptions

AUTO = "auto"  # --scale auto: scale by the ranges of the training set


def read_training_set(job: TrainingJob, options: TrainOptions, *, to_train: bool) -> Dataset:
    """Read and scale the training set of a job, and print warnings about the data."""
    from dcsvm.data.advice import advice
    from dcsvm.data.dataset import OWN_RANGES

    scaling = OWN_RANGES if job.scale_file == AUTO else scaling_given(job)
    serials = "training" if options.kernel == "precomputed" else None
    data = read_data(
        job,
        job.training_set_file,
        options.threads,
        scaling=scaling,
        serials=serials,
        to_train=to_train,
    )
    classes = None if options.svm_type in REGRESSIONS else data.labels
    for sentence in [] if job.quiet else advice(data.rows, classes, data.first_index):
        say(f"warning: {sentence}")
    return data


def read_test_set(
    path: str, job: TrainingJob, options: TrainOptions, training_set: Dataset | RemoteSet
) -> Dataset:
    """Read test rows with the scaling and the first index of the training set."""
    return read_data(
        job,
        path,
        options.threads,
        scaling=training_set.scaling,
        first_index=training_set.first_index,
        serials="test" if options.kernel == "precomputed" else None,
    )


def read_data(job: DataJob, path: str, threads: int | None, **kwargs: Any) -> Dataset:
    """Read a data set in the syntax that the job allows; for `kwargs` see `parse_dataset`."""
    from dcsvm.data.dataset import read_dataset
    from dcsvm.machine import usable_threads

    return read_dataset(path, lenient=job.lenient, threads=usable_threads(threads), **kwargs)


def scaling_given(job: DataJob) -> Scaling | None:
    """Load the range file of --scale, if given."""
    from dcsvm.data.range_file import load_scaling

    return None if job.scale_file is None else load_scaling(job.scale_file)


def model_for_file(model: Model, job: TrainingJob, data: Dataset | RemoteSet) -> Model:
    """Add the first index of the training set to a model, and the scaling of --scale auto."""
    model = replace(model, first_index=data.first_index)
    if job.scale_file == AUTO and data.scaling is not None:
        return model.scaled_by(data.scaling)
    return model


def scaling_of(model_file: str, model: Model) -> Scaling | None:
    """Load the range file beside a model, if the model was trained on scaled rows."""
    from dcsvm.model.file import RangeFileError, scaling_beside

    try:
        return scaling_beside(model_file, model)
    except RangeFileError as error:
        raise RangeFileError(f"{error}: give it with --scale FILE") from None


def is_stream(path: str) -> bool:
    """Return whether an output is standard output, a device or a pipe."""
    if path in ("-", "/dev/stdout"):
        return True
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def check_outputs(inputs: list[str | None], outputs: list[str | None]) -> None:
    """Raise OSError for an output that is not writable or is another file of the command."""
    for k, path in enumerate(outputs):
        if path is not None and not is_stream(path):
            _check_writable(path, [*inputs, *outputs[:k]])


def _check_writable(path: str, others: list[str | None]) -> None:
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a directory", path)
    if os.path.realpath(path) in [os.path.realpath(other) for other in others if other]:
        raise FileExistsError(17, "the output would replace another file of the command", path)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(13, "is not writable", path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "no such folder", folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "folder is not writable", folder)
