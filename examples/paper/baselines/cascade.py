"""CascadeSVM: random subproblems whose support vectors are merged in pairs, one round.

Graf, Cosatto, Bottou, Durdanovic and Vapnik, "Parallel Support Vector Machines: The Cascade SVM"
(NIPS 2004). As in the paper, the result is the root's solution after the first round. This
project's solver solves the subproblems as it solves the clusters of a level: the rows are prepared
once (equal rows merged, in the order of their components), and a subproblem is divided by
components. The paper used LIBSVM, also without bias.
"""

from __future__ import annotations

import numpy as np

import dcsvm
from dcsvm.data.rows import Rows
from dcsvm.training.engine import LocalEngine, prepare
from dcsvm.training.solver import FormulationSolver
from paper.fitted import Fitted, Watch, expansion, objective

PARTS = 64  # the paper does not state the number


def fit(
    X, y, C, kernel, *, threads, seed=0, evaluate=None, parts=PARTS, tolerance=1e-3, look=None
) -> Fitted:
    """Train a cascade of `parts` subproblems, a power of two.

    The history has a point for every level of the cascade; `look`, if given, is called with the row
    numbers of the support vectors at each level, the first of equal rows.
    """
    watch = Watch(evaluate)
    options = dcsvm.TrainOptions(
        C=C, kernel=kernel.name, gamma=kernel.gamma, coef0=kernel.coef0, degree=kernel.degree,
        levels=0, threads=threads,
    )  # fmt: skip
    solver = FormulationSolver(prepare(LocalEngine.of(Rows.from_array(X), options), y, options))
    row = solver.prepared.row_map.first  # of each variable
    own, sign = X[row], y[row]
    alive = np.array_split(np.random.default_rng(seed).permutation(len(row)), parts)
    while True:
        members = [np.sort(part).astype(np.int32) for part in alive if len(part)]
        sizes = np.concatenate([solver.components.sizes(part) for part in members])
        solver.begin_with(solver.alpha.copy())
        solver.solve(np.concatenate(members), sizes[sizes > 0], tolerance)
        alive = [part[solver.alpha[part] != 0] for part in members]
        alpha, n_sv = np.abs(solver.alpha) * sign, sum(map(len, alive))
        watch.note(expansion(kernel, own, alpha, threads), n_sv=n_sv, parts=len(alive))
        if look:
            look(row[np.concatenate(alive)])
        if len(alive) == 1:
            break
        alive = [np.concatenate(alive[i : i + 2]) for i in range(0, len(alive), 2)]
    fitted = watch.fitted(expansion(kernel, own, alpha, threads), n_sv=n_sv)
    fitted.facts["objective"] = objective(kernel, own, alpha, threads)
    return fitted
