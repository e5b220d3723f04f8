"""The text file of a model.

An exact model begins as a LIBSVM model, which svm-predict reads as it stands: it stops after the
last support vector. What LIBSVM does not know follows in a section of its own. A model that has
only the early level begins with a key that LIBSVM refuses. float32 features and float64
coefficients come back bit for bit.
"""

from __future__ import annotations

import os

from dcsvm.data.pieces import DataError, read_bytes
from dcsvm.data.range_file import checksum, load_scaling, range_file_of
from dcsvm.data.scaling import Scaling
from dcsvm.model.lines import ModelError
from dcsvm.model.model import Model
from dcsvm.model.reader import ModelReader


class RangeFileError(ModelError):
    """The range file of a model is missing, or another one is in its place."""


def load_model(path: str | os.PathLike[str], *, threads: int = 1) -> Model:
    """Read a model file written by `Model.save` or by LIBSVM's svm-train.

    A model of `--scale auto` scales the rows it predicts by the range file beside it. Raises
    ModelError for what cannot be opened or used, a range file that is missing too.
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
    """Read the range file beside a model; None for a model that does not need it.

    Raises ModelError where the file is missing, is none, or has other ranges.
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
