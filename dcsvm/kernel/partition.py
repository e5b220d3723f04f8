"""Partition of the rows: a tree of clusters, and the assignment of rows to it.

cluster_tree.py builds the tree. A center is the mean, in kernel space, of sampled rows of its
cluster. A row descends the tree: on each level it goes to the nearest child of its cluster, and
is compared only with the sampled rows of that cluster. Training and test rows are assigned by the
same code.

A row is near a cluster boundary if another center is almost as near as the nearest one. Such a row
may be trained on, and predicted, in both clusters.
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
from dcsvm.kernel.sources import EncodedSources

BATCH_ROUTED = 2**22  # values in a batch of rows
ROUTED_BY_FEW = 2**20  # for the linear kernel: the batch stays in the CPU cache between levels
MAX_PARTS = 256  # children of a node; the cost grows with the number of pairs of their centers
MAX_FORMS = 2  # cached encodings of the sampled rows of a tree: encoded and plain

_cache: weakref.WeakKeyDictionary[Partition, dict[_core.Points, list[_core.FoundSplit]]] = (
    weakref.WeakKeyDictionary()
)


@dataclass(frozen=True, eq=False)
class Assignment:
    """Assignment of rows to the clusters of a level.

    `nearest` int32 (n,) is the nearest cluster. With overlap, `second` int32 (n,) is the cluster
    beyond the nearest cluster boundary, or -1 if there is no boundary, and `distance` float64 (n,)
    is the distance to that boundary in kernel space. Without overlap both are None.
    """

    nearest: np.ndarray
    second: np.ndarray | None = None
    distance: np.ndarray | None = None

    @staticmethod
    def at_root(n: int, *, second: bool = False) -> Assignment:
        boundaries = (np.full(n, -1, np.int32), np.full(n, np.inf)) if second else ()
        return Assignment(np.zeros(n, np.int32), *boundaries)

    @property
    def boundaries(self) -> tuple[np.ndarray, np.ndarray]:
        """`second` and `distance`, for an assignment with overlap."""
        assert self.second is not None and self.distance is not None
        return self.second, self.distance

    def take(self, rows: np.ndarray | slice) -> Assignment:
        taken = {name: array[rows] for name, array in vars(self).items() if array is not None}
        return Assignment(**taken)

    def across(self, rows: np.ndarray) -> np.ndarray:
        """Return the second clusters of rows, -1 for rows with one cluster."""
        return np.full(len(rows), -1, np.int32) if self.second is None else self.second[rows]

    def put(self, rows: np.ndarray | slice, placed: Assignment) -> None:
        """Set the assignment of some rows; both assignments have second clusters, or neither."""
        self.nearest[rows] = placed.nearest
        if self.second is not None:
            second, distance = self.boundaries
            second[rows], distance[rows] = placed.boundaries

    def shares(self, blend: float) -> np.ndarray:
        """Return the weight of the nearest cluster in predictions, float64 (n,).

        It is 1/2 at a boundary and grows linearly to 1 at the distance `blend`.
        """
        if blend == 0:
            return np.ones(len(self.nearest))
        return np.minimum(0.5 * (1.0 + self.boundaries[1] / blend), 1.0)


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """Split of the nodes of one level into the clusters of the next finer level.

    The children of node p are the clusters first_child[p] to before first_child[p + 1]. Its sampled
    rows are start[p] to before start[p + 1], sorted by child; a node with one child has no sampled
    rows. Both arrays are int64 (n_nodes + 1,). `child` int32 is the child of each sampled row,
    counted from 0 within its node. `products` float64 are the inner products of the centers, an
    n x n block for a node with n children.
    """

    first_child: np.ndarray
    start: np.ndarray
    child: np.ndarray
    products: np.ndarray

    @property
    def n_clusters(self) -> int:
        return int(self.first_child[-1])

    @property
    def n_parts(self) -> np.ndarray:
        """Number of children of each node."""
        return np.diff(self.first_child)

    @property
    def cluster(self) -> np.ndarray:
        """Cluster of each sampled row, ascending."""
        return np.repeat(self.first_child[:-1], np.diff(self.start)) + self.child

    def of(self, data: KernelRows, rows: np.ndarray) -> _core.FoundSplit:
        """Return the core's split, given the indices int32 of the sampled rows in `data`."""
        nodes = _core.Nodes(data.points, rows, self.start)
        return _core.FoundSplit(nodes, self.first_child, self.child, self.products)


@dataclass(frozen=True, eq=False)
class Partition:
    """Tree of clusters.

    `splits` are the node splits of each level, coarsest first, and `sample` their sampled rows,
    level by level. Rows nearer to a cluster boundary than `blend`, in kernel space, are predicted
    by the models of both clusters; 0 uses the nearest cluster only.
    """

    kernel: Kernel
    sample: Rows
    splits: tuple[NodeSplit, ...]
    blend: float = 0.0

    @property
    def n_clusters(self) -> int:
        return self.splits[-1].n_clusters

    def place(
        self,
        rows: Rows,
        threads: int,
        stop: _core.Stop | None = None,
        *,
        second: bool = False,
        begin: Assignment | None = None,
        float64: bool = False,
    ) -> Assignment:
        """Assign rows to the finest level, with second clusters if `second`.

        `begin` is the assignment to the nodes of the first split, by default to the root. Ties go
        to the cluster with the lowest index. `float64` is for rows whose kernel values
        overflow float32. Raises Stopped.
        """
        begin = begin or Assignment.at_root(rows.n_samples)
        placed = Assignment.at_root(rows.n_samples, second=second)
        sources = EncodedSources.cached(self.sample, self.kernel)
        row_size = max(rows.row_size, sources.row_size(threads))
        batch_size = ROUTED_BY_FEW if self.kernel.type.is_linear else BATCH_ROUTED
        for batch in slices(rows.n_samples, batch_size // row_size):
            block = rows.part(batch)
            meetings = (
                [sources.float64_meeting(block, threads)]
                if float64
                else sources.meetings(block, threads)
            )
            for meeting in meetings:
                part = begin.take(batch).take(meeting.place)
                for split in self.found(meeting.sources):
                    part = route_step(
                        meeting.targets,
                        part,
                        split,
                        stop,
                        meeting.numbers,
                        second=second,
                        float64=float64,
                    )
                placed.put(np.arange(batch.start, batch.stop)[meeting.place], part)
        return placed

    def found(self, sources: KernelRows) -> list[_core.FoundSplit]:
        """Return the core's splits, cached, for the sampled rows in one encoding."""
        cache = _cache.setdefault(self, {})
        splits = cache.get(sources.points)
        if splits is None:
            ends = np.cumsum([0, *(len(split.child) for split in self.splits)])
            splits = [
                split.of(sources, np.arange(first, last, dtype=np.int32))
                for split, first, last in zip(self.splits, ends[:-1], ends[1:], strict=True)
            ]
            if len(cache) >= MAX_FORMS:
                cache.clear()
            cache[sources.points] = splits
        return splits

    def assign(self, rows: Rows, threads: int, stop: _core.Stop | None = None) -> np.ndarray:
        """Return the nearest cluster of the finest level, int32 (n,). Raises Stopped."""
        return self.place(rows, threads, stop).nearest


def blended(
    values_by: Callable[[np.ndarray | slice, np.ndarray], np.ndarray],
    placed: Assignment,
    blend: float,
) -> np.ndarray:
    """Blend the decision values (n, k) of rows near a cluster boundary.

    `values_by(rows, cluster)` returns decision values of rows, each by the model of its given
    cluster, or nan if that cluster has no model. A row near a boundary gets the mean of both
    clusters, weighted by `Assignment.shares`. If only one cluster has a model, it gets that value.
    """
    values = values_by(slice(None), placed.nearest)
    if blend == 0:
        return values
    share, (across, _) = placed.shares(blend), placed.boundaries
    near = np.flatnonzero((share < 1.0) & (across >= 0))
    if len(near) == 0:
        return values
    first, second = values[near], values_by(near, across[near])
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
    """Build a partition from the data of a model file.

    `n_parts` int64 is the number of children of each node, level by level. `clusters` has an array
    for each level: the cluster of each sampled row, ascending. `products` are the inner products of
    the centers of all levels, None to compute them from the sample. Raises ValueError for
    inconsistent arrays.
    """
    data = None
    splits, n_nodes, first = [], 1, 0
    for cluster in clusters:
        n_children, n_parts = n_parts[:n_nodes], n_parts[n_nodes:]
        first_child = np.concatenate(([0], np.cumsum(n_children)))
        if (
            len(n_children) < n_nodes
            or np.any((n_children < 1) | (n_children > MAX_PARTS))
            or n_children[n_children > 1].sum() > len(cluster)
            or np.any(cluster >= first_child[-1])
        ):
            raise ValueError("the clusters of a level do not fit the level above")
        node = np.searchsorted(first_child, cluster, side="right") - 1
        start = np.searchsorted(node, np.arange(n_nodes + 1))
        part = (cluster - first_child[node]).astype(np.int32)
        rows = np.arange(first, first + len(cluster), dtype=np.int32)
        if products is None:
            data = data or KernelRows(sample, kernel, 1)
            nodes = _core.Nodes(data.points, rows, start)
            level_products = _core.mean_products(data.setup, nodes, part, first_child, 1)
        else:
            size = int((n_children**2).sum())
            level_products, products = products[:size], products[size:]
            if len(level_products) < size:
                raise ValueError("too few inner products of centers")
        splits.append(NodeSplit(first_child, start, part, level_products))
        n_nodes, first = int(first_child[-1]), first + len(cluster)
    if len(n_parts) or not splits or (products is not None and len(products)):
        raise ValueError("more nodes or inner products of centers than the levels have")
    return Partition(kernel, sample, tuple(splits), blend)


def route_step(
    data: KernelRows,
    placed: Assignment,
    split: _core.FoundSplit,
    stop: _core.Stop | None,
    rows: np.ndarray | None = None,
    *,
    second: bool,
    float64: bool = False,
) -> Assignment:
    """Assign rows to the next finer level.

    `rows` int32 are the indices of the assigned rows in `data`, None for all. Raises Stopped.
    """

    def routed(
        node: np.ndarray, second: bool
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        return _core.route(
            data.setup, data.points, rows, node, split, data.threads, stop,
            second=second, double_tiles=float64,
        )  # fmt: skip

    found = Assignment(*routed(placed.nearest, second))
    if not second or placed.second is None:
        return found
    across, distance = found.boundaries
    across_above, distance_above = placed.boundaries
    is_nearer = distance < distance_above
    # If the nearest boundary is that of a level above, the second cluster is a child of the cluster
    # beyond it.
    beyond = routed(np.where(is_nearer, -1, across_above).astype(np.int32), False)[0]
    return Assignment(
        found.nearest,
        np.where(is_nearer, across, beyond),
        np.where(is_nearer, distance, distance_above),
    )
