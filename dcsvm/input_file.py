"""The bytes of an input file: mapped into memory, read from standard input, decompressed.

What is compressed is known by its first bytes, not by its name. Knows nothing of what the text
means.
"""

from __future__ import annotations

import importlib
import io
import mmap
import os
import stat
import zlib

# the first bytes of a compressed file -> the module of the standard library that reads it
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "lzma"}


class DataError(ValueError):
    """A data file that cannot be used: `file:line:column: reason`, or `file: reason`."""


def read_text(name: str):
    """All bytes of a file, decompressed, in a buffer that may be the file mapped into memory; "-"
    and /dev/stdin are the standard input, which may be a pipe.

    Raises DataError for what cannot be opened, read or decompressed.
    """
    standard_input = name in ("-", "/dev/stdin")
    try:
        with open(0 if standard_input else name, "rb", closefd=not standard_input) as file:
            data = _mapped(file) or file.read()
    except IsADirectoryError:
        raise DataError(f"{name}: is a directory") from None
    except FileNotFoundError:
        raise DataError(f"{name}: no such file") from None
    except OSError as error:
        raise DataError(f"{name}: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:  # a NUL in the name
        raise DataError(f"{name!r}: {error}") from None
    for magic, module in COMPRESSED.items():
        if data[: len(magic)] == magic:
            return _decompressed(data, name, module)
    return data


def _mapped(file) -> mmap.mmap | None:
    """The whole of a regular file; None for what has to be read instead."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0 or file.tell() != 0:
        return None
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _decompressed(data, name: str, module: str) -> bytes:
    try:
        library = importlib.import_module(module)
    except ImportError:
        raise DataError(f"{name}: this Python has no module {module} to decompress it") from None
    damaged = (OSError, EOFError, zlib.error, getattr(library, "LZMAError", OSError))
    try:
        with library.open(io.BytesIO(data)) as file:
            return file.read()
    except damaged as error:
        reason = str(error).rstrip(".") or "invalid data"
        reason = reason[:1].lower() + reason[1:]
        raise DataError(f"{name}: the {module} data is damaged: {reason}") from None
