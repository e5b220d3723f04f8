"""Test predictions of many rows with many support vectors: omitted kernel values, against all of
them in NumPy float64."""

import copy
import gc
import pickle
import weakref
from dataclasses import replace

import numpy as np
import pytest
from reference import dense_rows

from dcsvm.kernel.kernels import Kernel
from dcsvm.model import predict
from dcsvm.model.model import Model
from dcsvm.model.parts import ExactModel

N_SUPPORT, N_TARGETS = 2500, 1700


def numeric(rng, n):
    return rng.uniform(-1, 1, (n, 3)).astype(np.float32)


def coded(rng, n):
    """Return two numeric columns, then one-hot groups of 5 and 4; the last column is always 0."""
    groups = [np.eye(5)[rng.integers(5, size=n)], np.eye(4)[rng.integers(3, size=n)]]
    return np.hstack([rng.uniform(-1, 1, (n, 2)), *groups]).astype(np.float32)


def breaking(rng, n):
    """Return coded() with changes: rows that do not fit the code, and values in the last column."""
    X = coded(rng, n)
    X[::7, 2:4] = 1
    X[1::7, 4] = 0.5
    X[2::7, 10] = 0.25
    X[3::7, 2:] = 0
    return X


def integers(rng, n):
    return rng.integers(0, 16, (n, 20)).astype(np.float32)


def model_of(X, gamma, *, k=2, svm_type="c_svc", bias=True, seed=0):
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=(k - 1, len(X))) * (rng.random((k - 1, len(X))) < 0.9)
    n_sv = np.bincount(np.sort(rng.integers(0, k, len(X))), minlength=k)
    exact = ExactModel(dense_rows(X), coef, bias * rng.normal(size=k * (k - 1) // 2),
                       n_sv, np.arange(len(X)))  # fmt: skip
    labels = np.arange(k) * 1.0 if svm_type == "c_svc" else np.empty(0)
    return Model(Kernel("rbf", gamma), labels, exact, None, svm_type)


def float64_values(model, T):
    """Return (decision values, sum of |coefficient| K) of all pairs, float64 (n, n_pairs)."""
    X, T = model.exact.rows.dense.astype(np.float64), T.astype(np.float64)
    squared = (T**2).sum(axis=1)[:, None] + (X**2).sum(axis=1) - 2 * T @ X.T
    K = np.exp(-model.kernel.gamma * np.maximum(squared, 0))
    owner, pair, coef = model.predictor("exact").entries()
    W = np.zeros((len(X), model.n_pairs))
    W[owner, pair] = coef
    return K @ W - model.exact.rho, K @ np.abs(W)


def leaves_out(model, n_targets=N_TARGETS):
    return model.predictor("exact").skipping(n_targets, 1) is not None


def bound(model):
    return predict.LEFT_OUT * np.abs(model.exact.dual_coef).max()


def all_values(model, T, monkeypatch):
    """Return (decision values, predictions) from all kernel values, in float32."""
    with monkeypatch.context() as patch:
        patch.setattr(predict, "MIN_TARGETS", 10**9)
        return model.decision_function(T), model.predict(T)


CASES = [
    (numeric, numeric, 100.0, True),
    (numeric, numeric, 0.1, False),
    (coded, coded, 30.0, True),
    (coded, breaking, 30.0, True),
    (coded, breaking, 0.1, False),
    (integers, integers, 0.01, False),
]


@pytest.mark.parametrize(("support", "targets", "gamma", "is_near"), CASES)
@pytest.mark.parametrize("k", [2, 4])
def test_values_are_those_of_all_kernel_values_up_to_the_bound(
    support, targets, gamma, is_near, k, monkeypatch
):
    rng = np.random.default_rng(1)
    model, T = model_of(support(rng, N_SUPPORT), gamma, k=k), targets(rng, N_TARGETS)
    assert leaves_out(model) == is_near
    values = model.decision_function(T, threads=1)
    assert np.array_equal(values, model.decision_function(T, threads=2))
    whole, predicted = all_values(model, T, monkeypatch)
    assert np.abs(values - whole).max() <= bound(model)
    assert np.array_equal(np.sign(values), np.sign(whole))
    exact, size = float64_values(model, T)
    rounding = 1e-5 * size + bound(model)
    assert (np.abs(values.reshape(exact.shape) - exact) <= rounding).all()
    sure = (np.abs(exact) > rounding).all(axis=1)
    assert sure.mean() > 0.95
    assert np.array_equal(model.predict(T), predicted)


@pytest.mark.parametrize("svm_type", ["one_class", "epsilon_svr"])
def test_models_without_classes_leave_out_no_more(svm_type, monkeypatch):
    rng = np.random.default_rng(2)
    model, T = model_of(numeric(rng, N_SUPPORT), 80.0, svm_type=svm_type), numeric(rng, N_TARGETS)
    assert leaves_out(model)
    predicted, (_, whole) = model.predict(T), all_values(model, T, monkeypatch)
    assert np.abs(predicted - whole).max() <= (0 if svm_type == "one_class" else bound(model))


def test_rows_that_are_far_from_all_get_the_sign_of_all_kernel_values(monkeypatch):
    rng = np.random.default_rng(3)
    model = model_of(numeric(rng, N_SUPPORT), 60.0, bias=False)
    T = numeric(rng, N_TARGETS) * np.float32(1.8)
    values, (whole, _) = model.decision_function(T), all_values(model, T, monkeypatch)
    assert leaves_out(model) and (np.abs(whole) < bound(model)).mean() > 0.1
    assert np.array_equal(np.sign(values), np.sign(whole))
    exact, size = float64_values(model, T)
    sure = np.abs(exact) > 1e-4 * size + 1e-32  # float32 has no smaller kernel values
    assert np.array_equal(np.sign(values[:, None])[sure], np.sign(exact)[sure])


def test_rows_near_a_sign_have_all_kernel_values(monkeypatch):
    rng = np.random.default_rng(5)
    model, T = model_of(numeric(rng, N_SUPPORT), 60.0), numeric(rng, N_TARGETS)
    whole, _ = all_values(model, T, monkeypatch)
    monkeypatch.setattr(predict, "LEFT_OUT", 0.02)
    values, is_near = model.decision_function(T), np.abs(whole) <= bound(model)
    assert leaves_out(model) and 50 < is_near.sum() < N_TARGETS / 2
    assert np.array_equal(values[is_near], whole[is_near])
    assert 0 < np.abs(values - whole).max() <= bound(model)


def test_few_rows_or_few_support_vectors_are_computed_whole():
    rng = np.random.default_rng(4)
    assert not leaves_out(model_of(numeric(rng, N_SUPPORT), 100.0), 999)
    assert not leaves_out(model_of(numeric(rng, 100), 100.0))


@pytest.mark.parametrize(("support", "targets"), [(coded, breaking), (integers, numeric)])
def test_a_row_is_computed_as_it_is_alone(support, targets):
    """Whether a row is encoded does not depend on the other rows."""
    rng = np.random.default_rng(5)
    model, T = model_of(support(rng, 300), 0.5), support(rng, 40)
    other = targets(rng, 40)
    T[::3, : other.shape[1]] = other[::3]
    alone = [model.decision_function(T[i : i + 1])[0] for i in range(len(T))]
    assert np.array_equal(model.decision_function(T), alone)


# -------------------------------------------------------------------------------------- caching


def test_support_vectors_are_prepared_once_and_given_up_with_the_model():
    rng = np.random.default_rng(6)
    model, T = model_of(coded(rng, 300), 0.5), coded(rng, 5)
    first = model.decision_function(T)
    predictor = model.predictor()
    assert predictor is model.predictor() and predictor is replace(model).predictor()
    for copied in (copy.copy(model.exact), pickle.loads(pickle.dumps(model.exact))):
        assert vars(copied).keys() == vars(replace(model.exact)).keys()
        assert np.array_equal(replace(model, exact=copied).decision_function(T), first)
    wider = replace(model, kernel=Kernel("rbf", 2.0))
    exact, _ = float64_values(wider, T)
    np.testing.assert_allclose(wider.decision_function(T), exact[:, 0], atol=1e-4)
    gc.disable()  # nothing refers to itself in a circle, so the memory is free at once
    try:
        rows = weakref.ref(model.exact.rows)
        del model, wider, copied, predictor
        assert rows() is None
    finally:
        gc.enable()
