"""A formulation that is being solved: its iterate over prepared rows, solves of parts of it, and
the whole problem solved to the tolerance and checked (conquer, the last step of Algorithm 1).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_sums import Terms, sums_of_units
from dcsvm.kernel.locality import Reach
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel
from dcsvm.problem.formulation import Formulation
from dcsvm.solving.certificate import Certificate, Checked, check
from dcsvm.solving.checkpoint import Checkpoint
from dcsvm.solving.iterate import Iterate
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.report import Progress, TrainReport
from dcsvm.solving.run_state import RunState

SOLVER_TOLERANCE = 0.9  # of the tolerance: leaves room for the float64 check
LARGEST_REFINEMENTS = 10
FIRST_GAP_TOLERANCE = 1e-2  # violation the first answer to a wanted gap is solved to
VALUES_AT_ONCE = 3 * 10**8  # kernel values of a gradient between two chances of a checkpoint
ROUNDING = 2.0**-46  # of the sum of |alpha|: a violation that float64 gradients can state


class _CoreProgress:
    """Passes the core's calls on, and stores checkpoints: the iterate is brought up to date when
    one is due, and stored at the call after that."""

    def __init__(self, run: Solving):
        self.run, self.stop = run, run.stop
        self.is_up_to_date = False
        self.error: BaseException | None = None

    def __call__(self, clusters_done, rows_done, violation, n_active, outer_steps) -> bool:
        self.run.progress.advance(rows_done, violation, n_active)
        if self.run.checkpoint is None or not self.run.checkpoint.is_due:
            return False
        if self.is_up_to_date:
            self.run.save()
        self.is_up_to_date = not self.is_up_to_date
        return self.is_up_to_date


class Solving:
    """Fixed inputs, and the state that changes.

    Rows are those that are left when equal ones are merged, in the order of the locality. Variables
    belong to problems (one against one), each to one row; a unit is a problem, or its part in one
    independent group of rows where no sum couples them; a family the units of all folds that have
    the same problem and group.
    """

    def __init__(
        self,
        prepared: Prepared,
        progress: Progress,
        formulation: Formulation | None = None,
        *,
        stop: _core.Stop | None = None,
        checkpoint: Checkpoint | None = None,
    ):
        self.prepared, self.progress = prepared, progress
        self.stop, self.checkpoint = stop or _core.Stop(), checkpoint
        self.options, self.task, self.threads = prepared.options, prepared.task, prepared.threads
        self.duplicates, self.locality = prepared.duplicates, prepared.locality
        self.values, self.copies, self.data = prepared.values, prepared.copies, prepared.data
        self.plan = prepared.plan
        self.formulation = formulation = formulation or prepared.formulation
        self.problem = formulation.problem
        self.solver_bytes = prepared.solver_bytes(formulation)
        progress.plan(prepared.describe())
        self.reach = self.locality.reach(coupled=formulation.has_sums)
        self.group = np.zeros(len(self.values), np.int32)  # of rows, coupled by no sum
        if not formulation.has_sums:
            self.group = self.locality.group
        n_groups = int(self.group[-1]) + 1
        self.unit = formulation.number * n_groups + self.group[self.problem.rows]
        self.n_units_of_fold = formulation.n_problems_of_fold * n_groups
        n_units = formulation.n_folds * self.n_units_of_fold
        self.units = np.searchsorted(self.unit, np.arange(n_units + 1))
        self.converged = np.zeros(formulation.n_folds, bool)
        self.is_warm = False
        self.state = RunState(
            Iterate.of(formulation.alpha.copy()),
            whole_tolerance=np.full(n_units, np.inf),
            rng=np.random.default_rng(self.options.seed),
            iterations_left=self.options.max_iterations,
            report=TrainReport(
                threads=self.threads,
                n_merged=prepared.n_merged,
                n_groups=self.locality.n_groups,
            ),
        )

    def begin_with(self, alpha: np.ndarray) -> None:
        """Begin with a feasible alpha instead of where solvers begin."""
        self.state.iterate = Iterate.of(alpha)
        self.is_warm = True

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
    def unit_in_groups(self) -> np.ndarray:
        """Of every variable the unit in whose sums it is: groups apart, coupled by a sum or not."""
        n_groups = self.locality.n_groups
        return self.formulation.number * n_groups + self.locality.group[self.problem.rows]

    def sizes_of(self, variables: np.ndarray) -> np.ndarray:
        """How many of these variables, ascending, are in each unit."""
        return np.diff(np.searchsorted(variables, self.units))

    def set_seconds(self) -> None:
        self.report.seconds_train = (
            self.state.seconds_before + time.perf_counter() - self.prepared.start
        )

    def save(self) -> None:
        """Store a checkpoint, if one is kept."""
        if self.checkpoint is not None:
            self.set_seconds()
            self.checkpoint.save(self.state, self.model_of_early)

    def model_of_early(self, early: EarlyModel) -> Model:
        kernel, labels = self.data.kernel, self.task.labels
        return Model(kernel, labels, None, early, svm_type=self.options.svm_type)

    def extend_gradient(self) -> None:
        """The gradient of all variables from that of those where it is known, which hold all
        support vectors or none."""
        start, state = time.perf_counter(), self.state
        others = np.flatnonzero(~self.iterate.is_known)
        for some, gradient, n_values in self.gradients_of(others, self.reach, float64=False):
            self.iterate.learn(some, gradient)
            self.report.counts["kernel_evaluations"] += n_values
        left_out = self.reach.value * float(np.abs(self.alpha).sum())
        state.neglected = max(state.neglected, left_out)
        self.report.phases["rebuild"] += time.perf_counter() - start

    def gradient_of(
        self,
        variables: np.ndarray,
        reach: Reach,
        *,
        float64: bool,
        stop: _core.Stop | None = None,
    ) -> tuple[np.ndarray, int]:
        """Gradient of some variables, from float64 or from float32 kernel values, those between
        groups and out of reach left out; and the number of kernel values. Raises Stopped."""
        support = np.flatnonzero(self.alpha)
        unit = self.unit_in_groups
        n_families = self.formulation.n_problems_of_fold * self.locality.n_groups
        terms = Terms(self.problem.rows, unit, unit % n_families)
        sums, n_values = sums_of_units(
            self.data,
            terms.take(variables),
            terms.take(support),
            self.alpha[support],
            reach,
            self.threads,
            float64=float64,
            stop=stop,
        )
        return sums - self.problem.linear[variables], n_values

    def gradients_of(
        self, variables: np.ndarray, reach: Reach, *, float64: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        """(some of the variables, their gradient, the number of kernel values) until all have one;
        in between checkpoints are stored, where they are kept. Raises Stopped."""
        n_blocks = 1
        if self.checkpoint is not None:
            unit = self.unit_in_groups
            n_sources = np.bincount(unit[self.alpha != 0], minlength=unit.max() + 1)
            n_blocks += int(n_sources[unit[variables]].sum() / VALUES_AT_ONCE)
        # in the order of rows, whose kernel values problems share
        by_row = variables[np.argsort(self.problem.rows[variables], kind="stable")]
        for block in np.array_split(by_row, n_blocks):
            some = np.sort(block)
            yield some, *self.gradient_of(some, reach, float64=float64, stop=self.stop)
            if self.checkpoint is not None and self.checkpoint.is_due:
                self.save()

    def exact_gradients(self, variables: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for some, gradient, _ in self.gradients_of(variables, self.locality.between, float64=True):
            yield some, gradient

    def conquer(self) -> None:
        """Solve the whole problem to the tolerance or gap and check it with float64 kernel values.

        The check leaves float64 values in the gradient wherever float32 ones could hide a
        violation; while there is one, the solver goes on from them.
        """
        start, state = time.perf_counter(), self.state
        if not state.is_global:
            self.iterate.forget(np.arange(self.problem.size))
            state.is_global = True
        self.progress.begin("conquer", self.problem.size)
        tolerance = self.options.tolerance if self.options.gap is None else FIRST_GAP_TOLERANCE
        folds = list(range(self.formulation.n_folds))
        certificates: dict[int, Certificate] = {}
        for attempt in range(LARGEST_REFINEMENTS):
            members = np.concatenate([self.formulation.variables_of_fold(k) for k in folds])
            attainable = ROUNDING * float(np.abs(self.alpha[members]).sum()) / len(folds)
            if state.checked is None:
                self.solve(
                    members, self.sizes_of(members), max(SOLVER_TOLERANCE * tolerance, attainable)
                )
            certificates |= self.verify(folds, attempt)
            folds = [k for k in folds if not self.is_reached(certificates[k])]
            if not folds or state.iterations_left == 0 or tolerance < attainable:
                break
            if self.options.gap is not None:
                wanted = 0.5 * self.options.gap / max(certificates[k].relative_gap for k in folds)
                tolerance *= min(max(wanted, 0.01), 0.5)
        found = [certificates[k] for k in sorted(certificates)]
        self.converged = np.array([self.is_reached(one) for one in found])
        self.settle(Certificate.of_all(found), [part for one in found for part in one.parts])
        self.report.converged = bool(self.converged.all())
        self.report.conquer_seconds = time.perf_counter() - start
        self.progress.end("conquer", self.report.conquer_seconds, int(np.count_nonzero(self.alpha)))

    def is_reached(self, certificate: Certificate) -> bool:
        """Whether the answer is as good as was asked for."""
        if self.options.gap is None:
            return certificate.violation <= self.options.tolerance
        return certificate.relative_gap <= self.options.gap

    def verify(self, folds: list[int], attempt: int) -> dict[int, Certificate]:
        """The certificates of some folds; every attempt draws other random rows."""
        start = time.perf_counter()
        if self.state.checked is None:
            self.state.checked = Checked.nothing(self.problem.size)
        parts = [self.formulation.parts_of_fold(k) for k in folds]
        found = iter(
            check(
                self.problem,
                [part for own in parts for part in own],
                self.alpha,
                self.gradient,
                self.state.checked,
                self.exact_gradients,
                self.data,
                self.locality,
                neglected=self.state.neglected,
                every_row=self.options.certify,
                n_problems=self.formulation.n_problems,
                seed=self.options.seed + attempt,
            )
        )
        self.state.checked = None
        self.report.seconds_verify += time.perf_counter() - start
        return {
            k: Certificate.of_all([next(found) for _ in own])
            for k, own in zip(folds, parts, strict=True)
        }

    def solve(self, members: np.ndarray, sizes: np.ndarray, tolerance: float) -> list[dict]:
        """Solve parts of the problem, `sizes` of the variables `members`, in place. Raises Stopped
        where it is stopped before all are solved."""
        state = self.state
        solved = _core.solve_clusters(
            self.data.setup,
            self.data.points,
            self.problem,
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            members,
            state.iterate,
            tolerance,
            state.iterations_left,
            self.solver_bytes,
            self.threads,
            _CoreProgress(self),
            self.reach,
            state.neglected,
            self.stop,
        )
        state.neglected = max([state.neglected, *(one["neglected"] for one in solved)])
        self.report.add(solved)
        if state.iterations_left >= 0:
            used = sum(one["iterations"] for one in solved) // self.formulation.n_folds
            state.iterations_left = max(0, state.iterations_left - used)
        if self.stop.is_requested and not all(one["converged"] for one in solved):
            raise _core.Stopped
        return solved

    def settle(self, certificate: Certificate, parts: list[Certificate]) -> None:
        """Report what is known of the solution, `parts` of its problems."""
        self.report.objective = certificate.objective
        self.report.violation = certificate.violation
        self.report.duality_gap = certificate.gap
        self.report.relative_gap = certificate.relative_gap
        self.report.kernel_error = certificate.kernel_error
        self.report.n_checked = certificate.n_checked
        self.certificates = parts
