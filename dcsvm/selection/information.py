"""Feature weights by the information that each column has about the labels.

The weight of a column is the square root of its mutual information with the labels; numbers are
divided at their quantiles. All features of a column have its weight: the flags of a category, and
a number with the flag of its missing values. Unlike weights that are learned from the slopes of a
model, these are sure for many columns and few rows, but blind to columns that tell something only
together with others.
"""

from __future__ import annotations

import numpy as np

from dcsvm.data.dataset import Dataset
from dcsvm.kernel.kernels import Kernel
from dcsvm.training.train import normalised_weights

N_BINS = 16  # of numbers, and of the targets of a regression


def information_weights(data: Dataset, labels: np.ndarray, kernel: str) -> np.ndarray:
    """Return feature weights (n_features,) of scaled dense rows for a kernel of a distance."""
    X = data.rows.features
    classes = binned(labels) if len(np.unique(labels)) > N_BINS else labels
    _, classes = np.unique(classes, return_inverse=True)
    table = data.table
    start = np.arange(X.shape[1] + 1) if table is None else np.minimum(table.start, X.shape[1])
    weights = np.zeros(X.shape[1])
    for first, last in zip(start[:-1], start[1:], strict=True):
        if last > first:
            information = mutual_information(codes_of(X[:, first:last]), classes)
            weights[first:last] = np.sqrt(information)
    if not weights.any():
        return np.ones(X.shape[1])
    return normalised_weights(weights, data.rows, Kernel(kernel))


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


def mutual_information(codes: np.ndarray, classes: np.ndarray) -> float:
    """Estimate the mutual information in nats, without the bias of few rows (Miller, 1955)."""
    n, n_codes, n_classes = len(codes), int(codes.max()) + 1, int(classes.max()) + 1
    joint = np.bincount(codes * n_classes + classes, minlength=n_codes * n_classes) / n
    table = joint.reshape(n_codes, n_classes)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    present = table > 0
    found = np.sum(table[present] * np.log(table[present] / expected[present]))
    return max(float(found) - (n_codes - 1) * (n_classes - 1) / (2 * n), 0.0)
