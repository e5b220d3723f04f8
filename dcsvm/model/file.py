"""The text file of a model.

An exact model begins as a LIBSVM model, which svm-predict reads as it stands: it stops after the
last support vector. What LIBSVM does not know follows in a section of its own. A model that has
only the early level begins with a key that LIBSVM refuses. float32 features and float64
coefficients come back bit for bit.
"""

from __future__ import annotations

import os

from dcsvm.data.input_file import DataError, read_bytes
from dcsvm.model.cache import key_of, read_cache, write_cache
from dcsvm.model.lines import ModelError
from dcsvm.model.model import Model
from dcsvm.model.reader import ModelReader


def load_model(path: str | os.PathLike[str], *, threads: int = 1, cache: bool = False) -> Model:
    """Read a model file written by `Model.save` or by LIBSVM's svm-train.

    With `cache` the model is kept as arrays in a file beside it, of its name with .cache appended,
    and taken from there the next time, many times faster. A cache of another text is not used but
    replaced; where it cannot be written there is none. Take it where you trust the folder.

    Raises ModelError for what cannot be opened or used.
    """
    name = os.fspath(path)
    if cache and (found := read_cache(name)) is not None:
        return found
    key = key_of(name) if cache else None
    try:
        model = ModelReader(read_bytes(name), name, threads).read()
    except DataError as error:
        raise ModelError(str(error)) from error.__cause__
    if key is not None:
        write_cache(model, name, key)
    return model
