"""Warnings about training data that look wrong, as sentences.

One pass over the rows. Silent for one-hot columns and images: their columns have one scale, and
their constant columns hold zero or the smallest or largest value there is.
"""

from __future__ import annotations

import numpy as np

from dcsvm.data.rows import Rows

FEWEST_ROWS = 20  # fewer say nothing
DIFFERENT_SCALES = 1000  # largest span of a feature over the lower quartile of the spans
DISTINCT_LABELS = 0.9  # of the rows
BLOCK = 2**18  # numbers looked at together, to stay in the cache


def advice(rows: Rows, labels: np.ndarray | None, first_index: int = 1) -> list[str]:
    """A sentence for each thing that looks wrong; `labels` are the classes, float64 (n_samples,),
    or None where there are none; `first_index` is that of column 0 in the file."""
    if first_index == 0 and _are_numbered(rows):
        return ["the rows are numbered by 0:1, 0:2, ..., as those of a precomputed kernel (-t 4)"]
    if rows.n_samples < FEWEST_ROWS:
        return []
    about_labels = [] if labels is None else _about_labels(labels)
    if rows.columns is not None:
        return about_labels
    columns, *extremes = _extremes(rows)
    return [*about_labels, *_about_features(columns + first_index, *extremes)]


def _are_numbered(rows: Rows) -> bool:
    """Return whether column 0 of the first three rows holds serial numbers."""
    first = rows.part(slice(0, min(rows.n_samples, 3)))
    if first.is_dense:
        return first.n_samples == 3 and first.features[:, 0].tolist() == [1, 2, 3]
    return first.values[first.indices == 0].tolist() == [1, 2, 3]


def _about_labels(labels: np.ndarray):
    n_distinct = len(np.unique(labels))
    if n_distinct > DISTINCT_LABELS * len(labels):
        yield (
            f"{n_distinct} of {len(labels)} rows have labels of their own: these look like "
            "targets of a regression, or the first column is not the label"
        )


def _about_features(index: np.ndarray, smallest: np.ndarray, largest: np.ndarray):
    """`index` are the features that have values, with their extreme values."""
    if len(index) == 0:
        return
    span = largest.astype(np.float64) - smallest
    varying = np.flatnonzero(span)
    if len(varying) > 1:
        order = varying[np.argsort(span[varying], kind="stable")]
        low, high = order[(len(order) - 1) // 4], order[-1]
        if span[high] > DIFFERENT_SCALES * span[low]:
            yield (
                f"feature {index[high]} spans {span[high]:.3g} but feature "
                f"{index[low]} only {span[low]:.3g}, and a quarter of the features no more: "
                "the kernel will hardly see these; scale the data, as --scale auto does"
            )
    ordinary = (0, min(0, smallest.min()), max(0, largest.max()))
    constant = np.flatnonzero((span == 0) & ~np.isin(smallest, ordinary))
    if len(constant) == 1:
        yield (
            f"feature {index[constant[0]]} is {smallest[constant[0]]:g} in all rows "
            "and tells nothing"
        )
    elif len(constant) > 1:
        yield (
            f"{len(constant)} features have one value in all rows and tell nothing, the first of "
            f"them feature {index[constant[0]]}"
        )


def _extremes(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, and the smallest and the largest value in each; of CSR rows only columns that have
    values."""
    if rows.is_dense:
        smallest, largest = (rows.part(slice(0, 1)).features[0].copy() for _ in range(2))
        for some in rows.slices(BLOCK):
            block = rows.part(some).features
            np.minimum(smallest, block.min(axis=0), out=smallest)
            np.maximum(largest, block.max(axis=0), out=largest)
        return np.arange(rows.n_features), smallest, largest
    if rows.n_features > len(rows.indices):
        columns, at = np.unique(rows.indices, return_inverse=True)
    else:
        columns, at = np.arange(rows.n_features), rows.indices
    smallest = np.where(np.bincount(at, minlength=len(columns)) < rows.n_samples, 0, np.inf)
    largest = -smallest
    np.minimum.at(smallest, at, rows.values)
    np.maximum.at(largest, at, rows.values)
    return columns, smallest, largest


def part_among(rows: Rows, others: Rows) -> float:
    """The part of the rows that others have, too; two rows in 2^64 are taken for equal that are
    not."""
    if rows.n_samples == 0:
        return 0.0
    n_features = max(rows.n_features, others.n_features)
    weights = np.random.default_rng(0).integers(2**63, size=n_features, dtype=np.uint64)
    return float(np.isin(_keys(rows, weights), _keys(others, weights)).mean())


def _keys(rows: Rows, weights: np.ndarray) -> np.ndarray:
    """Sums of the bits of the values times the weights of their features, modulo 2^64."""
    keys = np.empty(rows.n_samples, np.uint64)
    for some in rows.slices():
        part = rows.part(some).as_floats()
        if part.is_dense:
            # + 0.0: that of -0.0 is 0.0
            bits = (part.dense + np.float32(0)).view(np.uint32).astype(np.uint64)
            keys[some] = (bits * weights[: part.n_features]).sum(axis=1)
            continue
        bits = part.values.view(np.uint32).astype(np.uint64) * weights[part.indices]
        totals = np.concatenate((np.zeros(1, np.uint64), np.cumsum(bits)))
        keys[some] = np.diff(totals[part.indptr])
    return keys
