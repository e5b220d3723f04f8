"""Where a solver is: it can end anywhere, be stored, and go on from there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# What is known of the gradient of a variable: `Known` of csrc/solver/box_qp.h.
NOTHING, AT_BASE, AT_ALPHA = np.uint8(0), np.uint8(1), np.uint8(2)


@dataclass(eq=False)
class Iterate:
    """`alpha`, `gradient` and `base` float64, `known` uint8, one entry a variable: `gradient` is
    that of alpha, that of `base` (an earlier alpha), or anything."""

    alpha: np.ndarray
    gradient: np.ndarray
    base: np.ndarray
    known: np.ndarray

    @staticmethod
    def of(alpha: np.ndarray) -> Iterate:
        """At a feasible alpha, its gradient unknown."""
        n = len(alpha)
        return Iterate(alpha, np.zeros(n), alpha.copy(), np.full(n, NOTHING))

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
