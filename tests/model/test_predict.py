"""Test predictions: pairs, votes, absent classes and probabilities against plain NumPy."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from made_models import made_model
from reference import csr_rows, dense, dense_rows, kernel_values

from dcsvm.kernel.kernels import Kernel
from dcsvm.model.model import Model
from dcsvm.model.parts import Probability, coupled, most_voted, pair_probabilities

RBF = ("rbf", 0.5, 0.0, 3)


def values_of(T, rows, class_, coef, rho, k):
    """Compute the decision values of all pairs by LIBSVM's definition of sv_coef."""
    K = kernel_values(RBF, T, dense(rows))
    columns = []
    for pair, (i, j) in enumerate(combinations(range(k), 2)):
        weights = np.where(class_ == i, coef[j - 1], np.where(class_ == j, coef[i], 0))
        columns.append(K @ weights - rho[pair])
    return np.stack(columns, axis=1)


@pytest.fixture(scope="module")
def T():
    return np.random.default_rng(9).uniform(-1, 1, (100, 3)).astype(np.float32)


# ------------------------------------------------------------------------------ decision values


@pytest.mark.parametrize("form", [dense_rows, csr_rows])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_exact_values_are_those_of_every_pair(T, k, form):
    model = made_model(k, form=form)
    exact = model.exact
    expected = values_of(T, exact.rows, exact.class_, exact.dual_coef, exact.rho, k)
    values = model.decision_function(T)
    assert values.shape == ((100,) if k == 2 else (100, k * (k - 1) // 2))
    assert np.abs(values.reshape(expected.shape) - expected).max() < 1e-5


@pytest.mark.parametrize("form", [dense_rows, csr_rows])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_early_values_are_those_of_the_cluster(T, k, form):
    model = made_model(k, form=form)
    early = model.early
    routed = early.partition.assign(form(T), 1)
    assert set(routed) == {0, 1, 2, 3}
    values = model.decision_function(T, method="early").reshape(100, k * (k - 1) // 2)
    for c in range(4):
        own = np.flatnonzero(early.cluster == c)
        part = values_of(T, early.rows.take(own), early.class_[own], early.dual_coef[:, own],
                         early.rho[c], k)  # fmt: skip
        there = routed == c
        assert np.array_equal(np.isnan(values[there]), np.isnan(part[there]))
        assert np.abs(np.nan_to_num(values[there] - part[there])).max() < 1e-5


def test_a_class_that_is_not_in_the_cluster_is_not_predicted(T):
    model = made_model(5)
    routed = model.early.partition.assign(dense_rows(T), 1)
    predicted = model.predict(T, method="early")
    assert set(predicted[routed == 1]) == {model.labels[0]}
    assert set(predicted[routed == 2]) == set(model.labels[3:])
    assert set(predicted[routed == 3]) == {model.labels[0]}  # no votes
    pairs = model.decision_function(T[routed == 1], method="early")
    assert np.array_equal(pairs[:, :4], np.ones_like(pairs[:, :4]))
    assert np.isnan(pairs[:, 4:]).all()


def test_blocks_threads_and_forms_do_not_change_an_answer(T, monkeypatch):
    whole = {}
    for form in (dense_rows, csr_rows):
        model = made_model(4, form=form)
        for at_once, threads in ((65536, 1), (7, 1), (7, 2), (65536, 2)):
            monkeypatch.setattr("dcsvm.model.predict.BATCH_PREDICTED", at_once)
            for method in ("exact", "early"):
                how = {"method": method, "threads": threads}
                answers = (
                    model.decision_function(T, **how),
                    model.predict(T, **how),
                    model.predict_probability(T, **how),
                )
                expected = whole.setdefault((form, method), answers)
                for a, b in zip(answers, expected, strict=True):
                    assert a.tobytes() == b.tobytes()
    assert model.predict(T[:0]).shape == (0,)
    assert model.decision_function(T[:0]).shape == (0, 6)
    assert model.predict_probability(T[:0]).shape == (0, 4)


def test_one_class_and_regression_predict_from_one_value(T):
    exact = replace(made_model(2).exact, n_sv=None)
    parts = Kernel("rbf", 0.5), np.empty(0), exact, None
    values = Model(*parts, "epsilon_svr").predict(T)
    assert values.tobytes() == Model(*parts, "nu_svr").decision_function(T).tobytes()
    signs = Model(*parts, "one_class").predict(T)
    assert np.array_equal(signs, np.where(values > 0, 1.0, -1.0))
    assert set(signs) == {1.0, -1.0}


# --------------------------------------------------------------------------------------- votes


def test_votes_are_counted_and_equal_ones_go_to_the_first_class():
    cases = {
        (1, 1, 1): 0, (1, 1, -1): 0, (-1, 1, 1): 1, (1, -1, -1): 2, (-1, -1, 1): 1,
        (1, -1, 1): 0, (-1, 1, -1): 0,  # one vote per class
        (0, 0, 0): 2, (0, -1, 1): 1,  # zero votes for the second class
        (np.nan, np.nan, np.nan): 0, (np.nan, np.nan, -1): 2, (np.nan, -1, np.nan): 2,
    }  # fmt: skip
    assert most_voted(np.array(list(cases)), 3).tolist() == list(cases.values())


def test_votes_of_many_classes_are_those_of_a_plain_count():
    rng = np.random.default_rng(0)
    k = 7
    values = rng.normal(size=(200, k * (k - 1) // 2))
    votes = np.zeros((200, k), int)
    for pair, (i, j) in enumerate(combinations(range(k), 2)):
        votes[np.arange(200), np.where(values[:, pair] > 0, i, j)] += 1
    assert np.array_equal(most_voted(values, k), votes.argmax(axis=1))


# -------------------------------------------------------------------------------- probabilities


def best_coupling(first, k):
    """Solve the paper's minimisation (41) as a linear system: Qp + b e = 0, e'p = 1."""
    r = np.zeros((k, k))
    for value, (i, j) in zip(first, combinations(range(k), 2), strict=True):
        r[i, j], r[j, i] = value, 1 - value
    system = np.ones((k + 1, k + 1))
    system[:k, :k] = -r * r.T + np.diag((r**2).sum(axis=0))
    system[k, k] = 0
    return np.linalg.solve(system, np.append(np.zeros(k), 1.0))[:k]


@pytest.mark.parametrize("k", [2, 3, 5, 12])
def test_coupled_probabilities_are_near_the_minimum(k):
    rng = np.random.default_rng(k)
    first = rng.uniform(0.02, 0.98, (50, k * (k - 1) // 2))
    p = coupled(first, k)
    assert p.shape == (50, k)
    assert np.abs(p.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(p - [best_coupling(row, k) for row in first]).max() < 0.05 / k


def test_consistent_pairs_couple_to_the_probabilities_they_come_from():
    p = np.array([[0.5, 0.3, 0.15, 0.05], [0.25, 0.25, 0.25, 0.25], [0.97, 0.01, 0.01, 0.01]])
    i, j = np.transpose(list(combinations(range(4), 2)))
    assert np.abs(coupled(p[:, i] / (p[:, i] + p[:, j]), 4) - p).max() < 0.01


def test_pairs_are_logistic_and_never_certain():
    values = np.array([[0.0, 2.0, 1e300, -1e300, np.nan]])
    A, B = np.array([-1.0, -1.5, -2.0, -2.0, -1.0]), np.array([0.5, 0.0, 0, 0, 0])
    with np.errstate(over="raise", invalid="raise"):
        first = pair_probabilities(values, A, B)[0]
    assert np.allclose(first[:2], [1 / (1 + np.exp(0.5)), 1 / (1 + np.exp(-3))])
    assert first[2:].tolist() == [1 - 1e-7, 1e-7, 0.5]


def test_certain_pairs_still_couple():
    for k in (3, 10):
        first = np.where(
            np.random.default_rng(k).random((40, k * (k - 1) // 2)) < 0.5, 1e-7, 1 - 1e-7
        )
        p = coupled(first, k)
        assert np.isfinite(p).all()
        assert np.abs(p.sum(axis=1) - 1).max() < 1e-9


def test_absent_classes_are_improbable_in_early_prediction(T):
    model = made_model(4)
    model = replace(model, probability=Probability(np.full(6, -5.0), np.zeros(6)))
    routed = model.early.partition.assign(dense_rows(T), 1)
    p = model.predict_probability(T, method="early")
    assert p[routed == 1][:, 0].min() > 0.9
    assert p[routed == 2][:, :2].max() < 0.1
    assert np.allclose(p[routed == 3], 0.25)


def test_what_a_model_does_not_have_is_one_sentence(T):
    model = made_model(3)
    with pytest.raises(
        ValueError, match="the model has no probabilities: train it with probability=True"
    ):
        replace(model, probability=None).predict_probability(T)
    regression = replace(model, svm_type="nu_svr", labels=np.empty(0))
    with pytest.raises(ValueError, match="type nu_svr has no class probabilities"):
        regression.predict_probability(T)
    with pytest.raises(ValueError, match="the model has no exact solution"):
        replace(model, exact=None).predict(T, method="exact")
    with pytest.raises(ValueError, match="the model has no early level"):
        replace(model, early=None).predict_probability(T, method="early")
    with pytest.raises(ValueError, match="method must be one of exact, early, got 'x'"):
        model.predict(T, method="x")


# ------------------------------------------------------------------------- values beyond float32

BEYOND = {
    "cubic": (("polynomial", 1.0, 0.0, 3), 1e14),
    "affine square": (("polynomial", 2.0, 1.0, 2), 1e20),
    "linear": (("linear", 1.0, 0.0, 3), 1e30),
    "sigmoid": (("sigmoid", 1e-3, -0.5, 3), 1e38),
    "wide rbf": (("rbf", 1e-41, 0.0, 3), 1e20),
    "wide exponential": (("exponential", 1e-20, 0.0, 3), 1e20),
    "wide laplacian": (("laplacian", 1e-20, 0.0, 3), 1e20),
}


def large_rows(size):
    """Five ordinary rows, and rows of this size whose products with others cancel."""
    rows = np.random.default_rng(2).uniform(-1, 1, (40, 3))
    rows[5:] *= size
    rows[7] = [size, -size, size]
    return rows.astype(np.float32)


def wide_model(kernel, size, form, k=2):
    """A model with vectors of the square root of a size, so that products reach the size."""
    model = made_model(k, form=form)
    scale = np.sqrt(size) if kernel[0] in ("linear", "sigmoid") else 1.0
    rows = form((dense(model.exact.rows) * scale).astype(np.float32))
    own = Kernel(kernel[0], kernel[1], kernel[2], kernel[3])
    return replace(model, kernel=own, exact=replace(model.exact, rows=rows))


@pytest.mark.parametrize("form", [dense_rows, csr_rows])
@pytest.mark.parametrize("name", BEYOND)
def test_rows_whose_kernel_values_leave_float32_are_predicted_in_float64(name, form):
    kernel, size = BEYOND[name]
    model, T = wide_model(kernel, size, form), large_rows(size)
    K = kernel_values(kernel, T.astype(np.float64), dense(model.exact.rows).astype(np.float64))
    expected = K @ model.exact.dual_coef[0] - model.exact.rho[0]
    values = model.decision_function(T)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values[5:], expected[5:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(values[:5], expected[:5], rtol=1e-4, atol=1e-4)
    single = [model.decision_function(row[None])[0] for row in T]  # another path for few rows
    np.testing.assert_array_equal(single, values)


@pytest.mark.parametrize("method", ["exact", "early"])
def test_a_row_near_the_end_of_float32_has_the_same_value_in_every_block(method):
    model = replace(made_model(2), kernel=Kernel("polynomial", 1.0, 0.0, 3))
    rows = np.random.default_rng(3).uniform(-1, 1, (60, 3)) * np.geomspace(1e10, 1e15, 60)[:, None]
    values = model.decision_function(rows, method=method)
    single = [model.decision_function(row[None], method=method)[0] for row in rows]
    np.testing.assert_array_equal(single, values)
    np.testing.assert_array_equal(model.decision_function(rows[:30], method=method), values[:30])


@pytest.mark.parametrize("form", [dense_rows, csr_rows])
def test_early_models_place_and_predict_large_rows_in_float64(form):
    model, size = made_model(3, form=form), 1e14
    model = replace(model, kernel=Kernel("polynomial", 1.0, 0.0, 3))
    early, T = model.early, large_rows(size)
    values = model.decision_function(T, method="early")
    placed = early.partition.place(form(T), 1, second=True, float64=True)
    assert set(placed.nearest) == set(early.partition.assign(form(T / np.float32(1e9)), 1))
    assert not np.isinf(values).any()


def test_kernel_values_beyond_float64_are_an_error():
    model = replace(made_model(2), kernel=Kernel("polynomial", 1.0, 0.0, 9))
    with pytest.raises(ValueError, match="rows to predict are beyond float64: scale the features"):
        model.predict(large_rows(1e37))
