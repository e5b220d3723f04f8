"""Compute decision values of rows from the support vectors of a part of a model.

Exact values use all support vectors. Early values use the support vectors of the row's cluster.
Rows are processed in blocks. Each kernel value is computed once for all pairs of classes.

Repeated predictions of few rows have a fast path: validation and allocation would take most of the
time of a single row. The first call prepares the support vectors; later ones only call the core.
The values are the same, bit for bit.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import as_float32, distinct, group_order, slices
from dcsvm.data.rows import Rows
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows, Weights
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import (
    COPY_BYTES,
    Assignment,
    EncodedBatch,
    EncodedSources,
    Partition,
    blended,
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
# Maximum number of rows on the fast path. With the 2487 support vectors of ijcnn1, 8 rows take as
# long as in blocks, and 16 rows take twice as long. Rows of an early model are in different
# clusters. With the 1024 clusters of covtype, 64 rows take a fifth of the time of blocks; with 16
# clusters they take the same time.
FEW, FEW_OF_CLUSTERS = 8, 64

SAMPLED = 64  # support vectors on which the rounding error is measured
# Largest negligible error of a decision value: relative to the margin, which training determines to
# 1e-3, or to the standard deviation of a regression's values. a9a with C = 32 has an error of 4e-5.
SMALL, SMALL_OF_REGRESSION = 1e-4, 2e-5
ROUNDING = 2.0**-22  # bound on the rounding error of a kernel value up to 1

_lock = threading.Lock()


class Predictor:
    """Support vectors with a kernel, prepared to compute decision values of rows.

    The arguments are the attributes of an ExactModel, without `cluster` and `partition`, or of an
    EarlyModel. Everything that is prepared is kept. Threads may predict at the same time.

    Attributes
    ----------
    n_pairs : the number of decision values of a row.
    weights : coefficients by pair, in the form that KernelRows.product takes.
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Rows,
        dual_coef: np.ndarray,
        class_: np.ndarray | None,
        rho: np.ndarray,
        cluster: np.ndarray | None,
        partition: Partition | None,
        *,
        is_regression: bool,
    ):
        self.kernel, self.is_regression, self.n_pairs = kernel, is_regression, rho.shape[-1]
        self.rho, self.cluster, self.partition = rho, cluster, partition
        self.margin = 1.0 if class_ is not None else float(np.nanmax(np.abs(rho), initial=0.0))
        self.sources = EncodedSources(rows, kernel)
        self.weights = _weights_of_pairs(dual_coef, class_, self.n_pairs)
        self._few: _core.FewRows | None = None
        self._is_few_tried = False

    def suits(self, kernel: Kernel, is_regression: bool) -> bool:
        """Return whether this was made for the kernel and the kind of model."""
        is_same = self.kernel is kernel or self.kernel == kernel  # `is` spares single rows time
        return is_same and self.is_regression == is_regression

    def few_values(self, X: object) -> np.ndarray | None:
        """Compute decision values float64 (n, n_pairs) of a real NumPy array X (n, d).

        Returns None if X or the support vectors do not suit the fast path. Then call `values`,
        which also reports invalid rows.
        """
        if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.kind not in "biuf":
            return None
        most = FEW if self.partition is None else FEW_OF_CLUSTERS
        if not 0 < len(X) <= most or X.shape[1] != self.sources.rows.n_features:
            return None
        if not self._is_few_tried:
            with _lock:
                if not self._is_few_tried:
                    self._few, self._is_few_tried = self._few_rows(), True
        return None if self._few is None else self._few.values(as_float32(X))

    def values(self, rows: Rows, threads: int) -> np.ndarray:
        """Compute decision values float64 (n, n_pairs), positive for the first class of a pair.

        Raises ValueError as `blocks`, and if kernel values are beyond float64.
        """
        result = np.empty((rows.n_samples, self.n_pairs))
        for batch, values in self.blocks(rows, threads):
            result[batch] = values
        return result

    def blocks(self, rows: Rows, threads: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (slice of the rows, decision values (m, n_pairs)) for consecutive blocks of rows.

        Raises ValueError, before the first block, if kernel values of a precomputed kernel are
        missing.
        """
        n_features = self.sources.rows.n_features
        if self.kernel.is_precomputed and rows.n_features < n_features:
            raise ValueError(
                f"rows must have kernel values with all {n_features} training rows, "
                f"got {rows.n_features}"
            )
        if rows.n_features > n_features:
            return self._widened(rows.n_features).blocks(rows, threads)
        return self._blocks(rows, threads)

    def _widened(self, n_features: int) -> Predictor:
        """Return the predictor of the support vectors with more features, which are 0."""
        wide = copy(self)
        wide.needs_float64 = self.needs_float64  # the precision does not depend on the rows
        wide.sources = EncodedSources(self.sources.rows.with_features(n_features), self.kernel)
        if self.partition is not None:
            wide.partition = self.partition.with_features(n_features)
        return wide

    def _blocks(self, rows: Rows, threads: int) -> Iterator[tuple[slice, np.ndarray]]:
        sources, partition = self.sources, self.partition
        skipping = self.skipping(rows.n_samples, threads) if partition is None else None
        # blocks are limited by their features, their decision values and their rows
        row_size = max(rows.row_size, sources.row_size(threads), 1)
        batch_size = min(
            BATCH_VALUES // row_size, BATCH_PAIR_VALUES // max(self.n_pairs, 1), BATCH_PREDICTED
        )
        # equal blocks of up to 1.5 times this size: a short one would leave panels of lanes empty
        n_blocks = max(round(rows.n_samples / max(batch_size, 1)), 1)
        for batch in slices(rows.n_samples, -(-rows.n_samples // n_blocks)):
            block = rows.part(batch).with_features(sources.rows.n_features)
            block = block.in_form_of(sources.rows, threads)
            values = np.empty((block.n_samples, self.n_pairs))
            if partition is not None:
                placed = partition.place(block, threads, second=partition.blend > 0)
            for encoded in sources.batches(block, threads):
                encoded = replace(encoded, float64=self.needs_float64)
                if partition is None:
                    values[encoded.place] = self._exact_values(encoded, skipping)
                else:
                    values[encoded.place] = self._early_values(encoded, placed.take(encoded.place))
            # few rows overflow float32
            beyond = self._beyond_float32(block, values, threads)
            if len(beyond):
                values[beyond] = self._values_in_float64(block.take(beyond), threads)
            yield batch, values

    def skipping(self, n_targets: int, threads: int) -> tuple[Cutoff, np.ndarray] | None:
        """Return how to skip negligible kernel values, None where it does not pay.

        These are the cutoff, and a spatial order of the support vectors, int32.
        """
        n_values = n_targets * self.sources.rows.n_samples
        is_small = n_targets < MIN_TARGETS or n_values < MIN_VALUES
        if is_small or not self.kernel.type.is_of_distance:
            return None
        _, _, coefficients = self.entries()
        totals = self._totals()
        if not totals.any():
            return None
        left_out = LEFT_OUT_FLOAT64 if self.needs_float64 else LEFT_OUT
        cutoff = Cutoff.of(self.kernel, left_out * np.abs(coefficients).max() / totals.max())
        order = self.sources.order(cutoff, threads)
        return None if order is None else (cutoff, order)

    def _exact_values(
        self, targets: EncodedBatch, skipping: tuple[Cutoff, np.ndarray] | None
    ) -> np.ndarray:
        """Compute decision values of targets with all support vectors, (n, n_pairs).

        Where only signs matter, values that `skipping` leaves unsure are computed again without.
        """
        if skipping is None:
            values = targets.product(self.weights)
            values -= self.rho
            return values
        cutoff, order = skipping
        values = targets.near_product(_reordered(self.weights, order), order, cutoff)
        values -= self.rho
        if not self.is_regression:
            bound = cutoff.value * self._totals()
            unsure = (np.abs(values) <= UNSURE * bound).any(axis=1)
            selected = np.flatnonzero(unsure).astype(np.int32)
            values[selected] = targets.product(self.weights, targets=selected) - self.rho
        return values

    def _early_values(self, targets: EncodedBatch, placed: Assignment) -> np.ndarray:
        """Compute decision values of targets with the support vectors of their clusters."""
        assert self.partition is not None
        return blended(partial(self._cluster_values, targets), placed, self.partition.blend)

    def _cluster_values(
        self, targets: EncodedBatch, selected: np.ndarray | slice, cluster: np.ndarray
    ) -> np.ndarray:
        """Compute decision values with the support vectors of one cluster per target (Equation 11).

        `selected` are some of the targets; `cluster` is the cluster of each.
        """
        assert self.cluster is not None
        numbers = np.arange(targets.n_targets, dtype=np.int32)[selected]
        order = group_order(cluster)
        values = 0.0 - self.rho[cluster]
        values[order] += targets.cluster_product(
            self.weights, self.cluster, numbers[order], cluster[order]
        )
        return values

    def _beyond_float32(self, block: Rows, values: np.ndarray, threads: int) -> np.ndarray:
        """Return the rows of a block whose values need float64 kernel values, int32.

        Whether a row does is independent of the other rows of the block.
        """
        # overflow of other kernels is rare and shows in the values; a norm costs less than a value
        is_shown = self.partition is None and not self.kernel.type.is_within_one
        if is_shown and np.isfinite(values).all():
            return np.empty(0, np.int32)
        beyond = self.sources.beyond_float32(block, threads)
        return beyond[~np.isfinite(values[beyond]).all(axis=1)] if is_shown else beyond

    def _values_in_float64(self, block: Rows, threads: int) -> np.ndarray:
        """Compute the decision values of rows whose kernel values overflow float32.

        Raises ValueError if they overflow float64, too.
        """
        targets, partition = self.sources.float64_batch(block, threads), self.partition
        if partition is None:
            values = targets.product(self.weights) - self.rho
            is_beyond = ~np.isfinite(values)
        else:
            placed = partition.place(block, threads, second=partition.blend > 0, float64=True)
            values = self._early_values(targets, placed)
            is_beyond = np.isinf(values)  # nan: a cluster without the classes of a pair
        if is_beyond.any():
            raise ValueError(
                f"kernel values of {self.kernel.describe()} with rows to predict are beyond "
                "float64: scale the features"
            )
        return values

    @cached_property
    def needs_float64(self) -> bool:
        """Whether decision values need float64 kernel values.

        Rounding to float32 changes a kernel value by a factor of up to 1 + 2^-24. The effect is
        measured once, on some of the support vectors, because the precision must not depend on the
        rows to predict.
        """
        kernel, n_sv = self.kernel, self.sources.rows.n_samples
        if kernel.is_precomputed or n_sv == 0:
            return False
        if kernel.type.is_within_one and not self.is_regression:
            bound = ROUNDING * self._totals().max(initial=0.0)
            if not is_seen(bound, self.margin):
                return False
        sample = distinct(np.linspace(0, n_sv - 1, SAMPLED).astype(np.int32))
        rounded, exact = (self.sums(sample, float64=float64) for float64 in (False, True))
        margin = float(np.std(exact)) if self.is_regression else self.margin
        error = float(np.max(np.abs(rounded - exact)))  # nan if values exceed float32
        return is_seen(error, margin, is_regression=self.is_regression)

    def sums(self, sample: np.ndarray, *, float64: bool = False) -> np.ndarray:
        """Compute the kernel sums of the support vectors `sample`, int32, which must ascend.

        These are their decision values without the offsets, float64 (n, n_pairs). In an early model
        each value uses the support vectors of the same cluster.
        """
        sources, cluster = self.sources.encoded(), self.cluster
        if cluster is None:
            return sources.product(
                self.weights, target_rows=sample, evaluation=KernelEvalOptions(float64)
            )
        return sources.cluster_product(
            self.weights, cluster, sources, sample, cluster[sample],
            evaluation=KernelEvalOptions(float64),
        )  # fmt: skip

    def entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return arrays (support vector, pair, coefficient) of nonzeros, by support vector."""
        if isinstance(self.weights, np.ndarray):
            owner = np.flatnonzero(self.weights)
            return owner, np.zeros(len(owner), np.int64), self.weights[owner]
        indptr, pair, coefficients, _ = self.weights
        return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), pair, coefficients

    def _totals(self) -> np.ndarray:
        """Sum the |coefficients| of each pair, float64 (n_pairs,)."""
        _, pair, coefficients = self.entries()
        return np.bincount(pair, np.abs(coefficients), self.n_pairs)

    def _few_rows(self) -> _core.FewRows | None:
        """Prepare the core for few rows; return None if it does not support these sources."""
        partition, sources = self.partition, self.sources
        if self.kernel.type.is_linear or not _suits(sources):
            return None
        if partition is not None and not _suits_tree(partition):
            return None
        served, start = _served(sources), np.array([0, sources.rows.n_samples])
        if self.cluster is not None and partition is not None:
            start = np.searchsorted(self.cluster, np.arange(partition.n_clusters + 1))
        most = sources.most_in_float32(1)  # the largest |x|^2 whose kernel values fit float32
        largest = math.sqrt(most / max(sources.rows.n_features, 1)) if most >= 0 else -1.0
        few = _core.FewRows(
            served.setup,
            served.points,
            self.weights,
            np.asarray(start, np.int64),
            np.ascontiguousarray(0.0 - np.atleast_2d(self.rho), np.float64),
            self.needs_float64,
            largest,
        )
        if partition is not None:
            sampled = _served(partition.sources)
            few.set_tree(sampled.setup, partition.found_splits(sampled), partition.blend)
        return few


def _weights_of_pairs(dual_coef: np.ndarray, class_: np.ndarray | None, n_pairs: int) -> Weights:
    if n_pairs == 1:
        return np.ascontiguousarray(dual_coef[0])
    assert class_ is not None  # several pairs imply classes
    coef = dual_coef.T
    pair = pairs_of_lines(class_, coef.shape[1] + 1)
    used = coef != 0
    indptr = np.concatenate(([0], np.cumsum(used.sum(axis=1)))).astype(np.int64)
    return indptr, pair[used], coef[used], n_pairs


def _reordered(weights: Weights, order: np.ndarray) -> Weights:
    """Return the weights of the support vectors in another order."""
    if isinstance(weights, np.ndarray):
        return weights[order]
    old_indptr, pair, coefficients, n_pairs = weights
    lengths = np.diff(old_indptr)[order]
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    entries = np.arange(indptr[-1]) + np.repeat(old_indptr[order] - indptr[:-1], lengths)
    return indptr, pair[entries], coefficients[entries], n_pairs


def pairs_of_lines(class_: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the pair index of each coefficient, int32 (n, n_classes - 1), by classes (n,)."""
    class_, n_others = class_[:, None].astype(np.int32), n_classes - 1
    line = np.arange(n_others, dtype=np.int32)
    other = line + (line >= class_)
    first, second = np.minimum(other, class_), np.maximum(other, class_)
    return first * n_others - first * (first - 1) // 2 + second - first - 1


def is_seen(error: float, size: float, *, is_regression: bool = False) -> bool:
    """Return whether an error of decision values is too large to ignore; nan is too large.

    `size` is the margin, or the standard deviation of the values of a regression.
    """
    return not error <= (SMALL_OF_REGRESSION if is_regression else SMALL) * size


def _served(sources: EncodedSources) -> KernelRows:
    """Return the encoding of the sources that single rows use."""
    return sources.for_bytes() or sources.encoded()


def _suits(sources: EncodedSources) -> bool:
    """Return whether the core supports single rows and its copy of the sources is small."""
    if not sources.rows.is_dense or sources.kernel.is_precomputed:
        return False
    served = _served(sources)
    is_known = served.grid is None and served.setup.form in ("difference", "product", "bytes")
    return is_known and _core.packed_bytes(served.setup, served.points) <= COPY_BYTES


def _suits_tree(tree: Partition) -> bool:
    """Return whether the core can assign single rows to clusters of this tree.

    With a linear kernel, prediction in blocks multiplies a row by the mean of a center's rows. The
    core would multiply it by each of them, which rounds differently.
    """
    if tree.kernel.type.is_linear and tree.sample.n_samples > sum(
        np.count_nonzero(np.repeat(split.n_parts > 1, split.n_parts)) for split in tree.splits
    ):
        return False
    return _suits(tree.sources)
