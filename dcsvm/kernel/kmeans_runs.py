"""Several runs of kernel k-means for one level, and the best of them.

The best run has small kernel values between its clusters, at a limited cost. Two-step kernel
k-means clusters a sample of rows, then every row goes to the nearest center. A sample of support
vectors, as in adaptive clustering (section 4 of the paper), may be divided into equal parts while
all rows are not. The cost of a run is therefore that of a second sample, of all rows, which goes to
the nearest centers as all rows will.
"""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import group_sizes, slices
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel

STARTS = 8  # runs
# A run may cost this many times as much as equal clusters, or as the cheapest run if no run is that
# cheap. Of runs that cost about the same, the one with smaller kernel values between clusters has
# the smaller gap; examples/bench/README.md (Clusterings) has the gaps.
COST_LIMIT, MARGIN = 1.3, 1.15
# Rows of the second sample: 16 for each of 256 clusters. The standard error of a cost is 1 to 3 %.
COST_ROWS = 4096
BATCH = 1024  # rows that are compared with the centers of all runs at once


def best_of_runs(
    data: KernelRows,
    rows: np.ndarray,
    cost_rows: np.ndarray,
    group: np.ndarray | None,
    *,
    n_clusters: int,
    seed: int,
    svm_kernel: Kernel,
) -> np.ndarray:
    """Divide sampled rows int32 (m,) into at most n_clusters: the cluster of each row, int32 (m,).

    `data` has the kernel of the clustering, which may be flatter than `svm_kernel`. `cost_rows`
    int32 are a sample of all rows; `group` int is the component of each, None for a single one.
    """
    # all runs at once: each is a node of the core, with the same rows
    start = np.arange(STARTS + 1, dtype=np.int64) * len(rows)
    nodes = _core.Nodes(data.points, np.tile(rows, STARTS), start)
    n_each = np.full(STARTS, n_clusters, np.int32)
    runs = _core.kernel_kmeans(data.setup, nodes, n_each, seed, data.threads).reshape(STARTS, -1)
    nearest = nearest_centers(data, rows, runs, cost_rows)
    costs = [relative_cost(cluster, group, n_clusters) for cluster in nearest]
    return best_run(matrix_of(data, rows, svm_kernel), runs, costs)


def n_values(n_sampled: int, n_cost_rows: int) -> int:
    """Return the number of kernel values that the choice between runs takes, without the runs."""
    return n_sampled * (2 * n_sampled + n_cost_rows)


def best_run(matrix: np.ndarray, runs: np.ndarray, costs: list[float]) -> np.ndarray:
    """Return the best of `runs`, int32 (n_runs, m): the cluster of each sampled row.

    `matrix` (m, m) has the kernel values of the SVM. The best run has the smallest sum of kernel
    values between different clusters (D(pi) of the paper's Theorem 1) among the runs of a relative
    cost up to COST_LIMIT, or up to MARGIN times the cheapest one if that is more.
    """
    sizes, limit = np.abs(matrix), max(COST_LIMIT, MARGIN * min(costs))
    within = {k: pair_sums(sizes, runs[k]).sum() for k, cost in enumerate(costs) if cost <= limit}
    return runs[max(within, key=within.__getitem__)]


def nearest_centers(
    data: KernelRows, rows: np.ndarray, runs: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Return the nearest center of each run for target rows int32, int (n_runs, n_targets).

    `runs` int32 (n_runs, m) has the cluster of each of m sampled `rows`. Each kernel value is
    computed once for all runs.
    """
    n_runs, n_parts = len(runs), int(runs.max()) + 1
    # the mean kernel value with each center of each run is a column of the product
    column = (runs + n_parts * np.arange(n_runs, dtype=np.int32)[:, None]).T.reshape(-1)
    sizes = np.bincount(column, minlength=n_runs * n_parts)
    indptr = np.arange(len(rows) + 1, dtype=np.int64) * n_runs
    weights = indptr, column, 1.0 / sizes[column], len(sizes)
    own = matrix_of(data, rows, data.kernel)
    norms = np.stack([squared_norms(own, cluster, n_parts) for cluster in runs])
    nearest = np.empty((n_runs, len(targets)), np.int64)
    for batch in slices(len(targets), BATCH):
        means = data.product(weights, rows, target_rows=targets[batch])
        distances = norms - 2.0 * means.reshape(-1, n_runs, n_parts)
        nearest[:, batch] = distances.argmin(axis=2).T
    return nearest


def matrix_of(data: KernelRows, rows: np.ndarray, kernel: Kernel) -> np.ndarray:
    """Return the matrix (m, m) of a kernel on some of the rows."""
    return KernelRows(data.rows.take(rows), kernel, data.threads).matrix()


def squared_norms(matrix: np.ndarray, cluster: np.ndarray, n_parts: int) -> np.ndarray:
    """Return the squared norms of the centers of sampled rows, float64 (n_parts,).

    As in the core (csrc/kernel/kernel_kmeans.h) they are means over pairs of different rows. A
    part without rows is infinitely far.
    """
    norms = np.full(n_parts, np.inf)
    sizes = np.bincount(cluster)
    alone = np.bincount(cluster, matrix.diagonal())
    pairs = pair_sums(matrix, cluster) / np.maximum(sizes * (sizes - 1), 1)
    norms[: len(sizes)] = np.where(sizes > 1, pairs, alone)
    return norms


def pair_sums(matrix: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """Sum the values of the pairs of different rows of each cluster, float64 (n_clusters,)."""
    sums = []
    for c in range(int(cluster.max()) + 1):
        own = np.flatnonzero(cluster == c)
        values = matrix[np.ix_(own, own)].astype(np.float64)
        sums.append(values.sum() - np.trace(values))
    return np.array(sums)


def relative_cost(cluster: np.ndarray, group: np.ndarray | None, n_clusters: int) -> float:
    """Estimate the cost of all rows relative to equal clusters, from the clusters of a sample.

    The estimate is the share of pairs of different rows that are in one cluster and component,
    which does not depend on the number of rows on average.
    """
    n = len(cluster)
    in_one = float(cluster_costs(cluster, int(cluster.max()) + 1, group).sum()) - n
    return n_clusters * in_one / max(n * (n - 1), 1)


def cluster_costs(cluster: np.ndarray, n_clusters: int, group: np.ndarray | None) -> np.ndarray:
    """Return the cost of each cluster: the sum over components of the squared number of rows.

    `group` int is the component of each row, None for a single component.
    """
    if group is None:
        return np.bincount(cluster, minlength=n_clusters).astype(np.float64) ** 2
    n_groups = int(group.max()) + 1
    shared, sizes = group_sizes(cluster.astype(np.int64) * n_groups + group)
    return np.bincount(shared // n_groups, sizes.astype(np.float64) ** 2, n_clusters)
