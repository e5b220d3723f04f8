"""Test the parameter feature_weights of the estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from dcsvm.sklearn import SVC, SVR, NuSVC, NuSVR, OneClassSVM


def rows(n=900, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 10))
    return X, np.where(np.sin(4 * X[:, 0]) + X[:, 1] > 0, "in", "out")


def test_learned_weights_predict_better():
    X, y = rows()
    plain = SVC(kernel="laplacian", C=8, gamma="2/median")
    learned = clone(plain).set_params(feature_weights="learn")
    scores = [cross_val_score(one, X, y, cv=3).mean() for one in (plain, learned)]
    assert scores[1] > scores[0] + 0.02


def test_given_weights_are_those_of_weighted_rows():
    X, y = rows()
    weights = np.r_[2.0, 1.0, np.full(7, 0.5), 0.0]
    ours = SVC(kernel="exponential", C=4, gamma=1.0, feature_weights=weights).fit(X, y)
    other = SVC(kernel="exponential", C=4, gamma=1.0).fit(X * weights, y)
    X_test, _ = rows(300, 1)
    found, expected = ours.decision_function(X_test), other.decision_function(X_test * weights)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.array_equal(ours.support_, other.support_)
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    assert ours.model_.scaling.weights.tolist() == weights[:9].tolist()
    np.testing.assert_allclose(ours.decision_function(X_test[:1]), found[:1], atol=1e-5)


def test_a_regression_has_weights():
    X, _ = rows()
    y = X[:, 0] * X[:, 1]
    ours = SVR(kernel="laplacian", C=8, gamma=0.5, epsilon=0.01, feature_weights="learn").fit(X, y)
    plain = SVR(kernel="laplacian", C=8, gamma=0.5, epsilon=0.01).fit(X, y)
    X_test, _ = rows(300, 1)
    truth = X_test[:, 0] * X_test[:, 1]
    errors = [np.mean((one.predict(X_test) - truth) ** 2) for one in (plain, ours)]
    assert errors[1] < 0.5 * errors[0]


def test_the_nu_problems_have_weights():
    X, y = rows()
    for one in (NuSVC(kernel="laplacian", nu=0.2), NuSVR(kernel="laplacian", nu=0.3, C=8)):
        targets = y if isinstance(one, NuSVC) else X[:, 0] * X[:, 1]
        learned = clone(one).set_params(feature_weights="learn").fit(X, targets)
        weights = learned.model_.scaling.weights
        assert weights[:2].min() > 1.5 * weights[2:].max()
        given = np.r_[2.0, 1.0, np.full(8, 0.5)]
        ours = clone(one).set_params(feature_weights=given).fit(X, targets)
        other = clone(one).set_params(gamma=ours._gamma).fit(X * given, targets)
        X_test, _ = rows(300, 1)
        assert np.array_equal(ours.support_, other.support_)
        assert np.array_equal(ours.predict(X_test), other.predict(X_test * given)) or np.allclose(
            ours.predict(X_test), other.predict(X_test * given), atol=1e-4
        )


def test_other_kernels_and_weights_are_refused():
    X, y = rows(50)
    with pytest.raises(ValueError, match="feature_weights can be learned for a kernel of a dist"):
        SVC(kernel="linear", feature_weights="learn").fit(X, y)
    with pytest.raises(ValueError, match="feature_weights are learned from labels or targets"):
        OneClassSVM(feature_weights="learn").fit(X)
    for kernel in ("precomputed", lambda A, B: A @ B.T):
        with pytest.raises(ValueError, match="feature_weights need features"):
            SVC(kernel=kernel, feature_weights=np.ones(50)).fit(X @ X.T, y)
    with pytest.raises(ValueError, match=r"feature_weights must have shape \(10,\)"):
        SVC(feature_weights=[1.0]).fit(X, y)
