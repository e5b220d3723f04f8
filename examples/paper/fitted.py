"""The result of every baseline, the clock of its fit, and models common to several baselines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel, ExactModel

BATCH_ROWS = 4096
LABELS = np.array([1.0, -1.0])

Decide = Callable[[np.ndarray], np.ndarray]
Evaluate = Callable[[Decide], float]


class OutOfTimeError(Exception):
    """A program in another process exceeded its limit."""


@dataclass
class Fitted:
    """A trained classifier.

    `decision_function` takes rows (n, d) and returns values (n,), positive for label +1. `history`
    is a list of dicts with `seconds` and, where the method has them, `objective`, `accuracy` and
    `n_sv` or `size` of the model at that time. `facts` are other numbers; `model` is the
    dcsvm Model if the method makes one.
    """

    decision_function: Decide
    seconds: float
    history: list[dict] = field(default_factory=list)
    facts: dict = field(default_factory=dict)
    model: Model | None = None


class Watch:
    """The clock of a fit; it excludes evaluations of intermediate models.

    `evaluate` turns a decision function into an accuracy; None omits accuracies.
    """

    def __init__(self, evaluate: Evaluate | None = None):
        self.evaluate = evaluate
        self.points: list[dict] = []
        self.start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def note(self, decide: Decide | None = None, **facts) -> None:
        now = time.perf_counter()
        point = {"seconds": now - self.start, **facts}
        if decide and self.evaluate:
            point["accuracy"] = self.evaluate(decide)
        self.points.append(point)
        self.start += time.perf_counter() - now

    def fitted(self, decide: Decide, **facts) -> Fitted:
        return Fitted(decide, self.seconds, self.points, facts)


def expansion(kernel: Kernel, X: np.ndarray, alpha: np.ndarray, threads: int) -> Decide:
    """Return the decision function sum_i alpha_i K(x_i, x): signed `alpha` (n,), rows X (n, d)."""
    support = np.flatnonzero(alpha)
    model = Model(kernel, LABELS, unbiased(Rows.from_array(X[support]), alpha[support]), None)
    return lambda rows: model.decision_function(rows, threads=threads)


def unbiased(rows: Rows, alpha: np.ndarray) -> ExactModel:
    """Make a binary model of support vectors with signed `alpha` (n_sv,) and no bias."""
    return ExactModel(rows, alpha.astype(np.float64)[None, :], np.zeros(1))


def objective(kernel: Kernel, X: np.ndarray, alpha: np.ndarray, threads: int) -> float:
    """Compute f(alpha) of the paper's equation (1) for signed `alpha` (n,) on rows X (n, d)."""
    support = np.flatnonzero(alpha)
    part = unbiased(Rows.from_array(X[support]), alpha[support])
    return part_objective(kernel, part, threads)


def part_objective(kernel: Kernel, part: ExactModel | EarlyModel, threads: int) -> float:
    """Compute f(alpha) of all support vectors of a model together, across clusters."""
    whole = Model(kernel, LABELS, ExactModel(part.rows, part.dual_coef, np.zeros(1)), None)
    values = whole.decision_function(part.rows, threads=threads)
    return float(0.5 * part.dual_coef[0] @ values - np.abs(part.dual_coef).sum())


def in_blocks(function: Decide, rows: np.ndarray) -> np.ndarray:
    """Apply a function to rows in batches of a few thousand."""
    blocks = range(0, len(rows), BATCH_ROWS)
    return np.concatenate([function(rows[i : i + BATCH_ROWS]) for i in blocks])


def linear(features: Decide, weights: np.ndarray) -> Decide:
    """Return the decision function of a linear model on features of rows."""
    return lambda rows: in_blocks(lambda block: features(block) @ weights, rows)


def kernel_matrix(kernel: Kernel, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Compute K(A, B), shape (len(A), len(B)), in the precision of A and B."""
    return kernel_values(kernel, A @ B.T, squared_norms(A)[:, None], squared_norms(B))


def kernel_values(kernel: Kernel, products: np.ndarray, left, right) -> np.ndarray:
    """Compute kernel values from inner products and the squared norms of both sides."""
    if kernel.name == "rbf":
        squares = left + right - 2 * products
        return np.exp(-kernel.gamma * np.maximum(squares, 0))
    if kernel.name == "polynomial":
        return (kernel.gamma * products + kernel.coef0) ** kernel.degree
    raise ValueError(f"no baseline has a {kernel.name} kernel")


def squared_norms(A: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", A, A)
