"""Solve nu-SVC with a margin below the rounding of float32 as C-SVC.

alpha of C-SVC with a bias, divided by C, solves nu-SVC with the margin 1/C and with nu(C), the sum
of |alpha| over C and the sum of the weights (Schoelkopf et al., "New support vector algorithms",
2000). nu(C) falls in C. The tolerance of C-SVC is relative to the margin, so it converges where
nu-SVC divides small differences by a small margin. Secant steps in log C find the C of nu.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dcsvm.data.sorting import reduce_parts
from dcsvm.problem.formulation import Formulation
from dcsvm.solving.checkpoint import RunControl
from dcsvm.solving.iterate import Iterate
from dcsvm.solving.report import PartOfProgress
from dcsvm.solving.solver import FormulationSolver
from dcsvm.solving.state import Budget

MAX_C = 2.0**24  # float32 resolves no smaller margin
NEAR = 0.01  # relative difference to nu that ends the search
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
        inner.solve(everything, inner.units.sizes(everything), LOOSE)
        share = _share_of(inner, C, wanted)
        if np.all(np.abs(share - 1.0) <= NEAR):
            break
        if budget.is_used_up or np.any((C >= MAX_C) & (share > 1.0 + NEAR)):
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
    solver.state.iterate = Iterate.of(inner.alpha / of_variable)
    solver.iterate.learn(everything, (inner.gradient + inner.problem.linear) / of_variable)
    solver.state.neglected = inner.state.neglected / float(C.min())
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
