"""Lagrangian relaxation of one equality constraint over many components.

The constraint fixes the sum of alpha and so couples components that are otherwise independent. With
its multiplier (rho) fixed in the linear term, each component is a separate problem. The sum of
alpha at their solutions grows with the multiplier (Everett, "Generalized Lagrange Multiplier
Method", 1963). Secant steps find the multiplier for which the constraint nearly holds. The coupled
problem is then nearly solved.
"""

from __future__ import annotations

import numpy as np

from dcsvm.solving.solver import FormulationSolver

GROWTH = 0.2  # initial guess: growth of sum(alpha) per free variable and unit of multiplier
MAX_MOVES = 8  # maximum changes of the multiplier; the coupled solver does the rest
# share of the tolerance for the relaxed solves. The coupled violation is the difference of two
# gradients, and restoring the constraint changes alpha again.
RELAXED_TOLERANCE = 0.3
NEAR = 0.5  # share of the tolerance: smaller changes of the multiplier need no other solve
SHARE = 0.1  # tolerance of a solve as a share of the change of the multiplier before it


def can_relax(solver: FormulationSolver) -> bool:
    """Return whether only the equality constraint of a single problem couples components."""
    formulation = solver.formulation
    is_one = formulation is solver.prepared.formulation and formulation.n_problems == 1
    return is_one and solver.problem.n_constraints == 1 and solver.locality.n_components > 1


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
    sizes = solver.units.sizes(everything)
    least = RELAXED_TOLERANCE * tolerance
    state = solver.state
    if state.move is None or state.missing is None:
        state.missing = _missing(solver)
        state.move = state.missing / _expected_growth(solver)
    while state.n_moves < MAX_MOVES:
        step, missing_before = state.move, state.missing
        if state.solve is None:  # a resumed solve already has the new multiplier
            _move_multiplier(solver, step)
        wanted = max(least, SHARE * abs(step))
        solver.solve(everything, sizes, wanted)
        missing = _missing(solver)
        growth = (missing_before - missing) / step if step else 0.0
        state.missing = missing
        state.move = missing / (growth if growth > 0 else _expected_growth(solver))
        state.n_moves += 1
        if wanted == least and abs(state.move) <= NEAR * tolerance:
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
    solver.iterate.move(solver.formulation.with_constraints(solver.alpha))


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
