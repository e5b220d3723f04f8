"""Cases of the benchmark: each case is a training problem, each suite a list of cases.

datasets.py makes the files. A case with `rows` trains on that number of random rows of its file.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import product

import numpy as np


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
    """A training problem with the kernel exp(-gamma |x - z|^2)."""

    C: float
    gamma: float
    _: KW_ONLY
    tolerance: float = 1e-3
    extra: tuple[str, ...] = ()  # more options for dcsvm-train

    def options(self) -> list[str]:
        """Return C and the kernel as options of dcsvm-train and svm-train."""
        return ["-c", repr(self.C), "-g", repr(self.gamma)]


IJCNN1 = Case("ijcnn1", "ijcnn1", "ijcnn1.t", 32, 2)
SMALL = [
    IJCNN1,
    Case("covtype-10k g=32", "covtype.10000.tr", "covtype.te", 32, 32),
    Case("covtype-10k g=2", "covtype.10000.tr", "covtype.te", 32, 2),
    Case("a9a-10k", "a9a.10000", "a9a.t", 32, 2**-7),
]
UNIT = Case("covtype-20k g=32", "covtype.20000.tr", "covtype.te", 32, 32)
FULL = [
    IJCNN1,
    Case("mnist", "mnist.tr", "mnist.te", 1, 2**-21),
    Case("a9a", "a9a", "a9a.t", 32, 2**-7),
    Case("census", "census.tr", "census.te", 512, 2**-9),
    UNIT,
    Case("covtype-20k g=2", "covtype.20000.tr", "covtype.te", 32, 2),
    Case("covtype-50k g=32", "covtype.50000.tr", "covtype.te", 32, 32),
    Case("covtype-50k g=2", "covtype.50000.tr", "covtype.te", 32, 2),
]
EXPONENTS = [*product((-10, -6, 1, 6, 10), repeat=2)]  # of C and gamma: the paper's grid
GRID = [
    Case(f"{name} C=2^{c} g=2^{g}", f"{name}.10000{tr}", f"{name}.{te}", 2.0**c, 2.0**g)
    for name, tr, te in (("ijcnn1", "", "t"), ("covtype", ".tr", "te"), ("a9a", "", "t"))
    for c, g in EXPONENTS
]
FREE = [  # most support vectors are free
    Case(f"{name} C={C} g={gamma:g}", f"{name}.tr", f"{name}.te", C, gamma)
    for name, gamma in (("integers", 0.5), ("ternary", 0.5), ("flags", 0.5), ("flags", 0.05))
    for C in (1, 32)
]
PAPER = [  # the grid on all of covtype; svm-train's time on UNIT is the unit of its seconds
    Case(f"C=2^{c} g=2^{g}", "covtype.tr", "covtype.te", 2.0**c, 2.0**g) for c, g in EXPONENTS
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
        yield Case(name, train, test, 2.0**c, 2.0 ** (middle + g), rows=rows, seed=sample)
