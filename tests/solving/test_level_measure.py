"""Theorem 1's quantities against their definitions, over all pairs of rows."""

import numpy as np
import pytest
from reference import kernel_values, objective

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelRows, Reach
from dcsvm.kernel.kernels import Kernel
from dcsvm.solving import level_measure
from dcsvm.solving.level_measure import LevelMeasure, LevelState, rows_to_measure


@pytest.fixture(scope="module")
def level():
    rng = np.random.default_rng(0)
    X = rng.random((1500, 3)).astype(np.float32)
    data = KernelRows(Rows.from_array(X), Kernel("rbf", 3.0), 1)
    K = kernel_values(("rbf", 3.0, 0, 0), X, X)
    cluster = rng.integers(0, 5, len(X)).astype(np.int32)
    return data, K, cluster


@pytest.mark.parametrize("weight", [1, 3])
def test_the_mass_between_clusters(level, weight):
    data, K, cluster = level
    exact = weight**2 * K[cluster[:, None] != cluster].sum()
    weights, told = np.full(len(K), float(weight)), []
    measure = LevelMeasure(data, _core.Stop(), told.append)
    found = measure.off_diagonal_mass(cluster, weights, np.random.default_rng(1))
    assert sum(told) == level_measure.SAMPLED_ROWS
    assert found == pytest.approx(exact, rel=0.03)


def test_the_objective_of_the_clusters_put_together(level, monkeypatch):
    data, K, cluster = level
    rng = np.random.default_rng(2)
    linear, alpha = np.sign(rng.standard_normal(len(K))), rng.standard_normal(len(K))
    alpha[rng.random(len(K)) < 0.5] = 0
    inside = np.where(cluster[:, None] == cluster, K, 0.0)
    support = np.flatnonzero(alpha)
    inside_objective = objective(inside, linear, alpha)
    state = LevelState(cluster, support, alpha[support], linear[support], inside_objective)
    for most_pairs in (10**10, 0):
        monkeypatch.setattr(level_measure, "MOST_PAIRS", most_pairs)
        told = []
        found = LevelMeasure(data, _core.Stop(), told.append).glued_objective(state, Reach(), rng)
        assert sum(told) == rows_to_measure(state) - level_measure.SAMPLED_ROWS
        assert found == pytest.approx(objective(K, linear, alpha), rel=1e-5)


def test_measuring_stops_when_it_is_asked_to(level):
    data, K, cluster = level
    stop = _core.Stop()
    stop.request()
    measure = LevelMeasure(data, stop, lambda n: None)
    everything = np.arange(len(K))
    state = LevelState(cluster, everything, np.ones(len(K)), np.ones(len(K)), 0.0)
    rng = np.random.default_rng(0)
    with pytest.raises(_core.Stopped):
        measure.off_diagonal_mass(cluster, np.ones(len(K)), rng)
    with pytest.raises(_core.Stopped):
        measure.glued_objective(state, Reach(), rng)
