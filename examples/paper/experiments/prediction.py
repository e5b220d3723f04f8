"""The table of prediction methods: naive, BCM and early, from one level of 50 or 100 clusters."""

from __future__ import annotations

import time
from pathlib import Path

from dcsvm.kernel.kernels import Kernel
from dcsvm.model.model import Model
from paper.baselines.dc_svm import fit_early
from paper.cells import Cell
from paper.committee import bcm, naive
from paper.experiments import problem, rbf
from paper.measure import accuracy
from paper.problems import DATA_SETS as KNOWN
from paper.problems import load
from paper.scales import Scale

DATA_SETS = ("webspam", "covtype")
CLUSTERS = (50, 100)


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [cell(scale, name, k, threads) for name in names for k in CLUSTERS]


def cell(scale: Scale, name: str, clusters: int, threads: int) -> Cell:
    settings = {
        "problem": problem(name, scale.prediction_rows, scale.test_rows),
        "C": KNOWN[name].C,
        "kernel": rbf(KNOWN[name].gamma),
        "clusters": clusters,
        "threads": threads,
    }
    return Cell("prediction", f"{name}-{clusters}", settings)


def measure(settings: dict, folder: Path) -> dict:
    data, threads = load(settings["problem"], folder), settings["threads"]
    fitted = fit_early(
        data.X,
        data.y,
        settings["C"],
        Kernel(**settings["kernel"]),
        threads=threads,
        levels=1,
        branching=settings["clusters"],
    )
    model = fitted.model
    result = {"n_rows": len(data.y), "clusters": model.early.partition.n_clusters}
    for method, predict in {"naive": naive, "bcm": bcm, "early": Model.decision_function}.items():
        start = time.perf_counter()
        values = predict(model, data.X_test, threads=threads)
        milliseconds = 1e3 * (time.perf_counter() - start) / len(values)
        result[method] = {"accuracy": accuracy(values, data.y_test), "milliseconds": milliseconds}
    return result
