"""The clusterings of dcsvm-train at the same levels: the paper's adaptive one and the others.

adaptive samples the support vectors of the finer level for two-step kernel k-means, random samples
all rows, tree splits the clusters of the coarser level, kmeans does so by Euclidean distances. The
finest level has no support vectors yet, so that adaptive and random are the same there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from paper.baselines.dc_svm import fit, fit_direct
from paper.cells import Cell
from paper.experiments import fit_cell, problem
from paper.experiments.bound import between
from paper.fitted import expansion, part_objective
from paper.problems import load
from paper.scales import Scale

DATA_SETS = ("covtype", "census")
CLUSTERINGS = ("adaptive", "random", "tree", "kmeans")
REFERENCE_TOLERANCE = 1e-5
SAMPLE = 2_000  # rows for D(pi), which takes all pairs


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [cell(scale, name, one, threads) for name in names for one in CLUSTERINGS]


def cell(scale: Scale, name: str, clustering: str, threads: int) -> Cell:
    chosen = problem(name, scale.clustering_rows, 1)
    label = f"{name}-{clustering}"
    return fit_cell("clustering", label, chosen, "dcsvm", threads, clustering=clustering)


def measure(settings: dict, folder: Path) -> dict:
    """Return the facts of each level's glued solution, and the costs of the complete training.

    A level is measured in a run in which it is the early level, so that it is solved to the
    tolerance of the whole: its gap is that of its clusters.
    """
    data, threads = load(settings["problem"], folder), settings["threads"]
    kernel, clustering = Kernel(**settings["kernel"]), settings["clustering"]
    problem = data.X, data.y, settings["C"], kernel
    best = fit_direct(*problem, threads=threads, tolerance=REFERENCE_TOLERANCE)
    least = best.facts["objective"]
    whole = fit(*problem, threads=threads, clustering=clustering)
    n_sampled = min(SAMPLE, len(data.y))
    sample = data.X[np.random.default_rng(0).choice(len(data.y), n_sampled, replace=False)]
    values = expansion(kernel, sample, np.ones(n_sampled), threads)(sample)

    def at(level: int) -> dict:
        model = fit(*problem, threads=threads, clustering=clustering, early_level=level).model
        cluster = model.early.partition.assign(Rows.from_array(sample), threads)
        report = next(one for one in model.report.levels if one.level == level)
        return {
            "clusters": report.n_clusters,
            "largest_cluster": report.largest_cluster,
            "gap": (part_objective(kernel, model.early, threads) - least) / abs(least),
            "between": between(sample, cluster, kernel, threads),
            "kernel_evaluations": report.kernel_evaluations,
            "seconds_clustering": report.seconds_clustering,
            "seconds_training": report.seconds_training,
        }

    return {
        "n_rows": len(data.y),
        "n_sampled": n_sampled,
        "between_all": float(values.sum()) - n_sampled,  # without K(x, x) = 1
        "seconds": whole.seconds,
        "kernel_evaluations": whole.facts["kernel_evaluations"],
        "levels": [at(level.level) for level in whole.model.report.levels],
    }
