"""LaSVM: an online solver that sees each row once.

Bordes, Ertekin, Weston and Bottou, "Fast Kernel Classifiers with Online and Active Learning" (JMLR
2005), without bias: a step changes one alpha, not a pair. No kernel value is kept, and the
finishing step, which repeats REPROCESS until the expansion is optimal, is this project's solver on
the support vectors.
"""

from __future__ import annotations

import numpy as np

from dcsvm.kernel.kernels import Kernel
from paper.fitted import Fitted, Watch, expansion, kernel_matrix, objective
from paper.subproblems import Subproblems


class Expansion:
    """The current support vectors: arrays with spare capacity; the first `size` entries count.

    `alpha` is unsigned, as in the paper, and `slope` the negative gradient, 1 - y_i f(x_i).
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, C: float, kernel: Kernel):
        self.X, self.y, self.C, self.kernel = X, y, C, kernel
        self.size = 0
        self.row = np.empty(1024, np.int64)
        self.support = np.empty((1024, X.shape[1]), X.dtype)
        self.sign, self.alpha, self.slope = (np.empty(1024) for _ in range(3))

    def arrays(self):
        return self.row, self.support, self.sign, self.alpha, self.slope

    def kernel_with(self, x: np.ndarray) -> np.ndarray:
        return kernel_matrix(self.kernel, self.support[: self.size], x[None])[:, 0]

    def process(self, row: int, tolerance: float) -> None:
        """Add a row and optimise its alpha if the row violates its optimality condition."""
        x, sign, size = self.X[row], self.y[row], self.size
        values = self.kernel_with(x)
        slope = 1 - sign * np.dot(self.alpha[:size] * self.sign[:size], values)
        if slope <= tolerance:
            return
        own = float(kernel_matrix(self.kernel, x[None], x[None])[0, 0])
        alpha = min(slope / own, self.C)
        if size == len(self.row):
            grown = [np.concatenate((a, np.empty_like(a))) for a in self.arrays()]
            self.row, self.support, self.sign, self.alpha, self.slope = grown
        self.slope[:size] -= self.sign[:size] * (sign * alpha * values)
        new = (row, x, sign, alpha, slope - alpha * own)
        for array, value in zip(self.arrays(), new, strict=True):
            array[size] = value
        self.size += 1

    def violation(self) -> np.ndarray:
        """Return the violation of each alpha's optimality condition (n_sv,)."""
        alpha, slope = self.alpha[: self.size], self.slope[: self.size]
        may_move = np.where(slope > 0, alpha < self.C, alpha > 0)
        return np.abs(slope) * may_move

    def reprocess(self) -> None:
        """Optimise the alpha with the largest violation, then remove rows that will stay at 0."""
        if not self.size:
            return
        violation = self.violation()
        worst = int(violation.argmax())
        values = self.kernel_with(self.support[worst])
        old = self.alpha[worst]
        self.alpha[worst] = np.clip(old + self.slope[worst] / values[worst], 0, self.C)
        change = self.sign[worst] * (self.alpha[worst] - old)
        self.slope[: self.size] -= self.sign[: self.size] * values * change
        size = self.size
        gone = (self.alpha[:size] == 0) & (self.slope[:size] < -violation[worst])
        if gone.any():
            kept = np.flatnonzero(~gone)
            for array in self.arrays():
                array[: len(kept)] = array[kept]
            self.size = len(kept)

    def signed_alpha(self) -> np.ndarray:
        """Return the signed alpha of all rows (n,)."""
        alpha = np.zeros(len(self.y))
        alpha[self.row[: self.size]] = self.alpha[: self.size] * self.sign[: self.size]
        return alpha


def fit(
    X: np.ndarray,
    y: np.ndarray,
    C: float,
    kernel: Kernel,
    *,
    threads: int,
    seed: int = 0,
    evaluate=None,
    passes: int = 1,
    tolerance: float = 1e-3,
) -> Fitted:
    """Make `passes` passes over the rows; the history has a point after each and at the end."""
    watch = Watch(evaluate)
    rng = np.random.default_rng(seed)
    state = Expansion(X, y, C, kernel)
    for _ in range(passes):
        known = set(state.row[: state.size].tolist())
        for row in rng.permutation(len(y)):
            if row not in known:
                state.process(row, tolerance)
                state.reprocess()
        watch.note(expansion(kernel, X, state.signed_alpha(), threads), n_sv=state.size)
    alpha = state.signed_alpha()
    support = np.flatnonzero(alpha)
    Subproblems(X, y, C, kernel, threads).solve(alpha, [support], tolerance)
    decide = expansion(kernel, X, alpha, threads)
    watch.note(decide, n_sv=int(np.count_nonzero(alpha)))
    fitted = watch.fitted(decide, n_sv=int(np.count_nonzero(alpha)))
    fitted.facts["objective"] = objective(kernel, X, alpha, threads)
    return fitted
