"""Solve a formulation over prepared rows, as a whole or in parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import group_order
from dcsvm.kernel.kernel_rows import KernelEvalOptions
from dcsvm.kernel.kernel_sums import TermIndex
from dcsvm.model.pair_weights import is_seen
from dcsvm.problem.formulation import Formulation
from dcsvm.solving.checkpoint import CoreProgress, RunControl, SolveControl
from dcsvm.solving.chunking import solve_parts
from dcsvm.solving.extraction import Solution
from dcsvm.solving.iterate import Iterate, SolverSettings, Subproblems
from dcsvm.solving.level_partition import VariableComponents
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.report import Costs
from dcsvm.solving.state import Budget, RunState

BATCH_VALUES = 4 * 10**9  # kernel evaluations of a gradient between two possible checkpoints


class FormulationSolver:
    """Solver of a formulation over prepared rows.

    `prepared` and `control` do not change; `state` does. `problem`, `units` (components of the
    variables) and `cutoff` belong to the current `formulation`. `save` stores a due checkpoint.
    Several solvers may share a `budget` of work.
    """

    def __init__(
        self,
        prepared: Prepared,
        control: RunControl | None = None,
        formulation: Formulation | None = None,
        save: Callable[[], None] = lambda: None,
        budget: Budget | None = None,
    ):
        self.prepared, self.control, self.save = prepared, control or RunControl(), save
        self.options, self.task, self.data = prepared.options, prepared.task, prepared.data
        self.engine = prepared.engine
        self.locality, self.threads = prepared.components, prepared.threads
        self.set_formulation(formulation or prepared.formulation)
        self.memory_bytes = prepared.solver_bytes(self.formulation)
        self.is_warm = self.is_near = False
        no_variables = np.zeros(0, np.int32)
        self._unfinished = no_variables, no_variables  # members and sizes of the last solve
        self.state = RunState(
            iterate=Iterate.of(self.formulation.alpha.copy()),
            whole_tolerance=np.full(self.units.n_components, np.inf),
            budget=budget or Budget.of(self.options),
            n_iterations=np.zeros(self.formulation.n_problems, np.int64),
            converged=np.zeros(self.formulation.n_folds, bool),
        )

    def set_formulation(self, formulation: Formulation) -> None:
        """Replace the formulation, and its components and cutoff."""
        self.formulation, self.problem = formulation, formulation.problem
        self.units = VariableComponents(formulation, self.locality)
        self.cutoff = self.locality.cutoff(coupled=formulation.has_constraints)

    def forget_whole(self) -> None:
        """Mark every component as not solved as a whole, as the components may have changed."""
        self.state.whole_tolerance = np.full(self.units.n_components, np.inf)

    def begin_with(self, alpha: np.ndarray, gradient: np.ndarray | None = None) -> None:
        """Start from a feasible alpha; its gradient is given if alpha is near the solution."""
        self.state.iterate = Iterate.of(alpha)
        self.is_warm, self.is_near = True, gradient is not None
        if gradient is not None:
            self.iterate.learn(np.arange(len(alpha)), gradient)

    @property
    def iterate(self) -> Iterate:
        return self.state.iterate

    @property
    def alpha(self) -> np.ndarray:
        return self.state.iterate.alpha

    @property
    def gradient(self) -> np.ndarray:
        return self.state.iterate.gradient

    @property
    def costs(self) -> Costs:
        return self.state.costs

    @property
    def solution(self) -> Solution:
        """The current alpha as a Solution, to make models from."""
        return Solution(self.prepared, self.formulation, self.iterate)

    @property
    def size_of_values(self) -> float:
        """Scale of decision values; requires a certificate."""
        assert self.state.certificate is not None
        multipliers = self.state.certificate.multipliers[0]
        return self.task.size_of_values(self.prepared.targets, *multipliers[:1].tolist())

    @property
    def needs_float64(self) -> bool:
        """Whether rounding kernel values to float32 would noticeably change decision values."""
        state = self.state
        if state.certificate is None:
            return False
        size = state.certificate.violation_scale * self.size_of_values
        return is_seen(state.rounding, size, is_regression=self.task.is_regression)

    def begin_phase(self, name: str, n_rows: int) -> None:
        """Report the start of a phase over `n_rows` rows or variables."""
        self.engine.phase = name.replace(" ", "")
        self.control.progress.begin(name, n_rows)

    def extend_gradient(self) -> None:
        """Compute the gradient of all variables from the known one.

        The gradient must be known for all support vectors, or for none of them.
        """
        start, state = time.perf_counter(), self.state
        if state.begun_with is None:
            state.begun_with = np.flatnonzero(~self.iterate.is_known).astype(np.int32)
        others = state.begun_with
        self.begin_phase("gradient", len(others))
        how = KernelEvalOptions(False, self.cutoff, self.control.stop)
        for some, gradient, n_values in self.gradients_of(others, self.iterate.is_known, how):
            self.iterate.learn(some, gradient)
            self.costs.counts["kernel_evaluations"] += n_values
        state.begun_with = None
        left_out = self.cutoff.value * float(np.abs(self.alpha).sum())
        state.neglected = max(state.neglected, left_out)
        seconds = time.perf_counter() - start
        self.costs.seconds_by_phase["rebuild"] += seconds
        n_sv = int(np.count_nonzero(self.alpha))
        self.control.progress.end("gradient", seconds, n_sv)

    def sources(self) -> tuple[TermIndex, np.ndarray]:
        """Return the support vectors as terms of kernel sums, and their alpha."""
        support = np.flatnonzero(self.alpha)
        return self.units.terms(support), self.alpha[support]

    def gradient_of(
        self,
        variables: np.ndarray,
        how: KernelEvalOptions,
        sources: tuple[TermIndex, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, int]:
        """Compute the gradient of variables; kernel values between components count as 0.

        Also returns the number of kernel evaluations. Raises Stopped.
        """
        terms, alpha = sources or self.sources()
        sums, n_values = self.engine.sums(self.units.terms(variables), terms, alpha, how)
        return sums - self.problem.linear[variables], n_values

    def gradients_of(
        self, variables: np.ndarray, is_done: np.ndarray, how: KernelEvalOptions
    ) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        """Yield variables, their gradient and the number of kernel evaluations, batch by batch.

        Variables marked in `is_done`, bool (n_variables,), are skipped. Due checkpoints are stored
        between batches. Raises Stopped.
        """
        n_blocks, sources = 1 + len(variables) // self.engine.targets_at_once, self.sources()
        if self.control.checkpoint is not None:
            unit = self.units.terms(variables).component
            n_sources = np.bincount(sources[0].component, minlength=unit.max(initial=0) + 1)
            n_blocks += int(n_sources[unit].sum() / BATCH_VALUES)
        # in row order: problems share the kernel values of a row
        by_row = variables
        if self.formulation.n_problems > 1:
            by_row = variables[group_order(self.problem.rows[variables])]
        for block in np.array_split(by_row, n_blocks):
            some = np.sort(block[~is_done[block]])
            if len(some):
                yield some, *self.gradient_of(some, how, sources)
                if self.control.is_checkpoint_due:
                    self.save()

    def exact_gradients(
        self, variables: np.ndarray, is_done: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        how = KernelEvalOptions(True, self.locality.between, self.control.stop)
        for some, gradient, n_values in self.gradients_of(variables, is_done, how):
            self.costs.evaluations_by_phase["check"] += n_values
            yield some, gradient

    def solve(
        self, members: np.ndarray, sizes: np.ndarray, tolerance: float, attainable: float = 0.0
    ) -> np.ndarray:
        """Solve parts of the problem in place, starting from the current state.

        `members` lists the variables part by part; `sizes` has the number of variables of each
        part. Returns an array of SOLVE_REPORT, one entry per part. Raises Stopped if a part is not
        solved.
        """
        state = self.state
        state.solve = state.solve or _core.SolveState(sizes)
        nbytes = self.memory_bytes - self.prepared.memory.unplanned(int(sizes.max(initial=0)))
        settings = SolverSettings(
            tolerance, state.budget.left, max(nbytes, 0), self.threads, self.cutoff,
            state.neglected, attainable, state.float64,
        )  # fmt: skip
        parts = Subproblems.of_sizes(self.problem, members, sizes)
        progress = CoreProgress(self.control, self.save)
        control = SolveControl(state.solve, self.control.stop, progress)
        try:
            solved = solve_parts(self.engine, parts, state.iterate, settings, control)
        finally:
            self._unfinished = members, sizes
        if not state.solve.is_done:
            raise _core.Stopped
        state.solve = None
        self._count(members, sizes, solved)
        return solved

    def count_unfinished(self) -> None:
        """Add the cost of a stopped solve; call this after its state is stored."""
        if self.state.solve is not None:
            self._count(*self._unfinished, self.state.solve.reports)

    def _count(self, members: np.ndarray, sizes: np.ndarray, solved: np.ndarray) -> None:
        state, is_filled = self.state, sizes > 0
        state.neglected = float(solved["neglected"].max(initial=state.neglected))
        self.costs.add(solved)
        problems = self.formulation.problem_of(members[np.cumsum(sizes)[is_filled] - 1])
        np.add.at(state.n_iterations, problems, solved["iterations"][is_filled])
        state.budget.use(solved, self.formulation.n_folds)

    def reserve(self, nbytes: int) -> None:
        """Reduce the solver's memory by `nbytes`, which others may use."""
        self.memory_bytes -= nbytes
