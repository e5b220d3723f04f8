"""Write files atomically: a crash or a full disk leaves the old file unchanged."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import IO

UNFINISHED = ".dcsvm-"  # prefix of the names of temporary files

# the chunks of a file, or a function that writes it
Content = Iterable[bytes] | Callable[[IO[bytes]], object]

unfinished: set[str] = set()


def write_beside(path: str | os.PathLike[str], parts: Content) -> None:
    """Write a temporary file in the same folder and rename it to `path`.

    Standard output ("-"), pipes and devices are written directly. An existing file keeps its mode,
    a new one has the default mode. Raises OSError with `path` in its message.
    """
    path = os.fspath(path)
    try:
        if path in ("-", "/dev/stdout") or (os.path.exists(path) and not os.path.isfile(path)):
            with open(1 if path == "-" else path, "wb", closefd=path != "-") as file:
                if callable(parts):
                    parts(file)
                    return
                for part in parts:  # a reader may wait for each chunk
                    file.write(part)
                    file.flush()
        else:
            _write_and_rename(path, parts)
    except OSError as error:
        name = "standard output" if path == "-" else path
        raise OSError(error.errno, error.strerror, name) from error


def _write_and_rename(path: str, parts: Content) -> None:
    path = os.path.realpath(path)
    os.umask(mask := os.umask(0))  # the mask can only be read by setting it
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
    """Remove the temporary files of this process, before it exits without cleanup."""
    for name in tuple(unfinished):
        try:
            os.unlink(name)
        except OSError:
            continue
