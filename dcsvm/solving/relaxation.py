"""One sum over many independent groups: its Lagrangian relaxation.

A sum that is kept couples groups that do not touch each other otherwise. With the sum's multiplier
(rho) fixed, in the linear term, they are problems of their own. The sum that their solution has
grows with the multiplier (Everett, "Generalized Lagrange Multiplier Method", 1963), so that secants
lead to the one where the sum is right; from there the coupled problem is nearly solved.
"""

from __future__ import annotations

import numpy as np

from dcsvm.solving.solving import Solving

GROWTH = 0.2  # of the sum with the multiplier, a free variable, before it is measured
MOST_MOVES = 8  # of the multiplier; then the coupled solver does what is left
# of the tolerance: the coupled violation is the difference of two variables, and alpha still moves
RELAXED_TOLERANCE = 0.3
NEAR = 0.5  # of the tolerance: a move of the multiplier that is not worth another solve
SHARE = 0.1  # of a move of the multiplier: no solve need be more exact than what it is to tell


class Relaxation(Solving):
    """A run that may relax its sum for a time: while the state has a `multiplier`, `formulation` is
    that without the sum."""

    @property
    def can_relax(self) -> bool:
        """Whether one sum of one problem is all that couples groups."""
        formulation = self.formulation
        is_one = formulation is self.prepared.formulation and formulation.n_problems == 1
        return is_one and self.problem.n_sums == 1 and self.locality.n_groups > 1

    def relax(self, multiplier: float) -> None:
        """Go on without the sum, after a level."""
        self.state.multiplier = multiplier
        self.take_relaxed()
        self.state.whole_tolerance = np.full(self.units.n_units, np.inf)

    def take_relaxed(self) -> None:
        """Solve the formulation relaxed by the multiplier of the state from now on."""
        self.take(self.prepared.formulation.relaxed(self.state.multiplier))

    @property
    def missing(self) -> float:
        """What alpha has less than the sum that is kept."""
        return float(self.prepared.formulation.alpha.sum() - self.alpha.sum())

    @property
    def expected_growth(self) -> float:
        free = (self.alpha > self.problem.lower) & (self.alpha < self.problem.upper)
        return GROWTH * max(int(np.count_nonzero(free)), 1)

    def move_multiplier(self, step: float) -> None:
        self.state.multiplier += step
        self.take_relaxed()
        self.iterate.gradient -= step

    def approach(self, tolerance: float) -> None:
        """Solve the relaxed problem until its sum is nearly right, and go back to the one that
        keeps the sum. Raises Stopped."""
        if self.state.multiplier is None:
            return
        everything = np.arange(self.problem.size, dtype=np.int32)
        sizes = self.units.sizes(everything)
        least = RELAXED_TOLERANCE * tolerance
        missing = self.missing
        step = missing / self.expected_growth
        for _ in range(MOST_MOVES):
            self.move_multiplier(step)
            wanted = max(least, SHARE * abs(step))
            self.solve(everything, sizes, wanted)
            growth = (missing - self.missing) / step if step else 0.0
            missing = self.missing
            step = missing / (growth if growth > 0 else self.expected_growth)
            if wanted == least and abs(step) <= NEAR * tolerance:
                break
        self.keep_sum()

    def keep_sum(self) -> None:
        """Go back to the problem that keeps its sum, and to an alpha that has it."""
        if self.state.multiplier is None:
            return
        if not self.state.is_global:
            self.iterate.forget(np.arange(self.problem.size))
        self.iterate.gradient += self.state.multiplier
        self.state.multiplier, self.state.is_global = None, True
        self.take(self.prepared.formulation)
        self.state.whole_tolerance = np.full(self.units.n_units, np.inf)
        self.iterate.move(self.formulation.with_sums(self.alpha))
