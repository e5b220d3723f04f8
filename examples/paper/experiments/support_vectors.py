"""The figure of support vectors: precision and recall per level and against time, on covtype.

The support vectors of every level of DC-SVM, of CascadeSVM's levels, and of the direct solver
stopped at decreasing tolerances, each compared with the support vectors of the optimum. On a subset
that svm-train can solve, LIBSVM stopped at decreasing tolerances beside DC-SVM, both on one thread:
LIBSVM has a bias, so each of the two is compared with its own optimum.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dcsvm.kernel.kernels import Kernel
from dcsvm.model.model import Model
from paper.baselines import cascade, dc_svm, libsvm
from paper.cells import Cell
from paper.experiments import fit_cell, polynomial_kernel, problem, rbf
from paper.problems import DATA_SETS as KNOWN
from paper.problems import POLYNOMIAL, dense, load, widen
from paper.scales import Scale

DATA_SETS = ("covtype",)
METHODS = ("dcsvm", "cascade", "direct")
ON_SUBSET = ("dcsvm", "libsvm")
LEVELS = 5  # 1024 clusters, fewer if clusters would have under 100 rows
TOLERANCES = (1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
REFERENCE_TOLERANCE, LIBSVM_REFERENCE_TOLERANCE = 1e-4, 1e-6
WRITTEN_DIGITS = 8  # of a value in svm-train's model


def kernels(name: str) -> dict[str, tuple[float, dict]]:
    """Return C and the kernel by the kernel's name."""
    C, gamma = POLYNOMIAL[name]
    known = KNOWN[name]
    return {"rbf": (known.C, rbf(known.gamma)), "polynomial": (C, polynomial_kernel(gamma))}


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    found = []
    for name in names:
        for kernel in kernels(name):
            found += [cell(scale, name, kernel, method, threads) for method in METHODS]
            found += [subset_cell(scale, name, kernel, method) for method in ON_SUBSET]
    return found


def cell(scale: Scale, name: str, kernel: str, method: str, threads: int) -> Cell:
    rows = scale.polynomial_rows if kernel == "polynomial" else scale.support_rows
    return cell_on(rows, name, kernel, f"{name}-{kernel}-{method}", method, threads)


def subset_cell(scale: Scale, name: str, kernel: str, method: str) -> Cell:
    label = f"{name}-{kernel}-subset-{method}"
    return cell_on(scale.support_peer_rows, name, kernel, label, method, 1)


def cell_on(
    rows: int | None, name: str, kernel: str, label: str, method: str, threads: int
) -> Cell:
    C, parameters = kernels(name)[kernel]
    chosen = problem(name, rows, 1)
    return fit_cell("support_vectors", label, chosen, method, threads, C=C, kernel=parameters)


def measure(settings: dict, folder: Path) -> dict:
    """Return `points` with seconds, precision and recall, and for levels the number of clusters."""
    data = load(settings["problem"], folder)
    problem = data.X, data.y, settings["C"], Kernel(**settings["kernel"])
    threads = settings["threads"]
    points = {"dcsvm": by_level, "cascade": by_cascade, "direct": by_tolerance}
    if settings["method"] == "libsvm":
        found, wanted = by_libsvm(problem, threads)
    else:
        best = dc_svm.fit(*problem, threads=threads, tolerance=REFERENCE_TOLERANCE)
        wanted = np.sort(best.model.exact.row_numbers)
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


def by_libsvm(problem: tuple, threads: int) -> tuple[list[tuple[dict, np.ndarray]], np.ndarray]:
    """Return svm-train's support vectors by tolerance, and those of its optimum.

    Equal rows of a class are one support vector, since svm-train may choose any of them.
    """
    X, y, *_ = problem

    def run(tolerance: float) -> tuple[dict, np.ndarray]:
        fitted = libsvm.fit(*problem, threads=threads, tolerance=tolerance)
        return {"seconds": fitted.seconds}, numbers_of(fitted.model, X, y)

    return [run(tolerance) for tolerance in TOLERANCES], run(LIBSVM_REFERENCE_TOLERANCE)[1]


def numbers_of(model: Model, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the rows of X (n, d) that are support vectors of svm-train's model, ascending.

    The model has values of WRITTEN_DIGITS digits, which need not read back as the same float32.
    Equal rows of a class count as the first of them. Raises KeyError for an unknown vector.
    """
    as_read = rounded(X)
    known: dict[tuple[bytes, float], int] = {}
    for number, (row, label) in enumerate(zip(as_read, y.tolist(), strict=True)):
        known.setdefault((row.tobytes(), label), number)
    vectors = widen(dense(model.exact.rows), X.shape[1])
    sign = model.labels[0] * np.sign(model.exact.dual_coef[0])
    keys = zip((vector.tobytes() for vector in vectors), sign.tolist(), strict=True)
    return np.unique([known[key] for key in keys]).astype(np.int64)


def rounded(X: np.ndarray) -> np.ndarray:
    """Return X as it reads back from svm-train's model, which rounds its text again."""
    values, place = np.unique(X, return_inverse=True)
    texts = [f"{value:.{WRITTEN_DIGITS}g}" for value in libsvm.as_read(values).tolist()]
    return (np.array(texts, np.float64).astype(np.float32) + 0.0)[place].reshape(X.shape)
