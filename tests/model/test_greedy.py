"""Support vectors that represent the others."""

import numpy as np
import pytest
from reference import dense_rows, kernel_values

import dcsvm
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.greedy import MAX_BASIS, can_choose, greedy


def problem(kernel, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3)).astype(np.float32)
    coefficients = rng.normal(size=(n, 2))
    return X, kernel_values(kernel, X, X) @ coefficients


def squared_error(K, sums, chosen):
    """Return the squared norm of the error of the best sums of chosen rows, less a constant."""
    parts = np.linalg.solve(K[np.ix_(chosen, chosen)], sums[chosen])
    return -np.sum(sums[chosen] * parts)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "exponential"])
def test_each_step_reduces_the_error_most(name):
    kernel = Kernel(name, gamma=1.5)
    X, sums = problem(kernel)
    K = kernel_values(kernel, X, X)
    chosen = greedy(kernel, dense_rows(X), sums, 6).tolist()
    for step in range(6):
        others = [i for i in range(len(X)) if i not in chosen[:step]]
        errors = [squared_error(K, sums, [*chosen[:step], i]) for i in others]
        own = squared_error(K, sums, chosen[: step + 1])
        np.testing.assert_allclose(own, min(errors), rtol=1e-4)


def test_equal_rows_are_chosen_once():
    kernel = Kernel("laplacian", gamma=1.0)
    X, _ = problem(kernel, 10)
    X = np.repeat(X, 3, axis=0)
    chosen = greedy(kernel, dense_rows(X), kernel_values(kernel, X, X) @ np.ones((30, 1)), 20)
    assert len(chosen) == 10
    assert len(np.unique(X[chosen], axis=0)) == 10


def test_it_can_choose_what_fits_in_memory():
    assert can_choose(Kernel("laplacian"), 100, 100)
    assert not can_choose(Kernel("laplacian"), 100, 101)
    assert not can_choose(Kernel("laplacian"), MAX_BASIS // 2, 3)
    assert not can_choose(Kernel("polynomial"), 100, 10)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_early", [False, True])
def test_three_quarters_of_the_vectors_predict_as_all_do(is_early, n_classes):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (1500, 3))
    y = np.digitize(np.sin(4 * X[:, 0]) + X[:, 1] + rng.normal(size=1500) / 2, range(n_classes - 1))
    method = "early" if is_early else "exact"
    early = {"early": True, "levels": 1, "branching": 3} if is_early else {}
    model = dcsvm.train(X[:700], y[:700], kernel="laplacian", C=5, gamma=1, **early)
    part = model.early if is_early else model.exact
    n = int(0.75 * part.rows.n_samples)
    small = model.compress(X[:700], test=X[700:], vectors=n, method=method)
    # early models lose their overlap, too
    assert small.report.changed < (0.1 if is_early else 0.04)
