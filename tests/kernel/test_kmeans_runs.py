"""Test the choice between runs of kernel k-means: what a run costs, and which one is the best."""

import numpy as np
import pytest
from reference import csr_rows, dense_rows, grid_rows, kernel_values, kernels_with

from dcsvm import _core
from dcsvm.kernel import kmeans_runs
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.kmeans_runs import (
    COST_LIMIT,
    best_run,
    cluster_costs,
    n_values,
    nearest_centers,
    relative_cost,
)

KERNELS = kernels_with(0.5, 1.0, 3)
FLAT = Kernel("rbf", 0.1)


def runs_of(data, rows, sizes, seed=0):
    """Return a run of k-means for each number of clusters, int32 (n_runs, len(rows))."""
    start = np.arange(len(sizes) + 1, dtype=np.int64) * len(rows)
    nodes = _core.Nodes(data.points, np.tile(rows, len(sizes)), start)
    found = _core.kernel_kmeans(data.setup, nodes, np.array(sizes, np.int32), seed, 1)
    return found.reshape(len(sizes), -1)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("make", [dense_rows, csr_rows])
def test_rows_go_to_the_centers_of_a_run_to_which_they_would_be_assigned(make, kernel):
    rows = make(grid_rows(600, 4, 1))
    data, sampled = KernelRows(rows, kernel, 1), np.arange(0, 600, 5, dtype=np.int32)
    targets = np.arange(1, 600, 3, dtype=np.int32)
    runs = runs_of(data, sampled, [7, 16, 1, 2])
    found = nearest_centers(data, sampled, runs, targets)
    X = grid_rows(600, 4, 1)
    for run, nearest in zip(runs, found, strict=True):
        # by definition the square of a center is the mean over pairs of different rows
        indicator = (run[:, None] == np.arange(run.max() + 1)).astype(float)
        sizes = indicator.sum(axis=0)
        K = kernel_values(kernel, X[sampled], X[sampled])
        sums, own = np.diag(indicator.T @ K @ indicator), indicator.T @ np.diag(K)
        norms = np.where(sizes > 1, (sums - own) / np.maximum(sizes * (sizes - 1), 1), own)
        means = kernel_values(kernel, X[targets], X[sampled]) @ (indicator / sizes)
        distances = norms - 2 * means
        chosen = distances[np.arange(len(targets)), nearest]
        scale = 1 + np.abs(distances).max()
        assert np.all(chosen <= distances.min(axis=1) + 1e-5 * scale)
        assert np.mean(nearest == distances.argmin(axis=1)) > 0.95


def test_rows_are_compared_in_batches_as_they_are_together(monkeypatch):
    rows = dense_rows(grid_rows(500, 3, 2))
    data, sampled = KernelRows(rows, FLAT, 1), np.arange(100, dtype=np.int32)
    runs, every = runs_of(data, sampled, [5, 9]), np.arange(500, dtype=np.int32)
    whole = nearest_centers(data, sampled, runs, every)
    monkeypatch.setattr(kmeans_runs, "BATCH", 37)
    assert np.array_equal(nearest_centers(data, sampled, runs, every), whole)


def test_costs_are_those_of_components():
    cluster, group = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1])
    assert cluster_costs(cluster, 3, None).tolist() == [9, 9, 0]
    assert cluster_costs(cluster, 3, group).tolist() == [5, 9, 0]
    # 6 of 15 pairs are in one cluster, 4 of them in one component, too
    assert relative_cost(cluster, None, 2) == pytest.approx(2 * 6 / 15)
    assert relative_cost(cluster, group, 2) == pytest.approx(2 * 4 / 15)


def test_the_cost_of_a_sample_is_on_average_that_of_all_rows():
    rng = np.random.default_rng(0)
    cluster = rng.choice(50, 20_000, p=np.arange(1, 51) / np.arange(1, 51).sum())
    exact = np.sum(np.bincount(cluster) ** 2.0) / (len(cluster) ** 2 / 50)
    drawn = [relative_cost(rng.choice(cluster, 200), None, 50) for _ in range(2000)]
    assert np.mean(drawn) == pytest.approx(exact, rel=0.01)
    assert relative_cost(np.zeros(1, int), None, 1) == 0.0


def test_of_clusters_of_equal_cost_those_with_less_kernel_between_them_are_taken():
    X = np.repeat(np.array([[0.0], [1.0], [10.0], [11.0]], np.float32), 5, axis=0)
    X += np.linspace(0, 0.1, 20, dtype=np.float32)[:, None]
    pairs = np.repeat(np.array([0, 0, 1, 1], np.int32), 5)
    apart = np.repeat(np.array([0, 1, 0, 1], np.int32), 5)
    unequal = np.repeat(np.array([0, 0, 0, 1], np.int32), 5)
    matrix = KernelRows(dense_rows(X), Kernel("rbf", 1.0), 1).matrix()
    runs = np.array([apart, unequal, pairs])
    costs = [relative_cost(cluster, None, 2) for cluster in runs]
    assert costs[1] < COST_LIMIT
    assert np.array_equal(best_run(matrix, runs, costs), pairs)
    # beyond the limit, of the cheapest clusters and those that cost about the same
    assert np.array_equal(best_run(matrix, runs, [1.9, 1.5, 1.6]), pairs)
    assert np.array_equal(best_run(matrix, runs, [1.6, 1.5, 1.9]), unequal)


# Two clusters of the corners of a rectangle: across the long side, or along it.
CORNERS = np.array([[0, 0], [0, 1], [1.1, 0], [1.1, 1]], np.float32)


def corner_rows(counts, seed=0):
    """Return rows near the corners, and the corner of each."""
    corner = np.repeat(np.arange(4), counts)
    noise = np.random.default_rng(seed).normal(size=(len(corner), 2))
    return (CORNERS[corner] + 0.05 * noise).astype(np.float32), corner


def split_of(X, sample, threads=1, seed=1, group=None):
    data = KernelRows(dense_rows(X), FLAT, threads)
    tree = Tree(data, FLAT, sample_size=200, seed=seed, group=group)
    tree.grow_alone(2, sample, second=False)
    return tree


@pytest.mark.parametrize("seed", [1, 2, 5])  # of which the eight runs find both divisions
def test_clusters_are_balanced_over_all_rows_not_over_the_sample(seed):
    X, corner = corner_rows([1000, 1000, 60, 60])
    sample = np.concatenate([np.flatnonzero(corner == c)[:50] for c in range(4)]).astype(np.int32)
    # of the sample alone both divisions are balanced, and that across the long side is better
    across, along = (corner >= 2).astype(np.int32), (corner % 2).astype(np.int32)
    matrix = KernelRows(dense_rows(X[sample]), FLAT, 1).matrix()
    runs = np.array([along[sample], across[sample]])
    costs = [relative_cost(cluster, None, 2) for cluster in runs]
    assert max(costs) < COST_LIMIT
    assert np.array_equal(best_run(matrix, runs, costs), across[sample])
    assert relative_cost(across, None, 2) > COST_LIMIT
    # all rows are balanced only along it
    sizes = np.bincount(split_of(X, sample, seed=seed).placed[-1].nearest)
    assert sizes.tolist() == [1060, 1060]
    # where all rows are as the sample, it is divided across it
    X, corner = corner_rows([500, 500, 500, 500])
    nearest = split_of(X, np.arange(0, 2000, 10, dtype=np.int32), seed=seed).placed[-1].nearest
    assert len(np.unique(nearest[corner < 2])) == len(np.unique(nearest[corner >= 2])) == 1


def test_components_count_apart_in_the_costs_of_all_rows():
    X, corner = corner_rows([1000, 1000, 60, 60])
    sample = np.concatenate([np.flatnonzero(corner == c)[:50] for c in range(4)]).astype(np.int32)
    # each corner is a component: a cluster of two costs no more than both apart
    nearest = split_of(X, sample, group=corner).placed[-1].nearest
    assert len(np.unique(nearest[corner < 2])) == len(np.unique(nearest[corner >= 2])) == 1


def test_the_choice_is_the_same_for_any_number_of_threads():
    X = grid_rows(5000, 5, 10)
    sample = np.arange(0, 5000, 25, dtype=np.int32)
    found = {
        (tree.splits[0].child.tobytes(), tree.placed[-1].nearest.tobytes())
        for tree in (split_of(X, sample, threads) for threads in (1, 2, 3, 7))
    }
    assert len(found) == 1


def test_the_kernel_values_of_the_choice_are_as_many_as_are_told(monkeypatch):
    computed, product, matrix = [], KernelRows.product, KernelRows.matrix

    def counted_product(data, weights, rows=None, *, target_rows=None, **how):
        computed.append(len(rows) * len(target_rows))
        return product(data, weights, rows, target_rows=target_rows, **how)

    def counted_matrix(data, **how):
        found = matrix(data, **how)
        computed.append(found.size)
        return found

    X, sample = grid_rows(5000, 5, 10), np.arange(0, 5000, 25, dtype=np.int32)
    tree = Tree(KernelRows(dense_rows(X), FLAT, 1), FLAT, sample_size=200, seed=0)
    monkeypatch.setattr(KernelRows, "product", counted_product)
    monkeypatch.setattr(KernelRows, "matrix", counted_matrix)
    tree.grow_alone(8, sample, second=False)
    assert sum(computed) == tree.values_of_choice(200) == n_values(200, 4096)
