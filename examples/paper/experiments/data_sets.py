"""The table of data sets: rows, features and classes of the prepared files."""

from __future__ import annotations

from pathlib import Path

from paper.cells import Cell
from paper.experiments import problem
from paper.problems import load
from paper.scales import Scale

DATA_SETS = ("ijcnn1", "cifar", "census", "covtype", "webspam", "kddcup99", "mnist8m")
EVERY_STAND_IN = UNTIMED = True


def cells(scale: Scale, names: list[str], threads: int) -> list[Cell]:
    return [
        Cell("data_sets", name, {"problem": problem(name, None), "threads": threads})
        for name in names
    ]


def measure(settings: dict, folder: Path) -> dict:
    data = load(settings["problem"], folder, as_bytes=True)
    return {
        "n_train": len(data.y),
        "n_test": len(data.y_test),
        "n_features": data.X.shape[1],
        "positive": float((data.y > 0).mean()),
        "least": float(data.X.min()),
        "greatest": float(data.X.max()),
    }
