"""Read the data sets of a command, and print warnings about them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dcsvm.cli.files import print_status
from dcsvm.cli.jobs import DataJob, TrainingJob
from dcsvm.data.dataset import Dataset
from dcsvm.model.reader import load_model
from dcsvm.problem.options import TrainOptions

if TYPE_CHECKING:
    from dcsvm.cli.easy import EasyJob


def read_training_set(job: TrainingJob | EasyJob, options: TrainOptions, **how: Any) -> Dataset:
    """Read and scale a training set; print its description and warnings about it."""
    with telling_warnings(quiet=job.quiet):
        data = Dataset.read(
            job.training_set_file, scale=job.scale, threads=options.threads, drop=job.dropped,
            weight=job.weight, kernel_values=options.kernel_type.is_precomputed, **job.reading,
            **how,
        )  # fmt: skip
    if data.description and not job.quiet:
        print_status(data.description)
    return data


def print_warnings(data: Dataset, options: TrainOptions) -> None:
    """Print what is suspicious in a training set."""
    for sentence in data.warnings(has_classes=not options.is_regression):
        print_status(f"warning: {sentence}")


def read_other_set(path: str, job: DataJob, like: Any, **how: Any) -> Dataset:
    """Read rows to test or to fit, encoded and scaled as those of a data set or a model."""
    with telling_warnings(quiet=job.quiet):
        return Dataset.read(path, like=like, **job.reading, **how)


def weights_of(job: DataJob, data: Dataset, options: TrainOptions) -> tuple[Dataset, str | None]:
    """Apply the feature weights of a model file. Return the data set, and LEARN if that is left."""
    if job.feature_weights is None or job.learns_weights:
        return data, job.feature_weights
    model = load_model(job.feature_weights, threads=options.threads)
    return data.weighted_as(model, job.feature_weights), None


@contextmanager
def telling_warnings(*, quiet: bool) -> Iterator[None]:
    """Print Python's warnings as lines of the command, unless quiet."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in [] if quiet else caught:
        print_status(f"warning: {warning.message}")
