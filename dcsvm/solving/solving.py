"""A formulation that is being solved: its iterate over prepared rows, solves of parts of it, and
the whole problem solved to the tolerance and checked (conquer, the last step of Algorithm 1).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import group_order
from dcsvm.kernel.kernel_rows import Evaluation, Reach
from dcsvm.kernel.kernel_sums import Terms
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel
from dcsvm.model.precision import is_seen
from dcsvm.problem.formulation import Formulation
from dcsvm.solving.certificate import Certificate, Checked, Scope, check
from dcsvm.solving.control import Control
from dcsvm.solving.core_progress import CoreProgress
from dcsvm.solving.extraction import Solution, check_told
from dcsvm.solving.iterate import Iterate
from dcsvm.solving.parts import Effort, Parts
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.refinement import Refinement
from dcsvm.solving.report import TrainReport
from dcsvm.solving.run_state import RunState
from dcsvm.solving.units import Units

SOLVER_TOLERANCE = 0.9  # of the tolerance: leaves room for the float64 check; half costs the same
FIRST_GAP_TOLERANCE = 1e-2  # violation the first answer to a wanted gap is solved to
VALUES_AT_ONCE = 4 * 10**9  # kernel values of a gradient between two chances of a checkpoint


class Solving:
    """Fixed inputs, and the state that changes.

    `prepared` and `control` do not change; `state` does. `formulation` is what is solved, with its
    `problem`, `units` and `reach`. `converged` says of each fold whether its answer is as good as
    was asked for, `certificate` what is known of the solution, once something is. The solver's
    kernel values are `float64` once float32 ones were not enough; `rounding` is the largest error
    of a gradient of float32 ones that a check has seen.
    """

    def __init__(
        self, prepared: Prepared, control: Control | None = None,
        formulation: Formulation | None = None,
    ):  # fmt: skip
        self.prepared, self.control = prepared, control or Control()
        self.options, self.task, self.data = prepared.options, prepared.task, prepared.data
        self.work = prepared.work
        self.locality, self.threads = prepared.locality, prepared.threads
        self.take(formulation or prepared.formulation)
        self.solver_bytes = prepared.solver_bytes(self.formulation)
        self.converged = np.zeros(self.formulation.n_folds, bool)
        self.certificate: Certificate | None = None
        self.is_warm = self.is_near = self.float64 = False
        self.rounding = 0.0
        self.state = RunState(
            Iterate.of(self.formulation.alpha.copy()),
            whole_tolerance=np.full(self.units.n_units, np.inf),
            iterations_left=self.options.max_iterations,
            n_iterations=np.zeros(self.formulation.n_problems, np.int64),
            report=TrainReport(
                threads=self.threads,
                n_merged=prepared.row_map.n_merged,
                n_negligible=prepared.n_negligible,
                n_groups=self.locality.n_groups,
            ),
        )

    def take(self, formulation: Formulation) -> None:
        """Solve this formulation from now on."""
        self.formulation, self.problem = formulation, formulation.problem
        self.units = Units(formulation, self.locality)
        self.reach = self.locality.reach(coupled=formulation.has_sums)

    def begin_with(self, alpha: np.ndarray, gradient: np.ndarray | None = None) -> None:
        """Begin with a feasible alpha instead of where solvers begin; with its gradient where it is
        near the solution."""
        self.state.iterate = Iterate.of(alpha)
        self.is_warm, self.is_near = True, gradient is not None
        if self.is_near:
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
    def report(self) -> TrainReport:
        return self.state.report

    @property
    def solution(self) -> Solution:
        """The current alpha, as models are made of it."""
        return Solution(self.prepared, self.formulation, self.iterate)

    @property
    def size_of_values(self) -> float:
        """What decision values of a settled run are compared with."""
        multipliers = self.certificate.parts[0].multipliers
        return self.task.size_of_values(self.prepared.targets, *multipliers[:1])

    @property
    def needs_float64(self) -> bool:
        """Whether decision values of float32 kernel values would show their rounding."""
        if self.certificate is None:
            return False
        size = self.certificate.unit * self.size_of_values
        return is_seen(self.rounding, size, is_regression=self.task.is_regression)

    def set_seconds(self) -> None:
        seconds = time.perf_counter() - self.prepared.start
        self.report.seconds_train = self.state.seconds_before + seconds

    def save(self) -> None:
        """Store a checkpoint, if one is kept."""
        if self.control.checkpoint is not None:
            self.set_seconds()
            self.control.save(self.state, self.model_of_early)

    def model_of_early(self, early: EarlyModel) -> Model:
        """A model that can be stored: labels that are strings become numbers from 0."""
        labels = self.task.labels
        if labels.dtype.kind == "U":
            labels = np.arange(len(labels), dtype=np.float64)
        return Model(self.data.kernel, labels, None, early, svm_type=self.options.svm_type)

    def extend_gradient(self) -> None:
        """The gradient of all variables from that of those where it is known, which hold all
        support vectors or none."""
        start, state = time.perf_counter(), self.state
        others = np.flatnonzero(~self.iterate.is_known)
        self.control.progress.begin("gradient", len(others))
        for some, gradient, n_values in self.gradients_of(others, self.reach, float64=False):
            self.iterate.learn(some, gradient)
            self.report.counts["kernel_evaluations"] += n_values
        left_out = self.reach.value * float(np.abs(self.alpha).sum())
        state.neglected = max(state.neglected, left_out)
        seconds = time.perf_counter() - start
        self.report.phases["rebuild"] += seconds
        n_sv = int(np.count_nonzero(self.alpha))
        self.control.progress.end("gradient", seconds, n_sv)

    def sources(self) -> tuple[Terms, np.ndarray]:
        """The support vectors as kernel sums see them, and their alpha."""
        support = np.flatnonzero(self.alpha)
        return self.units.terms(support), self.alpha[support]

    def gradient_of(
        self,
        variables: np.ndarray,
        how: Evaluation,
        sources: tuple[Terms, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, int]:
        """Gradient of some variables, kernel values between groups left out; and the number of
        kernel values. Raises Stopped."""
        terms, alpha = sources or self.sources()
        sums, n_values = self.work.sums(self.units.terms(variables), terms, alpha, how)
        return sums - self.problem.linear[variables], n_values

    def gradients_of(
        self, variables: np.ndarray, reach: Reach, *, float64: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        """(some of the variables, their gradient, the number of kernel values) until all have one;
        in between checkpoints are stored, where they are kept. Raises Stopped."""
        n_blocks, sources = 1 + len(variables) // self.work.targets_at_once, self.sources()
        if self.control.checkpoint is not None:
            unit = self.units.terms(variables).unit
            n_sources = np.bincount(sources[0].unit, minlength=unit.max(initial=0) + 1)
            n_blocks += int(n_sources[unit].sum() / VALUES_AT_ONCE)
        # in the order of rows, whose kernel values problems share
        by_row = variables
        if self.formulation.n_problems > 1:
            by_row = variables[group_order(self.problem.rows[variables])]
        how = Evaluation(float64, reach, self.control.stop)
        for block in np.array_split(by_row, n_blocks):
            some = np.sort(block)
            yield some, *self.gradient_of(some, how, sources)
            if self.control.is_checkpoint_due:
                self.save()

    def exact_gradients(self, variables: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        how = self.locality.between
        for some, gradient, n_values in self.gradients_of(variables, how, float64=True):
            self.report.values["check"] += n_values
            yield some, gradient

    def conquer(self) -> None:
        """Solve the whole problem to the tolerance or gap and check it with float64 kernel values.

        The check leaves float64 values in the gradient wherever float32 ones could hide a
        violation; while there is one, the solver goes on from them, with float64 kernel values
        where that gains too little. Raises Stopped, and NoMargin where float64 does not tell a
        margin that solutions are divided by from none.
        """
        start, state = time.perf_counter(), self.state
        if not state.is_global:
            self.iterate.forget(np.arange(self.problem.size))
            state.is_global = True
        self.control.progress.begin("conquer", self.problem.size)
        tolerance = self.options.tolerance if self.options.gap is None else FIRST_GAP_TOLERANCE
        self.approach(tolerance)
        folds = list(range(self.formulation.n_folds))
        certificates: dict[int, Certificate] = {}
        rounds = Refinement(self.problem, state.checks)
        while True:
            members = np.concatenate([self.formulation.variables_of_fold(k) for k in folds])
            weight = self.weight(folds)
            if state.checked is None:
                wanted, attainable = (
                    SOLVER_TOLERANCE * tolerance,
                    rounds.attainable(tolerance, weight),
                )
                self.solve(members, self.units.sizes(members), wanted, attainable)
            certificates |= self.verify(folds, tolerance)
            state.checks += 1
            self.rounding = max(self.rounding, *(certificates[k].kernel_error for k in folds))
            folds = [k for k in folds if not self.is_reached(certificates[k])]
            if not folds or state.iterations_left == 0:
                break
            found = Certificate.of_all([certificates[k] for k in folds])
            if not rounds.goes_on(found, tolerance, weight):
                break
            self.float64 = rounds.float64
            if self.options.gap is not None:
                wanted = 0.5 * self.options.gap / max(certificates[k].relative_gap for k in folds)
                tolerance *= min(max(wanted, 0.01), 0.5)
        found = [certificates[k] for k in sorted(certificates)]
        if self.problem.divides_by_margin and state.iterations_left != 0:
            check_told([certificates[k].unit for k in folds], self.weight(folds))
        self.converged = np.array([self.is_reached(one) for one in found])
        self.settle(Certificate.of_all([part for one in found for part in one.parts]))
        self.report.converged = bool(self.converged.all())
        self.report.conquer_seconds = time.perf_counter() - start
        self.control.progress.end("conquer", self.report.conquer_seconds, self.solution.n_sv)

    def approach(self, tolerance: float) -> None:
        """What comes before the whole problem is solved to a tolerance: nothing."""

    def weight(self, folds: list[int]) -> float:
        """The largest sum of |alpha| of a problem of some folds."""
        parts = [part for k in folds for part in self.formulation.parts_of_fold(k)]
        return max((float(np.abs(self.alpha[part]).sum()) for part in parts), default=0.0)

    def is_reached(self, certificate: Certificate) -> bool:
        """Whether the answer is as good as was asked for."""
        if self.options.gap is None:
            return certificate.violation <= self.options.tolerance
        return certificate.relative_gap <= self.options.gap

    def verify(self, folds: list[int], tolerance: float) -> dict[int, Certificate]:
        """The certificates of some folds, solved to a tolerance; every check draws other random
        rows."""
        start = time.perf_counter()
        if self.state.checked is None:
            self.state.checked = Checked.nothing(self.problem.size)
        parts = [self.formulation.parts_of_fold(k) for k in folds]
        scope = Scope(
            n_rows=self.data.rows.n_samples,
            n_problems=self.formulation.n_problems,
            is_convex=self.data.kernel.is_positive_semidefinite,
            every_row=self.options.certify or self.data.kernel.name == "linear",
            neglected=self.state.neglected,
            between=self.locality.between,
            tolerance=tolerance,
            seed=self.options.seed + self.state.checks,
        )
        try:
            found = iter(
                check(
                    self.problem,
                    [part for own in parts for part in own],
                    self.iterate,
                    self.state.checked,
                    self.exact_gradients,
                    scope,
                )
            )
        finally:
            self.report.seconds_verify += time.perf_counter() - start
        self.state.checked = None
        return {
            k: Certificate.of_all([next(found) for _ in own])
            for k, own in zip(folds, parts, strict=True)
        }

    def solve(
        self, members: np.ndarray, sizes: np.ndarray, tolerance: float, attainable: float = 0.0
    ) -> list[dict]:
        """Solve parts of the problem, `sizes` of the variables `members`, in place. Raises Stopped
        where it is stopped before all are solved."""
        state = self.state
        budget = self.solver_bytes - self.prepared.memory.unplanned(int(sizes.max(initial=0)))
        effort = Effort(
            tolerance, state.iterations_left, max(budget, 0), self.threads, self.reach,
            state.neglected, attainable, self.float64,
        )  # fmt: skip
        parts = Parts.of_sizes(self.problem, members, sizes)
        solved = self.work.solve(
            parts, state.iterate, effort, CoreProgress(self), self.control.stop
        )
        state.neglected = max([state.neglected, *(one["neglected"] for one in solved)])
        self.report.add(solved)
        self.count_iterations(members, sizes, solved)
        if state.iterations_left >= 0:
            used = sum(one["iterations"] for one in solved) // self.formulation.n_folds
            state.iterations_left = max(0, state.iterations_left - used)
        if self.control.stop.is_requested and not all(one["converged"] for one in solved):
            raise _core.Stopped
        return solved

    def count_iterations(self, members: np.ndarray, sizes: np.ndarray, solved: list[dict]) -> None:
        """Count the iterations of parts for their problems."""
        for last, one in zip(np.cumsum(sizes)[sizes > 0] - 1, solved, strict=False):
            self.state.n_iterations[self.formulation.problem_of(members[last])] += one["iterations"]

    def settle(self, certificate: Certificate) -> None:
        """Keep what is known of the solution, and report it."""
        self.certificate = certificate
        self.report.take(certificate)
