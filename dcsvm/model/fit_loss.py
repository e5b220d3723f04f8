"""Compare fits of landmarks on new rows.

Fits are too close to the rows of their target: landmarks that move follow these rows, and training
rows are few within the margin, where labels change easily.
"""

from __future__ import annotations

import numpy as np

from dcsvm.data.rows import BATCH_SIZE, Rows
from dcsvm.kernel.kernel_rows import two_sides
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.landmarks import Fit, FitTarget
from dcsvm.model.rounding import as_dense

# Rows on which fits are compared, at most, and rows among which their neighbours are.
MAX_COMPARED, MAX_NEIGHBOURS = 2000, 2**13


def between(kernel: Kernel, target: FitTarget, rng: np.random.Generator) -> Rows:
    """Return new rows near those of a target: on the lines through a row and its neighbour.

    The neighbour is the row with the largest kernel value of some that are not equal. Features that
    landmarks may not change are those of the row.
    """
    rows = target.rows
    n = rows.n_samples
    chosen = target.starts(MAX_COMPARED, rng)
    others = np.sort(rng.choice(n, min(n, MAX_NEIGHBOURS), replace=False))
    sides = two_sides(rows.take(chosen), rows.take(others), kernel, 1)
    nearest = np.empty(len(chosen), np.int64)
    size = max(BATCH_SIZE // len(others), 1)
    for begin in range(0, len(chosen), size):
        batch = np.arange(begin, min(begin + size, len(chosen)), dtype=np.int32)
        values = sides[1].matrix(targets=sides[0], target_rows=batch)
        values[others == chosen[batch, None]] = -np.inf
        nearest[batch] = others[values.argmax(axis=1)]
    own, other = (rows.take(one).as_floats().features for one in (chosen, nearest))
    new = own.copy()
    steps = rng.normal(size=(len(chosen), 1)).astype(np.float32)
    new[:, target.moved] += steps * (other - own)[:, target.moved]
    return as_dense(new)


def loss_of(kernel: Kernel, target: FitTarget, fit: Fit) -> float:
    """Return how much the mean loss of a fit exceeds that of the model, on the rows of a target.

    It is inf if values are not finite.
    """
    vectors, coefficients, offset = fit
    targets, sources = two_sides(target.rows, vectors, kernel, 1)
    n = len(target.values)
    total = -target.losses(target.values, np.arange(n))
    size = max(BATCH_SIZE // max(vectors.n_samples, 1), 1)
    for begin in range(0, n, size):
        batch = np.arange(begin, min(begin + size, n), dtype=np.int32)
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = sources.matrix(targets=targets, target_rows=batch) @ coefficients + offset
        total += target.losses(outputs.astype(np.float32), batch)
    return total / max(n, 1) if np.isfinite(total) else np.inf
