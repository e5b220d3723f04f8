"""Decide how many threads and how much memory this process may use within its cgroup."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dcsvm import system

MAX_DEFAULT_CACHE = 8000  # MB
UNKNOWN_MEMORY = 4 << 30  # bytes, where the system does not tell
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


system.on_fork(_note_fork)


def is_forked() -> bool:
    """Return whether this process was forked from another Python process.

    A fork does not inherit OpenMP's threads and would wait for them forever.
    """
    return _is_forked


def usable_threads(wanted: int | None) -> int:
    """Limit a number of threads to THREADS_OF_CORE per core; None means the default."""
    if wanted is None:
        return default_threads()
    return min(wanted, THREADS_OF_CORE * system.usable_cores())


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
    cores = system.usable_cores()
    quota = system.cgroup_value("cpu.max")
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


def default_cache_mb() -> int:
    """Return half of the memory this process may use, in MB, at most 8000."""
    return max(1, min(MAX_DEFAULT_CACHE, usable_memory() // 2 // 1_000_000))


def usable_memory() -> int:
    """Return the memory of the machine in bytes, or the limit of the cgroup if lower."""
    return min([system.physical_memory() or UNKNOWN_MEMORY, *_limits_of_cgroup()])


def _limits_of_cgroup() -> list[int]:
    found = (
        system.cgroup_value("memory.max"),
        system.cgroup1_value("memory", "memory.limit_in_bytes"),
    )
    return [int(words[0]) for words in found if words and words[0] != "max"]


def available_memory() -> int:
    """Return the free memory that this process may use, in bytes.

    The value changes all the time: use it only to refuse data that would not fit.
    """
    usable, free = usable_memory(), system.free_memory()
    if free is None:
        return usable
    if usable in _limits_of_cgroup():
        usable -= _used_in_cgroup()
    return max(min(usable, free), 0)


def _used_in_cgroup() -> int:
    """Return the bytes used in the cgroup, without the page cache."""
    used, stat = system.cgroup_value("memory.current"), system.cgroup_value("memory.stat")
    if not used:
        used = system.cgroup1_value("memory", "memory.usage_in_bytes") or ["0"]
        stat = system.cgroup1_value("memory", "memory.stat")
    counts = dict(zip(stat[::2], stat[1::2], strict=False))
    files = sum(int(counts.get(name, 0)) for name in ("inactive_file", "active_file"))
    return max(int(used[0]) - files, 0)
