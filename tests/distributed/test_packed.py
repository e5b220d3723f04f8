"""What is packed comes back bit for bit."""

import numpy as np
import pytest

pytest.importorskip("distributed")

from dcsvm.distributed.packed import (  # noqa: E402
    Packed,
    packed,
    packed_iterate,
    unpacked,
    unpacked_iterate,
)
from dcsvm.distributed.sizes import nbytes_of  # noqa: E402
from dcsvm.solving.iterate import Iterate  # noqa: E402


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(5000),
        np.full(3, np.inf),
        np.where(np.arange(5000) % 3, 32.0, -0.5),
        np.random.default_rng(0).random(5000),
        np.concatenate([np.zeros(999_999), np.arange(100.0)]),
        np.arange(7, dtype=np.int32),
        np.arange(5000),
        np.zeros(0, np.int8),
        None,
    ],
    ids=["zeros", "infinite", "two", "random", "rare", "numbers", "many numbers", "empty", "none"],
)
def test_arrays_come_back(array):
    again = unpacked(packed(array))
    assert (again is None) == (array is None)
    assert array is None or (again.dtype == array.dtype and np.array_equal(again, array))


def test_few_values_take_a_byte_each_or_nothing():
    assert nbytes_of(packed(np.zeros(10_000))) == 8
    assert nbytes_of(packed(np.where(np.arange(10_000) % 2, 1.0, -1.0))) == 10_016
    assert nbytes_of(packed(np.arange(10_000))) == 0
    assert not isinstance(packed(np.arange(1, 10_001)), Packed)


def test_of_an_iterate_what_is_known_comes_back():
    rng = np.random.default_rng(0)
    alpha, gradient, base = rng.random((3, 300))
    known = rng.integers(3, size=300).astype(np.uint8)
    again = unpacked_iterate(packed_iterate(Iterate(alpha, gradient, base, known)))
    assert np.array_equal(again.alpha, alpha) and np.array_equal(again.known, known)
    assert np.array_equal(again.gradient[known > 0], gradient[known > 0])
    assert np.array_equal(again.base[known == 1], base[known == 1])
