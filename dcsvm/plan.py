"""Decisions made from counts before anything runs: levels, early level, threads and memory.

A Plan is a plain value; `train` carries it out. Nothing here looks at a clock or at free memory,
except where a default has to be found for what the user did not say.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

DEFAULT_MEAN_CLUSTER = 1000  # rows; by default no level is finer
LEVEL_STEP = 2  # between the default levels from the early one to the finest
SMALLEST_MEAN_CLUSTER = 100  # rows; a finer level asked for is skipped
LARGEST_DEFAULT_CACHE = 8000  # MB
MOST_THREADS = 1024


@dataclass(frozen=True)
class Plan:
    """The levels to run, from the finest; `skipped` ones were asked for but would be too small.

    `early_level` is one of `levels`, or None when there are none.
    """

    levels: tuple[int, ...]
    skipped: tuple[int, ...]
    early_level: int | None
    branching: int

    def describe(self) -> str:
        if not self.levels:
            text = "no levels"
        else:
            counts = ", ".join(str(self.branching**level) for level in self.levels)
            text = f"levels of {counts} clusters (early level {self.early_level})"
        if self.skipped:
            names = ", ".join(map(str, self.skipped))
            text += f", level {names} skipped: fewer than {SMALLEST_MEAN_CLUSTER} rows a cluster"
        return text


def make_plan(
    n_samples: int,
    levels: int | None,
    branching: int,
    early_level: int | None,
    *,
    dear_rows: bool = False,
) -> Plan:
    """Levels l..1 with branching**l clusters each; see the module constants for the rules.

    Without `levels` those run that pay: the early one, every second finer one and level 1.
    `dear_rows` says that computing a kernel row costs many times reading it: level 1 would compute
    more rows than it saves.
    """
    if branching < 2:
        raise ValueError(f"branching must be at least 2, not {branching}")
    if levels is None:
        deepest = _deepest(n_samples, branching, DEFAULT_MEAN_CLUSTER)
        wanted = deepest
    else:
        if levels < 0:
            raise ValueError(f"levels must be at least 0, not {levels}")
        deepest = min(levels, _deepest(n_samples, branching, SMALLEST_MEAN_CLUSTER))
        wanted = levels
    kept = tuple(range(deepest, 0, -1))
    skipped = tuple(range(wanted, deepest, -1))
    if early_level is not None and early_level not in kept:
        known = f"levels are 1 to {deepest}" if kept else "there are no levels"
        raise ValueError(f"early level {early_level} does not exist: {known}")
    if early_level is None and kept:
        early_level = min(3, deepest)
    if levels is None and kept:
        wanted_levels = {1, *range(early_level, deepest + 1, LEVEL_STEP)}
        if dear_rows:
            wanted_levels -= {1} - {early_level}
        kept = tuple(level for level in kept if level in wanted_levels)
    return Plan(kept, skipped, early_level, branching)


def _deepest(n_samples: int, branching: int, mean_cluster: int) -> int:
    level = 0
    while branching ** (level + 1) * mean_cluster <= n_samples:
        level += 1
    return level


def default_threads() -> int:
    """Cores this process may use: OMP_NUM_THREADS if set, else affinity and cgroup quota."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdecimal() and int(wanted) > 0:
        return min(int(wanted), MOST_THREADS)
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    quota = _cgroup_value("cpu.max")
    if quota and quota[0] != "max":
        cores = min(cores, max(1, int(int(quota[0]) / int(quota[1]))))
    return cores


def default_cache_mb() -> int:
    """Half of the memory this process may use, at most 8 GB."""
    return max(1, min(LARGEST_DEFAULT_CACHE, usable_memory() // 2 // 1_000_000))


def usable_memory() -> int:
    """Bytes of memory this process may use: what the machine has, or its cgroup allows."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        total = 4 << 30
    limit = _cgroup_value("memory.max")
    if limit and limit[0] != "max":
        total = min(total, int(limit[0]))
    return total


def available_memory() -> int:
    """Bytes of memory that this process may use and no other one does. To refuse what would not
    fit, not to decide anything else by: it changes all the time."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            values = dict(line.split(":") for line in file)
        return min(usable_memory(), int(values["MemAvailable"].split()[0]) * 1024)
    except (OSError, KeyError):
        return usable_memory()


def _cgroup_value(name: str) -> list[str]:
    for path in (_own_cgroup(), "/sys/fs/cgroup"):
        try:
            with open(os.path.join(path, name), encoding="ascii") as file:
                return file.read().split()
        except OSError:
            continue
    return []


def _own_cgroup() -> str:
    try:
        with open("/proc/self/cgroup", encoding="ascii") as file:
            for line in file:
                if line.startswith("0::"):
                    return "/sys/fs/cgroup" + line[3:].strip()
    except OSError:
        pass
    return "/sys/fs/cgroup"
