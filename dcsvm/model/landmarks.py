"""Fit landmarks: few vectors that approximate the kernel sums of many support vectors.

These are reduced sets (Burges, "Simplified support vector decision rules", ICML 1996). Landmarks
start at some of the rows to fit, with least squares coefficients. Dense landmarks are then
optimized, with their coefficients and offsets (pseudo-landmarks; Hsieh, Si and Dhillon, "Fast
prediction for large-scale kernel machines", NIPS 2014).

Adam (Kingma and Ba, 2015) runs first, on random batches of rows, with a learning rate that falls to
0. L-BFGS (Liu and Nocedal, 1989) follows, on fixed rows. If only the signs of decision values
matter, the loss is the cross entropy of their sigmoids. It emphasizes rows near the decision
boundary; far from it only the side of a row matters. Otherwise the loss is half the squared error.

The kernels exp(-gamma |x - z|_1) and exp(-gamma |x - z|) have no derivative where a feature of z,
or all of z, equals that of a row. Landmarks move by a subgradient: the sign of 0 is 0. The other
choices are worse. Medians of rows would place landmarks where rows are many, not where the decision
boundary is. Landmarks that stay at rows leave all work to the coefficients, although a function of
absolute distances has its edges at the features of landmarks. Steps on random batches converge for
such losses, too (Davis, Drusvyatskiy, Kakade and Lee, "Stochastic subgradient method converges on
tame functions", Foundations of Computational Mathematics 20, 2020), and so do those of L-BFGS in
practice (Lewis and Overton, "Nonsmooth optimization via quasi-Newton methods", Mathematical
Programming 141, 2013). The mean loss is nearly smooth, as one of n rows adds an edge of 1/n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import BATCH_SIZE, Rows
from dcsvm.kernel.kernel_rows import two_sides
from dcsvm.kernel.kernels import ABSOLUTE_DISTANCE, SQUARED_DISTANCE, Kernel
from dcsvm.kernel.sources import Partition, partition_of
from dcsvm.model.rounding import as_dense, decimals_of, rounded

SHARPNESS = np.float32(2.0)  # slope of the sigmoid of a decision value; 4 is as good
ROWS_A_STEP = 256  # rows of a batch of Adam
# Learning rates. RATE is for coefficients and offsets, relative to their size. LENGTH is for the
# Euclidean length of a vector's move, relative to LandmarkOptimizer.width.
RATE, LENGTH = 0.06, 0.2
DECAYS = np.float32(0.9), np.float32(0.99)  # of Adam's first and second moments
# Corrections kept by L-BFGS. On three clusters of covtype, with a tenth of the vectors, 20
# corrections change 1.8 % of the labels; 60 change 1.65 %, but take more memory.
PAIRS_KEPT = 20
SHARD_WORK, ROWS_OF_SHARD = 2**25, 64  # products above which Adam uses shards; rows of a shard
BATCH_ROWS = 1024  # rows of a shard of L-BFGS
BLOCK = 2**14  # numbers of an array updated at a time, to fit the second-level cache

# `map` with one sequence, or a multithreaded equivalent
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True, eq=False)
class FitTarget:
    """Rows to fit landmarks to, and the decision values to fit.

    Attributes
    ----------
    rows : Rows (n, d).
    values : float32 (n, p), decision values, divided by `scale`.
    weights : float32 (n, p), factors of the losses.
    by_sign : whether only the signs of the values matter.
    class_ : int32 (n,), predicted class, 0 without classes.
    near : bool (n,), marks rows near the decision boundary; all without classes.
    moved : int64, the features that landmarks may change, ascending.
    """

    rows: Rows
    values: np.ndarray
    weights: np.ndarray
    by_sign: bool
    class_: np.ndarray
    near: np.ndarray
    moved: np.ndarray
    scale: float = 1.0

    def take(self, indices: np.ndarray) -> FitTarget:
        arrays = (self.values, self.weights, self.class_, self.near)
        values, weights, class_, near = (array[indices] for array in arrays)
        rows = self.rows.take(indices)
        return replace(self, rows=rows, values=values, weights=weights, class_=class_, near=near)

    def starts(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Choose at most n random rows, near ones first; return indices, sorted by class."""
        order = rng.permutation(len(self.near))
        order = order[np.argsort(~self.near[order], kind="stable")][:n]
        return order[np.lexsort((order, self.class_[order]))]

    @cached_property
    def features(self) -> np.ndarray:
        """Features of the rows, which must be dense, float32 (n, d)."""
        return self.rows.as_floats().features

    @cached_property
    def expected(self) -> np.ndarray:
        """The values, or their sigmoids if only signs matter, float32 (n, p)."""
        return sigmoid(self.values) if self.by_sign else self.values

    def losses(self, outputs: np.ndarray, chosen: np.ndarray) -> float:
        """Sum the weighted losses of the chosen rows, given their decision values."""
        expected, weights = self.expected[chosen], self.weights[chosen]
        if self.by_sign:
            outputs = SHARPNESS * outputs
            losses = (np.logaddexp(np.float32(0), outputs) - expected * outputs) / SHARPNESS
        else:
            losses = np.float32(0.5) * (outputs - expected) ** 2
        return float(np.sum(weights * losses, dtype=np.float64))

    def errors(self, outputs: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return the derivatives of the weighted losses with respect to the decision values."""
        outputs = sigmoid(outputs) if self.by_sign else outputs
        return (outputs - self.expected[chosen]) * self.weights[chosen]


@dataclass(eq=False)
class LandmarkOptimizer:
    """Current landmarks of an optimization.

    `start` (m, d) are the first vectors, `coefficients` (m, p) and `offset` (p,) the current ones,
    float32. `used` float32 (m, p) is 0 for coefficients that stay 0, else 1; None means that all
    are used. `moved` int64 are the features that change, and `positions` (m, n_moved) their values.
    `width` is the length scale of the vectors.
    """

    kernel: Kernel
    start: np.ndarray
    coefficients: np.ndarray
    offset: np.ndarray
    used: np.ndarray | None
    width: float
    moved: np.ndarray

    def __post_init__(self) -> None:
        positions = self.start.take(self.moved, axis=1)
        # _step flattens views
        self.set([positions, *map(np.ascontiguousarray, (self.coefficients, self.offset))])

    @property
    def parts(self) -> list[np.ndarray]:
        return [self.positions, self.coefficients, self.offset]

    @property
    def vectors(self) -> np.ndarray:
        """The current landmarks, float32 (m, d)."""
        if len(self.moved) == self.start.shape[1]:
            return self.positions
        vectors = self.start.copy()
        vectors[:, self.moved] = self.positions
        return vectors

    @property
    def sizes(self) -> tuple[float, float, float]:
        """The typical magnitudes of the parts."""
        return self.width, max(float(np.sqrt(np.mean(self.coefficients**2))), 0.1), 1.0

    @property
    def is_finite(self) -> bool:
        return all(np.isfinite(part).all() for part in self.parts)

    def set(self, parts: list[np.ndarray]) -> None:
        self.positions, self.coefficients, self.offset = parts

    def gradients(
        self, target: FitTarget, shards: list[np.ndarray], each: Map, *, with_loss: bool = False
    ) -> list[np.ndarray]:
        """Return the gradients of the mean loss on the rows of all shards.

        The list has the gradients with respect to positions, coefficients and offset. The loss
        follows if `with_loss`.
        """
        n, vectors = sum(map(len, shards)), self.vectors
        total, *others = each(
            lambda shard: self._gradients_of(target, shard, n, vectors, with_loss), shards
        )
        for other in others:
            for accumulated, part in zip(total, other, strict=True):
                accumulated += part
        if self.used is not None:
            total[1] *= self.used
        return total

    def _gradients_of(
        self, target: FitTarget, chosen: np.ndarray, n: int, vectors: np.ndarray, with_loss: bool
    ) -> list[np.ndarray]:
        rows = target.features[chosen]
        with np.errstate(over="ignore", invalid="ignore"):  # is_finite detects overflow
            values, slopes = values_and_slopes(self.kernel, rows, vectors)
            outputs = values @ self.coefficients + self.offset
            errors = target.errors(outputs, chosen) / np.float32(n)
            loss = [np.array(target.losses(outputs, chosen) / n)] if with_loss else []
            pulls = (errors @ self.coefficients.T) * slopes
            if len(self.moved) < rows.shape[1]:
                rows = rows.take(self.moved, axis=1)
            moves = slope_gradient(self.kernel, pulls, rows, self.positions)
            return [moves, values.T @ errors, errors.sum(axis=0), *loss]


def descend(
    moving: LandmarkOptimizer,
    target: FitTarget,
    n_steps: int,
    rng: np.random.Generator,
    each: Map,
    tell: Callable[[int], None],
) -> None:
    """Run n_steps of Adam, each on ROWS_A_STEP random rows."""
    n = begin = len(target.values)
    size = min(ROWS_A_STEP, n)
    # shards depend on the work alone, so that results do not depend on the number of threads
    n_shards = -(-size // ROWS_OF_SHARD) if size * moving.start.size > SHARD_WORK else 1
    moments = [(np.zeros_like(part), np.zeros_like(part)) for part in moving.parts]
    width, coefficient, offset = moving.sizes
    n_moved = max(len(moving.moved), 1)
    rates = LENGTH * width / np.sqrt(n_moved), RATE * coefficient, RATE * offset
    for step in range(1, n_steps + 1):
        # the next batch of a random order, or of a new one
        if begin + size > n:
            order, begin = rng.permutation(n), 0
        shards = np.array_split(order[begin : begin + size], n_shards)
        gradients = moving.gradients(target, shards, each)
        begin += size
        # the learning rate falls to 0 along a cosine
        decay = 0.5 * (1 + np.cos(np.pi * step / n_steps))
        for part, rate, gradient, moment in zip(
            moving.parts, rates, gradients, moments, strict=True
        ):
            _step(part, np.float32(rate * decay), gradient, moment, step)
        tell(step)


def _step(
    part: np.ndarray,
    rate: np.float32,
    gradient: np.ndarray,
    moment: tuple[np.ndarray, np.ndarray],
    step: int,
) -> None:
    """Take one step of Adam in place, a block at a time."""
    arrays = [array.reshape(-1) for array in (part, gradient, *moment)]
    corrections = [1 - decay**step for decay in DECAYS]
    for begin in range(0, part.size, BLOCK):
        values, slope, *means = (array[begin : begin + BLOCK] for array in arrays)
        for mean, decay, power in zip(means, DECAYS, (slope, slope * slope), strict=True):
            mean += (1 - decay) * (power - mean)
        first, second = (mean / by for mean, by in zip(means, corrections, strict=True))
        values -= rate * first / (np.sqrt(second) + np.float32(1e-9))


def refine(
    moving: LandmarkOptimizer,
    target: FitTarget,
    n_steps: int,
    each: Map,
    tell: Callable[[int], None],
) -> None:
    """Run at most n_steps of L-BFGS on all rows of the target."""
    from scipy.optimize import minimize  # slow to import, and used only here

    shapes = [part.shape for part in moving.parts]
    ends = np.cumsum([part.size for part in moving.parts])
    scale = np.repeat(moving.sizes, [part.size for part in moving.parts])
    n = len(target.values)
    shards = np.array_split(np.arange(n), -(-n // BATCH_ROWS))
    done = 0

    def set_to(x: np.ndarray) -> None:
        parts = np.split((x * scale).astype(np.float32), ends[:-1])
        moving.set([part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)])

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        set_to(x)
        *gradients, value = moving.gradients(target, shards, each, with_loss=True)
        gradient = np.concatenate([part.ravel() for part in gradients]).astype(np.float64)
        return float(value), gradient * scale

    def count(xk: np.ndarray) -> None:  # noqa: ARG001 - the signature that SciPy wants
        nonlocal done
        done += 1
        tell(min(done, n_steps))

    start = np.concatenate([part.ravel() for part in moving.parts]) / scale
    result = minimize(
        loss, start, jac=True, method="L-BFGS-B", callback=count,
        options={"maxiter": n_steps, "maxfun": 2 * n_steps, "maxcor": PAIRS_KEPT,
                 "ftol": 0, "gtol": 0},
    )  # fmt: skip
    set_to(result.x)


def sigmoid(values: np.ndarray) -> np.ndarray:
    """Compute 1 / (1 + exp(-SHARPNESS f)), float32."""
    return (0.5 * (1 + np.tanh(SHARPNESS / 2 * values))).astype(np.float32)


def values_and_slopes(
    kernel: Kernel, rows: np.ndarray, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute K(rows, vectors) and its slopes, float32 (n, m), see `KernelType.slopes`.

    |x| and |z| are fixed in the slopes. NumPy multiplies the matrices, because the vectors change
    at every step and preparing them for the core would take too long. Absolute distances, which are
    no product of matrices, take the core far less time.
    """
    assert kernel.type.slopes is not None
    if kernel.type.argument == ABSOLUTE_DISTANCE:
        return kernel.type.slopes(kernel, _absolute_distances(rows, vectors))
    argument = rows @ vectors.T
    if kernel.type.argument == SQUARED_DISTANCE:
        argument *= np.float32(-2)
        argument += np.einsum("ij,ij->i", rows, rows)[:, None]
        argument += np.einsum("ij,ij->i", vectors, vectors)
        np.maximum(argument, 0, out=argument)
    return kernel.type.slopes(kernel, argument)


def _absolute_distances(rows: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Compute the sums of |x_k - z_k|, float32 (n, m)."""
    sides = [_core.Points(as_dense(side), 1) for side in (rows, vectors)]
    setup = _core.Setup(Kernel(ABSOLUTE_DISTANCE), sides[1])
    targets, sources = (side.prepared(setup, 1) for side in sides)
    return _core.kernel_matrix(setup, targets, None, sources, None, 1)


def slope_gradient(
    kernel: Kernel, pulls: np.ndarray, rows: np.ndarray, vectors: np.ndarray
) -> np.ndarray:
    """Compute the gradient of the loss with respect to the vectors, float32 (m, d).

    `pulls` (n, m) are the derivatives of the loss with respect to K, times the slopes. The rows and
    vectors may have only some features.
    """
    if kernel.type.argument == ABSOLUTE_DISTANCE:
        gradient = _core.sign_sums(rows, vectors, pulls)
    else:
        gradient = pulls.T @ rows
    if kernel.type.argument == SQUARED_DISTANCE:  # K depends on |z|, too
        gradient -= pulls.sum(axis=0)[:, None] * vectors
    return np.float32(kernel.type.slope_factor(kernel)) * gradient


MAX_STARTED = 20_000  # rows of the least squares fit, or 4 per landmark if that is more
RIDGE = 1e-4  # relative to the mean diagonal of the normal equations
MAX_START = 1.5  # larger decision values are clipped: only their sign matters
EPOCHS, MAX_STEPS, MIN_STEPS = 200, 6000, 400  # of Adam
REFINED = 2  # row visits of L-BFGS / row visits of Adam
FAR_KEPT = 0.25  # fraction of rows far from the boundary that L-BFGS uses; 1 is slower, no better
MAX_REFINED, ROWS_A_LANDMARK = 2**13, 20  # rows of L-BFGS, whichever is more; see _refined_rows
CENTER_STEP = 1e-3  # spacing of rounded centers, relative to the distance between centers
CONFIDENCE = 0.95


Fit = tuple[Rows, np.ndarray, np.ndarray]  # landmarks (m, d), coefficients (m, p), offset (p,)


@dataclass(frozen=True)
class FitOptions:
    """How landmarks are fitted.

    Attributes
    ----------
    steps : steps of Adam; None for EPOCHS passes over the rows, clipped to [MIN_STEPS, MAX_STEPS].
    each : a map; the result does not depend on its number of threads.
    tell : called as tell(step, n_steps), if it is given.
    """

    seed: int = 0
    steps: int | None = None
    each: Map = map
    tell: Callable[[int, int], None] | None = None

    def steps_for(self, n_rows: int) -> int:
        if self.steps is not None:
            return self.steps
        epoch = max(n_rows // ROWS_A_STEP, 1)
        return min(max(EPOCHS * epoch, MIN_STEPS), MAX_STEPS)


def fitted(
    kernel: Kernel, target: FitTarget, chosen: Rows, used: np.ndarray, options: FitOptions
) -> Fit:
    """Fit landmarks that start at the `chosen` rows (at least one).

    Coefficients float64 are 0 where `used` bool (m, p) is false; the offset float64 is added to the
    kernel sums.
    """
    rng = np.random.default_rng(options.seed)
    start = chosen, *started(kernel, target, chosen, used, rng)
    return _optimized(kernel, target, start, used, options)


def refined(
    kernel: Kernel, target: FitTarget, start: Fit, used: np.ndarray, options: FitOptions
) -> Fit:
    """Improve a good fit by L-BFGS alone: the first steps of Adam would lose it; see `fitted`."""
    return _optimized(kernel, target, start, used, options, has_descent=False)


def started(
    kernel: Kernel, target: FitTarget, chosen: Rows, used: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Fit the coefficients of the chosen rows, and the offset, on a random sample.

    This is a ridge regression. Raises ValueError if kernel values are too large.
    """
    target = sampled_for(target, chosen.n_samples, rng)
    values = target.values
    if target.by_sign:
        values = np.clip(values, -MAX_START, MAX_START)
    weights = np.ones(len(values), np.float32)
    gram, products = normal_equations(kernel, target.rows, chosen, values, weights)
    # the ridge leaves the offset alone
    m = chosen.n_samples
    gram[np.diag_indices(m)] += RIDGE * np.trace(gram) / (m + 1) + np.finfo(float).tiny
    return solved(gram, products, used)


def sampled_for(target: FitTarget, m: int, rng: np.random.Generator) -> FitTarget:
    """Return a random sample that is enough for least squares with m vectors."""
    n, most = len(target.values), max(MAX_STARTED, 4 * m)
    return target if n <= most else target.take(np.sort(rng.choice(n, most, replace=False)))


def normal_equations(
    kernel: Kernel, rows: Rows, chosen: Rows, values: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sum the normal equations in batches of rows, float64; the last unknown is the offset.

    A batch is summed in the precision of the values. Raises ValueError if kernel values are too
    large.
    """
    n, m = len(values), chosen.n_samples
    gram, products = np.zeros((m + 1, m + 1)), np.zeros((m + 1, values.shape[1]))
    targets, sources = two_sides(rows, chosen, kernel, 1)
    size = max(BATCH_SIZE // m, 1)
    for begin in range(0, n, size):
        batch = np.arange(begin, min(begin + size, n), dtype=np.int32)
        block = np.ones((len(batch), m + 1), values.dtype)
        block[:, :m] = sources.matrix(targets=targets, target_rows=batch)
        with np.errstate(over="ignore", invalid="ignore"):
            weighted = (block * weights[batch, None]).T
            gram += weighted @ block
            products += weighted @ values[batch]
    if not (np.isfinite(gram).all() and np.isfinite(products).all()):
        raise ValueError("kernel values are too large to fit landmarks")
    return gram, products


def solved(
    gram: np.ndarray, products: np.ndarray, used: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Solve the normal equations of each column for the `used` coefficients and the offset."""
    if used.all():
        solution = np.linalg.solve(gram, products)
        return solution[:-1], solution[-1]
    solution = np.zeros_like(products)
    for column, mask in enumerate(used.T):
        unknowns = np.append(np.flatnonzero(mask), len(used))
        solution[unknowns, column] = np.linalg.solve(
            gram[np.ix_(unknowns, unknowns)], products[unknowns, column]
        )
    return solution[:-1], solution[-1]


def _optimized(
    kernel: Kernel,
    target: FitTarget,
    start: Fit,
    used: np.ndarray,
    options: FitOptions,
    *,
    has_descent: bool = True,
) -> Fit:
    """Minimize the loss over the moved features of vectors, coefficients and offset.

    Features that are 0 in all rows stay 0.
    """
    chosen, coefficients, offset = start
    width = width_of(kernel, target.rows, len(target.moved))
    if width == 0 or not target.rows.is_dense:  # width 0: all rows are equal
        return start
    features, vectors = target.rows.as_floats().features, chosen.as_floats().features.copy()
    columns = np.flatnonzero(features.any(axis=0) | vectors.any(axis=0))
    target = replace(target, rows=as_dense(features.take(columns, axis=1)))
    moving = LandmarkOptimizer(
        kernel,
        vectors.take(columns, axis=1),
        coefficients.astype(np.float32),
        offset.astype(np.float32),
        None if used.all() else used.astype(np.float32),
        width,
        np.flatnonzero(np.isin(columns, target.moved)),
    )
    rng = np.random.default_rng(options.seed)
    sample, row_weights = _refined_rows(target, vectors.shape[0], rng)
    sampled = target.take(sample)
    sampled = replace(sampled, weights=sampled.weights * row_weights[:, None])
    steps, each = options.steps_for(len(target.values)), options.each
    more = min(max(steps * ROWS_A_STEP * REFINED // max(len(sample), 1), 1), steps)
    tell, steps = options.tell or (lambda _done, _total: None), steps if has_descent else 0
    descend(moving, target, steps, rng, each, lambda done: tell(done, steps + more))
    if moving.is_finite:
        before = moving.parts
        refine(moving, sampled, more, each, lambda done: tell(steps + done, steps + more))
        if not moving.is_finite:
            moving.set(before)
    if not moving.is_finite:  # a steep polynomial overflows
        return start
    vectors[:, columns] = moving.vectors
    coefficients, offset = (part.astype(np.float64) for part in moving.parts[1:])
    return as_dense(vectors), coefficients, offset


def moved_features(kernel: Kernel, rows: Rows) -> np.ndarray:
    """Return the features that landmarks may change, int64, ascending.

    For a kernel of a distance these have more than two values in `rows`. Other features keep the
    values of the rows where landmarks start: one-hot columns remain codes, and most features of a
    landmark stay 0 where those of rows are, so that its text is as short.
    """
    if not kernel.type.is_of_distance or not rows.is_dense:
        return np.arange(rows.n_features)
    low, high = np.full(rows.n_features, np.inf), np.full(rows.n_features, -np.inf)
    for batch in rows.slices():
        values = rows.part(batch).features
        low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
    has_others = np.zeros(rows.n_features, bool)
    for batch in rows.slices():
        values = rows.part(batch).features
        has_others |= ((values != low) & (values != high)).any(axis=0)
    return np.flatnonzero(has_others)


def _refined_rows(
    target: FitTarget, n_landmarks: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sample rows for L-BFGS; return their indices, ascending, and weights, float32.

    If only signs matter, rows near the decision boundary are sampled with a higher probability. The
    weight of a row is the reciprocal of its probability.
    """
    probability = np.ones(len(target.values))
    if target.by_sign:
        counted = target.weights >= target.weights.max(initial=0.0)
        near = ((np.abs(target.values) <= MAX_START) & counted).any(axis=1)
        probability[~near] = FAR_KEPT
    most = max(MAX_REFINED, ROWS_A_LANDMARK * n_landmarks)
    probability *= min(most / max(probability.sum(), 1.0), 1.0)
    sample = np.flatnonzero(rng.random(len(probability)) < probability)
    if len(sample) == 0:
        sample = np.arange(len(probability))
    return sample, (1 / probability[sample]).astype(np.float32)


def width_of(kernel: Kernel, rows: Rows, n_moved: int) -> float:
    """Return the length scale of moves: the kernel's width, or the row distance if smaller.

    The width is a Euclidean length. For absolute distances it is that of a move in which all
    n_moved features take equal parts.
    """
    width = float(np.sqrt(rows.mean_squared_distance()))
    if not kernel.type.is_of_distance or kernel.gamma == 0:
        return width
    own = float(kernel.gamma ** (-1 / kernel.type.length_power))
    if kernel.type.argument == ABSOLUTE_DISTANCE:
        own /= math.sqrt(max(n_moved, 1))
    return min(width, own)


def with_single_centers(partition: Partition) -> Partition:
    """Replace the sampled rows of each cluster by one center, and remove the overlap.

    The center is their mean, with few digits, and rows are assigned by Euclidean distance. Medians
    of clusters of absolute distances assign more rows to other clusters. Sparse samples are kept,
    since their means would not be sparse.
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
    rows = as_dense(np.concatenate(means).astype(np.float32))
    distance = math.sqrt(rows.mean_squared_distance()) if rows.n_samples else 0.0
    if distance > 0:
        rows = as_dense(rounded(rows.matrix, decimals_of(CENTER_STEP * distance)))
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
