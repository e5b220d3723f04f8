"""Files written beside and renamed: a crash or a full disk leaves the one before as it was."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

UNFINISHED = ".dcsvm-"  # how the names of files begin that are being written beside others

unfinished: set[str] = set()


def write_beside(path: str | os.PathLike[str], parts) -> None:
    """Write byte strings, or what a function of the file writes, to a new file in the same folder,
    then rename it to `path`; a crash leaves the one before. What is no file is written as it is.
    The mode of a file is that of the one before, and of a new one what is usual. Raises OSError
    that names `path`."""
    path = os.fspath(path)
    try:
        if path in ("-", "/dev/stdout") or (os.path.exists(path) and not os.path.isfile(path)):
            with open(1 if path == "-" else path, "wb", closefd=path != "-") as file:
                for part in parts:  # somebody may wait for each
                    file.write(part)
                    file.flush()
        else:
            _write_and_rename(path, parts)
    except OSError as error:
        name = "standard output" if path == "-" else path
        raise OSError(error.errno, error.strerror, name) from error


def _write_and_rename(path: str, parts) -> None:
    path = os.path.realpath(path)
    os.umask(mask := os.umask(0))  # what it is can only be asked for by setting it
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~mask
    handle, name = tempfile.mkstemp(prefix=UNFINISHED, dir=os.path.dirname(path))
    unfinished.add(name)
    try:
        with os.fdopen(handle, "wb") as file:
            parts(file) if callable(parts) else file.writelines(parts)
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
