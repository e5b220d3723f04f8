"""What can be said in about a second of a solution whose run was stopped."""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.solving.certificate import Certificate, certificate_of_known
from dcsvm.solving.solving import Solving

NANOSECONDS = 1e9  # a thread, of kernel values, by the core's cost model


def certificate_of_stopped(solving: Solving) -> Certificate:
    """Entries of the gradient that are not known are computed, of random variables where all would
    take too long; then the violation is the largest that was seen, objectives and gaps are None."""
    iterate = solving.iterate
    unknown = _affordable(solving, np.flatnonzero(~iterate.is_known))
    if len(unknown):
        gradient, _ = solving.gradient_of(unknown, Evaluation(reach=solving.reach))
        iterate.learn(unknown, gradient)
    is_convex = solving.data.kernel.is_positive_semidefinite
    parts = []
    for part in solving.formulation.parts():
        neglected = solving.state.neglected + solving.locality.neglected(solving.alpha[part])
        parts.append(certificate_of_known(solving.problem, part, iterate, neglected, is_convex))
    return Certificate.of_all(parts)


def _affordable(solving: Solving, variables: np.ndarray) -> np.ndarray:
    """As many of the variables, ascending, as time allows to compute the gradient of; free ones
    first, which tell rho."""
    n_sv = max(int(np.count_nonzero(solving.alpha)), 1)
    cost = _core.value_cost(solving.data.setup, solving.data.points)
    n_possible = int(NANOSECONDS * solving.threads / (cost * n_sv))
    if n_possible >= len(variables):
        return variables
    rng = np.random.default_rng(solving.options.seed)
    variables = rng.permutation(variables)
    alpha, problem = solving.alpha[variables], solving.problem
    is_free = (alpha > problem.lower[variables]) & (alpha < problem.upper[variables])
    first = np.flatnonzero(is_free)[: n_possible // 2]
    others = np.delete(variables, first)
    return np.sort(np.concatenate([variables[first], others])[:n_possible])
