"""Weights of rows as they were given: how many copies of itself each row counts as.

A row of weight 0 is left out. What weights do to a problem is in formulation.py.
"""

from __future__ import annotations

import numpy as np


def checked_weights(sample_weight, n_rows: int) -> np.ndarray:
    """The weights float64 (n_rows,), ones for None; ValueError for what cannot be weights."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        shape = " x ".join(map(str, weights.shape)) or "1 number"
        raise ValueError(f"sample weights must be one for each of {n_rows} rows, not {shape}")
    for wrong, reason in ((~np.isfinite(weights), "finite numbers"), (weights < 0, "at least 0")):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"sample weights must be {reason}, not {weights[row]:g} (row {row})")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not 0 < total < float("inf"):
        raise ValueError(
            f"the sum of the sample weights must be positive and finite, not {total:g}"
        )
    return weights
