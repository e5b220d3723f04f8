"""The solver state, independent parts of a problem, and the solver settings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm.kernel.kernel_rows import Cutoff
from dcsvm.problem.formulation import BoxQP, Formulation

# State of the gradient of a variable: `GradientState` of csrc/solver/box_qp.h.
NOTHING, AT_BASE, AT_ALPHA = np.uint8(0), np.uint8(1), np.uint8(2)


@dataclass(eq=False)
class Iterate:
    """Solver state, serializable at any iteration; one entry per variable.

    Attributes
    ----------
    alpha : float64, dual variables.
    gradient : float64, gradient at alpha or at `base`, or undefined; `known` tells which.
    base : float64, an earlier alpha.
    known : uint8, NOTHING, AT_BASE or AT_ALPHA.
    """

    alpha: np.ndarray
    gradient: np.ndarray
    base: np.ndarray
    known: np.ndarray

    @staticmethod
    def of(alpha: np.ndarray) -> Iterate:
        """Start at a feasible alpha with an unknown gradient."""
        n = len(alpha)
        return Iterate(alpha, np.zeros(n), alpha.copy(), np.full(n, NOTHING))

    def take(self, variables: np.ndarray) -> Iterate:
        """Copy the state of these variables."""
        return Iterate(*(one[variables] for one in vars(self).values()))

    def put(self, variables: np.ndarray, other: Iterate) -> None:
        """Overwrite the state of these variables."""
        for name, values in vars(other).items():
            getattr(self, name)[variables] = values

    @property
    def is_known(self) -> np.ndarray:
        """Mask of the variables whose gradient at alpha is known."""
        return self.known == AT_ALPHA

    def forget(self, variables: np.ndarray) -> None:
        """Mark the gradient of these variables as unknown."""
        self.known[variables] = NOTHING

    def learn(self, variables: np.ndarray, gradient: np.ndarray) -> None:
        """Set the gradient of these variables at alpha."""
        self.gradient[variables] = gradient
        self.base[variables] = self.alpha[variables]
        self.known[variables] = AT_ALPHA

    def move(self, alpha: np.ndarray) -> None:
        """Move to another alpha; the previous alpha becomes the base.

        The gradient is then known at the base if it was known at alpha for all variables.
        """
        is_known = bool(self.is_known.all())
        self.base[:], self.alpha[:] = self.alpha, alpha
        self.known[:] = AT_BASE if is_known else NOTHING


@dataclass(frozen=True, eq=False)
class Subproblems:
    """Parts of a problem that are solved independently.

    Part c has the variables members[start[c]:start[c + 1]]; `start` is int64, `members` int32.
    """

    problem: BoxQP
    start: np.ndarray
    members: np.ndarray

    @staticmethod
    def of_sizes(problem: BoxQP, members: np.ndarray, sizes: np.ndarray) -> Subproblems:
        start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return Subproblems(problem, start, members)

    @staticmethod
    def of_folds(formulation: Formulation, folds: list[int]) -> Subproblems:
        """Make one part per non-empty problem of `folds`, which ascend."""
        sizes = np.diff(formulation.start).reshape(formulation.n_folds, -1)[folds].reshape(-1)
        members = np.concatenate([formulation.variables_of_fold(k) for k in folds])
        return Subproblems.of_sizes(formulation.problem, members, sizes[sizes > 0])

    @staticmethod
    def of_problems(formulation: Formulation) -> Subproblems:
        """Make one part per problem of all folds, including empty problems."""
        members = np.arange(formulation.problem.size, dtype=np.int32)
        return Subproblems(formulation.problem, formulation.start, members)

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.start)


@dataclass(frozen=True)
class SolverSettings:
    """Solver settings for parts; `_core.solve_clusters` reads them.

    `tolerance` is in units of the violation scale; violations below the unscaled `attainable` are
    accepted as well. `limits` are the limits on the work of each part, by names of
    SOLVE_REPORT. `memory_bytes` limits the caches, matrices, arrays and copies of rows of all
    threads together, unless the minimum of a part, matrix_bytes() and array_bytes(), exceeds it.

    The solver may omit kernel values beyond `cutoff`; `neglected` of a report bounds the effect on
    a gradient. `neglected` here bounds the truncation error of the initial gradient where it is
    known. Kernel values are float32 unless `float64` is set.
    """

    tolerance: float
    limits: dict[str, int]
    memory_bytes: int
    threads: int
    cutoff: Cutoff
    neglected: float = 0.0
    attainable: float = 0.0
    float64: bool = False
