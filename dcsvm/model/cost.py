"""What predicting a row costs, in kernel values: the support vectors it meets, and the centers on
the way to its cluster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcsvm.compression.centers import values_on_the_way, with_single_centers
from dcsvm.data.rows import Rows
from dcsvm.model.parts import EarlyModel, ModelParts


def values_of_row(model: ModelParts, rows: Rows, threads: int) -> float:
    """Kernel values of one of these rows on average, by the part that the model predicts with."""
    if model.exact is not None:
        return float(model.exact.rows.n_samples)
    return sum(early_values_of_row(model.early, rows, threads))


def early_values_of_row(
    part: EarlyModel, rows: Rows, threads: int, *, single_centers: bool = False
) -> tuple[float, float]:
    """Kernel values to find the cluster of a row, and those with its support vectors, on average.
    Near a border a row goes down on both sides."""
    part = part.with_features(max(rows.n_features, part.rows.n_features))
    rows = rows.with_features(part.rows.n_features).in_form_of(part.rows, threads)
    if single_centers:
        part = replace(part, partition=with_single_centers(part.partition))
    blend = part.partition.blend
    placed = part.partition.place(rows, threads, second=blend > 0)
    routing = values_on_the_way(part.partition)[placed.nearest].mean()
    sizes = np.bincount(part.cluster, minlength=part.partition.n_clusters)
    own = sizes[placed.nearest].astype(np.float64)
    second = placed.across(np.arange(rows.n_samples))
    is_blended = (placed.shares(blend) < 1) & (second >= 0)
    own[is_blended] += sizes[second[is_blended]]
    return float(routing * (2 if blend > 0 else 1)), float(own.mean())
