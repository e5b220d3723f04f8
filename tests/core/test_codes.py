"""Test one-hot codes: the same kernel values from fewer operations."""

from dataclasses import replace

import numpy as np
import pytest
from reference import kernel_values, kernels_with, one_hot_rows
from scipy.sparse import csr_array
from storages import run_on

import dcsvm
from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows
from dcsvm.kernel.kernels import Kernel


@pytest.mark.parametrize("kernel", kernels_with(0.3, 0.5, 3), ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("n_numeric", [0, 3, 70])
def test_codes_change_no_kernel_value(kernel, missing, n_numeric):
    X = one_hot_rows(150, (4, 30, 60), n_numeric, missing, n_numeric)
    data = KernelRows(Rows(*X.shape, dense=X), kernel, 2, coded=True)
    assert 1 <= data.points.n_codes <= 10
    weights = np.random.default_rng(1).normal(size=150)
    expected = kernel_values(kernel, X, X) @ weights
    scale = np.abs(kernel_values(kernel, X, X)) @ np.abs(weights)
    for double_tiles, error in ((False, 1e-6), (True, 1e-13)):
        product = _core.kernel_product(
            data.setup, data.points, None, data.points, None, weights, double_tiles, 2
        )[:, 0]
        assert np.all(np.abs(product - expected) <= error * scale)


def test_equal_rows_have_exactly_kernel_value_one():
    X = np.repeat(one_hot_rows(40, (5, 9), 4), 2, axis=0)
    data = KernelRows(Rows.from_array(X), Kernel("rbf", 3.0), 1, coded=True)
    matrix = _core.kernel_matrix(data.setup, data.points, None, data.points, None, 1)
    assert data.points.n_codes == 2
    assert np.all(matrix[::2, 1::2].diagonal() == 1)
    assert np.array_equal(matrix, matrix.T)


def binary_rows(n, d, n_numeric=0, seed=0):
    """Return rows of d 0/1 columns, some rarely and some often set, and of numbers."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) < rng.choice([0.03, 0.1, 0.5, 0.9], d)
    X[0], X[1] = True, False  # no two columns share a code
    return np.concatenate([X, rng.normal(size=(n, n_numeric))], axis=1).astype(np.float32)


@pytest.mark.parametrize("kernel", kernels_with(0.3, 0.5, 3), ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("n_numeric", [0, 3])
@pytest.mark.parametrize("d", [5, 8, 20, 63, 64, 65, 123, 257, 300, 600])
def test_columns_that_are_set_together_have_codes_of_their_own(kernel, d, n_numeric):
    X = binary_rows(77, d, n_numeric)
    kernel = replace(kernel, gamma=0.3 / d)
    data = KernelRows(Rows.from_array(X), kernel, 1, coded=True)
    encoded = data.points.has_bytes if n_numeric == 0 else False
    assert encoded or data.points.n_codes == d
    expected = kernel_values(kernel, X, X)
    np.testing.assert_allclose(data.matrix(), expected, rtol=2e-6, atol=2e-6)
    part = data.part(np.arange(40, 45))  # fewer rows than a panel
    assert np.array_equal(part.matrix(targets=data), data.matrix()[:, 40:45])
    assert np.array_equal(data.matrix(), data.matrix().T)
    if n_numeric == 0 and kernel.type.is_of_distance:
        np.testing.assert_allclose(data.matrix(), expected, rtol=3e-7)
    weights = np.random.default_rng(1).normal(size=77)
    sums = data.product(weights, evaluation=KernelEvalOptions(float64=True))[:, 0]
    np.testing.assert_allclose(sums, expected @ weights, atol=1e-12 * np.abs(expected).sum())


def test_columns_are_not_compared_where_there_are_too_many():
    X = binary_rows(30, 4097)
    X[0] = 0
    data = KernelRows(Rows.from_array(X), Kernel("rbf", 1e-3), 1, coded=True)
    if not data.points.has_bytes:
        assert data.points.n_codes == np.count_nonzero(X.any(axis=0))
    np.testing.assert_allclose(data.matrix(), kernel_values(data.kernel, X, X), rtol=3e-7)


@pytest.mark.parametrize("kernel", kernels_with(0.01, 0.5, 3), ids=lambda kernel: kernel.name)
def test_sparse_rows_of_ones_have_the_bits_of_other_sparse_rows(kernel):
    rng = np.random.default_rng(0)
    X = (rng.random((150, 400)) < 0.02).astype(np.float32)
    X[0], X[1] = 1, 0
    X[2, :300] = 1
    other = X.copy()
    other[-1] *= 2  # not only ones
    ones, others = (KernelRows(Rows.from_array(csr_array(x)), kernel, 1) for x in (X, other))
    assert ones.setup.form == others.setup.form == "sparse"
    assert np.array_equal(ones.matrix()[:-1, :-1], others.matrix()[:-1, :-1])
    assert np.array_equal(ones.matrix(targets=others)[:-1], others.matrix(targets=ones)[:, :-1].T)
    for targets, x in ((ones, X), (others, other)):
        expected = kernel_values(kernel, x, X)
        np.testing.assert_allclose(ones.matrix(targets=targets), expected, rtol=2e-6, atol=2e-6)
    few = ones.part(np.arange(40, 45))
    assert np.array_equal(few.matrix(targets=ones), ones.matrix()[:, 40:45])


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_other_instruction_sets(isa):
    run_on(isa, __file__)


def test_values_other_than_one_are_not_coded():
    X = one_hot_rows(100, (20,), 1)
    X[:, 1:] *= 2
    assert KernelRows(Rows.from_array(X), Kernel(), 1, coded=True).points.n_codes == 0


def test_columns_of_zeros_cost_nothing_and_change_nothing():
    X = one_hot_rows(100, (10,), 2)
    wide = np.concatenate([X, np.zeros((100, 20), np.float32)], axis=1)
    matrices = []
    for rows in (X, wide):
        data = KernelRows(Rows.from_array(rows), Kernel("rbf", 0.5), 1, coded=True)
        assert data.points.n_codes == 1
        matrices.append(_core.kernel_matrix(data.setup, data.points, None, data.points, None, 1))
    assert np.array_equal(*matrices)


def test_coded_rows_meet_only_themselves():
    X = one_hot_rows(50, (10,), 2)
    coded = KernelRows(Rows.from_array(X), Kernel(), 1, coded=True)
    plain = KernelRows(Rows.from_array(X), Kernel(), 1)
    with pytest.raises(ValueError, match="coded rows meet only rows of the same codes"):
        _core.kernel_matrix(coded.setup, coded.points, None, plain.points, None, 1)


def test_rows_of_codes_alone_have_no_feature_that_could_be_anything(monkeypatch):
    """The padding column was once uninitialised memory."""
    rng = np.random.default_rng(5)
    X = np.zeros((4000, 80), np.float32)
    X[np.arange(4000), rng.integers(0, 40, 4000)] = 1
    X[np.arange(4000), 40 + rng.integers(0, 40, 4000)] = 1
    y = np.where(rng.random(4000) < 0.5, 1.0, -1.0)
    empty = np.empty
    monkeypatch.setattr(np, "empty", lambda *a, **k: _filled(empty(*a, **k)))
    report = dcsvm.train(X, y, C=64.0, gamma=1024.0, threads=2).report
    assert report.converged and np.isfinite(report.kernel_error)


def _filled(array):
    if array.dtype.kind == "f":
        array.fill(np.nan)
    return array
