"""The figure of Theorem 1: f(alpha bar) - f(alpha*) and its bound 1/2 C^2 D(pi).

10,000 rows of covtype, 8 to 128 clusters, by kernel k-means and at random. Beside the paper's
curves is the bound of Theorem 3: D over the union of S*, the support vectors of alpha*, and those
of alpha bar.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from paper.cells import Cell
from paper.experiments import problem, rbf
from paper.fitted import expansion, objective
from paper.problems import DATA_SETS as KNOWN
from paper.problems import load
from paper.scales import Scale
from paper.subproblems import Subproblems

DATA_SETS = ("covtype",)
CLUSTERS = (8, 16, 32, 64, 128)
PARTITIONS = ("kernel k-means", "random")
UNTIMED = True
ROWS, SAMPLE, TOLERANCE = 10_000, 2_000, 1e-4


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [cell(name, k, p, threads) for name in names for p in PARTITIONS for k in CLUSTERS]


def cell(name: str, clusters: int, partition: str, threads: int) -> Cell:
    settings = {
        "problem": problem(name, ROWS, 1),
        "C": KNOWN[name].C,
        "kernel": rbf(KNOWN[name].gamma),
        "clusters": clusters,
        "partition": partition,
        "threads": threads,
    }
    return Cell("bound", f"{name}-{partition.split()[0]}-{clusters}", settings)


def measure(settings: dict, folder: Path) -> dict:
    data, threads = load(settings["problem"], folder), settings["threads"]
    kernel, C = Kernel(**settings["kernel"]), settings["C"]
    cluster = partition(settings, data.X, kernel)
    problem = Subproblems(data.X, data.y, C, kernel, threads)
    glued, best = np.zeros(len(data.y)), np.zeros(len(data.y))
    parts = [np.flatnonzero(cluster == c) for c in np.unique(cluster)]
    problem.solve(glued, parts, TOLERANCE)
    problem.solve(best, [np.arange(len(data.y))], TOLERANCE)
    support = np.flatnonzero((glued != 0) | (best != 0))
    half = 0.5 * C**2
    least = objective(kernel, data.X, best, threads)
    return {
        "clusters": len(parts),
        "largest_cluster": max(map(len, parts)),
        "objective": least,
        "difference": objective(kernel, data.X, glued, threads) - least,
        "bound": half * between(data.X, cluster, kernel, threads),
        "support_bound": half * between(data.X[support], cluster[support], kernel, threads),
    }


def partition(settings: dict, X: np.ndarray, kernel: Kernel) -> np.ndarray:
    """Return the cluster of every row."""
    if settings["partition"] == "random":
        return np.random.default_rng(0).permutation(np.arange(len(X)) % settings["clusters"])
    data = KernelRows(Rows.from_array(X), kernel, settings["threads"])
    tree = Tree(data, kernel, sample_size=SAMPLE, seed=0)
    tree.grow(settings["clusters"], second=False)
    return tree.placed[-1].nearest


def between(X: np.ndarray, cluster: np.ndarray, kernel: Kernel, threads: int) -> float:
    """Compute D(pi), the sum of K >= 0 over all ordered pairs of rows in different clusters."""

    def with_others(own: np.ndarray) -> float:
        others = X[~own]
        return float(expansion(kernel, others, np.ones(len(others)), threads)(X[own]).sum())

    clusters = np.unique(cluster)
    return sum(with_others(cluster == c) for c in clusters) if len(clusters) > 1 else 0.0
