"""The kernels: a table of kernel types, and the class of a kernel with its parameters.

The formulas are in csrc/simd, under the names of argument and function. The default gamma of
training is not set here, as it depends on the data. Functions on arrays import NumPy themselves,
because the commands read the table before they need NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from dcsvm.data.rows import Rows

MAX_FLOAT32 = (2 - 2.0**-23) * 2.0**127
# gamma |u-v| below which slopes of exp(-gamma |u-v|) fall to 0: it has a cusp where rows are equal
CUSP = 1e-3

# Arguments of kernel functions, named as in csrc/simd/arguments_impl.h, which has their properties.
PRODUCT, SQUARED_DISTANCE, ABSOLUTE_DISTANCE, GIVEN = (
    "product", "squared_distance", "absolute_distance", "none",
)  # fmt: skip
DEGREES = {SQUARED_DISTANCE: 2, ABSOLUTE_DISTANCE: 1}  # exponents of the feature unit
METRICS = {SQUARED_DISTANCE: "sqeuclidean", ABSOLUTE_DISTANCE: "cityblock"}  # SciPy's names


class BeyondFloat32Error(ValueError):
    """Kernel values of the rows are beyond the range of float32."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class KernelType:
    """Properties of a kernel function, for all values of its parameters.

    A kernel of a distance is K = f(gamma s^power): it falls from 1 as its argument s, the distance,
    grows.

    Attributes
    ----------
    name : name in model files and in Python.
    formula : formula for the help, in LIBSVM's notation.
    argument, function : names in csrc/simd/kernel.h.
    parameters : parameters of the formula, in the order of a model file.
    value : f, for float64 arrays; None if this is no kernel of a distance.
    inverse : inverse function of f.
    power : exponent of s.
    scaled_distance : s^power for the help, in LIBSVM's notation.
    is_semidefinite : returns whether every kernel matrix is positive semidefinite.
    diagonal : returns K(x, x) from |x|^2, a number or an array; None if |K| is at most 1.
    intermediate : returns bounds of the numbers computed for rows with at most this |x|^2.
    slopes : returns kernel values and slopes / slope_factor, float32 (n, m), at arguments float32
        (n, m), which may be overwritten. A slope is -dK/ds for an absolute distance s, else dK/ds,
        where s is the inner product of the rows. Landmarks are fitted by them. None if there are no
        features.
    slope_factor : returns the constant factor of the slopes.
    is_in_libsvm : whether LIBSVM has the kernel.
    sklearn_name : name in scikit-learn; None if scikit-learn lacks the kernel.
    start : gamma times the median distance where `dcsvm.easy` starts; None if it leaves the kernel
        out.
    """

    name: str
    formula: str
    argument: str
    function: str
    parameters: tuple[str, ...] = ()
    value: Callable[[np.ndarray], np.ndarray] | None = None
    inverse: Callable[[float], float] | None = None
    power: float = 1.0
    scaled_distance: str = ""
    is_semidefinite: Callable[[Kernel], bool] = lambda kernel: True
    diagonal: Callable[[Kernel, Any], Any] | None = None
    intermediate: Callable[[Kernel, float], tuple[float, ...]]
    slopes: Callable[[Kernel, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    slope_factor: Callable[[Kernel], float] = lambda kernel: 1.0
    is_in_libsvm: bool
    sklearn_name: str | None
    start: float | None = None

    @property
    def is_precomputed(self) -> bool:
        """Whether rows are rows of the kernel matrix."""
        return self.argument == GIVEN

    @property
    def is_linear(self) -> bool:
        """Whether a weighted sum of kernel values is an inner product with one vector."""
        return self.argument == PRODUCT and self.function == "identity"

    @property
    def is_of_distance(self) -> bool:
        """Whether K falls from 1 as a distance grows."""
        return self.value is not None

    def argument_at(self, gamma: float, value: float) -> float:
        """Return the distance at which a kernel of a distance has a value in (0, 1)."""
        assert self.inverse is not None
        return (self.inverse(value) / gamma) ** (1 / self.power) if gamma > 0 else math.inf

    def gamma_at(self, argument: float, value: float) -> float:
        """Return the gamma for which a kernel of a distance has this value at a distance > 0."""
        assert self.inverse is not None
        return self.inverse(value) / argument**self.power

    @property
    def length_power(self) -> float:
        """Exponent p such that rows / u with gamma u^p have the same K (kernels of a distance)."""
        return self.power * DEGREES[self.argument]

    @property
    def is_within_one(self) -> bool:
        """Whether |K(x, z)| is at most 1."""
        return self.diagonal is None

    @property
    def has_gamma(self) -> bool:
        """Whether the formula has gamma."""
        return "gamma" in self.parameters

    @property
    def short_name(self) -> str:
        """Name in help lines."""
        return self.sklearn_name or self.name


def _decay_value(argument: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.exp(-argument)


def _decay_inverse(value: float) -> float:
    return -math.log(value)


def _decay(kernel: Kernel, argument: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    argument *= np.float32(-kernel.gamma)
    values = np.exp(argument, out=argument)
    return values, values


def _root_decay(kernel: Kernel, argument: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    distance = np.sqrt(argument, out=argument)
    values = np.exp(np.float32(-kernel.gamma) * distance)
    nearest = np.float32(CUSP / kernel.gamma if kernel.gamma > 0 else 1.0)
    return values, values / np.maximum(distance, nearest, out=distance)


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


# The index of a kernel is its number for -t. The first five are LIBSVM's.
KERNEL_TYPES = (
    KernelType(
        name="linear",
        formula="u'v",
        argument=PRODUCT,
        function="identity",
        diagonal=lambda kernel, squares: squares,
        intermediate=lambda kernel, square: (square,),
        slopes=lambda kernel, product: (product, product**0),
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
        intermediate=lambda kernel, square: (
            _largest_base(kernel, square) ** kernel.degree,
            _largest_base(kernel, square),
            square,
            kernel.gamma,
        ),
        slopes=_power,
        slope_factor=lambda kernel: kernel.degree * kernel.gamma,
        is_in_libsvm=True,
        sklearn_name="poly",
    ),
    KernelType(
        name="rbf",
        formula="exp(-gamma |u-v|^2)",
        argument=SQUARED_DISTANCE,
        function="decay",
        parameters=("gamma",),
        value=_decay_value,
        inverse=_decay_inverse,
        scaled_distance="|u-v|^2",
        intermediate=lambda kernel, square: (kernel.gamma / math.log(2), 4 * square),
        slopes=_decay,
        slope_factor=lambda kernel: 2.0 * kernel.gamma,
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
        intermediate=lambda kernel, square: (_largest_base(kernel, square), kernel.gamma, square),
        slopes=_tanh,
        slope_factor=lambda kernel: kernel.gamma,
        is_in_libsvm=True,
        sklearn_name="sigmoid",
    ),
    KernelType(
        name="precomputed",
        formula="kernel values in place of features",
        argument=GIVEN,
        function="identity",
        is_semidefinite=lambda kernel: not kernel.indefinite,
        diagonal=lambda kernel, squares: math.inf,  # unknown: there are no features
        intermediate=lambda kernel, square: (square,),
        is_in_libsvm=True,
        sklearn_name="precomputed",
    ),
    KernelType(
        name="laplacian",
        formula="exp(-gamma |u-v|_1)",
        argument=ABSOLUTE_DISTANCE,
        function="decay",
        parameters=("gamma",),
        value=_decay_value,
        inverse=_decay_inverse,
        scaled_distance="|u-v|_1",
        intermediate=lambda kernel, square: (kernel.gamma / math.log(2), 4 * square),
        slopes=_decay,
        slope_factor=lambda kernel: kernel.gamma,
        is_in_libsvm=False,
        sklearn_name=None,
        start=2.0,
    ),
    KernelType(
        name="exponential",
        formula="exp(-gamma |u-v|)",
        argument=SQUARED_DISTANCE,
        function="root_decay",
        parameters=("gamma",),
        value=_decay_value,
        inverse=_decay_inverse,
        power=0.5,
        scaled_distance="|u-v|",
        intermediate=lambda kernel, square: (kernel.gamma / math.log(2), 4 * square),
        slopes=_root_decay,
        slope_factor=lambda kernel: kernel.gamma,
        is_in_libsvm=False,
        sklearn_name=None,
        start=1.0,
    ),
)
TYPES = {kernel_type.name: kernel_type for kernel_type in KERNEL_TYPES}
# Kernels whose value is a distance. They compute distances; models cannot use them.
DISTANCES = {
    argument: KernelType(
        name=argument,
        formula=argument,
        argument=argument,
        function="identity",
        is_semidefinite=lambda kernel: False,
        diagonal=lambda kernel, squares: math.inf,
        intermediate=lambda kernel, square: (4 * square,),
        is_in_libsvm=False,
        sklearn_name=None,
    )
    for argument in DEGREES
}
NAMES = tuple(TYPES)
SHORT_NAMES = tuple(kernel_type.short_name for kernel_type in KERNEL_TYPES)
DEFAULT, PRECOMPUTED = "rbf", TYPES["precomputed"]


def type_named(name: str) -> KernelType:
    """Return the kernel type with this name. Raises ValueError for an unknown name."""
    if name not in TYPES:
        raise ValueError(f"the kernel must be one of {', '.join(NAMES)}, got {name!r}")
    return TYPES[name]


def numbered_names() -> str:
    """List the kernels with their numbers, for a help line: `0 linear, 1 poly, ...`."""
    return ", ".join(f"{number} {name}" for number, name in enumerate(SHORT_NAMES))


def other_names() -> str:
    """List the kernels except the default, with the formulas that users_of() never lists."""
    others = [kind for kind in KERNEL_TYPES if kind.name != DEFAULT]
    return ", ".join(
        f'"{kind.name}"' if kind.parameters else f'"{kind.name}" {kind.formula}' for kind in others
    )


def users_of(parameter: str) -> str:
    """List the kernels with a parameter, for a help line.

    A kernel has its formula in the list of one parameter only: the one that the fewest kernels use.
    """

    def has_formula(kind: KernelType) -> bool:
        n_users = {name: sum(name in other.parameters for other in KERNEL_TYPES)
                   for name in kind.parameters}  # fmt: skip
        return min(n_users, key=n_users.__getitem__) == parameter

    users = [kind for kind in KERNEL_TYPES if parameter in kind.parameters]
    users.sort(key=has_formula, reverse=True)
    return ", ".join(f"{kind.short_name} {kind.formula}" if has_formula(kind) else kind.short_name
                     for kind in users)  # fmt: skip


def median_words() -> str:
    """Return the definition of gamma F/median for a help text."""
    users: dict[str, list[str]] = {}
    for kind in KERNEL_TYPES:
        if kind.is_of_distance:
            users.setdefault(kind.scaled_distance, []).append(kind.short_name)
    medians = ", ".join(f"{distance} ({', '.join(names)})" for distance, names in users.items())
    return (
        f"F divided by the median of {medians} over the pairs of 256 rows (only of different rows "
        "if most are equal)"
    )


@dataclass(frozen=True)
class Kernel:
    """Kernel function K(x, z) of the table, with its parameters.

    Parameters that the formula does not use are kept. `indefinite` is True if the matrix of a
    precomputed kernel was found to be indefinite. Raises ValueError for an unknown name.
    """

    name: str = DEFAULT
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    indefinite: bool = False

    def __post_init__(self) -> None:
        if self.name not in DISTANCES:
            type_named(self.name)
        # plain Python numbers, because model files contain their repr()
        for name, kind in (("gamma", float), ("coef0", float), ("degree", int)):
            object.__setattr__(self, name, kind(getattr(self, name)))

    @property
    def type(self) -> KernelType:
        """Properties of the kernel function."""
        return DISTANCES.get(self.name) or TYPES[self.name]

    @property
    def is_precomputed(self) -> bool:
        return self.type.is_precomputed

    @property
    def is_positive_semidefinite(self) -> bool:
        """Whether every kernel matrix is positive semidefinite (a convex dual problem)."""
        return self.type.is_semidefinite(self)

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters of the formula by name, in the order of a model file."""
        return {name: getattr(self, name) for name in self.type.parameters}

    def check_values(self, squared_norm: float) -> None:
        """Raise BeyondFloat32Error if kernel values may overflow float32.

        `squared_norm` is the largest |x|^2 of the rows. Intermediate results are checked, too.
        """
        if not self.fits_float32(squared_norm):
            raise BeyondFloat32Error(
                f"kernel values of {self.describe()} on rows of up to |x|^2 = {squared_norm:.3g} "
                f"are beyond float32, whose largest number is {MAX_FLOAT32:.3g}: scale the "
                "features, or take a smaller gamma"
            )

    def fits_float32(self, squared_norm: float) -> bool:
        """Return whether `check_values` raises no error."""
        try:
            return max(self.type.intermediate(self, squared_norm)) <= MAX_FLOAT32
        except OverflowError:
            return False

    @property
    def most_in_float32(self) -> float:
        """The largest |x|^2 for which `check_values` raises no error; -1 if it always does."""
        return _most_in_float32(self)

    def largest_value(self, squared_norm: float) -> float:
        """Return a bound on |K(x, z)| for rows with at most this |x|^2; inf beyond float64."""
        if self.type.diagonal is None:
            return 1.0
        try:
            return float(self.type.diagonal(replace(self, coef0=abs(self.coef0)), squared_norm))
        except OverflowError:
            return math.inf

    def largest_value_of(self, rows: Rows) -> float:
        """Return the largest |K(x, x)| of rows, or of all rows of a kernel matrix."""
        import numpy as np

        from dcsvm.data.rows import Storage

        if self.is_precomputed:
            return float(np.abs(np.diagonal(rows.in_storage(Storage.FLOATS).matrix)).max())
        if self.type.diagonal is None:
            return 1.0
        with np.errstate(over="ignore"):
            return float(self.type.diagonal(self, rows.squared_norms()).max())

    def values_of_distances(self, X: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Compute the values of a kernel of a distance in float64, (n, m)."""
        from scipy.spatial.distance import cdist

        assert self.type.value is not None
        s = cdist(X, others, METRICS[self.type.argument])
        return self.type.value(self.gamma * s**self.type.power)

    def describe(self) -> str:
        values = ", ".join(f"{name}={value:g}" for name, value in self.parameters.items())
        return f"{self.name}({values})" if values else f"{self.name} kernel"


@lru_cache
def _most_in_float32(kernel: Kernel) -> float:
    """Bisect for Kernel.most_in_float32, to the last bit."""
    low, high = -1.0, 2 * MAX_FLOAT32
    if not kernel.fits_float32(0.0):
        return low
    low = 0.0
    while True:
        # the geometric mean first: squares differ by many orders of magnitude
        middle = math.sqrt(low) * math.sqrt(high) if low > 0 else high / 2**16
        if high < 2 * low:
            middle = low + (high - low) / 2
        if not low < middle < high:
            return low
        low, high = (middle, high) if kernel.fits_float32(middle) else (low, middle)
