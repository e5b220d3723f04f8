"""A copy of a loaded model beside its file, as arrays that are mapped into memory.

The text of the model stays the truth. A cache is of one text: its size, its time in nanoseconds and
a checksum of both its ends. One that is not of this text, of another version, damaged (by its own
checksum) or too short counts as none. It is written beside and renamed; where that cannot be done
there is none.

Arrays are used as they are, so a cache is to be trusted as far as the folder of its model is.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import stat
import zlib
from dataclasses import fields, replace

import numpy as np

from dcsvm.data.output_file import write_beside
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.partition import Fork, Partition
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel, ExactModel, Probability, Worth

SUFFIX = ".cache"
MAGIC = b"dcsvm model cache 2\n"
END = 2**16  # bytes of the text, at its begin and at its end, that the checksum is of
ALIGNED = 64
LAST = 20  # bytes that say where the header begins, and before them as many with the checksum
LEFT_OUT = {"report", "scaling"}  # the range file says that
DTYPES = {np.dtype(one).str: np.dtype(one) for one in ("u1", "i1", "i4", "i8", "f4", "f8")}
CLASSES = {
    one.__name__: one
    for one in (Model, Kernel, ExactModel, EarlyModel, Probability, Worth, Partition, Fork, Rows)
}


def key_of(path: str) -> list[int] | None:
    """What a cache is of; None where the file is none, or cannot be read."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None
            checksum = zlib.crc32(file.read(END))
            file.seek(max(status.st_size - END, 0))
            return [status.st_size, status.st_mtime_ns, zlib.crc32(file.read(END), checksum)]
    except (OSError, ValueError):
        return None


def read_cache(path: str) -> Model | None:
    """The model of the file from the cache beside it, None where there is none of this text."""
    key = key_of(path)
    try:
        with open(path + SUFFIX, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if key is None or data[: len(MAGIC)] != MAGIC:
            return None
        end = len(data) - 2 * LAST
        begin, checksum = int(data[-LAST:]), int(data[end:-LAST])
        with memoryview(data) as view, view[:end] as checked:
            if zlib.crc32(checked) != checksum:
                return None
        header = json.loads(data[begin:end])
        return _made(header["model"], data) if header["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def write_cache(model: Model, path: str, key: list[int]) -> None:
    """Write the cache of a model that was read from the file when it had this key."""
    name = path + SUFFIX
    if key_of(path) != key or (os.path.lexists(name) and not os.path.isfile(name)):
        return
    try:
        write_beside(name, _parts(model, key), mode=os.stat(path).st_mode & 0o777)
    except OSError:
        return


def _parts(model: Model, key: list[int]):
    """The bytes of a cache: arrays, then what they are, then the checksum of both, then where what
    they are begins."""
    arrays: list[np.ndarray] = []
    place = checksum = 0
    header = {"key": key, "model": _plain(model, arrays)}
    for part in (np.frombuffer(MAGIC, np.uint8), *arrays):
        padded = part.tobytes().ljust(_room(part.nbytes), b"\0")
        checksum = zlib.crc32(padded, checksum)
        yield padded
        place += len(padded)
    text = json.dumps(header).encode()
    yield text
    yield f"{zlib.crc32(text, checksum):{LAST}}{place:{LAST}}".encode()


def _plain(value, arrays: list[np.ndarray]):
    """A value as JSON holds it; arrays are added to those there are."""
    if isinstance(value, np.ndarray):
        place = _room(len(MAGIC)) + sum(_room(array.nbytes) for array in arrays)
        arrays.append(np.ascontiguousarray(value))
        return {"dtype": value.dtype.str, "shape": value.shape, "place": place}
    if isinstance(value, tuple):
        return {"tuple": [_plain(one, arrays) for one in value]}
    if type(value).__name__ in CLASSES:
        state = value.__getstate__() if isinstance(value, Rows) else vars(value)
        names = {field.name for field in fields(value)} - LEFT_OUT
        kept = {name: _plain(state[name], arrays) for name in names}
        return {"class": type(value).__name__, "fields": kept}
    return value.item() if isinstance(value, np.generic) else value


def _made(value, data: mmap.mmap):
    """The value again. Raises ValueError, KeyError, TypeError or AttributeError for no value."""
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_made(one, data) for one in value["tuple"])
    if "dtype" in value:
        dtype, shape = DTYPES[value["dtype"]], value["shape"]
        if not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("not the shape of an array")
        count = math.prod(shape)
        if count == 0:
            return np.empty(shape, dtype)
        return np.frombuffer(data, dtype, count, value["place"]).reshape(shape)
    made = {name: _made(one, data) for name, one in value["fields"].items()}
    one = CLASSES[value["class"]](**made)
    if isinstance(one, Rows) and one.is_bytes:
        return replace(one, dense=one.dense[:, : one.n_features])
    return one


def _room(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNED) * ALIGNED
