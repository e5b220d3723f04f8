"""Measure the memory that a piece of work adds to this process: its peak above the start value.

Linux can reset the peak of a process; on other systems memory is not measured.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

FORGET_PEAK = "5"  # proc(5): sets VmHWM back to VmRSS

Result = TypeVar("Result")


def measured(work: Callable[[], Result]) -> tuple[Result, float | None]:
    """Return the result of `work()` and the MB that it added; None if they cannot be measured."""
    before = forget_peak()
    result = work()
    return result, None if before is None else max(status("VmHWM") - before, 0.0)


def forget_peak() -> float | None:
    """Reset the peak of this process and return its MB now."""
    with contextlib.suppress(AttributeError, OSError):  # else reused memory does not count
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text(FORGET_PEAK)
        return status("VmRSS")
    except OSError:
        return None


def status(name: str) -> float:
    """Return the value of a line of /proc/self/status, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024
