"""Test large C, weights and kernel values: a correct model or a message; negligible weights."""

import numpy as np
import pytest
from reference import c_svc, certificate, dense_rows, full_alpha, kernel_values, with_constraint
from runs import cross_validate

import dcsvm
from dcsvm.kernel.kernels import BeyondFloat32Error
from dcsvm.problem.folds import stratified_folds
from dcsvm.problem.options import TrainOptions

CUBIC = ("polynomial", 1.0, 0.0, 3)


def flowers(n=100, seed=0):
    """Return unscaled rows like iris, of two classes that a cubic hardly separates."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    center = np.array([[5.9, 2.8, 4.3, 1.3], [6.46, 2.96, 5.26, 1.86]])[y]
    spread = np.array([0.5, 0.3, 0.45, 0.2])
    return np.round(center + spread * rng.standard_normal((n, 4)), 1).astype(np.float32), y


def noisy(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)).astype(np.float32)
    return X, np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)


def violation_of(model, kernel, X, y, bound):
    """Recompute in float64 the violation of a model of two classes with a bias."""
    sign = np.where(y == model.labels[0], 1.0, -1.0)
    problem = with_constraint(c_svc(sign, 1.0, bound))
    alpha = np.clip(full_alpha(model, len(y)), problem.lower, problem.upper)
    return certificate(kernel_values(kernel, X, X), problem, alpha)[0]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_cubic_of_raw_rows_is_solved_with_float64_kernel_values(threads):
    X, y = flowers()
    model = dcsvm.train(
        X, y, kernel="polynomial", degree=3, gamma=1.0, C=1000, bias=True, threads=threads
    )
    assert model.report.converged
    assert violation_of(model, CUBIC, X, y, 1000.0) < 1.1e-3
    assert np.mean(model.predict(X) == y) > 0.97
    assert full_alpha(model, len(y)).sum() == pytest.approx(0, abs=1e-9 * 1000 * len(y))


def test_more_rows_than_a_working_set_are_solved_with_float64_kernel_values():
    X, y = flowers(1500)
    model = dcsvm.train(X, y, kernel="polynomial", degree=3, gamma=1.0, C=100, bias=True)
    assert model.report.converged
    assert violation_of(model, CUBIC, X, y, 100.0) < 1.1e-3


@pytest.mark.parametrize("C", [1e11, 1e13, 1e15])
def test_the_bounds_of_a_large_C_move_nothing(C):
    """alpha stays far below every such C."""
    X, y = noisy()
    small, large = (dcsvm.train(X, y, C=one, gamma=1 / 3, bias=True, threads=1) for one in (1e6, C))
    alpha = full_alpha(large, len(y))
    assert abs(alpha.sum()) < 1e-12 * np.abs(alpha).sum()
    assert large.report.converged
    assert violation_of(large, ("rbf", 1 / 3, 0.0, 0), X, y, C) < 1.1e-3
    difference = large.decision_function(X) - small.decision_function(X)
    assert np.abs(difference).max() < 2e-3


@pytest.mark.parametrize("kernel", ["polynomial", "rbf", "linear"])
def test_a_few_rows_of_large_weights_leave_the_sum_as_it_is(kernel):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 3)).astype(np.float32)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(300) > 0, 1.0, -1.0)
    weights = np.ones(300)
    weights[rng.choice(300, 10, replace=False)] = 1e14
    tolerance = 1e-6 if kernel == "linear" else 1e-11
    options = {"kernel": kernel, "gamma": 0.3, "bias": True, "threads": 1, "tolerance": tolerance}
    model = dcsvm.train(X, y, sample_weight=weights, **options)
    alpha = full_alpha(model, len(y))
    assert abs(alpha.sum()) < 1e-12 * np.abs(alpha).sum()
    assert model.report.converged
    assert violation_of(model, (kernel, 0.3, 0.0, 3), X, y, weights) < 1.1e-6


def test_what_no_float64_can_state_is_not_converged():
    X, y = noisy()
    with pytest.warns(UserWarning, match="not converged"):
        model = dcsvm.train(X, y, C=1e15, kernel="linear", bias=True, threads=1)
    assert model.report.violation > 1e-3 and not model.report.usable


def test_held_out_rows_of_a_cubic_are_predicted_in_float64():
    X, y = flowers()
    options = TrainOptions(
        C=1000, kernel="polynomial", degree=3, gamma=1.0, bias=True, threads=1, seed=1
    )
    found = cross_validate(dense_rows(X), y.astype(float), options, 5)
    fold = stratified_folds(y.astype(float), 5, options.seed)
    for k in range(5):
        own, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        model = dcsvm.train(
            X[own], y[own], C=1000, kernel="polynomial", degree=3, gamma=1.0, bias=True, threads=1
        )
        sure = held[np.abs(model.decision_function(X[held])) > 0.05]
        assert np.array_equal(found[sure], model.predict(X[sure]))


# ---------------------------------------------------------------- kernel values beyond float32


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ({"gamma": 1e39}, 1),
        ({"kernel": "polynomial", "gamma": 1e15}, 1),
        ({"kernel": "polynomial", "gamma": 1.0, "degree": 12}, 1e4),
        ({"kernel": "polynomial", "gamma": 1.0, "degree": 3000}, 10),
        ({"kernel": "polynomial", "gamma": 1.0, "coef0": 1e38}, 1),
        ({"kernel": "sigmoid", "gamma": 1e38}, 10),
        ({"kernel": "linear"}, 1e20),
        ({"gamma": 1e-30}, 1e20),
        ({"kernel": "polynomial", "gamma": 1.0, "svm_type": "epsilon_svr"}, 1e13),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, "csr"])
def test_kernel_values_beyond_float32_are_one_sentence(options, times, form):
    import scipy.sparse

    X, y = noisy(50)
    X = times * (X if form is np.asarray else scipy.sparse.csr_matrix(X))
    with pytest.raises(
        BeyondFloat32Error, match=r"are beyond float32, whose largest number is 3.4e\+38"
    ):
        dcsvm.train(X, y, threads=1, **options)


def test_kernel_values_just_inside_float32_are_solved():
    X, y = noisy(50)
    model = dcsvm.train(X, y, kernel="polynomial", gamma=1e11, threads=1, C=1e-30)
    assert model.report.converged and np.all(np.isfinite(model.decision_function(X)))


# ------------------------------------------------------------------------- negligible weights


@pytest.mark.parametrize("svm_type", ["c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr"])
@pytest.mark.parametrize("small", [1e-60, 1e-100, 5e-324])
def test_weights_that_change_no_decision_value_count_as_0(svm_type, small):
    X, y = noisy(300, seed=2)
    weights = np.ones(300)
    weights[:10] = small
    without = np.where(weights < 1, 0.0, weights)
    options = {"svm_type": svm_type, "gamma": 0.5, "threads": 1, "tolerance": 1e-6}
    model, other = (dcsvm.train(X, y, sample_weight=w, **options) for w in (weights, without))
    assert model.report.n_negligible == 10 and other.report.n_negligible == 0
    assert model.exact.row_numbers.min() >= 10
    assert model.decision_function(X) == pytest.approx(other.decision_function(X), abs=1e-5)


def test_a_class_of_weights_that_count_as_0_stays_a_class():
    X, y = noisy(200)
    model = dcsvm.train(X, y, class_weight={1.0: 1e-60}, gamma=0.5, threads=1)
    assert model.report.converged and model.report.n_negligible == np.count_nonzero(y > 0)
    assert sorted(model.labels) == [-1.0, 1.0] and np.all(model.predict(X) == -1)


def test_two_classes_of_equally_small_weights_are_told_apart():
    """Each pair of classes is a separate problem."""
    X, y = noisy(200)
    classes = np.where(X[:, 1] > 1, 3.0, y)
    small = dcsvm.train(X, classes, class_weight={1.0: 1e-60, -1.0: 1e-60}, gamma=0.5, threads=1)
    pair = np.flatnonzero(classes != 3)
    alone = dcsvm.train(X[pair], classes[pair], C=1e-60, gamma=0.5, threads=1)
    assert set(small.labels[:2]) == {1.0, -1.0}  # they form the first pair
    winner = np.where(small.decision_function(X)[:, 0] > 0, *small.labels[:2])
    assert np.array_equal(winner, alone.predict(X))


def test_large_weights_of_a_few_rows_do_not_make_the_others_none():
    X, y = noisy(200)
    weights = np.ones(200)
    weights[:3] = 1e60
    model = dcsvm.train(X, y, sample_weight=weights, gamma=0.5, threads=1)
    assert model.report.n_negligible == 0
