"""Kernel values of float32 rows with vectors that move, and how they change with these.

All kernels but the precomputed one. Written in NumPy: the vectors are others at every step, so that
nothing prepared of them could be used again, and the derivative is wanted as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.kernel.kernels import Kernel


@dataclass(frozen=True)
class Slopes:
    """Derivatives of a kernel. With s = x'z and |x|, |z| fixed, dK/ds is `factor` times what
    `values` returns beside K; an rbf kernel depends on |z|, too."""

    kernel: Kernel

    @property
    def factor(self) -> float:
        kernel = self.kernel
        return {
            "linear": 1.0,
            "polynomial": kernel.degree * kernel.gamma,
            "rbf": 2.0 * kernel.gamma,
            "sigmoid": kernel.gamma,
        }[kernel.name]

    def values(self, rows: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """K(rows, vectors) and its slopes less the factor, float32 (n, m)."""
        kernel, product = self.kernel, rows @ vectors.T
        if kernel.name == "linear":
            return product, np.ones_like(product)
        if kernel.name == "rbf":
            return (values := _rbf(product, rows, vectors, kernel.gamma)), values
        product = np.float32(kernel.gamma) * product + np.float32(kernel.coef0)
        if kernel.name == "sigmoid":
            values = np.tanh(product)
            return values, 1 - values**2
        return product**kernel.degree, product ** max(kernel.degree - 1, 0)

    def gradient(self, pulls: np.ndarray, rows: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """sum_i pulls_ij dK_ij/dz_j, float32 (m, d); `pulls` (n, m) are times the slopes."""
        gradient = pulls.T @ rows
        if self.kernel.name == "rbf":
            gradient -= pulls.sum(axis=0)[:, None] * vectors
        return np.float32(self.factor) * gradient


def _rbf(product: np.ndarray, rows: np.ndarray, vectors: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma |x - z|^2), in the memory of the products."""
    product *= np.float32(-2)
    product += np.einsum("ij,ij->i", rows, rows)[:, None]
    product += np.einsum("ij,ij->i", vectors, vectors)
    np.maximum(product, 0, out=product)
    product *= np.float32(-gamma)
    return np.exp(product, out=product)
