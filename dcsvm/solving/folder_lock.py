"""A folder that one process at a time writes to.

The lock is the system's, on a file in the folder that says who holds it: it goes with the process,
whatever ends that. Where the system or the file system has no such locks there is none.
"""

from __future__ import annotations

import os
from contextlib import suppress

try:
    import fcntl
except ImportError:  # not POSIX
    fcntl = None

NAME = "lock"


class FolderInUse(ValueError):
    """Another process holds the folder; the sentence says which."""


class FolderLock:
    """The lock of a folder that exists, which is held from `take` to `let_go`."""

    def __init__(self, folder: str):
        self.folder, self.path = folder, os.path.join(folder, NAME)
        self.file = None

    def take(self) -> None:
        """Hold the folder from now on, again where it was removed meanwhile. Raises FolderInUse,
        and OSError."""
        while fcntl is not None and not self._is_in_place:
            if self.file is not None:
                self.file.close()
            # opened to append: what it says is of the holder until the lock is ours
            self.file = open(self.path, "a+", encoding="utf-8")  # noqa: SIM115 (until let go)
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.file.seek(0)
                holder = self.file.read(200).strip() or "another process"
                self.file = self.file.close()
                raise FolderInUse(f"{self.folder}: {holder} is using this folder") from None
            except OSError:  # of a file system without locks
                return
            self.file.truncate(0)
            self.file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
            self.file.flush()

    def let_go(self) -> None:
        if self.file is None:
            return
        with suppress(OSError):
            if self._is_in_place:
                os.unlink(self.path)
        self.file = self.file.close()

    @property
    def _is_in_place(self) -> bool:
        """Whether the file that is locked is the one in the folder: whoever lets go removes it."""
        if self.file is None:
            return False
        try:
            return os.path.samestat(os.fstat(self.file.fileno()), os.stat(self.path))
        except OSError:
            return False
