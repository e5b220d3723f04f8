"""Nodes that assign rows to the clusters of a tree; the formulas are of csrc/kernel/routing.cc.

A row goes from a node to the child whose center is nearest, level by level.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import NodeSplit, Partition
from dcsvm.model.onnx_input import RowNodes
from dcsvm.model.onnx_kernel import KernelNodes
from dcsvm.model.onnx_nodes import AFTER_ALL, DOUBLE, INT64, Graph, in_blocks, in_groups

SAME_CENTER = 1e-12  # relative to the squared norms: equal except for rounding


class ClusterNodes:
    """A tree of clusters. Rows nearer to a boundary than `blend` are in a second cluster, too."""

    def __init__(self, graph: Graph, partition: Partition, rows: RowNodes):
        self.rows, self.blend = rows, partition.blend
        sample = rows.vectors(partition.sample)
        ends = np.cumsum([0, *(len(split.child) for split in partition.splits)])
        self.levels = [
            Level(graph, split, sample[first:last], partition.kernel, has_second=self.blend > 0)
            for split, first, last in zip(partition.splits, ends[:-1], ends[1:], strict=True)
        ]

    def place(self, graph: Graph) -> tuple[str, str | None, str | None]:
        """Return the nearest cluster of each row, int64 (n,).

        With overlap also the cluster beyond the nearest boundary, int64 (n,), and the distance to
        it, float64 (n,), infinite without a boundary. The former is valid below `blend`.
        """
        n = self.rows.count(graph)
        root, *levels = self.levels
        placed = in_blocks(graph, n, root.block, root.width, partial(self._routed, level=root))
        nearest, second, distance = _columns(graph, placed, root.width)
        for level in levels:
            if second is None or distance is None:
                route = partial(self._routed, level=level)
                placed = graph.Gather(*in_groups(graph, nearest, level.block, level.width, route))
                nearest, _, _ = _columns(graph, placed, level.width)
                continue
            # beyond a boundary of a level above, a row goes to a child of the cluster there
            near, which = near_rows(graph, n, distance, self.blend)
            node = graph.Concat(nearest, graph.Gather(second, near), axis=0)
            route = partial(self._routed, level=level, which=which)
            placed = graph.Gather(*in_groups(graph, node, level.block, level.width, route))
            own, beyond = graph.Slice(placed, [0], n), graph.Slice(placed, n, [AFTER_ALL])
            nearest, across, closest = _columns(graph, own, level.width)
            assert across is not None and closest is not None
            beyond, _, _ = _columns(graph, beyond, level.width)
            second = graph.ScatterElements(second, near, beyond, axis=0)
            second = graph.Where(graph.Less(closest, distance), across, second)
            distance = graph.Min(closest, distance)
        return nearest, second, distance

    def _routed(
        self,
        graph: Graph,
        items: str,
        node: str | None = None,
        *,
        level: Level,
        which: str | None = None,
    ) -> str:
        """Route rows, `items` (m,) or those of `which`, from a node (1,), see `Level.routed`."""
        rows = self.rows.taken(graph, graph.Gather(which, items) if which else items)
        return level.routed(graph, rows, graph.constant([0]) if node is None else node)


def near_rows(graph: Graph, n: str, distance: str, blend: float) -> tuple[str, str]:
    """Return the rows that are nearer to a boundary than `blend`, (m,), and all rows with these."""
    near = graph.Reshape(graph.NonZero(graph.Less(distance, blend)), [-1])
    return near, graph.Concat(graph.Range(0, graph.Squeeze(n), 1), near, axis=0)


def _columns(graph: Graph, placed: str, width: int) -> tuple[str, str | None, str | None]:
    """Return the columns of `Level.routed`."""
    nearest = graph.cast(graph.column(placed, 0), INT64)
    if width == 1:
        return nearest, None, None
    return nearest, graph.cast(graph.column(placed, 1), INT64), graph.column(placed, 2)


class Level:
    """The split of the nodes of a level; a node with one child gets a sampled row."""

    def __init__(
        self,
        graph: Graph,
        split: NodeSplit,
        sample: np.ndarray,
        kernel: Kernel,
        *,
        has_second: bool,
    ):
        self.width = 3 if has_second else 1
        self.first_child, self.n_parts = split.first_child[:-1], split.n_parts
        alone = np.flatnonzero(np.diff(split.start) == 0)
        places = split.start[alone]
        sample = np.insert(sample, places, np.float32(0), axis=0)
        self.kernel = KernelNodes(graph, kernel, sample, graph.matrix(sample))
        self.child = np.insert(split.child, places, 0).astype(np.uint8)  # of at most MAX_PARTS
        self.start = split.start + np.searchsorted(alone, np.arange(len(split.start)))
        # inner products of centers, node by node
        self.block_start = np.concatenate(([0], np.cumsum(self.n_parts**2)))[:-1]
        blocks = [
            split.products[begin : begin + n * n].reshape(n, n)
            for begin, n in zip(self.block_start, self.n_parts, strict=True)
        ]
        self.squares = np.concatenate([np.diagonal(one) for one in blocks])
        self.halves = np.concatenate([_half_inverse(one).ravel() for one in blocks])
        self.block = self.kernel.block(int(np.diff(self.start).max()), sample.shape[1])

    def routed(self, graph: Graph, rows: str, node: str) -> str:
        """Return the nearest child of rows float64 (m, d) of a node (1,), float64 (m, width).

        If the width is 3, further columns have the child beyond the nearest boundary, and the
        distance to it, infinite for a node with one child.
        """
        begin, end = (graph.Gather(self.start, graph.Add(node, [more])) for more in (0, 1))
        n, first = graph.Gather(self.n_parts, node), graph.Gather(self.first_child, node)
        children = graph.Range(0, graph.Squeeze(n), 1)
        K = self.kernel.values(graph, rows, self.kernel.some_vectors(graph, begin, end))
        part = graph.cast(graph.Slice(self.child, begin, end), INT64)
        is_own = graph.cast(graph.Equal(graph.Unsqueeze(part, [1]), children), DOUBLE)
        means = graph.MatMul(K, graph.Div(is_own, graph.sum_of(is_own, 0)))
        squares = graph.Slice(self.squares, first, graph.Add(first, n))
        squared = graph.Sub(squares, graph.Mul(means, 2.0))  # less K(x, x)
        best = graph.ArgMin(squared, axis=1, keepdims=1)
        nearest = graph.cast(graph.Add(best, first), DOUBLE)
        if self.width == 1:
            return nearest
        begin = graph.Gather(self.block_start, node)
        halves = graph.Slice(self.halves, begin, graph.Add(begin, graph.Mul(n, n)))
        halves = graph.Reshape(halves, graph.Concat(n, n, axis=0))
        halves = graph.Gather(halves, graph.Reshape(best, [-1]))
        smallest = graph.GatherElements(squared, best, axis=1)
        distances = graph.Mul(graph.Sub(squared, smallest), halves)
        distances = graph.Where(graph.Equal(best, children), np.inf, distances)
        other = graph.ArgMin(distances, axis=1, keepdims=1)
        second = graph.cast(graph.Add(other, first), DOUBLE)
        distance = graph.GatherElements(distances, other, axis=1)
        return graph.Concat(nearest, second, distance, axis=1)


def _half_inverse(products: np.ndarray) -> np.ndarray:
    """Return 1 / (2 |a - b|) for centers with these inner products (n, n), 0 for equal ones."""
    squares = np.diagonal(products)
    norms = squares[:, None] + squares
    between = np.maximum(norms - 2 * products, SAME_CENTER * np.abs(norms))
    is_apart = between > 0
    return np.where(is_apart, 0.5 / np.sqrt(np.where(is_apart, between, 1.0)), 0.0)
