"""C-SVC without bias as plainly as possible: coordinate descent on the whole kernel matrix.

As section 3 of the paper describes its solver, each step changes the variable of the largest
gradient. All of it is NumPy in float64, independent of this project's solver: it says what LIBSVM
would find without its bias, and whether our solutions are right. For problems whose kernel matrix
fits into memory.
"""

from __future__ import annotations

import numpy as np

from paper.fitted import Fitted, Watch, expansion, kernel_matrix


def fit(X, y, C, kernel, *, threads, seed=0, evaluate=None, tolerance=1e-3) -> Fitted:
    """Descend until no KKT condition of equation (1) is violated by more than the tolerance."""
    watch = Watch(evaluate)
    rows = X.astype(np.float64)
    Q = kernel_matrix(kernel, rows, rows) * np.outer(y, y)
    diagonal = Q.diagonal().copy()
    alpha, gradient = np.zeros(len(y)), -np.ones(len(y))
    steps = 0
    while True:
        falls = np.where(alpha > 0, gradient, 0.0)
        rises = np.where(alpha < C, -gradient, 0.0)
        violation = np.maximum(falls, rises)
        i = int(violation.argmax())
        if violation[i] <= tolerance:
            break
        new = min(max(alpha[i] - gradient[i] / diagonal[i], 0.0), C)
        gradient += (new - alpha[i]) * Q[i]
        alpha[i] = new
        steps += 1
    objective = 0.5 * float(alpha @ (gradient - 1))  # f = alpha'Q alpha / 2 - sum(alpha)
    decide = expansion(kernel, X, y * alpha, threads)
    n_sv = int(np.count_nonzero(alpha))
    return watch.fitted(decide, n_sv=n_sv, objective=objective, steps=steps)
