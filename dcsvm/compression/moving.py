"""Landmarks on their way: vectors, coefficients and offsets that are changed together.

First steps of Adam (Kingma and Ba 2015) on random rows, with a learning rate that falls to 0, then
L-BFGS (Liu and Nocedal 1989) on fixed ones. Where signs count the loss is the cross entropy of
sigmoids of the values, which counts what is near the border, and far from it asks for the side
alone; else it is half the square of the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dcsvm.kernel.kernels import SQUARED_DISTANCE, Kernel

SHARPNESS = np.float32(2.0)  # of the sigmoid of a decision value; 4 is as good
ROWS_A_STEP = 256
RATE, LENGTH = 0.06, 0.2  # of coefficients, of their size; of a move, of the kernel's width
DECAYS = np.float32(0.9), np.float32(0.99)  # of Adam's moments
# Of L-BFGS. With a tenth of the vectors of three clusters of covtype 1.8 % of the labels change for
# 20, 1.65 % with 60, which take more memory.
PAIRS_KEPT = 20
SHARD_WORK, ROWS_OF_SHARD = 2**25, 64  # products in a step from which threads share it
ROWS_AT_ONCE = 1024
BLOCK = 2**14  # numbers that stay in the second-level cache


@dataclass(frozen=True, eq=False)
class Target:
    """What is wanted of `rows` float32 (n, d): `values` float32 (n, p), decision values or where
    `by_sign` their sigmoids, each counting by its weight (n, p)."""

    rows: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    by_sign: bool

    @staticmethod
    def of(rows: np.ndarray, values: np.ndarray, weights: np.ndarray, by_sign: bool) -> Target:
        return Target(rows, sigmoid(values) if by_sign else values, weights, by_sign)

    def losses(self, outputs: np.ndarray, chosen) -> float:
        """The sum of the losses of the chosen rows with these decision values."""
        wanted, weights = self.values[chosen], self.weights[chosen]
        if self.by_sign:
            outputs = SHARPNESS * outputs
            losses = (np.logaddexp(np.float32(0), outputs) - wanted * outputs) / SHARPNESS
        else:
            losses = np.float32(0.5) * (outputs - wanted) ** 2
        return float(np.sum(weights * losses, dtype=np.float64))

    def errors(self, outputs: np.ndarray, chosen) -> np.ndarray:
        """The derivatives of the losses by the decision values."""
        outputs = sigmoid(outputs) if self.by_sign else outputs
        return (outputs - self.values[chosen]) * self.weights[chosen]


@dataclass(eq=False)
class Moving:
    """`vectors` (m, d), `coefficients` (m, p) and `offset` (p,), all float32; `sizes` are what is
    large of each. Coefficients that are not `used`, None for all are, stay 0, and features that are
    `held` bool (d,) as they are."""

    kernel: Kernel
    vectors: np.ndarray
    coefficients: np.ndarray
    offset: np.ndarray
    used: np.ndarray | None
    width: float
    held: np.ndarray

    def __post_init__(self):
        self.set([np.ascontiguousarray(part) for part in self.parts])  # for steps by blocks

    @property
    def parts(self) -> list[np.ndarray]:
        return [self.vectors, self.coefficients, self.offset]

    @property
    def sizes(self) -> tuple[float, float, float]:
        return self.width, max(float(np.sqrt(np.mean(self.coefficients**2))), 0.1), 1.0

    @property
    def is_finite(self) -> bool:
        return all(np.isfinite(part).all() for part in self.parts)

    def set(self, parts: list[np.ndarray]) -> None:
        self.vectors, self.coefficients, self.offset = parts

    def gradients(
        self, target: Target, shards: list, each: Callable, *, with_loss: bool = False
    ) -> list[np.ndarray]:
        """Of the losses of the rows of all shards, divided by their number: by the vectors, the
        coefficients and the offset; last, if wanted, the loss itself."""
        n = sum(map(len, shards))
        total, *others = each(lambda shard: self._gradients_of(target, shard, n, with_loss), shards)
        for other in others:
            for one, more in zip(total, other, strict=True):
                one += more
        total[0][:, self.held] = 0
        if self.used is not None:
            total[1] *= self.used
        return total

    def _gradients_of(
        self, target: Target, chosen: np.ndarray, n: int, with_loss: bool
    ) -> list[np.ndarray]:
        rows = target.rows[chosen]
        with np.errstate(over="ignore", invalid="ignore"):  # see is_finite
            values, slopes = values_and_slopes(self.kernel, rows, self.vectors)
            outputs = values @ self.coefficients + self.offset
            errors = target.errors(outputs, chosen) / np.float32(n)
            loss = [np.array(target.losses(outputs, chosen) / n)] if with_loss else []
            pulls = (errors @ self.coefficients.T) * slopes
            moves = slope_gradient(self.kernel, pulls, rows, self.vectors)
            return [moves, values.T @ errors, errors.sum(axis=0), *loss]


def descend(
    moving: Moving,
    target: Target,
    n_steps: int,
    rng: np.random.Generator,
    each: Callable,
    tell: Callable[[int], None],
) -> None:
    """Steps of Adam, each on ROWS_A_STEP random rows."""
    n = place = len(target.rows)
    size = min(ROWS_A_STEP, n)
    n_shards = -(-size // ROWS_OF_SHARD) if size * moving.vectors.size > SHARD_WORK else 1
    moments = [(np.zeros_like(part), np.zeros_like(part)) for part in moving.parts]
    width, large, one = moving.sizes
    rates = LENGTH * width / np.sqrt(max(moving.vectors.shape[1], 1)), RATE * large, RATE * one
    for step in range(1, n_steps + 1):
        if place + size > n:
            order, place = rng.permutation(n), 0
        shards = np.array_split(order[place : place + size], n_shards)
        gradients = moving.gradients(target, shards, each)
        place += size
        fall = 0.5 * (1 + np.cos(np.pi * step / n_steps))
        for part, rate, gradient, moment in zip(
            moving.parts, rates, gradients, moments, strict=True
        ):
            _step(part, np.float32(rate * fall), gradient, moment, step)
        tell(step)


def _step(part, rate: np.float32, gradient, moment, step: int) -> None:
    """One of Adam, a block at a time."""
    arrays = [one.reshape(-1) for one in (part, gradient, *moment)]
    corrections = [1 - decay**step for decay in DECAYS]
    for begin in range(0, part.size, BLOCK):
        own, slope, *means = (one[begin : begin + BLOCK] for one in arrays)
        for mean, decay, power in zip(means, DECAYS, (slope, slope * slope), strict=True):
            mean += (1 - decay) * (power - mean)
        first, second = (mean / by for mean, by in zip(means, corrections, strict=True))
        own -= rate * first / (np.sqrt(second) + np.float32(1e-9))


def refine(
    moving: Moving, target: Target, n_steps: int, each: Callable, tell: Callable[[int], None]
) -> None:
    """Steps of L-BFGS on all rows of the target."""
    from scipy.optimize import minimize  # slow to import, and used here alone

    shapes = [part.shape for part in moving.parts]
    ends = np.cumsum([part.size for part in moving.parts])
    scale = np.repeat(moving.sizes, [part.size for part in moving.parts])
    shards = np.array_split(np.arange(len(target.rows)), -(-len(target.rows) // ROWS_AT_ONCE))
    done = 0

    def set_to(x: np.ndarray) -> None:
        found = np.split((x * scale).astype(np.float32), ends[:-1])
        moving.set([part.reshape(shape) for part, shape in zip(found, shapes, strict=True)])

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        set_to(x)
        *gradients, value = moving.gradients(target, shards, each, with_loss=True)
        gradient = np.concatenate([one.ravel() for one in gradients]).astype(np.float64)
        return float(value), gradient * scale

    def counted(_x: np.ndarray) -> None:
        nonlocal done
        done += 1
        tell(min(done, n_steps))

    start = np.concatenate([part.ravel() for part in moving.parts]) / scale
    limits = {"maxiter": n_steps, "maxfun": 2 * n_steps, "maxcor": PAIRS_KEPT, "ftol": 0, "gtol": 0}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=limits, callback=counted)
    set_to(found.x)


def sigmoid(values: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-SHARPNESS f)), float32."""
    return (0.5 * (1 + np.tanh(SHARPNESS / 2 * values))).astype(np.float32)


def values_and_slopes(
    kernel: Kernel, rows: np.ndarray, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """K(rows, vectors) of a kernel that has slopes, and these: dK/ds by the inner product s, with
    |x| and |z| fixed and less a constant factor, float32 (n, m).

    In NumPy: the vectors are others at every step, so that nothing prepared of them could be used
    again.
    """
    argument = rows @ vectors.T
    if kernel.type.argument == SQUARED_DISTANCE:
        argument *= np.float32(-2)
        argument += np.einsum("ij,ij->i", rows, rows)[:, None]
        argument += np.einsum("ij,ij->i", vectors, vectors)
        np.maximum(argument, 0, out=argument)
    return kernel.type.slopes.values(kernel, argument)


def slope_gradient(
    kernel: Kernel, pulls: np.ndarray, rows: np.ndarray, vectors: np.ndarray
) -> np.ndarray:
    """sum_i pulls_ij dK_ij/dz_j, float32 (m, d); `pulls` (n, m) are times the slopes."""
    gradient = pulls.T @ rows
    if kernel.type.argument == SQUARED_DISTANCE:  # depends on |z|, too
        gradient -= pulls.sum(axis=0)[:, None] * vectors
    return np.float32(kernel.type.slopes.factor(kernel)) * gradient
