"""What can be said about a run that was stopped, in about a second."""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.solving.certificate import Certificate

NANOSECONDS = 1e9  # a thread, of kernel values, by the core's fixed model


def certificate_of_stopped(run) -> Certificate:
    """The certificate of the current alpha from float32 kernel values.

    Entries of the gradient that are not known are computed, of random variables where all would
    take too long; then the violation is the largest that was seen, objectives and gaps are None.
    """
    learn_gradient(run)
    return Certificate.of_all([_certificate(run, part) for part in run.formulation.parts()])


def learn_gradient(run) -> None:
    """Compute what is not known of the gradient, as far as time allows; free variables first, which
    tell rho."""
    iterate, problem = run.iterate, run.problem
    unknown = np.flatnonzero(~iterate.is_known)
    n_sv = max(int(np.count_nonzero(iterate.alpha)), 1)
    cost = _core.value_cost(run.data.setup, run.data.points)
    n_possible = int(NANOSECONDS * run.threads / (cost * n_sv))
    if n_possible < len(unknown):
        rng = np.random.default_rng(run.options.seed)
        unknown = rng.permutation(unknown)
        alpha = iterate.alpha[unknown]
        free = (alpha > problem.lower[unknown]) & (alpha < problem.upper[unknown])
        first = np.flatnonzero(free)[: n_possible // 2]
        unknown = np.concatenate([unknown[first], np.delete(unknown, first)])[:n_possible]
        unknown.sort()
    if len(unknown):
        iterate.learn(unknown, run.gradient_of(unknown, run.reach, float64=False)[0])


def _certificate(run, part: slice) -> Certificate:
    known = part.start + np.flatnonzero(run.iterate.is_known[part])
    problem = run.problem.part(known)
    alpha, gradient = run.alpha[known], run.gradient[known]
    objective, violation, gap, multipliers = _core.optimality(problem, alpha, gradient)
    all_known = len(known) == part.stop - part.start
    neglected = run.state.neglected + run.locality.neglected(run.alpha[part])
    has_gap = all_known and run.data.kernel.is_positive_semidefinite
    room = np.maximum(alpha - problem.lower, problem.upper - alpha).sum()
    return Certificate(
        objective if all_known else None,
        violation + neglected * (1 if problem.sum_of is None else 2),
        gap + float(neglected * room) if has_gap else None,
        kernel_error=None,
        n_checked=len(known),
        multipliers=tuple(multipliers),
    )
