"""Describe the machine of the measurements, for the table's head and the JSON file."""

import os
import platform
import subprocess
from pathlib import Path

import numpy as np


def describe(dcsvm_train: str) -> dict:
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "load_average": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "dcsvm": first_line([dcsvm_train, "--version"]),
        "libsvm-tools": first_line(["dpkg-query", "-W", "-f", "${Version}", "libsvm-tools"]),
    }


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def first_line(command: list[str]) -> str | None:
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return finished.stdout.strip().split("\n")[0]
