"""Feature weights by the information that each column has about the labels.

The weight of a column is the square root of its mutual information with the labels; numbers are
divided at their quantiles. All features of a column have its weight: the flags of a category, and
a number with the flag of its missing values. Unlike weights that are learned from the slopes of a
model, these are sure for many columns and few rows, but blind to columns that tell something only
together with others.
"""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.data.columns import TableEncoding
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.training.train import normalised_weights

N_BINS = 16  # of numbers, and of the targets of a regression
MAX_ROWS = 20_000  # of more rows, every second, third, ... one is used


def information_weights(
    rows: Rows,
    labels: np.ndarray,
    kernel: str,
    *,
    table: TableEncoding | None = None,
    is_regression: bool = False,
    counts: np.ndarray | None = None,
    stop: _core.Stop | None = None,
) -> np.ndarray:
    """Return feature weights (n_features,) of scaled dense rows for a kernel of a distance.

    `table` tells the features of each column, `counts` (n,) are sample weights. Raises Stopped.
    """
    every = slice(None, None, -(-len(labels) // MAX_ROWS))
    X, labels = rows.features[every], labels[every]
    counts = np.ones(len(X)) if counts is None else counts[every]
    classes = binned(labels) if is_regression and len(np.unique(labels)) > N_BINS else labels
    _, classes = np.unique(classes, return_inverse=True)
    start = np.arange(X.shape[1] + 1) if table is None else np.minimum(table.start, X.shape[1])
    weights = np.zeros(X.shape[1])
    for first, last in zip(start[:-1], start[1:], strict=True):
        if stop is not None:
            stop.check()
        if last > first:
            codes = codes_of(X[:, first:last])
            weights[first:last] = np.sqrt(mutual_information(codes, classes, counts))
    if not weights.any():
        return np.ones(X.shape[1])
    return normalised_weights(weights, rows, Kernel(kernel))


def codes_of(columns: np.ndarray) -> np.ndarray:
    """Return a code for each row (n,) of the features of one column (n, d)."""
    codes = np.zeros(len(columns), np.int64)
    for values in columns.T:
        distinct, code = np.unique(values, return_inverse=True)
        if len(distinct) > N_BINS:
            _, code = np.unique(binned(values), return_inverse=True)
        # codes stay below the number of rows: pairs of codes are numbered anew
        _, codes = np.unique(codes * (int(code.max()) + 1) + code, return_inverse=True)
    return codes


def binned(values: np.ndarray) -> np.ndarray:
    """Return the number of the quantile interval of each value (n,)."""
    edges = np.unique(np.quantile(values, np.arange(1, N_BINS) / N_BINS))
    return np.searchsorted(edges, values, side="right")


def mutual_information(codes: np.ndarray, classes: np.ndarray, counts: np.ndarray) -> float:
    """Estimate the mutual information in nats, without the bias of few rows (Miller, 1955).

    `counts` (n,) are weights of rows; of unequal ones, the effective number of rows counts.
    """
    n_codes, n_classes = int(codes.max()) + 1, int(classes.max()) + 1
    total, n_effective = counts.sum(), counts.sum() ** 2 / np.sum(counts**2)
    joint = np.bincount(codes * n_classes + classes, counts, minlength=n_codes * n_classes)
    table = joint.reshape(n_codes, n_classes) / total
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    present = table > 0
    found = np.sum(table[present] * np.log(table[present] / expected[present]))
    return max(float(found) - (n_codes - 1) * (n_classes - 1) / (2 * n_effective), 0.0)
