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
    """Where a solver is: it can end anywhere, be stored, and go on from there. `alpha`, `gradient`
    and `base` float64, `known` uint8, one entry a variable: `gradient` is that of alpha, that of
    `base` (an earlier alpha), or anything."""

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
        """A copy of that of some variables."""
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
        """The gradient of these variables at alpha."""
        self.gradient[variables] = gradient
        self.base[variables] = self.alpha[variables]
        self.known[variables] = AT_ALPHA

    def move(self, alpha: np.ndarray) -> None:
        """Go to another alpha; the gradient stays known as that of the one before, where all of it
        is."""
        is_known = bool(self.is_known.all())
        self.base[:], self.alpha[:] = self.alpha, alpha
        self.known[:] = AT_BASE if is_known else NOTHING


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
