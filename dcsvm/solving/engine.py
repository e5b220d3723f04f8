"""Computations on the rows of a run: kernel sums, the solver, spans, clusters.

A run refers to rows only by index, so rows may be on other machines. Out-of-core rows, such as rows
of a mapped file, are copied into memory if a few of them are used repeatedly.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from dcsvm import _core
from dcsvm.data.allocation import page_by_page
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows
from dcsvm.kernel.kernel_sums import TermIndex, component_sums
from dcsvm.kernel.kernels import Kernel
from dcsvm.problem.formulation import BoxQP
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.checkpoint import SolveControl
from dcsvm.solving.iterate import Iterate, SolverSettings, Subproblems
from dcsvm.solving.report import Traffic

MAX_COPIED = 0.5  # maximum share of a file's rows to copy into memory
MIN_PARTS = 8  # a mapped file is read page by page if n_rows / largest part exceeds this


class Engine(Protocol):
    """Interface between a run and its rows, local or distributed.

    Attributes
    ----------
    data : the rows and their kernel.
    targets_at_once : recommended batch size of the targets of kernel sums.
    tree_of : class of the cluster tree over these rows.
    phase : current phase of the run.
    n_rounds : rounds of chunking so far.
    is_out_of_core : whether a pass over all rows is slow.
    traffic : bytes moved between workers; None for local rows.
    """

    data: KernelRows
    targets_at_once: int
    tree_of: type[Tree]
    phase: str
    n_rounds: int

    @property
    def is_out_of_core(self) -> bool: ...

    @property
    def traffic(self) -> Traffic | None: ...

    def sums(
        self, targets: TermIndex, sources: TermIndex, alpha: np.ndarray, how: KernelEvalOptions
    ) -> tuple[np.ndarray, int]:
        """Compute kernel sums, as `component_sums`. Raises Stopped."""

    def solve_together(
        self, parts: Subproblems, iterate: Iterate, settings: SolverSettings, control: SolveControl
    ) -> np.ndarray:
        """Solve parts in place, starting from the state of `control`.

        All rows of a part are in the memory of one process. Returns an array of SOLVE_REPORT, one
        entry per part; see `_core.solve_clusters`. After a stop, its `is_done` is false.
        """

    def spans(
        self, parts: Subproblems, alpha: np.ndarray, wanted: np.ndarray, n_exact: int, threads: int
    ) -> np.ndarray:
        """Compute squared spans, as `_core.squared_spans`."""


def new_tree(
    engine: Engine, options: TrainOptions, order: np.ndarray, group: np.ndarray | None = None
) -> Tree:
    """Create a cluster tree over all rows of an engine; it has no levels yet.

    `order` is the spatial order of the rows. `group`, int (n,), is the component of each row.
    """
    kernel = Kernel("linear") if options.clustering == "kmeans" else engine.data.kernel
    how = {"sample_size": options.sample, "seed": options.seed}
    return engine.tree_of(engine.data, kernel, **how, order=order, group=group)


class LocalEngine:
    """The Engine of rows in this process."""

    targets_at_once = 2**19
    tree_of = Tree
    traffic: Traffic | None = None

    def __init__(self, data: KernelRows):
        self.data, self.n_rounds, self.phase = data, 0, ""

    def sums(
        self, targets: TermIndex, sources: TermIndex, alpha: np.ndarray, how: KernelEvalOptions
    ) -> tuple[np.ndarray, int]:
        return component_sums(self.data, targets, sources, alpha, how)

    @property
    def is_out_of_core(self) -> bool:
        return self.data.is_in_file

    def solve_together(
        self, parts: Subproblems, iterate: Iterate, settings: SolverSettings, control: SolveControl
    ) -> np.ndarray:
        rows = self.data.rows
        if self.data.is_in_file and len(parts.members) <= MAX_COPIED * rows.n_samples:
            return self._solve_apart(parts, iterate, settings, control)
        is_divided = parts.sizes.max(initial=0) * MIN_PARTS < rows.n_samples
        with page_by_page(rows.dense if is_divided else None):
            return self._solve_here(parts, iterate, settings, control)

    def _solve_apart(
        self, parts: Subproblems, iterate: Iterate, settings: SolverSettings, control: SolveControl
    ) -> np.ndarray:
        """Solve parts on a copy of their rows in memory."""
        members = parts.members
        problem, rows = numbered(parts.problem, members)
        apart = LocalEngine(self.data.part(rows))
        own = Subproblems(problem, parts.start, np.arange(len(members), dtype=np.int32))
        left = max(settings.memory_bytes - apart.data.rows.nbytes_in_memory, 0)
        settings = replace(settings, memory_bytes=left)
        some = iterate.take(members)
        if control.progress is not None:
            control.progress.before_saving = lambda: iterate.put(members, some)
        reports = apart._solve_here(own, some, settings, control)
        iterate.put(members, some)
        return reports

    def _solve_here(
        self, parts: Subproblems, iterate: Iterate, settings: SolverSettings, control: SolveControl
    ) -> np.ndarray:
        data = self.data
        return _core.solve_clusters(data.setup, data.points, parts, iterate, settings, control)

    def spans(
        self, parts: Subproblems, alpha: np.ndarray, wanted: np.ndarray, n_exact: int, threads: int
    ) -> np.ndarray:
        return _core.squared_spans(
            self.data.setup, self.data.points, parts.problem, parts.start, parts.members, alpha,
            wanted, n_exact, threads,
        )  # fmt: skip


def numbered(problem: BoxQP, members: np.ndarray) -> tuple[BoxQP, np.ndarray]:
    """Return the problem of these variables with renumbered rows, and the original row indices."""
    part = problem.part(members)
    rows, place = np.unique(part.rows, return_inverse=True)
    return replace(part, row=place.reshape(-1).astype(np.int32)), rows
