"""Optimize the vectors, coefficients and offsets of landmarks together.

Adam (Kingma and Ba, 2015) runs first, on random batches of rows, with a learning rate that falls to
0. L-BFGS (Liu and Nocedal, 1989) follows, on fixed rows. If only the signs of decision values
matter, the loss is the cross entropy of their sigmoids. It emphasizes rows near the decision
boundary; far from it only the side of a row matters. Otherwise the loss is half the squared error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from dcsvm.kernel.kernels import SQUARED_DISTANCE, Kernel

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

T = TypeVar("T")
R = TypeVar("R")


class Map(Protocol):
    """Type of `map` with one sequence, or of a multithreaded equivalent."""

    def __call__(self, function: Callable[[T], R], items: Iterable[T], /) -> Iterable[R]: ...


@dataclass(frozen=True, eq=False)
class Target:
    """Values to fit on `rows` float32 (n, d), and the loss.

    `values` float32 (n, p) are decision values, or their sigmoids if `by_sign`. `weights` float32
    (n, p) multiply the losses.
    """

    rows: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    by_sign: bool

    @staticmethod
    def of(rows: np.ndarray, values: np.ndarray, weights: np.ndarray, by_sign: bool) -> Target:
        return Target(rows, sigmoid(values) if by_sign else values, weights, by_sign)

    def losses(self, outputs: np.ndarray, chosen: np.ndarray) -> float:
        """Sum the weighted losses of the chosen rows, given their decision values."""
        expected, weights = self.values[chosen], self.weights[chosen]
        if self.by_sign:
            outputs = SHARPNESS * outputs
            losses = (np.logaddexp(np.float32(0), outputs) - expected * outputs) / SHARPNESS
        else:
            losses = np.float32(0.5) * (outputs - expected) ** 2
        return float(np.sum(weights * losses, dtype=np.float64))

    def errors(self, outputs: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return the derivatives of the weighted losses with respect to the decision values."""
        outputs = sigmoid(outputs) if self.by_sign else outputs
        return (outputs - self.values[chosen]) * self.weights[chosen]


@dataclass(eq=False)
class LandmarkOptimizer:
    """Current landmarks of an optimization.

    `vectors` (m, d), `coefficients` (m, p) and `offset` (p,) are float32. `used` float32 (m, p) is
    0 for coefficients that stay 0, else 1; None means that all are used. `fixed` bool (d,) marks
    features that do not change. `width` is the length scale of the vectors.
    """

    kernel: Kernel
    vectors: np.ndarray
    coefficients: np.ndarray
    offset: np.ndarray
    used: np.ndarray | None
    width: float
    fixed: np.ndarray

    def __post_init__(self) -> None:
        self.set([np.ascontiguousarray(part) for part in self.parts])  # _step flattens views

    @property
    def parts(self) -> list[np.ndarray]:
        return [self.vectors, self.coefficients, self.offset]

    @property
    def sizes(self) -> tuple[float, float, float]:
        """The typical magnitudes of the parts."""
        return self.width, max(float(np.sqrt(np.mean(self.coefficients**2))), 0.1), 1.0

    @property
    def is_finite(self) -> bool:
        return all(np.isfinite(part).all() for part in self.parts)

    def set(self, parts: list[np.ndarray]) -> None:
        self.vectors, self.coefficients, self.offset = parts

    def gradients(
        self, target: Target, shards: list[np.ndarray], each: Map, *, with_loss: bool = False
    ) -> list[np.ndarray]:
        """Return the gradients of the mean loss on the rows of all shards.

        The list has the gradients with respect to vectors, coefficients and offset. The loss
        follows if `with_loss`.
        """
        n = sum(map(len, shards))
        total, *others = each(lambda shard: self._gradients_of(target, shard, n, with_loss), shards)
        for other in others:
            for accumulated, part in zip(total, other, strict=True):
                accumulated += part
        total[0][:, self.fixed] = 0
        if self.used is not None:
            total[1] *= self.used
        return total

    def _gradients_of(
        self, target: Target, chosen: np.ndarray, n: int, with_loss: bool
    ) -> list[np.ndarray]:
        rows = target.rows[chosen]
        with np.errstate(over="ignore", invalid="ignore"):  # is_finite detects overflow
            values, slopes = values_and_slopes(self.kernel, rows, self.vectors)
            outputs = values @ self.coefficients + self.offset
            errors = target.errors(outputs, chosen) / np.float32(n)
            loss = [np.array(target.losses(outputs, chosen) / n)] if with_loss else []
            pulls = (errors @ self.coefficients.T) * slopes
            moves = slope_gradient(self.kernel, pulls, rows, self.vectors)
            return [moves, values.T @ errors, errors.sum(axis=0), *loss]


def descend(
    moving: LandmarkOptimizer,
    target: Target,
    n_steps: int,
    rng: np.random.Generator,
    each: Map,
    tell: Callable[[int], None],
) -> None:
    """Run n_steps of Adam, each on ROWS_A_STEP random rows."""
    n = begin = len(target.rows)
    size = min(ROWS_A_STEP, n)
    n_shards = -(-size // ROWS_OF_SHARD) if size * moving.vectors.size > SHARD_WORK else 1
    moments = [(np.zeros_like(part), np.zeros_like(part)) for part in moving.parts]
    width, coefficient, offset = moving.sizes
    n_features = moving.vectors.shape[1]
    rates = LENGTH * width / np.sqrt(max(n_features, 1)), RATE * coefficient, RATE * offset
    for step in range(1, n_steps + 1):
        if begin + size > n:
            order, begin = rng.permutation(n), 0
        shards = np.array_split(order[begin : begin + size], n_shards)
        gradients = moving.gradients(target, shards, each)
        begin += size
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
    moving: LandmarkOptimizer, target: Target, n_steps: int, each: Map, tell: Callable[[int], None]
) -> None:
    """Run at most n_steps of L-BFGS on all rows of the target."""
    from scipy.optimize import minimize  # slow to import, and used only here

    shapes = [part.shape for part in moving.parts]
    ends = np.cumsum([part.size for part in moving.parts])
    scale = np.repeat(moving.sizes, [part.size for part in moving.parts])
    shards = np.array_split(np.arange(len(target.rows)), -(-len(target.rows) // BATCH_ROWS))
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
    """Compute K(rows, vectors) and its slopes, float32 (n, m); the kernel must have slopes.

    Slopes are dK/ds, divided by a constant factor. s is the inner product; |x| and |z| are fixed.
    NumPy computes the values, because the vectors change at every step and preparing them for the
    core would take too long.
    """
    argument = rows @ vectors.T
    if kernel.type.argument == SQUARED_DISTANCE:
        argument *= np.float32(-2)
        argument += np.einsum("ij,ij->i", rows, rows)[:, None]
        argument += np.einsum("ij,ij->i", vectors, vectors)
        np.maximum(argument, 0, out=argument)
    slopes = kernel.type.slopes
    assert slopes is not None
    return slopes.values(kernel, argument)


def slope_gradient(
    kernel: Kernel, pulls: np.ndarray, rows: np.ndarray, vectors: np.ndarray
) -> np.ndarray:
    """Compute the gradient of the loss with respect to the vectors, float32 (m, d).

    `pulls` (n, m) are the derivatives of the loss with respect to K, times the slopes.
    """
    gradient = pulls.T @ rows
    if kernel.type.argument == SQUARED_DISTANCE:  # K depends on |z|, too
        gradient -= pulls.sum(axis=0)[:, None] * vectors
    slopes = kernel.type.slopes
    assert slopes is not None
    return np.float32(slopes.factor(kernel)) * gradient
