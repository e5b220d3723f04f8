"""A tree of clusters by two-step kernel k-means (the paper's section 3, after Chitta et al. 2011).

Level by level every cluster is divided: a sample of its rows by kernel k-means, and every other row
goes to its nearest center in kernel space. A level may also be found alone, straight from a sample
of all rows or of support vectors. Euclidean k-means is the same algorithm with the linear kernel.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.room import page_by_page
from dcsvm.data.rows import Rows
from dcsvm.data.sorting import group_order, group_sizes
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.partition import MOST_PARTS, Fork, Partition, Placed, step

# rows of a cluster; more of them cost more and find no better clusters, fewer at the top less equal
# ones: docs/benchmark.md, Constants
FEWEST_SAMPLED, MOST_SAMPLED = 8, 64
MOST_OF_NODE = 2048  # sampled rows, of which all pairs meet
MAPPED_AT_ONCE = 2**24  # values of rows in a mapped file that are routed together
LARGEST_MEDIAN_SAMPLE = 256  # rows whose distances choose the gamma of the clustering
# runs of k-means for a level that is found alone; of those whose clusters cost at most COST_LIMIT
# times as much as equal ones the one with the least kernel values between clusters is taken. What
# that does to the gap of a level: docs/how-it-works.md
STARTS, COST_LIMIT = 8, 1.3


class Tree:
    """A tree of clusters of all rows of some data by a kernel, found level by level.

    The rows of a cluster are divided into as many as keep the clusters of a level about equally
    expensive to solve, which is the sum of squares of the rows they share with each `group` (int
    (n,); None: all are one group). A level is found from `sample_size` sampled rows, but at least
    FEWEST_SAMPLED and at most MOST_SAMPLED for each of its clusters. Row i was number order[i]
    before rows were put in order: they are sampled by these numbers, the same ones in any order.
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
        self.place = inverse(np.arange(n_rows) if order is None else order)
        self.seed, self.rng = seed, np.random.default_rng(seed)
        some = self.rng.choice(n_rows, min(sample_size, n_rows), replace=False)
        some = self.rows.take(self.place[np.sort(some)])
        self.kernel = kernel
        self.data = data.with_kernel(clustering_kernel(some, kernel, data.threads))
        self.forks: list[Fork] = []
        self.sampled: list[np.ndarray] = []  # rows of each
        self.placed: list[Placed | None] = [Placed.at_root(n_rows)]
        self.seconds = [0.0]  # that each level took

    def grow(self, n_clusters: int, stop: _core.Stop | None = None, *, second: bool) -> None:
        """Add a level of about n_clusters; fewer where rows of a cluster cannot be told apart.
        `second`: with what is across borders. Raises Stopped."""
        start, placed = time.perf_counter(), self.placed[-1]
        node, n_nodes = placed.nearest, self.forks[-1].n_clusters if self.forks else 1
        wanted = _shares(_costs(node, n_nodes, self.group), n_clusters)
        rows, of_node = self._some_of_each(node, np.where(wanted > 1, wanted, 0), n_clusters)
        kept, fork = self.forked(rows, of_node, wanted, int(self.rng.integers(2**63)))
        self._add(placed, fork, rows[kept], start, stop, second=second)

    def sample(self, n_clusters: int, candidates: np.ndarray | None, level: int) -> np.ndarray:
        """Rows int32, ascending, to find that many clusters from alone: random ones of the
        candidates, None for all; the same in whatever order rows are."""
        n_wanted = max(self.sample_size, FEWEST_SAMPLED * n_clusters)
        given = inverse(self.place) if candidates is None else inverse(self.place)[candidates]
        rng = np.random.default_rng([self.seed, level])
        chosen = rng.choice(np.sort(given), min(n_wanted, len(given)), replace=False)
        return np.sort(self.place[chosen])

    def grow_alone(
        self, n_clusters: int, sample: np.ndarray, stop: _core.Stop | None = None, *, second: bool
    ) -> None:
        """Find the only level, of at most n_clusters, from a `sample` of rows int32. Raises
        Stopped."""
        start = time.perf_counter()
        group = None if self.group is None else self.group[sample]
        of_node, wanted = np.zeros(len(sample), np.int64), np.array([n_clusters])
        seed = int(self.rng.integers(2**63 - STARTS))
        kept, fork = self.forked(sample, of_node, wanted, seed, Starts(self.kernel, group))
        self._add(self.placed[0], fork, sample[kept], start, stop, second=second)

    def _add(self, placed: Placed, fork: Fork, rows: np.ndarray, start: float, stop, *, second):
        """Add the level of a fork of sampled rows, which was begun at a time."""
        self.forks.append(fork)
        self.sampled.append(rows)
        self.placed.append(self.stepped(placed, fork, rows, stop, second=second))
        self.seconds.append(time.perf_counter() - start)

    def stepped(
        self, placed: Placed, fork: Fork, rows: np.ndarray, stop: _core.Stop | None, *, second: bool
    ) -> Placed:
        """Where all rows are one level further, by the sampled `rows` of a fork; a file is gone
        through from front to back. Raises Stopped."""
        found_fork = fork.of(*self.those(rows))
        if not self.rows.is_mapped:
            return step(self.data, placed, found_fork, stop, second=second)
        found = Placed.at_root(self.rows.n_samples, second=second)
        for some in self.rows.slices(MAPPED_AT_ONCE):
            numbers = np.arange(some.start, some.stop, dtype=np.int32)
            part = step(self.data, placed.take(some), found_fork, stop, numbers, second=second)
            found.put(some, part)
        return found

    def those(self, rows: np.ndarray) -> tuple[KernelRows, np.ndarray]:
        """Data that has these rows int32, and their numbers in it: in memory, as all others meet
        them."""
        if self.data.is_in_file:
            return self.data.part(rows), np.arange(len(rows), dtype=np.int32)
        return self.data, rows

    def partition(self, n_levels: int, blend: float = 0.0) -> Partition:
        """The first n_levels, as a model keeps them."""
        forks = self.forks[:n_levels]
        numbers = np.concatenate(self.sampled[:n_levels])
        sample = self.rows.take_for_model(numbers)
        kernel = self.data.kernel
        return Partition(kernel, sample, tuple(forks), blend)

    @property
    def order(self) -> np.ndarray:
        """The rows by their clusters of all levels, int32 (n,)."""
        return group_order(self.placed[-1].nearest).astype(np.int32)

    def of_rows_in(self, order: np.ndarray, data: KernelRows, levels: Collection[int]) -> Tree:
        """The same tree where row order[i] has become row i of `data`, without groups. It knows
        where rows are in some levels, to which no finer one is added; this tree is used up."""
        place = inverse(order)
        tree = copy(self)
        tree.rows, tree.data = data.rows, data.with_kernel(self.data.kernel)
        tree.sampled = [place[rows] for rows in self.sampled]
        tree.placed = []
        while self.placed:
            placed = self.placed.pop(0)
            is_wanted = len(tree.placed) in levels
            tree.placed.append(placed.take(order) if is_wanted else None)
        return tree

    def forked(
        self,
        rows: np.ndarray,
        of_node: np.ndarray,
        wanted: np.ndarray,
        seed: int,
        starts: Starts | None = None,
    ) -> tuple[np.ndarray, Fork]:
        """Nodes divided by sampled rows int32, and the places of those that the fork keeps."""
        data, numbers = self.those(rows)
        with page_by_page(data.rows.dense):
            return fork_of(data, numbers, of_node, wanted, seed, starts)

    def _some_of_each(
        self, node: np.ndarray, n_parts: np.ndarray, n_clusters: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Random rows int32 of each node, for so many clusters of it, and their nodes."""
        size = min(max(self.sample_size // n_clusters, FEWEST_SAMPLED), MOST_SAMPLED)
        node = node[self.place]
        order = self.rng.permutation(len(node))
        order = order[group_order(node[order])]
        counts = np.bincount(node, minlength=len(n_parts))
        rank = np.arange(len(node)) - np.repeat(np.cumsum(counts) - counts, counts)
        most = np.minimum(size * n_parts, MOST_OF_NODE)
        chosen = np.sort(order[rank < most[node[order]]])
        chosen = chosen[group_order(node[chosen])]
        return self.place[chosen], node[chosen]


@dataclass(frozen=True, eq=False)
class Starts:
    """What the runs of k-means of one node are compared by: the `kernel` that is solved with, and
    the `group` int (m,) of each sampled row, None where all are one group."""

    kernel: Kernel
    group: np.ndarray | None

    def best(self, sample: Rows, parts: np.ndarray, n_clusters: int, threads: int) -> int:
        """Which of the `parts` int32 (n, m) of a sample of m rows has the least kernel values
        between different clusters (D(pi) of the paper's Theorem 1), among those whose clusters do
        not cost too much."""
        values = np.abs(KernelRows(sample, self.kernel, threads).matrix().astype(np.float64))
        np.fill_diagonal(values, 0.0)
        scores = []
        for part in parts:
            of_cluster = (part[:, None] == np.arange(part.max() + 1)).astype(np.float64)
            within = float(np.sum(of_cluster * (values @ of_cluster)))
            equal_cost = len(part) ** 2 / n_clusters
            cost = _costs(part, int(part.max()) + 1, self.group).sum() / equal_cost
            scores.append((max(cost, COST_LIMIT), -within))
        return min(range(len(parts)), key=scores.__getitem__)


def fork_of(
    data: KernelRows,
    rows: np.ndarray,
    of_node: np.ndarray,
    wanted: np.ndarray,
    seed: int,
    starts: Starts | None = None,
) -> tuple[np.ndarray, Fork]:
    """Nodes divided by some rows int32 of data into as many clusters as are wanted, or fewer, and
    the places of those rows that the fork keeps. One node may be divided by the best of several
    runs."""
    n_nodes = len(wanted)
    if starts is None:
        nodes = _core.Nodes(data.points, rows, _starts(of_node, n_nodes))
        part = _core.kernel_kmeans(data.setup, nodes, wanted.astype(np.int32), seed, data.threads)
    else:
        each = np.arange(STARTS + 1, dtype=np.int64) * len(rows)
        nodes = _core.Nodes(data.points, np.tile(rows, STARTS), each)
        n_parts = np.full(STARTS, wanted[0], np.int32)
        parts = _core.kernel_kmeans(data.setup, nodes, n_parts, seed, data.threads)
        parts = parts.reshape(STARTS, -1)
        sample = data.rows.take(rows)
        part = parts[starts.best(sample, parts, int(wanted[0]), data.threads)]
    found = np.ones(n_nodes, np.int64)
    np.maximum.at(found, of_node, part + 1)
    kept = np.flatnonzero(found[of_node] > 1)
    kept = kept[np.lexsort((part[kept], of_node[kept]))]
    part, start = part[kept], _starts(of_node[kept], n_nodes)
    first_child = np.concatenate(([0], np.cumsum(found)))
    nodes = _core.Nodes(data.points, rows[kept], start)
    products = _core.mean_products(data.setup, nodes, part, first_child, data.threads)
    return kept, Fork(first_child, start, part, products)


def inverse(order: np.ndarray) -> np.ndarray:
    """The place of each number in an order of all, int32."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def _starts(of_node: np.ndarray, n_nodes: int) -> np.ndarray:
    return np.searchsorted(of_node, np.arange(n_nodes + 1)).astype(np.int64)


def _costs(node: np.ndarray, n_nodes: int, group: np.ndarray | None) -> np.ndarray:
    """What each node costs to solve: the sum of squares of the rows it shares with each group."""
    if group is None:
        return np.bincount(node, minlength=n_nodes).astype(np.float64) ** 2
    n_groups = int(group.max()) + 1
    shared, sizes = group_sizes(node.astype(np.int64) * n_groups + group)
    return np.bincount(shared // n_groups, sizes.astype(np.float64) ** 2, n_nodes)


def _shares(costs: np.ndarray, n_clusters: int) -> np.ndarray:
    """Into how many clusters to divide each node, at least one and not too many, such that the
    costs of the parts are as equal as possible: those of a node in c parts are about 1/c^2 of its
    own."""
    wanted = np.sqrt(costs)
    wanted *= n_clusters / max(wanted.sum(), 1.0)
    shares = np.maximum(np.floor(wanted), 1.0)
    missing = int(n_clusters - shares.sum())
    if missing > 0:
        shares[np.argsort(shares - wanted, kind="stable")[:missing]] += 1
    return np.minimum(shares, MOST_PARTS).astype(np.int64)


def clustering_kernel(sample: Rows, kernel: Kernel, threads: int) -> Kernel:
    """The kernel to cluster with: one that falls with a distance with gamma lowered until the value
    at the median distance is at least 1/e.

    With a larger gamma nearly all kernel values are 0, every sampled row is a cluster of its own
    and rows far from the sample all go to the largest cluster.
    """
    fall = kernel.type.fall
    if fall is None:
        return kernel
    step = -(-sample.n_samples // LARGEST_MEDIAN_SAMPLE)
    some = sample.take(np.arange(0, sample.n_samples, step))
    matrix = KernelRows(some, Kernel("linear"), threads).matrix().astype(np.float64)
    norms = np.diag(matrix)
    if not np.isfinite(norms).all():  # beyond float32: distances say nothing
        return kernel
    distances = (norms[:, None] + norms - 2.0 * matrix)[np.triu_indices(len(matrix), 1)]
    n = len(distances)
    if n == 0:
        return kernel
    middle = np.partition(distances, [(n - 1) // 2, n // 2])  # np.median imports numpy.ma
    median = 0.5 * float(middle[(n - 1) // 2] + middle[n // 2])
    if median <= 0:
        return kernel
    return replace(kernel, gamma=min(kernel.gamma, fall.gamma_at(median, math.exp(-1))))
