"""Test naive and BCM prediction in examples/paper against their equations in NumPy."""

import numpy as np
import pytest
from paper import committee
from paper.experiments import prediction
from reference import kernel_values, labelled_rows

import dcsvm


def two_blobs(apart, *, one_class=False):
    X, y = labelled_rows(400, 2, seed=1)
    X[::2] += apart
    if one_class:
        y[::2] = 1
    return X, dcsvm.train(X, y, C=10, gamma=2, levels=1, branching=2, threads=1)


def equations(model, T, most=256):
    """Compute Tresp's mean for each row, with inverses in float64."""
    early, kernel = model.early, ("rbf", model.kernel.gamma, 0, 0)
    precision, total = np.ones(len(T)), np.zeros(len(T))
    for cluster in np.unique(early.cluster):
        own = early.cluster == cluster
        S = early.rows.dense[own]
        k = kernel_values(kernel, T, S)
        chosen = np.arange(min(len(S), most)) * len(S) // min(len(S), most)
        A = np.linalg.inv(kernel_values(kernel, S[chosen], S[chosen]) + 1e-3 * np.eye(len(chosen)))
        explained = np.sum((k[:, chosen] @ A) * k[:, chosen], axis=1)
        variance = np.clip(1 - explained, 1e-3, 1)
        precision += 1 / variance - 1
        total += k @ early.dual_coef[0][own] / variance
    return total / precision


@pytest.mark.parametrize("most", [256, 20])
def test_a_committee_has_the_mean_of_the_equations(most, monkeypatch):
    monkeypatch.setattr(committee, "MAX_COVARIANCE", most)
    X, model = two_blobs(0.7)
    expected = equations(model, X, most)
    assert np.abs(committee.bcm(model, X, 1) - expected).max() < 2e-3 * np.abs(expected).max()


def test_a_naive_sum_has_no_constants_of_clusters_with_one_class():
    X, model = two_blobs(9, one_class=True)
    early = model.early
    assert np.abs(early.rho).max() == 1
    expected = kernel_values(("rbf", 2.0, 0, 0), X, early.rows.dense) @ early.dual_coef[0]
    assert committee.naive(model, X, 1) == pytest.approx(expected, abs=1e-4)


def test_clusters_far_away_do_not_count():
    X, model = two_blobs(20)
    early = model.decision_function(X, method="early")
    # a far cluster has variance 1, the prior's, and adds no precision
    assert np.median(np.abs(committee.bcm(model, X, 1) - early)) < 1e-2
    assert committee.naive(model, X, 1) == pytest.approx(early, abs=1e-5)


def test_the_experiment_has_all_three_methods(tmp_path):
    settings = {
        "problem": {"data": "generated", "rows": 3000, "test_rows": 500},
        "C": 32,
        "kernel": {"name": "rbf", "gamma": 16.0},
        "clusters": 5,
        "threads": 1,
    }
    found = prediction.measure(settings, tmp_path)
    accuracy = {name: found[name]["accuracy"] for name in ("naive", "bcm", "early")}
    assert min(accuracy["bcm"], accuracy["early"]) > max(0.85, accuracy["naive"])
