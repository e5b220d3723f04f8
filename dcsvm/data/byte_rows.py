"""Dense rows of integers from 0 to 255, held as bytes.

They are uint8 (n, d), a view of an array whose rows have zeros behind the features, up to a
multiple of 4 columns: tiles take four bytes at once.
"""

from __future__ import annotations

import numpy as np

from dcsvm import _core

WORD = 4  # bytes


def suit_bytes(n_features: int) -> bool:
    """Whether rows of so many features are held as bytes where their values allow it."""
    return _core.suit_bytes(n_features)


def zero_bytes(n_samples: int, n_features: int, zeros=np.zeros) -> np.ndarray:
    """Rows of zeros, of an array that `zeros` makes."""
    return zeros((n_samples, _row_size(n_features)), np.uint8)[:, :n_features]


def with_ends(rows: np.ndarray) -> np.ndarray:
    """The same memory with what is behind the features, C-contiguous. Raises ValueError for bytes
    that are not such rows."""
    n_samples, n_features = rows.shape
    shape = n_samples, _row_size(n_features)
    if n_samples and rows.strides != (shape[1], 1):
        raise ValueError("rows of bytes do not begin at multiples of 4 bytes")
    return np.lib.stride_tricks.as_strided(
        rows, shape, (shape[1], 1), writeable=rows.flags.writeable
    )


def as_byte_rows(values: np.ndarray) -> np.ndarray:
    """uint8 or bool (n, d) as such rows; the same memory where there is nothing to add."""
    values = values.view(np.uint8)
    if values.strides == (_row_size(values.shape[1]), 1) and values.shape[1] % WORD == 0:
        return values
    rows = zero_bytes(*values.shape)
    rows[:] = values
    return rows


def _row_size(n_features: int) -> int:
    return -(-n_features // WORD) * WORD
