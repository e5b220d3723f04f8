"""How many threads a fit may use beside others: what OMP_NUM_THREADS, threadpoolctl and joblib
leave this process, shared among the fits and predictions that are at work in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dcsvm import _core
from dcsvm.machine import default_threads, is_forked

_lock = threading.Lock()
_at_work = 0


@contextmanager
def threads_for(wanted: int | None) -> Iterator[int]:
    """The number of threads: what is wanted, else a share of those there are."""
    global _at_work
    with _lock:
        _at_work += 1
        share = _at_work
    try:
        there = min(default_threads(), _core.allowed_threads())
        yield 1 if is_forked() else wanted or max(1, there // share)
    finally:
        with _lock:
            _at_work -= 1
