"""Two classes of overlapping Gaussians, like tables of physics.

The best classifier is quadratic and has an error rate of 30.2 %.
"""

from collections.abc import Iterator

import numpy as np

N_FEATURES = 18
SHIFT = 0.15  # mean of +1 minus mean of -1, in each feature
RATIO = 1.15  # deviation of +1 over deviation of -1 in every second feature, inverse in others
BATCH_SIZE = 100_000


def gaussians(n_rows: int, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batches of rows (m, N_FEATURES) and labels +1 and -1 (m,)."""
    rng = np.random.default_rng(seed)
    deviation = np.where(np.arange(N_FEATURES) % 2 == 0, RATIO, 1 / RATIO)
    for begin in range(0, n_rows, BATCH_SIZE):
        X = rng.normal(size=(min(BATCH_SIZE, n_rows - begin), N_FEATURES))
        y = np.where(rng.random(len(X)) < 0.5, 1.0, -1.0)
        yield np.where(y[:, None] > 0, X * deviation + SHIFT, X), y
