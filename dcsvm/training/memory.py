"""Plan the levels and the memory of training; refuse runs that exceed the usable memory.

Training uses at most the memory of the input rows, the memory budget (-m), 64 bytes per row, and
200 MB. The 200 MB hold the program, current blocks, and arrays of variables up to a limit. The
budget covers the rest: caches, matrices and working copies of all threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.sources import MAX_PARTS
from dcsvm.machine import default_cache_mb, usable_memory
from dcsvm.problem.options import TREES, OptionError, TrainOptions

# minimum rows per cluster, on average, at the finest default level. On 20,000 to 50,000 rows, 500
# takes 1.1 times as long and 2000 takes 0.8 to 1.0 times: examples/bench/README.md, Constants
DEFAULT_MEAN_CLUSTER = 1000
LEVEL_STEP = 2  # step from the early level to finer default levels; 1 and 4 cost the same
# coarsest default level. Level l with support vectors S_l costs about 3.5 |S_l| n / branching^l
# kernel evaluations; 4 clusters cost nearly the same as the whole problem:
# examples/bench/README.md (Levels) has the savings
COARSEST = 2
# Numbers of rows. Below SEARCHED_FROM rows, a search for the early level would cost more than the
# exact model. The early level is then 2 if its clusters average at least UNSEARCHED_MEAN_CLUSTER
# rows, else 1.
SEARCHED_FROM, UNSEARCHED_MEAN_CLUSTER = 50_001, 3000
MIN_MEAN_CLUSTER = 100  # rows; levels with a smaller mean cluster are skipped


@dataclass(frozen=True)
class Plan:
    """Levels of a run.

    Attributes
    ----------
    levels : levels to run, finest first.
    skipped : requested levels with too small clusters.
    early_level : one of `levels`, or None if there are none.
    branching : number of children of a node.
    choices : candidates for the early level, finest first; `levels` is then empty.
    """

    levels: tuple[int, ...]
    skipped: tuple[int, ...]
    early_level: int | None
    branching: int
    choices: tuple[int, ...] = ()

    @property
    def deepest(self) -> int:
        """The finest level that may run; 0 without levels."""
        return max((*self.levels, *self.choices), default=0)

    def predicts(self, level: int) -> bool:
        """Return whether a level may make the early model."""
        return level == self.early_level or level in self.choices

    def is_alone(self, level: int, options: TrainOptions) -> bool:
        """Return whether a level is partitioned directly, without a tree.

        A level of more than MAX_PARTS clusters exceeds one kernel product and uses the tree.
        """
        return options.clustering not in TREES and self.branching**level <= MAX_PARTS

    def not_alone(self, options: TrainOptions) -> list[int]:
        """Return the levels that use a tree though the options ask for another clustering."""
        if options.clustering in TREES:
            return []
        return [level for level in self.levels if not self.is_alone(level, options)]

    def grow(
        self, tree: Tree, level: int, options: TrainOptions, stop: _core.Stop | None = None
    ) -> None:
        """Grow a tree to this level. Raises Stopped."""
        finest_early = max(self.choices, default=self.early_level or 0)
        for next_level in range(len(tree.splits) + 1, level + 1):
            has_second = options.early_overlap > 1 and next_level <= finest_early
            tree.grow(self.branching**next_level, stop, second=has_second)

    def describe(self) -> str:
        if self.choices:
            coarsest, finest = (self.branching ** self.choices[end] for end in (-1, 0))
            text = f"{coarsest} to {finest} clusters (early level to be chosen)"
        elif not self.levels:
            text = "no clusters"
        else:
            counts = ", ".join(str(self.branching**level) for level in self.levels)
            names = ", ".join(map(str, self.levels))
            is_one = self.levels == (self.early_level,)
            early = "" if is_one else f"; early level {self.early_level}"
            text = f"{counts} clusters (level{'s'[: len(self.levels) > 1]} {names}{early})"
        if self.skipped:
            first, last = min(self.skipped), max(self.skipped)
            names = f"level {first}" if first == last else f"levels {first} to {last}"
            text += f", {names} skipped: fewer than {MIN_MEAN_CLUSTER} rows per cluster"
        return text


def needs_rows(branching: int, n_rows: int) -> str:
    """Say why so few rows have no early model."""
    return f"needs at least {branching * MIN_MEAN_CLUSTER} different rows, got {n_rows}"


def levels_asked(options: TrainOptions) -> int | None:
    """Return the requested number of levels, None for the default.

    For a linear kernel the default is 0, because the linear solver needs no kernel values. Early
    prediction needs levels and has the usual default.
    """
    is_early = options.early or options.early_level is not None
    if options.levels is None and options.kernel_type.is_linear and not is_early:
        return 0
    return options.levels if options.has_levels else 0


def plan_levels(options: TrainOptions, n_rows: int, largest: int) -> Plan:
    """Plan the levels of a run on `n_rows` rows, with a problem of at most `largest` variables.

    Raises OptionError if `early` is set and the rows are too few for a level.
    """
    if options.early and (options.levels is None or options.chooses_early_level):
        plan = early_plan(options, n_rows)
    else:
        assert not isinstance(options.early_level, str)
        asked, branching = levels_asked(options), options.branching
        plan = make_plan(min(largest, n_rows), asked, branching, options.early_level)
        if options.early and plan.early_level is not None:  # the run ends there
            plan = replace(plan, levels=plan.levels[: plan.levels.index(plan.early_level) + 1])
    if options.early and plan.deepest == 0:
        raise OptionError("early", needs_rows(options.branching, n_rows))
    return plan


def make_plan(n_samples: int, levels: int | None, branching: int, early_level: int | None) -> Plan:
    """Plan the levels from `levels` down to 1; level l has branching**l clusters.

    If `levels` is None, plan the early level, every second finer level, and the coarsest default
    level. The module constants set the limits. Raises ValueError if `early_level` does not exist.
    """
    if levels is None:
        deepest = _deepest(n_samples, branching, DEFAULT_MEAN_CLUSTER)
        if early_level is not None:
            finest = _deepest(n_samples, branching, MIN_MEAN_CLUSTER)
            _check_exists(early_level, tuple(range(1, finest + 1)))
            deepest = max(deepest, early_level)
        wanted = deepest
    else:
        deepest = min(levels, _deepest(n_samples, branching, MIN_MEAN_CLUSTER))
        wanted = levels
    # levels with too small clusters are skipped, and reported
    kept = tuple(range(deepest, 0, -1))
    skipped = tuple(range(wanted, deepest, -1))
    if early_level is not None:
        _check_exists(early_level, kept)
    if early_level is None and kept:
        early_level = min(3, deepest)
    # by default only levels that save time: every other one, and one coarse one
    if levels is None and kept:
        coarsest = min(COARSEST, deepest)
        assert early_level is not None
        wanted_levels = {coarsest, *range(early_level, deepest + 1, LEVEL_STEP)}
        kept = tuple(level for level in kept if level in wanted_levels)
    return Plan(kept, skipped, early_level, branching)


def early_plan(options: TrainOptions, n_rows: int) -> Plan:
    """Plan the levels of an early model of `n_rows` different rows.

    Use the requested early level; for few rows there is a default. Otherwise all levels with large
    enough clusters are candidates. Raises ValueError if the requested level does not exist.
    """
    levels, branching, early_level = levels_asked(options), options.branching, options.early_level
    deepest = _deepest(n_rows, branching, MIN_MEAN_CLUSTER)
    wanted = deepest if levels is None else levels
    kept = tuple(range(min(deepest, wanted), 0, -1))
    if early_level is None and levels is None and kept and n_rows < SEARCHED_FROM:
        early_level = 2 if n_rows >= branching**2 * UNSEARCHED_MEAN_CLUSTER else 1
    if not isinstance(early_level, int):
        return Plan((), tuple(range(wanted, deepest, -1)), None, branching, kept)
    _check_exists(early_level, kept)
    return Plan((early_level,), (), early_level, branching)


def _check_exists(early_level: int, levels: tuple[int, ...]) -> None:
    if early_level not in levels:
        known = f"levels are 1 to {max(levels)}" if levels else "there are no levels"
        raise ValueError(f"early level {early_level} does not exist: {known}")


def _deepest(n_samples: int, branching: int, mean_cluster: int) -> int:
    level = 0
    while branching ** (level + 1) * mean_cluster <= n_samples:
        level += 1
    return level


MB = 1_000_000
ROW = 64  # bytes per row
PROGRAM = 200 * MB
ARRAYS = 110 * MB  # share of PROGRAM for arrays of variables
PLACE = 16  # bytes to store the two clusters of a row at one level
VARIABLE = 100  # bytes per variable outside the solver
SCRATCH_SHARE = 8  # scratch memory of threads is at most the remaining budget divided by this
MAX_SCRATCHES = 64
DEFAULT_CACHE = 1000  # MB per task; does not depend on the workers, because it affects results
COPIES = 3  # copies of a worker's share of the rows: as read, assembled, in tasks


@dataclass(frozen=True)
class MemoryPlan:
    """Memory of a run, in bytes: of this process, or of each of `n_workers` workers.

    Attributes
    ----------
    data : memory of the rows.
    rest : maximum of all other memory.
    used : part of `rest` for caches and working copies; counts against the budget.
    budget : memory budget; on workers, that of a task.
    threads : maximum number of threads, of all workers together.
    free : size of arrays of variables that does not count against the budget.
    solver_arrays, matrices : arrays and matrices of a solver.
    scratch : scratch memory of all threads.

    On workers the last three are 0, because each task plans its own solvers. The client then has
    the budget of a task beside the arrays of its variables.
    """

    data: int
    rest: int
    used: int
    budget: int
    threads: int
    free: int = 0
    solver_arrays: int = 0
    matrices: int = 0
    scratch: int = 0
    n_workers: int = 0

    def solver(self, n_variables: int) -> int:
        """Return the bytes for solvers and their arrays, given the number of variables."""
        if self.n_workers:
            return self.budget
        beyond = max(0, VARIABLE * n_variables + self.solver_arrays - self.free)
        return max(self.budget - self.scratch - beyond + self.solver_arrays, 0)

    def unplanned(self, largest: int) -> int:
        """Return the bytes beyond the plan that a subproblem of `largest` variables needs."""
        return 0 if self.n_workers else max(_core.array_bytes(largest) - self.solver_arrays, 0)

    def spare(self, n_variables: int) -> int:
        """Return the bytes for caches and copies of rows."""
        return max(self.solver(n_variables) - self.solver_arrays - self.matrices, 0)

    def most_variables(self, n_variables: int) -> int:
        """Return how many more variables leave half of the spare memory free."""
        unused = max(0, self.free - self.solver_arrays - VARIABLE * n_variables)
        return (unused + self.spare(n_variables) // 2) // VARIABLE

    def describe(self) -> str:
        """Format the plan for the first line of progress."""
        rows = self.data + self.rest - self.used - PROGRAM
        if not self.n_workers:
            return described(rows, self.used)
        workers = "1 worker" if self.n_workers == 1 else f"{self.n_workers} workers"
        return f"{workers}, {described(rows, self.used, ' each')}"


def described(rows: int, caches: int, each: str = "") -> str:
    """Format the memory of a process; its parts in MB, rounded up, add up to the sum."""
    parts = [mb(PROGRAM), mb(rows), mb(caches)]
    return (
        f"at most {sum(parts)} MB of memory{each} ({parts[0]} for the program, {parts[1]} for the "
        f"rows, {parts[2]} for caches and working copies)"
    )


def plan_memory(
    rows: Rows,
    largest: int,
    n_variables: int,
    *,
    threads: int,
    megabytes: int | None,
    n_places: int = 0,
) -> MemoryPlan:
    """Plan the memory of this process to train on input rows.

    A subproblem has at most `largest` variables. `n_variables` are in memory, and `n_places` levels
    store second clusters. For `megabytes` None and for errors see `_budget`.
    """
    n_rows, in_memory = rows.n_samples, rows.nbytes_in_memory
    solver_arrays, matrices = _core.array_bytes(largest), _core.matrix_bytes(largest)
    free, scratch = ROW * n_rows + ARRAYS - PLACE * n_rows * n_places, _scratch(rows)
    least = max(0, VARIABLE * n_variables + solver_arrays - free)
    least += matrices + 2 * SCRATCH_SHARE * scratch
    fixed = in_memory + ROW * n_rows + PROGRAM
    budget = _budget(n_rows, fixed, least, megabytes)
    # maximum use: copies of the rows, the kernel matrix, all threads
    useful = 3 * rows.nbytes + 4 * largest**2 + threads * (matrices + solver_arrays + scratch)
    used = min(budget, least + useful)
    if fixed + used > usable_memory():
        raise OptionError(
            "cache_mb",
            f"must be at most {(usable_memory() - fixed) // MB}, got {megabytes}: this process may "
            f"use {mb(usable_memory())} MB, with {mb(rows.nbytes)} MB of rows",
        )
    scratches = min(MAX_SCRATCHES * scratch, (budget - least + matrices) // SCRATCH_SHARE)
    threads = max(1, min(threads, scratches // max(scratch, 1)))
    return MemoryPlan(
        in_memory, fixed - in_memory + used, used, budget, threads,
        free, solver_arrays, matrices, scratches,
    )  # fmt: skip


def plan_worker_memory(
    workers: Sequence[tuple[int, int]], nbytes: int, megabytes: int | None
) -> MemoryPlan:
    """Plan the memory of workers for `nbytes` bytes of rows; `megabytes` is for each task.

    A worker is given by its number of threads, each of which runs a task, and its memory limit in
    bytes, 0 for none. Raises ValueError if the rows do not fit, OptionError if the tasks do not.
    """
    n_tasks = max(n_threads for n_threads, _ in workers)
    fixed = COPIES * -(-nbytes // len(workers)) + PROGRAM
    budget = (DEFAULT_CACHE if megabytes is None else megabytes) * MB
    used = n_tasks * budget
    # the smallest worker decides, because any worker may get any part
    if limits := [limit for _, limit in workers if limit]:
        limit = min(limits)
        reason = f"the smallest worker has {mb(limit)} MB of memory"
        if fixed > limit:
            raise ValueError(
                f"workers require {mb(fixed + used)} MB of memory, {reason}: add workers"
            )
        if megabytes is not None and fixed + used > limit:
            largest = (limit - fixed) // (n_tasks * MB)
            raise OptionError("cache_mb", f"must be at most {largest}, got {megabytes}: {reason}")
    n_workers = len(workers)
    return MemoryPlan(
        fixed - PROGRAM, PROGRAM + used, used, budget, n_workers * n_tasks, n_workers=n_workers
    )


def _budget(n_rows: int, fixed: int, least: int, megabytes: int | None) -> int:
    """Return the budget in bytes, at least `least`; `fixed` is the memory outside it.

    The default (`megabytes` None) is half of the usable memory, at most 8000 MB, and at most the
    memory that is left free. Raises ValueError if the budget is too small or exceeds the usable
    memory.
    """
    usable = usable_memory()
    if megabytes is None and fixed + least > usable:
        raise ValueError(
            f"training on {n_rows} rows needs {mb(fixed + least)} MB of memory, and this process "
            f"may use {mb(usable)} MB"
        )
    budget = min(default_cache_mb() * MB, usable - fixed) if megabytes is None else megabytes * MB
    if budget < least:
        given = f"the default {mb(budget)}" if megabytes is None else megabytes
        raise OptionError(
            "cache_mb",
            f"must be at least {mb(least)}, got {given}: required for matrices and working copies "
            f"of {n_rows} rows",
        )
    return budget


def _scratch(rows: Rows) -> int:
    """Return the bytes of one thread's tiles: dense lanes, or a CSR panel and all columns."""
    if rows.is_dense:
        return 256 * rows.n_features
    assert rows.indptr is not None
    return 4 * rows.n_features + 1024 * int(np.diff(rows.indptr).max(initial=0))


def mb(n_bytes: int) -> int:
    """Convert bytes to MB, rounded up."""
    return -(-n_bytes // MB)
