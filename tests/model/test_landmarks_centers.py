"""Test partition trees with one landmark per center."""

from dataclasses import replace

import numpy as np
import pytest
from reference import csr_rows, dense_rows

from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.landmarks import values_on_the_way, with_single_centers


@pytest.fixture(scope="module")
def tree():
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 3)).astype(np.float32)
    kernel = Kernel("rbf", gamma=1.0)
    tree = Tree(KernelRows(dense_rows(X), kernel, 1), kernel, sample_size=200, seed=0)
    tree.grow(4, second=False)
    tree.grow(16, second=False)
    return X, tree.partition(2, blend=0.1)


def test_each_center_is_the_mean_of_its_sampled_rows(tree):
    X, partition = tree
    single = with_single_centers(partition)
    assert (single.n_clusters, single.blend) == (partition.n_clusters, 0.0)
    first = partition.splits[0]
    rows = partition.sample.dense[: len(first.child)]
    means = np.array([rows[first.cluster == c].mean(axis=0) for c in range(4)])
    np.testing.assert_allclose(single.sample.dense[:4], means, atol=1e-3)
    assert max(len(str(abs(value)).lstrip("0.")) for value in single.sample.dense.ravel()) <= 5


def test_rows_go_to_the_nearest_center_of_each_level(tree):
    X, partition = tree
    single = with_single_centers(partition)
    node, first = np.zeros(len(X), int), 0
    for split in single.splits:
        centers = np.full((split.n_clusters, 3), np.inf)
        centers[split.cluster] = single.sample.dense[first : first + len(split.child)]
        first += len(split.child)
        children = [range(*split.first_child[p : p + 2]) for p in node]
        node = np.array([
            own[0] if len(own) == 1 else own[((centers[own] - x) ** 2).sum(axis=1).argmin()]
            for x, own in zip(X, children, strict=True)
        ])  # fmt: skip
    assert np.mean(single.assign(dense_rows(X), 1) == node) > 0.999


def test_values_on_the_way_are_the_sampled_rows_that_a_row_meets(tree):
    _, partition = tree
    single = with_single_centers(partition)
    n_parts = single.splits[1].n_parts
    met = [4 + (size if size > 1 else 0) for size in n_parts]
    np.testing.assert_array_equal(values_on_the_way(single), np.repeat(met, n_parts))
    assert values_on_the_way(partition).min() > 4


def test_sparse_centers_stay_samples(tree):
    _, partition = tree
    sparse = replace(partition, sample=csr_rows(partition.sample.dense))
    found = with_single_centers(sparse)
    assert (found.sample, found.splits, found.blend) == (sparse.sample, sparse.splits, 0.0)
