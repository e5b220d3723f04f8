"""A tree of clusters, and where rows are in it; cluster_tree.py finds one.

A center is the mean of some sampled rows of its cluster in kernel space, and a row goes to the
nearest one, level by level: training and test rows are routed by the same code, and a row meets
only the samples of the clusters it is in.

A row is near a border where another center is hardly farther than its own: it may learn, and be
predicted, in the cluster across its nearest border as well.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.data.sorting import slices
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import Sources

ROUTED_AT_ONCE = 2**22  # values of rows
ROUTED_BY_FEW = 2**20  # where a row meets few others: it stays in the cache from level to level
MOST_PARTS = 256  # clusters that one is divided into: all pairs of their centers meet
MOST_FORMS = 2  # of the sampled rows whose forks are kept: encoded, and as they are

_kept: weakref.WeakKeyDictionary[Partition, dict] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Placed:
    """Where rows are in a level: the `nearest` cluster int32 (n,), and where that is wanted the
    `second` one across the nearest border, -1 where there is none, and the `distance` float64 to
    that border in kernel space."""

    nearest: np.ndarray
    second: np.ndarray | None = None
    distance: np.ndarray | None = None

    @staticmethod
    def at_root(n: int, *, second: bool = False) -> Placed:
        borders = (np.full(n, -1, np.int32), np.full(n, np.inf)) if second else ()
        return Placed(np.zeros(n, np.int32), *borders)

    def take(self, some) -> Placed:
        return Placed(*(None if one is None else one[some] for one in vars(self).values()))

    def across(self, rows: np.ndarray) -> np.ndarray:
        """The second clusters of rows, -1 where there is none."""
        return np.full(len(rows), -1, np.int32) if self.second is None else self.second[rows]

    def put(self, some, placed: Placed) -> None:
        """Make these the places of some rows, with second clusters in both or in none."""
        self.nearest[some] = placed.nearest
        if self.second is not None:
            self.second[some], self.distance[some] = placed.second, placed.distance

    def shares(self, blend: float) -> np.ndarray:
        """What the nearest cluster counts in predictions, float64 (n,): 1/2 at a border, 1 from the
        distance `blend` on."""
        if blend == 0:
            return np.ones(len(self.nearest))
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

    def of(self, data: KernelRows, rows: np.ndarray) -> _core.FoundFork:
        """With the sampled rows as those with these numbers int32 of some data."""
        nodes = _core.Nodes(data.points, rows, self.start)
        return _core.FoundFork(nodes, self.first_child, self.part, self.products)


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

    def place(
        self,
        rows: Rows,
        threads: int,
        stop: _core.Stop | None = None,
        *,
        second: bool = False,
        begin: Placed | None = None,
    ) -> Placed:
        """Where rows are in the finest level, with what is across the border where `second` is
        wanted. They `begin` at the root, or where they are in the level that the first fork
        divides. Ties go to the lowest number. Raises Stopped."""
        begin = begin or Placed.at_root(rows.n_samples)
        placed = Placed.at_root(rows.n_samples, second=second)
        sources = Sources.kept(self.sample, self.kernel)
        row_size = max(rows.row_size, sources.row_size(threads))
        at_once = ROUTED_BY_FEW if self.kernel.type.is_linear else ROUTED_AT_ONCE
        for some in slices(rows.n_samples, at_once // row_size):
            for meeting in sources.meetings(rows.part(some), threads):
                part = begin.take(some).take(meeting.place)
                for fork in self.found(meeting.sources):
                    part = step(meeting.targets, part, fork, stop, meeting.numbers, second=second)
                placed.put(np.arange(some.start, some.stop)[meeting.place], part)
        return placed

    def found(self, sources: KernelRows) -> list[_core.FoundFork]:
        """The forks with their sampled rows in the form of these, which are kept."""
        kept = _kept.setdefault(self, {})
        found = kept.get(sources.points)
        if found is None:
            ends = np.cumsum([0, *(len(fork.part) for fork in self.forks)])
            found = [
                fork.of(sources, np.arange(first, last, dtype=np.int32))
                for fork, first, last in zip(self.forks, ends[:-1], ends[1:], strict=True)
            ]
            if len(kept) >= MOST_FORMS:
                kept.clear()
            kept[sources.points] = found
        return found

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
    if blend == 0:
        return values
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
    level the clusters of its sampled rows, ascending, and `products` of all levels where they do
    not follow from the sample. Raises ValueError for what does not fit."""
    data = KernelRows(sample, kernel, 1) if products is None else None
    forks, n_nodes, first = [], 1, 0
    for cluster in clusters:
        own, n_parts = n_parts[:n_nodes], n_parts[n_nodes:]
        first_child = np.concatenate(([0], np.cumsum(own)))
        if (
            len(own) < n_nodes
            or np.any((own < 1) | (own > MOST_PARTS))
            or own[own > 1].sum() > len(cluster)
            or np.any(cluster >= first_child[-1])
        ):
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


def step(
    data: KernelRows,
    placed: Placed,
    fork: _core.FoundFork,
    stop: _core.Stop | None,
    rows: np.ndarray | None = None,
    *,
    second: bool,
) -> Placed:
    """Where some `rows` int32 of data, None for all, are one level further. Raises Stopped."""

    def routed(node, second):
        return _core.route(
            data.setup, data.points, rows, node, fork, data.threads, stop, second=second
        )

    nearest, across, distance = routed(placed.nearest, second)
    if not second:
        return Placed(nearest)
    if placed.second is None:
        return Placed(nearest, across, distance)
    is_nearer = distance < placed.distance
    # those whose nearest border is above go down on the other side of it
    other = routed(np.where(is_nearer, -1, placed.second).astype(np.int32), False)[0]
    return Placed(
        nearest, np.where(is_nearer, across, other), np.where(is_nearer, distance, placed.distance)
    )
