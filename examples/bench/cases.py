"""Cases of the benchmark: each case is a training problem, each suite a list of cases.

datasets.py makes the files. A case with `rows` trains on that number of random rows of its file.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

LINEAR, POLYNOMIAL, RBF, SIGMOID = range(4)  # numbers for the option -t


@dataclass(frozen=True)
class Kernel:
    gamma: float
    type: int = RBF
    degree: int = 3
    coef0: float = 0.0

    def options(self) -> list[str]:
        """Return the kernel as options of dcsvm-train and svm-train."""
        options = ["-t", str(self.type), "-g", repr(self.gamma)]
        if self.type == POLYNOMIAL:
            options += ["-d", str(self.degree)]
        return options if self.type in (LINEAR, RBF) else [*options, "-r", repr(self.coef0)]


@dataclass(frozen=True)
class Case:
    name: str
    train: str
    test: str | None
    C: float
    kernel: Kernel
    tolerance: float = 1e-3
    rows: int | None = None  # train on a random sample of this size
    seed: int = 0  # of the sample
    extra: tuple[str, ...] = ()  # more options for dcsvm-train


def rbf(name: str, train: str, test: str | None, C: float, gamma: float, **more) -> Case:
    return Case(name, train, test, C, Kernel(gamma), **more)


SMALL = [
    rbf("ijcnn1", "ijcnn1", "ijcnn1.t", 32, 2),
    rbf("covtype-10k g=32", "covtype.10000.tr", "covtype.te", 32, 32),
    rbf("covtype-10k g=2", "covtype.10000.tr", "covtype.te", 32, 2),
    rbf("a9a-10k", "a9a.10000", "a9a.t", 32, 2**-7),
]

FULL = [
    rbf("ijcnn1", "ijcnn1", "ijcnn1.t", 32, 2),
    rbf("mnist", "mnist.tr", "mnist.te", 1, 2**-21),
    rbf("a9a", "a9a", "a9a.t", 32, 2**-7),
    rbf("census", "census.tr", "census.te", 512, 2**-9),
    rbf("covtype-20k g=32", "covtype.20000.tr", "covtype.te", 32, 32),
    rbf("covtype-20k g=2", "covtype.20000.tr", "covtype.te", 32, 2),
    rbf("covtype-50k g=32", "covtype.50000.tr", "covtype.te", 32, 32),
    rbf("covtype-50k g=2", "covtype.50000.tr", "covtype.te", 32, 2),
]

GRID_EXPONENTS = (-10, -6, 1, 6, 10)  # the paper's grid
GRID_FILES = {
    "ijcnn1": ("ijcnn1.10000", "ijcnn1.t"),
    "covtype": ("covtype.10000.tr", "covtype.te"),
    "a9a": ("a9a.10000", "a9a.t"),
}
GRID = [
    rbf(f"{name} C=2^{c} g=2^{g}", train, test, 2.0**c, 2.0**g)
    for name, (train, test) in GRID_FILES.items()
    for c, g in product(GRID_EXPONENTS, GRID_EXPONENTS)
]

FREE_SETTINGS = (("integers", 0.5), ("ternary", 0.5), ("flags", 0.5), ("flags", 0.05))
FREE = [  # most support vectors are free
    rbf(f"{name} C={C} g={gamma:g}", f"{name}.tr", f"{name}.te", C, gamma)
    for name, gamma in FREE_SETTINGS
    for C in (1, 32)
]

# PAPER is the paper's grid on all of covtype; svm-train's time on UNIT is the unit of its seconds
UNIT = rbf("covtype-20k g=32", "covtype.20000.tr", "covtype.te", 32, 32)
PAPER = [
    rbf(f"C=2^{c} g=2^{g}", "covtype.tr", "covtype.te", 2.0**c, 2.0**g)
    for c, g in product(GRID_EXPONENTS, GRID_EXPONENTS)
]

SUITES = {"small": SMALL, "full": FULL, "grid": GRID, "free": FREE, "paper": PAPER}

RANDOM_FILES = {  # test file, middle of the random exponents of gamma
    "ijcnn1": ("ijcnn1.t", 0),
    "covtype.tr": ("covtype.te", 0),
    "a9a": ("a9a.t", -4),
    "census.tr": ("census.te", -4),
    "kdd10.tr": ("kdd10.te", 0),
    "mnist.tr": ("mnist.te", -21),
}


def random_cases(count: int, seed: int, most_rows: int = 20_000) -> list[Case]:
    """Draw random settings: C and gamma over twenty octaves, at least 500 rows."""
    rng = np.random.default_rng(seed)
    return [random_case(rng, most_rows) for _ in range(count)]


def random_case(rng: np.random.Generator, most_rows: int) -> Case:
    train = list(RANDOM_FILES)[rng.integers(len(RANDOM_FILES))]
    test, middle = RANDOM_FILES[train]
    c, g = np.round(rng.uniform(-10, 10, size=2), 1).tolist()
    rows = int(500 * (most_rows / 500) ** rng.uniform())
    name = f"{train} n={rows} C=2^{c:g} g=2^{middle + g:g}"
    sample = int(rng.integers(2**31))
    return rbf(name, train, test, 2.0**c, 2.0 ** (middle + g), rows=rows, seed=sample)
