"""Test components: the omitted kernel values are negligible and do not change the solution."""

import numpy as np
import pytest
from reference import c_svc, certificate, full_alpha, kernel_values, objective
from runs import train_rows
from scipy.spatial.distance import cdist

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel import row_components
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernel_rows import KernelEvalOptions
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import find_components
from dcsvm.problem.options import TrainOptions
from dcsvm.training.engine import prepare_rows
from dcsvm.training.run import Run, divide


def groups_of(X, distance, smallest=1, threads=2, argument="squared_distance"):
    points = _core.Points(Rows.from_array(X), threads)
    return _core.find_components(points, Cutoff(distance, 0.0, argument), smallest, threads)


METRICS = {"squared_distance": "sqeuclidean", "absolute_distance": "cityblock"}


def assert_apart(X, order, start, distance, argument="squared_distance"):
    assert np.array_equal(np.sort(order), np.arange(len(X)))
    assert start[0] == 0 and start[-1] == len(X) and np.all(np.diff(start) > 0)
    X = X[order].astype(np.float64)
    for first, last in zip(start[:-1], start[1:], strict=True):
        if last < len(X):
            assert cdist(X[first:last], X[last:], METRICS[argument]).min() >= distance


def blobs(n, d, n_blobs, spread, seed=0):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0, 10, size=(n_blobs, d))
    X = centers[rng.integers(n_blobs, size=n)] + rng.normal(0, spread, size=(n, d))
    return X.astype(np.float32)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("distance", [0.01, 0.3, 2.0, 20.0, 500.0])
@pytest.mark.parametrize("argument", METRICS)
def test_rows_of_different_groups_are_as_far_apart_as_said(seed, distance, argument):
    X = blobs(1500, 1 + seed, 12, 0.15, seed)
    assert_apart(X, *groups_of(X, distance, argument=argument), distance, argument)


def test_absolute_distances_separate_more_rows_than_squared_ones():
    X = np.repeat(np.arange(2.0), 500)[:, None] + np.zeros((1000, 9), np.float32)
    X = (0.5 * X).astype(np.float32)  # two points, at the distances 2.25 and 4.5
    assert len(groups_of(X, 4.0)[1]) == 2
    assert len(groups_of(X, 4.0, argument="absolute_distance")[1]) == 3


def test_one_hot_columns_separate():
    rng = np.random.default_rng(0)
    kind = rng.integers(7, size=3000)
    X = np.concatenate([rng.random((3000, 4)), np.eye(7)[kind]], 1).astype(np.float32)
    order, start = groups_of(X, 1.9)
    assert len(start) == 8
    for first, last in zip(start[:-1], start[1:], strict=True):
        assert len(set(kind[order[first:last]])) == 1


@pytest.mark.parametrize("shift", [-1e-6, 0.0, 1e-6])
def test_a_distance_near_the_threshold_is_never_called_larger(shift):
    """The nearest rows of two clouds are at a distance of almost 1."""
    rng = np.random.default_rng(1)
    left = rng.random((300, 2)) * [1, 5] - [1, 0]
    left[:50, 0] = 0
    X = np.concatenate([left, left * [-1, 1] + [1, 0]]).astype(np.float32)
    assert_apart(X, *groups_of(X, 1.0 + shift), 1.0 + shift)


def test_equal_rows_and_extreme_values_are_handled():
    X = np.zeros((500, 3), np.float32)
    assert groups_of(X, 1.0)[1].tolist() == [0, 500]
    X[:200] = 1e30
    X[:10, 1] = np.float32(1e-38)
    assert_apart(X, *groups_of(X, 1.0), 1.0)
    tail = np.geomspace(1e-30, 1e30, 2000, dtype=np.float32).reshape(-1, 1)
    assert_apart(tail, *groups_of(tail, 1e-3), 1e-3)


def test_small_groups_are_put_together():
    X = blobs(4000, 2, 60, 0.01)
    sizes = np.diff(groups_of(X, 0.05, smallest=500)[1])
    assert len(sizes) > 3
    assert sizes[:-1].min() >= 500


def test_the_order_does_not_depend_on_the_number_of_threads():
    X = blobs(20000, 5, 9, 0.3)
    first, other = groups_of(X, 1.0, threads=1), groups_of(X, 1.0, threads=3)
    assert np.array_equal(first[0], other[0]) and np.array_equal(first[1], other[1])


def far_problem():
    X = blobs(2600, 3, 6, 0.2, seed=4)
    y = np.where(np.sin(5 * X[:, 0]) + np.cos(4 * X[:, 1]) > 0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_training_by_groups_gives_the_optimum_of_the_whole(monkeypatch, levels):
    monkeypatch.setattr(row_components, "MIN_COMPONENT", 200)
    X, y = far_problem()
    options = TrainOptions(C=10.0, gamma=8.0, levels=levels, threads=2, tolerance=1e-4)
    model, report = train_rows(Rows.from_array(X), y, options)
    K, problem = kernel_values(("rbf", 8.0, 0, 0), X, X), c_svc(y, 10.0)
    found = find_components(Rows.from_array(X), Kernel("rbf", 8.0), 10.0 * len(X), 1e-4, 1)
    assert found.n_components > 2
    alpha = full_alpha(model, len(X))
    violation, gap = certificate(K, problem, alpha)
    assert report.converged
    assert violation <= 1e-4
    assert report.violation >= violation - 1e-7
    assert report.duality_gap >= gap * (1 - 1e-6) - 1e-9
    exact = objective(K, problem.linear, alpha)
    assert abs(report.objective - exact) <= 1e-7 * abs(exact)
    values = model.decision_function(X)
    assert np.abs(values - K @ alpha).max() <= 1e-4
    if levels:
        assert np.mean(model.predict(X, method="early") == model.predict(X)) > 0.98
        assert np.array_equal(model.early.rows.dense, X[model.early.row_numbers])
    assert np.array_equal(model.exact.rows.dense, X[model.exact.row_numbers])


def test_a_group_that_is_divided_again_is_no_longer_whole(monkeypatch):
    """The early level is solved further than others, and may split a component they left whole."""
    monkeypatch.setattr(row_components, "MIN_COMPONENT", 200)
    X, y = far_problem()
    options = TrainOptions(C=10.0, gamma=8.0, levels=2, early_level=2, threads=1, tolerance=1e-4)
    run = Run(prepare_rows(Rows.from_array(X), y, options))
    sizes = np.diff(run.prepared.row_components.start)
    run.solver.solve(np.arange(len(X), dtype=np.int32), sizes, 0.1)
    run.state.whole_tolerance[:] = 0.1
    divide(run, 2)
    whole = np.flatnonzero(run.is_whole)
    exact, _ = run.solver.gradient_of(whole, KernelEvalOptions(True, run.solver.cutoff))
    assert len(whole) < len(X)
    assert np.allclose(run.solver.gradient[whole], exact, atol=1e-4)


def test_what_is_neglected_is_within_the_budget():
    X, y = far_problem()
    problem, kernel = c_svc(y, 10.0), Kernel("rbf", 8.0)
    found = find_components(Rows.from_array(X), kernel, 10.0 * len(X), 1e-3, 1)
    K = kernel_values(("rbf", 8.0, 0, 0), X, X)[np.ix_(found.order, found.order)]
    group = np.repeat(np.arange(found.n_components), np.diff(found.start))
    between = K[group[:, None] != group]
    assert found.n_components == 1 or between.max() <= found.between.value
    alpha = problem.upper + problem.lower
    assert found.between.value * np.abs(alpha).sum() <= 1e-9 * 1.001


def test_nothing_is_negligible_for_other_kernels_or_a_small_gamma():
    X, y = far_problem()
    rows = Rows.from_array(X)
    for kernel in (Kernel("linear"), Kernel("rbf", 1e-3), Kernel("rbf", 0.0)):
        found = find_components(rows, kernel, 1.0 * len(X), 1e-3, 1)
        assert found.n_components == 1
        assert np.array_equal(found.order, np.arange(len(X)))
        assert found.between.value == 0


def test_a_stop_ends_the_search_for_groups():
    rows = Rows.from_array(np.random.default_rng(0).random((2100, 10)))
    with pytest.raises(_core.Stopped):
        find_components(rows, Kernel("rbf", 1.0), 1e4, 1e-3, 1, _core.Stop(seconds=0))


def test_a_stop_ends_the_preparation():
    X, y = np.random.default_rng(0).random((300, 3)), np.where(np.arange(300) % 2, 1.0, -1.0)
    with pytest.raises(_core.Stopped):
        prepare_rows(Rows.from_array(X), y, TrainOptions(), stop=_core.Stop(seconds=0))
