"""Test the cutoff: omitted kernel values stay below their bound, for every kind of rows."""

import numpy as np
import pytest
from reference import c_svc, certificate, full_alpha, kernel_values
from runs import train_rows

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import Cutoff
from dcsvm.problem.options import TrainOptions


def tree_order(X, distance=1e-30):
    return _core.find_components(_core.Points(Rows.from_array(X), 1), Cutoff(distance), 1, 1)[0]


def products(X, gamma, weights, cutoff, *, double, threads=1, targets=None):
    data = KernelRows(Rows.from_array(X), Kernel("rbf", gamma), 1)
    return _core.kernel_product(
        data.setup, data.points, targets, data.points, None, weights, double, threads, cutoff
    )


def point_sets(rng):
    """Return rows of several shapes in spatial order."""
    grid = np.linspace(0, 1, 700)
    clumps = rng.random((30, 3))[rng.integers(0, 30, 900)] + 0.01 * rng.standard_normal((900, 3))
    yield "line", np.stack([grid, np.zeros_like(grid)], axis=1)
    yield "clumps", clumps
    yield "one-hot", np.eye(12)[rng.integers(0, 12, 500)]
    yield "equal", np.full((300, 2), 0.3)
    yield "far", np.concatenate([rng.random((200, 2)), 1e6 + rng.random((200, 2))])
    yield "tiny", 1e-20 * rng.standard_normal((300, 4))


SETS = list(point_sets(np.random.default_rng(3)))


@pytest.mark.parametrize("name, X", SETS, ids=[name for name, _ in SETS])
@pytest.mark.parametrize("value", [1e-12, 1e-4, 0.3])
@pytest.mark.parametrize("double", [False, True])
def test_what_is_left_out_is_within_the_bound(name, X, value, double):
    X = X[tree_order(X)].astype(np.float32)
    rng = np.random.default_rng(1)
    gamma = 40.0
    cutoff = Cutoff.of(Kernel("rbf", gamma), value)
    weights = rng.standard_normal(len(X))
    K = kernel_values(("rbf", gamma, 0, 0), X.astype(float), X.astype(float))
    result = products(X, gamma, weights, cutoff, double=double)[:, 0]
    rounding = (1e-12 if double else 3e-6) * (K @ np.abs(weights))
    assert np.all(np.abs(result - K @ weights) <= value * np.abs(weights).sum() + rounding)
    # no value within the cutoff is omitted
    kept = np.where(value < K, K, 0.0)
    sure = products(X, gamma, np.abs(weights), cutoff, double=double)[:, 0]
    assert np.all(sure >= kept @ np.abs(weights) - rounding)


def test_nothing_at_exactly_the_reach_is_lost_by_rounding():
    """Distances lie one rounding above and below the threshold, in many features."""
    rng = np.random.default_rng(5)
    d, gamma = 13, 1.0
    base = rng.random(d).astype(np.float32)
    for squared in np.nextafter(np.float64(2.0), [1, 2, 3]):
        direction = rng.standard_normal(d)
        other = (base + direction / np.linalg.norm(direction) * np.sqrt(squared)).astype(np.float32)
        X = np.stack([base, other])
        true = float(((base.astype(float) - other.astype(float)) ** 2).sum())
        for threshold in (true, np.nextafter(true, 0), np.nextafter(true, 9)):
            cutoff = Cutoff(float(threshold), float(np.exp(-threshold)))
            result = products(X, gamma, np.array([0.0, 1.0]), cutoff, double=True)[0, 0]
            assert result >= np.exp(-true) * (1 - 1e-12) or true >= threshold


def test_far_rows_are_left_out():
    X = dict(SETS)["clumps"]
    X = X[tree_order(X)]
    cutoff = Cutoff.of(Kernel("rbf", 2000.0), 1e-10)
    points = _core.Points(Rows.from_array(X), 1)
    order = np.arange(len(X), dtype=np.int32)
    share = _core.share_apart(points, order, cutoff, 64, 1)
    assert 0.5 < share < 1
    assert _core.share_apart(points, order, Cutoff(1e-9), 64, 2) >= share
    assert _core.share_apart(points, order, Cutoff(1e9), 64, 1) == 0


def test_threads_do_not_change_a_bit():
    X = dict(SETS)["clumps"]
    X = X[tree_order(X)]
    weights = np.random.default_rng(0).standard_normal(len(X))
    cutoff = Cutoff.of(Kernel("rbf", 500.0), 1e-8)
    one, three = (products(X, 500.0, weights, cutoff, double=False, threads=n) for n in (1, 3))
    assert np.array_equal(one, three)


def clumps_with_labels(n=4000):
    rng = np.random.default_rng(8)
    centers = rng.random((25, 3))
    part = rng.integers(0, 25, n)
    X = (centers[part] + 0.06 * rng.standard_normal((n, 3))).astype(np.float32)
    return X, np.where((part % 2 == 0) ^ (rng.random(n) < 0.05), 1.0, -1.0)


def test_threads_do_not_change_a_bit_of_a_solution():
    """A thread that completes the gradients of the next set skips the same pairs."""
    X, y = clumps_with_labels()

    def solved(threads):
        options = TrainOptions(C=8.0, gamma=300.0, threads=threads, levels=0)
        model, report = train_rows(Rows.from_array(X), y, options)
        assert report.counts["pairs_skipped"] > 0
        return full_alpha(model, len(X)).tobytes(), report.counts

    assert solved(3) == solved(1)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_solution_with_values_left_out_is_optimal(threads):
    X, y = clumps_with_labels()
    n = len(X)
    options = TrainOptions(C=8.0, gamma=300.0, threads=threads, levels=1)
    model, report = train_rows(Rows.from_array(X), y, options)
    assert report.counts["pairs_skipped"] > 0
    alpha = full_alpha(model, n)
    K = kernel_values(("rbf", 300.0, 0, 0), X.astype(float), X.astype(float))
    violation, gap = certificate(K, c_svc(y, 8.0), alpha)
    assert violation <= report.violation * (1 + 1e-6) + 1e-12
    assert gap <= report.duality_gap * (1 + 1e-6)
    assert violation <= 1e-3
