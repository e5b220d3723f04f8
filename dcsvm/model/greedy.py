"""Choose some support vectors of a model that represent the others.

Each step takes the vector that reduces the error most, in the feature space of the kernel and with
the best coefficients (f/P-greedy: Müller and Schaback, "A Newton basis for kernel spaces", Journal
of Approximation Theory 161, 2009; for several functions Wirtz and Haasdonk, "A vectorial kernel
orthogonal greedy algorithm", Dolomites Research Notes on Approximation 6, 2013). The Newton basis
is a pivoted Cholesky factor of the kernel matrix.
"""

from __future__ import annotations

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.landmarks import (
    SHARPNESS,
    Fit,
    FitOptions,
    FitTarget,
    normal_equations,
    sampled_for,
    solved,
)

MAX_BASIS = 2**25  # values of the basis: 256 MB
FAR_WEIGHT = 0.05  # weight of rows with large decision values, whose sign is sure
RIDGE = 1e-4  # of the error in the feature space; 1e-6 and 1e-2 are as good on phoneme
ROUNDED = 1e-6  # relative to K(x, x): rounding of kernel values
SMALLEST = 1e-6  # squared distance of a vector from the span of the others that counts as none


def can_choose(kernel: Kernel, n_vectors: int, n: int) -> bool:
    """Return whether n of n_vectors can be chosen for a kernel, in the memory of MAX_BASIS."""
    return kernel.type.is_of_distance and 0 < n <= n_vectors <= MAX_BASIS // n


def greedy(kernel: Kernel, rows: Rows, sums: np.ndarray, n: int) -> np.ndarray:
    """Choose at most n of the rows (N, d), by the kernel sums (N, p) that they shall represent.

    Returns indices in the order in which they were chosen, int64. The kernel must be 1 for equal
    rows. The work is that of N n^2 / 2 products.
    """
    n_rows = rows.n_samples
    encoded = KernelRows(rows, kernel, 1)
    basis = np.empty((n, n_rows))
    # of each row: the squared distance from the span of those that were chosen, and the error
    power, error = np.ones(n_rows), np.array(sums, np.float64)
    chosen: list[int] = []
    while len(chosen) < n:
        gain = np.where(power > SMALLEST, (error**2).sum(axis=1), 0) / np.maximum(power, SMALLEST)
        best = int(np.argmax(gain))
        if gain[best] == 0:  # the others are in the span
            break
        known, length = basis[: len(chosen)], np.sqrt(power[best])
        column = encoded.matrix(target_rows=np.array([best], np.int32))[0]
        new = basis[len(chosen)]
        new[:] = (column - known[:, best] @ known) / length
        error -= new[:, None] * (error[best] / length)
        power -= new**2
        power[best] = 0
        chosen.append(best)
    return np.array(chosen, np.int64)


def kept(
    kernel: Kernel,
    target: FitTarget,
    chosen: Rows,
    sums: np.ndarray,
    used: np.ndarray,
    options: FitOptions,
) -> Fit:
    """Fit the coefficients of support vectors that stay where they are, and the offset.

    `sums` float64 (m, p) are the kernel sums at the chosen support vectors, divided by the scale of
    the target. The loss is the squared error on a random sample of the rows, most of it near the
    decision boundary, and the error in the feature space of the kernel, |f - g|^2 = c'K c - 2 c'f
    and a constant, for the coefficients c of g.
    """
    target = sampled_for(target, chosen.n_samples, np.random.default_rng(options.seed))
    values = target.values.astype(np.float64)
    weights = np.ones(len(values))
    if target.by_sign:
        own = np.where(target.weights == 1, np.abs(values), np.inf)
        weights = FAR_WEIGHT + np.exp(-SHARPNESS * own.min(axis=1, initial=np.inf))
    gram, products = normal_equations(kernel, target.rows, chosen, values, weights)
    m = chosen.n_samples
    ridge = RIDGE * np.trace(gram) / (m + 1)
    gram[:m, :m] += ridge * KernelRows(chosen, kernel, 1).matrix()
    products[:m] += ridge * sums
    gram[np.diag_indices(m)] += ridge * ROUNDED
    return chosen, *solved(gram, products, used)
