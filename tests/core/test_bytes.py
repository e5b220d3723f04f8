"""Test rows of integers from 0 to 255 as bytes: the same bits as any other exact form."""

import numpy as np
import pytest
from reference import kernels_with

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel

KERNELS = [one for one in kernels_with(1e-5, 0.1, 3) if one.type.is_from_products]


def byte_rows(n, d, seed=0, largest=255):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, largest + 1, size=(n, d)) * (rng.random((n, d)) < 0.6)
    X[0], X[-1] = 0, largest
    return X.astype(np.float32)


def matrix(data):
    return _core.kernel_matrix(data.setup, data.points, None, data.points, None, 2)


def encoded(X, kernel):
    data = KernelRows(Rows.from_array(X), kernel, 1, coded=True)
    if not data.points.has_bytes:
        pytest.skip("this processor has no instruction for products of bytes")
    return data


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("d", [16, 65, 66, 67, 300, 784])
def test_the_values_are_those_of_exact_products(kernel, d):
    X = byte_rows(77, d)
    bytes_, plain = encoded(X, kernel), KernelRows(Rows.from_array(X), kernel, 1)
    assert bytes_.setup.form == "bytes" and plain.setup.form in ("product", "difference")
    if plain.setup.form == "product":
        assert np.array_equal(matrix(bytes_), matrix(plain))
    np.testing.assert_allclose(matrix(bytes_), matrix(plain), rtol=2e-6, atol=1e-30)
    assert np.array_equal(matrix(bytes_), matrix(bytes_).T)
    weights = np.random.default_rng(1).normal(size=77)
    exact = X.astype(np.float64) @ X.T.astype(np.float64)
    if kernel.name == "linear":
        args = (bytes_.points, None, bytes_.points, None, weights, True, 1)
        assert np.allclose(_core.kernel_product(bytes_.setup, *args)[:, 0], exact @ weights)


def test_the_largest_sums_do_not_overflow():
    X = np.full((33, 8192), 255, np.float32)
    X[1], X[2, ::2] = 0, 0
    data = encoded(X, Kernel("linear"))
    exact = X.astype(np.float64) @ X.T.astype(np.float64)
    assert np.array_equal(matrix(data), exact.astype(np.float32))
    far = matrix(encoded(X, Kernel("rbf", 1e-9)))
    assert np.isclose(far[0, 1], np.exp(-1e-9 * 8192 * 255**2), rtol=1e-6)


CHANGES = [lambda X: X + 0.5, lambda X: X - 1, lambda X: X + 1, lambda X: X * 2.0**20]


@pytest.mark.parametrize("change", CHANGES)
def test_other_values_are_not_bytes(change):
    X = change(byte_rows(50, 80)).astype(np.float32)
    for kernel in (Kernel("linear"), Kernel("polynomial", 0.5)):
        assert not KernelRows(Rows.from_array(X), kernel, 1, coded=True).points.has_bytes
    X[7, 3] = np.pi
    assert not KernelRows(Rows.from_array(X), Kernel(), 1, coded=True).points.has_bytes


@pytest.mark.parametrize("change", CHANGES)
def test_evenly_spaced_values_meet_as_bytes_by_their_distances(change):
    X = change(byte_rows(50, 80)).astype(np.float32)
    step = np.unique(np.diff(np.unique(X))).min()
    data = encoded(X, Kernel("rbf", 1e-5 / step**2))
    assert data.copy_bytes == 50 * 84
    distance = ((X[:, None].astype(np.float64) - X[None]) ** 2).sum(axis=2)
    exact = np.exp(-1e-5 / np.float64(step) ** 2 * distance)
    assert np.allclose(data.matrix(), exact, rtol=3e-7)


@pytest.mark.parametrize("stored", [(1, 2, 3), (-1, 1), (-3, -1), (-1.5, 1.5, 3)])
def test_zeros_that_are_not_stored_meet_as_bytes_too(stored):
    rng = np.random.default_rng(3)
    X = (rng.choice(stored, (200, 90)) * (rng.random((200, 90)) < 0.04)).astype(np.float32)
    rows = Rows.from_array(X)
    assert not rows.is_dense
    data = encoded(X, Kernel("rbf", 0.1))
    assert data.setup.form == "bytes"
    distance = ((X[:, None] - X[None]) ** 2).sum(axis=2, dtype=np.float64)
    assert np.allclose(data.matrix(), np.exp(-0.1 * distance), rtol=3e-7)
    assert (
        KernelRows(rows, Kernel("rbf", 0.1), 1, coded=True, memory_bytes=1000).setup.form
        == "sparse"
    )


def test_rows_that_are_not_encoded_are_refused():
    X = byte_rows(40, 70)
    with_bytes, plain = encoded(X, Kernel()), KernelRows(Rows.from_array(X), Kernel(), 1)
    with pytest.raises(ValueError, match="not encoded as bytes"):
        _core.kernel_matrix(with_bytes.setup, plain.points, None, with_bytes.points, None, 1)
