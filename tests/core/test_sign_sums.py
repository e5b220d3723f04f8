"""Test weighted sums of the signs of differences against NumPy."""

import numpy as np
import pytest

from dcsvm import _core


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 2), (7, 32, 3), (70, 33, 7), (256, 65, 10)])
def test_sums_of_signs_are_those_of_numpy(shape):
    n, m, d = shape
    rng = np.random.default_rng(n)
    rows, others = (rng.integers(-3, 4, (k, d)).astype(np.float32) for k in (n, m))  # some equal
    weights = rng.normal(size=(n, m)).astype(np.float32)
    signs = np.sign(rows[:, None] - others)
    expected = np.einsum("ij,ijk->jk", weights.astype(np.float64), signs)
    found = _core.sign_sums(rows, others, weights)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6 * n)


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_without_entries_sums_are_zero(shape):
    n, m, d = shape
    rows, others, weights = (np.ones(size, np.float32) for size in ((n, d), (m, d), (n, m)))
    np.testing.assert_array_equal(_core.sign_sums(rows, others, weights), np.zeros((m, d)))


@pytest.mark.parametrize("wrong", range(3))
def test_shapes_must_fit(wrong):
    given = [np.ones(size, np.float32) for size in ((4, 2), (3, 2), (4, 3))]
    given[wrong] = np.ones((5, 5), np.float32)
    with pytest.raises(ValueError, match="do not have shapes"):
        _core.sign_sums(*given)
