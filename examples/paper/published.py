"""The paper's numbers, as printed. Times are of an Intel Xeon X5355 at 2.66 GHz with 8 GB."""

from __future__ import annotations

import csv
from pathlib import Path

NUMBERS = Path(__file__).with_name("published_numbers")

DATA_SETS = {  # training rows, test rows, features
    "ijcnn1": (49_990, 91_701, 22),
    "cifar": (50_000, 10_000, 3072),
    "census": (159_619, 39_904, 409),
    "covtype": (464_810, 116_202, 54),
    "webspam": (280_000, 70_000, 254),
    "kddcup99": (4_898_431, 311_029, 125),
    "mnist8m": (8_000_000, 100_000, 784),
}

# accuracy (%) and milliseconds per row by data set, clusters and method
PREDICTION = {
    ("webspam", 50): {"naive": (92.6, 1.3), "bcm": (98.4, 2.5), "early": (99.1, 0.17)},
    ("webspam", 100): {"naive": (89.5, 1.3), "bcm": (95.3, 3.3), "early": (99.0, 0.16)},
    ("covtype", 50): {"naive": (94.6, 2.6), "bcm": (91.5, 3.7), "early": (96.1, 0.4)},
    ("covtype", 100): {"naive": (92.7, 2.6), "bcm": (89.3, 5.6), "early": (96.0, 0.2)},
}

# seconds of clustering and of training by level
LEVEL_TIMES = {
    4: (43.2, 159.4),
    3: (42.5, 439.7),
    2: (40.8, 1422.8),
    1: (38.1, 3135.5),
    0: (36.5, 7614.0),
}

# the sums of the grids
GRID_SUMS = {
    "ijcnn1": {"early": "16.4 min", "dcsvm": "2.3 h", "libsvm": "6.4 h"},
    "webspam": {"early": "5.6 h", "dcsvm": "4.3 days", "libsvm": "14.3 days"},
    "covtype": {"early": "10.3 h", "dcsvm": "4.8 days", "libsvm": "36.7 days"},
    "census": {"early": "1.5 h", "dcsvm": "1.4 days", "libsvm": "5.3 days"},
}


def comparison() -> dict[str, dict[str, tuple[float, float]]]:
    """Read seconds and accuracy (%) of the main tables, by data set and method."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for row in read("comparison.csv"):
        pair = float(row["seconds"]), float(row["accuracy"])
        found.setdefault(row["data_set"], {})[row["method"]] = pair
    return found


def grid() -> dict[tuple[str, int, int, str], tuple[str, str]]:
    """Read accuracy (%) and seconds as printed, by data set, log2 C, log2 gamma and method."""
    return {
        (row["data_set"], int(row["log2_C"]), int(row["log2_gamma"]), row["method"]): (
            row["accuracy"],
            row["seconds"],
        )
        for row in read("grid.csv")
    }


def read(name: str) -> list[dict[str, str]]:
    with open(NUMBERS / name, encoding="ascii") as file:
        return list(csv.DictReader(file))
