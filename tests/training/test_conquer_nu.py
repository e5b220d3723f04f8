"""Test nu-SVC with a small margin, which is solved as C-SVC."""

import warnings

import numpy as np
import pytest

import dcsvm
from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.training import conquer as nu_path
from dcsvm.training.certificate import Subproblems
from dcsvm.training.conquer import conquer, solve_as_c_svc
from dcsvm.training.engine import prepare_rows
from dcsvm.training.solver import FormulationSolver


def noise(n=2200, n_classes=2):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 3)), (np.arange(n) % n_classes).astype(float)


def classes(n=300, n_classes=3):
    rng = np.random.default_rng(1)
    X = rng.random((n, 2))
    return X, np.floor(n_classes * X[:, 0] + 0.25 * rng.standard_normal(n)).clip(0, n_classes - 1)


def nu_solver(X, y, **options):
    options = TrainOptions(svm_type="nu_svc", threads=1, cache_mb=50, **options)
    return FormulationSolver(prepare_rows(Rows.from_array(X), y, options))


def test_random_classes_have_a_model_with_a_certificate():
    X, y = noise()
    with pytest.warns(UserWarning, match="the margin of nu = 0.9 is .*: solved as C-SVC with C = "):
        model = dcsvm.train(X, y, svm_type="nu_svc", nu=0.9, gamma=0.1, threads=1)
    assert model.report.converged and model.report.violation <= 1e-3
    exact = model.exact
    alpha = np.zeros(len(X))
    alpha[exact.row_numbers] = exact.dual_coef[0]
    X = X.astype(np.float32).astype(np.float64)
    K = np.exp(-0.1 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    C = np.abs(alpha).max()  # some variables are bounded
    assert np.abs(alpha).sum() / (C * len(X)) == pytest.approx(0.9, rel=0.02)
    assert alpha.sum() == pytest.approx(0.0, abs=1e-6 * C * len(X))
    sign = np.where(y == model.labels[0], 1.0, -1.0)
    slope = sign * (K @ alpha) - 1.0
    for own in (sign > 0, sign < 0):
        size = np.abs(alpha[own])
        can_rise, can_fall = size < C * (1 - 1e-9), size > 0
        assert slope[own][can_fall].max() - slope[own][can_rise].min() <= 2.1e-3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_solution_is_that_of_nu_svc(n_classes):
    X, y = classes(n_classes=n_classes)
    found = []
    for as_c_svc in (False, True):
        solver = nu_solver(X, y, nu=0.3, gamma=8.0, tolerance=1e-5)
        conquer(solver)
        assert solver.state.converged.all()
        if as_c_svc:
            parts = Subproblems.of_problems(solver.formulation)
            margins = solver.offsets_and_margins(parts)[1]
            with pytest.warns(UserWarning, match="solved as C-SVC"):
                assert solve_as_c_svc(solver, 3 * margins, conquer)
        found.append((solver.alpha.copy(), solver.gradient.copy()))
    (_, one), (_, other) = found
    assert np.allclose(one, other, atol=0.06 * np.abs(one).max())
    sums = np.add.reduceat(np.abs(found[1][0]), solver.formulation.start[:-1])
    wanted = np.add.reduceat(np.abs(found[0][0]), solver.formulation.start[:-1])
    assert np.allclose(sums, wanted, rtol=0.02)


def test_the_solver_keeps_its_solution_if_no_c_has_this_nu(monkeypatch):
    monkeypatch.setattr(nu_path, "MAX_C", 4.0)
    X, y = classes(n_classes=2)
    solver = nu_solver(X, y, nu=0.05, gamma=2.0)
    alpha = solver.alpha.copy()
    assert not solve_as_c_svc(solver, np.array([1e-3]), conquer)
    assert np.array_equal(solver.alpha, alpha)


def test_the_search_ends_after_a_multiple_of_the_first_work(monkeypatch):
    X, y = classes(n_classes=2)
    solver = nu_solver(X, y, nu=0.3, gamma=8.0)
    conquer(solver)
    alpha = solver.alpha.copy()
    monkeypatch.setattr(nu_path, "MAX_WORK", 0)
    assert not solve_as_c_svc(solver, np.array([1e-6]), conquer)
    assert np.array_equal(solver.alpha, alpha)


def test_nu_svr_that_fits_all_targets_ends_at_a_small_tolerance():
    """Both variables of a row are then free, and rounding makes their gradients differ."""
    rng = np.random.default_rng(2)
    n = int(rng.integers(20, 200))
    X = rng.normal(size=(n, 5))
    y = X @ rng.normal(size=5) * 3 + rng.normal(size=n) * 0.5
    options = {"svm_type": "nu_svr", "kernel": "laplacian", "C": 300.0, "nu": 0.4, "gamma": 0.1}
    model = dcsvm.train(X, y, tolerance=1e-7, threads=1, max_iterations=2_000_000, **options)
    assert model.report.violation < 1e-6
    assert model.report.problems[0].iterations < 1_000_000
    np.testing.assert_allclose(model.predict(X), y, atol=1e-3)


@pytest.mark.parametrize("weight", [1e14, 1e20])
def test_nu_svr_with_huge_weights_keeps_the_iterate_that_fits(weight):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = X[:, 0] + 0.3 * rng.normal(size=80)
    options = {"svm_type": "nu_svr", "gamma": 0.5, "threads": 1, "max_iterations": 500_000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge
        model = dcsvm.train(X, y, sample_weight=np.full(80, weight), **options)
    assert model.exact.rows.n_samples > 70
    np.testing.assert_allclose(model.predict(X), y, atol=0.2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weight", [1e5, 1e14, 1e60])
def test_nu_svc_does_not_depend_on_the_unit_of_the_weights(weight):
    rng = np.random.default_rng(400)
    X = rng.normal(size=(1500, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=1500) > 0, 1.0, -1.0)
    options = {"svm_type": "nu_svc", "nu": 0.3, "gamma": 0.5, "threads": 1}
    ones, heavy = (
        dcsvm.train(X, y, sample_weight=np.full(1500, w), **options) for w in (1.0, weight)
    )
    assert heavy.report.converged
    np.testing.assert_allclose(heavy.decision_function(X), ones.decision_function(X), atol=5e-3)
