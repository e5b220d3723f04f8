"""Prepare a run, and compute on its rows: kernel sums, the solver, spans, clusters.

Preparation merges, orders and encodes rows, and plans levels and memory. Several folds share one. A
matrix of a precomputed kernel is checked and made symmetric.

An Engine has the rows of a run and does all work on them: a LocalEngine in this process, a
RemoteEngine (remote_engine.py) on workers. Both have the same methods; a LocalEngine says what they
do. A run refers to rows only by index, so rows may be on other machines. Out-of-core rows, such as
rows of a mapped file, are copied into memory if a few of them are used repeatedly.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Union

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import page_by_page
from dcsvm.data.columns import TableEncoding
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.encodings import Choice, choose_encoding, encoded_row_bytes
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows, TermIndex, component_sums
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import RowComponents, find_components
from dcsvm.machine import threads_to_train
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.duplicates import RowMap, find_duplicates
from dcsvm.problem.folds import FOLDS_FOR_PROBABILITY
from dcsvm.problem.formulation import Formulation, Task, task_of
from dcsvm.problem.options import TrainOptions
from dcsvm.training.certificate import Iterate, SolverSettings, Subproblems
from dcsvm.training.memory import MemoryPlan, Plan, levels_asked, plan_levels, plan_memory
from dcsvm.training.report import Traffic
from dcsvm.training.state import SolveControl, digest_of

if TYPE_CHECKING:
    from dcsvm.training.remote_engine import RemoteEngine

Engine = Union["LocalEngine", "RemoteEngine"]

SMALL_MARGIN = (
    1e-4  # nu-SVC: truncation errors are small relative to violations if the margin exceeds this
)
ASYMMETRY = 1e-3  # tolerance relative to the largest value, for rounding of float32 sums
INDEFINITENESS = 1e-4  # relative tolerance of K(x, z)^2 <= K(x, x) K(z, z)
BLOCK = 1024  # rows and columns of a block of the matrix


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """Prepared run, before any solve.

    Attributes
    ----------
    start : start time of the preparation, seconds of perf_counter.
    row_map : map from input rows to merged and ordered rows.
    targets, sample_weight : float64, of the merged and ordered rows.
    formulation : problem of all rows.
    engine : the encoded rows, and the work on them.
    tree : cluster tree that determines the order of out-of-core rows, or None.
    """

    start: float
    options: TrainOptions
    task: Task
    memory: MemoryPlan
    row_map: RowMap
    row_components: RowComponents
    targets: np.ndarray
    sample_weight: np.ndarray
    formulation: Formulation
    engine: Engine
    plan: Plan
    tree: Tree | None = None

    @property
    def data(self) -> KernelRows:
        return self.engine.data

    @property
    def threads(self) -> int:
        return self.engine.data.threads

    @property
    def owns_rows(self) -> bool:
        """Whether training may change the rows."""
        return self.engine.owns_rows

    def solver_bytes(self, formulation: Formulation) -> int:
        """Return the memory in bytes for solvers of a formulation, with their arrays."""
        n_variables = formulation.problem.size
        if formulation is not self.formulation:
            n_variables += self.formulation.problem.size
        return self.memory.solver(n_variables) - self.data.copy_bytes

    def rows_for_model(self, numbers: np.ndarray) -> Rows:
        """Return rows for a model.

        Rows that training may change, and out-of-core rows, are copied only when training ends.
        """
        rows = self.data.rows
        if (self.owns_rows or self.data.is_in_file) and rows.columns is None:
            return ChosenRows(rows, numbers)  # type: ignore[return-value]  # until training ends
        return rows.take_for_model(numbers)

    @property
    def n_negligible(self) -> int:
        """Number of input rows with negligible weights."""
        return int(self.row_map.n_inputs_of_row[self.formulation.negligible_rows].sum())

    def describe(self) -> str:
        """Describe the run in one sentence."""
        rows, kernel, threads = self.data.rows, self.data.kernel, self.threads
        described = "kernel value" if kernel.is_precomputed else "feature"
        described += "s"[: rows.n_features != 1]
        remarks = f" ({self.row_map.n_merged} duplicates)" if self.row_map.n_merged else ""
        if n_negligible := self.n_negligible:
            remarks += f" ({n_negligible} with negligible weights)"
        sizes = np.diff(self.row_components.start)
        components = f", {len(sizes)} components, largest {sizes.max()} rows"
        return (
            f"{self.row_map.n_input_rows} rows of {rows.n_features} {described}{remarks}, "
            f"{kernel.describe()}, {'with a' if self.options.has_bias else 'no'} bias, "
            f"{self.plan.describe()}, {threads} thread{'s'[: threads > 1]}, "
            f"{self.memory.describe()}{components if len(sizes) > 1 else ''}"
        )


def prepare(
    engine: Engine,
    labels: np.ndarray,
    options: TrainOptions,
    sample_weight: np.ndarray | None = None,
    stop: _core.Stop | None = None,
) -> Prepared:
    """Prepare to train on rows with labels (n,), float64 or strings.

    `sample_weight` is float64 (n,), None for ones. Raises ValueError for invalid data or options,
    and Stopped.
    """
    start, stop = time.perf_counter(), stop or _core.Stop()
    _core.next_lap()
    n_rows = engine.rows.n_samples
    if len(labels) != n_rows:
        raise ValueError(f"{n_rows} rows have {len(labels)} labels")
    sample_weight = np.ones(len(labels)) if sample_weight is None else sample_weight
    task = task_of(labels, sample_weight, options)
    engine, kernel = engine.for_kernel(options)
    if options.gap is not None and not kernel.is_positive_semidefinite:
        raise ValueError(f"a duality gap cannot be stated for the kernel {kernel.describe()}")
    # equal rows share a variable
    row_map = engine.duplicates(task.targets, sample_weight, stop)
    targets, sample_weight = task.targets, row_map.sample_weight
    if len(row_map.first) < n_rows:
        targets = targets[row_map.first]
    formulation = task.formulate(targets, sample_weight)
    # errors of levels and memory come before the long work on rows
    plan = plan_levels(options, len(targets), int(np.diff(formulation.start).max()))
    memory = engine.plan_memory(options, formulation, plan)
    weight, tolerance = formulation.weight, negligible(formulation, options)
    if len(targets) < n_rows:
        engine = engine.reordered(row_map.first)
    stop.check()
    # rows are put into the order of their components, or of the clusters of a file
    row_components, tree = engine.find_components(kernel, weight, tolerance, stop), None
    if isinstance(engine, LocalEngine) and engine.rows.is_in_file and plan.deepest > 0:
        stop.check()
        row_components, tree = _in_order_of_clusters(
            engine, kernel, row_components, plan, options, stop
        )
    if row_components.is_ordered:
        del formulation
        engine = engine.reordered(row_components.order)
        row_map = row_map.reordered(row_components.order)
        targets, sample_weight = targets[row_components.order], row_map.sample_weight
        formulation = task.formulate(targets, sample_weight)
    stop.check()
    engine = engine.encoded(kernel, memory, formulation.problem.size)
    return Prepared(
        start=start,
        options=options,
        task=task,
        memory=memory,
        row_map=row_map,
        row_components=row_components,
        targets=targets,
        sample_weight=sample_weight,
        formulation=formulation,
        engine=engine,
        plan=plan,
        tree=tree
        and tree.of_rows_in(row_components.order, engine.data, {*plan.levels, *plan.choices}),
    )


MAX_COPIED = 0.5  # maximum share of a file's rows to copy into memory
MIN_PARTS = 8  # a mapped file is read page by page if n_rows / largest part exceeds this


@dataclass(eq=False)
class LocalEngine:
    """The rows of a run in this process, and the work on them.

    Attributes
    ----------
    owns_rows : whether rows are reordered in place.
    copy_bytes : size of a second copy of packed rows, in another storage format.
    chosen : encoding of packed rows for the kernel, or None.
    n_rounds : rounds of chunking so far.
    targets_at_once : recommended batch size of the targets of kernel sums.
    tree_of : class of the cluster tree over these rows.
    traffic : bytes moved between workers; None for local rows.
    """

    rows: Rows
    threads: int
    owns_rows: bool = False
    copy_bytes: int = 0
    chosen: Choice = None
    kernel_rows: KernelRows | None = None
    n_rounds: int = 0

    targets_at_once = 2**19
    tree_of = Tree
    traffic: ClassVar[Traffic | None] = None

    @staticmethod
    def of(rows: Rows, options: TrainOptions, *, consume: bool = False) -> LocalEngine:
        """Return an engine on rows; `consume` lets training change them."""
        threads = threads_to_train(options.threads, rows.work_with(rows.n_samples))
        threads = min(threads, max(rows.n_samples, 1))
        return LocalEngine(rows, _core.usable_threads(threads), consume)

    @property
    def data(self) -> KernelRows:
        """The rows with their kernel, once they are `encoded`."""
        assert self.kernel_rows is not None
        return self.kernel_rows

    @property
    def is_out_of_core(self) -> bool:
        """Whether a pass over all rows is slow."""
        return self.rows.is_in_file

    def with_gamma(self, options: TrainOptions, table: TableEncoding | None) -> TrainOptions:
        """Replace a gamma that is no number by its number for the rows. Raises OptionError."""
        return number_of_gamma(options, self.rows, table=table)

    @property
    def digest(self) -> str:
        """The digest of the rows, for checkpoints."""
        return digest_of(self.rows)

    def for_kernel(self, options: TrainOptions) -> tuple[LocalEngine, Kernel]:
        """Return an engine on rows that the kernel of the options accepts, and the kernel.

        `options.gamma` must be a number or None. Raises ValueError.
        """
        kernel = options.kernel_on(self.rows.n_features)
        if kernel.is_precomputed:
            rows, kernel = training_matrix(self.rows, kernel, self.threads)
            return replace(self, rows=rows), kernel
        if not self.rows.is_packed:
            return self, kernel
        chosen = choose_encoding(self.rows, kernel, self.threads, _core.NO_LIMIT)
        if chosen is None:
            packed, floats = self.rows.nbytes_in_memory, self.rows.as_floats(self.threads)
            return replace(self, rows=floats, copy_bytes=packed), kernel
        size = self.rows.n_samples * encoded_row_bytes(chosen, self.rows.n_features)
        return replace(self, copy_bytes=size, chosen=chosen), kernel

    def duplicates(
        self, targets: np.ndarray, sample_weight: np.ndarray, _stop: _core.Stop
    ) -> RowMap:
        """Find duplicates. Raises Stopped."""
        return find_duplicates(self.rows, targets, sample_weight, self.threads)

    def plan_memory(
        self, options: TrainOptions, formulation: Formulation, plan: Plan
    ) -> MemoryPlan:
        """Plan the memory for the levels of a plan. Raises ValueError."""
        n_members, n_places = 1.0, 0  # variables of levels for each variable, levels with overlap
        if options.early_overlap > 1 or options.chooses_early_level:
            deepest = max((plan.early_level or 0, *plan.choices))
            if deepest:  # a level search compares two levels
                n_members = options.early_overlap * (1 + (len(plan.choices) > 1))
            n_places = deepest if options.early_overlap > 1 else 0
        n_variables = int(int(formulation.start[-1]) * n_members)
        # after training, all folds are solved together; one-class needs none
        if options.probability and options.svm_type != "one_class":
            n_variables *= FOLDS_FOR_PROBABILITY
        largest = int(np.diff(formulation.start).max())
        if self.rows.is_in_file and levels_asked(options) != 0:
            largest = int(largest * MAX_COPIED)
        memory = plan_memory(
            self.rows, largest, n_variables, threads=self.threads, megabytes=options.cache_mb,
            n_places=n_places,
        )  # fmt: skip
        return replace(memory, data=memory.data + self.copy_bytes)

    def reordered(self, numbers: np.ndarray) -> LocalEngine:
        """Return an engine on the rows with these indices, in this order."""
        if self.owns_rows:
            return replace(self, rows=self.rows.reordered(numbers, self.threads))
        return replace(self, rows=self.rows.take(numbers))

    def find_components(
        self, kernel: Kernel, weight: float, tolerance: float, stop: _core.Stop
    ) -> RowComponents:
        """Find the components and the order of the rows. Raises Stopped."""
        return find_components(self.rows, kernel, weight, tolerance, self.threads, stop)

    def encoded(self, kernel: Kernel, memory: MemoryPlan, n_variables: int) -> LocalEngine:
        """Return the engine for a run of `n_variables` variables, with `data`."""
        threads, spare = min(self.threads, memory.threads), memory.spare(n_variables)
        data = KernelRows(
            self.rows, kernel, threads, coded=True, memory_bytes=spare, chosen=self.chosen
        )
        kernel.check_values(data.largest_squared_norm)
        return replace(self, kernel_rows=data)

    def begin_phase(self, name: str) -> None:
        """Name the tasks that follow by the phase of the run; there are none in this process."""

    def count_rounds(self, n_rounds: int) -> None:
        """Add rounds of chunking."""
        self.n_rounds += n_rounds

    def sums(
        self,
        targets: TermIndex,
        sources: TermIndex,
        alpha: np.ndarray,
        evaluation: KernelEvalOptions,
    ) -> tuple[np.ndarray, int]:
        """Compute kernel sums, as `component_sums`. Raises Stopped."""
        return component_sums(self.data, targets, sources, alpha, evaluation)

    def solve_together(
        self, parts: Subproblems, iterate: Iterate, settings: SolverSettings, control: SolveControl
    ) -> np.ndarray:
        """Solve parts in place, starting from the state of `control`.

        All rows of a part are in the memory of one process. Returns an array of SOLVE_REPORT, one
        entry per part; see `_core.solve_clusters`. After a stop, its `is_done` is false.
        """
        data = self.data
        if data.is_in_file and len(parts.members) <= MAX_COPIED * data.rows.n_samples:
            return self._solve_copy(parts, iterate, settings, control)
        is_divided = parts.sizes.max(initial=0) * MIN_PARTS < data.rows.n_samples
        with page_by_page(data.rows.dense if is_divided else None):
            return _core.solve_clusters(data.setup, data.points, parts, iterate, settings, control)

    def _solve_copy(
        self, parts: Subproblems, iterate: Iterate, settings: SolverSettings, control: SolveControl
    ) -> np.ndarray:
        """Solve parts on a copy of their rows in memory."""
        members = parts.members
        problem, rows = parts.problem.with_own_rows(members)
        data = self.data.part(rows)
        own = Subproblems(problem, parts.start, np.arange(len(members), dtype=np.int32))
        rest = max(settings.memory_bytes - data.rows.nbytes_in_memory, 0)
        settings = replace(settings, memory_bytes=rest)
        iterate_of_copy = iterate.take(members)
        if control.progress is not None:
            put_back = partial(iterate.put, members, iterate_of_copy)
            control.progress.call_before_saving(put_back)
        reports = _core.solve_clusters(
            data.setup, data.points, own, iterate_of_copy, settings, control
        )
        iterate.put(members, iterate_of_copy)
        return reports

    def spans(
        self, parts: Subproblems, alpha: np.ndarray, wanted: np.ndarray, n_exact: int, threads: int
    ) -> np.ndarray:
        """Compute squared spans, as `_core.squared_spans`."""
        return _core.squared_spans(
            self.data.setup, self.data.points, parts.problem, parts.start, parts.members, alpha,
            wanted, n_exact, threads,
        )  # fmt: skip


def new_tree(
    engine: Engine,
    options: TrainOptions,
    order: np.ndarray | None,
    group: np.ndarray | None = None,
) -> Tree:
    """Create a cluster tree over all rows of an engine; it has no levels yet.

    `order` is the spatial order of the rows, None if they have none. `group`, int (n,), is the
    component of each row.
    """
    kernel = Kernel("linear") if options.clustering == "kmeans" else engine.data.kernel
    sampling = {"sample_size": options.sample, "seed": options.seed}
    return engine.tree_of(engine.data, kernel, **sampling, order=order, group=group)


def prepare_rows(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    sample_weight: np.ndarray | None = None,
    stop: _core.Stop | None = None,
    *,
    consume: bool = False,
) -> Prepared:
    """Prepare to train on rows in this process, see `prepare`; `consume` lets it change them."""
    engine = LocalEngine.of(rows, options, consume=consume)
    return prepare(engine, labels, options, sample_weight, stop)


def _in_order_of_clusters(
    engine: LocalEngine, kernel: Kernel, components: RowComponents, plan: Plan,
    options: TrainOptions, stop: _core.Stop,
) -> tuple[RowComponents, Tree | None]:  # fmt: skip
    """Order rows of a file by their clusters, to read them sequentially. Raises Stopped.

    Also returns the cluster tree. Rows that are ordered otherwise, and kernel values, stay as they
    are, without a tree.
    """
    if components.is_ordered or kernel.is_precomputed:
        return components, None
    engine = replace(engine, kernel_rows=KernelRows(engine.rows, kernel, engine.threads))
    tree = new_tree(engine, options, components.order)
    plan.grow(tree, plan.deepest, options, stop)
    return replace(components, order=tree.order, is_ordered=True), tree


def negligible(formulation: Formulation, options: TrainOptions) -> float:
    """Return the absolute tolerance, of which truncation errors may use a small part."""
    problem, tolerance = formulation.problem, options.tolerance
    least = min(tolerance, options.gap or tolerance)
    return least * (SMALL_MARGIN if problem.divides_by_margin else problem.violation_scale)


def training_matrix(rows: Rows, kernel: Kernel, threads: int) -> tuple[Rows, Kernel]:
    """Check and symmetrize the kernel matrix of training rows.

    Rows without `columns` must be all rows of a square matrix. If K(x, z) and K(z, x) differ by
    rounding, both become their mean, in a copy. The kernel is returned as indefinite if K(x, x) < 0
    or K(x, z)^2 > K(x, x) K(z, z) for any rows. It is not detected
    if only larger submatrices are indefinite.
    Raises ValueError for a matrix that is not square or not symmetric.
    """
    rows = of_square(rows, threads)
    dense, columns = rows.features, rows.columns
    assert columns is not None  # of_square() sets them
    diagonal = dense[np.arange(rows.n_samples), columns].astype(np.float64)
    indefinite = bool(np.any(diagonal < 0))
    size, is_copy = np.sqrt(np.abs(diagonal)), False
    for first in range(0, rows.n_samples, BLOCK):
        for second in range(0, first + 1, BLOCK):
            a, b = slice(first, first + BLOCK), slice(second, second + BLOCK)
            values, other = _both_blocks(dense, columns, a, b, size.max() ** 2)
            if not np.array_equal(values, other):
                values = (values + other) / 2
                if not is_copy:
                    dense, is_copy = dense.copy(), True
                dense[a, columns[b]] = values
                dense[b, columns[a]] = values.T
            limit = (1 + INDEFINITENESS) * size[a, None]
            indefinite |= bool(np.any(np.abs(values) > limit * size[b]))
    rows = replace(rows, dense=dense) if is_copy else rows
    return rows, replace(kernel, indefinite=indefinite)


def of_square(rows: Rows, threads: int) -> Rows:
    """Set the `columns` of rows of a precomputed kernel.

    Rows without `columns` must be all rows of a square matrix. Raises ValueError otherwise.
    """
    if rows.columns is not None:
        return rows
    if rows.n_samples != rows.n_features:
        shape = f"{rows.n_samples} rows and {rows.n_features} columns"
        raise ValueError(f"a precomputed kernel matrix must be square, got {shape}")
    dense = rows.in_form_of(Rows(0, rows.n_features), threads).as_floats(threads)
    return replace(dense, columns=np.arange(rows.n_features, dtype=np.int32))


def _both_blocks(
    dense: np.ndarray, columns: np.ndarray, a: slice, b: slice, largest: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the block K(a, b) and the transposed block K(b, a) of a kernel matrix.

    `largest` is the largest value on the diagonal. Raises ValueError for an asymmetric matrix.
    """
    values = dense[a].take(columns[b], axis=1)
    other = dense[b].take(columns[a], axis=1).T
    difference = np.abs(values - other)
    if difference.max() > ASYMMETRY * max(largest, np.abs(values).max()):
        i, j = np.unravel_index(difference.argmax(), difference.shape)
        raise ValueError(
            f"the kernel matrix is not symmetric: row {a.start + i + 1} has {values[i, j]:g} with "
            f"row {b.start + j + 1}, which has {other[i, j]:g} with it"
        )
    return values, other
