"""Work that is too small for several threads: what they save is less than what it takes to wake
them, and between two loops they spin, which keeps cores busy that others could use.
"""

from __future__ import annotations

from dcsvm.data.rows import Rows
from dcsvm.machine import default_threads, usable_threads

# Features of pairs of rows: some 15 ms of kernel values on one core. Fits of half to twice that
# took with two threads 1.1 to 4 times the time of one, and 1.2 to 4 times its processor time.
SMALL_WORK = 5e8
# By the model of csrc/kernel/kernel_setup.cc: a kernel value, a byte and a value of a CSR row, in
# features that are floats.
VALUE_WORK, BYTE_WORK, SPARSE_WORK = 11, 0.07, 5.5


def threads_to_train(wanted: int | None, rows: Rows) -> int:
    """The threads to train on rows with: those that are wanted, else as many as pay."""
    if wanted is not None:
        return usable_threads(wanted)
    return threads_that_pay(default_threads(), rows, rows.n_samples)


def threads_that_pay(threads: int, rows: Rows, n_others: int) -> int:
    """So many threads for the kernel values of rows with others; one where these are few."""
    work = float(rows.n_samples) * n_others * (VALUE_WORK + _features(rows))
    return threads if work > SMALL_WORK else 1


def _features(rows: Rows) -> float:
    if rows.is_bytes:
        return BYTE_WORK * rows.n_features
    return rows.row_size if rows.is_dense else SPARSE_WORK * rows.row_size
