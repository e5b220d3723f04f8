"""Test FastFood's features against explicit matrices and the kernel that they approximate."""

import numpy as np
import pytest
from paper.baselines import fastfood
from paper.baselines.fastfood import FastFood, walsh_hadamard
from paper.fitted import kernel_matrix
from scipy.linalg import hadamard

from dcsvm.kernel.kernels import Kernel


def normal_rows(n_rows, n_features, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features)).astype(np.float32)


def multiplied_out(features):
    """Return the frequencies of FastFood's blocks, (blocks * size, size)."""
    n_blocks, size, _ = features.signs.shape
    walsh = hadamard(size).astype(np.float64)
    blocks = []
    for block in range(n_blocks):
        order = features.order[block] - block * size
        mixed = (walsh * features.signs[block].T)[order]
        blocks.append(features.lengths[block] * (walsh @ (features.gauss[block] * mixed)))
    return np.concatenate(blocks)


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_transform_is_a_product_with_the_walsh_hadamard_matrix(size):
    values = np.random.default_rng(size).normal(size=(3, size, 5)).astype(np.float32)
    expected = np.einsum("ij,bjn->bin", hadamard(size), values)
    result, other = walsh_hadamard(values, np.empty_like(values))
    assert result == pytest.approx(expected, abs=1e-4)
    assert not np.shares_memory(result, other)


@pytest.mark.parametrize("n_features", [1, 3, 8, 22])
def test_angles_are_products_with_the_frequencies(n_features, monkeypatch):
    monkeypatch.setattr(fastfood, "VALUES_AT_A_TIME", 1000)
    count, rows = 45, normal_rows(50, n_features)
    features = FastFood(n_features, count, 0.3, seed=1)
    frequencies = multiplied_out(features)[:count, :n_features]
    assert frequencies.shape == (count, n_features)
    angles = rows @ frequencies.T
    assert features.angles(rows) == pytest.approx(angles.T, abs=1e-4)
    waves = np.concatenate((np.cos(angles), np.sin(angles)), axis=1) / np.sqrt(count)
    assert features(rows) == pytest.approx(waves, abs=1e-4)
    assert features(rows).dtype == np.float32


def test_products_of_features_approximate_the_kernel_better_the_more_there_are():
    rows, gamma = normal_rows(40, 5), 0.1
    exact = kernel_matrix(Kernel("rbf", gamma), rows, rows)

    def error(count):
        maps = [FastFood(5, count, gamma, seed)(rows) for seed in range(5)]
        return np.mean([np.sqrt(np.mean((waves @ waves.T - exact) ** 2)) for waves in maps])

    errors = [error(count) for count in (32, 512, 8192)]
    assert errors[1] < errors[0] / 2 and errors[2] < errors[1] / 2
    assert errors[2] < 0.01


def test_frequencies_have_the_lengths_of_gaussian_vectors():
    frequencies = multiplied_out(FastFood(8, 8192, 0.5, seed=0))
    lengths = np.sum(frequencies**2, axis=1)  # chi squared with 8 degrees of freedom
    assert np.mean(lengths) == pytest.approx(8, rel=0.03)
    assert np.var(lengths) == pytest.approx(16, rel=0.1)


def test_seed_decides():
    rows = normal_rows(10, 3)
    first, second, other = (FastFood(3, 20, 1.0, seed)(rows) for seed in (0, 0, 1))
    assert np.array_equal(first, second)
    assert not np.allclose(first, other)
