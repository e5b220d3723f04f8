"""Read and scale the data sets of a job."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dcsvm.cli.files import AUTO, QUANTILE, is_stream, print_status
from dcsvm.cli.jobs import DataJob, EasyJob, TrainingJob
from dcsvm.data.columns import TableEncoding
from dcsvm.data.data_warnings import data_warnings
from dcsvm.data.dataset import (
    OWN_QUANTILES,
    OWN_RANGES,
    Dataset,
    ScalingOption,
    UnscaledSet,
    check_lines,
    read_dataset,
    read_unscaled,
)
from dcsvm.data.files import DataError, first_lines
from dcsvm.data.formats import table_format
from dcsvm.data.range_file import load_scaling
from dcsvm.data.scaling import Scaling
from dcsvm.machine import usable_threads
from dcsvm.model.model import Model
from dcsvm.problem.option_table import REGRESSIONS
from dcsvm.problem.options import TrainOptions

OWN_SCALINGS: dict[str, ScalingOption] = {AUTO: OWN_RANGES, QUANTILE: OWN_QUANTILES}

if TYPE_CHECKING:
    from dcsvm.cli.train_remote import RemoteSet


def read_training_set(job: TrainingJob, options: TrainOptions) -> Dataset:
    """Read and scale the training set of a job, and print warnings about the data."""
    scaling = OWN_SCALINGS.get(job.scale_file or "") or scaling_given(job)
    serials = "training" if options.kernel_type.is_precomputed else None
    format = training_format(job)
    if format is None:
        data = read_data(
            job, job.training_set_file, options.threads, scaling=scaling, serials=serials
        )
    else:
        data = read_training_table(job, format, scaling)
    classes = None if options.svm_type in REGRESSIONS else data.labels
    for sentence in [] if job.quiet else data_warnings(data.rows, classes, data.first_index):
        print_status(f"warning: {sentence}")
    warn_of_absent(options, data)
    return data


def warn_of_absent(options: TrainOptions, data: Dataset) -> None:
    """Warn of each label that has a class weight but no rows."""
    if options.has_unused_weights or not isinstance(options.class_weight, dict):
        return
    for label in options.class_weight:
        if label not in data.labels:
            print_status(f"warning: no row has the label {label:g} of -w{label:g}")


def training_format(job: TrainingJob | EasyJob) -> str | None:
    """Return the format of the table to train on; None for LIBSVM text.

    Raises UsageError for options of a table with LIBSVM text.
    """
    format = table_format(job.training_set_file, job.format)
    given = [name for name in ("label", "drop", "weight") if getattr(job, name)]
    if format is None and given:
        raise click.UsageError(
            f"--{given[0]} is for tables: {job.training_set_file} is read as LIBSVM text; --format"
            " names another format"
        )
    return format


def read_training_table(job: TrainingJob, format: str, scaling: ScalingOption | None) -> Dataset:
    """Read a table, and print its description and warnings."""
    from dcsvm.data.tables import training_table

    with telling_warnings(quiet=job.quiet):
        data, described = training_table(job.training_set_file, format, job.table_options, scaling)
    if not job.quiet:
        print_status(described)
    return data


def read_unscaled_set(job: EasyJob, threads: int) -> UnscaledSet:
    """Read a training set to be scaled later; print the description and warnings of a table."""
    format = training_format(job)
    if format is None:
        return read_unscaled(job.training_set_file, lenient=job.lenient, threads=threads)
    from dcsvm.data.tables import unscaled_table

    with telling_warnings(quiet=job.quiet):
        data, described = unscaled_table(job.training_set_file, format, job.table_options)
    if not job.quiet:
        print_status(described)
    return data


@contextmanager
def telling_warnings(*, quiet: bool) -> Iterator[None]:
    """Print Python's warnings as lines of the command, unless quiet."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in [] if quiet else caught:
        print_status(f"warning: {warning.message}")


def read_test_set(
    path: str, job: TrainingJob, options: TrainOptions, training_set: "Dataset | RemoteSet"
) -> Dataset:
    """Read test rows with the scaling and the first index of the training set."""
    return read_data(
        job,
        path,
        options.threads,
        scaling=training_set.scaling,
        first_index=training_set.first_index,
        table=training_set.table,
        serials="any" if options.kernel_type.is_precomputed else None,
    )


def read_data(
    job: DataJob,
    path: str,
    threads: int | None,
    table: TableEncoding | None = None,
    **kwargs: Any,
) -> Dataset:
    """Read a data set with the syntax of a job; `kwargs` are options of `parse_dataset`.

    A table is encoded by `table`. Raises DataError.
    """
    format = format_of(path, job, table)
    if format is not None:
        assert table is not None
        from dcsvm.data.tables import other_table

        with telling_warnings(quiet=job.quiet):
            (data,) = other_table(path, format, table, job.label, kwargs.get("scaling"), None)
        return data
    return read_dataset(path, lenient=job.lenient, threads=usable_threads(threads), **kwargs)


def format_of(path: str, job: DataJob, table: TableEncoding | None) -> str | None:
    """Return the format of a table, or None for LIBSVM text; `table` is the encoding of the model.

    Raises DataError if only the file or only the training set is a table.
    """
    format = table_format(path, job.format)
    if format is not None and table is None:
        raise DataError(f"{path}: the model was not trained on a table: give LIBSVM text")
    if format is None and table is not None:
        raise DataError(
            f"{path}: the model was trained on a table: give a table, with its ending or --format"
        )
    return format


def check_first_rows(
    path: str | None, job: DataJob, table: TableEncoding | None, first_index: int
) -> None:
    """Encode the first rows of a test file, to find its errors before a long run.

    A stream can be read only once and is not checked. Raises DataError.
    """
    if path is None or is_stream(path):
        return
    format = format_of(path, job, table)
    if format is None:
        check_lines(first_lines(path), path, lenient=job.lenient, first_index=first_index)
        return
    assert table is not None
    from dcsvm.data import tables

    with telling_warnings(quiet=True):
        tables.check_first_rows(path, format, table, job.label)


def scaling_given(job: DataJob) -> Scaling | None:
    """Load the range file of --scale, if given."""
    return None if job.scale_file is None else load_scaling(job.scale_file)


def model_for_file(model: Model, job: TrainingJob, data: "Dataset | RemoteSet") -> Model:
    """Add the first index and the scaling of the training set to its model.

    The scaling of a range file is not added.
    """
    model = replace(model, first_index=data.first_index, table=data.table)
    is_own = job.scale_file in OWN_SCALINGS or getattr(job, "weights", None) is not None
    if is_own and data.scaling is not None:
        return model.scaled_by(data.scaling)
    return model
