"""Lock a folder, so that one process at a time writes to it.

The lock is one of the operating system, on a file in the folder that names its holder. It ends with
the process, however that ends. Without such locks in the system or the file system nothing is
locked.
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
    """A folder that another process holds; the message names the process."""


class FolderLock:
    """The lock of an existing folder, held from `take` to `let_go`."""

    def __init__(self, folder: str):
        self.folder, self.path = folder, os.path.join(folder, NAME)
        self.file = None

    def take(self) -> None:
        """Hold the folder; lock it anew where it was removed meanwhile. Raises FolderInUse and
        OSError."""
        while fcntl is not None and not self._is_in_place:
            if self.file is not None:
                self.file.close()
            # append: until the lock is ours the file names its holder
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
        """Release the folder and remove the lock file."""
        if self.file is None:
            return
        with suppress(OSError):
            if self._is_in_place:
                os.unlink(self.path)
        self.file = self.file.close()

    @property
    def _is_in_place(self) -> bool:
        """Whether the locked file is still the one in the folder; `let_go` removes it."""
        if self.file is None:
            return False
        try:
            return os.path.samestat(os.fstat(self.file.fileno()), os.stat(self.path))
        except OSError:
            return False
