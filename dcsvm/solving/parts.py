"""Parts of a problem that are solved each for itself, and how far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.kernel.kernel_rows import Reach
from dcsvm.problem.formulation import BoxProblem, Formulation


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

    @staticmethod
    def of_folds(formulation: Formulation, folds: list[int]) -> Parts:
        """The problems of some folds, ascending, that have variables."""
        sizes = np.diff(formulation.start).reshape(formulation.n_folds, -1)[folds].reshape(-1)
        members = np.concatenate([formulation.variables_of_fold(k) for k in folds])
        return Parts.of_sizes(formulation.problem, members, sizes[sizes > 0])

    @staticmethod
    def of_problems(formulation: Formulation) -> Parts:
        """All problems, of all folds, those without variables too."""
        members = np.arange(formulation.problem.size, dtype=np.int32)
        return Parts(formulation.problem, formulation.start, members)

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.start)


@dataclass(frozen=True)
class Effort:
    """How far parts are solved, and with what; see `_core.solve_clusters`. Kernel values out of
    `reach` may be left out, and up to `neglected` was, of a gradient that is known; they are
    `float64`, or float32."""

    tolerance: float
    max_iterations: int
    memory_bytes: int
    threads: int
    reach: Reach
    neglected: float = 0.0
    attainable: float = 0.0
    float64: bool = False
