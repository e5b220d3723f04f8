"""Test `dcsvm.grid_search`: its arguments, metrics, and units of gamma."""

import numpy as np
import pytest
from reference import kernel_values, spots

import dcsvm
from dcsvm.problem.options import TrainOptions
from dcsvm.training.held_out import Grid


@pytest.mark.parametrize("early", [False, True])
def test_labels_that_mean_nothing_are_not_learnt(early):
    X, _ = spots(1500, 2, seed=6)
    y = np.random.default_rng(0).permutation(np.repeat([0.0, 1.0], 750))
    result = dcsvm.grid_search(X, y, Cs=[1, 100], gammas=[1, 100], every=True, early=early)
    assert np.all(np.abs(result.table["loss"] - 0.5) < 0.07)


def test_rows_of_a_kernel_matrix_may_have_no_weight():
    X, y = spots(150, 2, seed=19)
    K = kernel_values(("rbf", 3.0, 0, 0), X, X)
    weight = (np.arange(150) % 3 > 0) * 1.0
    found = dcsvm.grid_search(
        K, y, kernel="precomputed", Cs=[1, 10], sample_weight=weight, every=True
    )
    own = np.flatnonzero(weight)
    fold = TrainOptions().fold_of_rows(y, 5)[own]
    again = dcsvm.grid_search(
        K[np.ix_(own, own)], y[own], kernel="precomputed", Cs=[1, 10], folds=fold, every=True
    )
    assert np.allclose(found.table["loss"], again.table["loss"], atol=0.011)


@pytest.mark.parametrize(
    "given, reason",
    [
        ({"Cs": []}, "the grid has no values of C"),
        ({"Cs": [-1]}, "C must be"),
        ({"gammas": [-1]}, "gamma must be"),
        ({"kernel": "linear", "gammas": [1]}, "the kernel linear has no gamma"),
        ({"epsilons": [1]}, "epsilons require epsilon_svr"),
        ({"svm_type": "one_class"}, "one-class SVM has no C"),
        ({"folds": 2.5}, "folds must be a whole number or an array"),
        ({"folds": np.zeros(60, int)}, "there are no training rows"),
        ({"folds": 1}, "cannot be divided into 1 folds"),
        ({"folds": np.zeros(3)}, "folds must be"),
        ({"folds": np.full(60, -1)}, "no rows are held out"),
        ({"early": True}, "at least 400 different rows"),
        ({"early": True, "early_level": 9}, "early level 9 does not exist"),
    ],
)
def test_what_does_not_fit_is_said(given, reason):
    with pytest.raises(ValueError, match=reason):
        dcsvm.grid_search(*spots(60, 2), **given)


def test_an_unknown_option_is_an_error():
    with pytest.raises(TypeError, match="did you mean 'gamma'"):
        dcsvm.grid_search(*spots(60, 2), gama=1)


def test_a_stop_before_the_first_score_leaves_nothing():
    stop = dcsvm.Stop()
    stop.request()
    with pytest.raises(dcsvm.Stopped):
        dcsvm.grid_search(*spots(60, 2), stop=stop)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "exponential"])
def test_gammas_in_units_of_the_median_are_searched_as_numbers(kernel):
    X, y = spots(200, 2)
    options = {"kernel": kernel, "Cs": [1, 10], "threads": 1}
    units = [0.5, 2, 8]
    numbers = [dcsvm.train(X, y, kernel=kernel, gamma=f"{F}/median").kernel.gamma for F in units]
    found = dcsvm.grid_search(X, y, gammas=units, gamma_unit="median", **options)
    expected = dcsvm.grid_search(X, y, gammas=numbers, **options)
    assert found.scores[0].setting == expected.scores[0].setting
    assert sorted(set(found.table["gamma"])) == numbers
    assert (found.best_gamma, found.best_loss) == (expected.best_gamma, expected.best_loss)


def test_a_gamma_of_the_rows_is_that_of_all_folds():
    X, y = spots(200, 2)
    number = dcsvm.train(X, y, gamma="3/median").kernel.gamma
    first, second = (
        dcsvm.grid_search(X, y, Cs=[1, 10], gamma=one, threads=1) for one in ("3/median", number)
    )
    assert first.best_gamma is None and first.best_loss == second.best_loss
    assert list(first.table["n_sv"]) == list(second.table["n_sv"])


def test_other_units_are_refused():
    X, y = spots(60, 2)
    with pytest.raises(ValueError, match="gamma must be positive and finite, got 1e-200 times 1e-"):
        Grid((1.0,), (1e-200, 1.0)).in_gamma_unit(1e-200)
    with pytest.raises(ValueError, match="gamma_unit must be 'median' or None, got 'mean'"):
        dcsvm.grid_search(X, y, gamma_unit="mean")
    with pytest.raises(ValueError, match="gamma must be a number for kernel sigmoid, got '1/medi"):
        dcsvm.grid_search(X, y, gammas=[1], kernel="sigmoid", gamma_unit="median")


def test_a_metric_of_rows_chooses_the_setting():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 2))
    y = np.where((X[:, 0] > 0.7) ^ (rng.uniform(size=600) < 0.05), 1.0, -1.0)
    grid = {"Cs": [0.01, 1, 100], "gammas": [0.1, 1], "every": True, "threads": 1}
    plain = dcsvm.grid_search(X, y, **grid)
    for options in ({}, {"early": True}):
        found = dcsvm.grid_search(X, y, metric="balanced-accuracy", **grid, **options)
        by_setting = {score.setting: score.loss for score in found.scores}
        lazy = next(one for one in by_setting if one.C == 0.01 and one.gamma == 0.1)
        assert by_setting[lazy] == pytest.approx(0.5, abs=0.02)  # predicts the larger class
        assert found.best_loss < 0.2
    assert next(one.loss for one in plain.scores if one.setting == lazy) < 0.3
    # the classes that are scored may have other shares than those that are trained
    test = X[::3], y[::3] * np.where(np.arange(200) % 2, 1, -1)
    tested = dcsvm.grid_search(
        X, y, metric="balanced-accuracy", Cs=[1], gammas=[1], threads=1, test=test
    )
    predicted = dcsvm.train(X, y, C=1, gamma=1, threads=1).predict(test[0])
    recalls = [np.mean(predicted[test[1] == label] == label) for label in (-1, 1)]
    assert 1 - tested.best_loss == pytest.approx(np.mean(recalls))
    z = X[:, 0] ** 2
    options = {"svm_type": "epsilon_svr", "Cs": [1], "gammas": [1], "threads": 1}
    absolute, squared = (dcsvm.grid_search(X, z, metric=one, **options) for one in ("mae", "mse"))
    assert squared.best_loss < absolute.best_loss**1.5
    reason = "the metric of classes must be one of accuracy, .*, got 'mae'"
    with pytest.raises(ValueError, match=reason):
        dcsvm.grid_search(X, y, metric="mae", Cs=[1])
