"""The data sets of the paper with its C and gamma, and loading a sample of one.

A problem is a dict in a cell's settings: `data` is a name below; `rows` and `test_rows` are the
numbers of random rows to use (None: all). With `divisor`, only that part of the training rows is
used: a half of them for 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
from made.checkerboard import checkerboard
from scipy.sparse import csr_array

from dcsvm.data.dataset import Dataset
from dcsvm.data.rows import Rows

GENERATED_ROWS, GENERATED_NOISE = 20_000, 0.02


@dataclass(frozen=True)
class DataSet:
    """Files of bench/datasets.py, C and gamma; `stands_for` is the replaced set of the paper.

    `limit` is the seconds of a competitor where ten times DC-SVM's are too many.
    """

    title: str
    train: str
    test: str
    C: float
    gamma: float
    stands_for: str | None = None
    limit: float | None = None


DATA_SETS = {
    "ijcnn1": DataSet("ijcnn1", "ijcnn1", "ijcnn1.t", 32, 2),
    "cifar": DataSet("cifar", "cifar.tr", "cifar.te", 8, 2**-22),
    "census": DataSet("census", "census.tr", "census.te", 512, 2**-9),
    "covtype": DataSet("covtype", "covtype.tr", "covtype.te", 32, 32),
    "webspam": DataSet("webspam", "webspam.tr", "webspam.te", 8, 32),
    "kddcup99": DataSet("kddcup99", "kddcup99.tr", "kddcup99.te", 256, 0.5),
    "kdd10": DataSet("kddcup99, 10 %", "kdd10.tr", "kdd10.te", 256, 0.5, "kddcup99"),
    "mnist8m": DataSet("mnist8m", "mnist8m.tr", "mnist8m.te", 1, 2**-21),
    "mnist": DataSet("MNIST", "mnist.tr", "mnist.te", 1, 2**-21, "mnist8m"),
    "cifar-made": DataSet("cifar, made", "cifar-made.tr", "cifar-made.te", 8, 2**-22, "cifar"),
    "webspam-made": DataSet(
        "webspam, made", "webspam-made.tr", "webspam-made.te", 8, 32, "webspam"
    ),
    "mnist8m-made": DataSet(
        "mnist8m, made", "mnist8m-made.tr", "mnist.te", 1, 2**-21, "mnist8m", limit=1_400
    ),
    "generated": DataSet("generated", "", "", 32, 16),
}
STAND_INS = {
    "cifar": ("cifar-made",),
    "webspam": ("webspam-made",),
    "kddcup99": ("kdd10",),
    "mnist8m": ("mnist", "mnist8m-made"),
}
POLYNOMIAL = {  # C and gamma for degree 3; the paper has no generated set
    "covtype": (2, 1),
    "webspam": (8, 16),
    "webspam-made": (8, 16),
    "generated": (1, 1),
}


@dataclass(frozen=True)
class Data:
    """Dense float32 rows (n, d) and (m, d), and float64 labels +1 and -1.

    `X` is uint8 if bytes were requested and the rows are stored so.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class UnusableError(Exception):
    """A sample that nothing can be measured on."""


def available(names: tuple[str, ...], folder: Path, *, every: bool = False) -> list[str]:
    """List the paper's data sets with prepared files, or with a substitute if only that exists.

    With `every`, each data set has all its substitutes beside it. An empty folder gives the
    generated data set alone.
    """
    if not any(is_prepared(name, folder) for name in DATA_SETS):
        return ["generated"]
    chosen = (
        [one for one in (name, *STAND_INS.get(name, ())) if is_prepared(one, folder)]
        for name in names
    )
    return [one for found in chosen for one in (found if every else found[:1])]


def names_of(experiment: ModuleType, folder: Path) -> list[str]:
    """List the data sets that are there of an experiment."""
    every = getattr(experiment, "EVERY_STAND_IN", False)
    return available(experiment.DATA_SETS, folder, every=every)


def is_prepared(name: str, folder: Path) -> bool:
    data_set = DATA_SETS[name]
    return all((folder / file).is_file() for file in (data_set.train, data_set.test))


def load(problem: dict, folder: Path, *, as_bytes: bool = False) -> Data:
    """Load the training and test rows of a problem.

    With `as_bytes`, training rows stored as bytes stay uint8. Raises DataError for unusable files,
    and UnusableError for training rows of one class.
    """
    divisor = problem.get("divisor", 1)
    if problem["data"] == "generated":
        rng = np.random.default_rng(0)
        counts = [problem[part] or GENERATED_ROWS for part in ("rows", "test_rows")]
        counts[0] //= divisor
        parts = [checkerboard(count, GENERATED_NOISE, rng) for count in counts]
        return Data(*(array for X, y in parts for array in (X.astype(np.float32), y.astype(float))))
    data_set = DATA_SETS[problem["data"]]
    train = folder / data_set.train
    X, y = read(train, problem["rows"], divisor=divisor, as_bytes=as_bytes)
    X_test, y_test = read(folder / data_set.test, problem["test_rows"])
    if len(np.unique(y)) < 2:
        raise UnusableError(f"{len(y)} training rows of {data_set.title} have one class")
    n_features = max(X.shape[1], X_test.shape[1])
    return Data(widen(X, n_features), y, widen(X_test, n_features), y_test)


def read(
    path: Path, count: int | None, *, divisor: int = 1, as_bytes: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Read `count` / `divisor` random rows of a file in file order.

    Without a count, or with fewer rows, all rows are counted.
    """
    dataset = Dataset.read(path)
    rows, labels = dataset.rows, dataset.labels
    count = min(count or len(labels), len(labels)) // divisor
    if count < len(labels):
        chosen = np.sort(np.random.default_rng(0).permutation(len(labels))[:count])
        rows, labels = rows.take(chosen), labels[chosen]
    X = rows.dense if as_bytes and rows.is_bytes else dense(rows)
    return X, np.where(labels > 0, 1.0, -1.0)


def dense(rows: Rows) -> np.ndarray:
    if rows.is_dense:
        return rows.as_floats().dense
    shape = rows.n_samples, rows.n_features
    return csr_array((rows.values, rows.indices, rows.indptr), shape=shape).toarray()


def widen(X: np.ndarray, n_features: int) -> np.ndarray:
    return np.pad(X, ((0, 0), (0, n_features - X.shape[1]))) if X.shape[1] < n_features else X
