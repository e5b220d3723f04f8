"""The (C, gamma) grids on test rows, their sums, and figures of robustness.

DC-SVM and early prediction on all rows, each grid as one search: early prediction with the paper's
64 clusters, and with the number that the search chooses. On a subset of the rows LIBSVM and LaSVM,
too: there every method trains every setting alone, on one thread as svm-train does, so that times
can be compared.
"""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path

import numpy as np

import dcsvm
from dcsvm.kernel.kernels import Kernel
from paper import measure as measuring
from paper import memory, problems, published
from paper.baselines import fitter
from paper.baselines.dc_svm import BRANCHING, LEVELS, plan_of
from paper.cells import Cell
from paper.experiments import problem, rbf
from paper.measure import accuracy
from paper.scales import Scale

DATA_SETS = ("ijcnn1", "webspam", "covtype", "census", "kddcup99")
EXPONENTS = (-10, -6, 1, 6, 10)  # exponents of 2, for C and for gamma
SETTINGS = tuple(product(EXPONENTS, EXPONENTS))
METHODS = ("early", "found", "dcsvm")
ALONE = ("early", "dcsvm")
PEERS = LIMITED = ("libsvm", "lasvm")
PEER_TEST_ROWS = 10_000  # at most


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    whole = [cell(scale, name, method, threads) for name in names for method in METHODS]
    return whole + [
        one
        for name in filter(has_peers, names)
        for method in (*ALONE, *PEERS)
        for one in subset_cells(scale, name, method)
    ]


def cell(scale: Scale, name: str, method: str, threads: int) -> Cell:
    chosen = problem(name, scale.grid_rows, scale.grid_test_rows)
    settings = {"problem": chosen, "method": method, "threads": threads}
    return Cell("grid", f"{name}-{method}", settings)


def has_peers(name: str) -> bool:
    """Return whether the paper compares methods on the grid of a data set, or it is generated."""
    replaced = problems.DATA_SETS[name].stands_for or name
    return replaced in published.GRID_SUMS or name == "generated"


def subset_cells(scale: Scale, name: str, method: str) -> list[Cell]:
    """List a method's cells on the subset: one for our methods, one per setting for a peer."""
    test_rows = min(scale.grid_test_rows or PEER_TEST_ROWS, PEER_TEST_ROWS)
    chosen = problem(name, scale.grid_peer_rows, test_rows)
    settings = {"problem": chosen, "method": method, "threads": 1}
    groups = {f"{name}-subset-{method}": SETTINGS}
    if method in PEERS:
        groups = {f"{name}-subset-{method}-{c}-{g}": ((c, g),) for c, g in SETTINGS}
    return [
        Cell("grid", label, {**settings, "exponents": exponents})
        for label, exponents in groups.items()
    ]


def measure(settings: dict, folder: Path) -> dict:
    """Measure one search of the whole grid, or settings trained alone."""
    return (alone if "exponents" in settings else searched)(settings, folder)


def alone(settings: dict, folder: Path) -> dict:
    """Train each setting from the start; return its accuracy and seconds, without reading."""
    data = problems.load(settings["problem"], folder)
    fit, found = fitter(settings["method"]), []
    limit = {"limit": measuring.limit} if settings["method"] == "libsvm" else {}
    for c, g in settings["exponents"]:
        kernel, threads = Kernel(**rbf(2.0**g)), settings["threads"]
        fitted = fit(data.X, data.y, 2.0**c, kernel, threads=threads, **limit)
        found.append(
            {
                "log2_C": c,
                "log2_gamma": g,
                "accuracy": accuracy(fitted.decision_function(data.X_test), data.y_test),
                "seconds": fitted.seconds,
                "n_sv": fitted.facts["n_sv"],
                "converged": fitted.facts.get("converged", True),
            }
        )
    return {"n_rows": len(data.y), "settings": found}


def searched(settings: dict, folder: Path) -> dict:
    """Solve every setting completely; return scores and the total seconds, without reading."""
    data = problems.load(settings["problem"], folder)
    X, y = np.concatenate([data.X, data.X_test]), np.concatenate([data.y, data.y_test])
    folds = np.repeat([-1, 0], [len(data.y), len(data.y_test)])
    is_early, level = settings["method"] != "dcsvm", None
    if is_early:
        plan = plan_of(data.X, data.y, LEVELS, BRANCHING)
        level = plan.early_level if settings["method"] == "early" else None
    data = None
    values = [2.0**exponent for exponent in EXPONENTS]
    start = time.perf_counter()
    found, added = memory.measured(
        lambda: dcsvm.grid_search(
            X,
            y,
            Cs=values,
            gammas=values,
            folds=folds,
            every=True,
            early=is_early,
            early_level=level,
            threads=settings["threads"],
        )
    )
    return {
        "seconds": time.perf_counter() - start,
        "n_rows": int(np.count_nonzero(folds < 0)),
        "added_mb": added,
        "settings": [
            {
                "log2_C": float(np.log2(score.setting.C)),
                "log2_gamma": float(np.log2(score.setting.gamma)),
                "accuracy": 1.0 - score.loss,
                "seconds": score.seconds,
                "n_sv": score.n_sv,
                "converged": score.converged,
            }
            for score in found.scores
        ],
    }
