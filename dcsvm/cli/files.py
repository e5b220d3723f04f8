"""Files that the arguments name: the data, read as the options say, and what will be written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dcsvm.cli.streams import say
from dcsvm.problem.svm_types import REGRESSIONS

if TYPE_CHECKING:
    from dcsvm.data.dataset import Dataset
    from dcsvm.data.scaling import Scaling
    from dcsvm.model.model import Model
    from dcsvm.problem.options import TrainOptions

AUTO = "auto"  # of --scale, in place of a range file: by the ranges of the training set


def read_data(
    path: str,
    *,
    lenient: bool,
    threads: int,
    scale_file: str | None = None,
    scaling: Scaling | None = None,
    **how,
) -> Dataset:
    """The data set that the options describe, scaled by the range file `scale_file`, by its own
    ranges where that is AUTO, or by a `scaling` that is known; for the rest see `parse_dataset`."""
    from dcsvm.data.dataset import OWN_RANGES, read_dataset

    return read_dataset(
        path,
        threads=threads,
        lenient=lenient,
        scaling=OWN_RANGES if scale_file == AUTO else known_scaling(scale_file, scaling),
        **how,
    )


def read_training_set(job, options: TrainOptions, *, to_train: bool) -> Dataset:
    """Read the training set of a TrainJob or GridJob, and warn of what looks wrong with it."""
    from dcsvm.data.advice import advice

    scaled = {"scale_file": job.scale_file, "to_train": to_train}
    data = _read_rows(job, options, job.training_set_file, "training", **scaled)
    classes = None if options.svm_type in REGRESSIONS else data.labels
    for sentence in [] if job.quiet else advice(data.rows, classes, data.first_index):
        say(f"warning: {sentence}")
    return data


def read_test_set(job, options: TrainOptions, training_set) -> Dataset:
    """Read the file of --test, scaled as the training set and with its first index."""
    how = {"scaling": training_set.scaling, "first_index": training_set.first_index}
    return _read_rows(job, options, job.test_file, "test", **how)


def _read_rows(job, options: TrainOptions, path: str, serials: str, **how) -> Dataset:
    serials = serials if options.kernel == "precomputed" else None
    return read_data(path, lenient=job.lenient, threads=options.threads, serials=serials, **how)


def known_scaling(scale_file: str | None, scaling: Scaling | None) -> Scaling | None:
    """That of a range file, where one is given, else the one that is known."""
    from dcsvm.data.range_file import load_scaling

    return scaling if scale_file in (None, AUTO) else load_scaling(scale_file)


def scaling_of(model_file: str, model: Model, scale_file: str | None) -> Scaling | None:
    """That of the range file beside a model, where the model needs it and no other is given."""
    from dcsvm.model.file import RangeFileError, scaling_beside

    if scale_file is not None:
        return None
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
    """Check every output that is not None with `check_writable`."""
    for place, path in enumerate(outputs):
        if path is not None:
            check_writable(path, *inputs, *outputs[:place])


def check_writable(path: str, *others: str | None) -> None:
    """Complain about a file that could not be written before the work for it is done, or that would
    replace one of the others, which the command reads or writes."""
    if is_stream(path):
        return
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
