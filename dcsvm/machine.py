"""Find how many threads and how much memory this process may use within its cgroup."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

MAX_DEFAULT_CACHE = 8000  # MB
MAX_THREADS = 1024
THREADS_OF_CORE = 4  # maximum per core; more threads would wait for each other
# Largest work done by one thread: pairs of rows times the cost of a pair in float features. This is
# about 15 ms on one core. At half to twice this work, fits with two threads took 1.1 to 4 times
# longer than with one, and 1.2 to 4 times the CPU time.
SMALL_WORK = 5e8

_is_forked = False
_lock = threading.Lock()
_n_active = 0  # fits and predictions in progress, see shared_threads


def _note_fork() -> None:
    global _is_forked
    _is_forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def is_forked() -> bool:
    """Return whether this process was forked from another Python process.

    A fork does not inherit OpenMP's threads and would wait for them forever.
    """
    return _is_forked


def usable_threads(wanted: int | None) -> int:
    """Limit a number of threads to THREADS_OF_CORE per core; None means the default."""
    if wanted is None:
        return default_threads()
    return min(wanted, THREADS_OF_CORE * _cores())


def default_threads() -> int:
    """Return the default number of threads.

    It is 1 in a forked process. Otherwise it is OMP_NUM_THREADS if set, else the number of cores
    that affinity and the cgroup quota allow.
    """
    if is_forked():
        return 1
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdecimal() and int(wanted) > 0:
        return usable_threads(int(wanted))
    cores = _cores()
    quota = _cgroup_value("cpu.max")
    if quota and quota[0] != "max":
        cores = min(cores, max(1, int(int(quota[0]) / int(quota[1]))))
    return cores


def threads_to_train(wanted: int | None, work: float) -> int:
    """Return the number of threads for training: the wanted number, or one for little work.

    `work` is that of `Rows.work_with`.
    """
    return threads_that_pay(default_threads(), work) if wanted is None else usable_threads(wanted)


def threads_that_pay(threads: int, work: float) -> int:
    """Return `threads`, or 1 for too little work, as of `Rows.work_with`."""
    return threads if work > SMALL_WORK else 1


@contextmanager
def shared_threads(wanted: int | None, work: float) -> Iterator[int]:
    """Choose threads in a process where other fits and predictions may be in progress.

    The default is the limit set by OMP_NUM_THREADS, threadpoolctl and joblib. It is divided among
    the active fits and predictions of this process. Little work, as of `Rows.work_with`, and forked
    processes use 1 thread.
    """
    from dcsvm import _core

    global _n_active
    with _lock:
        _n_active += 1
        n_shares = _n_active
    try:
        # OpenMP cannot be used in a forked process; concurrent fits share the threads
        if is_forked():
            yield 1
        elif wanted is not None:
            yield usable_threads(wanted)
        else:
            limit = min(default_threads(), _core.allowed_threads())
            yield threads_that_pay(max(1, limit // n_shares), work)
    finally:
        with _lock:
            _n_active -= 1


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def default_cache_mb() -> int:
    """Return half of the memory this process may use, in MB, at most 8000."""
    return max(1, min(MAX_DEFAULT_CACHE, usable_memory() // 2 // 1_000_000))


def usable_memory() -> int:
    """Return the memory of the machine in bytes, or the limit of the cgroup if lower."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        total = 4 << 30
    return min([total, *_limits_of_cgroup()])


def _limits_of_cgroup() -> list[int]:
    found = _cgroup_value("memory.max"), _cgroup1_value("memory", "memory.limit_in_bytes")
    return [int(words[0]) for words in found if words and words[0] != "max"]


def available_memory() -> int:
    """Return the free memory that this process may use, in bytes.

    The value changes all the time: use it only to refuse data that would not fit.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            values = dict(line.split(":") for line in file)
        free = int(values["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return usable_memory()
    usable = usable_memory()
    if usable in _limits_of_cgroup():
        usable -= _used_in_cgroup()
    return max(min(usable, free), 0)


def _used_in_cgroup() -> int:
    """Return the bytes used in the cgroup, without the page cache."""
    used, stat = _cgroup_value("memory.current"), _cgroup_value("memory.stat")
    if not used:
        used = _cgroup1_value("memory", "memory.usage_in_bytes") or ["0"]
        stat = _cgroup1_value("memory", "memory.stat")
    counts = dict(zip(stat[::2], stat[1::2], strict=False))
    files = sum(int(counts.get(name, 0)) for name in ("inactive_file", "active_file"))
    return max(int(used[0]) - files, 0)


def _cgroup_value(name: str) -> list[str]:
    """Read a value of a version 2 cgroup as words; an empty list if it does not exist."""
    return _words_of("/sys/fs/cgroup", _own_cgroup(""), name)


def _cgroup1_value(controller: str, name: str) -> list[str]:
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
