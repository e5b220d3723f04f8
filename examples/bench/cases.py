"""Cases of the benchmark: each case is a training problem, each suite a list of cases.

datasets.py makes the files. A case with `rows` trains on that number of random rows of its file.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import product

import numpy as np

LINEAR, POLYNOMIAL, RBF, SIGMOID = range(4)  # numbers for the option -t
KERNELS = ("linear", "poly", "rbf", "sigmoid")  # scikit-learn's names


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

    def params(self) -> dict:
        """Return the kernel as parameters of scikit-learn's SVC."""
        return {"kernel": KERNELS[self.type], "gamma": self.gamma, "degree": self.degree,
                "coef0": self.coef0}  # fmt: skip


@dataclass(frozen=True)
class Files:
    """A case of any suite: its name and its files."""

    name: str
    train: str
    test: str | None
    _: KW_ONLY
    rows: int | None = None  # train on a random sample of this size
    seed: int = 0  # of the sample


@dataclass(frozen=True)
class Case(Files):
    C: float
    kernel: Kernel
    _: KW_ONLY
    tolerance: float = 1e-3
    extra: tuple[str, ...] = ()  # more options for dcsvm-train

    def options(self) -> list[str]:
        """Return C and the kernel as options of dcsvm-train and svm-train."""
        return ["-c", repr(self.C), *self.kernel.options()]


def rbf(name: str, train: str, test: str | None, C: float, gamma: float, **more) -> Case:
    return Case(name, train, test, C, Kernel(gamma), **more)


IJCNN1 = rbf("ijcnn1", "ijcnn1", "ijcnn1.t", 32, 2)
SMALL = [
    IJCNN1,
    rbf("covtype-10k g=32", "covtype.10000.tr", "covtype.te", 32, 32),
    rbf("covtype-10k g=2", "covtype.10000.tr", "covtype.te", 32, 2),
    rbf("a9a-10k", "a9a.10000", "a9a.t", 32, 2**-7),
]
UNIT = rbf("covtype-20k g=32", "covtype.20000.tr", "covtype.te", 32, 32)
FULL = [
    IJCNN1,
    rbf("mnist", "mnist.tr", "mnist.te", 1, 2**-21),
    rbf("a9a", "a9a", "a9a.t", 32, 2**-7),
    rbf("census", "census.tr", "census.te", 512, 2**-9),
    UNIT,
    rbf("covtype-20k g=2", "covtype.20000.tr", "covtype.te", 32, 2),
    rbf("covtype-50k g=32", "covtype.50000.tr", "covtype.te", 32, 32),
    rbf("covtype-50k g=2", "covtype.50000.tr", "covtype.te", 32, 2),
]
EXPONENTS = [*product((-10, -6, 1, 6, 10), repeat=2)]  # of C and gamma: the paper's grid
GRID = [
    rbf(f"{name} C=2^{c} g=2^{g}", f"{name}.10000{tr}", f"{name}.{te}", 2.0**c, 2.0**g)
    for name, tr, te in (("ijcnn1", "", "t"), ("covtype", ".tr", "te"), ("a9a", "", "t"))
    for c, g in EXPONENTS
]
FREE = [  # most support vectors are free
    rbf(f"{name} C={C} g={gamma:g}", f"{name}.tr", f"{name}.te", C, gamma)
    for name, gamma in (("integers", 0.5), ("ternary", 0.5), ("flags", 0.5), ("flags", 0.05))
    for C in (1, 32)
]
PAPER = [  # the grid on all of covtype; svm-train's time on UNIT is the unit of its seconds
    rbf(f"C=2^{c} g=2^{g}", "covtype.tr", "covtype.te", 2.0**c, 2.0**g) for c, g in EXPONENTS
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


def random_cases(count: int, seed: int, most_rows: int = 20_000) -> Iterator[Case]:
    """Draw random settings: C and gamma over twenty octaves, at least 500 rows."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        train = list(RANDOM_FILES)[rng.integers(len(RANDOM_FILES))]
        test, middle = RANDOM_FILES[train]
        c, g = np.round(rng.uniform(-10, 10, size=2), 1).tolist()
        rows = int(500 * (most_rows / 500) ** rng.uniform())
        name = f"{train} n={rows} C=2^{c:g} g=2^{middle + g:g}"
        sample = int(rng.integers(2**31))
        yield rbf(name, train, test, 2.0**c, 2.0 ** (middle + g), rows=rows, seed=sample)
