"""Where folds begin that were solved for a smaller C: at that solution, scaled, with its gradient.

K (r alpha) is r K alpha: the gradient costs no kernel value, and variables at their bound are at
the new one (Chu et al., KDD 2015). What has to move is little where nearly all support vectors are
at their bound, which is where trainings are longest; where many are free, levels find the solution
with fewer kernel values. Sums over held-out rows are known for the scaled solution either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dcsvm.training.algorithm import Run
from dcsvm.training.held_out import HeldSums

# of the support vectors, times the square of how much larger C is: more free ones are a worse start
# than none. C times 4: covtype's first 50,000 rows, gamma=2, take 0.6 of the time without at 0.4,
# as long at 1.1 and 1.5 times at 1.6; C times 16 to 128: 0.3 to 1.0 up to 1, twice at 100
MOST_FREE = 1.0
MEMORY_SHARE = 8  # part of what is spare, for all solutions kept
AT_BOUND = 1.0 - 1e-12


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

    def begin(self, run: Run, some: Sequence[int]) -> dict[int, HeldSums]:
        """Let a run of some folds begin where they are for a smaller C, if that is near. Returns
        the scaled sums of those that are known."""
        run.solver_bytes -= self.nbytes
        known, near = {}, []
        for k, fold in enumerate(some):
            found = self.of_fold.get(int(fold))
            if found is None or found.C >= run.options.C:
                continue
            ratio, own = run.options.C / found.C, run.formulation.variables_of_fold(k)
            alpha, n_free = _scaled(ratio * found.held.alpha, run.problem.part(own))
            known[int(fold)] = HeldSums(alpha, ratio * found.held.sums)
            near.append((ratio**2 * n_free, ratio * found.sums, ratio * found.neglected))
        if not near or len(near) < len(some):
            return known
        far, sums, neglected = zip(*near, strict=True)
        alpha = np.concatenate([one.alpha for one in known.values()])
        if sum(far) <= MOST_FREE * np.count_nonzero(alpha):
            run.begin_with(alpha, np.concatenate(sums) - run.problem.linear)
            run.state.neglected = max(neglected)
        return known

    def keep(self, run: Run, some: Sequence[int], known: dict[int, HeldSums]) -> None:
        """Keep the solutions of a run of some folds, whose sums are known, where there is memory
        for them."""
        variables = run.problem.size + run.prepared.formulation.problem.size
        room = run.prepared.memory.spare(variables) // MEMORY_SHARE
        if not run.iterate.is_known.all():
            return
        sums = run.gradient + run.problem.linear
        for k, fold in enumerate(some):
            held, own = known[int(fold)], run.formulation.variables_of_fold(k)
            found = Solved(run.options.C, sums[own], run.state.neglected, held)
            self.of_fold.pop(int(fold), None)
            if self.nbytes + found.nbytes <= room:
                self.of_fold[int(fold)] = found


def _scaled(alpha: np.ndarray, problem) -> tuple[np.ndarray, int]:
    """A scaled alpha, feasible, and how many of its entries are not at a bound."""
    bound = np.where(alpha < 0, problem.lower, problem.upper)
    at_bound = np.abs(alpha) >= AT_BOUND * np.abs(bound)
    return np.where(at_bound, bound, alpha), int(np.count_nonzero(~at_bound & (alpha != 0)))
