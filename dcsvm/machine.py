"""What this machine lets this process use: threads, cores, memory; cgroups included."""

from __future__ import annotations

import os

LARGEST_DEFAULT_CACHE = 8000  # MB
MOST_THREADS = 1024
THREADS_OF_CORE = 4  # at most; more would only wait for each other


_is_forked = False


def _note_fork() -> None:
    global _is_forked
    _is_forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def is_forked() -> bool:
    """Whether this process is a fork of another Python process: OpenMP's threads do not come with
    it, and waiting for them would not end."""
    return _is_forked


def usable_threads(wanted: int | None) -> int:
    """As many threads as are wanted, but not many more than there are cores; None: the default."""
    if wanted is None:
        return default_threads()
    return min(wanted, THREADS_OF_CORE * _cores())


def default_threads() -> int:
    """Cores this process may use: OMP_NUM_THREADS if set, else affinity and cgroup quota; one in a
    forked process."""
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


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def default_cache_mb() -> int:
    """Half of the memory this process may use, at most 8 GB."""
    return max(1, min(LARGEST_DEFAULT_CACHE, usable_memory() // 2 // 1_000_000))


def usable_memory() -> int:
    """Bytes of memory this process may use: what the machine has, or its cgroup allows."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        total = 4 << 30
    return min([total, *_limits_of_cgroup()])


def _limits_of_cgroup() -> list[int]:
    found = _cgroup_value("memory.max"), _cgroup1_value("memory", "memory.limit_in_bytes")
    return [int(words[0]) for words in found if words and words[0] != "max"]


def available_memory() -> int:
    """Bytes of memory that this process may use and no other one does. To refuse what would not
    fit, not to decide anything else by: it changes all the time."""
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
    """Bytes that the processes of the cgroup have; files, which can be read again, left out."""
    used, stat = _cgroup_value("memory.current"), _cgroup_value("memory.stat")
    if not used:
        used = _cgroup1_value("memory", "memory.usage_in_bytes") or ["0"]
        stat = _cgroup1_value("memory", "memory.stat")
    counts = dict(zip(stat[::2], stat[1::2], strict=False))
    files = sum(int(counts.get(name, 0)) for name in ("inactive_file", "active_file"))
    return max(int(used[0]) - files, 0)


def _cgroup_value(name: str) -> list[str]:
    return _words_of("/sys/fs/cgroup", _own_cgroup(""), name)


def _cgroup1_value(controller: str, name: str) -> list[str]:
    """The same where cgroups are those of version 1."""
    return _words_of(f"/sys/fs/cgroup/{controller}", _own_cgroup(controller), name)


def _words_of(root: str, own: str, name: str) -> list[str]:
    for path in (root + own, root):
        try:
            with open(os.path.join(path, name), encoding="ascii") as file:
                return file.read().split()
        except OSError:
            continue
    return []


def _own_cgroup(controllers: str) -> str:
    """The path of this process among the cgroups of some controllers, none for version 2."""
    try:
        with open("/proc/self/cgroup", encoding="ascii") as file:
            for line in file:
                _, names, path = line.rstrip("\n").split(":", 2)
                if names == controllers or controllers in names.split(","):
                    return path
    except OSError:
        pass
    return ""
