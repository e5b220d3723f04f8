"""Round landmarks, so that a model file is short and rows of bytes meet bytes.

The features of training rows usually have few digits, and many are 0. Those of landmarks that moved
have all digits of float32. Each rounding here is a proposal: whether decision values stay the same
is measured by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows, Storage
from dcsvm.kernel.encodings import MAX_CODE
from dcsvm.kernel.kernels import Kernel

MIN_STEP = 2  # smallest spacing of rounded landmarks, see in_steps
MAX_DECIMALS = 7  # roundings to decimals that are tried: as many as float32 has digits


def roundings(
    kernel: Kernel, landmarks: Rows, moved: np.ndarray, width: float, *, are_for_bytes: bool
) -> Iterator[Rows]:
    """Yield dense landmarks with rounded features, the rounding that saves most first.

    Landmarks for rows of bytes are integers first. Then the features `moved` are rounded to
    decimals, from `width`, the length scale of features, to the precision of float32.
    """
    if are_for_bytes and kernel.type.is_of_distance:
        has_products = _core.is_from_products(kernel.type.argument)
        integers = in_steps(landmarks) if has_products else in_bytes(landmarks)
        if integers is not None:
            yield integers
    if width == 0 or len(moved) == 0:
        return
    vectors = landmarks.as_floats().features
    first = decimals_of(width)
    for decimals in range(first, first + MAX_DECIMALS):
        proposal = vectors.copy()
        proposal[:, moved] = rounded(vectors.take(moved, axis=1), decimals)
        yield as_dense(proposal)


def decimals_of(step: float) -> int:
    """Return the number of decimals of multiples of a power of ten that is at most `step`."""
    return math.ceil(-math.log10(step))


def rounded(values: np.ndarray, decimals: int) -> np.ndarray:
    """Round float32 values, without negative zeros."""
    return (np.round(values.astype(np.float64), decimals) + 0.0).astype(np.float32)


def shortest(values: np.ndarray) -> np.ndarray:
    """Round float64 values to float32, but to its shortest decimal numbers, float64.

    A model file has all digits of float64: 0.1 in float32 would be 0.10000000149011612.
    """
    texts = map(str, values.astype(np.float32).ravel())
    return np.array(list(map(float, texts)), np.float64).reshape(values.shape)


def in_steps(landmarks: Rows) -> Rows | None:
    """Round dense landmarks to multiples of an integer.

    Byte products of rounded landmarks and byte rows take a quarter of the time of float products.
    The integer is the smallest for which all values fit in a byte. Returns None if the core does
    not support it or there are no landmarks.
    """
    vectors = landmarks.as_floats().features
    lowest, highest = float(vectors.min(initial=0.0)), float(vectors.max(initial=0.0))
    step = max(math.ceil((highest - lowest) / (MAX_CODE - 1)), MIN_STEP)
    origin = step * math.floor(lowest / step)
    if landmarks.n_samples == 0 or not _core.may_step(landmarks.n_features, origin, step):
        return None
    return as_dense(np.float32(step) * np.rint(vectors / np.float32(step)))


def in_bytes(landmarks: Rows) -> Rows | None:
    """Round dense landmarks to integers from 0 to 255, which the core compares with rows of bytes.

    A feature beyond the range of rows adds the same distance to all: a factor of the kernel.
    Returns None if bytes do not suit the number of features, or there are no landmarks.
    """
    if landmarks.n_samples == 0 or not _core.suit_bytes(landmarks.n_features):
        return None
    values = np.clip(np.rint(landmarks.as_floats().features), 0, MAX_CODE)
    return as_dense(values).in_storage(Storage.BYTES)


def as_dense(values: np.ndarray) -> Rows:
    """Return float32 values (n, d) as rows."""
    return Rows(len(values), values.shape[1], dense=values)
