"""The last step of Algorithm 1: the whole problem solved to the tolerance and checked."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

from dcsvm.data.sorting import reduce_parts
from dcsvm.problem.formulation import BoxProblem
from dcsvm.solving.certificate import Certificate, Checked, Scope, check
from dcsvm.solving.extraction import check_told
from dcsvm.solving.iterate import Parts
from dcsvm.solving.relaxation import solve_relaxed
from dcsvm.solving.solver import FormulationSolver
from dcsvm.solving.state import RunState

LARGEST_REFINEMENTS = 10
# A refinement that leaves more than this part of a violation of FAR times the tolerance: float32
# kernel values are not enough. So they are where half of the refinements were not.
LEAST_REFINED, FAR = 0.5, 10
NEAR = 1e-3  # a violation that needs no float64 where a smaller one cannot be stated
ROUNDING = 2.0**-46  # of the sum of |alpha|: a violation that float64 gradients can state
# Of the sum of |alpha|: float32 kernel values hide a smaller margin; as much violation is looked at
# first. Half of that takes twice the time on covtype with nu 0.1 and is as good.
SMALLEST_MARGIN, FIRST_MARGIN = 2.0**-24, 2.0**-23
HIDDEN_MARGIN = 1.0  # a violation over the margin above which that may as well be none
FEW_VARIABLES = 2000  # of which a hidden margin is sought all the same: it takes a second


class Refinement:
    """Repeated solving and checking of a problem to a tolerance.

    `state` has the results, and whether the next solve uses float64 kernel values: it does if those
    of the check improved too little. The margin of nu-SVC, in which violation is measured, may be
    too small for float32: the refinement then ends.
    """

    def __init__(self, problem: BoxProblem, state: RunState):
        self.divides_by_margin = problem.divides_by_margin
        self.is_large = problem.size > FEW_VARIABLES
        self.state, self.n_checks = state, min(state.checks, LARGEST_REFINEMENTS - 1)

    def attainable(self, tolerance: float, weight: float) -> float:
        """Return the least violation that can be reached, in absolute units.

        `weight` is the sum of |alpha| before the solve. The limit is the rounding of float64
        gradients, and for nu-SVC the smallest margin that can be told from 0.
        """
        if not self.divides_by_margin:
            return ROUNDING * weight
        return max(ROUNDING, self._margin(tolerance)) * weight

    def goes_on(self, found: Certificate, tolerance: float, weight: float) -> bool:
        """Whether what a check has found is worth another solve."""
        is_beyond = tolerance * found.unit < self.attainable(tolerance, weight)
        if is_beyond and self._is_far_enough(found):
            return False
        self.n_checks += 1
        is_far = found.violation > FAR * tolerance or 2 * self.n_checks > LARGEST_REFINEMENTS
        state = self.state
        state.float64 |= is_far and found.violation > LEAST_REFINED * state.last_violation
        state.last_violation = found.violation
        return self.n_checks < LARGEST_REFINEMENTS

    @property
    def _looks_first(self) -> bool:
        return self.is_large and self.n_checks == 0

    def _margin(self, tolerance: float) -> float:
        return FIRST_MARGIN if self._looks_first else tolerance * SMALLEST_MARGIN

    def _is_far_enough(self, found: Certificate) -> bool:
        """Whether nothing beyond the least violation that was asked for is worth asking for."""
        if self.divides_by_margin:
            return not self._looks_first or found.violation > HIDDEN_MARGIN
        return self.state.float64 or found.violation <= NEAR


SOLVER_TOLERANCE = 0.9  # of the tolerance: leaves room for the float64 check; half costs the same
FIRST_GAP_TOLERANCE = 1e-2  # violation the first answer to a wanted gap is solved to


def conquer(solver: FormulationSolver) -> None:
    """Solve the whole problem to the tolerance or gap and check it with float64 kernel values.

    The check leaves float64 values in the gradient wherever float32 ones could hide a
    violation; while there is one, the solver goes on from them, with float64 kernel values
    where that gains too little. Raises Stopped, and NoMarginError where float64 does not tell a
    margin that solutions are divided by from none.
    """
    start, state, options = time.perf_counter(), solver.state, solver.options
    if not state.is_global:
        solver.iterate.forget(np.arange(solver.problem.size))
        state.is_global = True
    solver.begin_phase("conquer", solver.problem.size)
    tolerance = options.tolerance
    if options.gap is not None:
        tolerance = state.gap_tolerance or FIRST_GAP_TOLERANCE
    if state.multiplier is not None:
        solve_relaxed(solver, tolerance)
    folds = list(range(solver.formulation.n_folds))
    certificates: dict[int, Certificate] = {}
    rounds = Refinement(solver.problem, state)
    while True:
        members = np.concatenate([solver.formulation.variables_of_fold(k) for k in folds])
        if state.weight is None:
            state.weight = _weight(solver, folds)
        weight = state.weight
        if state.checked is None:
            wanted, attainable = SOLVER_TOLERANCE * tolerance, rounds.attainable(tolerance, weight)
            solver.solve(members, solver.units.sizes(members), wanted, attainable)
        certificates |= verify(solver, folds, tolerance)
        state.checks += 1
        state.weight = None
        state.rounding = max(
            state.rounding, *(float(certificates[k].kernel_errors.max()) for k in folds)
        )
        folds = [k for k in folds if not _is_reached(solver, certificates[k])]
        if not folds or state.budget.is_used_up:
            break
        if not rounds.goes_on(
            Certificate.of_all([certificates[k] for k in folds]), tolerance, weight
        ):
            break
        if options.gap is not None:
            wanted = 0.5 * options.gap / max(_relative_gap(certificates[k]) for k in folds)
            tolerance *= min(max(wanted, 0.01), 0.5)
            state.gap_tolerance = tolerance
    found = [certificates[k] for k in sorted(certificates)]
    if folds and solver.problem.divides_by_margin and not state.budget.is_used_up:
        check_told([certificates[k].unit for k in folds], _weight(solver, folds))
    state.certificate = Certificate.of_all(found)
    state.converged = np.array([_is_reached(solver, one) for one in found])
    state.costs.conquer_seconds = time.perf_counter() - start
    solver.control.progress.end("conquer", state.costs.conquer_seconds, solver.solution.n_sv)


def verify(solver: FormulationSolver, folds: list[int], tolerance: float) -> dict[int, Certificate]:
    """Certify some folds with float64 kernel values, each problem to a tolerance.

    Each check draws other random rows. Raises Stopped.
    """
    start, state = time.perf_counter(), solver.state
    if state.checked is None:
        state.checked = Checked.nothing(solver.problem.size)
    kernel = solver.data.kernel
    scope = Scope(
        n_rows=solver.data.rows.n_samples,
        n_problems=solver.formulation.n_problems,
        is_convex=kernel.is_positive_semidefinite,
        every_row=solver.options.certify or kernel.type.is_linear,
        neglected=state.neglected,
        between=solver.locality.between,
        tolerance=tolerance,
        seed=solver.options.seed + state.checks,
    )
    parts = Parts.of_folds(solver.formulation, folds)
    try:
        found = check(parts, solver.iterate, state.checked, solver.exact_gradients, scope)
    finally:
        state.costs.seconds_verify += time.perf_counter() - start
    state.checked = None
    fold = solver.formulation.problem_of(parts.members[parts.start[:-1]])
    ends = np.searchsorted(fold // solver.formulation.n_problems_of_fold, [*folds, folds[-1] + 1])
    return {k: found.take(slice(*own)) for k, own in zip(folds, pairwise(ends), strict=True)}


def _weight(solver: FormulationSolver, folds: list[int]) -> float:
    """Return the largest sum of |alpha| of a problem of some folds."""
    parts = Parts.of_folds(solver.formulation, folds)
    weights = reduce_parts(np.add, np.abs(solver.alpha[parts.members]), parts.start)
    return float(weights.max())


def _is_reached(solver: FormulationSolver, certificate: Certificate) -> bool:
    """Whether the answer is as good as was asked for."""
    options = solver.options
    if options.gap is None:
        return certificate.violation <= options.tolerance
    return _relative_gap(certificate) <= options.gap


def _relative_gap(certificate: Certificate) -> float:
    """Return the relative gap, which a check of a convex problem knows."""
    assert certificate.relative_gap is not None
    return certificate.relative_gap
