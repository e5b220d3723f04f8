"""Small generated files under the names that the manual's examples use.

They have the features, classes and scales of the published files, but other rows. The examples
have to run on them; their figures differ.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from reference import libsvm_text


def write_libsvm(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    path.write_text(libsvm_text(np.round(X, 6), y))


def two_classes(n_rows: int, n_features: int, rng: np.random.Generator):
    """Return two classes with a wavy boundary in the first two features; a few labels are wrong."""
    X = rng.uniform(-1, 1, (n_rows, n_features))
    X[:, 2:] *= 0.05
    height = X[:, 1] - 0.5 * np.sin(3 * X[:, 0]) - 0.75
    return X, np.where((height > 0) ^ (rng.uniform(size=n_rows) < 0.01), 1, -1)


def letters(n_rows: int, rng: np.random.Generator, n_classes: int = 4):
    """Return classes 1 to `n_classes`, each around a separate point."""
    y = rng.integers(1, n_classes + 1, n_rows)
    points = np.random.default_rng(7).uniform(-1, 1, (n_classes, 16))
    return points[y - 1] + rng.normal(0, 0.3, (n_rows, 16)), y


def percentages(n_rows: int, rng: np.random.Generator):
    """Return targets from 0 to 100 that depend on two of twelve features."""
    X = rng.uniform(0, 1, (n_rows, 12))
    return X, 99 * np.sin(2 * X[:, 0]) ** 2 * X[:, 1]


def write_all(folder: Path) -> None:
    rng = np.random.default_rng(0)
    write_libsvm(folder / "ijcnn1", *two_classes(4200, 22, rng))
    write_libsvm(folder / "ijcnn1.t", *two_classes(500, 22, rng))
    write_libsvm(folder / "letter", *letters(400, rng))
    write_libsvm(folder / "letter.t", *letters(100, rng))
    write_libsvm(folder / "cpu", *percentages(4100, rng))
    write_libsvm(folder / "cpu.t", *percentages(100, rng))
    write_libsvm(folder / "heart_scale", *two_classes(270, 13, rng))
    write_libsvm(folder / "train.txt", *two_classes(1000, 4, rng))
    write_libsvm(folder / "test.txt", *two_classes(300, 4, rng))
    (folder / "train.txt.gz").write_bytes(gzip.compress((folder / "train.txt").read_bytes()))
    ranges = "".join(f"{j} -1 1\n" for j in range(1, 5))
    (folder / "train.range").write_text(f"x\n-1 1\n{ranges}")
    write_census(folder / "census.csv", 400, rng)
    write_census(folder / "census.t.csv", 100, rng)
    write_libsvm(folder / "covtype.tr", *two_classes(2000, 54, rng))
    write_libsvm(folder / "covtype.te", *two_classes(300, 54, rng))


def write_census(path: Path, n_rows: int, rng: np.random.Generator) -> None:
    """Write a table of numbers, categories and a label of text."""
    ages, jobs = rng.integers(18, 80, n_rows), rng.choice(["clerk", "smith", "none"], n_rows)
    wages = rng.integers(0, 9, n_rows).astype(str)
    is_high = (ages > 40) == (jobs == "clerk")
    is_high[:2] = False
    labels = np.where(is_high, "50000+", "- 50000")
    lines = map(",".join, zip(ages.astype(str), wages, jobs, labels, strict=True))
    path.write_text("\n".join(["age,wage,job,income", *lines, ""]))
