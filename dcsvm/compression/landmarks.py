"""Landmarks: a few vectors whose kernel sums stand for those of many (reduced sets; Burges,
"Simplified support vector decision rules", ICML 1996).

Landmarks begin as some of the support vectors, with the coefficients of least squares. Of dense
rows they then move (pseudo-landmarks; Hsieh, Si and Dhillon, "Fast prediction for large-scale
kernel machines", NIPS 2014): steps of Adam (Kingma and Ba 2015) on random rows, with a learning
rate that falls to 0. Where signs count the loss is the cross entropy of sigmoids of the values,
which counts what is near the border, and far from it asks for the side alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dcsvm.compression.slopes import Slopes
from dcsvm.data.rows import AT_ONCE, Rows
from dcsvm.kernel.kernel_rows import two_sides
from dcsvm.kernel.kernels import Kernel

MOST_STARTED = 20_000  # rows of the least squares, or 4 for each landmark
RIDGE = 1e-4  # of the mean diagonal of the normal equations
LARGEST_START = 1.5  # decision values beyond it are on their side, no matter how far
SHARPNESS = 2.0  # of the sigmoid of a decision value; 4 is as good
# 60 epochs: of covtype with a tenth of its vectors 0.4 % fewer test rows are right; 600: 0.2 % more
EPOCHS, MOST_STEPS, LEAST_STEPS = 200, 6000, 400
ROWS_A_STEP = 256
RATE, LENGTH = 0.06, 0.2  # of coefficients, of their size; of a move, of the kernel's width
DECAYS = np.float32(0.9), np.float32(0.99)  # of Adam's moments
SHARD_WORK, SHARDS = 2**25, 4  # products in a step from which threads share it


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
    return _Moving(kernel, wanted, start, rng, each).run(steps, tell)


def started(
    kernel: Kernel, wanted: Wanted, chosen: Rows, used: np.ndarray, rng: np.random.Generator
) -> Landmarks:
    """The coefficients of least squares, with a ridge, on a part of the rows."""
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
        gram += block.T @ block
        products += block.T @ values[some]
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


class _Moving:
    """Landmarks on their way."""

    def __init__(
        self, kernel: Kernel, wanted: Wanted, start: Landmarks, rng: np.random.Generator, each
    ):
        self.start, self.rng, self.each = start, rng, each
        self.slopes, self.by_sign = Slopes(kernel), wanted.by_sign
        self.rows, self.weights = wanted.rows.as_floats().dense, wanted.weights
        self.used = None if start.used.all() else start.used.astype(np.float32)
        self.values = _sigmoid(wanted.values) if wanted.by_sign else wanted.values
        vectors = start.rows.as_floats().dense.copy()
        self.parts = [vectors, start.coefficients.astype(np.float32),
                      start.offset.astype(np.float32)]  # fmt: skip
        self.rates = _rates(kernel, wanted.rows, start.coefficients)
        self.n_shards = 1
        if ROWS_A_STEP * vectors.size > SHARD_WORK:
            self.n_shards = SHARDS

    def run(self, n_steps: int, tell: Callable[[int, int], None] | None) -> Landmarks:
        n, place = len(self.rows), len(self.rows)
        size = min(ROWS_A_STEP, n)
        moments = [(np.zeros_like(part), np.zeros_like(part)) for part in self.parts]
        for step in range(1, n_steps + 1):
            if place + size > n:
                order, place = self.rng.permutation(n), 0
            gradients = self.gradients(order[place : place + size])
            place += size
            fall = 0.5 * (1 + np.cos(np.pi * step / n_steps))
            for part, rate, gradient, moment in zip(
                self.parts, self.rates, gradients, moments, strict=True
            ):
                _step(part, np.float32(rate * fall), gradient, moment, step)
            if tell is not None:
                tell(step, n_steps)
        if not all(np.isfinite(part).all() for part in self.parts):  # of a steep polynomial
            return self.start
        vectors, coefficients, offset = self.parts
        rows = Rows(*vectors.shape, dense=vectors)
        return replace(self.start, rows=rows, coefficients=coefficients.astype(np.float64),
                       offset=offset.astype(np.float64))  # fmt: skip

    def gradients(self, chosen: np.ndarray) -> list[np.ndarray]:
        """Of the mean loss of some rows."""
        shards = np.array_split(chosen, self.n_shards)
        total, *others = self.each(self.gradients_of, shards)
        for other in others:
            for gradient, more in zip(total, other, strict=True):
                gradient += more
        for gradient in total:
            gradient /= np.float32(len(chosen))
        if self.used is not None:
            total[1] *= self.used
        return total

    def gradients_of(self, chosen: np.ndarray) -> list[np.ndarray]:
        vectors, coefficients, offset = self.parts
        rows = self.rows[chosen]
        values, slopes = self.slopes.values(rows, vectors)
        outputs = values @ coefficients + offset
        if self.by_sign:
            outputs = _sigmoid(outputs)
        errors = (outputs - self.values[chosen]) * self.weights[chosen]
        pulls = (errors @ coefficients.T) * slopes
        moves = self.slopes.gradient(pulls, rows, vectors)
        return [moves, values.T @ errors, errors.sum(axis=0)]


def _sigmoid(values: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-SHARPNESS f)), float32."""
    return (0.5 * (1 + np.tanh(np.float32(SHARPNESS / 2) * values))).astype(np.float32)


def _rates(kernel: Kernel, rows: Rows, coefficients: np.ndarray) -> tuple[float, float, float]:
    """How far vectors, coefficients and offsets may go in a step."""
    width = np.sqrt(rows.mean_squared_distance())
    if kernel.name == "rbf" and kernel.gamma * width**2 > 1:
        width = kernel.gamma**-0.5
    size = max(float(np.sqrt(np.mean(coefficients**2))), 0.1)
    return LENGTH * width / np.sqrt(max(rows.n_features, 1)), RATE * size, RATE


def _step(part, rate: np.float32, gradient, moment, step: int) -> None:
    """One of Adam."""
    for mean, decay, power in zip(moment, DECAYS, (1, 2), strict=True):
        mean += (1 - decay) * (gradient**power - mean)
    first, second = (mean / (1 - decay**step) for mean, decay in zip(moment, DECAYS, strict=True))
    part -= rate * first / (np.sqrt(second) + np.float32(1e-9))
