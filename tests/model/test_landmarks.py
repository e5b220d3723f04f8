"""Test landmarks: gradients against differences, least squares against NumPy, gain by moving."""

import numpy as np
import pytest
from reference import csr_rows, dense_rows, kernel_values, kernels_with

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.landmarks import (
    RIDGE,
    FitOptions,
    FitTarget,
    fitted,
    moved_features,
    slope_gradient,
    started,
    values_and_slopes,
)

every_kernel = pytest.mark.parametrize(
    "kernel", kernels_with(0.5, 0.5, 3), ids=lambda one: one.name
)
DISTANCES = ("rbf", "laplacian", "exponential")


def target_of(rows, values, *, by_sign, kernel=None):
    """Make a target of rows without classes, which are all near the decision boundary."""
    n, values = len(values), values.astype(np.float32)
    moved = moved_features(kernel or Kernel("rbf"), rows)
    near, class_ = np.ones(n, bool), np.zeros(n, np.int32)
    return FitTarget(rows, values, np.ones_like(values), by_sign, class_, near, moved)


def waves(n, d=3, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, d)).astype(np.float32)
    return X, np.sin(3 * X[:, :1]) + X[:, 1:2] ** 2 - 0.3


@every_kernel
def test_the_gradient_is_that_of_differences(kernel):
    rng = np.random.default_rng(0)
    X, Z = (rng.uniform(-1, 1, (n, 3)).astype(np.float32) for n in (20, 4))
    pulls = rng.normal(size=(20, 4)).astype(np.float32)
    values, slopes = values_and_slopes(kernel, X, Z)
    np.testing.assert_allclose(values, kernel_values(kernel, X, Z), atol=1e-5)
    found = slope_gradient(kernel, pulls * slopes, X, Z)
    for j, k in np.ndindex(Z.shape):
        step = np.zeros(Z.shape)
        step[j, k] = 1e-5
        change = kernel_values(kernel, X, Z + step) - kernel_values(kernel, X, Z - step)
        np.testing.assert_allclose(found[j, k], (pulls * change).sum() / 2e-5, atol=1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", DISTANCES)
def test_equal_rows_and_equal_features_pull_nothing(name):
    X = waves(6)[0]
    Z = X.copy()
    Z[0, 1] += 0.25  # other features of this row are equal
    kernel = Kernel(name, gamma=0.5)
    values, slopes = values_and_slopes(kernel, X, Z)
    np.testing.assert_allclose(np.diag(values)[1:], 1, atol=1e-2)
    found = slope_gradient(kernel, np.eye(6, dtype=np.float32) * slopes, X, Z)
    np.testing.assert_allclose(np.delete(found.ravel(), 1), 0, atol=1e-3)
    assert found[0, 1] < -0.1


@every_kernel
@pytest.mark.parametrize("form", [dense_rows, csr_rows])
def test_the_start_is_that_of_least_squares_with_a_ridge(kernel, form):
    X, values = waves(300)
    target = target_of(form(X), values, by_sign=False)
    used = np.ones((7, 1), bool)
    found = started(kernel, target, form(X[:7]), used, np.random.default_rng(0))
    K = np.column_stack((kernel_values(kernel, X, X[:7]), np.ones(300)))
    gram = K.T @ K
    gram[np.diag_indices(7)] += RIDGE * np.trace(gram) / 8
    expected = np.linalg.solve(gram, K.T @ values)
    outputs = K @ np.vstack(found)
    np.testing.assert_allclose(outputs, K @ expected, atol=1e-3)


def test_unused_landmarks_have_no_coefficients():
    X, values = waves(300)
    values = np.hstack((values, -values)).astype(np.float32)
    used = np.ones((8, 2), bool)
    used[:4, 0] = used[6:, 1] = False
    target = target_of(dense_rows(X), values, by_sign=True)
    _, coefficients, _ = fitted(Kernel("rbf"), target, dense_rows(X[:8]), used, FitOptions(0, 50))
    assert np.all((coefficients != 0) == used)


@pytest.mark.parametrize("by_sign", [False, True])
@pytest.mark.parametrize(("name", "most"), [("rbf", 0.7), ("laplacian", 0.9), ("exponential", 0.9)])
def test_landmarks_that_move_are_nearer_to_what_is_wanted(by_sign, name, most):
    X, values = waves(1000)
    kernel, used = Kernel(name, gamma=2.0), np.ones((8, 1), bool)
    target = target_of(dense_rows(X), values, by_sign=by_sign)
    start = started(kernel, target, dense_rows(X[:8]), used, np.random.default_rng(0))
    moved = fitted(kernel, target, dense_rows(X[:8]), used, FitOptions(0))

    def loss(rows, coefficients, offset):
        outputs = kernel_values(kernel, X, rows.dense) @ coefficients + offset
        return np.mean((outputs > 0) != (values > 0)) if by_sign else np.std(outputs - values)

    assert loss(*moved) < most * loss(dense_rows(X[:8]), *start)


@every_kernel
def test_features_of_two_values_move_unless_the_kernel_is_of_a_distance(kernel):
    X, values = waves(800)
    X[:, 2] = np.where(X[:, 2] > 0, 0.25, -3)
    target = target_of(dense_rows(X), values, by_sign=False, kernel=kernel)
    used = np.ones((20, 1), bool)
    found = fitted(kernel, target, dense_rows(X[:20]), used, FitOptions(0, 50))[0].dense
    assert not np.array_equal(found[:, 0], X[:20, 0])
    assert np.array_equal(found[:, 2], X[:20, 2]) == kernel.type.is_of_distance


@pytest.mark.parametrize("form", [dense_rows, Rows.from_array])
def test_moved_features_have_more_than_two_values(form):
    X = np.zeros((100, 30), np.float32)
    X[:, 3] = np.arange(100) % 2
    X[:, 5] = np.arange(100) % 3
    X[7, 9], X[8, 9] = 5, 6
    assert moved_features(Kernel("laplacian"), form(X)).tolist() == [5, 9]
    assert len(moved_features(Kernel("polynomial"), form(X))) == 30


@pytest.mark.parametrize("name", DISTANCES)
def test_landmarks_without_a_feature_to_move_have_better_coefficients(name):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (600, 6)).astype(np.float32)
    values = X[:, :1] + X[:, 1:2] * X[:, 2:3] - 1
    kernel, used = Kernel(name, gamma=0.5), np.ones((12, 1), bool)
    target = target_of(dense_rows(X), values, by_sign=True, kernel=kernel)
    first = started(kernel, target, dense_rows(X[:12]), used, np.random.default_rng(0))
    rows, *found = fitted(kernel, target, dense_rows(X[:12]), used, FitOptions(0, 90))
    np.testing.assert_array_equal(rows.dense, X[:12])
    K = kernel_values(kernel, X, X[:12])
    before, after = (target.losses(K @ a + b, np.arange(600)) for a, b in (first, found))
    assert after < before


@pytest.mark.filterwarnings("error")
def test_landmarks_of_equal_rows_stay_there():
    X, values = np.repeat(waves(1)[0], 20, axis=0), np.ones((20, 1), np.float32)
    target = target_of(dense_rows(X), values, by_sign=True)
    found = fitted(Kernel("rbf"), target, dense_rows(X[:1]), np.ones((1, 1), bool), FitOptions(0))
    np.testing.assert_array_equal(found[0].dense, X[:1].astype(np.float32))


@pytest.mark.filterwarnings("error")
def test_values_that_are_too_large_are_an_error():
    X, values = waves(300)
    kernel, used = Kernel("polynomial", gamma=1e3, degree=9), np.ones((8, 1), bool)
    target = target_of(dense_rows(X), values, by_sign=True)
    with pytest.raises(ValueError, match="too large"):
        fitted(kernel, target, dense_rows(X[:8]), used, FitOptions(0))
