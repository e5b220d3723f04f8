"""Everything of a run that no solution has touched: rows merged, put in the order of the locality
and encoded, the levels to run, the memory. The runs of several folds share it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.locality import Locality, find_locality
from dcsvm.kernel.precomputed import training_matrix
from dcsvm.kernel.small_work import threads_to_train
from dcsvm.problem.duplicates import find_duplicates
from dcsvm.problem.folds import FOLDS_FOR_PROBABILITY
from dcsvm.problem.formulation import Formulation
from dcsvm.problem.options import OptionError, TrainOptions
from dcsvm.problem.row_map import RowMap
from dcsvm.problem.task import Task, task_of
from dcsvm.solving.clusters import grow, new_tree
from dcsvm.solving.memory import MemoryPlan, plan_memory
from dcsvm.solving.plan import Plan, early_plan, make_plan
from dcsvm.solving.work import MOST_COPIED, Work

SMALL_MARGIN = 1e-4  # of nu-SVC: what is left out stays small against violations over that margin


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """`data` has the rows that are solved, see RowMap, and `work` is done on them; `targets` and
    `sample_weight` float64 are theirs, and `formulation` is the problem of all of them. `start` is
    the time when preparing began, in seconds of the clock perf_counter. Where it `owns_rows` nobody
    else uses them. Rows in a mapped file are in the order of the clusters of a `tree`."""

    start: float
    options: TrainOptions
    task: Task
    threads: int
    memory: MemoryPlan
    owns_rows: bool
    row_map: RowMap
    locality: Locality
    targets: np.ndarray
    sample_weight: np.ndarray
    formulation: Formulation
    data: KernelRows
    work: Work
    plan: Plan
    tree: Tree | None = None

    def solver_bytes(self, formulation: Formulation) -> int:
        """Memory for solvers of its problems, with all arrays that go with these."""
        n_variables = formulation.problem.size
        if formulation is not self.formulation:
            n_variables += self.formulation.problem.size
        return self.memory.solver(n_variables) - self.data.copy_bytes

    def rows_for_model(self, numbers: np.ndarray) -> Rows | ChosenRows:
        """Rows for a model, which shares them where nobody else uses them; those of a file are
        copied when training ends."""
        rows = self.data.rows
        if (self.owns_rows or self.data.is_in_file) and rows.columns is None:
            return ChosenRows(rows, numbers)
        return rows.take_for_model(numbers)

    @property
    def n_negligible(self) -> int:
        """How many given rows have weights that are too small to count."""
        return int(self.row_map.n_given_of_row[self.formulation.negligible_rows].sum())

    def describe(self) -> str:
        """What will be done, in one sentence."""
        rows, kernel, threads = self.data.rows, self.data.kernel, self.threads
        described = "kernel values" if kernel.is_precomputed else "features"
        repeat = f" ({self.row_map.n_merged} repeat others)" if self.row_map.n_merged else ""
        if n_negligible := self.n_negligible:
            repeat += f" ({n_negligible} of weights too small to count)"
        sizes = np.diff(self.locality.start)
        groups = f", {len(sizes)} independent groups of up to {sizes.max()} rows"
        return (
            f"{self.row_map.n_given} rows of {rows.n_features} {described}{repeat}, "
            f"{kernel.describe()}, "
            f"{self.plan.describe()}, {threads} thread{'s'[: threads > 1]}, "
            f"{self.memory.describe()}{groups if len(sizes) > 1 else ''}"
        )


def prepare(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    sample_weight: np.ndarray | None = None,
    *,
    consume: bool = False,
    stop: _core.Stop | None = None,
) -> Prepared:
    """Prepare to train on rows with labels (n,), float64 or strings, and weights float64 (n,), None
    is one each; ValueError for what does not fit. `consume`: nobody else uses the rows, they are
    put in order where they are. Raises Stopped."""
    start, stop = time.perf_counter(), stop or _core.Stop()
    if len(labels) != rows.n_samples:
        raise ValueError(f"{rows.n_samples} rows have {len(labels)} labels")
    sample_weight = np.ones(len(labels)) if sample_weight is None else sample_weight
    task = task_of(labels, sample_weight, options)
    threads = _core.usable_threads(
        min(threads_to_train(options.threads, rows), max(rows.n_samples, 1))
    )
    rows, kernel = _with_kernel(rows, options, threads)
    duplicates = find_duplicates(rows, task.targets, sample_weight)
    targets, sample_weight = task.targets[duplicates.first], duplicates.sample_weight
    formulation = task.formulate(targets, sample_weight)
    memory = _memory_of(rows, options, formulation, len(targets), threads)
    weight, budget = formulation.weight, negligible(formulation, options)
    plan = plan_of(options, formulation, len(targets))
    formulation = None  # made again for the order that rows will have
    rows = rows if len(targets) == rows.n_samples else _ordered(rows, duplicates.first, consume)
    stop.check()
    locality = find_locality(rows, kernel, weight, budget, threads, stop)
    stop.check()
    locality, tree = _in_file(rows, kernel, locality, options, plan, threads, stop)
    if locality.is_ordered:
        targets, sample_weight = targets[locality.order], sample_weight[locality.order]
        rows = _ordered(rows, locality.order, consume)
    formulation = task.formulate(targets, sample_weight)
    threads = min(threads, memory.threads)
    spare = memory.spare(formulation.problem.size)
    stop.check()
    data = KernelRows(rows, kernel, threads, coded=True, memory_bytes=spare)
    kernel.check_values(data.largest_squared_norm)
    return Prepared(
        start=start,
        options=options,
        task=task,
        threads=threads,
        memory=memory,
        owns_rows=consume,
        row_map=RowMap(duplicates, locality.order, len(labels)),
        locality=locality,
        targets=targets,
        sample_weight=sample_weight,
        formulation=formulation,
        data=data,
        work=Work(data),
        plan=plan_of(options, formulation, rows.n_samples),
        tree=tree and tree.of_rows_in(locality.order, data, {*plan.levels, *plan.choices}),
    )


def kernel_of(options: TrainOptions, n_features: int) -> Kernel:
    """The kernel of the options on rows of so many features."""
    gamma = 1.0 / max(n_features, 1) if options.gamma is None else options.gamma
    return Kernel(options.kernel, gamma, options.coef0, options.degree)


def negligible(formulation: Formulation, options: TrainOptions) -> float:
    """What may be left out of gradients is a small part of this: the tolerance, in no unit."""
    problem, tolerance = formulation.problem, options.tolerance
    least = min(tolerance, options.gap or tolerance)
    return least * (SMALL_MARGIN if problem.divides_by_margin else problem.unit)


def _with_kernel(rows: Rows, options: TrainOptions, threads: int) -> tuple[Rows, Kernel]:
    """The rows to train on and the kernel of the options on them."""
    kernel = kernel_of(options, rows.n_features)
    if kernel.is_precomputed:
        rows, kernel = training_matrix(rows, kernel, threads)
    if options.gap is not None and not kernel.is_positive_semidefinite:
        raise ValueError(f"a duality gap cannot be stated for the kernel {kernel.describe()}")
    return rows, kernel


def _in_file(
    rows: Rows,
    kernel: Kernel,
    locality: Locality,
    options: TrainOptions,
    plan: Plan,
    threads: int,
    stop: _core.Stop,
) -> tuple[Locality, Tree | None]:
    """The locality of dense rows in a mapped file, and the clusters of all levels: in their order
    what is read together is near in the file. Others stay as they are. Raises Stopped."""
    is_open = not (locality.is_ordered or kernel.is_precomputed) and plan.deepest > 0
    if not (is_open and rows.is_mapped and rows.is_dense):
        return locality, None
    tree = new_tree(Work(KernelRows(rows, kernel, threads)), options, locality.order)
    grow(tree, plan.deepest, plan, options, stop)
    return replace(locality, order=tree.order, is_ordered=True), tree


def _ordered(rows: Rows, order: np.ndarray, consume: bool) -> Rows:
    return rows.reordered(order) if consume else rows.take(order)


def _memory_of(
    rows: Rows, options: TrainOptions, formulation: Formulation, n_rows: int, threads: int
) -> MemoryPlan:
    """The plan for rows as they were read, of which `n_rows` are left when equal ones are
    merged."""
    is_in_file, n_members, n_places = rows.is_mapped and rows.is_dense, 1.0, 0
    if options.early_overlap > 1 or options.chooses_early_level:
        plan = plan_of(options, formulation, n_rows)
        deepest = max((plan.early_level or 0, *plan.choices))
        if deepest:  # two levels are compared where there is a choice
            n_members = options.early_overlap * (1 + (len(plan.choices) > 1))
        n_places = deepest if options.early_overlap > 1 else 0
    return plan_memory(
        rows,
        formulation.start,
        n_folds=FOLDS_FOR_PROBABILITY if options.probability else 0,
        n_members=n_members,
        n_places=n_places,
        threads=threads,
        megabytes=options.cache_mb,
        solved_share=MOST_COPIED if is_in_file and _levels_asked(options) != 0 else 1.0,
    )


def _levels_asked(options: TrainOptions) -> int | None:
    """None: those that pay. Of a linear kernel none do, since its solver needs no kernel values;
    there are some where early prediction asks for them."""
    is_early = options.early or options.early_level is not None
    if options.levels is None and options.kernel == "linear" and not is_early:
        return 0
    return options.levels if options.has_levels else 0


def plan_of(options: TrainOptions, formulation: Formulation, n_rows: int) -> Plan:
    """The levels of a run on so many rows. Raises OptionError where there is none for `early`."""
    if options.early and (options.levels is None or options.chooses_early_level):
        plan = early_plan(n_rows, _levels_asked(options), options.branching, options.early_level)
    else:
        largest = int(np.diff(formulation.start).max())
        plan = make_plan(
            min(largest, n_rows),
            _levels_asked(options),
            options.branching,
            options.early_level,
        )
    if options.early and plan.deepest == 0:
        raise OptionError("early", f"needs a level, and {n_rows} rows are too few for one")
    return plan
