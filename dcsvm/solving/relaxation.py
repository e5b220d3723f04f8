"""Lagrangian relaxation of one equality constraint over many components.

A sum that is kept couples groups that do not touch each other otherwise. With the sum's multiplier
(rho) fixed, in the linear term, they are problems of their own. The sum that their solution has
grows with the multiplier (Everett, "Generalized Lagrange Multiplier Method", 1963), so that secants
lead to the one where the sum is right; from there the coupled problem is nearly solved.
"""

from __future__ import annotations

import numpy as np

from dcsvm.solving.solver import FormulationSolver

GROWTH = 0.2  # of the sum with the multiplier, a free variable, before it is measured
MAX_MOVES = 8  # of the multiplier; then the coupled solver does what is left
# of the tolerance: the coupled violation is the difference of two variables, and alpha still moves
RELAXED_TOLERANCE = 0.3
NEAR = 0.5  # of the tolerance: a move of the multiplier that is not worth another solve
SHARE = 0.1  # of a move of the multiplier: no solve need be more exact than what it is to tell


def can_relax(solver: FormulationSolver) -> bool:
    """Whether one sum of one problem is all that couples groups."""
    formulation = solver.formulation
    is_one = formulation is solver.prepared.formulation and formulation.n_problems == 1
    return is_one and solver.problem.n_constraints == 1 and solver.locality.n_components > 1


def relax(solver: FormulationSolver, multiplier: float) -> None:
    """Go on without the sum, its multiplier fixed."""
    solver.state.multiplier = multiplier
    _set_relaxed(solver)
    solver.forget_whole()


def resume_relaxed(solver: FormulationSolver) -> None:
    """Solve the formulation that is relaxed by the multiplier of a resumed state, if it has one."""
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
        if state.solve is None:  # else it is moved already
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
    """Restore the equality constraint of a relaxed problem, and an alpha that satisfies it."""
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
    """Return the constraint's sum minus that of alpha."""
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
