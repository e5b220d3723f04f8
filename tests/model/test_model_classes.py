"""Test models made of support vectors, names and orders of their classes, and rows of their own."""

import numpy as np
import pytest
from reference import labelled_rows

import dcsvm
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions


@pytest.fixture(scope="module")
def three():
    X, _ = labelled_rows(200, 3, seed=5)
    return X, np.digitize(X[:, 0], [-0.3, 0.3]).astype(float)


def test_a_model_of_vectors_is_the_model_they_are_from(three):
    X, y = three
    model = dcsvm.train(X, y, C=4, gamma=1.0, probability=True, levels=0)
    exact = model.exact
    made = Model.of_vectors(
        TrainOptions(gamma=1.0), exact.rows.features, exact.dual_coef, exact.rho,
        row_numbers=exact.row_numbers, n_rows=len(X), n_sv=exact.n_sv,
        sigmoids=(model.probability.A, model.probability.B),
    )  # fmt: skip
    assert made.labels.tolist() == [0, 1, 2]
    named = made.with_labels(model.labels)
    assert np.array_equal(named.predict(X), model.predict(X))
    assert np.array_equal(named.predict_probability(X), model.predict_probability(X))
    values = model.pair_values(model.rows_of(X), None, 1)
    assert np.array_equal(model.labels[model.most_voted(values)], model.predict(X))
    assert np.array_equal(model.probabilities_from(values), model.predict_probability(X))
    reduced = model.pair_values(model.rows_of(X), None, 1, model.most_voted)
    assert np.array_equal(reduced, model.most_voted(values))


def test_labels_are_numbers_or_text_or_indices(three):
    model = dcsvm.train(*three, gamma=1.0)
    assert model.with_labels(np.array(["a", "b", "c"])).labels.tolist() == ["a", "b", "c"]
    for other in ([None, 1, "a"], [2**60, 2**60 + 1, 2**60 + 2]):
        assert model.with_labels(np.array(other, object)).labels.tolist() == [0, 1, 2]
    ordered = model.in_label_order(np.array([2.0, 1.0, 0.0]))
    assert np.array_equal(ordered.predict(three[0]), model.predict(three[0]))


def test_models_of_disposable_data_predict(three):
    X, y = three
    expected = dcsvm.train(X, y, gamma=1.0, C=4)
    model = dcsvm.train(dcsvm.Dataset(X, y).disposable(), gamma=1.0, C=4)
    assert model.decision_function(X) == pytest.approx(expected.decision_function(X), abs=1e-2)
    assert np.mean(dcsvm.easy(X, y, time_limit=60, seed=0).predict(X) == y) > 0.8
