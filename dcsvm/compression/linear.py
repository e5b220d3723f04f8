"""Sums of vectors: with a linear kernel sum_i a_i x_i'x is (sum_i a_i x_i)'x, one vector."""

from __future__ import annotations

import numpy as np

from dcsvm.data.rows import Rows


def summed(rows: Rows, coefficients: np.ndarray) -> Rows:
    """Float32 rows (p, d) in the same form, sum_i coefficients[i, k] rows[i], of coefficients
    float64 (n, p)."""
    n_sums = coefficients.shape[1]
    if rows.is_dense:
        total = np.zeros((n_sums, rows.n_features))
        for some in rows.slices():
            total += coefficients[some].T @ rows.part(some).as_floats().dense
        return Rows(n_sums, rows.n_features, dense=total.astype(np.float32))
    columns, place = np.unique(rows.indices, return_inverse=True)
    row = np.repeat(np.arange(rows.n_samples), np.diff(rows.indptr))
    total = np.stack(
        [np.bincount(place, one[row] * rows.values, len(columns)) for one in coefficients.T]
    ).astype(np.float32)
    owner, at = np.nonzero(total)
    return Rows(
        n_sums,
        rows.n_features,
        indptr=np.searchsorted(owner, np.arange(n_sums + 1)).astype(np.int64),
        indices=columns[at].astype(np.int32),
        values=total[owner, at],
    )
