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
    matrix = data.matrix()
    cluster = _kernel_kmeans(matrix, max(1, round(n_clusters * KMEANS_SHARE)), rng, threads)
    tried = np.sort(rng.choice(rows.n_samples, min(TRIED_ROWS, rows.n_samples), replace=False))
    kernel_values = np.empty((size, len(tried)), np.float32)
    for some in slices(len(tried), AT_ONCE // rows.row_size):
        targets, sources = two_sides(rows.take(tried[some]), sample, kernel, threads)
        kernel_values[:, some] = targets.matrix(targets=sources)
    tried_group = np.zeros(len(tried), np.int64) if group is None else group[tried]
    means = _Means(matrix, kernel_values, threads)
    cluster = _split_most_expensive(means, cluster, tried_group, n_clusters, rng)
    if not kernel.is_precomputed:
        return Partition(kernel, sample, cluster)
    squared_norms = _Centers(data, cluster, None).squared_norms
    return Partition(
        kernel, sample.take_for_model(np.arange(size)), cluster, squared_norms=squared_norms
    )


def _split_most_expensive(
    means: _Means,
    cluster: np.ndarray,
    group: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Split clusters of the sample in two until there are n_clusters or none can be split; `group`
    are the groups of the rows that stand for all."""
    count, n_groups = int(cluster.max()) + 1, int(group.max()) + 1
    cluster = cluster.copy()
    distances = np.full((max(n_clusters, count), len(group)), np.inf, np.float32)
    distances[:count] = means.distances(cluster, np.arange(count))
    nearest = distances.argmin(axis=0)
    final = np.zeros(n_clusters, bool)
    while count < n_clusters:
        sizes = np.bincount(nearest * n_groups + group, minlength=n_clusters * n_groups)
        cost = (sizes.reshape(n_clusters, n_groups) ** 2).sum(axis=1)
        cost[final] = 0
        costliest = int(cost.argmax())
        members = np.flatnonzero(cluster == costliest)
        halves = _kernel_kmeans(means.matrix[np.ix_(members, members)], 2, rng, means.threads)
        if cost[costliest] == 0:
            break
        if halves.max() == 0:
            final[costliest] = True
            continue
        cluster[members[halves == 1]] = count
        both = np.array([costliest, count])
        found = means.distances(cluster, both)
        moved = (nearest == costliest) | (
            found.min(axis=0) < distances[nearest, np.arange(len(nearest))]
        )
        distances[both] = found
        nearest[moved] = distances[:, moved].argmin(axis=0)
        count += 1
    return _renumber(cluster)


@dataclass(frozen=True, eq=False)
class _Means:
    """Means of clusters of the sample, by its kernel `matrix` float32 (m, m) and `kernel_values`
    float32 (m, n) with rows that stand for all."""

    matrix: np.ndarray
    kernel_values: np.ndarray
    threads: int

    def distances(self, cluster: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Squared distances of all rows to the means of the chosen clusters, less the rows' own
        norms, float32 (len(chosen), n)."""
        place = np.full(cluster.max() + 1, -1, np.int32)
        place[chosen] = np.arange(len(chosen))
        sum_of = place[cluster]
        kept, sizes = sum_of >= 0, np.bincount(sum_of + 1, minlength=len(chosen) + 1)[1:]
        own = _core.row_sums(self.matrix, sum_of, len(chosen), self.threads)[:, kept]
        squared_norms = np.bincount(
            sum_of[kept], weights=own[sum_of[kept], np.arange(own.shape[1])]
        ) / (sizes * sizes)
        sums = _core.row_sums(self.kernel_values, sum_of, len(chosen), self.threads)
        sums *= (-2.0 / sizes)[:, None]
        sums += squared_norms[:, None]
        return sums.astype(np.float32)


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


def _kernel_kmeans(
    matrix: np.ndarray, n_clusters: int, rng: np.random.Generator, threads: int
) -> np.ndarray:
    """Cluster numbers int32 (m,), none empty, by kernel k-means on a kernel matrix float32
    (m, m)."""
    seeds = _spread_seeds(matrix, n_clusters, rng)
    to_seeds = matrix[:, seeds].astype(np.float64)
    cluster = (np.diag(matrix)[seeds] - 2.0 * to_seeds).argmin(axis=1)
    for _ in range(LARGEST_ITERATIONS):
        cluster = _renumber(cluster)
        sizes = np.bincount(cluster)
        means = _core.row_sums(matrix, cluster, len(sizes), threads) / sizes[:, None]
        own = means[cluster, np.arange(len(cluster))]
        squared_norms = np.bincount(cluster, weights=own) / sizes
        moved = (squared_norms[:, None] - 2.0 * means).argmin(axis=0)
        if np.array_equal(moved, cluster):
            break
        cluster = moved
    return _renumber(cluster)


def _spread_seeds(matrix: np.ndarray, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++ (Arthur and Vassilvitskii 2007) in kernel space; fewer where points repeat."""
    diagonal = np.diag(matrix).astype(np.float64)
    seeds = [int(rng.integers(len(matrix)))]
    distance = np.full(len(matrix), np.inf)
    while len(seeds) < n_clusters:
        to_last = diagonal + diagonal[seeds[-1]] - 2.0 * matrix[seeds[-1]].astype(np.float64)
        distance = np.minimum(distance, np.maximum(to_last, 0.0))
        distance[distance <= 1e-6 * np.abs(diagonal)] = 0.0
        total = np.cumsum(distance)
        if not total[-1] > 0:
            break
        seeds.append(int(np.searchsorted(total, rng.random() * total[-1], side="right")))
    return np.array(seeds)


def _renumber(cluster: np.ndarray) -> np.ndarray:
    """The same clusters numbered without gaps."""
    is_used = np.bincount(cluster) > 0
    return (np.cumsum(is_used, dtype=np.int32) - 1)[cluster]
