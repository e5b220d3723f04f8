"""Test symmetric products: each kernel value computed once, the plain product's sums."""

import numpy as np
import pytest
from reference import forms_of, grid_rows, kernel_values, kernels_with, points_of, prepared

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows
from dcsvm.kernel.kernels import Kernel

RBF = Kernel("rbf", 0.8)
FORMS = [
    pytest.param(kernel, form, id=f"{kernel.name}-{form}")
    for kernel in kernels_with(0.2, -0.25, 3)
    for form in forms_of(kernel)
    if not kernel.type.is_linear
]
SIZES = (511, 512, 513, 1000, 2049)


def both(setup, points, rows, weights, threads=1):
    """Return K w of rows with themselves, computed as symmetric and as a plain product."""
    rows = np.arange(points.n_samples, dtype=np.int32) if rows is None else rows
    how = weights, False, threads
    return (
        _core.kernel_product(setup, points, rows, points, rows, *how)[:, 0],
        _core.kernel_product(setup, points, rows, points, rows.copy(), *how)[:, 0],
    )


@pytest.mark.parametrize("kernel, form", FORMS)
@pytest.mark.parametrize("n", SIZES)
def test_it_is_the_ordinary_product(kernel, form, n):
    X, rng = grid_rows(n, 5), np.random.default_rng(n)
    setup, points = prepared(kernel, points_of(X, form), form)
    weights = rng.standard_normal(n)
    once, twice = both(setup, points, None, weights)
    expected = kernel_values(kernel, X, X) @ weights
    scale = np.abs(kernel_values(kernel, X, X)) @ np.abs(weights)
    assert np.all(np.abs(once - twice) <= 1e-13 * scale)
    assert np.all(np.abs(once - expected) <= 1e-5 * scale)


@pytest.mark.parametrize("name, form", FORMS[:3])
def test_threads_do_not_change_a_bit(name, form):
    X = grid_rows(3000, 4)
    setup, points = prepared(RBF, points_of(X, form), form)
    rows = np.random.default_rng(0).permutation(3000).astype(np.int32)
    weights = np.random.default_rng(1).standard_normal(3000)
    first = both(setup, points, rows, weights)[0]
    for threads in (2, 3, 8):
        assert np.array_equal(both(setup, points, rows, weights, threads)[0], first)


def test_rows_may_repeat_and_be_some():
    X, rng = grid_rows(900, 6), np.random.default_rng(2)
    setup, points = prepared(RBF, points_of(X, "difference"), "difference")
    rows = rng.integers(0, 900, 1500).astype(np.int32)
    weights = rng.standard_normal(1500)
    once, twice = both(setup, points, rows, weights)
    np.testing.assert_allclose(once, twice, rtol=0, atol=1e-10)


def encoded(kind, n, rng):
    if kind == "codes":
        return np.eye(40)[rng.integers(0, 40, n)], 0.5
    if kind == "bytes":
        return rng.integers(0, 256, (n, 20)).astype(np.float64), 1e-5
    return rng.random((n, 3)), 1e-3  # flat: most kernel values are near 1


@pytest.mark.parametrize("kind", ["codes", "bytes", "flat"])
def test_encoded_and_flat_rows_are_as_exact(kind):
    rng = np.random.default_rng(3)
    X, gamma = encoded(kind, 1100, rng)
    X = X.astype(np.float32)
    data = KernelRows(Rows.from_array(X), Kernel("rbf", gamma), 1, coded=True)
    weights = rng.standard_normal(1100)
    K = kernel_values(("rbf", gamma, 0, 0), X, X)
    once = data.product(weights)[:, 0]
    twice = data.product(weights, np.arange(1100, dtype=np.int32))[:, 0]
    np.testing.assert_allclose(once, twice, rtol=0, atol=1e-10)
    assert np.max(np.abs(once - K @ weights)) <= 1e-6 * np.abs(weights).sum()


@pytest.mark.parametrize("value", [1e-12, 1e-4, 0.3])
def test_what_is_left_out_is_within_the_bound_of_both(value):
    rng = np.random.default_rng(4)
    X = (rng.random((30, 3))[rng.integers(0, 30, 2000)]).astype(np.float32)
    X += (0.01 * rng.standard_normal((2000, 3))).astype(np.float32)
    X = X[_core.find_components(_core.Points(Rows.from_array(X), 1), Cutoff(1e-30), 1, 1)[0]]
    data = KernelRows(Rows.from_array(X), Kernel("rbf", 40.0), 1)
    weights = rng.standard_normal(2000)
    found = data.product(
        weights, evaluation=KernelEvalOptions(cutoff=Cutoff.of(data.kernel, value))
    )[:, 0]
    expected = kernel_values(("rbf", 40.0, 0, 0), X, X) @ weights
    total = np.abs(weights).sum()
    assert np.all(np.abs(found - expected) <= (value + 1e-6) * total)


def test_a_wish_to_stop_is_heard():
    X = grid_rows(2000, 4)
    data = KernelRows(Rows.from_array(X), Kernel("rbf", 1.0), 2)
    stop = _core.Stop()
    stop.request()
    with pytest.raises(_core.Stopped):
        data.product(np.ones(2000), evaluation=KernelEvalOptions(stop=stop))
