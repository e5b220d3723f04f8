"""CascadeSVM: random subproblems whose support vectors are merged in pairs, one round.

Graf, Cosatto, Bottou, Durdanovic and Vapnik, "Parallel Support Vector Machines: The Cascade SVM"
(NIPS 2004). As in the paper, the result is the root's solution after the first round. This
project's solver, as *direct* runs it, solves the subproblems; the paper used LIBSVM, also without
bias.
"""

from __future__ import annotations

import numpy as np

from paper.baselines.dc_svm import fit_direct
from paper.fitted import Fitted, Watch, expansion, objective
from paper.subproblems import Subproblems

PARTS = 64  # the paper does not state the number


def fit(
    X, y, C, kernel, *, threads, seed=0, evaluate=None, parts=PARTS, tolerance=1e-3, look=None
) -> Fitted:
    """Train a cascade of `parts` subproblems, a power of two.

    The history has a point for every level of the cascade; `look`, if given, is called with the row
    numbers of the support vectors at each level.
    """
    watch = Watch(evaluate)
    alpha = np.zeros(len(y))

    def solve(part: np.ndarray) -> np.ndarray:
        """Solve the subproblem of some rows; return those that are support vectors."""
        if abs(y[part].sum()) == len(part):  # one class: the solver of Theorem 1's clusters
            own = np.zeros(len(part))
            problem = Subproblems(X[part], y[part], C, kernel, threads)
            problem.solve(own, [np.arange(len(part))], tolerance)
            alpha[part] = own
        else:
            options = {"threads": threads, "tolerance": tolerance}
            model = fit_direct(X[part], y[part], C, kernel, **options).model
            alpha[part] = 0.0
            alpha[part[model.exact.row_numbers]] = model.labels[0] * model.exact.dual_coef[0]
        return part[alpha[part] != 0]

    alive = np.array_split(np.random.default_rng(seed).permutation(len(y)), parts)
    while True:
        alive = [solve(part) for part in alive if len(part)]
        n_sv = sum(map(len, alive))
        watch.note(expansion(kernel, X, alpha, threads), n_sv=n_sv, parts=len(alive))
        if look:
            look(np.concatenate(alive))
        if len(alive) == 1:
            break
        alive = [np.concatenate(alive[i : i + 2]) for i in range(0, len(alive), 2)]
    fitted = watch.fitted(expansion(kernel, X, alpha, threads), n_sv=n_sv)
    fitted.facts["objective"] = objective(kernel, X, alpha, threads)
    return fitted
