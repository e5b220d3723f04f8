"""Test rows with few distinct indices far apart: the same results as with indices 1, 2, 3 and so
on, in the same memory."""

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from runs import cross_validate, train_rows
from scipy import sparse

import dcsvm
from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import part_among
from dcsvm.problem.options import TrainOptions

N_FEATURES = 2**30
FAR = np.unique(np.random.default_rng(5).integers(0, N_FEATURES - 1, 300))
SMALL = {"cache_mb": 30, "threads": 2}


def near_rows(n, seed):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, len(FAR), 0.03, "csr", np.float32, random_state=rng)
    y = np.where(X[:, :150].sum(axis=1).A1 > X[:, 150:].sum(axis=1).A1, 1.0, -1.0)
    return X, y


def far(X):
    return sparse.csr_matrix((X.data, FAR[X.indices], X.indptr), (X.shape[0], N_FEATURES))


def judge(X, y):
    return Rows.from_array(X), y


def assert_same(one, other, X):
    """Require the same bits in models of far and near columns."""
    for part in ("exact", "early"):
        a, b = getattr(one, part), getattr(other, part)
        assert (a is None) == (b is None)
        if a is not None:
            assert np.array_equal(a.dual_coef, b.dual_coef)
            assert np.array_equal(a.rho, b.rho)
            assert a.rows.n_features == N_FEATURES
            assert np.array_equal(a.rows.indices, FAR[b.rows.indices])
    wanted = other.decision_function(X)
    np.testing.assert_allclose(one.decision_function(far(X)), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"kernel": "linear"},
        {"kernel": "polynomial", "coef0": 1.0},
        {"levels": 1, "early_level": 1},
        {"early": True, "levels": 1},
        {"svm_type": "epsilon_svr", "bias": False},
    ],
    ids=str,
)
def test_far_indices_train_in_little_memory_to_the_same_model(how):
    X, y = near_rows(600, 0)
    X_test, _ = near_rows(200, 1)
    options = {"C": 8.0, "gamma": 0.5, **SMALL, **how}
    found = dcsvm.train(far(X), y, **options)
    assert_same(found, dcsvm.train(X, y, **options), X_test)


def test_predicting_far_indices_takes_the_memory_of_near_ones():
    X, y = near_rows(600, 0)
    model = dcsvm.train(far(X), y, gamma=0.5, **SMALL)
    rows = Rows.from_array(far(X))
    tracemalloc.start()
    try:
        replace(model).decision_function(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20e6


def test_the_default_gamma_is_that_of_all_features():
    X, y = near_rows(300, 2)
    model = dcsvm.train(far(X), y, **SMALL)
    assert model.kernel.gamma == 1 / N_FEATURES


def test_other_rows_may_have_other_far_indices():
    X, y = near_rows(1200, 3)
    X_test, y_test = near_rows(300, 4)
    elsewhere = sparse.csr_matrix((np.ones(300, np.float32), (range(300), range(300))))
    wide = sparse.hstack([X_test, elsewhere]).tocsr()
    columns = np.concatenate([FAR, np.setdiff1d(np.arange(400), FAR)[:300]])
    shape = 300, N_FEATURES
    far_test = sparse.csr_matrix((wide.data, columns[wide.indices], wide.indptr), shape)
    options = TrainOptions(C=8.0, gamma=0.5, early=True, branching=2, **SMALL)
    models = [
        train_rows(Rows.from_array(train), y, options, test=judge(test, y_test))
        for train, test in ((far(X), far_test), (X, wide))
    ]
    assert models[0][1].early_choice == models[1][1].early_choice
    assert_same(models[0][0], models[1][0], X)


def test_training_begins_with_a_model_of_far_indices():
    X, y = near_rows(600, 0)
    first = dcsvm.train(far(X[:500]), y[:500], C=8.0, gamma=0.5, **SMALL)
    found = dcsvm.train(far(X), y, C=16.0, gamma=0.5, init_model=first, **SMALL)
    near = dcsvm.train(X[:500], y[:500], C=8.0, gamma=0.5, **SMALL)
    assert_same(found, dcsvm.train(X, y, C=16.0, gamma=0.5, init_model=near, **SMALL), X)
    with pytest.raises(ValueError, match="has other rows"):
        dcsvm.train(X, y, C=16.0, gamma=0.5, init_model=first, **SMALL)


def test_cross_validation_and_grids_take_the_memory_of_near_indices():
    X, y = near_rows(600, 0)
    options = TrainOptions(C=8.0, gamma=0.5, **SMALL)
    found = [cross_validate(Rows.from_array(rows), y, options, 3) for rows in (far(X), X)]
    assert np.array_equal(*found)
    grids = [dcsvm.grid_search(rows, y, Cs=[1, 8], gammas=[0.5, 1], **SMALL)
             for rows in (far(X), X)]  # fmt: skip
    assert np.array_equal(grids[0].table["loss"], grids[1].table["loss"])


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_a_linear_estimator_has_sparse_coefficients_in_little_memory(name):
    sklearn = pytest.importorskip("dcsvm.sklearn")
    X, y = near_rows(80, 0)
    y = np.random.default_rng(0).normal(size=80) if name.endswith("SVR") else y
    estimators = [getattr(sklearn, name)(kernel="linear").fit(one, y) for one in (X, far(X))]
    tracemalloc.start()
    near_values, far_values = (
        one.predict(rows) for one, rows in zip(estimators, (X, far(X)), strict=True)
    )
    coefs = [one.coef_ for one in estimators]
    again = pickle.loads(pickle.dumps(estimators[1]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(far_values, near_values)
    np.testing.assert_array_equal(again.predict(far(X)), near_values)
    assert coefs[1].shape == (1, N_FEATURES) and not coefs[1].data.flags.writeable
    assert np.array_equal(coefs[1].indices, FAR[coefs[0].indices])
    np.testing.assert_array_equal(coefs[1].data, coefs[0].data)
    assert peak < 2e7


@pytest.mark.parametrize("scale", [None, "auto"])
def test_weights_are_learned_of_the_features_in_use(scale):
    X, y = near_rows(40, 0)
    options = {"feature_weights": "learn", "scale": scale, "gamma": 0.1, **SMALL}
    models = [dcsvm.train(one, y, **options) for one in (X, far(X))]
    near, distant = (one.scaling for one in models)  # without a scaling near has unused features
    in_use = np.isin(FAR[near.columns], distant.columns)
    np.testing.assert_array_equal(distant.columns, FAR[near.columns[in_use]])
    np.testing.assert_array_equal(distant.weights, near.weights[in_use])
    values = [one.decision_function(rows) for one, rows in zip(models, (X, far(X)), strict=True)]
    np.testing.assert_allclose(*values, atol=1e-5)


def test_too_many_features_in_use_are_counted():
    X = sparse.csr_matrix(
        (np.ones(1200), np.arange(1200) * 10_000, [0, 700, 1200]), shape=(2, 2**30)
    )
    with pytest.raises(ValueError, match="at most 1000 features, got 1200"):
        dcsvm.train(X, [0, 1], feature_weights="learn")


def test_rows_are_compared_in_little_memory():
    rows = Rows.from_array(far(near_rows(200, 0)[0]))
    tracemalloc.start()
    assert part_among(rows, rows) == 1
    assert rows.mean_squared_distance() > 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e7
