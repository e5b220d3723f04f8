"""FastFood: random Fourier features of the rbf kernel in O(log d) operations for a feature.

Le, Sarlos and Smola, "Fastfood: Approximating Kernel Expansions in Loglinear Time" (ICML 2013).
"""

from __future__ import annotations

import numpy as np

VALUES_AT_A_TIME = 1 << 17  # of the transform: two arrays of them stay in a processor's cache


class FastFood:
    """The feature map (n, d) -> (n, 2 count): cos and sin of `count` frequencies, float32.

    Frequencies are the rows of blocks V = S H G P H B / (sigma sqrt(d)), where d is the number of
    columns rounded up to a power of two and gamma = 1 / (2 sigma^2). H is the Walsh-Hadamard
    matrix, B has random signs, P is a random permutation, G is Gaussian, and S gives the rows
    lengths as those of Gaussian vectors. Cos and sin are the real features that stand for the
    authors' exp(i V x) / sqrt(count).
    """

    def __init__(self, n_features: int, count: int, gamma: float, seed: int):
        rng = np.random.default_rng(seed)
        size = 1 << max(n_features - 1, 1).bit_length()
        n_blocks = -(-count // size)
        self.count = count
        self.signs, self.gauss, self.lengths = np.empty((3, n_blocks, size, 1), np.float32)
        self.order = np.empty((n_blocks, size), np.int64)
        for block in range(n_blocks):
            self.signs[block, :, 0] = rng.choice((-1.0, 1.0), size)
            gauss = rng.standard_normal(size)
            lengths = np.sqrt(rng.chisquare(size, size)) / np.linalg.norm(gauss)
            self.gauss[block, :, 0] = gauss
            self.lengths[block, :, 0] = lengths * np.sqrt(2 * gamma / size)
            self.order[block] = block * size + rng.permutation(size)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the features (n, 2 count) of float32 rows (n, d)."""
        features = np.empty((len(rows), 2 * self.count), np.float32)
        scale = np.float32(1 / np.sqrt(self.count))
        step = max(1, VALUES_AT_A_TIME // self.signs.size)
        for start in range(0, len(rows), step):
            angles = self.angles(rows[start : start + step])
            some = features[start : start + step]
            some[:, : self.count] = (scale * np.cos(angles)).T
            some[:, self.count :] = (scale * np.sin(angles)).T
        return features

    def angles(self, rows: np.ndarray) -> np.ndarray:
        """Return V x for rows x (n, d), one column each (count, n)."""
        n_blocks, size, _ = self.signs.shape
        n_rows, n_features = rows.shape
        values = np.zeros((n_blocks, size, n_rows), np.float32)
        np.multiply(rows.T, self.signs[:, :n_features], out=values[:, :n_features])
        spare = np.empty_like(values)
        mixed, spare = walsh_hadamard(values, spare)
        np.take(mixed.reshape(-1, n_rows), self.order, axis=0, out=spare, mode="clip")
        spare *= self.gauss
        product, _ = walsh_hadamard(spare, mixed)
        product *= self.lengths
        return product.reshape(-1, n_rows)[: self.count]


def walsh_hadamard(values: np.ndarray, spare: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Multiply by the Walsh-Hadamard matrix along axis 1 of (blocks, size, n).

    Both arrays are overwritten. Returns the one with the result, and the other.
    """
    _, size, n_rows = values.shape
    half = 1
    while half < size:
        old, new = (a.reshape(-1, 2, half * n_rows) for a in (values, spare))
        np.add(old[:, 0], old[:, 1], out=new[:, 0])
        np.subtract(old[:, 0], old[:, 1], out=new[:, 1])
        values, spare = spare, values
        half *= 2
    return values, spare
