"""Test sums of kernel values that are nearly 1: K - 1 is summed instead of K."""

import numpy as np
import pytest

from dcsvm.data.rows import Rows
from dcsvm.kernel.distances import Cutoff, is_flat
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows
from dcsvm.kernel.kernels import Kernel


def rows_of(form, rng):
    if form == "bytes":
        return rng.integers(0, 9, (700, 20))
    if form == "sparse":
        return rng.random((700, 300)) * (rng.random((700, 300)) < 0.03)
    return rng.random((700, 200 if form == "product" else 20))


@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("form", ["difference", "product", "sparse", "bytes"])
def test_rounding_is_relative_to_what_is_left_of_a_kernel_value(form, float64):
    rng = np.random.default_rng(2)
    X = rows_of(form, rng).astype(np.float32)
    rows, kernel = Rows.from_array(X), Kernel("rbf", 2.0**-11)
    data = KernelRows(rows, kernel, 2, coded=True)
    assert is_flat(rows, kernel) and (form == "bytes" or data.setup.form in (form, "bytes"))
    norms = (X.astype(np.float64) ** 2).sum(axis=1)
    distances = norms[:, None] + norms - 2.0 * X.astype(np.float64) @ X.astype(np.float64).T
    weights = np.where(rng.random(700) < 0.5, 1000.0, -1000.0)
    columns = np.stack([weights, weights[::-1]], axis=1)
    exact = np.exp(-(2.0**-11) * distances) @ columns
    left = np.abs(np.expm1(-(2.0**-11) * distances)) @ np.abs(columns)
    how = KernelEvalOptions(float64=float64)
    one = data.product(weights, evaluation=how)
    indptr = np.arange(0, 1401, 2, dtype=np.int64)
    both = (indptr, np.tile(np.arange(2, dtype=np.int32), 700), columns.reshape(-1), 2)
    assert np.all(
        np.abs(one[:, 0] - exact[:, 0]) <= (1e-10 if float64 else 3e-7) * left[:, 0] + 1e-7
    )
    assert np.array_equal(data.product(both, evaluation=how)[:, 0], one[:, 0])


def test_sums_with_values_left_out_take_nothing_off():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.random((300, 3)), 40 + rng.random((300, 3))]).astype(np.float32)
    kernel = Kernel("rbf", 1e-4)
    data = KernelRows(Rows.from_array(X), kernel, 2)
    weights = rng.random(600)
    near = data.product(weights, evaluation=KernelEvalOptions(cutoff=Cutoff(1000.0, 1.0)))
    exact = np.exp(-1e-4 * ((X[:300, None] - X[None, :300]) ** 2).sum(axis=2)) @ weights[:300]
    assert np.allclose(near[:256, 0], exact[:256], rtol=1e-6)
