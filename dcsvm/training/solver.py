"""Solve a formulation over prepared rows: as a whole, by clusters of a level, or by chunking.

The clusters of a level are solved separately for early prediction. Rows near a cluster boundary may
be in two clusters. It is possible to solve only some clusters.

Chunking (Vapnik) is for a large, nearly solved part of a problem. The active variables are the
support vectors and the variables that violate the KKT conditions. A round solves for the active
variables on a copy of their rows. It then updates the gradient of all other variables where their
rows are stored. Variables that violate afterwards become active. A round makes one pass over all
rows, which suits rows on other machines or in a file. The gradient of all variables is kept in
memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import group_order, group_sizes, reduce_parts, slices
from dcsvm.kernel.kernel_rows import KernelEvalOptions, TermIndex
from dcsvm.model.predict import is_seen
from dcsvm.problem.formulation import Formulation
from dcsvm.training.certificate import Iterate, SolverSettings, Subproblems, reduced_gradient
from dcsvm.training.engine import Engine, Prepared
from dcsvm.training.level_partition import (
    ClusteredFormulation,
    LevelPartition,
    VariableComponents,
)
from dcsvm.training.report import Costs, LevelReport
from dcsvm.training.state import (
    Budget,
    CoreProgress,
    RunControl,
    RunState,
    SolveControl,
    check_array,
)

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
        engine.count_rounds(active.n_rounds)
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
            _core.trim_heap()  # the copy of the active rows needs the memory
            # solve for the active variables
            active = self._numbers(self.is_active)
            alpha_before = self.iterate.alpha[active]
            part = Subproblems.of_sizes(self.whole, active, np.array([len(active)]))
            tolerance = max(self.settings.tolerance, ROUND_SHARE * worst)
            settings = replace(
                self.settings, limits=budget.left, tolerance=tolerance, neglected=self.neglected
            )
            round_control = replace(control, state=_core.SolveState(part.sizes))
            report = self.engine.solve_together(part, self.iterate, settings, round_control)
            self._add(report)
            # the others learn of the step
            step = self.iterate.alpha[active] - alpha_before
            self._update_others(active, step, control.stop)
            budget.use(report)
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
        alpha, gradient = self.iterate.alpha[self.members], self.iterate.gradient[self.members]
        whole = np.array([0, self.problem.size])
        return float(_core.optimality(self.problem, whole, alpha, gradient)[1][0])

    def _join(self) -> None:
        """Activate the variables that violate most."""
        alpha, gradient = self.iterate.alpha[self.members], self.iterate.gradient[self.members]
        size = reduced_gradient(self.problem, alpha, gradient)
        # a variable violates if it can move against its gradient
        least = 0.5 * self.settings.tolerance * self.problem.violation_scale
        rises = (size < -least) & (alpha < self.problem.upper)
        falls = (size > least) & (alpha > self.problem.lower)
        joining = np.flatnonzero(~self.is_active & (rises | falls))
        # the largest violations join first: a round stays small
        most = max(int(GROWTH * np.count_nonzero(self.is_active)), MIN_GROWTH)
        self.is_active[joining[np.argsort(-np.abs(size[joining]), kind="stable")[:most]]] = True

    def _update_others(self, active: np.ndarray, step: np.ndarray, stop: _core.Stop) -> None:
        """Update the gradient of the other variables for the step of the active ones."""
        iterate, rows = self.iterate, self.whole.rows
        changed, others = step != 0, self._numbers(~self.is_active)
        sources, step = _together(rows[active[changed]]), step[changed]
        evaluation = KernelEvalOptions(self.settings.float64, self.settings.cutoff, stop)
        for batch in slices(len(others), self.engine.targets_at_once):
            own = others[batch]
            sums, n_values = self.engine.sums(_together(rows[own]), sources, step, evaluation)
            iterate.gradient[own] += sums
            iterate.base[own] = iterate.alpha[own]
            self.report["kernel_evaluations"] += n_values
        self.neglected += self.settings.cutoff.value * float(np.abs(step).sum())
        self.neglected = max(self.neglected, float(self.report["neglected"][0]))
        self.report["neglected"] = self.neglected

    def _add(self, report: np.ndarray) -> None:
        """Add the counts of a round to the report; replace the other fields."""
        for name in _core.SOLVE_REPORT.names or ():
            is_count = name not in ("objective", "violation", "gap", "converged", "neglected")
            self.report[name] = report[name] + (self.report[name] if is_count else 0)


def _is_nearly_solved(parts: Subproblems, iterate: Iterate) -> bool:
    """Whether there is one part, large and with a known gradient."""
    is_one = len(parts.sizes) == 1 and len(parts.members) > LARGE
    return is_one and bool(iterate.is_known[parts.members].all())


def _together(rows: np.ndarray) -> TermIndex:
    """Return these rows as terms of a kernel sum, all in one component."""
    nothing = np.zeros(len(rows), np.int64)
    return TermIndex(rows, nothing, nothing)


# A variable counts as bounded if its distance to a bound is at most this share of
# min(upper - lower, largest |alpha|).
AT_BOUND = 1e-12
BATCH_VALUES = 4 * 10**9  # kernel evaluations of a gradient between two possible checkpoints


class FormulationSolver:
    """Solver of a formulation over prepared rows.

    `prepared` and `control` do not change; `state` does. `problem`, `components` (of the
    variables) and `cutoff` belong to the current `formulation`. Several solvers may share a
    `budget` of work. If not `is_checked`, the solution is not verified in float64.
    """

    def __init__(
        self,
        prepared: Prepared,
        control: RunControl | None = None,
        formulation: Formulation | None = None,
        budget: Budget | None = None,
    ):
        self.prepared, self.control = prepared, control or RunControl()
        self.options, self.task, self.data = prepared.options, prepared.task, prepared.data
        self.engine = prepared.engine
        self.row_components, self.threads = prepared.row_components, prepared.threads
        self.set_formulation(formulation or prepared.formulation)
        self.memory_bytes = prepared.solver_bytes(self.formulation)
        self.is_warm = self.is_near = False
        self.is_checked = True
        no_variables = np.zeros(0, np.int32)
        self._unfinished = no_variables, no_variables  # members and sizes of the last solve
        self.state = RunState(
            iterate=Iterate.of(self.formulation.alpha.copy()),
            whole_tolerance=np.full(self.components.n_components, np.inf),
            budget=budget or Budget.of(self.options),
            n_iterations=np.zeros(self.formulation.n_problems, np.int64),
            converged=np.zeros(self.formulation.n_folds, bool),
        )

    def set_formulation(self, formulation: Formulation) -> None:
        """Replace the formulation, and its components and cutoff."""
        self.formulation, self.problem = formulation, formulation.problem
        self.components = VariableComponents(formulation, self.row_components)
        self.cutoff = self.row_components.cutoff(coupled=formulation.has_constraints)

    def forget_whole(self) -> None:
        """Mark every component as not solved as a whole, as the components may have changed."""
        self.state.whole_tolerance = np.full(self.components.n_components, np.inf)

    def begin_with(
        self, alpha: np.ndarray, gradient: np.ndarray | None = None, neglected: float = 0.0
    ) -> None:
        """Start from a feasible alpha; its gradient is given if alpha is near the solution.

        `neglected` bounds the truncation error of the gradient.
        """
        self.is_warm, self.is_near = True, gradient is not None
        if gradient is None:
            self.state.iterate = Iterate.of(alpha)
        else:
            self.take(alpha, gradient, neglected)

    def take(self, alpha: np.ndarray, gradient: np.ndarray, neglected: float) -> None:
        """Replace alpha and its gradient by those of another solver."""
        self.state.iterate, self.state.neglected = Iterate.of(alpha), neglected
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
    def size_of_values(self) -> float:
        """Size of decision values in violation scales; requires a certificate."""
        assert self.state.certificate is not None
        multipliers = self.state.certificate.multipliers[0]
        size = self.task.size_of_values(self.prepared.targets, *multipliers[:1].tolist())
        return size if self.task.divides_by_margin else size / self.problem.violation_scale

    def offsets_and_margins(self, parts: Subproblems) -> tuple[np.ndarray, np.ndarray]:
        """Return (rho, r), each float64 (n_parts,).

        The decision value is (sum a K - rho) / r. The gradients of free variables give rho, as in
        LIBSVM's calculate_rho; variables with an unknown gradient are ignored. r is the margin for
        nu-SVC and 1 for C-SVC, epsilon-SVR and one-class. For nu-SVR it is -epsilon, and decision
        values are not divided by it.
        """
        problem, n_parts = parts.problem, len(parts.sizes)
        if problem.constraint_of is None:
            return np.zeros(n_parts), np.ones(n_parts)
        known = self.iterate.is_known[parts.members]
        sizes = np.where(known, np.abs(self.alpha[parts.members]), 0.0)
        largest = reduce_parts(np.maximum, sizes, parts.start)
        members, part = parts.members[known], np.repeat(np.arange(n_parts), parts.sizes)[known]
        # index of the equality constraint of each variable, over all parts; ascending from here on
        sums = part * problem.n_constraints + problem.constraint_of[members]
        if problem.n_constraints > 1:
            order = group_order(sums)
            members, part, sums = members[order], part[order], sums[order]
        alpha, gradient = self.alpha[members], self.gradient[members]
        lower, upper = problem.lower[members], problem.upper[members]
        # a warm start corrects alpha to satisfy the constraints, with rounding errors
        rounding = AT_BOUND * np.minimum(upper - lower, largest[part])
        can_rise, can_fall = alpha < upper - rounding, alpha > lower + rounding

        def of_sums(ufunc: np.ufunc, mask: np.ndarray, initial: float) -> np.ndarray:
            start = np.searchsorted(sums[mask], np.arange(n_parts * problem.n_constraints + 1))
            return reduce_parts(ufunc, gradient[mask], start, initial)

        # the mean gradient of free variables; without one, the middle of what bounded ones allow
        free = can_rise & can_fall
        n_free = np.bincount(sums[free], minlength=n_parts * problem.n_constraints)
        least = of_sums(np.fmin, can_rise, np.nan)
        most = of_sums(np.fmax, can_fall, np.nan)
        ends = np.where(np.isnan(least), most, least) + np.where(np.isnan(most), least, most)
        ends = np.nan_to_num(0.5 * ends)
        offsets = np.where(n_free, of_sums(np.add, free, 0.0) / np.maximum(n_free, 1), ends)
        if problem.n_constraints == 1:
            return offsets, np.ones(n_parts)
        first, second = offsets.reshape(n_parts, 2).T
        return 0.5 * (first + second), 0.5 * (first - second)

    def offsets_of_clusters(self, cluster_of: np.ndarray, n_clusters: int) -> np.ndarray:
        """Return rho (n_clusters, n_problems), given the cluster of every variable.

        A cluster whose rows are all of one class predicts that class. An unsolved cluster predicts
        the majority class of its rows. rho is NaN if a cluster has no rows of the problem.
        """
        formulation = self.formulation
        rho = np.full((formulation.n_problems, n_clusters), np.nan)
        part = formulation.problem_index.astype(np.int64) * n_clusters + cluster_of
        if formulation.has_constraints:
            numbers, sizes = group_sizes(part)
            parts = Subproblems.of_sizes(formulation.problem, group_order(part), sizes)
            rho.reshape(-1)[numbers] = self.offsets_and_margins(parts)[0]
        return self._deciding(rho.T, part)

    def _deciding(self, rho: np.ndarray, part: np.ndarray) -> np.ndarray:
        """Fill in rho for parts without a solution.

        Without a bias rho is 0. In any case, a part of one class predicts that class, and a part
        without support vectors predicts its majority class.
        """
        n_clusters, n_problems = rho.shape
        linear, size = self.formulation.problem.linear, n_clusters * n_problems
        counts, total = np.bincount(part, minlength=size), np.bincount(part, linear, size)
        has_support = np.zeros(size, bool)
        has_support[part[np.flatnonzero(self.alpha != 0)]] = True
        is_filled, rho_of_part = counts > 0, rho.T.reshape(-1)
        rho_of_part[is_filled & np.isnan(rho_of_part)] = 0.0
        is_constant = is_filled & ~has_support
        if self.task.is_classification:
            is_constant |= is_filled & (np.abs(total) == counts)  # one class
        rho_of_part[is_constant] = -total[is_constant] / counts[is_constant]
        return np.ascontiguousarray(rho_of_part.reshape(n_problems, n_clusters).T)

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
        self.engine.begin_phase(name)
        self.control.progress.begin(name, n_rows)

    def extend_gradient(self) -> None:
        """Compute the gradient of all variables from the known one.

        The gradient must be known for all support vectors, or for none of them.
        """
        start, state = time.perf_counter(), self.state
        if state.begun_with is None:  # else the step is resumed
            state.begun_with = np.flatnonzero(~self.iterate.is_known).astype(np.int32)
        others = state.begun_with
        self.begin_phase("gradient", len(others))
        evaluation = KernelEvalOptions(False, self.cutoff, self.control.stop)
        for batch, gradient, n_values in self.gradients_of(
            others, self.iterate.is_known, evaluation
        ):
            self.iterate.learn(batch, gradient)
            self.costs.counts["kernel_evaluations"] += n_values
        state.begun_with = None
        # what the cutoff omitted may add up
        left_out = self.cutoff.value * float(np.abs(self.alpha).sum())
        state.neglected = max(state.neglected, left_out)
        seconds = time.perf_counter() - start
        self.costs.seconds_by_phase["rebuild"] += seconds
        n_sv = int(np.count_nonzero(self.alpha))
        self.control.progress.end("gradient", seconds, n_sv)

    def sources(self) -> tuple[TermIndex, np.ndarray]:
        """Return the support vectors as terms of kernel sums, and their alpha."""
        support = np.flatnonzero(self.alpha != 0)
        return self.components.terms(support), self.alpha[support]

    def gradient_of(
        self,
        variables: np.ndarray,
        evaluation: KernelEvalOptions,
        sources: tuple[TermIndex, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, int]:
        """Compute the gradient of variables; kernel values between components count as 0.

        Also returns the number of kernel evaluations. Raises Stopped.
        """
        terms, alpha = sources or self.sources()
        sums, n_values = self.engine.sums(
            self.components.terms(variables), terms, alpha, evaluation
        )
        return sums - self.problem.linear[variables], n_values

    def gradients_of(
        self, variables: np.ndarray, is_done: np.ndarray, evaluation: KernelEvalOptions
    ) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        """Yield variables, their gradient and the number of kernel evaluations, batch by batch.

        Variables marked in `is_done`, bool (n_variables,), are skipped. Due checkpoints are stored
        between batches. Raises Stopped.
        """
        # blocks that fit into memory, and that end when a checkpoint may be due
        n_blocks, sources = 1 + len(variables) // self.engine.targets_at_once, self.sources()
        if self.control.checkpoint is not None:
            component = self.components.terms(variables).component
            n_sources = np.bincount(sources[0].component, minlength=component.max(initial=0) + 1)
            n_blocks += int(n_sources[component].sum() / BATCH_VALUES)
        # in row order: problems share the kernel values of a row
        is_one = self.formulation.n_problems == 1
        by_row = variables if is_one else variables[group_order(self.problem.rows[variables])]
        for block in np.array_split(by_row, n_blocks):
            batch = block[~is_done[block]] if is_one else np.sort(block[~is_done[block]])
            if len(batch):
                yield batch, *self.gradient_of(batch, evaluation, sources)
                if self.control.is_checkpoint_due:
                    self.control.save()

    def exact_gradients(
        self, variables: np.ndarray, is_done: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield variables and their gradient from float64 kernel values, as `gradients_of`."""
        evaluation = KernelEvalOptions(True, self.row_components.between, self.control.stop)
        for batch, gradient, n_values in self.gradients_of(variables, is_done, evaluation):
            self.costs.evaluations_by_phase["check"] += n_values
            yield batch, gradient

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
        # the caches get the memory that the copies of the largest part leave
        nbytes = self.memory_bytes - self.prepared.memory.unplanned(int(sizes.max(initial=0)))
        settings = SolverSettings(
            tolerance, state.budget.left, max(nbytes, 0), self.threads, self.cutoff,
            state.neglected, attainable, state.float64,
        )  # fmt: skip
        parts = Subproblems.of_sizes(self.problem, members, sizes)
        progress = CoreProgress(self.control)
        control = SolveControl(state.solve, self.control.stop, progress)
        try:
            solved = solve_parts(self.engine, parts, state.iterate, settings, control)
        finally:  # a stopped solve is counted after its state is stored
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


PART_VALUES = 3e4  # fixed cost of a subproblem, in kernel evaluations


class LevelSolver:
    """Solver of the clusters of one level.

    `division` partitions the rows of the formulation `whole` into the clusters. If no clusters
    overlap, the solver `in_place` of the whole formulation may solve them.

    Attributes
    ----------
    solver : solver of the level's formulation; a row in two clusters has variables in both.
    is_in_place : whether it is the solver of the whole formulation.
    predicts : whether the level may make the early model, by clusters with one solution each.
    is_solved : bool (n_clusters,).
    converged : bool (n_folds,), whether all solved clusters of a fold converged.
    objective : sum of the objectives of solved clusters.
    largest : number of rows of the largest subproblem, known once clusters are solved.
    """

    def __init__(
        self,
        prepared: Prepared,
        control: RunControl,
        whole: Formulation,
        division: LevelPartition,
        level: int,
        *,
        in_place: FormulationSolver | None = None,
        budget: Budget | None = None,
    ):
        self.whole, self.division, self.level = whole, division, level
        self.predicts = prepared.plan.predicts(level)
        self.is_in_place = in_place is not None
        self.solver = in_place or FormulationSolver(
            prepared, control, self.clustered.formulation, budget
        )
        self.formulation = self.solver.formulation
        self.is_solved = np.zeros(division.n_clusters, bool)
        self.converged = np.ones(whole.n_folds, bool)
        self.objective, self.largest = 0.0, 0
        self.rho: np.ndarray | None = None  # kept until the next solve
        self._counts_before = dict(self.solver.costs.counts)

    @cached_property
    def clustered(self) -> ClusteredFormulation:
        """The formulation with the copies of rows in two clusters; not used in place."""
        return self.division.clustered(self.whole)

    @cached_property
    def cluster(self) -> np.ndarray:
        """The cluster of each variable, int32."""
        if self.is_in_place:
            return self.division.cluster[self.formulation.problem.rows]
        return self.clustered.cluster

    def parts(self, variables: np.ndarray | slice) -> tuple[np.ndarray, int]:
        """Assign variables to subproblems.

        A subproblem is the part of a cluster in one component of rows. In a level that predicts,
        with equality constraints, it is a whole cluster, because a cluster has one rho there. In
        other levels each part has its own equality constraint. Returns subproblem indices, int64
        (n_variables,), and how many indices are reserved for each component of variables.
        """
        part, n_parts = self.cluster[variables], self.division.n_clusters
        if self.formulation.has_constraints and not self.predicts:
            row_component = self.solver.row_components.component
            part = part + n_parts * row_component[self.formulation.problem.rows[variables]]
            n_parts *= self.solver.row_components.n_components
        component = self.solver.components.component[variables]  # of rows, without constraints
        return component.astype(np.int64) * n_parts + part, n_parts

    @cached_property
    def part_sizes(self) -> tuple[np.ndarray, np.ndarray, int]:
        """The subproblems with variables, the number of these, and the number of `parts`."""
        part, n_of_component = self.parts(slice(None))
        return *group_sizes(part), n_of_component

    def solve_clusters(self, tolerance: float, chosen: np.ndarray | None = None) -> None:
        """Solve the chosen clusters that are not solved yet.

        `chosen` is bool (n_clusters,), or None for all clusters. Components that a finer level
        solved as a whole to this tolerance are skipped. Raises Stopped.
        """
        solver, state, components = self.solver, self.solver.state, self.solver.components
        parts, sizes, n_of_component = self.part_sizes
        # epsilon-SVR has two variables per row
        self.largest = int(sizes.max()) // (1 + self.solver.task.is_regression)
        is_open = state.whole_tolerance > tolerance
        if self.predicts:  # each of its clusters needs its own solution
            component, n_parts = group_sizes(parts // n_of_component)
            is_open[component[n_parts > 1]] = True
        is_wanted = ~self.is_solved if chosen is None else chosen & ~self.is_solved
        variables: np.ndarray | slice = slice(None)
        if not (is_open.all() and is_wanted.all()):
            variables = np.flatnonzero(is_open[components.component])
            variables = variables[is_wanted[self.cluster[variables]]]
        if not state.has_begun:
            state.has_begun, state.is_global = True, False
            solver.iterate.forget(variables)
        part, _ = self.parts(variables)
        members = group_order(part)
        if not isinstance(variables, slice):
            members = variables[members]
            parts, sizes = group_sizes(part)
        members = members.astype(np.int32)
        del part, variables  # frees 16 bytes per row while the level is solved
        self.rho = None
        solved = solver.solve(members, sizes, tolerance)
        self.objective += sum(solved["objective"].tolist())
        self.objective += self._objective_of_whole(tolerance)
        if self.is_in_place:
            component, n_parts = group_sizes(parts // n_of_component)
            state.whole_tolerance[component] = np.where(n_parts == 1, tolerance, np.inf)
        missed = parts[~solved["converged"]]
        self.converged[missed // (n_of_component * components.n_components_of_fold)] = False
        self.is_solved |= is_wanted

    def _objective_of_whole(self, tolerance: float) -> float:
        """Compute the objective of components that were solved as a whole before."""
        solver = self.solver
        is_whole = solver.state.whole_tolerance <= tolerance
        own = np.flatnonzero(is_whole[solver.components.component])
        alpha, gradient = solver.alpha[own], solver.gradient[own]
        return float(0.5 * np.dot(alpha, gradient - solver.problem.linear[own]))

    @cached_property
    def costs(self) -> np.ndarray:
        """Estimated cost of each cluster in kernel evaluations, float64 (n_clusters,).

        The cost of a subproblem is its squared size plus PART_VALUES.
        """
        parts, sizes, _ = self.part_sizes
        costs, n_clusters = sizes.astype(np.float64) ** 2 + PART_VALUES, self.division.n_clusters
        return np.bincount(parts % n_clusters, costs, n_clusters)

    def hand_over_counts(self, whole: FormulationSolver) -> None:
        """Add costs and iterations to the solver of the whole problem, and reset them here."""
        if self.is_in_place:
            return
        own = self.solver.state
        whole.costs.include(own.costs)
        whole.state.n_iterations += own.n_iterations
        own.n_iterations[:] = 0
        own.costs = Costs()

    def hand_over(self, whole: FormulationSolver) -> None:
        """Give alpha, costs and iterations to the solver of the whole problem."""
        whole.state.converged = self.converged & self.is_solved.all()
        if self.is_in_place:
            return
        self.hand_over_counts(whole)
        whole.iterate.alpha[:] = self.alpha_of_whole()
        whole.iterate.forget(np.arange(whole.problem.size))
        whole.state.is_global = False

    def level_report(self, seconds_training: float) -> LevelReport:
        """Return the report of the level; the caller fills in `n_sv`."""
        counts, before = self.solver.costs.counts, self._counts_before
        n_values = counts["kernel_evaluations"] - before["kernel_evaluations"]
        return LevelReport(
            level=self.level,
            n_clusters=self.division.n_clusters,
            largest_cluster=self.largest,
            seconds_clustering=self.division.seconds,
            seconds_training=seconds_training,
            n_sv=0,
            objective=self.objective,
            kernel_evaluations=n_values + self.division.kernel_evaluations,
            pairs_skipped=counts["pairs_skipped"] - before["pairs_skipped"],
            overlap=self.formulation.problem.size / max(self.whole.problem.size, 1),
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the state for a checkpoint, as arrays by name."""
        own = {"is_solved": self.is_solved, "objective": np.array([self.objective])}
        return self.solver.state.to_arrays() | own | {"all_converged": self.converged}

    def set_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Resume from the arrays of a checkpoint.

        If the clusters differ, raises one of the errors of RunState.set_arrays.
        """
        solver, budget = self.solver, self.solver.state.budget
        prepared, problem = solver.prepared, self.formulation.problem
        size = prepared.data.rows.n_samples, prepared.row_components.n_components
        solver.state.set_arrays(arrays, problem, *size)
        solver.state.budget, solver.is_warm = budget, True
        for name, known in (("is_solved", self.is_solved), ("all_converged", self.converged)):
            check_array(arrays[name], known.dtype, len(known))
        check_array(arrays["objective"], np.float64, 1)
        self.is_solved, self.converged = arrays["is_solved"], arrays["all_converged"]
        self.objective = float(arrays["objective"][0])

    def alpha_from(self, alpha: np.ndarray) -> np.ndarray:
        """Convert an alpha of the whole problem: a row has it in the nearer of two clusters."""
        own = alpha[self.clustered.origin]
        own[self.clustered.is_copy] = 0.0
        return own

    def alpha_of_whole(self) -> np.ndarray:
        """Return a feasible alpha of the whole problem, taken from each row's nearest cluster."""
        own = ~self.clustered.is_copy
        alpha = np.zeros(self.whole.problem.size)
        alpha[self.clustered.origin[own]] = self.solver.alpha[own]
        return self.whole.with_constraints(alpha) if self.clustered.is_copy.any() else alpha

    def offsets(self) -> np.ndarray:
        """Return the rho of each cluster, float64 (n_clusters, n_problems)."""
        if self.rho is None:
            self.rho = self.solver.offsets_of_clusters(self.cluster, self.division.n_clusters)
        return self.rho
