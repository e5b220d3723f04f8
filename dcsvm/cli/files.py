"""Files that the arguments name: the data, read as the options say, and what will be written."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from dcsvm.problem.option_rules import REGRESSIONS

OUTPUT = "standard output"
STANDARD_INPUT = ("-", "/dev/stdin")


def show(line: str) -> None:
    """Print a line of results. Raises OSError that names standard output."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        click.echo(line)
    except OSError as error:
        point_at_nothing(1)  # Python would complain of the rest at its exit
        raise OSError(error.errno, error.strerror, OUTPUT) from None


def show_beside(*outputs: str | None) -> Callable[[str], None]:
    """What prints results where standard output may be one of the files that are written, in which
    they have no place."""
    return say if {"-", "/dev/stdout"} & set(outputs) else show


def say(line: str) -> None:
    """Print a line of talk, or not."""
    try:
        click.echo(line, err=True)
    except OSError:
        point_at_nothing(2)


def reason_of(error: OSError) -> str:
    """What went wrong with which file."""
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def occupy_closed() -> None:
    """Make sure that no file which is opened takes the place of a standard stream that is closed;
    such a stream still can be neither read nor written."""
    for stream in range(3):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if stream == 0 else os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)


def point_at_nothing(stream: int) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream)
    os.close(nothing)


if TYPE_CHECKING:
    from dcsvm.data.dataset import Dataset
    from dcsvm.data.scaling import Scaling
    from dcsvm.model.model import Model
    from dcsvm.problem.options import TrainOptions

AUTO = "auto"  # of --scale, in place of a range file: by the ranges of the training set


def read_training_set(job, options: TrainOptions) -> Dataset:
    """Read the training set of a TrainJob or GridJob, scaled by its --scale file, or by its own
    ranges where that is AUTO, and warn of what looks wrong with it."""
    from dcsvm.data.advice import advice
    from dcsvm.data.dataset import OWN_RANGES

    scaling = OWN_RANGES if job.scale_file == AUTO else scaling_given(job)
    serials = "training" if options.kernel == "precomputed" else None
    how = {"scaling": scaling, "serials": serials}
    data = read_data(job, job.training_set_file, options.threads, **how)
    classes = None if options.svm_type in REGRESSIONS else data.labels
    for sentence in [] if job.quiet else advice(data.rows, classes, data.first_index):
        say(f"warning: {sentence}")
    return data


def read_test_set(job, options: TrainOptions, training_set) -> Dataset:
    """Read the file of --test, scaled as the training set and with its first index."""
    how = {"scaling": training_set.scaling, "first_index": training_set.first_index}
    how["serials"] = "test" if options.kernel == "precomputed" else None
    return read_data(job, job.test_file, options.threads, **how)


def read_data(job, path: str, threads: int, **how) -> Dataset:
    """Read a data set as the options of a job say; for the rest see `parse_dataset`."""
    from dcsvm.data.dataset import read_dataset

    return read_dataset(path, lenient=job.lenient, threads=threads, **how)


def scaling_given(job) -> Scaling | None:
    """That of the range file of --scale, where one is given."""
    from dcsvm.data.range_file import load_scaling

    return None if job.scale_file is None else load_scaling(job.scale_file)


def scaling_of(model_file: str, model: Model) -> Scaling | None:
    """That of the range file beside a model, where the model needs it."""
    from dcsvm.model.file import RangeFileError, scaling_beside

    try:
        return scaling_beside(model_file, model)
    except RangeFileError as error:
        raise RangeFileError(f"{error}: give it with --scale FILE") from None


def is_stream(path: str) -> bool:
    """Whether an output is written as it is, to standard output, a device or a pipe."""
    if path in ("-", "/dev/stdout"):
        return True
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def check_outputs(inputs: list[str | None], outputs: list[str | None]) -> None:
    """Complain about a file that could not be written before the work for it is done, or that would
    replace another one that the command reads or writes."""
    for place, path in enumerate(outputs):
        if path is not None and not is_stream(path):
            _check_writable(path, [*inputs, *outputs[:place]])


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
