"""Subproblems of the dual problem, for CascadeSVM and Theorem 1."""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel
from dcsvm.machine import default_cache_mb
from dcsvm.problem.formulation import BoxQP
from dcsvm.solving.iterate import Iterate

NO_LIMIT = -1


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
        start = np.concatenate(([0], np.cumsum([len(part) for part in parts])))
        _core.solve_clusters(
            self.data.setup,
            self.data.points,
            self.problem,
            start.astype(np.int64),
            np.concatenate(parts),
            Iterate.of(alpha),
            tolerance,
            NO_LIMIT,
            default_cache_mb() * 1_000_000,
            self.threads,
            None,
        )
