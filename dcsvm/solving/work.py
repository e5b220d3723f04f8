"""What is computed on the rows of a run, apart from what it is for: kernel sums, the solver, spans,
clusters. A run knows its rows by their numbers only, so that they may be somewhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.data.file_order import page_by_page
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.kernel_rows import Evaluation, KernelRows, Reach
from dcsvm.kernel.kernel_sums import Terms, sums_of_units
from dcsvm.kernel.kernels import Kernel
from dcsvm.problem.formulation import BoxProblem
from dcsvm.solving.iterate import Iterate

FEWEST_PARTS = 8  # where no part is larger, each tells which rows of a mapped file it reads


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of a problem: part c has the variables members[start[c]:start[c + 1]], `start` int64,
    `members` int32."""

    problem: BoxProblem
    start: np.ndarray
    members: np.ndarray

    @staticmethod
    def of_sizes(problem: BoxProblem, members: np.ndarray, sizes: np.ndarray) -> Parts:
        start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return Parts(problem, start, members)

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.start)


@dataclass(frozen=True)
class Effort:
    """How far parts are solved, and with what; see `_core.solve_clusters`. Kernel values out of
    `reach` may be left out, and up to `neglected` was, of a gradient that is known."""

    tolerance: float
    max_iterations: int
    memory_bytes: int
    threads: int
    reach: Reach
    neglected: float = 0.0
    attainable: float = 0.0


class Work:
    """The work on the rows of `data`, in this process."""

    def __init__(self, data: KernelRows):
        self.data = data

    def sums(
        self, targets: Terms, sources: Terms, alpha: np.ndarray, how: Evaluation
    ) -> tuple[np.ndarray, int]:
        """As `sums_of_units`. Raises Stopped."""
        return sums_of_units(self.data, targets, sources, alpha, how)

    def solve(
        self, parts: Parts, iterate: Iterate, effort: Effort, progress, stop: _core.Stop
    ) -> list[dict]:
        """Solve parts in place; a report for each, see `_core.solve_clusters`."""
        rows = self.data.rows
        is_divided = parts.sizes.max(initial=0) * FEWEST_PARTS < rows.n_samples
        with page_by_page(rows.dense if is_divided else None):
            return _core.solve_clusters(
                self.data.setup,
                self.data.points,
                parts.problem,
                parts.start,
                parts.members,
                iterate,
                effort.tolerance,
                effort.max_iterations,
                effort.memory_bytes,
                effort.threads,
                progress,
                effort.reach,
                effort.neglected,
                stop,
                effort.attainable,
            )

    def spans(
        self, parts: Parts, alpha: np.ndarray, wanted: np.ndarray, n_exact: int, threads: int
    ) -> np.ndarray:
        """As `_core.squared_spans`."""
        return _core.squared_spans(
            self.data.setup, self.data.points, parts.problem, parts.start, parts.members, alpha,
            wanted, n_exact, threads,
        )  # fmt: skip

    def tree(self, kernel: Kernel, **how) -> Tree:
        """A tree of clusters of the rows, `how` as Tree takes it."""
        return Tree(self.data, kernel, **how)
