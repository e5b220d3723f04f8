"""LIBSVM's kernels: names, parameters and properties.

The formulas are in csrc/simd. gamma has no default here: it depends on the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

NAMES = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
WITH_GAMMA = ("polynomial", "rbf", "sigmoid")
LARGEST_FLOAT32 = (2 - 2.0**-23) * 2.0**127


class BeyondFloat32(ValueError):
    """Kernel values of the rows are beyond the range of float32."""


@dataclass(frozen=True)
class Kernel:
    """Kernel function K(x, z) with its parameters.

    linear x'z, polynomial (gamma x'z + coef0)^degree, rbf exp(-gamma |x - z|^2), sigmoid
    tanh(gamma x'z + coef0). precomputed: the rows are rows of the kernel matrix; `indefinite` if
    the matrix was found to be indefinite.
    """

    name: str = "rbf"
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    indefinite: bool = False

    @property
    def is_precomputed(self) -> bool:
        return self.name == "precomputed"

    @property
    def is_positive_semidefinite(self) -> bool:
        """Whether every kernel matrix is positive semidefinite: the dual problem is convex."""
        if self.is_precomputed:
            return not self.indefinite
        if self.name == "polynomial":
            return self.coef0 >= 0
        return self.name != "sigmoid"

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters of the formula, by their names in a model file, in its order."""
        used = {
            "linear": (),
            "polynomial": ("degree", "gamma", "coef0"),
            "rbf": ("gamma",),
            "sigmoid": ("gamma", "coef0"),
            "precomputed": (),
        }[self.name]
        return {name: getattr(self, name) for name in used}

    def check_values(self, squared_norm: float) -> None:
        """Raise BeyondFloat32 if kernel values may overflow float32.

        `squared_norm` is the largest |x|^2 of the rows. Intermediate results count, too.
        """
        try:
            largest = self._largest(squared_norm)
        except OverflowError:
            largest = math.inf
        if not largest <= LARGEST_FLOAT32:
            raise BeyondFloat32(
                f"kernel values of {self.describe()} on rows of up to |x|^2 = {squared_norm:.3g} "
                f"are beyond float32, whose largest number is {LARGEST_FLOAT32:.3g}: scale the "
                "features, or take a smaller gamma"
            )

    def largest_value(self, squared_norm: float) -> float:
        """Bound |K(x, z)| for rows up to this |x|^2; infinite beyond float64."""
        if self.name == "linear":
            return squared_norm
        if self.name != "polynomial":
            return 1.0
        try:
            return (self.gamma * squared_norm + abs(self.coef0)) ** self.degree
        except OverflowError:
            return math.inf

    def _largest(self, squared_norm: float) -> float:
        """Bound kernel values and their intermediate results for rows up to this |x|^2."""
        product = self.gamma * squared_norm + abs(self.coef0)
        if self.name == "polynomial":
            return max(product**self.degree, product, squared_norm, self.gamma)
        if self.name == "rbf":
            return max(self.gamma / math.log(2), 4 * squared_norm)
        return max(product, self.gamma, squared_norm) if self.name == "sigmoid" else squared_norm

    def describe(self) -> str:
        values = ", ".join(f"{name}={value:g}" for name, value in self.parameters.items())
        return f"{self.name}({values})" if values else f"{self.name} kernel"
