"""The text file of a model.

An exact model begins as a LIBSVM model, which svm-predict reads as it stands: it stops after the
last support vector. What LIBSVM does not know follows in a section of its own. A model that has
only the early level begins with a key that LIBSVM refuses. float32 features and float64
coefficients come back bit for bit.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from dcsvm.input_file import DataError, read_bytes
from dcsvm.model import Model
from dcsvm.model_reader import ModelError, ModelReader
from dcsvm.model_writer import model_text

__all__ = [
    "UNFINISHED",
    "ModelError",
    "load_model",
    "remove_unfinished",
    "save_model",
    "write_beside",
]

UNFINISHED = ".dcsvm-"  # how the names of files begin that are being written beside others

unfinished: set[str] = set()


def save_model(model: Model, path: str | os.PathLike[str], format: str = "dcsvm") -> None:
    """Write the model file; an interrupted save leaves an existing file as it was.

    The format "libsvm" is nothing but LIBSVM; it raises ValueError for a model that has only the
    early level or whose labels are not whole numbers.
    """
    write_beside(path, model_text(model, format))


def write_beside(path: str | os.PathLike[str], parts) -> None:
    """Write byte strings to a new file in the same folder, then rename it to `path`; a crash leaves
    the one before. What is no file is written as it is. Raises OSError that names `path`."""
    path = os.fspath(path)
    try:
        if path in ("-", "/dev/stdout") or (os.path.exists(path) and not os.path.isfile(path)):
            with open(1 if path == "-" else path, "wb", closefd=path != "-") as file:
                file.writelines(parts)
        else:
            _write_and_rename(path, parts)
    except OSError as error:
        name = "standard output" if path == "-" else path
        raise OSError(error.errno, error.strerror, name) from error


def _write_and_rename(path: str, parts) -> None:
    path = os.path.realpath(path)
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=UNFINISHED, dir=os.path.dirname(path))
    unfinished.add(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    finally:
        unfinished.discard(name)


def remove_unfinished() -> None:
    """Before the process ends at once: remove what is written only in part."""
    for name in tuple(unfinished):
        try:
            os.unlink(name)
        except OSError:
            continue


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def load_model(path: str | os.PathLike[str], *, threads: int = 1) -> Model:
    """Read a model file written by `save_model` or by LIBSVM's svm-train.

    Raises ModelError for what cannot be opened or used.
    """
    name = os.fspath(path)
    try:
        return ModelReader(read_bytes(name), name, threads).read()
    except DataError as error:
        raise ModelError(str(error)) from error.__cause__
