"""Test rows predicted one by one against the same rows in a batch."""

from dataclasses import replace

import numpy as np
import pytest
from made_models import made_model
from reference import kernels_with, labelled_rows

import dcsvm
from dcsvm.data.rows import Rows
from dcsvm.model import predict

METHODS = ("exact", "early")


def alone(model, X, method):
    found = [model.few_values(row[None], method) for row in X]
    assert all(values is not None for values in found)
    return np.concatenate(found)


def coded(n, seed):
    """Return rows of three classes with two numeric and five one-hot columns."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 7), np.float32)
    X[:, :2] = rng.uniform(-1, 1, (n, 2))
    X[np.arange(n), 2 + rng.integers(0, 5, n)] = 1
    y = np.digitize(X[:, 0] * X[:, 1] + 0.2 * X[:, 3], [-0.2, 0.2])
    return X, y


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gamma", [0.01, 2.0])  # flat, and not
def test_a_row_alone_has_the_values_it_has_among_others(wavy, wavy_test, method, gamma):
    model = dcsvm.train(*wavy, C=4, gamma=gamma, levels=2, branching=3, overlap=1.5, threads=1)
    expected = model.pair_values(Rows.from_array(wavy_test[0]), method, 1)
    assert np.array_equal(alone(model, wavy_test[0], method), expected)
    for rows in (wavy_test[0], wavy_test[0].astype(float), np.asfortranarray(wavy_test[0])):
        assert np.array_equal(model.decision_function(rows[:3], method=method), expected[:3, 0])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gamma", [1e-7, 1e-5])  # flat, and not
def test_bytes_and_several_classes(method, gamma):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (1500, 33)).astype(np.float32)
    y = np.digitize(X[:, 0] + X[:, 1] - X[:, 2], [60, 200])
    model = dcsvm.train(X, y, C=4, gamma=gamma, levels=1, branching=4, overlap=1.5, threads=1)
    assert getattr(model, method).rows.is_bytes
    T = rng.integers(0, 256, (200, 33)).astype(np.float32)
    expected = model.pair_values(Rows.from_array(T), method, 1)
    assert np.array_equal(alone(model, T, method), expected, equal_nan=True)
    T[::2, 5] += 0.5  # no longer bytes
    expected = model.pair_values(Rows.from_array(T), method, 1)
    one_by_one = [model.decision_function(row[None], method=method) for row in T]
    assert np.array_equal(np.concatenate(one_by_one), expected, equal_nan=True)


def test_bytes_meet_evenly_spaced_vectors():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (500, 33)).astype(np.float32)
    model = dcsvm.train(X, np.digitize(X[:, 0], [60, 200]), C=4, gamma=1e-5, threads=1)
    Z = (3 * rng.integers(-60, 150, model.exact.rows.dense.shape)).astype(np.float32)
    model = replace(model, exact=replace(model.exact, rows=Rows(*Z.shape, dense=Z)))
    T = rng.integers(0, 256, (100, 33)).astype(np.float32)
    expected = model.pair_values(Rows.from_array(T), "exact", 1)
    assert np.array_equal(alone(model, T, "exact"), expected)


@pytest.mark.parametrize("method", METHODS)
def test_codes_and_several_classes(method):
    X, y = coded(2000, 0)
    model = dcsvm.train(X, y, C=4, gamma=1, levels=1, branching=4, overlap=1.5, probability=True)
    assert getattr(model, method).rows.is_dense
    T = coded(300, 1)[0]
    expected = model.pair_values(Rows.from_array(T), method, 1)
    assert np.array_equal(alone(model, T, method), expected, equal_nan=True)
    one_by_one = np.concatenate([model.predict(row[None], method=method) for row in T])
    assert np.array_equal(one_by_one, model.predict(T, method=method))
    sure = np.concatenate([model.predict_probability(row[None], method=method) for row in T[:50]])
    assert np.array_equal(sure, model.predict_probability(T, method=method)[:50])
    T[0, 2:] = 1  # does not fit the code
    assert model.few_values(T[:1], method) is None
    assert np.array_equal(
        model.decision_function(T[:2], method=method), model.decision_function(T, method=method)[:2]
    )


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("method", METHODS)
def test_clusters_without_a_model_of_a_pair(k, method):
    model = made_model(k)
    X = np.random.default_rng(1).uniform(-1, 1, (100, 3)).astype(np.float32)
    expected = model.pair_values(Rows.from_array(X), method, 1)
    assert np.array_equal(alone(model, X, method), expected, equal_nan=True)


def test_a_compressed_early_model(wavy, wavy_test):
    early = dcsvm.train(*wavy, C=4, gamma=2, early=True, early_level=1, branching=4)
    small = early.compress(wavy[0], vectors=40, steps=20)
    expected = small.pair_values(Rows.from_array(wavy_test[0]), "early", 1)
    assert np.array_equal(alone(small, wavy_test[0], "early"), expected)


@pytest.mark.parametrize("kernel", [one.name for one in kernels_with()])
def test_other_kernels_have_the_same_values(wavy, wavy_test, kernel):
    model = dcsvm.train(*wavy, kernel=kernel, gamma=0.1, coef0=1, degree=2, levels=0, threads=1)
    expected = model.decision_function(wavy_test[0])
    found = [model.decision_function(row[None])[0] for row in wavy_test[0][:50]]
    assert np.array_equal(found, expected[:50])


def test_what_is_wrong_with_a_row_is_told(trained):
    model = trained[0]
    row = np.zeros((1, 4))
    assert model.predict(row).shape == (1,)
    for bad, words in (
        (row[:, :3], "rows have 3 features"),
        (row * np.nan, "not a finite float32"),
        (row[0], "array of 1 dimensions"),
        (row.astype(str), "expected real numbers"),
    ):
        for method in METHODS:
            with pytest.raises(ValueError, match=words):
                model.predict(bad, method=method)
    with pytest.raises(ValueError, match="threads"):
        model.predict(row, threads=0)
    with pytest.raises(ValueError, match="method must be"):
        model.predict(row, method="fast")
    with pytest.raises(ValueError, match="has no probabilities"):
        model.predict_probability(row)
    assert model.predict(np.zeros((0, 4))).shape == (0,)


def test_a_large_model_is_not_copied(wavy, monkeypatch):
    model = dcsvm.train(*labelled_rows(400), levels=0)
    monkeypatch.setattr(predict, "COPY_BYTES", 100)
    assert model.few_values(wavy[0][:1], "exact") is None
    assert len(model.predict(wavy[0][:1])) == 1
