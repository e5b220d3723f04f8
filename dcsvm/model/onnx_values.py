"""Nodes that compute decision values: by all support vectors, or by those of a row's clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import Partition
from dcsvm.model.onnx_clusters import ClusterNodes, near_rows
from dcsvm.model.onnx_input import RowNodes
from dcsvm.model.onnx_kernel import BLOCK_FEATURES, KernelNodes
from dcsvm.model.onnx_nodes import AFTER_ALL, DOUBLE, INT64, Graph, Step, in_blocks, in_groups
from dcsvm.model.parts import EarlyModel, ExactModel
from dcsvm.model.predict import pairs_of_lines

BLOCK_SUMS = 2**21  # sums of a block, by class and coefficient
SUMS_OF_CLUSTERS = 2**24  # numbers of a block times clusters: each cluster has a last block


def decision_values(
    graph: Graph, kernel: Kernel, part: ExactModel | EarlyModel, rows: RowNodes
) -> str:
    """Compute decision values float64 (n, n_pairs), at least one pair, of all rows."""
    machines: Machines | LinearMachines
    if LinearMachines.suits(kernel, part):
        machines = LinearMachines(graph, part, rows)
    else:
        machines = Machines(graph, kernel, part, rows)
    n_pairs, n = part.rho.shape[-1], rows.count(graph)
    if isinstance(part, ExactModel):
        return in_blocks(graph, n, machines.block, n_pairs, machines.values)
    return _of_clusters(graph, machines, part.partition, rows, n_pairs)


class Machines:
    """The machines of the clusters of a part, or its only one.

    `block` is the number of rows to predict at once. A cluster without vectors has one whose
    coefficients are 0.
    """

    def __init__(self, graph: Graph, kernel: Kernel, part: ExactModel | EarlyModel, rows: RowNodes):
        rho = np.atleast_2d(part.rho)
        n_clusters, n_pairs = rho.shape
        cluster = _clusters(part)
        empty = np.setdiff1d(np.arange(n_clusters), cluster)
        class_ = np.zeros(len(cluster), np.int64) if part.class_ is None else part.class_
        cluster, class_ = (
            np.concatenate([own, more]) for own, more in ((cluster, empty), (class_, 0 * empty))
        )
        order = np.lexsort((class_, cluster))
        given = rows.vectors(part.rows)
        vectors = np.concatenate([given, np.zeros((len(empty), given.shape[1]), np.float32)])
        coef = np.concatenate([part.dual_coef.T, np.zeros((len(empty), len(part.dual_coef)))])
        self.rows, self.n_classes = rows, len(part.dual_coef) + 1
        self.start = np.searchsorted(cluster[order], np.arange(n_clusters + 1))
        vectors = vectors[order]
        self.kernel = KernelNodes(
            graph, kernel, vectors, _stored(graph, vectors, part.row_numbers, order)
        )
        self.coef, self.rho = graph.matrix(coef[order]), graph.constant(rho)
        self.coef_of_class: list[str] = []  # of the only machine
        # where the classes begin and end within their cluster
        ends = np.arange(n_clusters)[:, None] * self.n_classes + np.arange(self.n_classes + 1)
        number = (cluster * self.n_classes + class_)[order]
        self.ends = np.searchsorted(number, ends) - self.start[:-1, None]
        self.n_of_class = np.diff(self.ends[0])
        if isinstance(part, ExactModel):
            self.coef_of_class = graph.split(self.coef, self.n_of_class[self.n_of_class > 0], 0)
        most = int(np.diff(self.start).max())
        self.block = min(
            self.kernel.block(most, vectors.shape[1]),
            BLOCK_SUMS // (self.n_classes * (self.n_classes - 1)),
            SUMS_OF_CLUSTERS // (n_clusters * n_pairs),
        )
        self.block = max(self.block, 1)

    def values(self, graph: Graph, items: str, cluster: str | None = None) -> str:
        """Compute the values (m, n_pairs) of rows by the machine of a cluster (1,)."""
        vectors, coef = self.kernel.vectors, self.coef
        if cluster is None:
            cluster = graph.constant([0])
        else:
            begin, end = (graph.Gather(self.start, graph.Add(cluster, [more])) for more in (0, 1))
            coef = graph.Slice(coef, begin, end)
            vectors = self.kernel.some_vectors(graph, begin, end)
        K = self.kernel.values(graph, self.rows.taken(graph, items), vectors)
        sums = graph.MatMul(K, coef) if self.n_classes == 2 else self._sums(graph, K, coef, cluster)
        return graph.Sub(sums, graph.Gather(self.rho, cluster))

    def _sums(self, graph: Graph, K: str, coef: str, cluster: str) -> str:
        """Sum the values of pairs: a class i has coefficients of its k - 1 pairs.

        The sum of the pair (i, j) is that of class i with coefficient j - 1, and that of class j
        with coefficient i.
        """
        k = self.n_classes
        if self.coef_of_class:
            sums = self._sums_of_classes(graph, K)
        else:
            sums = self._sums_of_cluster(graph, K, coef, cluster)
        i, j = np.triu_indices(k, 1)
        first, second = i * (k - 1) + j - 1, j * (k - 1) + i
        return graph.Add(graph.columns(sums, first), graph.columns(sums, second))

    def _sums_of_classes(self, graph: Graph, K: str) -> str:
        """Sum the values of each class with its coefficients, (m, k (k - 1)), of all vectors."""
        is_there, k = self.n_of_class > 0, self.n_classes
        zeros = graph.filled(graph.Concat(graph.n_rows(K), [k - 1], axis=0), 0.0)
        sums = [zeros] * k
        own = graph.split(K, self.n_of_class[is_there], 1)
        for c, values, coef in zip(
            np.flatnonzero(is_there).tolist(), own, self.coef_of_class, strict=True
        ):
            sums[c] = graph.MatMul(values, coef)
        return graph.joined(sums)

    def _sums_of_cluster(self, graph: Graph, K: str, coef: str, cluster: str) -> str:
        """Sum the values of each class with its coefficients, (m, k (k - 1)), of a cluster."""
        k = self.n_classes
        ends = graph.Reshape(graph.Gather(self.ends, cluster), [-1])
        last = graph.Sub(graph.Gather(ends, [k]), [1])

        def step(inner: Graph, number: str) -> Step:
            own, after = (inner.Add(number, [more]) for more in (0, 1))
            begin, end = (inner.Gather(ends, one) for one in (own, after))
            # a product needs a vector: the coefficients of a class without vectors are 0
            is_there = inner.cast(inner.Less(begin, end), DOUBLE)
            begin = inner.Min(begin, last)
            end = inner.Max(end, inner.Add(begin, [1]))
            weights = inner.Mul(inner.Slice(coef, begin, end), is_there)
            product = inner.MatMul(inner.Slice(K, begin, end, [1]), weights)
            return None, [], [(product, DOUBLE)]

        (products,) = graph.loop(graph.constant(k), [], step)  # (k, m, k - 1)
        by_row = graph.Transpose(products, perm=[1, 0, 2])
        return graph.Reshape(by_row, [-1, k * (k - 1)])


class LinearMachines:
    """Machines with the linear kernel, as one vector for each pair."""

    def __init__(self, graph: Graph, part: ExactModel | EarlyModel, rows: RowNodes):
        rho = np.atleast_2d(part.rho)
        n_clusters, n_pairs = rho.shape
        vectors = rows.vectors(part.rows).astype(np.float64)
        coef = part.dual_coef.T
        pair = np.zeros(coef.shape, np.int64)
        if n_pairs > 1:
            assert part.class_ is not None  # several pairs imply classes
            pair = pairs_of_lines(part.class_, coef.shape[1] + 1).astype(np.int64)
        machine = _clusters(part)[:, None] * n_pairs + pair
        owner = np.repeat(np.arange(len(coef)), coef.shape[1])
        shape = n_clusters * n_pairs, len(vectors)
        sums = sparse.csr_matrix((coef.ravel(), (machine.ravel(), owner)), shape) @ vectors
        weights = sums.reshape(n_clusters, n_pairs, vectors.shape[1]).transpose(0, 2, 1)
        self.weights, self.rho = graph.constant(weights), graph.constant(rho)
        self.rows = rows
        width = max(vectors.shape[1], n_pairs, n_clusters * n_pairs // 8)
        self.block = max(BLOCK_FEATURES // width, 1)

    @staticmethod
    def suits(kernel: Kernel, part: ExactModel | EarlyModel) -> bool:
        """Return whether the vectors of pairs are fewer numbers than the support vectors."""
        n_machines = np.atleast_2d(part.rho).size
        return kernel.type.is_linear and 2 * n_machines <= part.rows.n_samples

    def values(self, graph: Graph, items: str, cluster: str | None = None) -> str:
        """Compute the values (m, n_pairs) of rows by the machine of a cluster (1,)."""
        cluster = graph.constant([0]) if cluster is None else cluster
        weights = graph.Squeeze(graph.Gather(self.weights, cluster), [0])
        sums = graph.MatMul(self.rows.taken(graph, items), weights)
        return graph.Sub(sums, graph.Gather(self.rho, cluster))


def _stored(
    graph: Graph, vectors: np.ndarray, row_numbers: np.ndarray | None, order: np.ndarray
) -> str:
    """Return a tensor of the vectors (n, d); those of several clusters are stored once."""
    if row_numbers is not None:
        more = -1 - np.arange(len(order) - len(row_numbers))  # of empty clusters
        numbers = np.concatenate([row_numbers, more])[order]
        _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        if len(first) < len(numbers) and np.array_equal(vectors[first][inverse], vectors):
            index = inverse.astype(np.min_scalar_type(len(first)))
            return graph.Gather(graph.matrix(vectors[first]), graph.cast(index, INT64))
    return graph.matrix(vectors)


def _clusters(part: ExactModel | EarlyModel) -> np.ndarray:
    """Return the cluster of each support vector, int64 (n_sv,)."""
    if isinstance(part, EarlyModel):
        return part.cluster.astype(np.int64)
    return np.zeros(part.rows.n_samples, np.int64)


def _of_clusters(
    graph: Graph, machines: Any, partition: Partition, rows: RowNodes, n_pairs: int
) -> str:
    """Compute decision values by the machines of the nearest cluster, see `blended`."""
    blend = partition.blend
    nearest, second, distance = ClusterNodes(graph, partition, rows).place(graph)
    if second is None or distance is None:
        return graph.Gather(*in_groups(graph, nearest, machines.block, n_pairs, machines.values))
    # rows near a boundary follow the others once more, in their second cluster
    n = rows.count(graph)
    near, places = near_rows(graph, n, distance, blend)
    cluster = graph.Concat(nearest, graph.Gather(second, near), axis=0)
    values, back = in_groups(
        graph, cluster, machines.block, n_pairs,
        lambda inner, items, own: machines.values(inner, inner.Gather(places, items), own),
    )  # fmt: skip
    own, across = (
        graph.Gather(values, graph.Slice(back, begin, end))
        for begin, end in (([0], n), (n, [AFTER_ALL]))
    )
    share = graph.Mul(graph.Add(graph.Div(graph.Gather(distance, near), blend), 1.0), 0.5)
    share = graph.Unsqueeze(share, [1])
    first = graph.Gather(own, near)
    mean = graph.Add(graph.Mul(share, first), graph.Mul(graph.Sub(1.0, share), across))
    single = graph.Where(graph.IsNaN(first), across, first)  # if only one has a machine
    mean = graph.Where(graph.IsNaN(mean), single, mean)
    return graph.ScatterND(own, graph.Unsqueeze(near, [1]), mean)
