"""The verification bound: the shortest time of an exact solver that checks every row once."""

import time

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel

MAX_ROWS = 4096  # measured in one product; the time is scaled to all rows
MAX_SUPPORT_ROWS = 4096
MEASURED_SECONDS = 1.0  # of repeated products: each takes milliseconds, and speeds vary


def verification_seconds(
    rows: np.ndarray, support_rows: np.ndarray, gamma: float, threads: int
) -> float:
    """Measure our kernel product; return seconds for rows x support_rows kernel evaluations.

    Both arrays are float32 and C-contiguous with the same number of columns.
    """
    some, support = rows[:MAX_ROWS], support_rows[:MAX_SUPPORT_ROWS]
    both = Rows.from_array(np.concatenate((some, support)))
    data = KernelRows(both, Kernel("rbf", gamma), threads, coded=True)  # as in training
    targets = np.arange(len(some), dtype=np.int32)
    sources = np.arange(len(some), both.n_samples, dtype=np.int32)
    weights = np.ones(len(support))
    seconds = []
    while sum(seconds) < MEASURED_SECONDS:
        start = time.perf_counter()
        data.product(weights, sources, target_rows=targets)
        seconds.append(time.perf_counter() - start)
    measured = len(some) * len(support)
    return float(np.median(seconds)) * len(rows) * len(support_rows) / max(measured, 1)
