"""bcm: the committee of an early level's clusters against Tresp's equations in plain NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from made_models import dense, made_model
from reference import csr_rows, dense_rows, kernel_values, labelled_rows

import dcsvm
from dcsvm.kernel.kernels import Kernel
from dcsvm.model import bcm
from dcsvm.model.pair_weights import PairWeights

KERNELS = {
    "rbf": Kernel("rbf", 0.5),
    "linear": Kernel("linear"),
    "polynomial": Kernel("polynomial", 0.7, 1.0, 2),
}


@pytest.fixture(scope="module")
def T():
    return np.random.default_rng(9).uniform(-1, 1, (100, 3)).astype(np.float32)


def described(kernel):
    return kernel.name, kernel.gamma, kernel.coef0, kernel.degree


def committee(model, T, most=256):
    """Precision and mean of every pair by the paper's equations, with inverses in float64."""
    early, kernel = model.early, described(model.kernel)
    weights = PairWeights(early, model.n_pairs)
    owner, pair, coef = weights.entries()
    columns = []
    for p in range(model.n_pairs):
        prior = np.diag(kernel_values(kernel, T, T))
        means, variances, priors = [], [], []
        for c, rho in enumerate(early.rho[:, p]):
            own = (early.cluster[owner] == c) & (pair == p)
            if np.isnan(rho):
                continue
            S = dense(early.rows)[owner[own]]
            k = kernel_values(kernel, T, S)
            priors.append(-rho)
            means.append(k @ coef[own] - rho)
            chosen = np.arange(min(len(S), most)) * len(S) // max(min(len(S), most), 1)
            G = kernel_values(kernel, S[chosen], S[chosen])
            ridge = 1e-3 * np.mean(np.diag(G)) if len(S) else 0.0
            A = np.linalg.inv(G + ridge * np.eye(len(chosen)))
            k = k[:, chosen]
            variances.append(np.maximum(prior - np.sum((k @ A) * k, axis=1), 1e-3 * prior))
        mean = np.mean(priors) if priors else 0.0
        precision, total = 1 / prior, mean / prior
        for m, v, b in zip(means, variances, priors, strict=True):
            precision = precision + 1 / v - 1 / prior
            total = total + m / v - b / prior
        columns.append(total / precision)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("form", [dense_rows, csr_rows])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_values_are_those_of_the_paper_s_equations(T, k, name, form):
    model = replace(made_model(k, form=form), kernel=KERNELS[name])
    expected = committee(model, T)
    values = model.decision_function(T, method="bcm").reshape(expected.shape)
    assert np.abs(values - expected).max() < 2e-3 * np.abs(expected).max()


def test_a_covariance_is_taken_of_evenly_spaced_support_vectors(T, monkeypatch):
    monkeypatch.setattr(bcm, "LARGEST_COVARIANCE", 5)
    model = made_model(2)
    expected = committee(model, T, most=5)[:, 0]
    assert np.abs(model.decision_function(T, method="bcm") - expected).max() < 2e-3
    assert bcm.some_of(np.arange(20, 40)).tolist() == [20, 24, 28, 32, 36]
    assert bcm.some_of(np.arange(3)).tolist() == [0, 1, 2]


def test_pieces_of_the_rows_do_not_change_a_bit(T, monkeypatch):
    for k in (2, 4):
        model = made_model(k)
        whole = model.decision_function(T, method="bcm")
        monkeypatch.setattr(bcm, "ROWS_AT_ONCE", 7)
        assert model.decision_function(T, method="bcm").tobytes() == whole.tobytes()
        monkeypatch.undo()


def two_blobs(apart, **options):
    X, y = labelled_rows(400, 2, seed=1)
    X[::2] += apart
    return X, dcsvm.train(X, y, C=10, gamma=2, levels=1, branching=2, threads=1, **options)


def test_a_committee_of_one_is_that_one():
    X, model = two_blobs(0, bias=True)
    early = model.early
    own = np.flatnonzero(early.cluster == 0)
    rho = np.where([[True], [False]], early.rho, np.nan)
    early = replace(early, cluster=early.cluster[own], class_=early.class_[own], rho=rho,
                    rows=early.rows.take(own), dual_coef=early.dual_coef[:, own])  # fmt: skip
    alone = replace(model, early=early, exact=None)
    naive = alone.decision_function(X, method="naive")
    assert alone.decision_function(X, method="bcm") == pytest.approx(naive, abs=1e-6)


@pytest.mark.parametrize("bias", [False, True])
def test_clusters_far_away_say_nothing(bias):
    X, model = two_blobs(20, bias=bias)
    early = model.decision_function(X, method="early")
    found = model.decision_function(X, method="bcm")
    # what the cluster does not know of its own rows is left to the prior
    assert np.median(np.abs(found - early)) < 1e-2
    assert np.mean((found > 0) == (early > 0)) > 0.99


def test_the_committee_is_far_better_than_the_naive_sum_with_a_bias(wavy, wavy_test):
    X, y = wavy
    model = dcsvm.train(X, y, C=4, gamma=2, levels=1, branching=10, bias=True, threads=1)
    T, labels = wavy_test
    right = {m: np.mean(model.predict(T, method=m) == labels) for m in ("early", "naive", "bcm")}
    assert right["bcm"] > max(right["naive"], right["early"] - 0.03)


def test_a_regression_has_a_committee_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (600, 1))
    y = np.sin(2 * X[:, 0])
    model = dcsvm.train(X, y, svm_type="epsilon_svr", C=10, gamma=2, levels=1, epsilon=0.01,
                        threads=1)  # fmt: skip
    assert np.abs(model.predict(X, method="bcm") - y).mean() < 0.1


def test_kernels_without_variances_are_refused_in_one_sentence(T):
    model = made_model(3)
    for kernel in (Kernel("sigmoid", 0.1), Kernel("polynomial", 1.0, -1.0, 3)):
        with pytest.raises(ValueError, match="bcm prediction needs a positive semidefinite kernel"):
            replace(model, kernel=kernel).predict(T, method="bcm")
    with pytest.raises(ValueError, match=r"bcm prediction needs K\(x, x\) of the rows to predict"):
        replace(model, kernel=Kernel("precomputed")).predict(T, method="bcm")
    with pytest.raises(ValueError, match="no early level, which bcm prediction needs"):
        replace(model, early=None).predict(T, method="bcm")


def test_rows_of_zeros_and_no_support_vectors_have_values():
    model = replace(made_model(2), kernel=Kernel("linear"))
    assert np.isfinite(model.decision_function(np.zeros((3, 3)), method="bcm")).all()
    early = model.early
    none = np.arange(0)
    early = replace(early, cluster=early.cluster[none], class_=early.class_[none],
                    rows=early.rows.take(none), dual_coef=early.dual_coef[:, none])  # fmt: skip
    model = replace(model, early=early)
    assert np.isfinite(model.decision_function(np.ones((3, 3)), method="bcm")).all()
