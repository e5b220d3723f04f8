"""Kernel values that pairs of classes, or folds, in one place share: computed once."""

import numpy as np
import pytest
from reference import csr_rows, dense_rows, kernel_values, objective

import dcsvm
from dcsvm import _core
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.problem.dual_problems import c_svc_pairs
from dcsvm.solving.iterate import Iterate

ENOUGH, LITTLE = 10**8, 10**5  # bytes


def classes_in_a_ring(n, k, seed=0):
    """Rows (n, 60) of k classes, which overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    angle = 2 * np.pi * y / k
    X = rng.normal(0, 0.05, (n, 60))  # enough features for kernel values to be worth sharing
    X[:, 0] += np.cos(angle) + rng.normal(0, 0.5, n)
    X[:, 1] += np.sin(angle) + rng.normal(0, 0.5, n)
    return X.astype(np.float32), y


def solved(X, y, k, form, place, memory=ENOUGH, threads=2, bias=True):
    """alpha of all pairs, solved as one place or each for itself, and the reports."""
    kernel = Kernel("rbf", 1.0)
    rows = KernelRows(form(X), kernel, threads)
    formulation = c_svc_pairs(y.astype(np.int32), np.ones(len(y)), np.full(k, 4.0), bias=bias)
    problem, start = formulation.problem, formulation.start
    iterate = Iterate.of(np.zeros(problem.size))
    members = np.arange(problem.size, dtype=np.int32)
    places = np.zeros(len(start) - 1, np.int32) if place else None
    reports = _core.solve_clusters(
        rows.setup, rows.points, problem, start, members, iterate, 1e-4, -1, memory, threads, None,
        place=places,
    )  # fmt: skip
    return formulation, iterate.alpha, reports


@pytest.mark.parametrize("form", [dense_rows, csr_rows])
@pytest.mark.parametrize("k", [3, 7])
@pytest.mark.parametrize("bias", [False, True])
def test_pairs_of_one_place_have_their_own_solutions(k, form, bias):
    X, y = classes_in_a_ring(400, k)
    formulation, alpha, reports = solved(X, y, k, form, True, bias=bias)
    _, alone, others = solved(X, y, k, form, False, bias=bias)
    problem, K = formulation.problem, kernel_values(("rbf", 1.0, 0.0, 3), X, X)
    for part in formulation.parts():
        rows, linear = problem.rows[part], problem.linear[part]
        own = K[np.ix_(rows, rows)]
        found, expected = (objective(own, linear, one[part]) for one in (alpha, alone))
        assert found == pytest.approx(expected, rel=1e-5)
    assert all(one["converged"] for one in reports)
    values = sum(one["kernel_evaluations"] for one in reports)
    assert values == 400 * 401 // 2 < sum(one["kernel_evaluations"] for one in others)


def test_threads_change_no_bit():
    X, y = classes_in_a_ring(500, 5)
    one, three = (solved(X, y, 5, dense_rows, True, threads=n)[1] for n in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_without_memory_for_the_matrix_each_pair_is_solved_for_itself():
    X, y = classes_in_a_ring(500, 4)
    reports = solved(X, y, 4, dense_rows, True, memory=LITTLE)[2]
    assert sum(one["kernel_evaluations"] for one in reports) != 500 * 501 // 2
    assert all(one["converged"] for one in reports)


def test_places_have_to_fit_the_clusters():
    X, y = classes_in_a_ring(50, 3)
    rows = KernelRows(dense_rows(X), Kernel("rbf", 1.0), 1)
    formulation = c_svc_pairs(y.astype(np.int32), np.ones(50), np.ones(3), bias=False)
    with pytest.raises(ValueError, match="one entry per cluster"):
        _core.solve_clusters(
            rows.setup, rows.points, formulation.problem, formulation.start,
            np.arange(formulation.problem.size, dtype=np.int32),
            Iterate.of(np.zeros(formulation.problem.size)), 1e-3, -1, ENOUGH, 1, None,
            place=np.zeros(1, np.int32),
        )  # fmt: skip


@pytest.mark.parametrize("early", [False, True])
def test_a_level_of_many_classes_shares_kernel_values(early):
    X, y = classes_in_a_ring(3000, 6)
    options = {"C": 4, "gamma": 1.0, "levels": 1, "early": early}
    if early:
        options["early_level"] = 1
    shared = dcsvm.train(X, y, **options)
    alone = dcsvm.train(X, y, cache_mb=22, **options)
    assert np.mean(shared.predict(X) == alone.predict(X)) > 0.999
    values = [model.report.levels[0].kernel_evaluations for model in (shared, alone)]
    assert values[0] < 0.5 * values[1]
