"""Deformed digits: any number of MNIST's images with random displacements and shifts.

The displacements are smooth, the shifts at most one pixel. Loosli, Canu and Bottou, "Training
Invariant Support Vector Machines using Selective Sampling" (2007), made mnist8m in this way.
"""

from collections.abc import Iterator

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.sparse import csr_array

SIDE = 28
SMOOTH = 4.0  # pixels: width of the Gaussian that smooths displacements
LARGEST = 2.2  # pixels: largest displacement of a field
BATCH_SIZE = 512  # images with the same field


def deformed(images: np.ndarray, n: int, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batches of n deformed images from images uint8 (m, SIDE^2).

    A batch is (index of the original of each image, pixels uint8). Each original is used equally
    often.
    """
    rng = np.random.default_rng(seed)
    order = np.empty(0, np.int64)
    pixels = np.ascontiguousarray(images.T, dtype=np.float32)
    for begin in range(0, n, BATCH_SIZE):
        n_now = min(BATCH_SIZE, n - begin)
        while len(order) < n_now:
            order = np.concatenate([order, rng.permutation(len(images))])
        chosen, order = order[:n_now], order[n_now:]
        moved = _interpolation(_displacement(rng)) @ np.ascontiguousarray(pixels[:, chosen])
        yield chosen, np.ascontiguousarray(np.rint(moved).astype(np.uint8).T)


def _displacement(rng: np.random.Generator) -> np.ndarray:
    """Draw a smooth field (2, SIDE, SIDE) of at most LARGEST pixels plus a shift of up to one."""
    noise = rng.standard_normal((2, SIDE, SIDE))
    field = np.stack([gaussian_filter(one, SMOOTH, mode="constant") for one in noise])
    field *= rng.uniform(0.5, 1.0) * LARGEST / np.abs(field).max()
    return field + rng.integers(-1, 2, (2, 1, 1))


def _interpolation(field: np.ndarray) -> csr_array:
    """Return the matrix (SIDE^2, SIDE^2) of a bilinear displacement; pixels outside count as 0."""
    at = np.indices((SIDE, SIDE)) + field
    low = np.floor(at).astype(int)
    part = at - low
    rows, columns, values = [], [], []
    for down in (0, 1):
        for right in (0, 1):
            y, x = low[0] + down, low[1] + right
            weight = np.abs(1 - down - part[0]) * np.abs(1 - right - part[1])
            inside = (y >= 0) & (y < SIDE) & (x >= 0) & (x < SIDE) & (weight > 0)
            rows.append(np.flatnonzero(inside))
            columns.append((y * SIDE + x)[inside])
            values.append(weight[inside].astype(np.float32))
    places = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.concatenate(values), places), shape=(SIDE**2, SIDE**2))
