"""The kernels of LIBSVM as values: parameters, names, and what the core needs of them.

The formulas are in csrc/isa_impl.h. gamma has no default here: it depends on the data.
"""

from __future__ import annotations

from dataclasses import dataclass

from dcsvm import _core
from dcsvm.dataset import Rows

NAMES = ("linear", "polynomial", "rbf", "sigmoid")
WORTH_CODING = 1.3  # times fewer operations


@dataclass(frozen=True)
class Kernel:
    """K(x, z): linear x'z, polynomial (gamma x'z + coef0)^degree, rbf exp(-gamma |x - z|^2),
    sigmoid tanh(gamma x'z + coef0)."""

    name: str = "rbf"
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3

    def __post_init__(self):
        if self.name not in NAMES:
            raise ValueError(f"unknown kernel {self.name!r}; known are {', '.join(NAMES)}")
        if not 0 <= self.gamma < float("inf"):
            raise ValueError(f"gamma must be at least 0 and finite, not {self.gamma:g}")
        if not abs(self.coef0) < float("inf"):
            raise ValueError(f"coef0 must be finite, not {self.coef0:g}")
        if self.degree < 0:
            raise ValueError(f"degree must be at least 0, not {self.degree}")

    @property
    def is_positive_semidefinite(self) -> bool:
        """Whether every kernel matrix is: then the dual is convex and a gap can be stated."""
        if self.name == "polynomial":
            return self.coef0 >= 0
        return self.name != "sigmoid"

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters the formula uses, by their names in a model file, in its order."""
        used = {
            "linear": (),
            "polynomial": ("degree", "gamma", "coef0"),
            "rbf": ("gamma",),
            "sigmoid": ("gamma", "coef0"),
        }[self.name]
        return {name: getattr(self, name) for name in used}

    def describe(self) -> str:
        values = ", ".join(f"{name}={value:g}" for name, value in self.parameters.items())
        return f"{self.name}({values})"


class KernelRows:
    """Rows with a kernel on them: what `_core` computes with.

    `against` evaluates this side's values in the form chosen for another side's rows, so that test
    rows meet support vectors in the arithmetic chosen for the support vectors. `coded` may turn
    one-hot columns into codes, for rows that meet only themselves.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        threads: int,
        *,
        against: KernelRows | None = None,
        coded: bool = False,
    ):
        self.rows = rows
        self.kernel = kernel
        self.points = _core.Points(rows, threads)
        if coded:
            self.points.encode(WORTH_CODING, threads)
        if against is None:
            self.setup = _core.Setup(
                NAMES.index(kernel.name), kernel.gamma, kernel.coef0, kernel.degree, self.points
            )
        else:
            self.setup = against.setup
        self.points.fit(self.setup, threads)

    @property
    def has_dear_rows(self) -> bool:
        """Whether computing a kernel row costs many times reading it, by the core's fixed model."""
        return _core.has_dear_rows(self.setup, self.points)
