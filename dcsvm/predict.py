"""Decision values: exact, early (nearest center, then that cluster's support vectors), naive.

All of it is routing plus kernel_product.
"""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.dataset import Rows
from dcsvm.kernels import two_sides
from dcsvm.model import EarlyModel, ExactModel, Model

METHODS = ("exact", "early", "naive")
PREDICTED_AT_ONCE = 65536


def decision_values(model: Model, rows: Rows, method: str, threads: int) -> np.ndarray:
    """Decision values float64 (n,), positive for the model's first label.

    `exact` is the global model; `early` the local model of the row's cluster; `naive` the sum over
    all local models (the paper's equation for comparison). Raises ValueError when the model has no
    part for the method.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    part: ExactModel | EarlyModel | None = model.exact if method == "exact" else model.early
    if part is None:
        missing = "exact solution" if method == "exact" else "early level"
        raise ValueError(f"the model has no {missing}, which {method} prediction needs")
    if model.kernel.is_precomputed and rows.n_features < part.rows.n_features:
        raise ValueError(
            f"rows have {rows.n_features} kernel values, the model needs those with all "
            f"{part.rows.n_features} training rows"
        )
    n_features = max(rows.n_features, part.rows.n_features)
    part = part.with_features(n_features)
    values = np.empty(rows.n_samples)
    for begin in range(0, rows.n_samples, PREDICTED_AT_ONCE):
        end = min(begin + PREDICTED_AT_ONCE, rows.n_samples)
        some = rows if end - begin == rows.n_samples else rows.take(np.arange(begin, end))
        some = some.with_features(n_features).in_form_of(part.rows, threads)
        if method == "early":
            values[begin:end] = _local(model, part, some, threads)
        else:
            values[begin:end] = _global(model, part, some, threads)
    return values


def _global(model: Model, part: ExactModel | EarlyModel, rows: Rows, threads: int) -> np.ndarray:
    targets, support = two_sides(rows, part.rows, model.kernel, threads)
    product = _core.kernel_product(
        support.setup, targets.points, None, support.points, None, part.alpha, False, threads
    )
    return product[:, 0] + part.bias


def _local(model: Model, part: EarlyModel, rows: Rows, threads: int) -> np.ndarray:
    """Equation (11) of the paper: only the support vectors of the nearest center count."""
    targets, support = two_sides(rows, part.rows, model.kernel, threads)
    cluster = part.partition.assign(rows, threads)
    order = np.argsort(cluster, kind="stable").astype(np.int32)
    first = np.searchsorted(cluster[order], np.arange(part.partition.n_clusters + 1))
    first_support = np.searchsorted(part.cluster, np.arange(part.partition.n_clusters + 1))
    values = np.zeros(rows.n_samples)
    for c in range(part.partition.n_clusters):
        own = order[first[c] : first[c + 1]]
        sources = np.arange(first_support[c], first_support[c + 1], dtype=np.int32)
        if len(own) == 0 or len(sources) == 0:
            continue
        product = _core.kernel_product(
            support.setup,
            targets.points,
            own,
            support.points,
            sources,
            part.alpha[sources],
            False,
            threads,
        )
        values[own] = product[:, 0]
    return values
