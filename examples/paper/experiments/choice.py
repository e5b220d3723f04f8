"""C and gamma chosen by five folds on the paper's grid, and what they and the paper's have on test.

The search of dcsvm-grid: with early models, as for large data sets, and with exact models on fewer
rows. The model that is tested is of the same kind and has the same rows as those of the search.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import dcsvm
from paper.cells import Cell
from paper.experiments import problem
from paper.measure import accuracy
from paper.problems import DATA_SETS as KNOWN
from paper.problems import Data, load
from paper.scales import Scale

DATA_SETS = ("ijcnn1", "cifar", "census", "covtype", "webspam", "kddcup99", "mnist8m")
IMAGES = ("cifar", "mnist8m")
METHODS = ("early", "dcsvm")
FOLDS = 5
LEAST, GREATEST = -10, 10  # exponents of 2, for C and for gamma
IMAGE_SHIFT = -20  # of the exponents of gamma, for images, whose features reach 255


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [cell(scale, name, method, threads) for name in names for method in METHODS]


def cell(scale: Scale, name: str, method: str, threads: int) -> Cell:
    rows = scale.choice_rows if method == "early" else scale.choice_exact_rows
    exponents = list(range(LEAST, GREATEST + 1, scale.choice_step))
    shift = IMAGE_SHIFT if (KNOWN[name].stands_for or name) in IMAGES else 0
    settings = {
        "problem": problem(name, rows, scale.test_rows),
        "method": method,
        "log2_C": exponents,
        "log2_gamma": [exponent + shift for exponent in exponents],
        "paper": {"C": KNOWN[name].C, "gamma": KNOWN[name].gamma},
        "threads": threads,
    }
    return Cell("choice", f"{name}-{method}", settings)


def measure(settings: dict, folder: Path) -> dict:
    """Return the chosen setting with its accuracies, and the paper's with its test accuracy."""
    data = load(settings["problem"], folder, as_bytes=True)
    options = {"early": settings["method"] == "early", "threads": settings["threads"]}
    start = time.perf_counter()
    found = dcsvm.grid_search(
        data.X,
        data.y,
        Cs=[2.0**exponent for exponent in settings["log2_C"]],
        gammas=[2.0**exponent for exponent in settings["log2_gamma"]],
        folds=FOLDS,
        **options,
    )
    seconds = time.perf_counter() - start
    chosen, paper = {"C": found.best_C, "gamma": found.best_gamma}, settings["paper"]
    return {
        "n_rows": len(data.y),
        "n_settings": len(found.scores),
        "seconds": seconds,
        "log2_C": float(np.log2(found.best_C)),
        "log2_gamma": float(np.log2(found.best_gamma)),
        "fold_accuracy": 1.0 - found.best_loss,
        "test_accuracy": tested(data, chosen, options),
        "paper_test_accuracy": tested(data, paper, options),
    }


def tested(data: Data, setting: dict, options: dict) -> float:
    """Train on all rows with a setting; return the accuracy on the test rows."""
    model = dcsvm.train(data.X, data.y, **setting, **options)
    values = model.decision_function(data.X_test, threads=options["threads"])
    return accuracy(model.labels[0] * values, data.y_test)
