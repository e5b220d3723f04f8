"""The table of prediction methods: naive, BCM and early, from one level of 50 or 100 clusters.

A tenth of the training rows is held out to fit the probabilities of BCM; all three methods use the
model of the other rows.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from dcsvm.kernels import Kernel
from paper.baselines.dc_svm import fit_early
from paper.bcm import Committee
from paper.cells import Cell
from paper.experiments import problem, rbf
from paper.measure import accuracy
from paper.problems import DATA_SETS as KNOWN
from paper.problems import load
from paper.scales import Scale

DATA_SETS = ("webspam", "covtype")
CLUSTERS = (50, 100)
LARGEST_HELD_OUT = 20_000  # rows


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
    order = np.random.default_rng(0).permutation(len(data.y))
    n_held = min(len(order) // 10, LARGEST_HELD_OUT)
    held, kept = order[:n_held], np.sort(order[n_held:])
    fitted = fit_early(
        data.X[kept],
        data.y[kept],
        settings["C"],
        Kernel(**settings["kernel"]),
        threads=threads,
        levels=1,
        branching=settings["clusters"],
    )
    model = fitted.model
    committee = Committee(model, data.X[held], data.y[held], threads)
    methods = {
        "naive": lambda X: model.decision_function(X, method="naive", threads=threads),
        "bcm": committee.decision_function,
        "early": fitted.decision_function,
    }
    result = {"n_rows": len(kept), "clusters": model.early.partition.n_clusters}
    for name, decide in methods.items():
        start = time.perf_counter()
        values = decide(data.X_test)
        milliseconds = 1e3 * (time.perf_counter() - start) / len(values)
        result[name] = {"accuracy": accuracy(values, data.y_test), "milliseconds": milliseconds}
    return result
