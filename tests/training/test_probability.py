"""Test the sigmoid and the Laplace noise against independent optimisers and known cases."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, xlog1py, xlogy

import dcsvm
from dcsvm.model.reader import load_model
from dcsvm.sklearn import SVC
from dcsvm.training.probability import density_marks, fit_sigmoid, laplace_sigma, sigmoid


def loss_of(A, B, values, is_first):
    """Compute Platt's loss from its definition."""
    n_first = is_first.sum()
    n_other = len(values) - n_first
    target = np.where(is_first, (n_first + 1) / (n_first + 2), 1 / (n_other + 2))
    p = expit(-(A * values + B))
    return -np.sum(xlogy(target, p) + xlog1py(1 - target, -p))


def drawn(n, A, B, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    values = scale * rng.standard_normal(n)
    return values, rng.random(n) < expit(-(A * values + B))


@pytest.mark.parametrize(
    ("n", "A", "B", "scale"),
    [(2000, -2, 0.5, 1), (500, -0.5, -3, 1), (300, 0, 0, 1), (1000, -1.5, 0, 1), (50, -40, 3, 0.05),
     (400, -0.01, 0.3, 200)],
)  # fmt: skip
def test_the_fit_is_the_minimum_an_independent_optimiser_finds(n, A, B, scale):
    values, is_first = drawn(n, A, B, seed=n, scale=scale)
    fitted = fit_sigmoid(values, is_first)
    best = minimize(lambda at: loss_of(*at, values, is_first), (0.0, 0.0), method="Nelder-Mead",
                    options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 10_000})  # fmt: skip
    assert loss_of(*fitted, values, is_first) <= best.fun * (1 + 1e-9)
    assert fitted == pytest.approx(tuple(best.x), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_a_centered_fit_is_the_best_without_an_offset(seed):
    values, is_first = drawn(300, -2 + seed, 0.5, seed=seed)
    A, B = fit_sigmoid(values, is_first, centered=True)
    best = minimize(lambda at: loss_of(at[0], 0.0, values, is_first), (0.0,), method="Nelder-Mead",
                    options={"xatol": 1e-9, "fatol": 1e-12})  # fmt: skip
    assert B == 0 and A < 0
    assert pytest.approx(min(best.x[0], -1e-12), rel=1e-4, abs=1e-5) == A


def test_values_that_say_nothing_give_the_share_of_the_classes():
    A, B = fit_sigmoid(np.zeros(100), np.arange(100) < 30)
    assert A == 0
    expected = (30 * 31 / 32 + 70 * 1 / 72) / 100  # the mean of the regularised targets
    assert sigmoid(np.zeros(1), A, B)[0] == pytest.approx(expected, abs=1e-6)


def test_separable_values_stop_at_the_regularised_targets():
    values = np.repeat([2.0, -2.0], [40, 60])
    A, B = fit_sigmoid(values, values > 0)
    assert sigmoid(values[[0, -1]], A, B) == pytest.approx([41 / 42, 1 / 62], abs=1e-5)


@pytest.mark.parametrize("n_first", [0, 5])
def test_one_class_is_likely_but_not_certain(n_first):
    values = np.linspace(-1, 1, 5)
    p = sigmoid(values, *fit_sigmoid(values, np.arange(5) < n_first))
    assert np.allclose(p, 6 / 7 if n_first else 1 / 7, atol=1e-5)


def test_huge_values_neither_overflow_nor_warn():
    values = np.array([1e6, -1e6, 3e5, -2e5, 1e4, -1e4])
    with np.errstate(all="raise", under="ignore"):
        A, B = fit_sigmoid(values, np.array([True, False, True, False, False, True]))
        p = sigmoid(np.array([1e300, -1e300]), A, B)
    assert A < 0
    assert np.array_equal(p, [1.0, 0.0])


@pytest.mark.parametrize(
    ("values", "is_first", "message"),
    [([1.0, np.nan], [True, False], "finite"), ([1.0], [True, False], "do not fit"),
     ([], [], "do not fit")],
)  # fmt: skip
def test_values_that_cannot_be_fitted_are_refused(values, is_first, message):
    with pytest.raises(ValueError, match=message):
        fit_sigmoid(np.array(values), np.array(is_first, bool))


def test_sigma_is_the_maximum_of_the_likelihood_where_nothing_lies_far_out():
    residuals = np.random.default_rng(1).uniform(-3, 3, 500)
    best = minimize(lambda s: 500 * np.log(2 * s[0]) + np.abs(residuals).sum() / s[0], [1.0],
                    method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-10})  # fmt: skip
    assert laplace_sigma(residuals) == pytest.approx(best.x[0], rel=1e-6)


def test_sigma_leaves_out_what_is_beyond_five_standard_deviations():
    residuals = np.array([1.0, -1.0] * 50 + [1000.0])
    assert laplace_sigma(residuals) == 1.0
    # mean 11/6: five standard deviations are 12.96
    assert laplace_sigma(np.array([1.0, -1.0, 1.0, 1.0, -1.0, 6.0])) == pytest.approx(11 / 6)


def test_sigma_of_nothing():
    assert laplace_sigma(np.zeros(4)) == 0.0
    with pytest.raises(ValueError, match="without residuals"):
        laplace_sigma(np.array([]))


@pytest.mark.parametrize("centered", [False, True])
def test_a_sigmoid_that_would_fall_has_no_offset(centered):
    values, is_first = drawn(1000, 1.5, 0.5, seed=3)
    A, B = fit_sigmoid(values, is_first, centered=centered)
    assert fit_sigmoid(values, is_first, centered=True) == (A, B)
    assert A < 0 and B == 0
    # exactly where the best sigmoid of all would fall
    for seed in range(20):
        values, is_first = drawn(30, 0, 1, seed=seed)
        best = minimize(lambda at, v, f: loss_of(*at, v, f), (0.0, 0.0), (values, is_first),
                        method="Nelder-Mead")  # fmt: skip
        assert (best.x[0] > 0) == (fit_sigmoid(values, is_first)[1] == 0)


def noise(labels, n=40, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.choice(labels, n)


def test_two_rows_have_the_probabilities_of_their_labels_and_a_warning():
    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    for bias in (True, False):
        with pytest.warns(UserWarning, match="contradict the labels 1 and -1"):
            model = dcsvm.train(X, y, kernel="linear", bias=bias, probability=True)
        shares = model.predict_probability(X)
        assert np.array_equal(model.labels[shares.argmax(axis=1)], model.predict(X))
        assert np.allclose(shares, 0.5)


def test_contradicted_pairs_are_named():
    X, y = noise(["a", "b", "c"], 90)
    y[X[:, 0] > 0] = "c"  # only a and b have no pattern
    with pytest.warns(UserWarning, match="contradict the labels 'a' and 'b'|'b' and 'a'") as said:
        dcsvm.train(X, y, gamma=0.01, probability=True)
    assert "'c'" not in str(said[0].message)
    with pytest.warns(UserWarning, match=r"contradict the labels classes_\[0\] and classes_\[1\]"):
        SVC(gamma=0.01, probability=True, random_state=0).fit(X, y)


def marks_of(values):
    """Compute the marks of LIBSVM from their definition, on unweighted values."""
    negative, others = np.sort(values[values < 0]), np.sort(values[values >= 0])
    starts = [negative[i * len(negative) // 5] for i in range(5)]
    ends = [others[i * len(others) // 5 - 1] for i in range(1, 6)]
    points = np.array([*starts, 0.0, *ends])
    return (points[1:] + points[:-1]) / 2


@pytest.mark.parametrize("n", [12, 23, 57, 200])
def test_marks_divide_each_side_into_fifths(n):
    rng = np.random.default_rng(n)
    values, copies = rng.normal(size=n), rng.integers(2, 5, n)
    each = np.repeat(values, copies)
    assert np.array_equal(density_marks(each, np.ones(len(each))), marks_of(each))
    assert np.array_equal(density_marks(values, copies.astype(float)), marks_of(each))


def test_marks_need_five_rows_on_each_side():
    values = np.array([-1.0] * 4 + [1.0] * 50)
    assert density_marks(values, np.ones(54)) is None
    assert density_marks(np.empty(0), np.empty(0)) is None
    with pytest.warns(UserWarning, match="5 training rows with a negative"):
        model = dcsvm.train(noise([0])[0][:8], svm_type="one_class", probability=True)
    assert model.probability is None
    with pytest.raises(ValueError, match="has no probabilities"):
        model.predict_probability(np.zeros((1, 3)))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_one_class_model_has_the_marks_of_its_training_rows(kernel, tmp_path):
    X = noise([0], 300)[0] + 2
    X[100:150] = X[:50]  # merged rows count twice
    model = dcsvm.train(X, svm_type="one_class", nu=0.25, kernel=kernel, probability=True,
                        tolerance=1e-7)  # fmt: skip
    values = model.decision_function(X)
    is_at_boundary = np.abs(values) < 1e-4
    assert np.all(np.diff(model.probability.A) >= 0)
    if not is_at_boundary.any():
        assert np.allclose(model.probability.A, marks_of(values), rtol=1e-6)
    for format in ("dcsvm", "libsvm"):
        model.save(tmp_path / "m", format)
        assert "prob_density_marks " in (tmp_path / "m").read_text()
        assert load_model(tmp_path / "m").probability.A.tobytes() == model.probability.A.tobytes()
    shares = model.predict_probability(X)
    expected = (values[:, None] >= model.probability.A).sum(axis=1) / 10
    assert np.array_equal(shares[:, 0], np.clip(expected, 0.001, 0.999))
    assert np.array_equal(shares[:, 1], 1 - shares[:, 0])
