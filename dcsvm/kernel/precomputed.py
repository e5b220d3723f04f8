"""Kernel matrices that were computed beforehand, checked before training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel

ASYMMETRY = 1e-3  # of the largest value: what rounding may leave, of long sums in float32
INDEFINITENESS = 1e-4  # relative: above it two rows cannot have such a kernel value
BLOCK = 1024  # rows compared with as many others


def training_matrix(rows: Rows, kernel: Kernel, threads: int) -> tuple[Rows, Kernel]:
    """Rows to train on with a precomputed kernel, and the kernel as the matrix shows it to be.

    Rows without `columns` are those of a square matrix. Two values that differ by rounding become
    their mean, in a copy. The kernel is indefinite where the matrix
    of two rows is: K(x, z)^2 > K(x, x) K(z, z), or a negative K(x, x); one that is only seen with
    more rows is not detected. Raises ValueError for a matrix that is not square or not symmetric.
    """
    rows = of_square(rows, threads)
    diagonal = rows.dense[np.arange(rows.n_samples), rows.columns].astype(np.float64)
    indefinite = bool(np.any(diagonal < 0))
    size, is_own = np.sqrt(np.abs(diagonal)), False
    for first in range(0, rows.n_samples, BLOCK):
        for second in range(0, first + 1, BLOCK):
            a, b = slice(first, first + BLOCK), slice(second, second + BLOCK)
            values, other = _both_blocks(rows, a, b, size.max() ** 2)
            if not np.array_equal(values, other):
                values = (values + other) / 2
                if not is_own:
                    rows, is_own = replace(rows, dense=rows.dense.copy()), True
                rows.dense[a, rows.columns[b]] = values
                rows.dense[b, rows.columns[a]] = values.T
            most = (1 + INDEFINITENESS) * size[first : first + BLOCK, None]
            indefinite |= bool(np.any(np.abs(values) > most * size[second : second + BLOCK]))
    return rows, replace(kernel, indefinite=indefinite)


def of_square(rows: Rows, threads: int) -> Rows:
    """Rows of a precomputed kernel; those without `columns` are all of a square matrix. Raises
    ValueError for another one."""
    if rows.columns is not None:
        return rows
    if rows.n_samples != rows.n_features:
        shape = f"{rows.n_samples} rows and {rows.n_features} columns"
        raise ValueError(f"a precomputed kernel needs a square matrix, not {shape}")
    dense = rows.in_form_of(Rows(0, rows.n_features), threads).as_floats()
    return replace(dense, columns=np.arange(rows.n_features, dtype=np.int32))


def _both_blocks(rows: Rows, a: slice, b: slice, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernel values of the rows `a` with the rows `b`, and those of `b` with `a`,
    transposed; `largest` is the largest value on the diagonal. Raises ValueError for values that
    are not symmetric."""
    values = rows.dense[a].take(rows.columns[b], axis=1)
    other = rows.dense[b].take(rows.columns[a], axis=1).T
    difference = np.abs(values - other)
    if difference.max() > ASYMMETRY * max(largest, np.abs(values).max()):
        i, j = np.unravel_index(difference.argmax(), difference.shape)
        raise ValueError(
            f"the kernel matrix is not symmetric: row {a.start + i + 1} has {values[i, j]:g} with "
            f"row {b.start + j + 1}, which has {other[i, j]:g} with it"
        )
    return values, other
