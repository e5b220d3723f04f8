"""Test the linear kernel in the space of w: products, and solutions against NumPy float64."""

import numpy as np
import pytest
from reference import (
    c_svc,
    certificate,
    csr_rows,
    dense_rows,
    grid_rows,
    labelled_rows,
    one_hot_rows,
    prepared,
    solve_reference,
    with_constraint,
)
from test_solver import check_solution, solve_core

from dcsvm import _core
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.training.certificate import AT_ALPHA, NOTHING, Iterate

LINEAR = Kernel("linear")
FORMS = {"dense": dense_rows, "sparse": csr_rows}


def unequal_rows(n_samples, n_features, seed=0, density=1.0):
    """Return labels and columns of very different scales: coordinate descent is slow on them."""
    rng = np.random.default_rng(seed)
    X = grid_rows(n_samples, n_features, seed, density)
    X *= np.logspace(0, 2, n_features, dtype=np.float32)
    score = X @ rng.normal(size=n_features) / np.linalg.norm(X, axis=1).mean()
    y = np.where(score + 0.3 * rng.normal(size=n_samples) > np.median(score), 1.0, -1.0)
    return X, y


def solve(rows, problem, *, alpha=None, threads=1, progress=None, **how):
    """Solve once; return (iterate, report)."""
    setup, points = prepared(Kernel("linear"), _core.Points(rows, threads))
    n = problem.size
    alpha = np.zeros(n) if alpha is None else alpha.copy()
    iterate = Iterate(alpha, np.full(n, np.nan), np.zeros(n), np.full(n, NOTHING))
    stop = None if progress is None else progress.stop
    (report,) = solve_core(
        setup, points, problem, iterate, threads=threads, progress=progress, stop=stop, **how
    )
    return iterate, report


def check(X, problem, iterate, report, tolerance=1e-6):
    """Check all reported values of a solution and its equality constraint."""
    alpha, kernel = iterate.alpha, ("linear", 1.0, 0.0, 0)
    assert not problem.n_constraints or abs(alpha.sum()) <= 1e-12 * np.abs(alpha).sum()
    return check_solution(X, kernel, problem, alpha, iterate.gradient, report, tolerance)


@pytest.mark.parametrize("make", [dense_rows, csr_rows])
def test_a_product_is_that_of_float64_vectors_for_any_number_of_threads(make):
    X, rng = grid_rows(3000, 7, 1, density=0.5), np.random.default_rng(0)
    weights = rng.normal(size=3000)
    one, two = (KernelRows(make(X), LINEAR, threads).product(weights) for threads in (1, 2))
    X = X.astype(np.float64)
    np.testing.assert_allclose(one[:, 0], X @ (X.T @ weights), rtol=1e-11)
    np.testing.assert_array_equal(one, two)


def test_a_product_has_as_many_columns_as_there_are_weights():
    X, rng = grid_rows(60, 5, 1), np.random.default_rng(0)
    W = np.where(rng.random((60, 4)) < 0.4, rng.normal(size=(60, 4)), 0.0)
    indptr = np.concatenate(([0], np.cumsum((W != 0).sum(axis=1))))
    columns, values = np.nonzero(W)[1].astype(np.int32), W[W != 0]
    product = KernelRows(dense_rows(X), LINEAR, 1).product((indptr, columns, values, 4))
    np.testing.assert_allclose(product, X.astype(float) @ (X.T.astype(float) @ W), rtol=1e-12)


def test_codes_are_entries_of_the_vectors():
    X = one_hot_rows(300, (2, 3, 5, 9), 1)
    coded, weights = KernelRows(dense_rows(X), LINEAR, 1, coded=True), np.linspace(-1, 1, 300)
    assert coded.points.n_codes == 4
    X = X.astype(np.float64)
    np.testing.assert_allclose(coded.product(weights)[:, 0], X @ (X.T @ weights), atol=1e-11)


def test_a_row_has_the_same_sum_whatever_other_rows_are_asked_for():
    data, weights = KernelRows(dense_rows(grid_rows(500, 40)), LINEAR, 1), np.linspace(-1, 1, 500)
    some = np.array([3, 77, 499], np.int32)
    np.testing.assert_array_equal(
        data.product(weights, target_rows=some), data.product(weights)[some]
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("has_sum", [False, True], ids=("plain", "sum"))
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_a_solution_is_the_optimum_of_the_reference(C, has_sum, form):
    X, y = unequal_rows(120, 9)
    problem = with_constraint(c_svc(y, C)) if has_sum else c_svc(y, C)
    iterate, report = solve(FORMS[form](X), problem)
    K, f, gap = check(X, problem, iterate, report)
    _, bound = solve_reference(K, problem)
    assert bound - 1e-8 * abs(bound) <= f <= bound + gap + 1e-8 * abs(bound)


@pytest.mark.parametrize("has_sum", [False, True], ids=("plain", "sum"))
@pytest.mark.parametrize(
    ("n_samples", "n_features", "density"),
    [(1500, 5, 1.0), (600, 70, 0.05), (200, 1100, 0.02), (60, 1100, 1.0)],
    ids=("narrow", "sparse", "wide-sparse", "wide"),
)
def test_any_shape_of_the_rows_is_solved(n_samples, n_features, density, has_sum):
    X, y = unequal_rows(n_samples, n_features, density=density)
    problem = with_constraint(c_svc(y, 10.0)) if has_sum else c_svc(y, 10.0)
    rows = csr_rows(X) if density < 1 else dense_rows(X)
    check(X, problem, *solve(rows, problem, tolerance=1e-4), tolerance=1e-4)


def test_coded_rows_are_solved():
    X = one_hot_rows(400, (2, 3, 5, 9), 1)
    y = np.where(X[:, 0] + X[:, 3] - X[:, 7] > 0.6, 1.0, -1.0)
    y[::7] *= -1
    problem, data = c_svc(y, 100.0), KernelRows(dense_rows(X), LINEAR, 1, coded=True)
    n = problem.size
    iterate = Iterate(np.zeros(n), np.zeros(n), np.zeros(n), np.full(n, NOTHING))
    (report,) = solve_core(data.setup, data.points, problem, iterate)
    check(X, problem, iterate, report)


def test_rows_that_are_zero_or_repeated_do_no_harm():
    X, y = unequal_rows(80, 4)
    X[::5] = 0
    X[1::5] = X[2::5]
    for problem in (c_svc(y, 50.0), with_constraint(c_svc(y, 50.0))):
        check(X, problem, *solve(dense_rows(X), problem))


@pytest.mark.parametrize("has_sum", [False, True], ids=("plain", "sum"))
def test_the_bits_do_not_depend_on_the_number_of_threads(has_sum):
    X, y = unequal_rows(3000, 40)
    problem = with_constraint(c_svc(y, 10.0)) if has_sum else c_svc(y, 10.0)
    one, two = (solve(dense_rows(X), problem, tolerance=1e-3, threads=k)[0] for k in (1, 2))
    np.testing.assert_array_equal(one.alpha, two.alpha)
    np.testing.assert_array_equal(one.gradient, two.gradient)


class Progress:
    """Progress callback: requests an up-to-date iterate at every call, stops at a given one."""

    def __init__(self, stop_at):
        self.error, self.n_calls, self.stop, self.stop_at = None, 0, _core.Stop(), stop_at

    def __call__(self, *event):
        self.n_calls += 1
        if self.n_calls == self.stop_at:
            self.stop.request()
        return True


@pytest.mark.parametrize("has_sum", [False, True], ids=("plain", "sum"))
@pytest.mark.parametrize("stop_at", [1, 5, 60])
def test_what_is_there_when_it_is_stopped_can_be_gone_on_from(stop_at, has_sum):
    X, y = unequal_rows(300, 30)
    problem = with_constraint(c_svc(y, 100.0)) if has_sum else c_svc(y, 100.0)
    iterate, report = solve(dense_rows(X), problem, progress=Progress(stop_at))
    X64 = X.astype(np.float64)
    exact = X64 @ (X64.T @ iterate.alpha) - problem.linear
    assert np.all(iterate.known == AT_ALPHA)
    # terms are larger than their sums, and gradients are updated many times
    terms = np.abs(X64) @ (np.abs(X64).T @ np.abs(iterate.alpha))
    np.testing.assert_allclose(iterate.gradient, exact, rtol=1e-9, atol=1e-16 * terms.max())
    if has_sum:
        assert abs(iterate.alpha.sum()) <= 1e-12 * (1 + np.abs(iterate.alpha).sum())
    assert report["objective"] <= 0
    check(X, problem, *solve(dense_rows(X), problem, alpha=iterate.alpha))


def test_what_is_published_on_the_way_changes_no_bit():
    X, y = unequal_rows(300, 30)
    problem = with_constraint(c_svc(y, 100.0))
    quiet, asked = (solve(dense_rows(X), problem, progress=p)[0] for p in (None, Progress(10**9)))
    np.testing.assert_array_equal(quiet.alpha, asked.alpha)


def test_a_limit_of_updates_is_kept_and_nothing_gets_worse():
    X, y = labelled_rows(400)
    problem = c_svc(y, 10.0)
    before = 0.0
    alpha = None
    for _ in range(5):
        iterate, report = solve(dense_rows(X), problem, alpha=alpha, iterations=100)
        assert report["iterations"] <= 100
        assert report["objective"] <= before
        before, alpha = report["objective"], iterate.alpha


@pytest.mark.parametrize("has_sum", [False, True], ids=("plain", "sum"))
def test_a_tolerance_below_rounding_ends_too(has_sum):
    X, y = unequal_rows(100, 6)
    problem = with_constraint(c_svc(y, 10.0)) if has_sum else c_svc(y, 10.0)
    iterate, _ = solve(dense_rows(X), problem, tolerance=0.0)
    assert certificate(X.astype(float) @ X.T.astype(float), problem, iterate.alpha)[0] < 1e-6
