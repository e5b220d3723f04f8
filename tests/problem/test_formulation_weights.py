"""Test that a sample weight acts as copies of a row, 0 as no row, for every problem type."""

import numpy as np
import pytest
import scipy.sparse
from reference import TYPES, certificate, csr_rows, dense_rows, full_alpha, kernel_values, objective
from runs import train_rows

import dcsvm
from dcsvm.data.arrays import as_weights
from dcsvm.problem.formulation import BoxQP, fill
from dcsvm.problem.options import TrainOptions
from dcsvm.training.probability import fit_sigmoid, laplace_sigma

GAMMA = 1.5
TYPES = TYPES | {"one_class, all of it": {"svm_type": "one_class", "nu": 1.0}}


def problem_for(name, n=400, seed=0, repeats=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3)).astype(np.float32)
    X[n - repeats :] = X[rng.integers(0, n - repeats, repeats)]
    if "svr" in name:
        y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2]
    else:
        y = np.floor(2.3 * X[:, 0] + 1.7 * X[:, 1] + 0.2 * rng.standard_normal(n)) % 3 + 1
        y[n - repeats :] = np.floor(2.3 * X[:, 0] + 1.7 * X[:, 1])[n - repeats :] % 3 + 1
    return X, y, rng


def solved(rows, y, weights=None, **options):
    chosen = {"C": 4.0, "gamma": GAMMA, "threads": 2, "cache_mb": 50, "tolerance": 1e-5} | options
    return train_rows(rows, y, TrainOptions(**chosen), sample_weight=weights)


@pytest.mark.parametrize("form", [dense_rows, csr_rows])  # CSR rows are not merged
@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("name", TYPES)
def test_a_weight_is_as_many_copies_of_the_row(name, levels, form):
    X, y, rng = problem_for(name)
    weights = rng.integers(0, 4, len(y))
    again = np.repeat(np.arange(len(y)), weights)
    options = TYPES[name] | {"levels": levels}
    model, report = solved(form(X), y, weights.astype(float), **options)
    copied, expected = solved(form(X[again]), y[again], **options)
    assert report.converged and expected.converged
    assert len(report.problems) == len(expected.problems)
    for ours, theirs in zip(report.problems, expected.problems, strict=True):
        accuracy = 1e-3 if name == "nu_svc" else 1e-6  # nu-SVC's has the margin squared
        assert ours.objective == pytest.approx(theirs.objective, rel=accuracy)
        assert ours.rho == pytest.approx(theirs.rho, abs=1e-3)
        assert (ours.parameter is None) == (theirs.parameter is None)
        if ours.parameter:
            assert ours.parameter[1] == pytest.approx(theirs.parameter[1], rel=1e-3)
    T = rng.random((100, 3))
    assert model.decision_function(T) == pytest.approx(copied.decision_function(T), abs=2e-3)
    assert np.array_equal(model.labels, copied.labels)
    assert np.all(weights[model.exact.row_numbers] > 0)


@pytest.mark.parametrize("name", TYPES)
def test_a_row_of_weight_0_is_as_good_as_not_there(name):
    X, y, rng = problem_for(name, repeats=40)
    y = np.concatenate(([3.0], y[1:]))  # the first row of the first class gets weight 0
    weights = rng.random(len(y)) * 3
    weights[::5] = 0
    kept = np.flatnonzero(weights)
    options = TYPES[name] | {"levels": 1, "probability": not name.startswith("one_class")}
    model, _ = solved(dense_rows(X), y, weights, **options)
    other, _ = solved(dense_rows(X[kept]), y[kept], weights[kept], **options)
    assert model.exact.dual_coef.tobytes() == other.exact.dual_coef.tobytes()
    assert model.exact.rho.tobytes() == other.exact.rho.tobytes()
    assert np.array_equal(model.labels, other.labels)
    assert np.array_equal(model.exact.row_numbers, kept[other.exact.row_numbers])
    if model.probability:
        assert model.probability.A.tobytes() == other.probability.A.tobytes()
    if model.early:
        assert model.early.dual_coef.tobytes() == other.early.dual_coef.tobytes()
        assert np.array_equal(model.early.row_numbers, kept[other.early.row_numbers])
    assert np.array_equal(model.exact.rows.dense, X[model.exact.row_numbers])


@pytest.mark.parametrize("name", TYPES)
def test_weights_of_one_change_no_bit(name):
    X, y, _ = problem_for(name, repeats=40)
    model, _ = solved(dense_rows(X), y, np.ones(len(y)), **TYPES[name])
    other, _ = solved(dense_rows(X), y, **TYPES[name])
    assert model.exact.dual_coef.tobytes() == other.exact.dual_coef.tobytes()


@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("bias", [False, True])
def test_the_solution_of_merged_rows_is_optimal_for_all_of_them(bias, levels):
    """The test computes the bounds itself: C times the weights of the row and of its class."""
    X, y, rng = problem_for("c_svc", n=900, repeats=500)
    y = np.where(y == 1, 1.0, -1.0)
    weights = rng.exponential(size=len(y)) * (rng.random(len(y)) < 0.9)
    model, report = solved(dense_rows(X), y, weights, bias=bias, levels=levels, C=2.0,
                           class_weight={-1.0: 0.25})  # fmt: skip
    assert report.converged and report.n_duplicates > 300
    bound = 2.0 * weights * np.where(y > 0, 1.0, 0.25)
    problem = BoxQP(y, np.where(y > 0, 0, -bound), np.where(y > 0, bound, 0),
                         np.zeros(len(y), np.int8) if bias else None, int(bias))  # fmt: skip
    alpha = full_alpha(model, len(y))
    assert np.all((alpha >= problem.lower) & (alpha <= problem.upper))
    violation, gap = certificate(kernel_values(("rbf", GAMMA, 0, 0), X, X), problem, alpha)
    assert violation < 2e-5
    assert gap < 1e-4 * abs(report.objective)
    exact = objective(kernel_values(("rbf", GAMMA, 0, 0), X, X), problem.linear, alpha)
    assert report.objective == pytest.approx(exact, rel=1e-8)
    assert report.duality_gap == pytest.approx(gap, rel=0.05, abs=1e-6 * abs(exact))
    assert report.n_sv == np.count_nonzero(alpha)
    assert report.n_bsv == np.count_nonzero((alpha != 0) & (np.abs(alpha) == bound))
    assert (report.problems[0].n_sv, report.problems[0].n_bsv) == (report.n_sv, report.n_bsv)
    for part in (model.exact, model.early)[: levels + 1]:
        assert np.array_equal(part.rows.dense, X[part.row_numbers])
        assert len(set(part.row_numbers)) == len(part.row_numbers)


def test_weights_multiply_those_of_the_classes():
    X, y, _ = problem_for("c_svc")
    by_class, _ = solved(dense_rows(X), y, class_weight={1.0: 3.0, 3.0: 0.5})
    by_row, _ = solved(dense_rows(X), y, np.select([y == 1, y == 3], [3.0, 0.5], 1.0))
    assert by_row.decision_function(X) == pytest.approx(by_class.decision_function(X), abs=1e-3)


def test_a_precomputed_kernel_keeps_its_serial_numbers():
    X, y, rng = problem_for("c_svc")
    weights = rng.integers(0, 3, len(y)).astype(float)
    K = kernel_values(("rbf", GAMMA, 0, 0), X, X)
    options = {"C": 4.0, "tolerance": 1e-5, "threads": 1, "sample_weight": weights}
    model = dcsvm.train(K, y, kernel="precomputed", **options)
    expected = dcsvm.train(X, y, gamma=GAMMA, **options)
    assert np.array_equal(model.exact.rows.columns, model.exact.row_numbers)
    assert model.decision_function(K) == pytest.approx(expected.decision_function(X), abs=1e-3)


def test_fits_of_probabilities_count_weights_as_copies():
    rng = np.random.default_rng(0)
    values, weights = rng.standard_normal(300), rng.integers(0, 4, 300)
    is_first = rng.random(300) < 1 / (1 + np.exp(-2 * values))
    copied = fit_sigmoid(np.repeat(values, weights), np.repeat(is_first, weights))
    assert fit_sigmoid(values, is_first, weights.astype(float)) == pytest.approx(copied, rel=1e-6)
    values[:3] *= 50
    copied = laplace_sigma(np.repeat(values, weights))
    assert laplace_sigma(values, weights.astype(float)) == pytest.approx(copied)


@pytest.mark.parametrize("name", ["c_svc with bias", "nu_svc", "epsilon_svr", "nu_svr"])
def test_probabilities_are_those_of_copies(name):
    X, y, rng = problem_for(name, n=800)
    weights = rng.integers(1, 3, len(y))
    weights[::7] *= 3
    model, _ = solved(dense_rows(X), y, weights.astype(float), probability=True, **TYPES[name])
    again = np.repeat(np.arange(len(y)), weights)
    copied, _ = solved(dense_rows(X[again]), y[again], probability=True, **TYPES[name])
    if "svr" in name:
        assert 0.5 < model.probability.A[0] / copied.probability.A[0] < 3
        return
    T = rng.random((200, 3))
    # a copy may be in another fold than its row, so predictions of held-out copies are surer
    difference = np.abs(model.predict_probability(T) - copied.predict_probability(T))
    assert difference.mean() < 0.07


def test_sums_of_fractions_fill_every_bound():
    bound = np.full(1000, 0.1)
    assert fill(bound, bound.sum()).tolist() == bound.tolist()
    part = fill(bound, 0.1 * bound.sum())
    assert set(part.tolist()) == {0.0, 0.1}
    assert part.sum() == pytest.approx(10)


def test_weights_may_be_anything_like_numbers():
    X, y, _ = problem_for("c_svc")
    weights = np.arange(len(y)) % 3
    expected = dcsvm.train(X, y, gamma=GAMMA, threads=1, sample_weight=weights.astype(float))
    for given in (weights, weights.tolist(), weights.astype(np.float32)):
        model = dcsvm.train(scipy.sparse.csr_array(X), y, gamma=GAMMA, threads=1,
                            sample_weight=given)  # fmt: skip
        assert model.exact.dual_coef.tobytes() == expected.exact.dual_coef.tobytes()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1, -0.5, 1], r"sample weights must be at least 0, got -0.5 \(row 2\)"),
        ([1, np.nan, 1, 1], r"sample weights must be finite numbers, got nan \(row 1\)"),
        ([1, 1, 1, np.inf], r"sample weights must be finite numbers, got inf \(row 3\)"),
        ([1, 1, 1], r"sample weights must have shape \(4,\), got \(3,\)"),
        (2.0, r"sample weights must have shape \(4,\), got \(\)"),
        ([[1], [1], [1], [1]], r"sample weights must have shape \(4,\), got \(4, 1\)"),
        ([0, 0, 0, 0], "the sum of the sample weights must be positive and finite, got 0"),
        ([1e308] * 4, "the sum of the sample weights must be positive and finite, got inf"),
        ([1, 1, 0, 0], "all rows of class 7 have sample weight 0"),
        (["a", "b", "c", "d"], "sample weights must be numbers, got values of type <U1"),
        (np.ones(4, complex), "sample weights must be numbers, got values of type complex128"),
        (np.ones(4, "M8[D]"), r"sample weights must be numbers, got values of type datetime64"),
        (np.array([1, 1, 1, 1j], object), "sample weights must be numbers, .* type complex"),
        ([1, 1, None, 1], r"sample weights must be finite numbers, got nan \(row 2\)"),
    ],
)
def test_what_cannot_be_weights_is_refused_in_one_sentence(weights, message):
    X, y = np.eye(4), [5, 5, 7, 7]
    with pytest.raises(ValueError, match=message):
        dcsvm.train(X, y, sample_weight=weights)


def test_no_weights_are_ones():
    assert as_weights(None, 3).tolist() == [1.0, 1.0, 1.0]
