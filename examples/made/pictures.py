"""Generated pictures that replace CIFAR-10: 50,000 pictures of 32 x 32 pixels in three colours.

Each has a smooth random background and a blob. The colour and the position of the blob together
give the class, so that no linear boundary separates the classes.
"""

from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

N_ROWS, N_TEST_ROWS, SIDE = 50_000, 10_000, 32
WRONG = 0.05  # share of the labels
BATCH_SIZE = 1000


def pictures(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return pixels uint8 (n, 3 SIDE^2), colour by colour, and labels +1 and -1 (n,)."""
    rng = np.random.default_rng(seed)
    X, y = np.empty((n_rows, 3 * SIDE**2), np.uint8), np.empty(n_rows)
    grid = np.arange(SIDE)
    for begin in range(0, n_rows, BATCH_SIZE):
        own = slice(begin, min(begin + BATCH_SIZE, n_rows))
        n = own.stop - begin
        noise = rng.standard_normal((n, 3, SIDE, SIDE))
        back = gaussian_filter(noise, (0, 0, 3, 3)) * 300 + 110 + rng.normal(0, 25, (n, 3, 1, 1))
        place, colour = rng.uniform(4, 28, (n, 2)), rng.normal(0, 70, (n, 3))
        distance = (grid[:, None] - place[:, :1, None]) ** 2 + (grid - place[:, 1:, None]) ** 2
        blob = np.exp(-distance / (2 * rng.uniform(5, 9, (n, 1, 1)) ** 2))
        back += colour[:, :, None, None] * blob[:, None]
        X[own] = np.clip(back + rng.normal(0, 6, back.shape), 0, 255).reshape(n, -1)
        is_warm, is_left = colour[:, 0] > colour[:, 2], place[:, 1] < SIDE / 2
        is_positive = is_warm ^ is_left ^ (rng.random(n) < WRONG)
        y[own] = np.where(is_positive, 1.0, -1.0)
    return X, y


def pictures_of(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read PNG images, in a folder per class, as pixels and labels like those from pictures().

    The first half of the classes, by name, is +1. Larger images are cropped to their middle.
    """
    from matplotlib.image import imread

    files = sorted(folder.glob("*/*.png"))
    classes = sorted({file.parent.name for file in files})
    if len(classes) < 2:
        raise ValueError(f"{folder}: no PNG images in folders of two classes or more")
    X, y = np.empty((len(files), 3 * SIDE**2), np.uint8), np.empty(len(files))
    for k, file in enumerate(files):
        image = np.atleast_3d(imread(file))[..., :3]
        image = np.broadcast_to(image, (*image.shape[:2], 3))
        down, right = ((size - SIDE) // 2 for size in image.shape[:2])
        if min(down, right) < 0:
            raise ValueError(f"{file}: smaller than {SIDE} x {SIDE} pixels")
        middle = image[down : down + SIDE, right : right + SIDE]
        scale = 255.0 if middle.dtype.kind == "f" else 1.0
        X[k] = np.rint(middle * scale).astype(np.uint8).transpose(2, 0, 1).reshape(-1)
        y[k] = 1.0 if classes.index(file.parent.name) < len(classes) / 2 else -1.0
    return X, y
