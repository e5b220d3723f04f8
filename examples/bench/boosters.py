"""Random settings of LightGBM for the benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np


def random_settings(rng: np.random.Generator, max_log2_leaves: int) -> dict[str, Any]:
    """Draw the settings of a model of LightGBM."""
    return {
        "num_leaves": int(2 ** rng.uniform(2, max_log2_leaves)),
        "learning_rate": 10 ** rng.uniform(-2, -0.5),
        "min_child_samples": int(2 ** rng.uniform(1, 6)),
        "subsample": rng.uniform(0.5, 1), "subsample_freq": 1,
        "colsample_bytree": rng.uniform(0.3, 1),
        "reg_lambda": 10 ** rng.uniform(-3, 1),
    }  # fmt: skip
