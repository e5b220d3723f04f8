"""Choose threads in a process where other fits and predictions may be in progress."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import threads_that_pay
from dcsvm.machine import default_threads, is_forked, usable_threads

_lock = threading.Lock()
_n_active = 0  # fits and predictions in progress


@contextmanager
def shared_threads(wanted: int | None, rows: Rows, n_others: int) -> Iterator[int]:
    """Choose the number of threads to evaluate the kernel of `rows` with `n_others` rows.

    The default is the limit set by OMP_NUM_THREADS, threadpoolctl and joblib. It is divided among
    the active fits and predictions of this process. Small work and forked processes use 1 thread.
    """
    global _n_active
    with _lock:
        _n_active += 1
        n_shares = _n_active
    try:
        if is_forked():
            yield 1
        elif wanted is not None:
            yield usable_threads(wanted)
        else:
            limit = min(default_threads(), _core.allowed_threads())
            yield threads_that_pay(max(1, limit // n_shares), rows, n_others)
    finally:
        with _lock:
            _n_active -= 1
