"""Decision values, exact or early (the support vectors of the nearest center), and what follows
from them: labels, values, probabilities.

All of it is routing plus kernel_product, a block of rows at a time. A kernel value is computed
once for all pairs of classes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.data.sorting import group_order, slices
from dcsvm.kernel.kernel_rows import ClusterRanges, Reach
from dcsvm.kernel.partition import blended
from dcsvm.kernel.sources import Meeting, Sources
from dcsvm.model.pair_weights import (
    PairWeights,
    coupled,
    most_voted,
    needs_float64,
    pair_probabilities,
)
from dcsvm.model.parts import EarlyModel, ExactModel, ModelParts

LEFT_OUT = 2.0**-24  # what rounding one kernel value near 1 to float32 may change
LEFT_OUT_FLOAT64 = 2.0**-53  # the same of float64
FEWEST_TARGETS = 1000  # rows; an order of the support vectors costs about as much
FEWEST_VALUES = 2**22  # kernel values; to look whether some are negligible takes some milliseconds
# of the bound: what is below is computed again. Sums in float64 differ by far less than a bound.
UNSURE = 2.0


class SupportSums:
    """Decision values of blocks of some `n_targets` rows from all support vectors: their sums and
    `offset`. `by_sign` says whether signs matter, `float64` how kernel values are computed."""

    def __init__(
        self,
        sources: Sources,
        weights: PairWeights,
        offset: np.ndarray,
        n_targets: int,
        threads: int,
        *,
        by_sign: bool,
        float64: bool = False,
    ):
        self.weights, self.offset, self.by_sign = weights, offset, by_sign
        self.order = None
        n_values = n_targets * sources.rows.n_samples
        is_small = n_targets < FEWEST_TARGETS or n_values < FEWEST_VALUES
        if is_small or sources.kernel.type.fall is None:
            return
        totals = weights.totals()
        if not totals.any():
            return
        left_out = LEFT_OUT_FLOAT64 if float64 else LEFT_OUT
        value = left_out * np.abs(weights.coefficients).max() / totals.max()
        self.reach = Reach.of(sources.kernel, value)
        self.bound = value * totals
        self.order = sources.order(self.reach, threads)
        if self.order is not None:
            self.ordered = weights.ordered(self.order)

    def values(self, meeting: Meeting) -> np.ndarray:
        """Decision values of the targets, float64 (n, n_pairs)."""
        if self.order is None:
            return meeting.product(self.weights.all()) + self.offset
        values = meeting.near_product(self.ordered, self.order, self.reach) + self.offset
        if self.by_sign:
            unsure = (np.abs(values) <= UNSURE * self.bound).any(axis=1)
            some = np.flatnonzero(unsure).astype(np.int32)
            values[some] = meeting.product(self.weights.all(), some=some) + self.offset
        return values


METHODS = ("exact", "early")
PREDICTED_AT_ONCE = 2**17  # rows; of more, neighbours are nearer and more can be left out
VALUES_AT_ONCE = 2**23  # values of rows and of pairs of classes in a block


def decision_values(model: ModelParts, rows: Rows, method: str, threads: int) -> np.ndarray:
    """Decision values float64 (n, n_pairs), positive for the first class of the pair.

    `exact` is the global model, `early` the local model of the row's cluster. Raises ValueError
    when the model has no part for the method.
    """
    values = np.empty((rows.n_samples, model.n_pairs))
    for some, block in blocks(model, rows, method, threads):
        values[some] = block
    return values


def predictions(model: ModelParts, rows: Rows, method: str, threads: int) -> np.ndarray:
    """Labels, or float64 +1 or -1 or values, (n,), of the rows; raises as `decision_values`."""
    result = np.empty(rows.n_samples, model.labels.dtype if model.is_classifier else np.float64)
    for some, block in blocks(model, rows, method, threads):
        result[some] = predicted_from(model, block)
    return result


def predicted_from(model: ModelParts, values: np.ndarray) -> np.ndarray:
    """Predictions (n,) of rows with these decision values (n, n_pairs)."""
    if model.is_classifier:
        return model.labels[most_voted(values, len(model.labels))]
    return np.where(values[:, 0] > 0, 1.0, -1.0) if model.svm_type == "one_class" else values[:, 0]


def class_probabilities(model: ModelParts, rows: Rows, method: str, threads: int) -> np.ndarray:
    """Probabilities of the classes float64 (n, k) of the rows.

    Raises ValueError when the model has none, and as `decision_values`.
    """
    if not model.is_classifier:
        raise ValueError(f"a model of type {model.svm_type} has no probabilities of classes")
    if model.probability is None:
        raise ValueError("the model has no probabilities: train it with probability=True (-b 1)")
    result = np.empty((rows.n_samples, len(model.labels)))
    for some, block in blocks(model, rows, method, threads):
        result[some] = probabilities_from(model, block)
    return result


def probabilities_from(model: ModelParts, values: np.ndarray) -> np.ndarray:
    """Probabilities of the classes (n, k) of rows with these decision values (n, n_pairs)."""
    pairs = pair_probabilities(values, model.probability.A, model.probability.B)
    return coupled(pairs, len(model.labels))


def blocks(model: ModelParts, rows: Rows, method: str, threads: int):
    """Decision values (m, n_pairs) of a slice of the rows, as (slice, values), for all of them.
    Raises as `decision_values`, at once."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    part: ExactModel | EarlyModel | None = getattr(model, method)
    if part is None:
        missing = "exact solution" if method == "exact" else "early level"
        raise ValueError(f"the model has no {missing}, which {method} prediction needs")
    if model.kernel.is_precomputed and rows.n_features < part.rows.n_features:
        raise ValueError(
            f"rows have {rows.n_features} kernel values, the model needs those with all "
            f"{part.rows.n_features} training rows"
        )
    float64 = needs_float64(model, part)
    part = part.with_features(max(rows.n_features, part.rows.n_features))
    return _blocks(model, part, rows, threads, float64)


def _blocks(
    model: ModelParts, part: ExactModel | EarlyModel, rows: Rows, threads: int, float64: bool
):
    weights = PairWeights.kept(part, model.n_pairs)
    sources = Sources.kept(part.rows, model.kernel)
    is_early = isinstance(part, EarlyModel)
    if not is_early:
        by_sign = model.is_classifier or model.svm_type == "one_class"
        whole = SupportSums(
            sources, weights, -part.rho, rows.n_samples, threads, by_sign=by_sign, float64=float64
        )
    row_size = max(rows.row_size, sources.row_size(threads)) + 4 * model.n_pairs
    for some in slices(rows.n_samples, min(VALUES_AT_ONCE // row_size, PREDICTED_AT_ONCE)):
        block = rows.part(some).with_features(part.rows.n_features).in_form_of(part.rows, threads)
        values = np.empty((block.n_samples, model.n_pairs))
        if is_early:
            placed = part.partition.place(block, threads, second=part.partition.blend > 0)
        for meeting in sources.meetings(block, threads):
            meeting = replace(meeting, float64=float64)
            if is_early:
                values[meeting.place] = blended(
                    partial(_local, part, weights, meeting),
                    placed.take(meeting.place),
                    part.partition.blend,
                )
            else:
                values[meeting.place] = whole.values(meeting)
        yield some, values


def _local(
    part: EarlyModel,
    weights: PairWeights,
    meeting: Meeting,
    some: np.ndarray | slice,
    cluster: np.ndarray,
) -> np.ndarray:
    """Equation (11) of the paper: of some targets only the support vectors of one cluster count."""
    numbers = np.arange(meeting.n_targets, dtype=np.int32)[some]
    order = group_order(cluster)
    ranges = ClusterRanges.of(cluster[order], part.cluster)
    values = 0.0 - part.rho[cluster]
    values[order] += meeting.cluster_product(weights.all(), ranges, numbers[order])
    return values
