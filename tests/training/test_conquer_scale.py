"""Test the unit of the tolerance: problems with small decision values are solved as others are."""

import numpy as np
import pytest
from sklearn.svm import SVR

import dcsvm
from dcsvm.problem.formulation import epsilon_svr, in_folds, nu_svr, one_class

SMALL = 2.0**-17  # a power of 2: products are exact


def surface(n=2000, seed=5):
    X = np.random.default_rng(seed).random((n, 4)).astype(np.float32)
    return X, np.sin(4 * X[:, 0], dtype=np.float64) + X[:, 1] ** 2


def fitted_share(y, predicted):
    return 1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2)


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("early", [False, True])
def test_small_targets_are_fitted(early, shift):
    X, y = surface()
    options = {"C": 1.0, "epsilon": 1e-7, "gamma": 1.0, "early": early}
    y = 1e-5 * y + shift
    model = dcsvm.train(X, y, svm_type="epsilon_svr", **options)
    assert fitted_share(y, model.predict(X)) > 0.99
    assert model.report.converged
    assert model.report.violation_scale == pytest.approx(np.std(y))
    assert model.report.as_dict()["violation_scale"] == model.report.violation_scale


@pytest.mark.parametrize("levels", [0, 2])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_smaller_unit_of_targets_changes_nothing_else(kernel, levels):
    X, y = surface()
    X[::2] += 64 if kernel == "rbf" else 0  # two components, one constraint
    gamma = {"gamma": 1.0} if kernel == "rbf" else {}
    models = [
        dcsvm.train(X, unit * y, svm_type="epsilon_svr", kernel=kernel, C=unit, levels=levels,
                    epsilon=0.01 * unit, **gamma)
        for unit in (1.0, SMALL)
    ]  # fmt: skip
    values, small = (model.predict(X) for model in models)
    assert np.abs(small / SMALL - values).max() < 2e-3
    assert [model.report.usable for model in models] == [True, True]


def test_targets_of_large_deviation_have_the_unit_of_libsvm():
    X, y = surface(400)
    model = dcsvm.train(X, 10 * y, svm_type="epsilon_svr", gamma=1.0)
    assert model.report.violation_scale == 1.0


def test_a_stopped_run_says_whether_small_targets_are_fitted():
    X, y = surface()
    with pytest.warns(UserWarning, match="far from the solution"):
        model = dcsvm.train(X, SMALL * y, svm_type="epsilon_svr", C=1.0, epsilon=0.0, gamma=1.0,
                            max_iterations=1)  # fmt: skip
    assert not model.report.usable


def test_cross_validation_fits_small_targets():
    X, y = surface(600)
    losses = [
        dcsvm.grid_search(X, unit * y, svm_type="epsilon_svr", Cs=[unit], gammas=[1.0],
                          epsilons=[0.01 * unit], folds=3, metric="r2").best_loss
        for unit in (1.0, SMALL)
    ]  # fmt: skip
    assert losses[1] == pytest.approx(losses[0], abs=1e-3)


@pytest.mark.parametrize("nu", [1e-9, 1e-6])
def test_a_small_nu_leaves_few_outliers(nu):
    X = np.random.default_rng(5).random((2000, 4))
    model = dcsvm.train(X, svm_type="one_class", nu=nu, gamma=3.0)
    assert np.mean(model.predict(X) == 1) > 0.97
    assert model.report.violation_scale == pytest.approx(2000 * nu)
    assert model.report.usable


def test_units_of_formulations():
    y, ones = np.array([0.0, 0.02, 0.0, 0.02]), np.ones(4)
    assert epsilon_svr(y, ones, 1.0, 0.1).problem.violation_scale == pytest.approx(0.01)
    assert nu_svr(y, ones, 1.0, 0.5).problem.violation_scale == pytest.approx(0.01)
    weighted = epsilon_svr(y, np.array([1.0, 0.0, 1.0, 2.0]), 1.0, 0.1)
    assert weighted.problem.violation_scale == pytest.approx(0.01)
    # equal up to rounding, and one-class
    assert epsilon_svr(np.full(7, 0.1), np.ones(7), 1.0, 0.1).problem.violation_scale == 1.0
    assert one_class(np.full(10, 0.5), 0.1).problem.violation_scale == 0.5
    assert one_class(ones, 0.5).problem.violation_scale == 1.0


def test_folds_share_the_smallest_unit_rounded_down_to_a_power_of_2():
    def formulate(targets, weights):
        return epsilon_svr(targets, weights, 1.0, 0.1)

    y = np.array([0.0, 0.6, 0.0, 8.0])
    both = in_folds(formulate, y, [np.array([1.0, 1, 1, 0]), np.array([0.0, 1, 1, 1])])
    assert both.problem.violation_scale == 0.25  # of 0.28 and above 1
    assert in_folds(formulate, 9 * y, [np.ones(4)]).problem.violation_scale == 1.0


def test_small_targets_get_the_solution_of_libsvm():
    X, y = surface(500)
    y = 1e-5 * y
    theirs = SVR(C=1e-4, epsilon=1e-7, gamma=1.0, tol=1e-12).fit(X, y)
    ours = dcsvm.train(X, y, svm_type="epsilon_svr", C=1e-4, epsilon=1e-7, gamma=1.0)
    assert np.abs(ours.predict(X) - theirs.predict(X)).max() < 2e-3 * np.std(y)
