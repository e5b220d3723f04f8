"""A tree of clusters by two-step kernel k-means (the paper's section 3, after Chitta et al. 2011).

Level by level every cluster is divided: a sample of its rows by kernel k-means, and every other row
goes to its nearest center in kernel space. A center is the sampled rows of its cluster, so training
and test rows are routed by the same code, and a row meets only the samples of the clusters it is
in. Euclidean k-means is the same algorithm with the linear kernel.

A row is near a border where another center is hardly farther than its own: it may learn, and be
predicted, in the cluster across its nearest border as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows, slices
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import Sources

ROUTED_AT_ONCE = 2**22  # values of rows
# rows of a cluster; more of them cost more and find no better clusters, fewer at the top less equal
# ones
FEWEST_SAMPLED, MOST_SAMPLED = 8, 64
LARGEST_MEDIAN_SAMPLE = 256  # rows whose distances choose the gamma of the clustering


@dataclass(frozen=True, eq=False)
class Placed:
    """Where rows are in a level: the `nearest` cluster int32 (n,), the `second` one across the
    nearest border, -1 where there is none, and the `distance` float64 to that border in kernel
    space."""

    nearest: np.ndarray
    second: np.ndarray
    distance: np.ndarray

    @staticmethod
    def at_root(n: int) -> Placed:
        return Placed(np.zeros(n, np.int32), np.full(n, -1, np.int32), np.full(n, np.inf))

    def take(self, some) -> Placed:
        return Placed(self.nearest[some], self.second[some], self.distance[some])

    def put(self, some, placed: Placed) -> None:
        """Make these the places of some rows."""
        self.nearest[some], self.second[some] = placed.nearest, placed.second
        self.distance[some] = placed.distance

    def shares(self, blend: float) -> np.ndarray:
        """What the nearest cluster counts in predictions, float64 (n,): 1/2 at a border, 1 from the
        distance `blend` on."""
        if blend == 0:
            return np.ones(len(self.distance))
        return np.minimum(0.5 * (1.0 + self.distance / blend), 1.0)


@dataclass(frozen=True, eq=False)
class Fork:
    """How the clusters of one level, nodes, are divided into those of the next finer one.

    `first_child` int64 (n_nodes + 1,): node p has the clusters first_child[p] to first_child[p + 1]
    of the finer level. `start` int64 (n_nodes + 1,) is where its sampled rows begin, cluster by
    cluster, none where there is one cluster; `part` int32 is that of each, from 0 in its node.
    `products` float64 are inner products of the centers of each node, an n x n block for one of n
    clusters.
    """

    first_child: np.ndarray
    start: np.ndarray
    part: np.ndarray
    products: np.ndarray

    @property
    def n_clusters(self) -> int:
        return int(self.first_child[-1])

    @property
    def n_parts(self) -> np.ndarray:
        """Into how many clusters each node is divided."""
        return np.diff(self.first_child)

    @property
    def cluster(self) -> np.ndarray:
        """The cluster of each sampled row, ascending."""
        return np.repeat(self.first_child[:-1], np.diff(self.start)) + self.part

    def of(self, data: KernelRows, rows: np.ndarray) -> FoundFork:
        """With the sampled rows as those with these numbers int32 of some data."""
        nodes = _core.Nodes(data.points, rows, self.start)
        return FoundFork(nodes, self.first_child, self.part, self.products)


class FoundFork(NamedTuple):
    """A fork with the sampled rows of its nodes, as `_core.route` takes it."""

    nodes: _core.Nodes
    first_child: np.ndarray
    part: np.ndarray
    products: np.ndarray


@dataclass(frozen=True, eq=False)
class Partition:
    """A tree of clusters: `forks`, from the coarsest, of `sample` rows, level after level.

    `blend` is the distance to a border in kernel space below which a row is predicted by the
    clusters on both sides, 0 where all are predicted by the nearest.
    """

    kernel: Kernel
    sample: Rows
    forks: tuple[Fork, ...]
    blend: float = 0.0

    @property
    def n_clusters(self) -> int:
        return self.forks[-1].n_clusters

    def with_sample(self, sample: Rows) -> Partition:
        """The same clusters with the sample in another form."""
        return replace(self, sample=sample)

    def place(
        self, rows: Rows, threads: int, stop: _core.Stop | None = None, *, second: bool = False
    ) -> Placed:
        """Where rows are in the finest level, with what is across the border where `second` is
        wanted. Ties go to the lowest number. Raises Stopped."""
        placed = Placed.at_root(rows.n_samples)
        sources = Sources.kept(self.sample, self.kernel)
        row_size = max(rows.row_size, sources.row_size(threads))
        for some in slices(rows.n_samples, ROUTED_AT_ONCE // row_size):
            for meeting in sources.meetings(rows.part(some), threads):
                part, first = placed.take(some).take(meeting.place), 0
                for fork in self.forks:
                    last = first + len(fork.part)
                    own = fork.of(meeting.sources, np.arange(first, last, dtype=np.int32))
                    part = step(meeting.targets, part, own, stop, meeting.numbers, second=second)
                    first = last
                placed.put(np.arange(some.start, some.stop)[meeting.place], part)
        return placed

    def assign(self, rows: Rows, threads: int, stop: _core.Stop | None = None) -> np.ndarray:
        """The nearest cluster of the finest level, int32 (n,). Raises Stopped."""
        return self.place(rows, threads, stop).nearest


def blended(
    values_by: Callable[[np.ndarray | slice, np.ndarray], np.ndarray], placed: Placed, blend: float
) -> np.ndarray:
    """Decision values (n, k) of placed rows: by their nearest clusters, and near a border a mean
    with those of the cluster on the other side, less and less with the distance to it.

    `values_by(some, cluster)` gives those of some of the rows by one cluster for each, nan where
    that has none; then the other cluster alone counts.
    """
    values = values_by(slice(None), placed.nearest)
    share = placed.shares(blend)
    near = np.flatnonzero((share < 1.0) & (placed.second >= 0))
    if len(near) == 0:
        return values
    first, second = values[near], values_by(near, placed.second[near])
    mean = share[near, None] * first + (1.0 - share[near, None]) * second
    values[near] = np.where(np.isnan(mean), np.where(np.isnan(first), second, first), mean)
    return values


def partition_of(
    kernel: Kernel,
    sample: Rows,
    n_parts: np.ndarray,
    clusters: list[np.ndarray],
    blend: float,
    products: np.ndarray | None = None,
) -> Partition:
    """A partition from what a file says: `n_parts` int64 of all nodes, level after level, for each
    level the clusters of its sampled rows, ascending, and `products` of all levels where the kernel
    is precomputed. Raises ValueError for what does not fit."""
    data = KernelRows(sample, kernel, 1) if products is None else None
    forks, n_nodes, first = [], 1, 0
    for cluster in clusters:
        own, n_parts = n_parts[:n_nodes], n_parts[n_nodes:]
        first_child = np.concatenate(([0], np.cumsum(own)))
        if len(own) < n_nodes or np.any(own < 1) or np.any(cluster >= first_child[-1]):
            raise ValueError("the clusters of a level do not fit those above")
        node = np.searchsorted(first_child, cluster, side="right") - 1
        start = np.searchsorted(node, np.arange(n_nodes + 1))
        part = (cluster - first_child[node]).astype(np.int32)
        rows = np.arange(first, first + len(cluster), dtype=np.int32)
        size = int((own**2).sum())
        if data is None:
            some, products = products[:size], products[size:]
            if len(some) < size:
                raise ValueError("there are too few products of centers")
        else:
            nodes = _core.Nodes(data.points, rows, start)
            some = _core.mean_products(data.setup, nodes, part, first_child, 1)
        forks.append(Fork(first_child, start, part, some))
        n_nodes, first = int(first_child[-1]), first + len(cluster)
    if len(n_parts) or not forks or (products is not None and len(products)):
        raise ValueError("there is more than the levels have clusters")
    return Partition(kernel, sample, tuple(forks), blend)


def flat_partition(
    kernel: Kernel, sample: Rows, cluster: np.ndarray, squared_norms: np.ndarray | None
) -> Partition:
    """One level, as files of version 3 have it: `cluster` int32 (m,) is that of each sampled row,
    and squared norms of centers are those of means of all pairs of rows, the same ones too."""
    order = np.argsort(cluster, kind="stable")
    part, n_clusters = cluster[order], int(cluster.max()) + 1
    rows = sample.take(order)
    if squared_norms is None:
        sizes = np.bincount(part)
        weights = np.arange(len(part) + 1), part, 1.0 / sizes[part], n_clusters
        own = KernelRows(rows, kernel, 1).product(weights)[np.arange(len(part)), part]
        squared_norms = np.bincount(part, weights=own / sizes[part])
    n_rows = len(part) if n_clusters > 1 else 0
    first_child, start = np.array([0, n_clusters]), np.array([0, n_rows])
    fork = Fork(first_child, start, part[:n_rows], np.diag(squared_norms).reshape(-1))
    return Partition(kernel, rows.part(slice(0, n_rows)), (fork,))


def step(
    data: KernelRows,
    placed: Placed,
    fork: FoundFork,
    stop: _core.Stop | None,
    rows: np.ndarray | None = None,
    *,
    second: bool,
) -> Placed:
    """Where some `rows` int32 of data, None for all, are one level further. Raises Stopped."""

    def routed(node):
        return _core.route(data.setup, data.points, rows, node, fork, data.threads, stop)

    nearest, across, distance = routed(placed.nearest)
    if not second:
        return Placed(nearest, placed.second, placed.distance)
    is_nearer = distance < placed.distance
    # those whose nearest border is above go down on the other side of it
    other = routed(np.where(is_nearer, -1, placed.second).astype(np.int32))[0]
    return Placed(
        nearest,
        np.where(is_nearer, across, other),
        np.where(is_nearer, distance, placed.distance),
    )


class Tree:
    """A tree of clusters of all rows of some data by a kernel, found level by level.

    The rows of a cluster are divided into as many as keep the clusters of a level about equally
    expensive to solve, which is the sum of squares of the rows they share with each `group` (int
    (n,); None: all are one group). A level is found from `sample_size` sampled rows, but at least
    FEWEST_SAMPLED and at most MOST_SAMPLED for each of its clusters.
    """

    def __init__(
        self,
        data: KernelRows,
        kernel: Kernel,
        *,
        sample_size: int,
        seed: int,
        group: np.ndarray | None = None,
    ):
        self.rows, self.sample_size, self.group = data.rows, sample_size, group
        n_rows = self.rows.n_samples
        self.rng = np.random.default_rng(seed)
        some = self.rng.choice(n_rows, min(sample_size, n_rows), replace=False)
        kernel = clustering_kernel(self.rows.take(np.sort(some)), kernel, data.threads)
        self.data = data.with_kernel(kernel)
        self.forks: list[Fork] = []
        self.sampled: list[np.ndarray] = []  # rows of each
        self.placed = [Placed.at_root(n_rows)]

    def grow(self, n_clusters: int, stop: _core.Stop | None = None, *, second: bool) -> None:
        """Add a level of about n_clusters; fewer where rows of a cluster cannot be told apart.
        `second`: with what is across borders. Raises Stopped."""
        placed = self.placed[-1]
        node, n_nodes = placed.nearest, self.forks[-1].n_clusters if self.forks else 1
        wanted = _shares(_costs(node, n_nodes, self.group), n_clusters)
        fork, rows = self._divided(node, wanted, n_clusters)
        self.forks.append(fork)
        self.sampled.append(rows)
        self.placed.append(step(self.data, placed, fork.of(self.data, rows), stop, second=second))

    def partition(self, n_levels: int, blend: float = 0.0) -> Partition:
        """The first n_levels, as a model keeps them."""
        forks = self.forks[:n_levels]
        numbers = np.concatenate(self.sampled[:n_levels])
        sample = self.rows.take_for_model(numbers)
        return Partition(self.data.kernel, sample, tuple(forks), blend)

    def _divided(
        self, node: np.ndarray, wanted: np.ndarray, n_clusters: int
    ) -> tuple[Fork, np.ndarray]:
        """Each node divided into as many clusters as are wanted, or fewer, and the sampled rows."""
        data, n_nodes = self.data, len(wanted)
        rows, of_node = self._some_of_each(node, np.where(wanted > 1, wanted, 0), n_clusters)
        nodes = _core.Nodes(data.points, rows, _starts(of_node, n_nodes))
        seed = int(self.rng.integers(2**63))
        part = _core.kernel_kmeans(data.setup, nodes, wanted.astype(np.int32), seed, data.threads)
        found = np.ones(n_nodes, np.int64)
        np.maximum.at(found, of_node, part + 1)
        kept = np.flatnonzero(found[of_node] > 1)
        kept = kept[np.lexsort((part[kept], of_node[kept]))]
        rows, part, start = rows[kept], part[kept], _starts(of_node[kept], n_nodes)
        first_child = np.concatenate(([0], np.cumsum(found)))
        nodes = _core.Nodes(data.points, rows, start)
        products = _core.mean_products(data.setup, nodes, part, first_child, data.threads)
        return Fork(first_child, start, part, products), rows

    def _some_of_each(
        self, node: np.ndarray, n_parts: np.ndarray, n_clusters: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Random rows int32 of each node, for so many clusters of it, and their nodes."""
        size = min(max(self.sample_size // n_clusters, FEWEST_SAMPLED), MOST_SAMPLED)
        order = self.rng.permutation(len(node))
        order = order[np.argsort(node[order], kind="stable")]
        counts = np.bincount(node, minlength=len(n_parts))
        rank = np.arange(len(node)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = np.sort(order[rank < size * n_parts[node[order]]])
        chosen = chosen[np.argsort(node[chosen], kind="stable")]
        return chosen.astype(np.int32), node[chosen]


def _starts(of_node: np.ndarray, n_nodes: int) -> np.ndarray:
    return np.searchsorted(of_node, np.arange(n_nodes + 1)).astype(np.int64)


def _costs(node: np.ndarray, n_nodes: int, group: np.ndarray | None) -> np.ndarray:
    """What each node costs to solve: the sum of squares of the rows it shares with each group."""
    if group is None:
        return np.bincount(node, minlength=n_nodes).astype(np.float64) ** 2
    n_groups = int(group.max()) + 1
    shared, sizes = np.unique(node.astype(np.int64) * n_groups + group, return_counts=True)
    return np.bincount(shared // n_groups, sizes.astype(np.float64) ** 2, n_nodes)


def _shares(costs: np.ndarray, n_clusters: int) -> np.ndarray:
    """Into how many clusters to divide each node, at least one, such that the costs of the parts
    are as equal as possible: those of a node in c parts are about 1/c^2 of its own."""
    wanted = np.sqrt(costs)
    wanted *= n_clusters / max(wanted.sum(), 1.0)
    shares = np.maximum(np.floor(wanted), 1.0)
    missing = int(n_clusters - shares.sum())
    if missing > 0:
        shares[np.argsort(shares - wanted, kind="stable")[:missing]] += 1
    return shares.astype(np.int64)


def clustering_kernel(sample: Rows, kernel: Kernel, threads: int) -> Kernel:
    """The kernel to cluster with: RBF with gamma lowered until the median value is at least 1/e.

    With a larger gamma nearly all kernel values are 0, every sampled row is a cluster of its own
    and rows far from the sample all go to the largest cluster.
    """
    if kernel.name != "rbf":
        return kernel
    step = -(-sample.n_samples // LARGEST_MEDIAN_SAMPLE)
    some = sample.take(np.arange(0, sample.n_samples, step))
    matrix = KernelRows(some, Kernel("linear"), threads).matrix().astype(np.float64)
    norms = np.diag(matrix)
    distances = (norms[:, None] + norms - 2.0 * matrix)[np.triu_indices(len(matrix), 1)]
    n = len(distances)
    if n == 0:
        return kernel
    middle = np.partition(distances, [(n - 1) // 2, n // 2])  # np.median imports numpy.ma
    median = 0.5 * float(middle[(n - 1) // 2] + middle[n // 2])
    return replace(kernel, gamma=min(kernel.gamma, 1.0 / median)) if median > 0 else kernel
