"""Rows of LIBSVM text for the benchmark: read them and find duplicates.

The check of a solution works on distinct rows (features and label). The alphas of duplicates can be
shared among them in any way without changing the function, and a model file does not distinguish
them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Labels (or coefficients), and features: a float64 csr_matrix of SciPy without zeros."""

    labels: np.ndarray
    features: Any

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_features(self) -> int:
        return self.features.shape[1]

    def dense(self, chosen: np.ndarray, n_features: int) -> np.ndarray:
        """Return the chosen rows as float64, shape (len(chosen), n_features)."""
        out = np.zeros((len(chosen), n_features))
        out[:, : self.n_features] = self.features[chosen].toarray()
        return out

    def with_values(self, change: Callable[[np.ndarray], np.ndarray]) -> "Rows":
        features = self.features.copy()
        features.data = change(features.data)
        return Rows(self.labels, features)


def read(file) -> Rows:
    """Read a path or a binary file by scikit-learn, as the check must not use dcsvm's reader."""
    from sklearn.datasets import load_svmlight_file

    features, labels = load_svmlight_file(file, zero_based=False)
    features.eliminate_zeros()
    return Rows(labels, features)


def save(path: Path, rows: Rows, n_features: int) -> None:
    """Write rows for other Pythons: an .npz file of features, and one of labels beside it."""
    from scipy import sparse

    features = rows.features.copy()
    features.resize(len(rows), n_features)
    sparse.save_npz(path, features)
    np.save(f"{path}.labels.npy", rows.labels)


def sample_lines(source: Path, target: Path, count: int, seed: int) -> None:
    """Write `count` random lines of a file, in file order (all of them if there are fewer)."""
    lines = source.read_bytes().splitlines(keepends=True)
    chosen = np.random.default_rng(seed).permutation(len(lines))[:count]
    target.write_bytes(b"".join(lines[i] for i in np.sort(chosen)))


# Conversions of values: they match the model file of each solver with the training rows.


def exact(values: np.ndarray) -> np.ndarray:
    return values


def as_float32(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32).astype(np.float64)


def as_svm_train_writes(values: np.ndarray) -> np.ndarray:
    """Round to eight digits, as svm-train does for the values of support vectors."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([float(f"{value:.8g}") for value in distinct.tolist()])[inverse]


@dataclass(frozen=True)
class Distinct:
    """The distinct rows of a training set: index of the first copy, number of copies, label."""

    first: np.ndarray
    count: np.ndarray
    sign: np.ndarray
    group_of: np.ndarray  # the number of the distinct row of every training row
    by_key: dict[bytes, int]


def keys(rows: Rows) -> list[bytes]:
    """Return a key per row, equal for rows with equal features and equal sign of the label."""
    signs = [b"+" if label > 0 else b"-" for label in rows.labels]
    X, starts = rows.features, rows.features.indptr.tolist()
    return [
        sign + X.indices[a:b].tobytes() + X.data[a:b].tobytes()
        for sign, a, b in zip(signs, starts[:-1], starts[1:], strict=True)
    ]


def distinct(rows: Rows) -> Distinct:
    by_key: dict[bytes, int] = {}
    group_of = np.array([by_key.setdefault(key, len(by_key)) for key in keys(rows)])
    _, first, count = np.unique(group_of, return_index=True, return_counts=True)
    return Distinct(first, count, np.sign(rows.labels[first]), group_of, by_key)
