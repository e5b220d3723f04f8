"""Read and scale the data sets of a job."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dcsvm.cli.files import AUTO, QUANTILE, print_status
from dcsvm.cli.jobs import DataJob, TrainingJob
from dcsvm.data.data_warnings import data_warnings
from dcsvm.data.dataset import OWN_QUANTILES, OWN_RANGES, Dataset, ScalingOption, read_dataset
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
    data = read_data(
        job,
        job.training_set_file,
        options.threads,
        scaling=scaling,
        serials=serials,
    )
    classes = None if options.svm_type in REGRESSIONS else data.labels
    for sentence in [] if job.quiet else data_warnings(data.rows, classes, data.first_index):
        print_status(f"warning: {sentence}")
    return data


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
        serials="any" if options.kernel_type.is_precomputed else None,
    )


def read_data(job: DataJob, path: str, threads: int | None, **kwargs: Any) -> Dataset:
    """Read a data set with the syntax of a job; `kwargs` are options of `parse_dataset`."""
    return read_dataset(path, lenient=job.lenient, threads=usable_threads(threads), **kwargs)


def scaling_given(job: DataJob) -> Scaling | None:
    """Load the range file of --scale, if given."""
    return None if job.scale_file is None else load_scaling(job.scale_file)


def model_for_file(model: Model, job: TrainingJob, data: "Dataset | RemoteSet") -> Model:
    """Add the first index and the scaling of the training set to its model.

    The scaling of a range file is not added.
    """
    model = replace(model, first_index=data.first_index)
    is_own = job.scale_file in OWN_SCALINGS or getattr(job, "weights", None) is not None
    if is_own and data.scaling is not None:
        return model.scaled_by(data.scaling)
    return model
