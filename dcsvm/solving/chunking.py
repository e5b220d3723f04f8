"""Solve a large, nearly solved part of a problem by chunking (Vapnik).

The active variables are the support vectors and the variables that violate the KKT conditions. A
round solves for the active variables on a copy of their rows. It then updates the gradient of all
other variables where their rows are stored. Variables that violate afterwards become active. A
round makes one pass over all rows, which suits rows on other machines or in a file. The gradient of
all variables is kept in memory.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import slices
from dcsvm.kernel.kernel_rows import KernelEvalOptions
from dcsvm.kernel.kernel_sums import TermIndex
from dcsvm.solving.certificate import reduced_gradient
from dcsvm.solving.checkpoint import SolveControl
from dcsvm.solving.engine import Engine
from dcsvm.solving.iterate import Iterate, SolverSettings, Subproblems
from dcsvm.solving.state import Budget

LARGE = 4000  # parts with more variables are solved by chunking
MAX_ROUNDS = 50
ROUND_SHARE = 0.1  # tolerance of a round, as a share of the largest violation before it
# A round adds at most this share of the active variables, or MIN_GROWTH variables if that is more.
GROWTH = 0.5
MIN_GROWTH = 1000


def solve_parts(
    engine: Engine,
    parts: Subproblems,
    iterate: Iterate,
    settings: SolverSettings,
    control: SolveControl,
) -> np.ndarray:
    """Solve parts in place, as `Engine.solve_together`.

    One large, nearly solved part of out-of-core rows is solved by chunking. Raises Stopped.
    """
    if engine.is_out_of_core and _is_nearly_solved(parts, iterate):
        active = ChunkingSolver(engine, parts, iterate, settings)
        report = active.solve(control)
        engine.n_rounds += active.n_rounds
        control.state.finish(0, report[0])
        return report
    return engine.solve_together(parts, iterate, settings, control)


class ChunkingSolver:
    """Solver of one part with a known gradient, in place, by chunking."""

    def __init__(
        self, engine: Engine, parts: Subproblems, iterate: Iterate, settings: SolverSettings
    ):
        self.engine, self.iterate, self.settings = engine, iterate, settings
        self.whole, self.problem = parts.problem, parts.problem
        self.members: slice | np.ndarray = slice(None)
        if len(parts.members) < parts.problem.size:
            self.problem, self.members = parts.problem.part(parts.members), parts.members
        self.is_active = iterate.alpha[self.members] != 0
        self.report = np.zeros(1, _core.SOLVE_REPORT)
        self.neglected = settings.neglected  # truncation error of an entry, all rounds so far
        self.n_rounds = 0

    def solve(self, control: SolveControl) -> np.ndarray:
        """Solve to the tolerance; return the report of the part. Raises Stopped."""
        budget = Budget(self.settings.limits)
        for _ in range(MAX_ROUNDS):
            worst = self._violation()
            if worst <= self.settings.tolerance and self.n_rounds:
                self.report["converged"] = True
                return self.report
            self.n_rounds += 1
            self._join()
            _core.trim_heap()
            active = self._numbers(self.is_active)
            before = self.iterate.alpha[active]
            one = Subproblems.of_sizes(self.whole, active, np.array([len(active)]))
            wanted = max(self.settings.tolerance, ROUND_SHARE * worst)
            settings = replace(self.settings, limits=budget.left)
            settings = replace(settings, tolerance=wanted, neglected=self.neglected)
            round_control = replace(control, state=_core.SolveState(one.sizes))
            done = self.engine.solve_together(one, self.iterate, settings, round_control)
            self._add(done)
            self._bring_up_to_date(active, self.iterate.alpha[active] - before, control.stop)
            budget.use(done)
            if budget.is_used_up:
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
        """Activate the variables that violate most."""
        alpha, gradient = (one[self.members] for one in (self.iterate.alpha, self.iterate.gradient))
        size = reduced_gradient(self.problem, alpha, gradient)
        least = 0.5 * self.settings.tolerance * self.problem.violation_scale
        new = ~self.is_active
        new &= ((size < -least) & (alpha < self.problem.upper)) | (
            (size > least) & (alpha > self.problem.lower)
        )
        joining = np.flatnonzero(new)
        most = max(int(GROWTH * np.count_nonzero(self.is_active)), MIN_GROWTH)
        self.is_active[joining[np.argsort(-np.abs(size[joining]), kind="stable")[:most]]] = True

    def _bring_up_to_date(self, active: np.ndarray, step: np.ndarray, stop: _core.Stop) -> None:
        """Update the gradient of the other variables for the step of the active ones."""
        iterate, rows = self.iterate, self.whole.rows
        changed, others = step != 0, self._numbers(~self.is_active)
        sources, step = _together(rows[active[changed]]), step[changed]
        how = KernelEvalOptions(self.settings.float64, self.settings.cutoff, stop)
        for some in slices(len(others), self.engine.targets_at_once):
            own = others[some]
            sums, n_values = self.engine.sums(_together(rows[own]), sources, step, how)
            iterate.gradient[own] += sums
            iterate.base[own] = iterate.alpha[own]
            self.report["kernel_evaluations"] += n_values
        self.neglected += self.settings.cutoff.value * float(np.abs(step).sum())
        self.neglected = max(self.neglected, float(self.report["neglected"][0]))
        self.report["neglected"] = self.neglected

    def _add(self, one: np.ndarray) -> None:
        """Add the counts of a round to the report; replace the other fields."""
        for name in _core.SOLVE_REPORT.names or ():
            is_count = name not in ("objective", "violation", "gap", "converged", "neglected")
            self.report[name] = one[name] + (self.report[name] if is_count else 0)


def _is_nearly_solved(parts: Subproblems, iterate: Iterate) -> bool:
    """Whether there is one part, large and with a known gradient."""
    is_one = len(parts.sizes) == 1 and len(parts.members) > LARGE
    return is_one and bool(iterate.is_known[parts.members].all())


def _together(rows: np.ndarray) -> TermIndex:
    """Return these rows as terms of a kernel sum, all in one component."""
    nothing = np.zeros(len(rows), np.int64)
    return TermIndex(rows, nothing, nothing)
