"""Active-set solver of a large, nearly solved part of a problem.

The active set is the support vectors and the variables that violate. A round solves its problem
on a copy of its rows, and then updates the gradient of all other variables next to their rows.
Variables that violate afterwards join the active set. A round makes one pass over all rows, which
suits rows on other machines or in a file. The gradient of all variables is kept in memory.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import slices
from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.kernel.kernel_sums import Terms
from dcsvm.solving.certificate import reduced_gradient
from dcsvm.solving.checkpoint import CoreProgress
from dcsvm.solving.engine import Engine
from dcsvm.solving.iterate import Effort, Iterate, Parts

LARGE = 4000  # minimum number of variables of a part solved by its active set
MOST_ROUNDS = 50
ROUND_SHARE = 0.1  # tolerance of a round, as a share of the largest violation before it
# maximum growth of the active set in a round: this share of it, or FEWEST variables if that is more
GROWTH = 0.5
FEWEST = 1000


def solve_parts(
    engine: Engine, parts: Parts, iterate: Iterate, effort: Effort, progress: CoreProgress | None,
    stop: _core.Stop, state: _core.SolveState,
) -> np.ndarray:  # fmt: skip
    """Solve parts in place, as `Engine.solve_together`.

    One large, nearly solved part of out-of-core rows is solved by its active set. Raises Stopped.
    """
    if engine.is_out_of_core and _is_nearly_solved(parts, iterate):
        active = ActiveSet(engine, parts, iterate, effort, progress)
        report = active.solve(stop)
        engine.n_rounds += active.n_rounds
        state.finish(0, report[0])
        return report
    return engine.solve_together(parts, iterate, effort, progress, stop, state)


class ActiveSet:
    """Active-set solver of one part with a known gradient, in place."""

    def __init__(
        self,
        engine: Engine,
        parts: Parts,
        iterate: Iterate,
        effort: Effort,
        progress: CoreProgress | None,
    ):
        self.engine, self.iterate, self.effort, self.progress = engine, iterate, effort, progress
        self.whole, self.problem = parts.problem, parts.problem
        self.members: slice | np.ndarray = slice(None)
        if len(parts.members) < parts.problem.size:
            self.problem, self.members = parts.problem.part(parts.members), parts.members
        self.is_active = iterate.alpha[self.members] != 0
        self.report = np.zeros(1, _core.SOLVE_REPORT)
        self.neglected = effort.neglected  # truncation error of an entry, all rounds so far
        self.n_rounds = 0

    def solve(self, stop: _core.Stop) -> np.ndarray:
        """Solve to the tolerance; return the report of the part. Raises Stopped."""
        for _ in range(MOST_ROUNDS):
            worst = self._violation()
            if worst <= self.effort.tolerance and self.n_rounds:
                self.report["converged"] = True
                return self.report
            self.n_rounds += 1
            self._join()
            _core.give_back_memory()
            active = self._numbers(self.is_active)
            before = self.iterate.alpha[active]
            one = Parts.of_sizes(self.whole, active, np.array([len(active)]))
            wanted = max(self.effort.tolerance, ROUND_SHARE * worst)
            effort = replace(self.effort, tolerance=wanted, neglected=self.neglected)
            state = _core.SolveState(one.sizes)
            self._add(
                self.engine.solve_together(one, self.iterate, effort, self.progress, stop, state)
            )
            self._bring_up_to_date(active, self.iterate.alpha[active] - before, stop)
            if self._has_no_iterations_left:
                break
        self.report["converged"] = False
        return self.report

    def _numbers(self, is_chosen: np.ndarray) -> np.ndarray:
        """Return the indices int32 of the chosen variables of the part in the whole problem."""
        chosen = np.flatnonzero(is_chosen).astype(np.int32)
        return chosen if isinstance(self.members, slice) else self.members[chosen]

    def _violation(self) -> float:
        """Return the largest KKT violation, in multiples of the violation scale."""
        alpha, gradient = (one[self.members] for one in (self.iterate.alpha, self.iterate.gradient))
        whole = np.array([0, self.problem.size])
        return float(_core.optimality(self.problem, whole, alpha, gradient)[1][0])

    def _join(self) -> None:
        """Add the variables that violate most to the active set."""
        alpha, gradient = (one[self.members] for one in (self.iterate.alpha, self.iterate.gradient))
        size = reduced_gradient(self.problem, alpha, gradient)
        least = 0.5 * self.effort.tolerance * self.problem.unit
        new = ~self.is_active
        new &= ((size < -least) & (alpha < self.problem.upper)) | (
            (size > least) & (alpha > self.problem.lower)
        )
        joining = np.flatnonzero(new)
        most = max(int(GROWTH * np.count_nonzero(self.is_active)), FEWEST)
        self.is_active[joining[np.argsort(-np.abs(size[joining]), kind="stable")[:most]]] = True

    def _bring_up_to_date(self, active: np.ndarray, step: np.ndarray, stop: _core.Stop) -> None:
        """Update the gradient of inactive variables by the step of the active ones."""
        iterate, rows = self.iterate, self.whole.rows
        changed, others = step != 0, self._numbers(~self.is_active)
        sources, step = _together(rows[active[changed]]), step[changed]
        how = Evaluation(self.effort.float64, self.effort.reach, stop)
        for some in slices(len(others), self.engine.targets_at_once):
            own = others[some]
            sums, n_values = self.engine.sums(_together(rows[own]), sources, step, how)
            iterate.gradient[own] += sums
            iterate.base[own] = iterate.alpha[own]
            self.report["kernel_evaluations"] += n_values
        self.neglected += self.effort.reach.value * float(np.abs(step).sum())
        self.neglected = max(self.neglected, float(self.report["neglected"][0]))
        self.report["neglected"] = self.neglected

    def _add(self, one: np.ndarray) -> None:
        """Add the counts of a round to the report; replace the other fields."""
        for name in _core.SOLVE_REPORT.names or ():
            is_count = name not in ("objective", "violation", "gap", "converged", "neglected")
            self.report[name] = one[name] + (self.report[name] if is_count else 0)

    @property
    def _has_no_iterations_left(self) -> bool:
        most = self.effort.max_iterations
        return 0 <= most <= int(self.report["iterations"][0])


def _is_nearly_solved(parts: Parts, iterate: Iterate) -> bool:
    """Whether there is one part, large and with a known gradient."""
    is_one = len(parts.sizes) == 1 and len(parts.members) > LARGE
    return is_one and bool(iterate.is_known[parts.members].all())


def _together(rows: np.ndarray) -> Terms:
    nothing = np.zeros(len(rows), np.int64)
    return Terms(rows, nothing, nothing)
