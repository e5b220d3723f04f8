"""Rows of LIBSVM text for the benchmark: read them and find duplicates.

The check of a solution works on distinct rows (features and label). The alphas of duplicates can be
shared among them in any way without changing the function, and a model file does not distinguish
them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Labels (or coefficients) and sparse rows; features count from 1, zeros are not stored."""

    labels: np.ndarray
    starts: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_features(self) -> int:
        return int(self.indices.max(initial=0))

    def dense(self, chosen: np.ndarray, n_features: int) -> np.ndarray:
        """Return the chosen rows as float64, shape (len(chosen), n_features)."""
        counts = self.starts[chosen + 1] - self.starts[chosen]
        ends = np.cumsum(counts)
        places = np.arange(counts.sum()) + np.repeat(self.starts[chosen] - (ends - counts), counts)
        out = np.zeros((len(chosen), n_features))
        cells = np.repeat(np.arange(len(chosen)), counts), self.indices[places] - 1
        out[cells] = self.values[places]
        return out

    def with_values(self, change: Callable[[np.ndarray], np.ndarray]) -> "Rows":
        return Rows(self.labels, self.starts, self.indices, change(self.values))


def read(path: Path) -> Rows:
    return parse(path.read_bytes())


def parse(text: bytes) -> Rows:
    """Parse LIBSVM lines without comments or blank lines."""
    counts = np.array([line.count(b":") for line in text.splitlines()], dtype=np.int64)
    numbers = np.fromstring(text.replace(b":", b" ").decode("ascii"), sep=" ")
    ends = np.cumsum(1 + 2 * counts)
    if len(numbers) != (ends[-1] if len(ends) else 0):
        raise ValueError("not LIBSVM text")
    heads = ends - 1 - 2 * counts
    is_feature = np.ones(len(numbers), dtype=bool)
    is_feature[heads] = False
    pairs = numbers[is_feature].reshape(-1, 2)
    kept = pairs[:, 1] != 0
    kept_before = np.concatenate([[0], np.cumsum(kept)])
    starts = kept_before[np.concatenate([[0], np.cumsum(counts)])]
    return Rows(numbers[heads], starts, pairs[kept, 0].astype(np.int64), pairs[kept, 1])


def save(path: Path, rows: Rows, width: int) -> None:
    """Write rows of `width` features as an .npz file, for other Pythons."""
    np.savez(path, **vars(rows), width=width)


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
    starts = rows.starts.tolist()
    return [
        sign + rows.indices[a:b].tobytes() + rows.values[a:b].tobytes()
        for sign, a, b in zip(signs, starts[:-1], starts[1:], strict=True)
    ]


def distinct(rows: Rows) -> Distinct:
    by_key: dict[bytes, int] = {}
    group_of = np.array([by_key.setdefault(key, len(by_key)) for key in keys(rows)])
    _, first, count = np.unique(group_of, return_index=True, return_counts=True)
    return Distinct(first, count, np.sign(rows.labels[first]), group_of, by_key)
