"""The bytes of an input file, wherever they come from.

Knows nothing of what the text means.
"""

from __future__ import annotations

import mmap
import os
import stat


class DataError(ValueError):
    """A data file that cannot be used: `file:line:column: reason`, or `file: reason`."""


def read_text(name: str):
    """All bytes of a file, in a buffer that may be the file itself, mapped into memory; "-" and
    /dev/stdin are the standard input, which may be a pipe.

    Raises DataError for what cannot be opened or read.
    """
    standard_input = name in ("-", "/dev/stdin")
    try:
        with open(0 if standard_input else name, "rb", closefd=not standard_input) as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_size > 0 and file.tell() == 0:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return file.read()
    except IsADirectoryError:
        raise DataError(f"{name}: is a directory") from None
    except FileNotFoundError:
        raise DataError(f"{name}: no such file") from None
    except OSError as error:
        raise DataError(f"{name}: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:  # a NUL in the name
        raise DataError(f"{name!r}: {error}") from None
