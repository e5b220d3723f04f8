"""How large what tasks take and return is."""

from __future__ import annotations

import numpy as np


def nbytes_of(value) -> int:
    """Bytes of the arrays in a value."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(nbytes_of(one) for one in value)
    if hasattr(value, "__dataclass_fields__"):
        return sum(nbytes_of(getattr(value, name)) for name in value.__dataclass_fields__)
    return 0
