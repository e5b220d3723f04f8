"""The kernels: one table of all that is known of each, and a kernel with its parameters.

The formulas are in csrc/simd, by the names of the argument and the function. gamma has no default
here: it depends on the data. NumPy is imported where arrays are computed with: the commands read
the table before they need it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

LARGEST_FLOAT32 = (2 - 2.0**-23) * 2.0**127

# Arguments, as csrc/simd/kernel.h names them: what a kernel is a function of.
PRODUCT, SQUARED_DISTANCE, GIVEN = "product", "squared_distance", "none"
FROM_PRODUCTS = (PRODUCT, SQUARED_DISTANCE)  # matrix products give them, also of bytes


class BeyondFloat32(ValueError):
    """Kernel values of the rows are beyond the range of float32."""


@dataclass(frozen=True)
class Fall:
    """How a kernel falls with a distance r, from 1: K = f(gamma r^power). `inverse` is that of f.

    r is Euclidean; a kernel of another distance that is not shorter may fall faster."""

    power: float
    inverse: Callable[[float], float]

    def squared_distance_at(self, gamma: float, value: float) -> float:
        """Where the kernel has fallen to a value between 0 and 1."""
        return (self.inverse(value) / gamma) ** (2 / self.power) if gamma > 0 else math.inf

    def gamma_at(self, squared_distance: float, value: float) -> float:
        """The gamma with which the kernel has that value at a distance above 0."""
        return self.inverse(value) / squared_distance ** (self.power / 2)

    def scaled(self, gamma: float, unit: float) -> float:
        """The gamma for rows that are divided by `unit`."""
        return gamma * unit**self.power


@dataclass(frozen=True)
class Slopes:
    """Of an array of arguments float32 (n, m), which may be overwritten, the values and the slopes
    dK/ds by the inner product s of the rows, divided by the `factor`."""

    values: Callable[[Kernel, np.ndarray], tuple[np.ndarray, np.ndarray]]
    factor: Callable[[Kernel], float]


@dataclass(frozen=True, kw_only=True)
class KernelType:
    """What is known of a kernel whatever its parameters are.

    - `parameters`: those that the formula uses, in the order of a model file.
    - `fall`: of kernels that fall with a distance, from 1 of equal rows.
    - `is_semidefinite`: whether every kernel matrix is, with the parameters of a Kernel.
    - `diagonal`: K(x, x) of |x|^2, numbers or arrays; None where no value is beyond -1 or 1.
    - `on_the_way`: the largest numbers that values of rows up to |x|^2 are computed from.
    - `slopes`: None where landmarks cannot be moved, and a model not be compressed.
    - `sklearn_name`: scikit-learn's, None where it lacks the kernel.
    """

    name: str
    formula: str
    argument: str
    function: str
    parameters: tuple[str, ...] = ()
    fall: Fall | None = None
    is_semidefinite: Callable[[Kernel], bool] = lambda kernel: True
    diagonal: Callable | None = None
    on_the_way: Callable[[Kernel, float], tuple[float, ...]]
    slopes: Slopes | None = None
    is_in_libsvm: bool
    sklearn_name: str | None

    @property
    def is_precomputed(self) -> bool:
        """Whether rows have kernel values in place of features."""
        return self.argument == GIVEN

    @property
    def is_linear(self) -> bool:
        """Whether a sum of weighted kernel values is the inner product with one vector."""
        return self.argument == PRODUCT and self.function == "identity"

    @property
    def is_from_products(self) -> bool:
        """Whether the core computes it from inner products of rows, of bytes too."""
        return self.argument in FROM_PRODUCTS

    @property
    def is_within_one(self) -> bool:
        """Whether no value is beyond -1 or 1."""
        return self.diagonal is None

    @property
    def has_gamma(self) -> bool:
        return "gamma" in self.parameters

    @property
    def short_name(self) -> str:
        """The name in lines of help."""
        return self.sklearn_name or self.name


def _decay(kernel: Kernel, argument: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    argument *= np.float32(-kernel.gamma)
    values = np.exp(argument, out=argument)
    return values, values


def _power(kernel: Kernel, argument: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    base = _base(kernel, argument)
    return base**kernel.degree, base ** max(kernel.degree - 1, 0)


def _tanh(kernel: Kernel, argument: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    values = np.tanh(_base(kernel, argument))
    return values, 1 - values**2


def _base(kernel: Kernel, argument: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.float32(kernel.gamma) * argument + np.float32(kernel.coef0)


def _largest_base(kernel: Kernel, squared_norm: float) -> float:
    return kernel.gamma * squared_norm + abs(kernel.coef0)


# The place of a kernel is its number after -t, and LIBSVM's are the first five.
KERNEL_TYPES = (
    KernelType(
        name="linear",
        formula="u'v",
        argument=PRODUCT,
        function="identity",
        diagonal=lambda kernel, squares: squares,
        on_the_way=lambda kernel, square: (square,),
        slopes=Slopes(lambda kernel, product: (product, product**0), lambda kernel: 1.0),
        is_in_libsvm=True,
        sklearn_name="linear",
    ),
    KernelType(
        name="polynomial",
        formula="(gamma u'v + coef0)^degree",
        argument=PRODUCT,
        function="power",
        parameters=("degree", "gamma", "coef0"),
        is_semidefinite=lambda kernel: kernel.coef0 >= 0,
        diagonal=lambda kernel, squares: (
            abs(kernel.gamma * squares + kernel.coef0) ** kernel.degree
        ),
        on_the_way=lambda kernel, square: (
            _largest_base(kernel, square) ** kernel.degree,
            _largest_base(kernel, square),
            square,
            kernel.gamma,
        ),
        slopes=Slopes(_power, lambda kernel: kernel.degree * kernel.gamma),
        is_in_libsvm=True,
        sklearn_name="poly",
    ),
    KernelType(
        name="rbf",
        formula="exp(-gamma |u-v|^2)",
        argument=SQUARED_DISTANCE,
        function="decay",
        parameters=("gamma",),
        fall=Fall(2, lambda value: -math.log(value)),
        on_the_way=lambda kernel, square: (kernel.gamma / math.log(2), 4 * square),
        slopes=Slopes(_decay, lambda kernel: 2.0 * kernel.gamma),
        is_in_libsvm=True,
        sklearn_name="rbf",
    ),
    KernelType(
        name="sigmoid",
        formula="tanh(gamma u'v + coef0)",
        argument=PRODUCT,
        function="tanh",
        parameters=("gamma", "coef0"),
        is_semidefinite=lambda kernel: False,
        on_the_way=lambda kernel, square: (_largest_base(kernel, square), kernel.gamma, square),
        slopes=Slopes(_tanh, lambda kernel: kernel.gamma),
        is_in_libsvm=True,
        sklearn_name="sigmoid",
    ),
    KernelType(
        name="precomputed",
        formula="kernel values in place of features",
        argument=GIVEN,
        function="identity",
        is_semidefinite=lambda kernel: not kernel.indefinite,
        diagonal=lambda kernel, squares: math.inf,  # unknown
        on_the_way=lambda kernel, square: (square,),
        is_in_libsvm=True,
        sklearn_name="precomputed",
    ),
)
TYPES = {one.name: one for one in KERNEL_TYPES}
NAMES = tuple(TYPES)
DEFAULT, PRECOMPUTED = "rbf", TYPES["precomputed"]


def type_named(name: str) -> KernelType:
    """Return the kernel of a name. Raises ValueError for one that there is not."""
    if name not in TYPES:
        raise ValueError(f"the kernel must be one of {', '.join(NAMES)}, not {name!r}")
    return TYPES[name]


def numbered_names() -> str:
    """`0 linear, 1 poly, ...`, for a line of help."""
    return ", ".join(f"{number} {one.short_name}" for number, one in enumerate(KERNEL_TYPES))


def other_names() -> str:
    """The names but the default, for help in Python; with the formulas that users_of() has not."""
    others = [one for one in KERNEL_TYPES if one.name != DEFAULT]
    return ", ".join(
        f'"{one.name}"' if one.parameters else f'"{one.name}" {one.formula}' for one in others
    )


def users_of(parameter: str) -> str:
    """The kernels that have a parameter, for a line of help. A kernel has its formula at that
    parameter which it shares with the fewest others."""

    def has_formula(one: KernelType) -> bool:
        n_users = {name: sum(name in other.parameters for other in KERNEL_TYPES)
                   for name in one.parameters}  # fmt: skip
        return min(n_users, key=n_users.__getitem__) == parameter

    users = [one for one in KERNEL_TYPES if parameter in one.parameters]
    users.sort(key=has_formula, reverse=True)
    return ", ".join(f"{one.short_name} {one.formula}" if has_formula(one) else one.short_name
                     for one in users)  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """K(x, z) of a name of the table, with the parameters of its formula; those that it has not are
    kept, too. A precomputed kernel has been seen to be `indefinite`, or is taken not to be. Raises
    ValueError for an unknown name."""

    name: str = DEFAULT
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    indefinite: bool = False

    def __post_init__(self) -> None:
        type_named(self.name)
        # plain numbers: a model file has what repr() makes of them
        for name, kind in (("gamma", float), ("coef0", float), ("degree", int)):
            object.__setattr__(self, name, kind(getattr(self, name)))

    @property
    def type(self) -> KernelType:
        return TYPES[self.name]

    @property
    def is_precomputed(self) -> bool:
        return self.type.is_precomputed

    @property
    def is_positive_semidefinite(self) -> bool:
        """Whether every kernel matrix is: then the dual is convex and a gap can be stated."""
        return self.type.is_semidefinite(self)

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters the formula uses, by their names in a model file, in its order."""
        return {name: getattr(self, name) for name in self.type.parameters}

    def check_values(self, squared_norm: float) -> None:
        """Raise BeyondFloat32 if kernel values may overflow float32.

        `squared_norm` is the largest |x|^2 of the rows. Intermediate results count, too.
        """
        try:
            largest = max(self.type.on_the_way(self, squared_norm))
        except OverflowError:
            largest = math.inf
        if not largest <= LARGEST_FLOAT32:
            raise BeyondFloat32(
                f"kernel values of {self.describe()} on rows of up to |x|^2 = {squared_norm:.3g} "
                f"are beyond float32, whose largest number is {LARGEST_FLOAT32:.3g}: scale the "
                "features, or take a smaller gamma"
            )

    def largest_value(self, squared_norm: float) -> float:
        """The largest size of a kernel value of rows up to |x|^2, infinite beyond float64."""
        if self.type.diagonal is None:
            return 1.0
        try:
            return self.type.diagonal(replace(self, coef0=abs(self.coef0)), squared_norm)
        except OverflowError:
            return math.inf

    def describe(self) -> str:
        values = ", ".join(f"{name}={value:g}" for name, value in self.parameters.items())
        return f"{self.name}({values})" if values else f"{self.name} kernel"
