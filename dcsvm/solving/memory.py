"""How much memory training will use, known before the work: what does not fit is refused.

Training takes at most the rows as they were read, the budget (-m), 64 bytes a row, and 200 MB. The
200 MB hold the program, blocks that are worked on, and arrays of variables as long as they fit.
Everything else comes out of the budget: caches, matrices and working copies of all threads
together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.machine import default_cache_mb, usable_memory
from dcsvm.problem.options import OptionError

MB = 1_000_000
ROW = 64  # bytes for each row
PROGRAM = 200 * MB
ARRAYS = 110 * MB  # of the program's, for arrays of variables
PLACE = 16  # bytes of a row in a level of clusters, with the second cluster
VARIABLE = 100  # bytes of a variable outside of the solver
SCRATCH_SHARE = 8  # part of what is left of the budget, for what threads have each
MOST_SCRATCHES = 64


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes: the rows take `data`, all else at most `rest`, `used` of it for caches and working
    copies out of the `budget`. Arrays of variables up to `free` are not counted against the budget;
    those of a solver take `solver_arrays`, its matrices `matrices`. `scratch` is for all threads
    together, `threads` how many there may be."""

    data: int
    rest: int
    used: int
    budget: int
    free: int
    solver_arrays: int
    matrices: int
    scratch: int
    threads: int

    def solver(self, n_variables: int) -> int:
        """Bytes for solvers, with their arrays, beside the arrays of so many variables."""
        beyond = max(0, VARIABLE * n_variables + self.solver_arrays - self.free)
        return max(self.budget - self.scratch - beyond + self.solver_arrays, 0)

    def unplanned(self, largest: int) -> int:
        """Bytes that solving so many variables together takes beyond the plan."""
        return max(_core.array_bytes(largest) - self.solver_arrays, 0)

    def spare(self, n_variables: int) -> int:
        """What is left for caches and for copies of rows."""
        return max(self.solver(n_variables) - self.solver_arrays - self.matrices, 0)

    def most_variables(self, n_variables: int) -> int:
        """With how many variables more, beside so many, half of what is spare is left."""
        unused = max(0, self.free - self.solver_arrays - VARIABLE * n_variables)
        return (unused + self.spare(n_variables) // 2) // VARIABLE

    def describe(self) -> str:
        return (
            f"at most {mb(self.data + self.rest)} MB of memory ({mb(self.data)} for the rows, "
            f"{mb(self.used)} for caches and working copies)"
        )


def plan_memory(
    rows: Rows,
    start: np.ndarray,
    *,
    threads: int,
    megabytes: int | None,
    n_folds: int = 0,
    n_members: float = 1.0,
    n_places: int = 0,
    solved_share: float = 1.0,
) -> MemoryPlan:
    """The plan for training on rows as they were read: `start` is where the variables of each
    problem begin, and their end; after it `n_folds` are solved together, levels at work have
    `n_members` times as many variables, and `n_places` levels know their second clusters. At most
    a `solved_share` of the variables of a problem is solved together.

    `megabytes` None: half of the memory this process may use, at most 8000 MB, and no more than the
    rows leave. Raises ValueError for a budget that is too small, or more than there is.
    """
    n_rows, largest, n_variables = rows.n_samples, int(np.diff(start).max()), int(start[-1])
    largest = int(largest * solved_share)
    solver_arrays, matrices = _core.array_bytes(largest), _core.matrix_bytes(largest)
    free, scratch = ROW * n_rows + ARRAYS - PLACE * n_rows * n_places, _scratch(rows)
    n_variables = int(n_variables * n_members) * max(n_folds, 1)
    least = max(0, VARIABLE * n_variables + solver_arrays - free)
    least += matrices + 2 * SCRATCH_SHARE * scratch
    in_memory = rows.nbytes_in_memory
    rest = in_memory + ROW * n_rows + PROGRAM
    budget = _budget(n_rows, rest, least, megabytes)
    # what could be used: copies of the rows, kernel values of all pairs, all threads at work
    useful = 3 * rows.nbytes + 4 * largest**2 + threads * (matrices + solver_arrays + scratch)
    used = min(budget, least + useful)
    if rest + used > usable_memory():
        raise OptionError(
            "cache_mb",
            f"is too much at {megabytes} MB: with {mb(rows.nbytes)} MB of rows it makes "
            f"{mb(rest + used)} MB of memory, and this process may use {mb(usable_memory())} MB",
        )
    scratches = min(MOST_SCRATCHES * scratch, (budget - least + matrices) // SCRATCH_SHARE)
    return MemoryPlan(
        data=in_memory,
        rest=rest - in_memory + used,
        used=used,
        budget=budget,
        free=free,
        solver_arrays=solver_arrays,
        matrices=matrices,
        scratch=scratches,
        threads=max(1, min(threads, scratches // max(scratch, 1))),
    )


def _budget(n_rows: int, rest: int, least: int, megabytes: int | None) -> int:
    """Bytes; `rest` are those besides, and `least` those that are needed."""
    usable = usable_memory()
    if megabytes is None and rest + least > usable:
        raise ValueError(
            f"training on {n_rows} rows needs {mb(rest + least)} MB of memory, and this process "
            f"may use {mb(usable)} MB"
        )
    budget = min(default_cache_mb() * MB, usable - rest) if megabytes is None else megabytes * MB
    if budget < least:
        given = f"the default {mb(budget)}" if megabytes is None else megabytes
        raise OptionError(
            "cache_mb",
            f"must be at least {mb(least)}, not {given}: so many MB are needed for "
            f"matrices and working copies of {n_rows} rows",
        )
    return budget


def _scratch(rows: Rows) -> int:
    """Bytes of a thread for tiles: a block of lanes; of CSR rows a panel, and all columns."""
    if rows.is_dense:
        return 256 * rows.n_features
    return 4 * rows.n_features + 1024 * int(np.diff(rows.indptr).max(initial=0))


def mb(n_bytes: int) -> int:
    """Bytes in MB, rounded up."""
    return -(-n_bytes // MB)
