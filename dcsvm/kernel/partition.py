"""Two-step kernel k-means (the paper's section 3, after Chitta et al. 2011).

A sample of rows is clustered by kernel k-means; every other row goes to its nearest center in
kernel space. A center is the sampled rows of its cluster, so a Partition is the sample and its
cluster numbers, and training and test rows are routed by the same code. Euclidean k-means is the
same algorithm with the linear kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import AT_ONCE, Rows, slices
from dcsvm.kernel.kernel_rows import KernelRows, two_sides
from dcsvm.kernel.kernels import Kernel

LARGEST_ITERATIONS = 20
ROUTED_AT_ONCE = 2**21  # distances to centers and values of rows
KMEANS_SHARE = 0.75  # of the clusters; the others come from splitting; half costs 1.1 times, and
# all of them take 0.75 (ijcnn1) to 0.95 of the time: docs/benchmark.md, Constants
TRIED_ROWS = 4096  # rows whose clusters stand for those of all
LARGEST_MEDIAN_SAMPLE = 256  # rows whose distances choose the gamma of the clustering


@dataclass(frozen=True, eq=False)
class Partition:
    """Centers of clusters: `sample` rows, their clusters `cluster` int32 (m,), none empty.

    `squared_norms` float64 of the centers in kernel space; None where the sample tells them, which
    it does unless the kernel is precomputed.
    """

    kernel: Kernel
    sample: Rows
    cluster: np.ndarray
    squared_norms: np.ndarray | None = None

    @property
    def n_clusters(self) -> int:
        return int(self.cluster.max()) + 1

    def assign(self, rows: Rows, threads: int, stop: _core.Stop | None = None) -> np.ndarray:
        """Number of the nearest center, int32 (n,), for every row; ties go to the lowest. Raises
        Stopped."""
        nearest, squared_norms = np.empty(rows.n_samples, np.int32), self.squared_norms
        for some in slices(rows.n_samples, ROUTED_AT_ONCE // (self.n_clusters + rows.row_size)):
            if stop is not None and stop.is_requested:
                raise _core.Stopped
            targets, sample = two_sides(rows.part(some), self.sample, self.kernel, threads)
            centers = _Centers(sample, self.cluster, squared_norms)
            squared_norms = centers.squared_norms
            nearest[some] = centers.nearest(targets)
        return nearest


class _Centers:
    """Centers of clusters of sampled rows, ready to route others."""

    def __init__(self, sample: KernelRows, cluster: np.ndarray, squared_norms: np.ndarray | None):
        self.sample = sample
        sizes = np.bincount(cluster)
        # turn K(x, sample) into the mean over each cluster, as kernel_product takes weights
        indptr = np.arange(len(cluster) + 1, dtype=np.int64)
        self.weights = (indptr, cluster, 1.0 / sizes[cluster], len(sizes))
        if squared_norms is None:
            own = self.means(sample)[np.arange(len(cluster)), cluster]
            squared_norms = np.bincount(cluster, weights=own * self.weights[2])
        self.squared_norms = squared_norms

    def means(self, targets: KernelRows) -> np.ndarray:
        """Mean kernel value of rows with each cluster, float64 (n, n_clusters)."""
        return self.sample.product(self.weights, targets=targets)

    def nearest(self, targets: KernelRows) -> np.ndarray:
        distances = self.means(targets)
        distances *= -2.0
        distances += self.squared_norms
        return distances.argmin(axis=1).astype(np.int32)


def two_step_kernel_kmeans(
    rows: Rows,
    kernel: Kernel,
    n_clusters: int,
    *,
    sample_from: np.ndarray,
    sample_size: int,
    rng: np.random.Generator,
    threads: int,
    group: np.ndarray | None = None,
) -> Partition:
    """Centers of at most n_clusters clusters of `rows`, from a sample of the rows `sample_from`.

    Part of the clusters come from k-means, the others from splitting those that would cost most to
    solve, which is the sum of squares of the rows they share with each `group` (int, one a row;
    None: all are one group), until there are n_clusters. Fewer come back when the sample has fewer
    distinct points in kernel space.
    """
    size = min(sample_size, len(sample_from))
    chosen = np.sort(rng.choice(sample_from, size=size, replace=False))
    sample = rows.take(chosen)
    kernel = clustering_kernel(sample, kernel, threads)
    data = KernelRows(sample, kernel, threads)
    matrix = data.matrix().astype(np.float64)
    cluster = _kernel_kmeans(matrix, max(1, round(n_clusters * KMEANS_SHARE)), rng)
    tried = np.sort(rng.choice(rows.n_samples, min(TRIED_ROWS, rows.n_samples), replace=False))
    kernel_values = np.empty((size, len(tried)), np.float32)
    for some in slices(len(tried), AT_ONCE // rows.row_size):
        targets, sources = two_sides(rows.take(tried[some]), sample, kernel, threads)
        kernel_values[:, some] = sources.matrix(targets=targets).T
    tried_group = np.zeros(len(tried), np.int64) if group is None else group[tried]
    cluster = _split_most_expensive(matrix, cluster, kernel_values, tried_group, n_clusters, rng)
    if not kernel.is_precomputed:
        return Partition(kernel, sample, cluster)
    squared_norms = _Centers(data, cluster, None).squared_norms
    return Partition(
        kernel, sample.take_for_model(np.arange(size)), cluster, squared_norms=squared_norms
    )


def _split_most_expensive(
    matrix: np.ndarray,
    cluster: np.ndarray,
    kernel_values: np.ndarray,
    group: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Split clusters of the sample in two until there are n_clusters or none can be split.

    `kernel_values` float32 (m, n) are those with rows that stand for all, `group` their groups.
    """
    count, n_groups = int(cluster.max()) + 1, int(group.max()) + 1
    cluster = cluster.copy()
    distances = np.full((max(n_clusters, count), len(group)), np.inf, np.float32)
    for c in range(count):
        distances[c] = _distances(matrix, kernel_values, np.flatnonzero(cluster == c))
    nearest = distances.argmin(axis=0)
    final = np.zeros(n_clusters, bool)
    while count < n_clusters:
        sizes = np.bincount(nearest * n_groups + group, minlength=n_clusters * n_groups)
        cost = (sizes.reshape(n_clusters, n_groups) ** 2).sum(axis=1)
        cost[final] = 0
        costliest = int(cost.argmax())
        members = np.flatnonzero(cluster == costliest)
        halves = _kernel_kmeans(matrix[np.ix_(members, members)], 2, rng)
        if cost[costliest] == 0:
            break
        if halves.max() == 0:
            final[costliest] = True
            continue
        cluster[members[halves == 1]] = count
        for c in (costliest, count):
            distances[c] = _distances(matrix, kernel_values, np.flatnonzero(cluster == c))
        moved = (nearest == costliest) | (
            distances[[costliest, count]].min(axis=0)
            < distances[nearest, np.arange(len(nearest))]
        )
        nearest[moved] = distances[:, moved].argmin(axis=0)
        count += 1
    return _renumber(cluster)


def _distances(matrix: np.ndarray, kernel_values: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Squared distances of rows to the mean of some of the sample, less their own norms."""
    own = matrix[np.ix_(members, members)].mean()
    return own - 2.0 * kernel_values[members].mean(axis=0)


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
    median = float(np.median(distances)) if len(distances) else 0.0
    return replace(kernel, gamma=min(kernel.gamma, 1.0 / median)) if median > 0 else kernel


def _kernel_kmeans(matrix: np.ndarray, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Cluster numbers int32 (m,), none empty, by kernel k-means on a kernel matrix (m, m)."""
    seeds = _spread_seeds(matrix, n_clusters, rng)
    cluster = (np.diag(matrix)[seeds] - 2.0 * matrix[:, seeds]).argmin(axis=1)
    for _ in range(LARGEST_ITERATIONS):
        cluster = _renumber(cluster)
        sizes = np.bincount(cluster)
        order = np.argsort(cluster, kind="stable")
        starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        means = np.add.reduceat(matrix[order], starts, axis=0) / sizes[:, None]
        own = means[cluster, np.arange(len(cluster))]
        squared_norms = np.bincount(cluster, weights=own) / sizes
        moved = (squared_norms[:, None] - 2.0 * means).argmin(axis=0)
        if np.array_equal(moved, cluster):
            break
        cluster = moved
    return _renumber(cluster)


def _spread_seeds(matrix: np.ndarray, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++ (Arthur and Vassilvitskii 2007) in kernel space; fewer where points repeat."""
    diagonal = np.diag(matrix)
    seeds = [int(rng.integers(len(matrix)))]
    distance = np.full(len(matrix), np.inf)
    while len(seeds) < n_clusters:
        to_last = diagonal + diagonal[seeds[-1]] - 2.0 * matrix[seeds[-1]]
        distance = np.minimum(distance, np.maximum(to_last, 0.0))
        distance[distance <= 1e-6 * np.abs(diagonal)] = 0.0
        total = np.cumsum(distance)
        if not total[-1] > 0:
            break
        seeds.append(int(np.searchsorted(total, rng.random() * total[-1], side="right")))
    return np.array(seeds)


def _renumber(cluster: np.ndarray) -> np.ndarray:
    """The same clusters numbered without gaps."""
    return np.unique(cluster, return_inverse=True)[1].reshape(-1).astype(np.int32)
