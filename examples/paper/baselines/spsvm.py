"""SpSVM: a few basis vectors chosen greedily, squared hinge loss.

Keerthi, Chapelle and DeCoste, "Building Support Vector Machines with Reduced Classifier Complexity"
(JMLR 2006): minimise lambda/2 b'K_JJ b + 1/2 sum_i max(0, 1 - y_i o_i)^2 with o = K_J b and
lambda = 1/C.
"""

from __future__ import annotations

import numpy as np

from dcsvm.kernel.kernels import Kernel
from paper.fitted import Fitted, Watch, expansion, kernel_matrix

CANDIDATES = 59  # random rows per step; with 95 % probability one is among the best 5 %
RIDGE = 1e-8  # of the mean diagonal of the Hessian
NEWTON_STEPS = 20
HALVINGS = 20


class Basis:
    """The chosen rows J, their coefficients, and the outputs of all rows."""

    def __init__(self, X: np.ndarray, y: np.ndarray, C: float, kernel: Kernel, size: int):
        self.X, self.y, self.kernel, self.decay = X, y, kernel, 1 / C
        self.columns = np.empty((len(y), size), np.float32)  # K(X, X_J)
        self.inner = np.empty((size, size))  # K_JJ
        self.rows: list[int] = []
        self.coefficients = np.empty(0)
        self.outputs = np.zeros(len(y))

    def inside(self) -> np.ndarray:
        return self.y * self.outputs < 1

    def loss(self, coefficients: np.ndarray, outputs: np.ndarray) -> float:
        size = len(coefficients)
        decay = self.decay * coefficients @ self.inner[:size, :size] @ coefficients
        return 0.5 * decay + 0.5 * (np.maximum(0, 1 - self.y * outputs) ** 2).sum()

    def grow(self, candidates: np.ndarray) -> None:
        """Add the candidate that alone reduces the loss most, with its best coefficient."""
        columns = kernel_matrix(self.kernel, self.X, self.X[candidates])
        inside = self.inside()
        errors = (self.y - self.outputs)[inside]
        gradient = -(columns[inside].T @ errors)
        if self.rows:
            gradient += self.decay * columns[self.rows].T @ self.coefficients
        own = columns[candidates, np.arange(len(candidates))]
        curvature = self.decay * own + (columns[inside].astype(np.float64) ** 2).sum(0)
        best = int((gradient**2 / curvature).argmax())
        size = len(self.rows)
        self.rows.append(int(candidates[best]))
        self.columns[:, size] = columns[:, best]
        self.inner[size, : size + 1] = columns[self.rows, best]
        self.inner[: size + 1, size] = columns[self.rows, best]
        step = -gradient[best] / curvature[best]
        self.coefficients = np.append(self.coefficients, step)
        self.outputs += step * columns[:, best]

    def optimise(self) -> None:
        """Optimise all coefficients with Newton's method."""
        size = len(self.rows)
        columns, inner = self.columns[:, :size], self.inner[:size, :size]
        loss = self.loss(self.coefficients, self.outputs)
        for _ in range(NEWTON_STEPS):
            inside = self.inside()
            part = columns[inside].astype(np.float64)
            hessian = self.decay * inner + part.T @ part
            hessian[np.diag_indices(size)] += RIDGE * np.trace(hessian) / size
            errors = (self.y - self.outputs)[inside]
            gradient = self.decay * inner @ self.coefficients - part.T @ errors
            direction = -np.linalg.solve(hessian, gradient)
            along = columns @ direction
            step, new_loss = 1.0, np.inf
            for _ in range(HALVINGS):
                coefficients = self.coefficients + step * direction
                outputs = self.outputs + step * along
                new_loss = self.loss(coefficients, outputs)
                if new_loss <= loss:
                    break
                step /= 2
            if not new_loss < loss * (1 - 1e-6):
                return
            self.coefficients, self.outputs, loss = coefficients, outputs, new_loss

    def alpha(self) -> np.ndarray:
        alpha = np.zeros(len(self.y))
        alpha[self.rows] = self.coefficients
        return alpha


def fit(X, y, C, kernel, *, threads, seed=0, evaluate=None, basis=200) -> Fitted:
    """Choose `basis` vectors.

    All coefficients are optimised at sizes that grow by half, and at the end; the history has a
    point at each.
    """
    watch = Watch(evaluate)
    rng = np.random.default_rng(seed)
    basis = min(basis, len(y))
    state = Basis(X, y, C, kernel, basis)
    next_size = 1
    while len(state.rows) < basis:
        others = np.setdiff1d(np.arange(len(y)), state.rows)
        state.grow(rng.choice(others, size=min(CANDIDATES, len(others)), replace=False))
        if len(state.rows) in (next_size, basis):
            state.optimise()
            watch.note(expansion(kernel, X, state.alpha(), threads), size=len(state.rows))
            next_size = max(next_size + 1, int(1.5 * next_size))
    return watch.fitted(expansion(kernel, X, state.alpha(), threads), size=basis)
