"""The model file, a text file.

An exact model begins as a LIBSVM model, which svm-predict can read: it stops after the last support
vector. A section with the other contents follows. A model with an early level only begins with a
key that LIBSVM refuses. float32 features and float64 coefficients are restored bit for bit.
"""

import os

from dcsvm.data.pieces import DataError, read_bytes
from dcsvm.data.range_file import checksum, load_scaling, range_file_of
from dcsvm.data.scaling import Scaling
from dcsvm.model.lines import ModelError
from dcsvm.model.model import Model
from dcsvm.model.reader import ModelReader


class RangeFileError(ModelError):
    """The range file of a model is missing or has other ranges."""


def load_model(path: str | os.PathLike[str], *, threads: int = 1) -> Model:
    """Read a model file written by `Model.save` or by LIBSVM's svm-train.

    Parameters
    ----------
    path : str or path-like
        The model file. A model of `--scale auto` needs its range file, PATH.range, and scales the
        rows it predicts.
    threads : int, default 1
        Threads that parse the file.

    Returns
    -------
    Model
        The model; its `report` is None.

    Raises
    ------
    ModelError
        If a file is missing, cannot be read, or is invalid.
    """
    model = read_model(path, threads=threads)
    scaling = scaling_beside(path, model)
    return model if scaling is None else model.scaled_by(scaling)


def read_model(path: str | os.PathLike[str], *, threads: int = 1) -> Model:
    """Read a model as `load_model` does, without its range file."""
    name = os.fspath(path)
    try:
        return ModelReader(read_bytes(name), name, threads).read()
    except DataError as error:
        raise ModelError(str(error)) from error.__cause__


def scaling_beside(path: str | os.PathLike[str], model: Model) -> Scaling | None:
    """Read the range file of a model; None for a model without scaling.

    Raises ModelError if the file is missing, is invalid, or has other ranges.
    """
    if model.range_file_crc32 is None:
        return None
    ranges = range_file_of(path)
    if not os.path.exists(ranges):
        raise RangeFileError(f"{ranges}: no such file; the model was trained on rows scaled by it")
    try:
        scaling = load_scaling(ranges)
    except DataError as error:
        raise ModelError(str(error)) from error.__cause__
    if checksum(scaling) != model.range_file_crc32:
        raise RangeFileError(
            f"{ranges}: not the file by which the training rows of {os.fspath(path)} were scaled"
        )
    return scaling.with_first_index(model.first_index)
