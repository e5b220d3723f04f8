"""A large part of a problem, nearly solved, by its active set: the support vectors, and variables
that violate.

A round solves the problem of the active set alone, where its rows are brought together, and then
brings the gradient of all other variables up to date, where their rows are. What violates then
joins the active set. All rows are gone through once a round: this is for rows that are far, on
other machines or in a file. The gradient of all variables is here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.kernel.kernel_sums import Terms
from dcsvm.solving.certificate import reduced_gradient
from dcsvm.solving.iterate import Iterate
from dcsvm.solving.parts import Effort, Parts

MOST_ROUNDS = 50
# of the largest violation: what a round is solved to; a violation as small as the last joins
ROUND_SHARE = 0.1
GROWTH = 0.5  # of the active set: how many join at most, but at least FEWEST
FEWEST = 1000


class ActiveSet:
    """One part whose gradient is known, solved in place by a `work` that has `solve_together`."""

    def __init__(self, work, parts: Parts, iterate: Iterate, effort: Effort, progress):
        self.work, self.iterate, self.effort, self.progress = work, iterate, effort, progress
        self.members = parts.members
        self.whole, self.problem = parts.problem, parts.problem.part(parts.members)
        self.is_active = iterate.alpha[self.members] != 0
        self.report: dict = {}
        self.n_rounds = 0

    def solve(self, stop: _core.Stop) -> dict:
        """Solve to the tolerance; returns a report as of one part. Raises Stopped."""
        for _ in range(MOST_ROUNDS):
            violations, worst = self._violations()
            if worst <= self.effort.tolerance and self.report:
                return self.report | {"converged": True}
            self.n_rounds += 1
            self._join(violations)
            tolerance = max(self.effort.tolerance, ROUND_SHARE * worst)
            before = self.iterate.alpha[self.members]
            active = self.members[self.is_active]
            one = Parts.of_sizes(self.whole, active, np.array([len(active)]))
            effort = replace(self.effort, tolerance=tolerance)
            self._add(*self.work.solve_together(one, self.iterate, effort, self.progress, stop))
            self._bring_up_to_date(before, stop)
            if self._has_no_iterations_left:
                break
        return self.report | {"converged": False}

    def _violations(self) -> tuple[np.ndarray, float]:
        """How far every variable violates its condition, and the violation, in the unit."""
        alpha, gradient = (one[self.members] for one in (self.iterate.alpha, self.iterate.gradient))
        _, violation, _, _, _ = _core.optimality(self.problem, alpha, gradient)
        size = reduced_gradient(self.problem, alpha, gradient)
        may_rise, may_fall = alpha < self.problem.upper, alpha > self.problem.lower
        own = np.maximum(np.where(may_rise, -size, 0.0), np.where(may_fall, size, 0.0))
        return own, violation

    def _join(self, violations: np.ndarray) -> None:
        least = 0.5 * self.effort.tolerance * self.problem.unit
        most = max(int(GROWTH * np.count_nonzero(self.is_active)), FEWEST)
        new = np.flatnonzero(~self.is_active & (violations > least))
        self.is_active[new[np.argsort(-violations[new], kind="stable")[:most]]] = True

    def _bring_up_to_date(self, before: np.ndarray, stop: _core.Stop) -> None:
        """The gradient of the variables that are not active, from what changed."""
        step = self.iterate.alpha[self.members] - before
        changed, others = np.flatnonzero(step), np.flatnonzero(~self.is_active)
        rows = self.whole.rows[self.members]
        how = Evaluation(reach=self.effort.reach, stop=stop)
        sums, n_values = self.work.sums(
            _together(rows[others]), _together(rows[changed]), step[changed], how
        )
        self.iterate.gradient[self.members[others]] += sums
        self.iterate.base[self.members[others]] = self.iterate.alpha[self.members[others]]
        self.report["kernel_evaluations"] += n_values
        self.report["neglected"] += self.effort.reach.value * float(np.abs(step).sum())

    def _add(self, one: dict) -> None:
        """Count a round, which goes on from the round before."""
        for name, value in one.items():
            is_count = name not in ("objective", "violation", "converged", "neglected")
            self.report[name] = self.report.get(name, 0) + value if is_count else value

    @property
    def _has_no_iterations_left(self) -> bool:
        most = self.effort.max_iterations
        return 0 <= most <= self.report["iterations"]


def _together(rows: np.ndarray) -> Terms:
    nothing = np.zeros(len(rows), np.int64)
    return Terms(rows, nothing, nothing)
