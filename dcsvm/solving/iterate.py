"""What is solved: parts of a problem, each for itself, how far, and where their solver is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.kernel.kernel_rows import Reach
from dcsvm.problem.formulation import BoxProblem, Formulation

# What is known of the gradient of a variable: `GradientState` of csrc/solver/box_qp.h.
NOTHING, AT_BASE, AT_ALPHA = np.uint8(0), np.uint8(1), np.uint8(2)


@dataclass(eq=False)
class Iterate:
    """Solver state, valid at any moment of a solve.

    Attributes
    ----------
    alpha : float64 (n,), dual variables.
    gradient : float64 (n,), see known.
    base : float64 (n,), an earlier alpha.
    known : uint8 (n,), whether the gradient is that of alpha, that of base, or unknown.
    """

    alpha: np.ndarray
    gradient: np.ndarray
    base: np.ndarray
    known: np.ndarray

    @staticmethod
    def of(alpha: np.ndarray) -> Iterate:
        """At a feasible alpha, its gradient unknown."""
        n = len(alpha)
        return Iterate(alpha, np.zeros(n), alpha.copy(), np.full(n, NOTHING))

    def take(self, variables: np.ndarray) -> Iterate:
        """Copy the entries of some variables."""
        return Iterate(*(one[variables] for one in vars(self).values()))

    def put(self, variables: np.ndarray, other: Iterate) -> None:
        """Make it what another is, for some variables."""
        for name, values in vars(other).items():
            getattr(self, name)[variables] = values

    @property
    def is_known(self) -> np.ndarray:
        """Of which variables the gradient is that of alpha."""
        return self.known == AT_ALPHA

    def forget(self, variables: np.ndarray) -> None:
        """Nothing is known of the gradient of these variables."""
        self.known[variables] = NOTHING

    def learn(self, variables: np.ndarray, gradient: np.ndarray) -> None:
        """Set the gradient of variables at alpha."""
        self.gradient[variables] = gradient
        self.base[variables] = self.alpha[variables]
        self.known[variables] = AT_ALPHA

    def move(self, alpha: np.ndarray) -> None:
        """Change alpha; the gradient stays known at the earlier alpha, if all of it is known."""
        is_known = bool(self.is_known.all())
        self.base[:], self.alpha[:] = self.alpha, alpha
        self.known[:] = AT_BASE if is_known else NOTHING


@dataclass(frozen=True, eq=False)
class Parts:
    """Subproblems of a problem: part c has the variables members[start[c]:start[c + 1]].

    `start` is int64 (n_parts + 1,), `members` int32.
    """

    problem: BoxProblem
    start: np.ndarray
    members: np.ndarray

    @staticmethod
    def of_sizes(problem: BoxProblem, members: np.ndarray, sizes: np.ndarray) -> Parts:
        start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return Parts(problem, start, members)

    @staticmethod
    def of_folds(formulation: Formulation, folds: list[int]) -> Parts:
        """Return the problems of some folds, ascending, that have variables."""
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
    """Settings of the solver, see `_core.solve_clusters`.

    Kernel values beyond `reach` may be skipped. Up to `neglected` is missing in an entry of a known
    gradient. `float64`: kernel values are float64, else float32.
    """

    tolerance: float
    max_iterations: int
    memory_bytes: int
    threads: int
    reach: Reach
    neglected: float = 0.0
    attainable: float = 0.0
    float64: bool = False
