"""The figure of support vectors: precision and recall per level and against time, on covtype.

The support vectors of every level of DC-SVM, of CascadeSVM's levels, and of the direct solver
stopped at decreasing tolerances, each compared with the support vectors of the optimum.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dcsvm.kernel.kernels import Kernel
from paper.baselines import cascade, dc_svm
from paper.cells import Cell
from paper.experiments import fit_cell, polynomial_kernel, problem, rbf
from paper.problems import DATA_SETS as KNOWN
from paper.problems import POLYNOMIAL, load
from paper.scales import Scale

DATA_SETS = ("covtype",)
METHODS = ("dcsvm", "cascade", "direct")
LEVELS = 5  # 1024 clusters, fewer if clusters would have under 100 rows
TOLERANCES = (1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
REFERENCE_TOLERANCE = 1e-4


def kernels(name: str) -> dict[str, tuple[float, dict]]:
    """Return C and the kernel by the kernel's name."""
    C, gamma = POLYNOMIAL[name]
    known = KNOWN[name]
    return {"rbf": (known.C, rbf(known.gamma)), "polynomial": (C, polynomial_kernel(gamma))}


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [
        cell(scale, name, kernel, method, threads)
        for name in names
        for kernel in kernels(name)
        for method in METHODS
    ]


def cell(scale: Scale, name: str, kernel: str, method: str, threads: int) -> Cell:
    rows = scale.polynomial_rows if kernel == "polynomial" else scale.support_rows
    C, parameters = kernels(name)[kernel]
    chosen = problem(name, rows, 1)
    label = f"{name}-{kernel}-{method}"
    return fit_cell("support_vectors", label, chosen, method, threads, C=C, kernel=parameters)


def measure(settings: dict, folder: Path) -> dict:
    """Return `points` with seconds, precision and recall, and for levels the number of clusters."""
    data = load(settings["problem"], folder)
    problem = data.X, data.y, settings["C"], Kernel(**settings["kernel"])
    threads = settings["threads"]
    best = dc_svm.fit(*problem, threads=threads, tolerance=REFERENCE_TOLERANCE)
    wanted = np.sort(best.model.exact.row_numbers)
    points = {"dcsvm": by_level, "cascade": by_cascade, "direct": by_tolerance}
    found = points[settings["method"]](problem, threads)
    return {
        "n_rows": len(data.y),
        "n_sv": len(wanted),
        "points": [{**about, **quality(support, wanted)} for about, support in found],
    }


def quality(support: np.ndarray, wanted: np.ndarray) -> dict:
    """Return precision and recall of row numbers."""
    common = len(np.intersect1d(support, wanted))
    return {"precision": common / max(len(support), 1), "recall": common / max(len(wanted), 1)}


def by_level(problem: tuple, threads: int) -> list[tuple[dict, np.ndarray]]:
    fitted = dc_svm.fit(*problem, threads=threads, levels=LEVELS)
    report = fitted.model.report
    clusters = [level.n_clusters for level in report.levels]
    points = [
        ({"seconds": point["seconds"], "clusters": n}, support)
        for point, n, support in zip(
            fitted.history, clusters, report.support_by_level, strict=False
        )
    ]
    last = {"seconds": fitted.seconds, "clusters": 1}
    return [*points, (last, fitted.model.exact.row_numbers)]


def by_cascade(problem: tuple, threads: int) -> list[tuple[dict, np.ndarray]]:
    supports: list[np.ndarray] = []
    fitted = cascade.fit(*problem, threads=threads, look=supports.append)
    abouts = [{"seconds": p["seconds"], "clusters": p["parts"]} for p in fitted.history]
    return list(zip(abouts, supports, strict=True))


def by_tolerance(problem: tuple, threads: int) -> list[tuple[dict, np.ndarray]]:
    fits = [dc_svm.fit_direct(*problem, threads=threads, tolerance=t) for t in TOLERANCES]
    return [({"seconds": f.seconds}, f.model.exact.row_numbers) for f in fits]
