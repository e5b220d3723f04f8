"""Compute decision values and predictions.

Exact values use all support vectors. Early values use the support vectors of the row's cluster.
Rows are processed in blocks. Each kernel value is computed once for all pairs of classes.

`few_values` is a fast path for repeated predictions of few rows: validation and allocation would
take most of the time of a single row. The first call prepares the model; later ones only call the
core. The values are the same, bit for bit.
"""

import math
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import as_float32, group_order, slices
from dcsvm.data.rows import Rows
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernel_rows import ClusterRanges, KernelRows
from dcsvm.kernel.sources import COPY_BYTES, EncodedBatch, EncodedSources, Partition, blended
from dcsvm.model.parts import (
    EarlyModel,
    ExactModel,
    ModelParts,
    PairWeights,
    coupled,
    most_voted,
    needs_float64,
    pair_probabilities,
)

LEFT_OUT = 2.0**-24  # truncation error / largest coefficient: as float32 rounding of K near 1
LEFT_OUT_FLOAT64 = 2.0**-53  # the same for float64 kernel values
MIN_TARGETS = 1000  # rows; predicting them takes about as long as sorting the support vectors
MIN_VALUES = 2**22  # kernel values; the search for negligible ones takes some milliseconds
# Decision values below this multiple of the truncation error bound are recomputed without
# truncation. Rounding of float64 sums is far smaller than the bound.
UNSURE = 2.0
BATCH_PREDICTED = 2**17  # rows; in larger blocks rows are closer, so more values are skipped
BATCH_VALUES = 2**23  # feature values in a block
BATCH_PAIR_VALUES = 2**22  # decision values in a block


class SupportSums:
    """An exact model, prepared to compute decision values of blocks of rows.

    If `n_targets`, the total number of rows, is large, negligible rbf kernel values are skipped.
    `by_sign` means that only the signs of decision values matter. `float64` means that kernel
    values are float64.
    """

    def __init__(
        self,
        sources: EncodedSources,
        weights: PairWeights,
        offset: np.ndarray,
        n_targets: int,
        threads: int,
        *,
        by_sign: bool,
        float64: bool = False,
    ):
        self.weights, self.offset, self.by_sign = weights, offset, by_sign
        self.order: np.ndarray | None = None
        n_values = n_targets * sources.rows.n_samples
        is_small = n_targets < MIN_TARGETS or n_values < MIN_VALUES
        if is_small or sources.kernel.type.fall is None:
            return
        totals = weights.totals()
        if not totals.any():
            return
        left_out = LEFT_OUT_FLOAT64 if float64 else LEFT_OUT
        value = left_out * np.abs(weights.coefficients).max() / totals.max()
        self.cutoff = Cutoff.of(sources.kernel, value)
        self.bound = value * totals
        self.order = sources.order(self.cutoff, threads)
        if self.order is not None:
            self.ordered = weights.ordered(self.order)

    def values(self, meeting: EncodedBatch) -> np.ndarray:
        """Compute the decision values of the targets, float64 (n, n_pairs)."""
        if self.order is None:
            values = meeting.product(self.weights.all())
            values += self.offset
            return values
        values = meeting.near_product(self.ordered, self.order, self.cutoff)
        values += self.offset
        if self.by_sign:
            unsure = (np.abs(values) <= UNSURE * self.bound).any(axis=1)
            some = np.flatnonzero(unsure).astype(np.int32)
            values[some] = meeting.product(self.weights.all(), some=some) + self.offset
        return values


def decision_values(model: ModelParts, rows: Rows, method: str | None, threads: int) -> np.ndarray:
    """Compute decision values float64 (n, n_pairs), positive for the first class of a pair.

    `method` is as for ModelParts.part. Raises ValueError if the model does not have the part, or if
    kernel values of a precomputed kernel are missing.
    """
    values = np.empty((rows.n_samples, model.n_pairs))
    for batch, block in blocks(model, rows, method, threads):
        values[batch] = block
    return values


def predictions(model: ModelParts, rows: Rows, method: str | None, threads: int) -> np.ndarray:
    """Predict labels, +1 or -1 (one-class), or regression values, (n,).

    Raises as `decision_values`.
    """
    result = np.empty(rows.n_samples, model.labels.dtype if model.is_classifier else np.float64)
    for batch, block in blocks(model, rows, method, threads):
        result[batch] = predicted_from(model, block)
    return result


def predicted_from(model: ModelParts, values: np.ndarray) -> np.ndarray:
    """Convert decision values (n, n_pairs) to predictions (n,)."""
    if model.is_classifier:
        return model.labels[most_voted(values, len(model.labels))]
    return values[:, 0] if model.is_regression else np.where(values[:, 0] > 0, 1.0, -1.0)


def class_probabilities(
    model: ModelParts, rows: Rows, method: str | None, threads: int
) -> np.ndarray:
    """Estimate class probabilities, float64 (n, k).

    Raises ValueError if the model has no probabilities, and as `decision_values`.
    """
    if not model.is_classifier:
        raise ValueError(f"a model of type {model.svm_type} has no class probabilities")
    if model.probability is None:
        raise ValueError("the model has no probabilities: train it with probability=True (-b 1)")
    result = np.empty((rows.n_samples, len(model.labels)))
    for batch, block in blocks(model, rows, method, threads):
        result[batch] = probabilities_from(model, block)
    return result


def probabilities_from(model: ModelParts, values: np.ndarray) -> np.ndarray:
    """Convert decision values (n, n_pairs) to class probabilities (n, k)."""
    sigmoids = model.probability
    assert sigmoids is not None and sigmoids.B is not None  # class_probabilities checks the model
    return coupled(pair_probabilities(values, sigmoids.A, sigmoids.B), len(model.labels))


def blocks(
    model: ModelParts, rows: Rows, method: str | None, threads: int
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield (slice of the rows, decision values (m, n_pairs)) for consecutive blocks of rows.

    Raises as `decision_values`, before the first block.
    """
    part = model.part(method)
    if model.kernel.is_precomputed and rows.n_features < part.rows.n_features:
        raise ValueError(
            f"rows must have kernel values with all {part.rows.n_features} training rows, "
            f"got {rows.n_features}"
        )
    float64 = needs_float64(model, part)
    part = part.with_features(max(rows.n_features, part.rows.n_features))
    return _blocks(model, part, rows, threads, float64)


def _blocks(
    model: ModelParts, part: ExactModel | EarlyModel, rows: Rows, threads: int, float64: bool
) -> Iterator[tuple[slice, np.ndarray]]:
    weights = PairWeights.kept(part, model.n_pairs)
    sources = EncodedSources.cached(part.rows, model.kernel)
    if isinstance(part, ExactModel):
        exact = SupportSums(
            sources, weights, -part.rho, rows.n_samples, threads,
            by_sign=not model.is_regression, float64=float64,
        )  # fmt: skip
    row_size = max(rows.row_size, sources.row_size(threads), 1)
    batch_size = min(
        BATCH_VALUES // row_size, BATCH_PAIR_VALUES // max(model.n_pairs, 1), BATCH_PREDICTED
    )
    for batch in slices(rows.n_samples, batch_size):
        block = rows.part(batch).with_features(part.rows.n_features).in_form_of(part.rows, threads)
        values = np.empty((block.n_samples, model.n_pairs))
        if isinstance(part, EarlyModel):
            blend = part.partition.blend
            placed = part.partition.place(block, threads, second=blend > 0)
        for meeting in sources.meetings(block, threads):
            meeting = replace(meeting, float64=float64)
            if isinstance(part, EarlyModel):
                by_cluster = partial(_early_values, part, weights, meeting)
                values[meeting.place] = blended(by_cluster, placed.take(meeting.place), blend)
            else:
                values[meeting.place] = exact.values(meeting)
        some = _beyond_float32(part, sources, block, values, threads)
        if len(some):
            values[some] = _values_in_float64(part, weights, sources, block.take(some), threads)
        yield batch, values


def _beyond_float32(
    part: ExactModel | EarlyModel,
    sources: EncodedSources,
    block: Rows,
    values: np.ndarray,
    threads: int,
) -> np.ndarray:
    """Return the rows of a block whose values need float64 kernel values, int32.

    Whether a row does is independent of the other rows of the block.
    """
    # overflow of other kernels is rare and shows in the values; a norm costs less than a value
    is_shown = isinstance(part, ExactModel) and not sources.kernel.type.is_within_one
    if is_shown and np.isfinite(values).all():
        return np.empty(0, np.int32)
    some = sources.beyond_float32(block, threads)
    return some[~np.isfinite(values[some]).all(axis=1)] if is_shown else some


def _values_in_float64(
    part: ExactModel | EarlyModel,
    weights: PairWeights,
    sources: EncodedSources,
    block: Rows,
    threads: int,
) -> np.ndarray:
    """Compute the decision values of rows whose kernel values overflow float32.

    Raises ValueError if they overflow float64, too.
    """
    meeting = sources.float64_meeting(block, threads)
    if isinstance(part, EarlyModel):
        blend = part.partition.blend
        placed = part.partition.place(block, threads, second=blend > 0, float64=True)
        values = blended(partial(_early_values, part, weights, meeting), placed, blend)
        is_beyond = np.isinf(values)  # nan: a cluster without the classes of a pair
    else:
        values = meeting.product(weights.all()) - part.rho
        is_beyond = ~np.isfinite(values)
    if is_beyond.any():
        raise ValueError(
            f"kernel values of {sources.kernel.describe()} with rows to predict are beyond float64:"
            " scale the features"
        )
    return values


def _early_values(
    part: EarlyModel,
    weights: PairWeights,
    meeting: EncodedBatch,
    some: np.ndarray | slice,
    cluster: np.ndarray,
) -> np.ndarray:
    """Compute decision values with the support vectors of one cluster per target (Equation 11).

    `some` selects the targets; `cluster` is the cluster of each.
    """
    targets = np.arange(meeting.n_targets, dtype=np.int32)[some]
    order = group_order(cluster)
    ranges = ClusterRanges.of(cluster[order], part.cluster)
    values = 0.0 - part.rho[cluster]
    values[order] += meeting.cluster_product(weights.all(), ranges, targets[order])
    return values


# Maximum number of rows on the fast path. With the 2487 support vectors of ijcnn1, 8 rows take as
# long as in blocks, and 16 rows take twice as long. Rows of an early model are in different
# clusters. With the 1024 clusters of covtype, 64 rows take a fifth of the time of blocks; with 16
# clusters they take the same time.
FEW = {ExactModel: 8, EarlyModel: 64}

_kept: "weakref.WeakKeyDictionary[ExactModel | EarlyModel, _Prepared]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def few_values(model: ModelParts, X: object, method: str | None) -> np.ndarray | None:
    """Compute decision values float64 (n, n_pairs) of a real NumPy array X (n, d).

    `method` is as for ModelParts.part. Returns None if X or the model does not suit this path. Then
    call `decision_values`, which also reports invalid rows.
    """
    part = model.part(method)
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.kind not in "biuf":
        return None
    if not 0 < len(X) <= FEW[type(part)] or X.shape[1] != part.rows.n_features:
        return None
    prepared = _kept.get(part)
    if prepared is None or prepared.kernel != model.kernel:
        with _lock:
            prepared = _kept.get(part)
            if prepared is None or prepared.kernel != model.kernel:
                prepared = _kept[part] = _Prepared(model, part)
    return None if prepared.core is None else prepared.core.values(as_float32(X))


class _Prepared:
    """A part of a model, prepared for the core; `core` is None if the core does not support it."""

    def __init__(self, model: ModelParts, part: ExactModel | EarlyModel):
        kernel = model.kernel
        self.kernel = kernel
        self.core: _core.FewRows | None = None
        tree = part.partition if isinstance(part, EarlyModel) else None
        if kernel.type.is_linear or not _suits(EncodedSources.cached(part.rows, kernel)):
            return
        if tree is not None and not _suits_tree(tree):
            return
        sources = _served(EncodedSources.cached(part.rows, kernel))
        start = np.array([0, part.rows.n_samples])
        if isinstance(part, EarlyModel):
            start = np.searchsorted(part.cluster, np.arange(part.partition.n_clusters + 1))
        core = _core.FewRows(
            sources.setup,
            sources.points,
            PairWeights.kept(part, model.n_pairs).all(),
            np.asarray(start, np.int64),
            np.ascontiguousarray(0.0 - np.atleast_2d(part.rho), np.float64),
            needs_float64(model, part),
            _largest_feature(EncodedSources.cached(part.rows, kernel)),
        )
        if tree is not None:
            sampled = _served(EncodedSources.cached(tree.sample, tree.kernel))
            core.set_tree(sampled.setup, tree.found(sampled), tree.blend)
        self.core = core


def _largest_feature(sources: EncodedSources) -> float:
    """Return the |feature| up to which kernel values of rows are sure to fit float32, or -1."""
    most = sources.most_in_float32(1)
    return math.sqrt(most / max(sources.rows.n_features, 1)) if most >= 0 else -1.0


def _served(sources: EncodedSources) -> KernelRows:
    """Return the encoding of the sources that single rows use."""
    form = sources.stepped() or sources.form()
    assert form is not None  # only the "stepped" form can be missing
    return form


def _suits(sources: EncodedSources) -> bool:
    """Return whether the core supports single rows and its copy of the sources is small."""
    if not sources.rows.is_dense or sources.kernel.is_precomputed:
        return False
    form = _served(sources)
    is_known = form.encoding.grid is None and form.setup.form in ("difference", "product", "bytes")
    return is_known and _core.packed_bytes(form.setup, form.points) <= COPY_BYTES


def _suits_tree(tree: Partition) -> bool:
    """Return whether the core can assign single rows to clusters of this tree.

    With a linear kernel, prediction in blocks multiplies a row by the mean of a center's rows. The
    core would multiply it by each of them, which rounds differently.
    """
    if tree.kernel.type.is_linear and tree.sample.n_samples > sum(
        np.count_nonzero(np.repeat(split.n_parts > 1, split.n_parts)) for split in tree.splits
    ):
        return False
    return _suits(EncodedSources.cached(tree.sample, tree.kernel))
