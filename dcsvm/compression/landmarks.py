"""Fit landmarks: few vectors that approximate the kernel sums of many support vectors.

These are reduced sets (Burges, "Simplified support vector decision rules", ICML 1996). Landmarks
start at some of the rows to fit, with least squares coefficients. optimizer.py then optimizes dense
landmarks (pseudo-landmarks; Hsieh, Si and Dhillon, "Fast prediction for large-scale kernel
machines", NIPS 2014).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.compression.optimizer import ROWS_A_STEP, LandmarkOptimizer, Map, Target, descend, refine
from dcsvm.data.rows import BATCH_SIZE, Rows
from dcsvm.kernel.encodings import MAX_CODE
from dcsvm.kernel.kernel_rows import two_sides
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.partition import Partition, partition_of

MAX_STARTED = 20_000  # rows of the least squares fit, or 4 per landmark if that is more
RIDGE = 1e-4  # relative to the mean diagonal of the normal equations
MAX_START = 1.5  # larger decision values are clipped: only their sign matters
EPOCHS, MAX_STEPS, MIN_STEPS = 200, 6000, 400  # of Adam
REFINED = 2  # row visits of L-BFGS / row visits of Adam
FAR_KEPT = 0.25  # fraction of rows far from the boundary that L-BFGS uses; 1 is slower, no better
MAX_REFINED, ROWS_A_LANDMARK = 2**13, 20  # rows of L-BFGS, whichever is more; see _refined_rows
MIN_STEP = 2  # smallest spacing of rounded landmarks, see in_steps
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class FitTarget:
    """Decision values to fit on some rows.

    `values` float32 (n, p) are the decision values of `rows`. `weights` float32 (n, p) multiply
    their losses. If `by_sign`, only the signs of the values matter.
    """

    rows: Rows
    values: np.ndarray
    weights: np.ndarray
    by_sign: bool

    def take(self, indices: np.ndarray) -> FitTarget:
        rows = self.rows.take(indices)
        return replace(self, rows=rows, values=self.values[indices], weights=self.weights[indices])


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Landmarks with their coefficients.

    `rows` (m, d) are the landmarks. `coefficients` float64 (m, p) are 0 where `used` bool (m, p) is
    false. `offset` float64 (p,) is added to the kernel sums.
    """

    rows: Rows
    used: np.ndarray
    coefficients: np.ndarray
    offset: np.ndarray


def fitted(
    kernel: Kernel,
    wanted: FitTarget,
    chosen: Rows,
    used: np.ndarray,
    *,
    seed: int,
    steps: int | None = None,
    each: Map = map,
    tell: Callable[[int, int], None] | None = None,
) -> Landmarks:
    """Fit landmarks that start at the `chosen` rows (at least one).

    Landmarks contribute to the values for which `used` bool (m, p) is true. By default `steps` is
    EPOCHS passes over the rows, clipped to [MIN_STEPS, MAX_STEPS]. `each` is a map; the result does
    not depend on its number of threads. `tell(step, n_steps)` reports progress.
    """
    rng = np.random.default_rng(seed)
    start = started(kernel, wanted, chosen, used, rng)
    if not wanted.rows.is_dense:
        return start
    if steps is None:
        epoch = max(len(wanted.values) // ROWS_A_STEP, 1)
        steps = min(max(EPOCHS * epoch, MIN_STEPS), MAX_STEPS)
    return _optimized(kernel, wanted, start, steps, rng, each, tell or (lambda _done, _total: None))


def started(
    kernel: Kernel, wanted: FitTarget, chosen: Rows, used: np.ndarray, rng: np.random.Generator
) -> Landmarks:
    """Fit the coefficients of the chosen rows by ridge regression on a random sample.

    Raises ValueError if kernel values are too large.
    """
    n, m = len(wanted.values), chosen.n_samples
    if n > max(MAX_STARTED, 4 * m):
        indices = rng.choice(n, max(MAX_STARTED, 4 * m), replace=False)
        wanted = wanted.take(np.sort(indices))
    values = wanted.values
    if wanted.by_sign:
        values = np.clip(values, -MAX_START, MAX_START)
    gram, products = np.zeros((m + 1, m + 1)), np.zeros((m + 1, values.shape[1]))
    targets, sources = two_sides(wanted.rows, chosen, kernel, 1)
    size = max(BATCH_SIZE // m, 1)
    for begin in range(0, len(values), size):
        batch = np.arange(begin, min(begin + size, len(values)), dtype=np.int32)
        block = np.ones((len(batch), m + 1), np.float32)
        block[:, :m] = sources.matrix(targets=targets, target_rows=batch)
        with np.errstate(over="ignore", invalid="ignore"):
            gram += block.T @ block
            products += block.T @ values[batch]
    if not (np.isfinite(gram).all() and np.isfinite(products).all()):
        raise ValueError("kernel values are too large to fit landmarks")
    gram[np.diag_indices(m)] += RIDGE * np.trace(gram) / (m + 1) + np.finfo(float).tiny
    solution = _solution(gram, products, np.vstack((used, np.ones(used.shape[1], bool))))
    return Landmarks(chosen, used, solution[:-1], solution[-1])


def _solution(gram: np.ndarray, products: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Solve the normal equations of each column for the unknowns that `used` marks."""
    if used.all():
        return np.linalg.solve(gram, products)
    solution = np.zeros_like(products)
    for column, mask in enumerate(used.T):
        unknowns = np.flatnonzero(mask)
        solution[unknowns, column] = np.linalg.solve(
            gram[np.ix_(unknowns, unknowns)], products[unknowns, column]
        )
    return solution


def _optimized(
    kernel: Kernel,
    wanted: FitTarget,
    start: Landmarks,
    steps: int,
    rng: np.random.Generator,
    each: Map,
    tell: Callable[[int, int], None],
) -> Landmarks:
    """Minimize the loss over vectors, coefficients and offset.

    Features that are 0 in all rows stay 0.
    """
    width = _width(kernel, wanted.rows)
    if width == 0:  # all rows are equal
        return start
    rows, vectors = wanted.rows.as_floats().features, start.rows.as_floats().features.copy()
    columns = np.flatnonzero(rows.any(axis=0) | vectors.any(axis=0))
    target = Target.of(rows.take(columns, axis=1), wanted.values, wanted.weights, wanted.by_sign)
    used = None if start.used.all() else start.used.astype(np.float32)
    coefficients, offset = start.coefficients.astype(np.float32), start.offset.astype(np.float32)
    fixed = _fixed_features(kernel, target.rows)
    moving = LandmarkOptimizer(
        kernel, vectors.take(columns, axis=1), coefficients, offset, used, width, fixed
    )
    sample, row_weights = _refined_rows(wanted, vectors.shape[0], rng)
    refined = Target(target.rows[sample], target.values[sample],
                     target.weights[sample] * row_weights[:, None], target.by_sign)  # fmt: skip
    more = min(max(steps * ROWS_A_STEP * REFINED // max(len(sample), 1), 1), steps)
    descend(moving, target, steps, rng, each, lambda done: tell(done, steps + more))
    if moving.is_finite:
        before = moving.parts
        refine(moving, refined, more, each, lambda done: tell(steps + done, steps + more))
        if not moving.is_finite:
            moving.set(before)
    if not moving.is_finite:  # a steep polynomial overflows
        return start
    vectors[:, columns] = moving.vectors
    return replace(start, rows=_dense(vectors), coefficients=moving.coefficients.astype(np.float64),
                   offset=moving.offset.astype(np.float64))  # fmt: skip


def _dense(values: np.ndarray) -> Rows:
    return Rows(len(values), values.shape[1], dense=values)


def _fixed_features(kernel: Kernel, rows: np.ndarray) -> np.ndarray:
    """Return a mask of the features that are not optimized, bool (d,).

    These are the 0/1 features if gamma is so large that K vanishes between rows that differ in one
    of them. A landmark between such rows would be far from both. Fixed features can still be
    one-hot codes.
    """
    fall, apart = kernel.type.fall, float(np.finfo(np.float32).epsneg)
    if fall is None or fall.argument_at(kernel.gamma, apart) > 1:
        return np.zeros(rows.shape[1], bool)
    return ((rows == 0) | (rows == 1)).all(axis=0)


def _refined_rows(
    wanted: FitTarget, n_landmarks: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sample rows for L-BFGS; return their indices, ascending, and weights, float32.

    If only signs matter, rows near the decision boundary are sampled with a higher probability. The
    weight of a row is the reciprocal of its probability.
    """
    probability = np.ones(len(wanted.values))
    if wanted.by_sign:
        counted = wanted.weights >= wanted.weights.max(initial=0.0)
        near = ((np.abs(wanted.values) <= MAX_START) & counted).any(axis=1)
        probability[~near] = FAR_KEPT
    most = max(MAX_REFINED, ROWS_A_LANDMARK * n_landmarks)
    probability *= min(most / max(probability.sum(), 1.0), 1.0)
    sample = np.flatnonzero(rng.random(len(probability)) < probability)
    if len(sample) == 0:
        sample = np.arange(len(probability))
    return sample, (1 / probability[sample]).astype(np.float32)


def _width(kernel: Kernel, rows: Rows) -> float:
    """Return the length scale of moves: the kernel's width, or the row distance if smaller."""
    width = float(np.sqrt(rows.mean_squared_distance()))
    if kernel.type.fall is None or kernel.gamma * width**kernel.type.length_power <= 1:
        return width
    return kernel.gamma ** (-1 / kernel.type.length_power)


def in_steps(landmarks: Rows) -> Rows | None:
    """Round dense landmarks to multiples of an integer.

    Byte products of rounded landmarks and byte rows take a quarter of the time of float products.
    The integer is the smallest for which all values fit in a byte. Returns None if the core does
    not support it or there are no landmarks.
    """
    vectors = landmarks.as_floats().features
    lowest, highest = float(vectors.min(initial=0.0)), float(vectors.max(initial=0.0))
    step = max(math.ceil((highest - lowest) / (MAX_CODE - 1)), MIN_STEP)
    origin = step * math.floor(lowest / step)
    if landmarks.n_samples == 0 or not _core.may_step(landmarks.n_features, origin, step):
        return None
    return _dense(np.float32(step) * np.rint(vectors / np.float32(step)))


def with_single_centers(partition: Partition) -> Partition:
    """Replace the sampled rows of each cluster by their mean, and remove the overlap.

    Rows are then assigned by Euclidean distance. Sparse samples are kept, since their means would
    not be sparse.
    """
    if not partition.sample.is_dense:
        return replace(partition, blend=0.0)
    sampled = partition.sample.as_floats().features
    clusters, means, first = [], [], 0
    for split in partition.splits:
        cluster, begins = np.unique(split.cluster, return_index=True)
        members = sampled[first : first + len(split.cluster)]
        sizes = np.diff([*begins, len(members)])[:, None]
        means.append(np.add.reduceat(members, begins, axis=0) / sizes if len(members) else members)
        clusters.append(cluster)
        first += len(split.cluster)
    rows = _dense(np.concatenate(means).astype(np.float32))
    n_parts = np.concatenate([split.n_parts for split in partition.splits])
    return partition_of(Kernel("linear"), rows, n_parts, clusters, 0.0)


def values_on_the_way(partition: Partition) -> np.ndarray:
    """Count kernel evaluations to assign a row to each leaf cluster, int64 (n_clusters,)."""
    n_evaluations = np.zeros(1, np.int64)
    for split in partition.splits:
        n_evaluations = np.repeat(n_evaluations + np.diff(split.start), split.n_parts)
    return n_evaluations


def shares(sizes: np.ndarray, total: int) -> np.ndarray:
    """Divide `total` in proportion to `sizes` int (n,); return the shares, int64 (n,).

    Shares are rounded by the largest remainder method. No share exceeds its size.
    """
    total = min(total, int(sizes.sum()))
    exact = sizes * (total / max(int(sizes.sum()), 1))
    rounded = np.floor(exact).astype(np.int64)
    order = np.argsort(rounded - exact, kind="stable")
    rounded[order[: total - int(rounded.sum())]] += 1
    return rounded


def most_changed(n_changed: int, n: int, n_trials: int) -> float:
    """Return an upper bound on the probability of a change, given n_changed of n random rows.

    This is the bound of Clopper and Pearson (1934). The bounds of n_trials calls hold
    simultaneously with probability CONFIDENCE.
    """
    from scipy.special import betaincinv  # slow to import, and used only here

    significance = (1 - CONFIDENCE) / n_trials
    if n_changed >= n:
        return 1.0
    return float(betaincinv(n_changed + 1, n - n_changed, 1 - significance))


def fewest_rows(part: float, n_trials: int) -> int:
    """Return the smallest number of rows, none changed, for which most_changed <= `part`."""
    return math.ceil(math.log((1 - CONFIDENCE) / n_trials) / math.log1p(-part))
