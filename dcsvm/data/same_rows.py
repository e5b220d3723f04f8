"""Whether rows are among others, by a number of 64 bits for each row."""

from __future__ import annotations

import numpy as np

from dcsvm.data.rows import Rows


def part_among(rows: Rows, others: Rows) -> float:
    """The part of the rows that others have, too; two rows in 2^64 are taken for equal that are
    not."""
    if rows.n_samples == 0:
        return 0.0
    n_features = max(rows.n_features, others.n_features)
    weights = np.random.default_rng(0).integers(2**63, size=n_features, dtype=np.uint64)
    return float(np.isin(_keys(rows, weights), _keys(others, weights)).mean())


def _keys(rows: Rows, weights: np.ndarray) -> np.ndarray:
    """Sums of the bits of the values times the weights of their features, modulo 2^64."""
    keys = np.empty(rows.n_samples, np.uint64)
    for some in rows.slices():
        part = rows.part(some).as_floats()
        if part.is_dense:
            # + 0.0: that of -0.0 is 0.0
            bits = (part.dense + np.float32(0)).view(np.uint32).astype(np.uint64)
            keys[some] = (bits * weights[: part.n_features]).sum(axis=1)
            continue
        bits = part.values.view(np.uint32).astype(np.uint64) * weights[part.indices]
        totals = np.concatenate((np.zeros(1, np.uint64), np.cumsum(bits)))
        keys[some] = np.diff(totals[part.indptr])
    return keys
