"""A rotated 6 by 6 checkerboard: two features are a position, the colour of its field is the label.

Two more features are noise.
"""

import numpy as np

FIELDS = 6  # per side of the board
ANGLE = np.pi / 6
USELESS = 2  # features of noise


def checkerboard(n_rows: int, noise: float, rng: np.random.Generator):
    """Return rows in [-1, 1] (n, 2 + USELESS) and labels +1 and -1 (n,).

    The share `noise` of the labels is wrong.
    """
    X = rng.uniform(-1, 1, (n_rows, 2 + USELESS))
    turn = np.array([[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]])
    fields = np.floor(X[:, :2] @ turn * FIELDS / 2)
    y = np.where(fields.sum(axis=1) % 2 == 0, 1, -1)
    X[:, 2:] *= 0.1
    return X, np.where(rng.uniform(size=n_rows) < noise, -y, y)
