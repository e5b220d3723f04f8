"""partition: two-step kernel k-means makes clusters and routes rows to them, always the same."""

import numpy as np
import pytest
from reference import csr_rows, dense_rows, grid_rows, kernel_values, labelled_rows

from dcsvm.kernel import partition as partition_module
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.partition import clustering_kernel, two_step_kernel_kmeans

KERNELS = [
    Kernel("linear"),
    Kernel("polynomial", 0.5, 1.0, 3),
    Kernel("rbf", 2.0),
    Kernel("sigmoid", 0.5, -0.5),
]


def divided(rows, kernel=KERNELS[2], n_clusters=8, *, sample=200, seed=0, threads=1, among=None):
    return two_step_kernel_kmeans(
        rows,
        kernel,
        n_clusters,
        sample_from=np.arange(rows.n_samples) if among is None else among,
        sample_size=sample,
        rng=np.random.default_rng(seed),
        threads=threads,
    )


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
    assert made.cluster.dtype == np.int32
    assert np.array_equal(np.unique(made.cluster), np.arange(made.n_clusters))
    assert made.sample.n_samples == len(made.cluster) == 200
    cluster = made.assign(rows, 1)
    assert cluster.shape == (600,)
    assert cluster.min() >= 0
    assert cluster.max() < made.n_clusters


def test_as_many_clusters_come_back_as_were_asked_for():
    rows = dense_rows(grid_rows(600, 4, 2))
    assert divided(rows, n_clusters=16).n_clusters == 16


@pytest.mark.parametrize("distinct", [1, 2, 3])
@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[2]], ids=lambda kernel: kernel.name)
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


def test_every_row_goes_to_the_nearest_center_in_kernel_space():
    X, _ = labelled_rows(500, 4, seed=5)
    for kernel in KERNELS:
        made = divided(dense_rows(X), kernel, 6, sample=150)
        used = (made.kernel.name, made.kernel.gamma, made.kernel.coef0, made.kernel.degree)
        S = made.sample.dense
        mean = np.zeros((150, made.n_clusters))
        sizes = np.bincount(made.cluster)
        mean[np.arange(150), made.cluster] = 1.0 / sizes[made.cluster]
        spread = np.diag(mean.T @ kernel_values(used, S, S) @ mean)
        distance = spread - 2 * kernel_values(used, X, S) @ mean
        cluster = made.assign(dense_rows(X), 1)
        chosen = distance[np.arange(500), cluster]
        assert np.all(chosen <= distance.min(axis=1) + 1e-5 * (1 + np.abs(distance).max()))


def test_a_tie_goes_to_the_lowest_cluster():
    X = np.array([[0.0, 0], [2, 0]], np.float32)
    made = divided(dense_rows(X), Kernel("linear"), 2)
    assert made.assign(dense_rows(np.array([[1.0, 0], [1, 5]], np.float32)), 1).tolist() == [0, 0]


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
    for kernel in (KERNELS[0], KERNELS[1], KERNELS[3]):
        assert clustering_kernel(rows, kernel, 1) == kernel


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_sparse_rows_are_routed_as_dense_ones(kernel):
    X = grid_rows(500, 6, 8, density=0.4)
    X[3:9] = 0
    dense, sparse = divided(dense_rows(X), kernel), divided(csr_rows(X), kernel)
    assert np.array_equal(dense.sample.dense, sparse.sample.in_form_of(dense.sample, 1).dense)
    assert np.array_equal(dense.cluster, sparse.cluster)
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
    monkeypatch.setattr(partition_module, "ROUTED_AT_ONCE", 64)
    assert np.array_equal(made.assign(rows, 2), whole)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_seed_gives_one_partition_on_any_number_of_threads(kernel):
    rows = dense_rows(grid_rows(700, 5, 10))
    results = set()
    for threads in (1, 2, 3, 7, 1):
        made = divided(rows, kernel, 12, seed=4, threads=threads)
        results.add((made.sample.dense.tobytes(), made.cluster.tobytes(),
                     made.assign(rows, threads).tobytes()))  # fmt: skip
    assert len(results) == 1
    other = divided(rows, kernel, 12, seed=5)
    assert other.sample.dense.tobytes() not in {sample for sample, *_ in results}


def test_the_sample_is_taken_from_the_rows_named_without_repeats():
    X = np.arange(100, dtype=np.float32)[:, None]
    among = np.arange(10, 100, 3)
    made = divided(dense_rows(X), n_clusters=4, sample=20, among=among)
    values = made.sample.dense[:, 0].astype(int)
    assert len(set(values)) == 20
    assert set(values) <= set(among)
    everything = divided(dense_rows(X), n_clusters=4, sample=1000, among=among)
    assert set(everything.sample.dense[:, 0].astype(int)) == set(among)


def test_no_rows_are_routed_nowhere():
    rows = dense_rows(grid_rows(50, 3, 11))
    assert divided(rows).assign(rows.take([]), 1).shape == (0,)
