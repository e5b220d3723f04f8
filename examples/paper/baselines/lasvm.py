"""LaSVM: an online solver that sees each row once.

Bordes, Ertekin, Weston and Bottou, "Fast Kernel Classifiers with Online and Active Learning" (JMLR
2005), without bias: a step changes one alpha, not a pair. As theirs, it keeps kernel values between
support vectors, and ends by repeating REPROCESS until the expansion is optimal.
"""

from __future__ import annotations

import numpy as np

from dcsvm.kernel.kernels import Kernel
from dcsvm.machine import default_cache_mb
from paper.baselines.kernel_cache import KernelCache
from paper.fitted import Fitted, Watch, expansion, kernel_values, objective

TOLERANCE = 1e-3
FIRST_CAPACITY = 1024


class Expansion:
    """The current support vectors: arrays with spare capacity; the first `size` entries count.

    As in the paper, `alpha` is signed, and `gradient` is y_i - f(x_i). `least` and `most` are -inf
    and inf, or 0 where the alpha is at its lower or upper bound. `square` is the squared norm of a
    support vector.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, C: float, kernel: Kernel, cache_mb: float):
        self.X, self.y, self.C, self.kernel = X, y, C, kernel
        self.size = 0
        self.row = np.empty(FIRST_CAPACITY, np.int64)
        self.support = np.empty((FIRST_CAPACITY, X.shape[1]), X.dtype)
        self.square = np.empty(FIRST_CAPACITY, X.dtype)
        self.alpha, self.gradient, self.least, self.most = (
            np.empty(FIRST_CAPACITY) for _ in range(4)
        )
        self.cache = KernelCache(cache_mb, len(y))

    def arrays(self):
        return (
            self.row, self.support, self.square,
            self.alpha, self.gradient, self.least, self.most,
        )  # fmt: skip

    def grow(self) -> None:
        grown = [np.concatenate((a, np.empty_like(a))) for a in self.arrays()]
        self.row, self.support, self.square = grown[:3]
        self.alpha, self.gradient, self.least, self.most = grown[3:]

    def process(self, row: int) -> None:
        """Add a row and optimise its alpha if the row violates its optimality condition."""
        x, size = self.X[row], self.size
        square = x @ x
        values = self.kernel_with(x, square)
        gradient = self.y[row] - np.dot(self.alpha[:size], values)
        if self.y[row] * gradient <= TOLERANCE:
            return
        if size == len(self.row):
            self.grow()
        self.row[size], self.support[size], self.square[size] = row, x, square
        self.alpha[size], self.gradient[size] = 0, gradient
        own = kernel_values(self.kernel, square, square, square)
        self.cache.append(np.append(values, own))
        self.size += 1
        self.optimise(size)

    def reprocess(self) -> float:
        """Optimise the alpha with the largest violation, then remove rows that will stay at 0.

        Those are the rows with alpha 0 whose gradient is farther from a violation than the largest
        violation after the step, which is returned.
        """
        if not self.size:
            return 0.0
        self.optimise(int(self.violation().argmax()))
        largest = float(self.violation().max())
        gone = np.abs(self.gradient[: self.size]) > largest
        gone &= self.alpha[: self.size] == 0
        if gone.any():
            self.remove(gone)
        return largest

    def violation(self) -> np.ndarray:
        """Return the violation of each alpha's optimality condition (n_sv,)."""
        movable = np.maximum(self.gradient[: self.size], self.least[: self.size])
        np.minimum(movable, self.most[: self.size], out=movable)
        return np.abs(movable, out=movable)

    def optimise(self, member: int) -> None:
        """Optimise one alpha within its bounds."""
        values = self.kernel_row(member)
        bound = self.C * self.y[self.row[member]]
        lower, upper = min(bound, 0.0), max(bound, 0.0)
        old = self.alpha[member]
        new = min(max(old + self.gradient[member] / values[member], lower), upper)
        self.alpha[member] = new
        self.least[member] = -np.inf if new > lower else 0
        self.most[member] = np.inf if new < upper else 0
        self.gradient[: self.size] -= (new - old) * values

    def kernel_row(self, member: int) -> np.ndarray:
        """Return the kernel values of a support vector with all of them (n_sv,)."""
        values = self.cache.row(member)
        if values is None:
            values = self.kernel_with(self.support[member], self.square[member])
            self.cache.keep(member, values)
        return values

    def kernel_with(self, x: np.ndarray, square: float) -> np.ndarray:
        """Compute the kernel values of a point (d,) with all support vectors (n_sv,)."""
        products = self.support[: self.size] @ x
        return kernel_values(self.kernel, products, self.square[: self.size], square)

    def remove(self, gone: np.ndarray) -> None:
        """Remove support vectors by a mask (n_sv,); the last ones take their places."""
        holes, movers = self.cache.remove(gone)
        for array in self.arrays():
            array[holes] = array[movers]
        self.size = self.cache.size

    def finish(self) -> int:
        """Repeat REPROCESS until no violation is above the tolerance; return the steps."""
        steps = 1
        while self.reprocess() > TOLERANCE:
            steps += 1
        return steps

    def alpha_of_rows(self) -> np.ndarray:
        """Return the signed alpha of all rows (n,)."""
        alpha = np.zeros(len(self.y))
        alpha[self.row[: self.size]] = self.alpha[: self.size]
        return alpha


def fit(X, y, C, kernel, *, threads, seed=0, evaluate=None, passes=1, cache_mb=None) -> Fitted:
    """Make `passes` passes over the rows; the history has a point after each and at the end.

    The cache has svm-train's size by default. `finishing_steps` is the number of steps after the
    passes.
    """
    watch = Watch(evaluate)
    rng = np.random.default_rng(seed)
    state = Expansion(X, y, C, kernel, default_cache_mb() if cache_mb is None else cache_mb)
    for _ in range(passes):
        known = set(state.row[: state.size].tolist())
        for row in rng.permutation(len(y)):
            if row not in known:
                state.process(row)
                state.reprocess()
        watch.note(expansion(kernel, X, state.alpha_of_rows(), threads), n_sv=state.size)
    steps = state.finish()
    alpha = state.alpha_of_rows()
    n_sv = int(np.count_nonzero(alpha))
    decide = expansion(kernel, X, alpha, threads)
    watch.note(decide, n_sv=n_sv)
    fitted = watch.fitted(decide, n_sv=n_sv, finishing_steps=steps)
    fitted.facts["objective"] = objective(kernel, X, alpha, threads)
    return fitted
