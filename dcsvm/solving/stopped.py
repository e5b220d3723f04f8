"""What can be said in about a second of a solution whose run was stopped."""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import reduce_parts
from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.solving.certificate import Certificate, certificate_of_known
from dcsvm.solving.parts import Parts
from dcsvm.solving.solver import FormulationSolver

NANOSECONDS = 1e9  # a thread, of kernel values, by the core's cost model


def certificate_of_stopped(solver: FormulationSolver) -> Certificate:
    """Entries of the gradient that are not known are computed, of random variables where all would
    take too long; then the violation is the largest that was seen, objectives and gaps are None."""
    iterate = solver.iterate
    unknown = _affordable(solver, np.flatnonzero(~iterate.is_known))
    if len(unknown):
        gradient, _ = solver.gradient_of(unknown, Evaluation(reach=solver.reach))
        iterate.learn(unknown, gradient)
    is_convex = solver.data.kernel.is_positive_semidefinite
    parts = Parts.of_problems(solver.formulation)
    weight = reduce_parts(np.add, np.abs(solver.alpha), parts.start)
    neglected = solver.state.neglected + solver.locality.between.value * weight
    return certificate_of_known(parts, iterate, neglected, is_convex)


def _affordable(solver: FormulationSolver, variables: np.ndarray) -> np.ndarray:
    """As many of the variables, ascending, as time allows to compute the gradient of; free ones
    first, which tell rho."""
    n_sv = max(int(np.count_nonzero(solver.alpha)), 1)
    cost = _core.value_cost(solver.data.setup, solver.data.points)
    n_possible = int(NANOSECONDS * solver.threads / (cost * n_sv))
    if n_possible >= len(variables):
        return variables
    rng = np.random.default_rng(solver.options.seed)
    variables = rng.permutation(variables)
    alpha, problem = solver.alpha[variables], solver.problem
    is_free = (alpha > problem.lower[variables]) & (alpha < problem.upper[variables])
    first = np.flatnonzero(is_free)[: n_possible // 2]
    others = np.delete(variables, first)
    return np.sort(np.concatenate([variables[first], others])[:n_possible])
