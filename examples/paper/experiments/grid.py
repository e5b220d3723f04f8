"""The (C, gamma) grids on test rows, one search per grid, their sums, and figures of robustness."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import dcsvm
from paper import memory, problems
from paper.cells import Cell
from paper.experiments import problem
from paper.scales import Scale

__all__ = ["DATA_SETS", "EXPONENTS", "METHODS", "cell", "cells", "measure"]

DATA_SETS = ("ijcnn1", "webspam", "covtype", "census", "kddcup99")
EXPONENTS = (-10, -6, 1, 6, 10)  # exponents of 2, for C and for gamma
METHODS = ("early", "dcsvm")


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [cell(scale, name, method, threads) for name in names for method in METHODS]


def cell(scale: Scale, name: str, method: str, threads: int) -> Cell:
    chosen = problem(name, scale.grid_rows, scale.grid_test_rows)
    settings = {"problem": chosen, "method": method, "threads": threads}
    return Cell("grid", f"{name}-{method}", settings)


def measure(settings: dict, folder: Path) -> dict:
    """Solve every setting completely; return scores and the total seconds, without reading."""
    data = problems.load(settings["problem"], folder)
    X, y = np.concatenate([data.X, data.X_test]), np.concatenate([data.y, data.y_test])
    folds = np.repeat([-1, 0], [len(data.y), len(data.y_test)])
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
            early=settings["method"] == "early",
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
