"""The verification bound: what no exact solver that looks at every row once can go below."""

import time

import numpy as np
from cases import Kernel

MOST_ROWS = 4096  # measured at once; the rest follows in proportion
MOST_SUPPORT_ROWS = 4096


def verification_seconds(
    rows: np.ndarray, support_rows: np.ndarray, kernel: Kernel, threads: int
) -> float | None:
    """Seconds for rows x support_rows kernel evaluations at our kernel product's measured speed.

    Both are float32 and C-contiguous with the same number of columns. None: no dcsvm to import.
    """
    try:
        from dcsvm import _core
        from dcsvm.data.rows import Rows
        from dcsvm.kernel import kernels
        from dcsvm.kernel.kernel_rows import KernelRows
    except ImportError:
        return None
    ours = kernels.Kernel(kernels.NAMES[kernel.type], kernel.gamma, kernel.coef0, kernel.degree)
    some, support = rows[:MOST_ROWS], support_rows[:MOST_SUPPORT_ROWS]
    both = Rows.from_array(np.concatenate((some, support)))
    data = KernelRows(both, ours, threads, coded=True)  # as in training
    targets = np.arange(len(some), dtype=np.int32)
    sources = np.arange(len(some), both.n_samples, dtype=np.int32)
    weights = np.ones(len(support))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        _core.kernel_product(
            data.setup, data.points, targets, data.points, sources, weights, False, threads
        )
        seconds.append(time.perf_counter() - start)
    measured = len(some) * len(support)
    return float(np.median(seconds)) * len(rows) * len(support_rows) / max(measured, 1)
