"""Where folds begin that were solved for a smaller C: at that solution, with its gradient.

K (r alpha) is r K alpha: the gradient of alpha scaled costs no kernel value, and variables at their
bound are at the new one (Chu et al., KDD 2015). What has to move is little where nearly all support
vectors are at their bound, and a much larger C is reached by steps; or, with alpha as it is, where
hardly any are. Between these, levels find the solution with fewer kernel values. Sums over held-out
rows are known for the same alpha either way.

Equal rows of both classes are at their bound for every C. Both may go to the new one together,
which changes no sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dcsvm.problem.duplicates import opposite_twins
from dcsvm.problem.formulation import BoxProblem, Formulation
from dcsvm.solving.solver import FormulationSolver
from dcsvm.training.held_out import HeldSums
from dcsvm.training.steps import LEVEL_TOLERANCE

# How far a start is, in support vectors: one that is farther than there are is worse than none.
# A free one, times how much larger C is: covtype's first 50,000 rows, gamma=2, C times 4, take 0.5
# of the time without at 0.2, 0.8 at 0.9, as long at 1.4; C times 128 twice as long at 4
FREE = 5.0
# A bounded one: ijcnn1, gamma=32, takes 0.1 to 0.4 of the time up to 0.6, gamma=2 1.1 times at 0.7
BOUNDED = 20.0
LARGEST_STEP = 4.0  # of C; 16 at once takes 1.3 times as long on 100,000 rows of covtype
KEEPS_SUMS = ("c_svc", "epsilon_svr")  # whose sums do not grow with C
MEMORY_SHARE = 8  # part of what is spare, for all solutions kept
AT_BOUND = 1.0 - 1e-9


@dataclass(frozen=True, eq=False)
class Solved:
    """The solution of a fold: `sums` = K alpha, float64 of its variables, less what is `neglected`
    in any of them; and of the rows that it holds out."""

    C: float
    sums: np.ndarray
    neglected: float
    held: HeldSums

    @property
    def nbytes(self) -> int:
        return self.sums.nbytes + self.held.alpha.nbytes + self.held.sums.nbytes


class SmallerC:
    """The solutions of folds for the largest C so far."""

    def __init__(self):
        self.of_fold: dict[int, Solved] = {}

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.of_fold.values())

    def begin(self, solver: FormulationSolver, some: Sequence[int]) -> dict[int, HeldSums]:
        """Begin the solver of some folds where they are for a smaller C, if that is near. Returns
        the scaled sums of those that are known."""
        solver.reserve(self.nbytes)
        known, starts = {}, []
        for k, fold in enumerate(some):
            found = self.of_fold.get(int(fold))
            if found is not None and found.C < solver.options.C:
                start = _start(found, solver, solver.formulation.variables_of_fold(k))
                starts.append(start)
                known[int(fold)] = start.held
        if not starts or len(starts) < len(some):
            return known
        alpha = np.concatenate([one.held.alpha for one in starts])
        if sum(one.far for one in starts) <= np.count_nonzero(alpha):
            sums = np.concatenate([one.sums for one in starts])
            solver.begin_with(alpha, sums - solver.problem.linear)
            solver.state.neglected = max(one.neglected for one in starts)
            ratio = {one.ratio for one in starts}
            if len(ratio) == 1:
                _take_steps(solver, ratio.pop())
        return known

    def keep(
        self, solver: FormulationSolver, some: Sequence[int], known: dict[int, HeldSums]
    ) -> None:
        """Keep the solutions of a solver of some folds, whose sums are known, where there is memory
        for them."""
        variables = solver.problem.size + solver.prepared.formulation.problem.size
        room = solver.prepared.memory.spare(variables) // MEMORY_SHARE
        if not solver.iterate.is_known.all():
            return
        sums = solver.gradient + solver.problem.linear
        for k, fold in enumerate(some):
            held, own = known[int(fold)], solver.formulation.variables_of_fold(k)
            found = Solved(solver.options.C, sums[own], solver.state.neglected, held)
            self.of_fold.pop(int(fold), None)
            if self.nbytes + found.nbytes <= room:
                self.of_fold[int(fold)] = found


@dataclass(frozen=True, eq=False)
class _Start:
    """Where a fold may begin: alpha was scaled by `ratio`; `far` in support vectors."""

    held: HeldSums
    sums: np.ndarray
    neglected: float
    ratio: float
    far: float


def _start(found: Solved, solver: FormulationSolver, own: np.ndarray) -> _Start:
    """The solution for a smaller C, scaled, or as it is where fewer are bounded than free."""
    alpha, ratio = found.held.alpha, solver.options.C / found.C
    scaled, n_free = _feasible(ratio * alpha, solver.problem.part(own))
    if solver.options.svm_type in KEEPS_SUMS:
        kept, n_inside = _kept(alpha, ratio, solver, own)
        if n_inside < n_free:
            held = HeldSums(kept, found.held.sums)
            return _Start(held, found.sums, found.neglected, 1.0, BOUNDED * n_inside)
    held = HeldSums(scaled, ratio * found.held.sums)
    return _Start(held, ratio * found.sums, ratio * found.neglected, ratio, FREE * ratio * n_free)


def _kept(
    alpha: np.ndarray, ratio: float, solver: FormulationSolver, own: np.ndarray
) -> tuple[np.ndarray, int]:
    """An alpha of a fold's variables `own` with the same sums, for a C that is `ratio` times
    larger; and how many that were at their bound are not at the new one."""
    problem = solver.problem.part(own)
    is_positive = problem.upper > 0
    bound = np.where(is_positive, problem.upper, -problem.lower)
    was_bounded = np.abs(alpha) >= AT_BOUND * bound / ratio
    if not solver.task.is_classification or not was_bounded.any():
        return alpha, int(np.count_nonzero(was_bounded))
    a, b = opposite_twins(
        solver.data.rows, problem.rows, solver.formulation.number[own], np.where(is_positive, 1, -1)
    )
    kept = alpha.copy()
    wanted = [
        np.where(was_bounded[one], (ratio - 1.0) * np.abs(alpha[one]), np.inf) for one in (a, b)
    ]
    room = [bound[one] - np.abs(alpha[one]) for one in (a, b)]
    by = np.minimum.reduce([*wanted, *room])
    by[~(was_bounded[a] | was_bounded[b])] = 0.0
    kept[a] += by
    kept[b] -= by
    is_inside = was_bounded & (np.abs(kept) < AT_BOUND * bound)
    return kept, int(np.count_nonzero(is_inside))


def _feasible(alpha: np.ndarray, problem: BoxProblem) -> tuple[np.ndarray, int]:
    """A scaled alpha with what was at a bound at the new one, and how many of it are free."""
    bound = np.where(alpha < 0, problem.lower, problem.upper)
    at_bound = np.abs(alpha) >= AT_BOUND * np.abs(bound)
    return np.where(at_bound, bound, alpha), int(np.count_nonzero(~at_bound & (alpha != 0)))


def _take_steps(solver: FormulationSolver, ratio: float) -> None:
    """From the solution for a C that is `ratio` times smaller, which was scaled, go through C
    between, loosely solved. Raises Stopped."""
    wanted, everything = solver.formulation, np.arange(solver.problem.size, dtype=np.int32)
    steps = math.ceil(math.log(ratio, LARGEST_STEP) - 1e-9)
    scale = ratio ** (1 / max(steps, 1) - 1)  # back to the first C
    for k in range(1, steps):
        problem = wanted.problem.scaled(ratio ** (k / steps - 1))
        _scale(solver, scale, replace(wanted, problem=problem))
        tolerance = max(solver.options.tolerance, LEVEL_TOLERANCE)
        solver.solve(everything, solver.units.sizes(everything), tolerance)
        scale = ratio ** (1 / steps)
    if steps > 1:
        _scale(solver, scale, wanted)


def _scale(solver: FormulationSolver, scale: float, formulation: Formulation) -> None:
    """Scale the alpha of a solver to that of a formulation with another C."""
    sums, neglected = (
        scale * (solver.gradient + solver.problem.linear),
        scale * solver.state.neglected,
    )
    alpha, _ = _feasible(scale * solver.alpha, formulation.problem)
    solver.set_formulation(formulation)
    solver.begin_with(alpha, sums - solver.problem.linear)
    solver.state.neglected = neglected
