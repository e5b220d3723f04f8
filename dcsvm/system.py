"""What only some operating systems have; no other module names it (tests/test_layers.py).

Locks of files, the signal of a closed terminal and advice on mapped files are POSIX's. The files
below /proc and /sys are Linux's. A function whose system lacks something returns what it says.
"""

from __future__ import annotations

import errno
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TextIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # mypy has no optional modules

HAS_LOCKS = fcntl is not None
LIBRARIES = ("numpy", "scipy", "click", "tqdm")
EXTRAS = {  # and the package that each needs
    "tables": "pyarrow", "sklearn": "scikit-learn", "onnx": "onnx", "dask": "distributed",
    "plot": "matplotlib",
}  # fmt: skip


def _signals(*names: str) -> tuple[signal.Signals, ...]:
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


STOP_SIGNALS = _signals("SIGINT", "SIGTERM", "SIGHUP")
TERMINAL_SIGNALS = _signals("SIGINT", "SIGHUP")  # sent to all processes of a terminal


def on_fork(call: Callable[[], None]) -> None:
    """Call a function in each process that is forked from this one."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def unblock(descriptor: int) -> None:
    """Make writes to a full pipe fail at once."""
    os.set_blocking(descriptor, False)


def lock(file: TextIO) -> None:
    """Lock an open file until it is closed.

    Raises BlockingIOError if another process has it, OSError if its file system has no locks. Call
    it only if HAS_LOCKS.
    """
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def host_name() -> str:
    """Return the name of this machine in its network, "this machine" if it has none."""
    return os.uname().nodename if hasattr(os, "uname") else "this machine"


def read_at(descriptor: int, n_bytes: int, offset: int) -> bytes:
    """Read at most `n_bytes` of an open file from `offset`, without moving its position."""
    return os.pread(descriptor, n_bytes, offset)


def reserve(descriptor: int, n_bytes: int) -> None:
    """Set the size of a file and reserve its disk space, if the file system can.

    A full disk is then an error now, not later.
    """
    try:
        os.posix_fallocate(descriptor, 0, n_bytes)
    except (AttributeError, OSError) as error:
        if getattr(error, "errno", None) not in (None, errno.EOPNOTSUPP, errno.EINVAL):
            raise
        os.truncate(descriptor, n_bytes)


def read_ahead(memory: mmap.mmap, *, is_on: bool) -> None:
    """Switch the system's read-ahead of a mapped file, if it has a switch."""
    if hasattr(mmap, "MADV_RANDOM"):
        memory.madvise(mmap.MADV_NORMAL if is_on else mmap.MADV_RANDOM)


def is_in_memory(folder: str) -> bool:
    """Return whether a folder is on a file system in memory; False if that is not known."""
    folder = os.path.join(os.path.realpath(folder), "")
    try:
        with open("/proc/mounts", encoding="utf-8", errors="replace") as file:
            mounts = [line.split()[1:3] for line in file]
    except OSError:
        return False
    above = [(path, kind) for path, kind in mounts if folder.startswith(os.path.join(path, ""))]
    return max(above, key=lambda mount: len(mount[0]), default=("", ""))[1] in ("tmpfs", "ramfs")


def usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def physical_memory() -> int | None:
    """Return the memory of the machine in bytes, None if it is not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def free_memory() -> int | None:
    """Return the memory in bytes that programs can still get, None if it is not known."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            values = dict(line.split(":") for line in file)
        return int(values["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return None


def peak_memory() -> int | None:
    """Return the peak memory of this program in bytes, None if it is not known."""
    with suppress(OSError, StopIteration), open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) * 1024
    try:
        import resource
    except ImportError:
        return None
    # it may include the parent's; its unit is a byte on macOS
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if os.uname().sysname == "Darwin" else 1024)


def cgroup_value(name: str) -> list[str]:
    """Read a value of a version 2 cgroup as words; an empty list if it does not exist."""
    return _words_of("/sys/fs/cgroup", _own_cgroup(""), name)


def cgroup1_value(controller: str, name: str) -> list[str]:
    """Read a value of a version 1 cgroup."""
    return _words_of(f"/sys/fs/cgroup/{controller}", _own_cgroup(controller), name)


def _words_of(root: str, own: str, name: str) -> list[str]:
    for path in (root + own, root):
        try:
            with open(os.path.join(path, name), encoding="ascii") as file:
                return file.read().split()
        except OSError:
            continue
    return []


def _own_cgroup(controller: str) -> str:
    """Return the cgroup path of this process for a controller; "" means version 2."""
    try:
        with open("/proc/self/cgroup", encoding="ascii") as file:
            for line in file:
                _, names, path = line.rstrip("\n").split(":", 2)
                if controller in names.split(","):
                    return path
    except OSError:
        pass
    return ""


def features() -> Iterator[tuple[str, str]]:
    """Yield what this installation has, as pairs (name, value)."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from dcsvm import _core

    yield "instruction set", _core.instruction_set()
    yield "products of bytes", _core.byte_loop_name("product") or "none"
    yield "OpenMP", "yes" if _core.usable_threads(2) > 1 else "no, one thread"
    yield "system", f"{platform.system()} {platform.machine()}"
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    yield "Python", platform.python_version() + ("" if has_gil else " without the GIL")
    yield "libraries", ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    installed: list[str] = []
    missing: list[str] = []
    for extra, package in EXTRAS.items():
        try:
            installed.append(f"{extra} ({package} {version(package)})")
        except PackageNotFoundError:
            missing.append(extra)
    yield "extras", ", ".join(installed) or "none"
    yield "missing extras", ", ".join(missing) or "none"
