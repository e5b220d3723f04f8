"""Landmarks: a few vectors whose kernel sums stand for those of many (reduced sets; Burges,
"Simplified support vector decision rules", ICML 1996).

Landmarks begin as some of the support vectors, with the coefficients of least squares. Of dense
rows they then move (pseudo-landmarks; Hsieh, Si and Dhillon, "Fast prediction for large-scale
kernel machines", NIPS 2014): steps of Adam (Kingma and Ba 2015) on random rows, with a learning
rate that falls to 0. Where signs count the loss is the cross entropy of sigmoids of the values,
which counts what is near the border, and far from it asks for the side alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.compression.moving import ROWS_A_STEP, Moving, Target, descend, refine
from dcsvm.data.rows import AT_ONCE, Rows
from dcsvm.kernel.kernel_rows import two_sides
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.partition import Partition, partition_of
from dcsvm.kernel.uniform_grid import MAX_CODE

MOST_STARTED = 20_000  # rows of the least squares, or 4 for each landmark
RIDGE = 1e-4  # of the mean diagonal of the normal equations
LARGEST_START = 1.5  # decision values beyond it are on their side, no matter how far
EPOCHS, MOST_STEPS, LEAST_STEPS = 200, 6000, 400
REFINED = 2  # times the rows of the steps before
FAR_KEPT = 0.25  # of the rows beyond the border that are refined on; all are as good, and slower
MOST_REFINED, ROWS_A_LANDMARK = 2**13, 20
SMALLEST_STEP = 2  # of evenly spaced landmarks


@dataclass(frozen=True, eq=False)
class Wanted:
    """What landmarks are fitted to: of `rows` the decision values float32 (n, p), and what each of
    them counts, float32 (n, p). `by_sign`: signs matter, else the values."""

    rows: Rows
    values: np.ndarray
    weights: np.ndarray
    by_sign: bool

    def take(self, numbers: np.ndarray) -> Wanted:
        rows = self.rows.take(numbers)
        return replace(self, rows=rows, values=self.values[numbers], weights=self.weights[numbers])


@dataclass(frozen=True, eq=False)
class Landmarks:
    """`rows` (m, d), for each of p values the `coefficients` float64 (m, p), 0 where a landmark is
    not `used` bool (m, p), and the `offset` float64 (p,)."""

    rows: Rows
    used: np.ndarray
    coefficients: np.ndarray
    offset: np.ndarray


def fitted(
    kernel: Kernel,
    wanted: Wanted,
    chosen: Rows,
    used: np.ndarray,
    *,
    seed: int,
    steps: int | None = None,
    each: Callable = map,
    tell: Callable[[int, int], None] | None = None,
) -> Landmarks:
    """Landmarks that begin at the `chosen` rows, at least one, and may be `used` bool (m, p), after
    so many steps, None for EPOCHS but not more than MOST_STEPS. What `each`, a map, does side by
    side does not change the result; `tell(step, n_steps)` is told how far it is."""
    rng = np.random.default_rng(seed)
    start = started(kernel, wanted, chosen, used, rng)
    if not wanted.rows.is_dense:
        return start
    if steps is None:
        epoch = max(len(wanted.values) // ROWS_A_STEP, 1)
        steps = min(max(EPOCHS * epoch, LEAST_STEPS), MOST_STEPS)
    return _moved(kernel, wanted, start, steps, rng, each, tell or (lambda _done, _of: None))


def started(
    kernel: Kernel, wanted: Wanted, chosen: Rows, used: np.ndarray, rng: np.random.Generator
) -> Landmarks:
    """The coefficients of least squares, with a ridge, on a part of the rows. Raises ValueError
    where these are not finite."""
    n, m = len(wanted.values), chosen.n_samples
    if n > max(MOST_STARTED, 4 * m):
        numbers = rng.choice(n, max(MOST_STARTED, 4 * m), replace=False)
        wanted = wanted.take(np.sort(numbers))
    values = wanted.values
    if wanted.by_sign:
        values = np.clip(values, -LARGEST_START, LARGEST_START)
    gram, products = np.zeros((m + 1, m + 1)), np.zeros((m + 1, values.shape[1]))
    targets, sources = two_sides(wanted.rows, chosen, kernel, 1)
    for begin in range(0, len(values), max(AT_ONCE // m, 1)):
        some = np.arange(begin, min(begin + max(AT_ONCE // m, 1), len(values)), dtype=np.int32)
        block = np.ones((len(some), m + 1), np.float32)
        block[:, :m] = sources.matrix(targets=targets, target_rows=some)
        with np.errstate(over="ignore", invalid="ignore"):
            gram += block.T @ block
            products += block.T @ values[some]
    if not (np.isfinite(gram).all() and np.isfinite(products).all()):
        raise ValueError("kernel values are too large to be fitted")
    gram[np.diag_indices(m)] += RIDGE * np.trace(gram) / (m + 1) + np.finfo(float).tiny
    solved = _solved(gram, products, np.vstack((used, np.ones(used.shape[1], bool))))
    return Landmarks(chosen, used, solved[:-1], solved[-1])


def _solved(gram: np.ndarray, products: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Each column of the normal equations solved for the unknowns that it uses."""
    if used.all():
        return np.linalg.solve(gram, products)
    solved = np.zeros_like(products)
    for column, own in enumerate(used.T):
        numbers = np.flatnonzero(own)
        solved[numbers, column] = np.linalg.solve(
            gram[np.ix_(numbers, numbers)], products[numbers, column]
        )
    return solved


def _moved(
    kernel: Kernel,
    wanted: Wanted,
    start: Landmarks,
    steps: int,
    rng: np.random.Generator,
    each: Callable,
    tell: Callable[[int, int], None],
) -> Landmarks:
    """The landmarks where they are best. Features that are 0 in all rows stay 0."""
    width = _width(kernel, wanted.rows)
    if width == 0:  # all rows are one
        return start
    rows, vectors = wanted.rows.as_floats().dense, start.rows.as_floats().dense.copy()
    moves = np.flatnonzero(rows.any(axis=0) | vectors.any(axis=0))
    target = Target.of(rows.take(moves, axis=1), wanted.values, wanted.weights, wanted.by_sign)
    used = None if start.used.all() else start.used.astype(np.float32)
    coefficients, offset = start.coefficients.astype(np.float32), start.offset.astype(np.float32)
    held = _held(kernel, target.rows)
    moving = Moving(kernel, vectors.take(moves, axis=1), coefficients, offset, used, width, held)
    some, shares = _refined_rows(wanted, vectors.shape[0], rng)
    kept = Target(target.rows[some], target.values[some],
                  target.weights[some] * shares[:, None], target.by_sign)  # fmt: skip
    # as much work as the steps before, in rows
    more = min(max(steps * ROWS_A_STEP * REFINED // max(len(some), 1), 1), steps)
    descend(moving, target, steps, rng, each, lambda done: tell(done, steps + more))
    if moving.is_finite:
        before = moving.parts
        refine(moving, kept, more, each, lambda done: tell(steps + done, steps + more))
        if not moving.is_finite:
            moving.set(before)
    if not moving.is_finite:  # of a steep polynomial
        return start
    vectors[:, moves] = moving.vectors
    return replace(start, rows=Rows(*vectors.shape, dense=vectors),
                   coefficients=moving.coefficients.astype(np.float64),
                   offset=moving.offset.astype(np.float64))  # fmt: skip


def _held(kernel: Kernel, rows: np.ndarray) -> np.ndarray:
    """Which features stay as they are, bool (d,): those of zeros and ones where gamma is so large
    that rows which differ in one do not meet. A landmark between them would meet neither, and of
    features that stay zeros and ones codes can be made."""
    if kernel.name != "rbf" or np.exp(-kernel.gamma) > np.finfo(np.float32).epsneg:
        return np.zeros(rows.shape[1], bool)
    return ((rows == 0) | (rows == 1)).all(axis=0)


def _refined_rows(
    wanted: Wanted, n_landmarks: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to refine on, ascending, and how many rows each stands for, float32: where signs count
    those near the border and a part of the others."""
    kept = np.ones(len(wanted.values))
    if wanted.by_sign:
        counted = wanted.weights >= wanted.weights.max(initial=0.0)
        near = ((np.abs(wanted.values) <= LARGEST_START) & counted).any(axis=1)
        kept[~near] = FAR_KEPT
    most = max(MOST_REFINED, ROWS_A_LANDMARK * n_landmarks)
    kept *= min(most / max(kept.sum(), 1.0), 1.0)
    some = np.flatnonzero(rng.random(len(kept)) < kept)
    if len(some) == 0:
        some = np.arange(len(kept))
    return some, (1 / kept[some]).astype(np.float32)


def _width(kernel: Kernel, rows: Rows) -> float:
    """How far a landmark may be moved."""
    width = float(np.sqrt(rows.mean_squared_distance()))
    return kernel.gamma**-0.5 if kernel.name == "rbf" and kernel.gamma * width**2 > 1 else width


def in_steps(landmarks: Rows) -> Rows | None:
    """Dense rows with the nearest multiples of one integer, the smallest with which these are few
    enough: they meet rows of bytes by products of bytes, in a quarter of the time of floats. None
    where rows of bytes could not meet them, or for none."""
    vectors = landmarks.as_floats().dense
    lowest, highest = float(vectors.min(initial=0.0)), float(vectors.max(initial=0.0))
    step = max(math.ceil((highest - lowest) / (MAX_CODE - 1)), SMALLEST_STEP)
    origin = step * math.floor(lowest / step)
    if landmarks.n_samples == 0 or not _core.may_step(landmarks.n_features, origin, step):
        return None
    return Rows(*vectors.shape, dense=np.float32(step) * np.rint(vectors / np.float32(step)))


def with_single_centers(partition: Partition) -> Partition:
    """The same tree with the mean of the sampled rows for each cluster, nearest in Euclidean
    distance, and no row in two clusters; with all sampled rows where these are sparse, and their
    means would not be."""
    if not partition.sample.is_dense:
        return replace(partition, blend=0.0)
    sampled = partition.sample.as_floats().dense
    clusters, means, first = [], [], 0
    for fork in partition.forks:
        cluster, begins = np.unique(fork.cluster, return_index=True)
        own = sampled[first : first + len(fork.cluster)]
        sizes = np.diff([*begins, len(own)])
        means.append(np.add.reduceat(own, begins, axis=0) / sizes[:, None] if len(own) else own)
        clusters.append(cluster)
        first += len(fork.cluster)
    rows = np.concatenate(means).astype(np.float32)
    n_parts = np.concatenate([fork.n_parts for fork in partition.forks])
    return partition_of(Kernel("linear"), Rows(*rows.shape, dense=rows), n_parts, clusters, 0.0)


def values_on_the_way(partition: Partition) -> np.ndarray:
    """How many kernel values a row takes to find each cluster of the finest level, int64
    (n_clusters,)."""
    met = np.zeros(1, np.int64)
    for fork in partition.forks:
        met = np.repeat(met + np.diff(fork.start), fork.n_parts)
    return met


CONFIDENCE = 0.95


def shares(sizes: np.ndarray, total: int) -> np.ndarray:
    """`total` divided in proportion to `sizes` int (n,), at most as many for each, by the largest
    remainders; int64 (n,)."""
    total = min(total, int(sizes.sum()))
    wanted = sizes * (total / max(int(sizes.sum()), 1))
    found = np.floor(wanted).astype(np.int64)
    order = np.argsort(found - wanted, kind="stable")
    found[order[: total - int(found.sum())]] += 1
    return found


def most_changed(n_changed: int, n: int, n_trials: int) -> float:
    """The part that n_changed of n random rows says is not exceeded, with CONFIDENCE in all of
    n_trials together (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv  # slow to import, and used here alone

    doubt = (1 - CONFIDENCE) / n_trials
    if n_changed >= n:
        return 1.0
    return float(betaincinv(n_changed + 1, n - n_changed, 1 - doubt))


def fewest_rows(part: float, n_trials: int) -> int:
    """Rows of which most_changed is at most this part if not one changes."""
    return math.ceil(math.log((1 - CONFIDENCE) / n_trials) / math.log1p(-part))
