"""Landmarks of rows of bytes as evenly spaced integers: these meet rows of bytes by products of
bytes (dcsvm/kernel/sources.py), in a quarter of the time of floats."""

from __future__ import annotations

import math

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.lattice import LARGEST

SMALLEST_STEP = 2


def in_steps(landmarks: Rows) -> Rows | None:
    """Dense rows with the nearest multiples of one integer, the smallest with which these are few
    enough; None where rows of bytes could not meet them, or for none."""
    vectors = landmarks.as_floats().dense
    lowest, highest = float(vectors.min(initial=0.0)), float(vectors.max(initial=0.0))
    step = max(math.ceil((highest - lowest) / (LARGEST - 1)), SMALLEST_STEP)
    origin = step * math.floor(lowest / step)
    if landmarks.n_samples == 0 or not _core.may_step(landmarks.n_features, origin, step):
        return None
    return Rows(*vectors.shape, dense=np.float32(step) * np.rint(vectors / np.float32(step)))
