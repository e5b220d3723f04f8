"""A tree of clusters with one row for each center, so that finding the cluster of a row costs one
inner product for each cluster that it could go to.

The centers of the paper are means of many rows in kernel space. These are means of the same rows
themselves: rows near a border may go to the other side of it, and are learnt there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.partition import Partition, partition_of


def with_single_centers(partition: Partition) -> Partition:
    """The same tree with the mean of the sampled rows for each cluster, nearest in Euclidean
    distance, and no row in two clusters; with all sampled rows where these are sparse, and their
    means would not be."""
    if not partition.sample.is_dense:
        return replace(partition, blend=0.0)
    sampled = partition.sample.as_floats().dense
    clusters, means, first = [], [], 0
    for fork in partition.forks:
        cluster, begins = np.unique(fork.cluster, return_index=True)
        own = sampled[first : first + len(fork.cluster)]
        sizes = np.diff([*begins, len(own)])
        means.append(np.add.reduceat(own, begins, axis=0) / sizes[:, None] if len(own) else own)
        clusters.append(cluster)
        first += len(fork.cluster)
    rows = np.concatenate(means).astype(np.float32)
    n_parts = np.concatenate([fork.n_parts for fork in partition.forks])
    return partition_of(Kernel("linear"), Rows(*rows.shape, dense=rows), n_parts, clusters, 0.0)


def values_on_the_way(partition: Partition) -> np.ndarray:
    """How many kernel values a row takes to find each cluster of the finest level, int64
    (n_clusters,)."""
    met = np.zeros(1, np.int64)
    for fork in partition.forks:
        met = np.repeat(met + np.diff(fork.start), fork.n_parts)
    return met
