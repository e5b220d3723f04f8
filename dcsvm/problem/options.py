"""The training options: their defaults, what they may be, and which do not go together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from dcsvm.kernel.kernels import NAMES, Kernel
from dcsvm.machine import MOST_THREADS
from dcsvm.problem.option_rules import (
    FACTORS,
    FINITE,
    FLAG,
    NOT_NEGATIVE,
    POSITIVE,
    OptionError,
    choice,
    integer,
    label_text,
    number,
    numbered,
    optional,
    or_word,
)
from dcsvm.problem.svm_types import SVM_TYPES, WITH_LEVELS

CLUSTERINGS = ("tree", "adaptive", "random", "kmeans")
MOST_LEVELS = 30
AUTO = "auto"  # an early level
CENTERED = "centered"  # probabilities that are 1/2 where a decision value is 0
# of rows near a border that early models learn in both of their clusters: 1.2 and 2 are no better
# at the same cost (docs/early-models.md)
DEFAULT_OVERLAP = 1.5
LARGEST_C = 1e100  # whose square still has room for sums
LARGEST_CACHE = 10**9  # MB
MOST_ITERATIONS = 2**62

RULES = {
    "C": POSITIVE,
    "svm_type": numbered(*SVM_TYPES),
    "nu": number("above 0 and at most 1", lambda value: 0 < value <= 1),
    "epsilon": NOT_NEGATIVE,
    "class_weight": optional(FACTORS),
    "bias": FLAG,
    "probability": or_word(CENTERED, FLAG),
    "kernel": choice(*NAMES),
    "gamma": optional(NOT_NEGATIVE),
    "coef0": FINITE,
    "degree": integer(0),
    "tolerance": POSITIVE,
    "gap": optional(POSITIVE),
    "levels": optional(integer(0, MOST_LEVELS)),
    "branching": integer(2),
    "sample": integer(1),
    "early": FLAG,
    "early_level": optional(or_word(AUTO, integer(1, MOST_LEVELS))),
    "overlap": optional(number("from 1 to 2", lambda value: 1 <= value <= 2)),
    "clustering": choice(*CLUSTERINGS),
    "seed": integer(0),
    "threads": optional(integer(1, MOST_THREADS)),
    "cache_mb": optional(
        number(f"positive and at most {LARGEST_CACHE}", lambda value: 0 < value <= LARGEST_CACHE)
    ),
    "max_iterations": integer(1, MOST_ITERATIONS, no_limit=-1),
    "certify": FLAG,
}


class UnknownOption(TypeError):
    """A name that is none of the `known` options of `where`."""

    def __init__(self, name: str, known: tuple[str, ...], where: str):
        super().__init__(name, known, where)
        self.name, self.known, self.where = name, known, where

    def __str__(self) -> str:
        from difflib import get_close_matches

        known = {option.lower(): option for option in self.known}
        near = get_close_matches(self.name.lower(), known, n=1, cutoff=0.5)
        hint = f"did you mean {known[near[0]]!r}?" if near else f"help({self.where}) lists them"
        return f"unknown option {self.name!r}; {hint}"


def check_names(
    names: Iterable[str], known: Iterable[str] = RULES, where: str = "dcsvm.train"
) -> None:
    """Raises UnknownOption."""
    for name in names:
        if name not in known:
            raise UnknownOption(name, tuple(known), where)


@dataclass(frozen=True)
class TrainOptions:
    """The options of training, with their defaults. `dcsvm.train` says what each means, RULES what
    each may be. Raises OptionError."""

    C: float = 1.0
    svm_type: str = "c_svc"
    nu: float = 0.5
    epsilon: float = 0.1
    class_weight: dict[float | str, float] | None = None
    bias: bool = False
    probability: bool | str = False
    kernel: str = "rbf"
    gamma: float | None = None
    coef0: float = 0.0
    degree: int = 3
    tolerance: float = 1e-3
    gap: float | None = None
    levels: int | None = None
    branching: int = 4
    sample: int = 1000
    early: bool = False
    early_level: int | str | None = None
    overlap: float | None = None
    clustering: str = "tree"
    seed: int = 0
    threads: int | None = None
    cache_mb: int | None = None
    max_iterations: int = -1
    certify: bool = False

    @classmethod
    def of(cls, **options) -> TrainOptions:
        """Raises UnknownOption for a name that is not a field, and OptionError."""
        check_names(options)
        return cls(**options)

    def __post_init__(self):
        for field in fields(self):
            plain = RULES[field.name].check(field.name, getattr(self, field.name))
            object.__setattr__(self, field.name, plain)
        if self.cache_mb is not None:
            object.__setattr__(self, "cache_mb", math.ceil(self.cache_mb))
        self._check_weights()
        self._check_problem()
        self._check_levels()

    @property
    def has_levels(self) -> bool:
        return self.svm_type in WITH_LEVELS

    @property
    def chooses_early_level(self) -> bool:
        """Whether training finds the early level."""
        return self.early and self.early_level in (None, AUTO)

    def choosing_by_test(self) -> TrainOptions:
        """The same where test rows choose the early level, however few rows there are."""
        return replace(self, early_level=AUTO)

    @property
    def early_overlap(self) -> float:
        """That of the early level: what is asked for, else plain where it is only a step."""
        if self.overlap is not None:
            return self.overlap
        return DEFAULT_OVERLAP if self.early else 1.0

    def _check_weights(self) -> None:
        if self.C > LARGEST_C:
            raise OptionError("C", f"must be at most {LARGEST_C:g}, not {self.C:g}")
        for label, factor in (self.class_weight or {}).items():
            C = self.C * factor
            if not 0 < C <= LARGEST_C:
                reason = (
                    f"above 0 and at most {LARGEST_C:g}, not {C:g} for class {label_text(label)}"
                )
                raise OptionError("class_weight", f"times C must be {reason}")

    def _check_problem(self) -> None:
        """Types and kernels that lack something."""
        if self.probability and self.svm_type == "one_class":
            raise OptionError("probability", "is not for one-class, which has no probabilities")
        if self.clustering == "kmeans" and self.kernel == "precomputed":
            raise OptionError("clustering", "kmeans needs features, a precomputed kernel has none")
        kernel = Kernel(self.kernel, coef0=self.coef0, degree=self.degree)
        if self.gap is not None and not kernel.is_positive_semidefinite:
            raise OptionError("gap", f"cannot be stated for the kernel {self.kernel}")

    def _check_levels(self) -> None:
        """Early models that cannot be, whatever the rows are."""
        option = "early" if self.early else "early_level"
        if not self.early and self.early_level is None:
            if self.overlap is None:
                return
            option = "overlap"
        if not self.has_levels:
            raise OptionError(option, f"is not for {self.svm_type}, which has no levels")
        if self.levels == 0:
            raise OptionError(option, "needs levels, and there are none")
        if self.early_level == AUTO and not self.early:
            raise OptionError("early_level", "auto is for early models alone: it needs early")
        if (
            self.levels is not None
            and isinstance(self.early_level, int)
            and self.early_level > self.levels
        ):
            reason = f"must be at most {self.levels}, the finest level, not {self.early_level}"
            raise OptionError("early_level", reason)
