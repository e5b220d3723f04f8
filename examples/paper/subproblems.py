"""Subproblems of the dual problem, for Theorem 1."""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.machine import default_cache_mb
from dcsvm.problem.formulation import BoxQP
from dcsvm.training import certificate as solving
from dcsvm.training.state import SolveControl


class Subproblems:
    """The paper's equation (2) on any subsets of the rows X (n, d) with labels y (n,) +1 and -1.

    A subset may have only one class, which `dcsvm.train` refuses.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, C: float, kernel: Kernel, threads: int):
        self.threads = threads
        sign = np.asarray(y, np.float64)
        self.problem = BoxQP(sign, np.minimum(C * sign, 0.0), np.maximum(C * sign, 0.0))
        self.data = KernelRows(Rows.from_array(X), kernel, threads, coded=True)

    def solve(self, alpha: np.ndarray, parts: list[np.ndarray], tolerance: float) -> None:
        """Solve each subproblem, given by its row numbers, from the signed `alpha` (n,), in place.

        A row belongs to at most one subproblem. Other rows keep their alpha and are ignored.
        """
        parts = [np.asarray(part, np.int32) for part in parts if len(part)]
        sizes = np.array([len(part) for part in parts])
        members = np.concatenate(parts)
        subproblems = solving.Subproblems.of_sizes(self.problem, members, sizes)
        memory = default_cache_mb() * 1_000_000
        settings = solving.SolverSettings(tolerance, {}, memory, self.threads, None)
        control = SolveControl(_core.SolveState(sizes), _core.Stop())
        setup, points = self.data.setup, self.data.points
        _core.solve_clusters(
            setup, points, subproblems, solving.Iterate.of(alpha), settings, control
        )
