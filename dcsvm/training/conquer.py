"""Solve the whole problem to the tolerance and check it: the last step of Algorithm 1.

Relaxation: one equality constraint over many components fixes the sum of alpha and so couples
components that are otherwise independent. With its multiplier (rho) fixed in the linear term, each
component is a separate problem. The sum of alpha at their solutions grows with the multiplier
(Everett, "Generalized Lagrange Multiplier Method", 1963). Secant steps find the multiplier for
which the constraint nearly holds. The coupled problem is then nearly solved.

nu-SVC with a margin below the rounding of float32 is solved as C-SVC. alpha of C-SVC with a bias,
divided by C, solves nu-SVC with the margin 1/C and with nu(C), the sum of |alpha| over C and the
sum of the weights (Schoelkopf et al., "New support vector algorithms", 2000). nu(C) falls in C. The
tolerance of C-SVC is relative to the margin, so it converges where nu-SVC divides small differences
by a small margin. Secant steps in log C find the C of nu.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dcsvm.data.arrays import reduce_parts
from dcsvm.problem.formulation import Formulation, with_constraint
from dcsvm.training.certificate import (
    Certificate,
    CheckSettings,
    CheckState,
    Subproblems,
    verify_optimality,
)
from dcsvm.training.extraction import check_told, count_support
from dcsvm.training.report import PartOfProgress
from dcsvm.training.solver import FormulationSolver
from dcsvm.training.state import Budget, RunControl

MAX_C = 2.0**24  # float32 resolves no smaller margin
NEAR_NU = 0.01  # relative difference to nu that ends the search
NEAR_ENOUGH = 0.02  # relative difference to nu of an accepted solution
LOOSE = 0.1  # tolerance of the search
MAX_SOLVES = 8
MAX_WORK = 8  # updates, over those of the nu-SVC solve that did not converge
SLOPE = -0.35  # d log nu / d log C before two solutions are known; -0.22 to -0.47 on covtype
MAX_STEP = 2.0  # of log C


def as_c_svc(formulation: Formulation, C: np.ndarray) -> Formulation:
    """Formulate C-SVC with a bias for the rows of nu-SVC; C is float64 (n_problems,)."""
    problem = formulation.problem
    bound = np.repeat(C, np.diff(formulation.start))
    c_svc = replace(
        problem,
        linear=np.where(problem.upper > 0, 1.0, -1.0),
        lower=problem.lower * bound,
        upper=problem.upper * bound,
        constraint_of=np.zeros(problem.size, np.int8),
        n_constraints=1,
        divides_by_margin=False,
    )
    return replace(formulation, problem=c_svc, alpha=np.zeros(problem.size))


def solve_as_c_svc(
    solver: FormulationSolver, margins: np.ndarray, conquer: Callable[[FormulationSolver], None]
) -> bool:
    """Solve a nu-SVC formulation by C-SVC; return whether that converged.

    `margins` (n_problems,) are approximate; `conquer` solves a formulation to the tolerance. The
    sums of alpha then differ from those of nu by up to NEAR_ENOUGH. Otherwise, also after MAX_WORK,
    the solver keeps its solution. Raises Stopped.
    """
    formulation, start = solver.formulation, solver.formulation.start
    wanted = reduce_parts(np.add, np.abs(formulation.alpha), start)
    C = 1.0 / np.maximum(margins, 1.0 / MAX_C)
    alpha, slope = solver.alpha * np.repeat(C, np.diff(start)), np.full(len(C), SLOPE)
    before: tuple[np.ndarray, np.ndarray] | None = None  # logarithms of C and of the share
    work = MAX_WORK * int(solver.state.n_iterations.sum())
    budget = solver.state.budget.at_most({"iterations": work})
    for _ in range(MAX_SOLVES):
        inner = _solver_for(solver, as_c_svc(formulation, C), alpha, budget)
        everything = np.arange(inner.problem.size, dtype=np.int32)
        inner.solve(everything, inner.components.sizes(everything), LOOSE)
        share = _share_of(inner, C, wanted)
        if np.all(np.abs(share - 1.0) <= NEAR_NU):
            break
        if budget.is_used_up or np.any((C >= MAX_C) & (share > 1.0 + NEAR_NU)):
            return False
        now = np.log(C), np.log(share)
        if before is not None:
            run, rise = now[0] - before[0], now[1] - before[1]
            slope = np.where(rise * run < 0, rise / np.where(run == 0, 1.0, run), slope)
        before = now
        step = np.clip(-now[1] / slope, -MAX_STEP, MAX_STEP)
        new = np.minimum(C * np.exp(step), MAX_C)
        alpha, C = _at_bounds_of(inner, new / C), new
    conquer(inner)
    solver.costs.include(inner.costs)
    share = _share_of(inner, C, wanted)
    if not inner.state.converged.all() or np.any(np.abs(share - 1.0) > NEAR_ENOUGH):
        return False
    of_variable = np.repeat(C, np.diff(start))
    gradient = (inner.gradient + inner.problem.linear) / of_variable
    solver.take(inner.alpha / of_variable, gradient, inner.state.neglected / float(C.min()))
    nu = float(share.max()) * solver.options.nu
    solver.control.progress.warn(
        f"the margin of nu = {solver.options.nu:g} is {1 / C.max():.2g}: solved as C-SVC with "
        f"C = {C.max():.6g}, whose nu is {nu:.5g}"
    )
    return True


def _solver_for(
    solver: FormulationSolver, formulation: Formulation, alpha: np.ndarray, budget: Budget
) -> FormulationSolver:
    """Return a solver of another formulation of the same rows, which starts from alpha."""
    progress = PartOfProgress(solver.control.progress, 1, 0, solver.problem.size)
    control = RunControl(progress, solver.control.stop)
    inner = FormulationSolver(solver.prepared, control, formulation, budget=budget)
    inner.begin_with(formulation.with_constraints(alpha))
    return inner


def _share_of(inner: FormulationSolver, C: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return nu(C) over nu of each problem; 1 for problems without variables."""
    total = reduce_parts(np.add, np.abs(inner.alpha), inner.formulation.start)
    return np.where(wanted > 0, total / np.where(wanted > 0, C * wanted, 1.0), 1.0)


def _at_bounds_of(inner: FormulationSolver, ratio: np.ndarray) -> np.ndarray:
    """Return alpha for another C: bounded variables at their new bound, free ones unchanged."""
    problem, alpha = inner.problem, inner.alpha
    is_bounded = (alpha == problem.lower) | (alpha == problem.upper)
    return np.where(is_bounded, alpha * np.repeat(ratio, np.diff(inner.formulation.start)), alpha)


GROWTH = 0.2  # initial guess: growth of sum(alpha) per free variable and unit of multiplier
MAX_MOVES = 8  # maximum changes of the multiplier; the coupled solver does the rest
# share of the tolerance for the relaxed solves. The coupled violation is the difference of two
# gradients, and restoring the constraint changes alpha again.
RELAXED_TOLERANCE = 0.3
NEAR_MULTIPLIER = 0.5  # share of the tolerance: smaller changes need no other solve
USED_ROOM = 1e-3  # share of the free variables' distance from a bound that a single component moves
SHARE = 0.1  # tolerance of a solve as a share of the change of the multiplier before it


def can_relax(solver: FormulationSolver) -> bool:
    """Return whether only the equality constraint of a single problem couples components."""
    formulation = solver.formulation
    is_one = formulation is solver.prepared.formulation and formulation.n_problems == 1
    return is_one and solver.problem.n_constraints == 1 and solver.row_components.n_components > 1


def relax(solver: FormulationSolver, multiplier: float) -> None:
    """Relax the constraint from now on, with this fixed multiplier."""
    solver.state.multiplier = multiplier
    _set_relaxed(solver)
    solver.forget_whole()


def resume_relaxed(solver: FormulationSolver) -> None:
    """Relax the formulation with the multiplier of a resumed state, if it has one."""
    if solver.state.multiplier is not None:
        _set_relaxed(solver)


def solve_relaxed(solver: FormulationSolver, tolerance: float) -> None:
    """Solve the relaxed problem until its constraint nearly holds, then restore the constraint.

    Raises Stopped.
    """
    everything = np.arange(solver.problem.size, dtype=np.int32)
    sizes = solver.components.sizes(everything)
    least = RELAXED_TOLERANCE * tolerance
    state, unit = solver.state, solver.problem.violation_scale
    if state.move is None or state.missing is None:
        state.missing = _missing(solver)
        state.move = state.missing / _expected_growth(solver)
    while state.n_moves < MAX_MOVES:
        step, missing_before = state.move, state.missing
        if state.solve is None:  # a resumed solve already has the new multiplier
            _move_multiplier(solver, step)
        wanted = max(least, SHARE * abs(step) / unit)
        solver.solve(everything, sizes, wanted)
        missing = _missing(solver)
        growth = (missing_before - missing) / step if step else 0.0
        state.missing = missing
        state.move = missing / (growth if growth > 0 else _expected_growth(solver))
        state.n_moves += 1
        if wanted == least and abs(state.move) <= NEAR_MULTIPLIER * tolerance * unit:
            break
    state.n_moves, state.move, state.missing = 0, None, None
    restore_constraint(solver)


def restore_constraint(solver: FormulationSolver) -> None:
    """Restore the equality constraint of a relaxed problem, and make alpha satisfy it."""
    state = solver.state
    if state.multiplier is None:
        return
    if not state.is_global:
        solver.iterate.forget(np.arange(solver.problem.size))
    solver.gradient[:] += state.multiplier
    state.multiplier, state.is_global = None, True
    solver.set_formulation(solver.prepared.formulation)
    solver.forget_whole()
    solver.iterate.move(_feasible(solver))


def _feasible(solver: FormulationSolver) -> np.ndarray:
    """Return alpha with its constraint restored.

    Only one component of rows changes if its free variables have room for the missing sum: the
    smallest such one, since the gradients of its rows are updated for each variable that changes.
    """
    problem, alpha, missing = solver.problem, solver.alpha.copy(), _missing(solver)
    room = np.where(
        (alpha > problem.lower) & (alpha < problem.upper),
        np.abs((problem.upper if missing > 0 else problem.lower) - alpha),
        0.0,
    )
    component = solver.row_components.component[problem.rows]
    has_room = USED_ROOM * np.bincount(component, room) >= abs(missing)
    if not has_room.any():
        return solver.formulation.with_constraints(alpha)
    smallest = np.argmin(np.where(has_room, np.bincount(component), problem.size))
    own = component == smallest
    alpha[own] = with_constraint(
        alpha[own], problem.lower[own], problem.upper[own], alpha[own].sum() + missing
    )
    return alpha


def _set_relaxed(solver: FormulationSolver) -> None:
    assert solver.state.multiplier is not None
    solver.set_formulation(solver.prepared.formulation.relaxed(solver.state.multiplier))


def _missing(solver: FormulationSolver) -> float:
    """Return the sum of alpha that the constraint requires minus the current sum."""
    return float(solver.prepared.formulation.alpha.sum() - solver.alpha.sum())


def _expected_growth(solver: FormulationSolver) -> float:
    alpha, problem = solver.alpha, solver.problem
    free = (alpha > problem.lower) & (alpha < problem.upper)
    return GROWTH * max(int(np.count_nonzero(free)), 1)


def _move_multiplier(solver: FormulationSolver, step: float) -> None:
    assert solver.state.multiplier is not None
    solver.state.multiplier += step
    _set_relaxed(solver)
    solver.gradient[:] -= step


MAX_REFINEMENTS = 10
# If a refinement leaves more than MIN_REFINED of the previous violation, later ones use float64
# kernel values. In the first half of the refinements this also requires a violation above FAR times
# the tolerance.
MIN_REFINED, FAR = 0.5, 10
NEAR_SOLVED = 1e-3  # violation accepted without float64 if a smaller one is not attainable
# The smallest violation that float64 gradients resolve, over the sum of |alpha|.
ROUNDING = 2.0**-46
# Also over the sum of |alpha|: float32 kernel values resolve no margin below MIN_MARGIN. The first
# solve of a large nu-SVC problem may end at a violation of FIRST_MARGIN. Half of that is no better
# on covtype with nu 0.1 and takes twice the time.
MIN_MARGIN, FIRST_MARGIN = 2.0**-24, 2.0**-23
# If the violation over the margin is above this, the margin is within rounding error.
HIDDEN_MARGIN = 1.0
FEW_VARIABLES = 2000  # up to this size a hidden margin is searched for: that takes a second


# Share of the tolerance that the solver aims at, so that the solution passes the float64 check.
# Half of it takes the same time.
SOLVER_TOLERANCE = 0.9
FIRST_GAP_TOLERANCE = 1e-2  # tolerance of the first solve if a duality gap is requested


class Target:
    """What the next solve of the whole problem aims at: its folds, tolerance and precision.

    Each check refines the target. Folds that reached the requested tolerance or gap leave it. A
    requested gap shrinks the tolerance. The `state` keeps the last violation and the precision,
    which is float64 after too small an improvement. The violation of nu-SVC is relative to the
    margin, so it ends where float32 cannot resolve that margin.
    """

    def __init__(self, solver: FormulationSolver):
        self.solver, self.state = solver, solver.state
        self.folds = list(range(solver.formulation.n_folds))
        self.tolerance = solver.options.tolerance
        if solver.options.gap is not None:
            self.tolerance = self.state.gap_tolerance or FIRST_GAP_TOLERANCE
        self.n_checks = min(self.state.checks, MAX_REFINEMENTS - 1)
        self.weight = 0.0  # sum of |alpha| before the solve

    def begin_solve(self) -> None:
        """Weigh alpha; a resumed solve has the weight from before it."""
        if self.state.weight is None:
            self.state.weight = _weight(self.solver, self.folds)
        self.weight = self.state.weight

    @property
    def attainable(self) -> float:
        """The smallest absolute violation that can be resolved."""
        if not self.solver.problem.divides_by_margin:
            return ROUNDING * self.weight
        margin = FIRST_MARGIN if self._is_first_of_many else self.tolerance * MIN_MARGIN
        return max(ROUNDING, margin) * self.weight

    def refine(self, certificates: dict[int, Certificate]) -> bool:
        """Aim at the folds that miss what is requested; return whether another solve follows."""
        state = self.state
        self.folds = [k for k in self.folds if not is_reached(self.solver, certificates[k])]
        if not self.folds or state.budget.is_used_up:
            return False
        open_folds = {k: certificates[k] for k in self.folds}
        worst = Certificate.of_all(list(open_folds.values()))
        is_beyond = self.tolerance * worst.violation_scale < self.attainable
        if is_beyond and self._is_good_enough(worst):
            return False
        self.n_checks += 1
        # float32 kernel values may be too coarse
        is_far = worst.violation > FAR * self.tolerance or 2 * self.n_checks > MAX_REFINEMENTS
        state.float64 |= is_far and worst.violation > MIN_REFINED * state.last_violation
        state.last_violation = worst.violation
        if self.n_checks >= MAX_REFINEMENTS:
            return False
        keep_best(self.solver, open_folds)
        gap = self.solver.options.gap
        if gap is not None:
            share = 0.5 * gap / max(excess(self.solver, one) for one in open_folds.values())
            self.tolerance *= min(max(share, 0.01), 0.5)
            state.gap_tolerance = self.tolerance
        return True

    @property
    def _is_first_of_many(self) -> bool:
        return self.solver.problem.size > FEW_VARIABLES and self.n_checks == 0

    def _is_good_enough(self, worst: Certificate) -> bool:
        """Whether to accept the smallest attainable violation."""
        if self.solver.problem.divides_by_margin:
            return not self._is_first_of_many or worst.violation > HIDDEN_MARGIN
        return self.state.float64 or worst.violation <= NEAR_SOLVED


def conquer(solver: FormulationSolver) -> None:
    """Solve the whole problem to the tolerance or gap and check it with float64 kernel values.

    The check makes the gradient float64 wherever float32 could hide a violation. While the
    violation is too large, the solver continues from that gradient. It uses float64 kernel values
    after too small an improvement. A solver that is not `is_checked` solves the problem once.

    Raises Stopped, and NoMarginError if float64 cannot resolve the margin.
    """
    start, state = time.perf_counter(), solver.state
    if not state.is_global:  # the gradient is that of separate clusters
        solver.iterate.forget(np.arange(solver.problem.size))
        state.is_global = True
    solver.begin_phase("conquer", solver.problem.size)
    target = Target(solver)
    if state.multiplier is not None:
        solve_relaxed(solver, target.tolerance)
    if not solver.is_checked:
        target.begin_solve()
        solve_once(solver, target)
        return
    # solve, verify, refine the target
    certificates = solve_and_verify(solver, target)
    while target.refine(certificates):
        certificates |= solve_and_verify(solver, target)
    # folds that miss it: an earlier solution may be better, a margin too small for float32
    certificates |= verify_better(solver, {k: certificates[k] for k in target.folds}, target)
    if target.folds and solver.problem.divides_by_margin and not state.budget.is_used_up:
        certificates = _with_small_margins(solver, certificates, target.tolerance)
    each = [certificates[k] for k in sorted(certificates)]
    state.certificate = Certificate.of_all(each)
    state.converged = np.array([is_reached(solver, one) for one in each])
    state.costs.conquer_seconds = time.perf_counter() - start
    solver.control.progress.end("conquer", state.costs.conquer_seconds, count_support(solver))


def solve_once(solver: FormulationSolver, target: Target) -> None:
    """Solve the folds of the target once. Raises Stopped."""
    members = np.concatenate([solver.formulation.variables_of_fold(k) for k in target.folds])
    tolerance = SOLVER_TOLERANCE * target.tolerance
    solver.solve(members, solver.components.sizes(members), tolerance, target.attainable)


def solve_and_verify(solver: FormulationSolver, target: Target) -> dict[int, Certificate]:
    """Solve the folds of the target, and check them. Raises Stopped.

    A resumed check belongs to a solve that has ended.
    """
    state, folds = solver.state, target.folds
    target.begin_solve()
    if state.checked is None:
        solve_once(solver, target)
    certificates = verify(solver, folds, target.tolerance)
    state.checks += 1
    state.weight = None
    errors = (float(one.kernel_errors.max()) for one in certificates.values())
    state.rounding = max(state.rounding, *errors)
    return certificates


def keep_best(solver: FormulationSolver, certificates: dict[int, Certificate]) -> None:
    """Before another solve, keep the checked solutions of folds if they beat the kept ones."""
    state = solver.state
    if state.best_alpha is None or state.best_gradient is None or state.best_excess is None:
        state.best_alpha, state.best_gradient = np.zeros((2, solver.problem.size))
        state.best_excess = np.full(len(state.converged), np.inf)
    for k, certificate in certificates.items():
        if excess(solver, certificate) < state.best_excess[k]:
            own = solver.formulation.variables_of_fold(k)
            state.best_excess[k] = excess(solver, certificate)
            state.best_alpha[own], state.best_gradient[own] = (
                solver.alpha[own],
                solver.gradient[own],
            )


def put_back_best(solver: FormulationSolver, certificates: dict[int, Certificate]) -> list[int]:
    """Put back the kept solutions of folds that later solves made worse; return these folds.

    Solutions of an ill-conditioned problem get worse once rounding errors exceed the steps.
    """
    state = solver.state
    if state.best_alpha is None or state.best_gradient is None or state.best_excess is None:
        return []
    worse = [k for k, one in certificates.items() if state.best_excess[k] < excess(solver, one)]
    for k in worse:
        own = solver.formulation.variables_of_fold(k)
        solver.alpha[own] = state.best_alpha[own]
        solver.iterate.learn(own, state.best_gradient[own])
    return worse


def verify_better(
    solver: FormulationSolver, certificates: dict[int, Certificate], target: Target
) -> dict[int, Certificate]:
    """Return to kept solutions that are better than these; return their new certificates."""
    state = solver.state
    worse = put_back_best(solver, certificates)
    better = verify(solver, worse, target.tolerance) if worse else {}
    state.best_alpha = state.best_gradient = state.best_excess = None
    return better


def _with_small_margins(
    solver: FormulationSolver, certificates: dict[int, Certificate], tolerance: float
) -> dict[int, Certificate]:
    """Solve nu-SVC again as C-SVC, if its margin is too small; return the new certificates.

    Raises NoMarginError if there is no margin.
    """
    folds = sorted(certificates)
    parts = Subproblems.of_problems(solver.formulation)
    margins = solver.offsets_and_margins(parts)[1]
    if solve_as_c_svc(solver, margins, conquer):
        return verify(solver, folds, tolerance)
    missed = [k for k in folds if not is_reached(solver, certificates[k])]
    check_told([certificates[k].violation_scale for k in missed], _weight(solver, missed))
    return certificates


def verify(solver: FormulationSolver, folds: list[int], tolerance: float) -> dict[int, Certificate]:
    """Certify solved folds, each problem from float64 kernel values.

    Every check draws a new random sample. Raises Stopped.
    """
    start, state = time.perf_counter(), solver.state
    state.costs.end_phase("conquer")
    if state.checked is None:
        state.checked = CheckState.nothing(solver.problem.size)
    kernel = solver.data.kernel
    scope = CheckSettings(
        n_rows=solver.data.rows.n_samples,
        n_problems=solver.formulation.n_problems,
        is_convex=kernel.is_positive_semidefinite,
        every_row=solver.options.certify or kernel.type.is_linear,
        neglected=state.neglected,
        between=solver.row_components.between,
        tolerance=tolerance,
        seed=solver.options.seed + state.checks,
    )
    parts = Subproblems.of_folds(solver.formulation, folds)
    try:
        certificate = verify_optimality(
            parts, solver.iterate, state.checked, solver.exact_gradients, scope
        )
    finally:
        state.costs.seconds_verify += time.perf_counter() - start
        state.costs.end_phase("check")
    state.checked = None
    # the certificate is by binary problem; a fold has several
    fold = solver.formulation.problem_of(parts.members[parts.start[:-1]])
    ends = np.searchsorted(fold // solver.formulation.n_problems_of_fold, [*folds, folds[-1] + 1])
    return {k: certificate.take(slice(*own)) for k, own in zip(folds, pairwise(ends), strict=True)}


def _weight(solver: FormulationSolver, folds: list[int]) -> float:
    """Return the largest sum of |alpha| over the binary problems of these folds."""
    parts = Subproblems.of_folds(solver.formulation, folds)
    weights = reduce_parts(np.add, np.abs(solver.alpha[parts.members]), parts.start)
    return float(weights.max())


def is_reached(solver: FormulationSolver, certificate: Certificate) -> bool:
    """Whether the certificate meets the requested tolerance or gap."""
    options = solver.options
    return excess(solver, certificate) <= (options.gap or options.tolerance)


def excess(solver: FormulationSolver, certificate: Certificate) -> float:
    """Return the violation, or the relative gap if a gap is requested; inf if it is unknown."""
    if solver.options.gap is None:
        return certificate.violation
    gap = certificate.relative_gap
    return np.inf if gap is None else gap
