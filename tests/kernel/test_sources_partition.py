"""Test two-step kernel k-means: clusters of each level, and repeatable assignment of rows."""

import numpy as np
import pytest
from reference import csr_rows, dense_rows, grid_rows, kernel_values, kernels_with, labelled_rows

from dcsvm.kernel import cluster_tree
from dcsvm.kernel import sources as partition
from dcsvm.kernel.cluster_tree import Tree, clustering_kernel
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import Assignment, partition_of

KERNELS = kernels_with(0.5, 1.0, 3)
RBF = Kernel("rbf", 2.0)


def tree(rows, kernel=RBF, levels=(8,), *, sample=200, seed=0, threads=1, second=False):
    made = Tree(KernelRows(rows, kernel, threads), kernel, sample_size=sample, seed=seed)
    for n_clusters in levels:
        made.grow(n_clusters, second=second)
    return made


def divided(rows, kernel=RBF, n_clusters=8, **how):
    return tree(rows, kernel, (n_clusters,), **how).partition(1)


def blobs(n_samples=400, n_features=3, distance=20.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)).astype(np.float32)
    side = np.arange(n_samples) % 2
    X[:, 0] += np.float32(distance) * side
    return X, side


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("n_clusters", [1, 2, 7, 64])
def test_clusters_are_numbered_without_gaps_and_none_is_empty(n_clusters, kernel):
    rows = dense_rows(grid_rows(600, 4, 1))
    made = divided(rows, kernel, n_clusters)
    assert 1 <= made.n_clusters <= n_clusters
    cluster = made.splits[0].cluster
    assert made.sample.n_samples == len(cluster)
    assert n_clusters == 1 or np.array_equal(np.unique(cluster), np.arange(made.n_clusters))
    assert np.all(np.diff(cluster) >= 0)
    cluster = made.assign(rows, 1)
    assert cluster.shape == (600,)
    assert cluster.min() >= 0
    assert cluster.max() < made.n_clusters


@pytest.mark.parametrize("distinct", [1, 2, 3])
@pytest.mark.parametrize("kernel", [Kernel("linear"), RBF], ids=lambda kernel: kernel.name)
def test_fewer_distinct_points_make_fewer_clusters(kernel, distinct):
    X = np.eye(3, dtype=np.float32)[np.arange(90) % distinct]
    made = divided(dense_rows(X), kernel, 16)
    assert made.n_clusters == distinct
    cluster = made.assign(dense_rows(X), 1)
    assert len(np.unique(cluster)) == distinct
    assert np.array_equal(cluster, cluster[np.arange(90) % distinct])


def test_a_single_row_is_a_single_cluster():
    made = divided(dense_rows(np.ones((1, 3), np.float32)), n_clusters=4)
    assert made.n_clusters == 1


@pytest.mark.parametrize(
    "kernel", [Kernel("linear"), Kernel("rbf", 0.02), Kernel("rbf", 1e5), Kernel("rbf", 1.0)]
)
@pytest.mark.parametrize("seed", range(3))
def test_two_blobs_far_apart_are_told_apart(seed, kernel):
    X, side = blobs(seed=seed)
    cluster = divided(dense_rows(X), kernel, 2, seed=seed).assign(dense_rows(X), 1)
    assert len(np.unique(cluster)) == 2
    assert len(set(zip(cluster, side, strict=True))) == 2


def centers_of(made, level):
    """Return inner products of the centers of a level, its sampled rows and their weights.

    By definition the square of a center is the mean over pairs of different rows.
    """
    split = made.splits[level]
    first = sum(len(one.child) for one in made.splits[:level])
    S = made.sample.dense[first : first + len(split.child)]
    indicator = (split.cluster[:, None] == np.arange(split.n_clusters)).astype(float)
    sizes = indicator.sum(axis=0)
    K = kernel_values(made.kernel, S, S)
    products = indicator.T @ K @ indicator / np.maximum(np.outer(sizes, sizes), 1)
    own = indicator.T @ np.diag(K)
    pairs = np.maximum(sizes * (sizes - 1), 1)
    squared = np.diag(indicator.T @ K @ indicator)
    np.fill_diagonal(products, np.where(sizes > 1, (squared - own) / pairs, squared))
    return products, S, indicator / np.maximum(sizes, 1)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_rows_go_to_the_nearest_center_and_know_the_nearest_border(kernel):
    X, _ = labelled_rows(500, 4, seed=5)
    made = tree(dense_rows(X), kernel, (4, 13), sample=150).partition(2)
    node, second, distance = np.zeros(500, int), np.full(500, -1), np.full(500, np.inf)
    for level, split in enumerate(made.splits):
        products, S, weights = centers_of(made, level)
        squared = np.diag(products) - 2 * kernel_values(made.kernel, X, S) @ weights
        parent = np.repeat(np.arange(len(split.n_parts)), split.n_parts)
        scale = 1 + np.abs(squared).max()

        def nearest(nodes, squared=squared, parent=parent):
            return np.where(parent == nodes[:, None], squared, np.inf).argmin(axis=1)

        best = nearest(node)
        between = np.diag(products)[best][:, None] + np.diag(products) - 2 * products[best]
        margin = (squared - squared[np.arange(500), best][:, None]) / (
            2 * np.sqrt(np.maximum(between, 1e-12))
        )
        margin[(parent != node[:, None]) | (np.arange(split.n_clusters) == best[:, None])] = np.inf
        across, nearer = margin.argmin(axis=1), margin.min(axis=1) < distance
        deeper = np.where(second >= 0, nearest(second), -1)
        second = np.where(nearer, across, deeper)
        distance = np.minimum(distance, margin.min(axis=1))
        node = best
    placed = made.place(dense_rows(X), 1, second=True)
    assert np.mean(placed.nearest == node) > 0.995
    same = (placed.nearest == node) & (placed.second == second)
    assert np.mean(same) > 0.99
    assert np.allclose(placed.distance[same], distance[same], atol=1e-4 * scale, rtol=1e-3)


def test_levels_are_nested_and_a_level_is_the_same_without_finer_ones():
    rows = dense_rows(grid_rows(2000, 4, 3))
    made = tree(rows, levels=(4, 16, 64), second=True)
    for level in (2, 3):
        split, above = made.splits[level - 1], made.placed[level - 1].nearest
        parent = np.repeat(np.arange(len(split.n_parts)), split.n_parts)
        assert np.array_equal(parent[made.placed[level].nearest], above)
        assert 4**level * 0.9 <= split.n_clusters <= 4**level
    for level in (1, 2, 3):
        placed = made.partition(level).place(rows, 2, second=True)
        found = made.placed[level]
        assert np.array_equal(placed.nearest, found.nearest)
        assert np.array_equal(placed.second, found.second)
        assert np.allclose(placed.distance, found.distance, atol=1e-6)
        assert np.all((found.second >= 0) & (found.second != found.nearest))
        assert np.all(found.distance >= 0)


def test_clusters_of_a_level_are_about_equally_large():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5)).astype(np.float32)
    X[:4500] *= 0.1  # three quarters of the rows are close together
    made = tree(dense_rows(X), Kernel("rbf", 0.5), (4, 16, 64))
    sizes = np.bincount(made.placed[3].nearest)
    assert sizes.max() < 6 * 6000 / 64


def test_nearly_orthogonal_rows_are_not_all_in_one_cluster():
    """A center of few rows must not look far from all other rows because of its own rows."""
    X = (np.random.default_rng(1).random((3000, 300)) < 0.04).astype(np.float32)
    made = tree(dense_rows(X), Kernel("rbf", 0.05), (4,), sample=1000)
    assert np.bincount(made.placed[1].nearest).max() < 2400


def test_groups_are_divided_by_what_they_cost():
    rows = dense_rows(grid_rows(3000, 3, 4))
    group = np.repeat([0, 1], [1000, 2000])
    data = KernelRows(rows, RBF, 1)
    made = Tree(data, RBF, sample_size=500, seed=0, group=group)
    made.grow(4, second=False)
    made.grow(16, second=False)
    cost = np.zeros(made.splits[1].n_clusters)
    for one in (0, 1):
        cost += np.bincount(made.placed[2].nearest[group == one], minlength=len(cost)) ** 2.0
    assert cost.max() < 12 * cost.mean()


def test_shares_are_from_a_half_at_a_border_to_one():
    placed = Assignment(np.zeros(3, int), np.ones(3, int), np.array([0.0, 0.5, 2.0]))
    assert placed.shares(1.0).tolist() == [0.5, 0.75, 1.0]
    assert placed.shares(0.0).tolist() == [1.0, 1.0, 1.0]


def test_blended_values_are_means_and_nan_gives_way():
    placed = Assignment(
        np.array([0, 1, 2, 0]), np.array([1, 0, 0, -1]), np.array([0.0, 1.0, 0.5, 9.0])
    )
    of_cluster = np.array([[1.0], [3.0], [np.nan]])

    def values_by(some, cluster):
        assert len(np.arange(4)[some]) == len(cluster)
        return of_cluster[cluster]

    assert partition.blended(values_by, placed, 2.0)[:, 0].tolist() == [2.0, 2.5, 1.0, 1.0]
    assert np.isnan(partition.blended(values_by, placed, 0.0)[2, 0])


@pytest.mark.parametrize(
    ("n_parts", "clusters", "why"),
    [
        ([3], [[0, 1, 2]], "more nodes"),
        ([2, 1, 0], [[0, 1], [0]], "do not fit"),
        ([2, 1], [[0, 1], [0]], "do not fit"),
        ([2, 1, 2, 4], [[0, 1], [1, 2]], "more nodes"),
        ([2], [[0, 2]], "do not fit"),
        ([2], [[0, 0]], "no rows"),
        ([2, 2, 1], [[0, 1], [0, 1, 2]], "has sampled rows"),
        ([10**9], [[0, 1]], "do not fit"),
        ([257], [list(range(257))], "do not fit"),
        ([], [], "more nodes"),
    ],
)
def test_partitions_that_do_not_fit_are_refused(n_parts, clusters, why):
    X = grid_rows(2000, 3, 1)
    clusters = [np.array(one, np.int32) for one in clusters]
    if n_parts == [3]:
        n_parts = [3, 1]
    with pytest.raises(ValueError, match=why):
        partition_of(
            Kernel("rbf", 1.0),
            dense_rows(X[: sum(map(len, clusters))]),
            np.array(n_parts, np.int64),
            clusters,
            0.0,
        )


def test_a_tie_goes_to_the_lowest_cluster():
    X = np.array([[0.0, 0], [2, 0]], np.float32)
    made = divided(dense_rows(X), Kernel("linear"), 2)
    found = made.place(dense_rows(np.array([[1.0, 0], [1, 5]], np.float32)), 1, second=True)
    assert found.nearest.tolist() == [0, 0]
    assert found.second.tolist() == [1, 1]
    assert found.distance.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("gamma", [50.0, 1e4, 1e8])
def test_a_large_gamma_does_not_put_everything_into_one_cluster(gamma):
    rows = dense_rows(grid_rows(2000, 10, 6))
    made = divided(rows, Kernel("rbf", gamma), 16)
    sizes = np.bincount(made.assign(rows, 1), minlength=made.n_clusters)
    assert made.n_clusters == 16
    assert sizes.max() < 800
    assert np.count_nonzero(sizes) >= 12


def test_a_gamma_that_needs_no_change_is_kept():
    rows = dense_rows(grid_rows(300, 4, 7))
    assert clustering_kernel(rows, Kernel("rbf", 0.01), 1) == Kernel("rbf", 0.01)
    assert clustering_kernel(rows, Kernel("rbf", 0.0), 1) == Kernel("rbf", 0.0)
    lowered = clustering_kernel(rows, Kernel("rbf", 1e6), 1)
    values = kernel_values(("rbf", lowered.gamma, 0, 0), rows.dense, rows.dense)
    assert abs(np.median(values[np.triu_indices(300, 1)]) - np.exp(-1)) < 0.02
    for kernel in (one for one in KERNELS if not one.type.is_of_distance):
        assert clustering_kernel(rows, kernel, 1) == kernel


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_sparse_rows_are_routed_as_dense_ones(kernel):
    X = grid_rows(500, 6, 8, density=0.4)
    X[3:9] = 0
    dense, sparse = divided(dense_rows(X), kernel), divided(csr_rows(X), kernel)
    assert np.array_equal(dense.sample.dense, sparse.sample.in_form_of(dense.sample, 1).dense)
    assert np.array_equal(dense.splits[0].cluster, sparse.splits[0].cluster)
    assert np.array_equal(dense.assign(dense_rows(X), 1), sparse.assign(csr_rows(X), 1))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("make", [dense_rows, csr_rows], ids=["dense", "sparse"])
def test_rows_routed_in_pieces_go_where_they_go_together(make, kernel, monkeypatch):
    rows = make(grid_rows(500, 6, 9, density=0.6))
    made = divided(rows, kernel)
    whole = made.assign(rows, 1)
    for size in (1, 37, 256):
        parts = [
            made.assign(rows.take(np.arange(i, min(i + size, 500))), 1) for i in range(0, 500, size)
        ]
        assert np.array_equal(np.concatenate(parts), whole)
    monkeypatch.setattr(partition, "BATCH_ROUTED", 64)
    assert np.array_equal(made.assign(rows, 2), whole)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_seed_gives_one_partition_on_any_number_of_threads(kernel):
    rows = dense_rows(grid_rows(700, 5, 10))
    results = set()
    for threads in (1, 2, 3, 7, 1):
        made = divided(rows, kernel, 12, seed=4, threads=threads)
        results.add((made.sample.dense.tobytes(), made.splits[0].child.tobytes(),
                     made.assign(rows, threads).tobytes()))  # fmt: skip
    assert len(results) == 1
    other = divided(rows, kernel, 12, seed=5)
    assert other.sample.dense.tobytes() not in {sample for sample, *_ in results}


def test_samples_are_as_large_as_asked_for_within_limits():
    X = np.arange(4000, dtype=np.float32)[:, None]
    few, many = cluster_tree.MIN_SAMPLED, cluster_tree.MAX_SAMPLED
    for sample, expected in ((80, 80), (1, 4 * few), (10**6, 4 * many)):
        made = divided(dense_rows(X), n_clusters=4, sample=sample)
        values = made.sample.dense[:, 0].astype(int)
        assert len(set(values)) == len(values) == expected


def test_no_rows_are_routed_nowhere():
    rows = dense_rows(grid_rows(50, 3, 11))
    assert divided(rows).assign(rows.take([]), 1).shape == (0,)
