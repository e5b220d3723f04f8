"""How many threads a fit may use beside others: what OMP_NUM_THREADS, threadpoolctl and joblib
leave this process, shared among the fits and predictions that are at work in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.small_work import threads_that_pay
from dcsvm.machine import default_threads, is_forked, usable_threads

_lock = threading.Lock()
_at_work = 0


@contextmanager
def threads_for(wanted: int | None, rows: Rows, n_others: int) -> Iterator[int]:
    """The number of threads for the kernel values of rows with others: what is wanted, else a share
    of those there are, where so many pay."""
    global _at_work
    with _lock:
        _at_work += 1
        share = _at_work
    try:
        if is_forked():
            yield 1
        elif wanted is not None:
            yield usable_threads(wanted)
        else:
            there = min(default_threads(), _core.allowed_threads())
            yield threads_that_pay(max(1, there // share), rows, n_others)
    finally:
        with _lock:
            _at_work -= 1
