"""Build a tree of clusters by two-step kernel k-means (section 3 of the paper; Chitta et al. 2011).

Each cluster of a level is split in two steps: kernel k-means clusters a sample of its rows, then
each row is assigned to the nearest center in kernel space. A single level can also be built
directly, from a sample of all rows or of support vectors. With the linear kernel this is Euclidean
k-means.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from copy import copy
from dataclasses import replace

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import group_order, page_by_page, reduce_parts
from dcsvm.data.rows import Rows
from dcsvm.kernel.distances import median_distance
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.kmeans_runs import COST_ROWS, STARTS, best_of_runs, cluster_costs, n_values
from dcsvm.kernel.sources import MAX_PARTS, Assignment, NodeSplit, Partition, route_step

# Sampled rows per cluster. More do not improve the clusters. With fewer at the top, cluster sizes
# differ more (examples/bench/README.md, Constants).
MIN_SAMPLED, MAX_SAMPLED = 8, 64
DRAWN = 4  # rows that are drawn first for each sampled one
MAX_OF_NODE = 2048  # sampled rows of a node; the cost grows with the number of pairs
BATCH_MAPPED = 2**24  # values in a batch of rows of a mapped file


class Tree:
    """Tree of clusters of all rows, built level by level.

    The number of children of a node is chosen to give the clusters of a level about equal costs.
    The cost of a cluster is the sum of n_c^2 over the components, with n_c rows of the cluster in
    component c. `group` int (n,) is the component of each row, None for a single component. A level
    is built from `sample_size` sampled rows, within MIN_SAMPLED to MAX_SAMPLED rows per cluster. If
    the rows were reordered, row i was row order[i] before. The sample is drawn by the old indices,
    so that it does not depend on the order.
    """

    def __init__(
        self,
        data: KernelRows,
        kernel: Kernel,
        *,
        sample_size: int,
        seed: int,
        order: np.ndarray | None = None,
        group: np.ndarray | None = None,
    ):
        self.rows, self.sample_size, self.group = data.rows, sample_size, group
        n_rows = self.rows.n_samples
        self.place = np.arange(n_rows, dtype=np.int32) if order is None else inverse(order)
        self.seed, self.rng = seed, np.random.default_rng(seed)
        sampled = self.rng.choice(n_rows, min(sample_size, n_rows), replace=False)
        sample = self.rows.take(self.place[np.sort(sampled)])
        self.kernel = kernel
        self.data = data.with_kernel(clustering_kernel(sample, kernel, data.threads))
        self.splits: list[NodeSplit] = []
        self.sampled: list[np.ndarray] = []  # rows of each split
        self.placed: list[Assignment | None] = [Assignment.at_root(n_rows)]
        self.seconds = [0.0]  # run time of each level

    @property
    def _finest(self) -> Assignment:
        placed = self.placed[-1]
        assert placed is not None  # only of_rows_in() drops assignments, of a complete tree
        return placed

    def grow(self, n_clusters: int, stop: _core.Stop | None = None, *, second: bool) -> None:
        """Add a level of about n_clusters, fewer if clusters have duplicates.

        `second` assigns rows to second clusters, too. Raises Stopped.
        """
        start, node = time.perf_counter(), self._finest.nearest
        n_nodes = self.splits[-1].n_clusters if self.splits else 1
        costs = cluster_costs(node, n_nodes, self.group) if n_nodes > 1 else np.ones(1)
        n_parts = _shares(costs, n_clusters)
        rows, of_node = self._sample_of_nodes(node, np.where(n_parts > 1, n_parts, 0), n_clusters)
        kept, split = self.split_nodes(rows, of_node, n_parts, int(self.rng.integers(2**63)))
        self._add(split, rows[kept], start, stop, second)

    def sample(self, n_clusters: int, candidates: np.ndarray | None, level: int) -> np.ndarray:
        """Draw the sample for grow_alone(): rows int32, ascending.

        The rows are drawn from `candidates`, None for all. The sample does not depend on the order
        of the rows.
        """
        size = max(self.sample_size, MIN_SAMPLED * n_clusters)
        input_rows = inverse(self.place)
        if candidates is not None:
            input_rows = input_rows[candidates]
        rng = np.random.default_rng([self.seed, level])
        sampled = rng.choice(np.sort(input_rows), min(size, len(input_rows)), replace=False)
        return np.sort(self.place[sampled])

    def grow_alone(
        self, n_clusters: int, sample: np.ndarray, stop: _core.Stop | None = None, *, second: bool
    ) -> None:
        """Build the only level, of at most n_clusters, from sampled rows int32. Raises Stopped."""
        start = time.perf_counter()
        of_node, n_parts = np.zeros(len(sample), np.int64), np.array([n_clusters])
        seed = int(self.rng.integers(2**63 - STARTS))
        drawn = self.rng.choice(len(self.place), self._n_cost_rows, replace=False)
        cost_rows = np.sort(self.place[drawn])  # a file is read sequentially
        group = None if self.group is None else self.group[cost_rows]
        rows = np.concatenate([sample, cost_rows])
        kept, split = self.split_nodes(rows, of_node, n_parts, seed, self.kernel, group)
        self._add(split, sample[kept], start, stop, second)

    def values_of_choice(self, n_sampled: int) -> int:
        """Return the number of kernel values by which grow_alone() chooses between its runs."""
        return n_values(n_sampled, self._n_cost_rows)

    @property
    def _n_cost_rows(self) -> int:
        return min(COST_ROWS, self.rows.n_samples)

    def _add(
        self,
        split: NodeSplit,
        rows: np.ndarray,
        start: float,
        stop: _core.Stop | None,
        second: bool,
    ) -> None:
        """Add the level of a split by sampled rows; `start` is the time when its work began."""
        self.splits.append(split)
        self.sampled.append(rows)
        self.placed.append(self.stepped(self._finest, split, rows, stop, second=second))
        self.seconds.append(time.perf_counter() - start)

    def stepped(
        self,
        placed: Assignment,
        split: NodeSplit,
        rows: np.ndarray,
        stop: _core.Stop | None,
        *,
        second: bool,
    ) -> Assignment:
        """Assign all rows to the next level, given the sampled `rows` of its split.

        A mapped file is read sequentially. Raises Stopped.
        """
        core_split = split.of(*self.those(rows))
        if not self.rows.is_mapped:
            return route_step(self.data, placed, core_split, stop, second=second)
        assigned = Assignment.at_root(self.rows.n_samples, second=second)
        for batch in self.rows.slices(BATCH_MAPPED):
            indices = np.arange(batch.start, batch.stop, dtype=np.int32)
            part = route_step(
                self.data, placed.take(batch), core_split, stop, indices, second=second
            )
            assigned.put(batch, part)
        return assigned

    def those(self, rows: np.ndarray) -> tuple[KernelRows, np.ndarray]:
        """Return data in memory that has the given rows int32, and their indices in it."""
        if self.data.is_in_file:
            return self.data.part(rows), np.arange(len(rows), dtype=np.int32)
        return self.data, rows

    def partition(self, n_levels: int, blend: float = 0.0) -> Partition:
        """Return the first n_levels as the partition of a model."""
        sample = self.rows.take_for_model(np.concatenate(self.sampled[:n_levels]))
        return Partition(self.data.kernel, sample, tuple(self.splits[:n_levels]), blend)

    @property
    def order(self) -> np.ndarray:
        """Rows sorted by cluster of the finest level, and so of all levels, int32 (n,)."""
        return group_order(self._finest.nearest).astype(np.int32)

    def of_rows_in(self, order: np.ndarray, data: KernelRows, levels: Collection[int]) -> Tree:
        """Return this tree for reordered rows: row order[i] has become row i of `data`.

        The new tree has only the assignments to the given levels, and no level can be added to it.
        The assignments of this tree are freed.
        """
        position = inverse(order)
        tree = copy(self)
        tree.rows, tree.data = data.rows, data.with_kernel(self.data.kernel)
        tree.sampled = [position[rows] for rows in self.sampled]
        tree.placed = []
        while self.placed:
            placed = self.placed.pop(0)
            if len(tree.placed) not in levels:
                placed = None
            tree.placed.append(placed and placed.take(order))
        return tree

    def split_nodes(
        self,
        rows: np.ndarray,
        of_node: np.ndarray,
        n_parts: np.ndarray,
        seed: int,
        svm_kernel: Kernel | None = None,
        group: np.ndarray | None = None,
    ) -> tuple[np.ndarray, NodeSplit]:
        """Split the nodes by sampled rows int32, see split_nodes() of this module."""
        data, indices = self.those(rows)
        with page_by_page(data.rows.dense):
            return split_nodes(data, indices, of_node, n_parts, seed, svm_kernel, group)

    def _sample_of_nodes(
        self, node: np.ndarray, n_parts: np.ndarray, n_clusters: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sample each node for n_parts[node] children.

        Returns the sampled rows int32, sorted by node, and the node of each.
        """
        size = min(max(self.sample_size // n_clusters, MIN_SAMPLED), MAX_SAMPLED)
        limit = np.minimum(size * n_parts, MAX_OF_NODE)
        # the first rows of each node in a random order, the beginning of which usually suffices
        order, n_drawn = self.rng.permutation(len(node)), DRAWN * int(limit.sum())
        while True:
            drawn = order[:n_drawn]
            of_drawn = node[self.place[drawn]]
            counts = np.bincount(of_drawn, minlength=len(limit))
            if n_drawn >= len(order) or np.all(counts >= limit):
                break
            n_drawn *= DRAWN
        by_node = group_order(of_drawn)
        rank = np.arange(len(drawn)) - np.repeat(np.cumsum(counts) - counts, counts)
        sampled = np.sort(drawn[by_node][rank < limit[of_drawn[by_node]]])
        rows = self.place[sampled]
        rows = rows[group_order(node[rows])]
        return rows, node[rows]


def split_nodes(
    data: KernelRows,
    rows: np.ndarray,
    of_node: np.ndarray,
    n_parts: np.ndarray,
    seed: int,
    svm_kernel: Kernel | None = None,
    group: np.ndarray | None = None,
) -> tuple[np.ndarray, NodeSplit]:
    """Split node p into at most n_parts[p] children, by sampled rows int32.

    `of_node` is the node of each sampled row, ascending. With the kernel of the SVM, a single node
    is split by the best of several runs. Its cost rows follow the sampled rows in `rows`; `group`
    is their component, see `best_of_runs`. Returns the split and, before it, the positions in
    `rows` of the sampled rows that it uses.
    """
    n_nodes = len(n_parts)
    rows, cost_rows = np.split(rows, [len(of_node)])
    start = _node_start(of_node, n_nodes)
    if svm_kernel is None:
        # kernel k-means of each node
        nodes = _core.Nodes(data.points, rows, start)
        part = _core.kernel_kmeans(data.setup, nodes, n_parts.astype(np.int32), seed, data.threads)
    else:
        part = best_of_runs(
            data, rows, cost_rows, group,
            n_clusters=int(n_parts[0]), seed=seed, svm_kernel=svm_kernel,
        )  # fmt: skip
    # k-means may return fewer children; a node with one child needs no sampled rows
    n_children = reduce_parts(np.maximum, part + 1.0, start, 1.0).astype(np.int64)
    kept = np.flatnonzero(n_children[of_node] > 1)
    kept = kept[np.lexsort((part[kept], of_node[kept]))]
    # the split of the rows kept, sorted by node and child
    part, start = part[kept], _node_start(of_node[kept], n_nodes)
    first_child = np.concatenate(([0], np.cumsum(n_children)))
    nodes = _core.Nodes(data.points, rows[kept], start)
    products = _core.mean_products(data.setup, nodes, part, first_child, data.threads)
    return kept, NodeSplit(first_child, start, part, products)


def inverse(order: np.ndarray) -> np.ndarray:
    """Return the inverse permutation, int32."""
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    return position


def _node_start(of_node: np.ndarray, n_nodes: int) -> np.ndarray:
    return np.searchsorted(of_node, np.arange(n_nodes + 1)).astype(np.int64)


def _shares(costs: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the number of children of each node, 1 to MAX_PARTS, for about equal costs.

    Each of c children costs about 1/c^2 of its node.
    """
    ideal = np.sqrt(costs)
    ideal *= n_clusters / max(ideal.sum(), 1.0)
    shares = np.maximum(np.floor(ideal), 1.0)
    missing = int(n_clusters - shares.sum())
    if missing > 0:
        shares[np.argsort(shares - ideal, kind="stable")[:missing]] += 1
    return np.minimum(shares, MAX_PARTS).astype(np.int64)


def clustering_kernel(sample: Rows, kernel: Kernel, threads: int) -> Kernel:
    """Return the kernel for clustering: gamma is limited by the distances of the sample.

    Its value at the median distance is at least 1/e. With a larger gamma nearly all kernel values
    are 0: each sampled row is a cluster, and all rows far from the sample are assigned to the
    largest cluster. Kernels that do not fall with a distance are returned unchanged.
    """
    if not kernel.type.is_of_distance:
        return kernel
    median = median_distance(sample, kernel, threads)
    if not median > 0:
        return kernel
    return replace(kernel, gamma=min(kernel.gamma, kernel.type.gamma_at(median, math.exp(-1))))
