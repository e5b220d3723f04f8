"""The training options: their defaults, what they may be, and which do not go together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

from dcsvm.kernel.kernels import (
    DEFAULT,
    NAMES,
    TYPES,
    Kernel,
    KernelType,
    numbered_names,
    other_names,
    users_of,
)
from dcsvm.machine import MOST_THREADS
from dcsvm.problem.option_rules import (
    FACTORS,
    FINITE,
    FLAG,
    NOT_NEGATIVE,
    POSITIVE,
    SVM_TYPES,
    WITH_LEVELS,
    OptionError,
    choice,
    integer,
    label_text,
    number,
    numbered,
    optional,
    or_word,
)
from dcsvm.problem.option_table import OptionTable, option

CLUSTERINGS = ("tree", "adaptive", "random", "kmeans")
MOST_LEVELS = 30
AUTO = "auto"  # an early level
CENTERED = "centered"  # probabilities that are 1/2 where a decision value is 0
# of rows near a border that early models learn in both of their clusters: 1.2 and 2 are no better
# at the same cost (docs/early-models.md)
DEFAULT_OVERLAP = 1.5
LARGEST_C = 1e100  # whose square still has room for sums
LARGEST_CACHE = 10**9  # MB
MEGABYTES = number(f"positive and at most {LARGEST_CACHE}", lambda mb: 0 < mb <= LARGEST_CACHE)
MOST_ITERATIONS = 2**62

of_problem, of_kernel, of_accuracy, of_levels, of_long_runs = (
    partial(option, group=title)
    for title in ("Problem", "Kernel", "Accuracy", "Levels", "Long runs")
)

threads_option = partial(
    option,
    None,
    optional(integer(1, MOST_THREADS)),
    "--threads N",
    "threads to use",
    "The default is OMP_NUM_THREADS, else the cores that this process may use.",
    keyword="None is OMP_NUM_THREADS, else the cores this process may use, and one for small work",
    default_text="the usable cores",
    is_free=True,
)


@dataclass(frozen=True)
class TrainOptions(OptionTable):
    """The options of training, with their defaults; help(dcsvm.train) lists them, and what they
    may be. Raises OptionError."""

    function = "dcsvm.train"

    # a row: default, rule, letter or name; line of --help; details; what else is known
    # fmt: off
    svm_type: str = of_problem("c_svc", numbered(*SVM_TYPES), "-s TYPE",
        "0 C-SVC, 1 nu-SVC, 2 one-class, 3 eps-SVR, 4 nu-SVR",
        "Or the name as in a model file, such as nu_svc.",
        keyword='or "nu_svc", "one_class", "epsilon_svr", "nu_svr", also with -, or LIBSVM\'s '
        "number, 0 to 4",
        is_basic=True)
    C: float = of_problem(1.0, POSITIVE, "-c C",
        "cost of an error, of C-SVC and both regressions",
        is_basic=True)
    class_weight: dict[float | str, float] | None = of_problem(None, optional(FACTORS),
        "-w LABEL FACTOR",
        "C of the class LABEL times FACTOR, as -w-1 5, of C-SVC",
        "Once for each class; the label follows the letter without a blank.",
        keyword="label -> factor of C, for C-SVC; 1 for labels it lacks")
    nu: float = of_problem(0.5, number("above 0 and at most 1", lambda value: 0 < value <= 1),
        "-n NU",
        "nu of nu-SVC, one-class and nu-SVR, up to 1")
    epsilon: float = of_problem(0.1, NOT_NEGATIVE, "-p EPSILON",
        "of eps-SVR: errors up to it cost nothing",
        keyword="of epsilon-SVR, in units of y: errors up to it cost nothing")
    bias: bool = of_problem(False, FLAG, "--bias",
        "C-SVC with a bias, as in LIBSVM",
        "The other problems always have one.")
    probability: bool | str = of_problem(False, or_word(CENTERED, FLAG), "-b 0|1",
        "1: a model that can predict probabilities",
        "Not for one-class. It costs five folds, also with --early.",
        keyword='fit what predict_probability needs, from five folds; "centered" gives 1/2 where a '
        "decision value is 0")
    kernel: str = of_kernel(DEFAULT, choice(*NAMES), "-t TYPE",
        numbered_names(),
        "The linear kernel is u'v. The file of a precomputed kernel has kernel values in place of "
        "features.",
        keyword=f"or {other_names()}",
        is_basic=True)
    degree: int = of_kernel(3, integer(0), "-d DEGREE", f"of {users_of('degree')}")
    gamma: float | None = of_kernel(None, optional(NOT_NEGATIVE), "-g GAMMA",
        f"of {users_of('gamma')}", "0 is the default, as in LIBSVM.",
        default_text="1/features", is_basic=True)
    coef0: float = of_kernel(0.0, FINITE, "-r COEF0", f"of {users_of('coef0')}")
    tolerance: float = of_accuracy(1e-3, POSITIVE, "-e TOL",
        "largest violation of the optimality conditions",
        "In units of the decision value; of nu-SVR in standard deviations of the targets, where "
        "these are below 1.",
        keyword="largest violation of the optimality conditions, in units of the decision value; "
        "of nu-SVR in standard deviations of the targets, where these are below 1",
        is_basic=True)
    gap: float | None = of_accuracy(None, optional(POSITIVE), "--gap GAP",
        "stop at this relative duality gap, not at -e",
        "It is relative to the objective, and cannot be stated for indefinite kernels.",
        keyword="stop at this duality gap relative to the objective, not at the tolerance",
        in_grid=False)
    certify: bool = of_accuracy(False, FLAG, "--certify",
        "check every row with float64 kernel values",
        "Without it a sample of rows is checked, and all that could violate.",
        is_free=True, in_grid=False)
    levels: int | None = of_levels(None, optional(integer(0, MOST_LEVELS)), "-l --levels L",
        "levels of clusters, 0 for none",
        "The finest level has branching^L clusters. The default is the early level, every second "
        "finer one down to 1000 rows a cluster, and level 2 (not where kernel values are "
        "expensive, with hundreds of features). Levels of fewer than 100 rows a cluster on average "
        "are skipped. Only C-SVC and epsilon-SVR have levels.",
        default_text="by the number of rows", in_grid=False)
    branching: int = of_levels(4, integer(2), "-k --branching N",
        "clusters for each one of the next coarser level",
        "One is divided into at most 256.")
    sample: int = of_levels(1000, integer(1), "--sample M",
        "rows of a level that kernel k-means is run on",
        "At least 8 for every one of its clusters; in a tree at most 64.")
    clustering: str = of_levels("tree", choice(*CLUSTERINGS), "--clustering HOW",
        "tree, adaptive, random, kmeans",
        "adaptive: each level by two-step kernel k-means of a sample of the support vectors of "
        "the level below (Algorithm 1 of the paper). random: the same of a sample of all rows. "
        "tree: clusters are parts of those of the next coarser level, as always with --early and "
        "where there are more than 256. kmeans: such a tree with Euclidean distances.",
        keyword='each cluster is a part of a coarser one; or "adaptive", levels from support '
        'vectors of the level below; "random", from random rows; "kmeans", a Euclidean tree')
    early: bool = of_levels(False, FLAG, "--early",
        "only one level, a model of local models: much faster",
        is_basic=True)
    early_level: int | str | None = of_levels(None,
        optional(or_word(AUTO, integer(1, MOST_LEVELS))), "--early-level L",
        "level of early prediction",
        "auto, for --early alone, takes the level with the fewest wrong rows, or the least "
        "squared error, as the rows of some clusters tell that are left out one by one. It looks "
        "from the finest level up, that of -l or of 100 rows a cluster. By default up to 50,000 "
        "rows have level 1 or 2 without a search. Without --early the default is 3, or the finest.",
        keyword='the level of early prediction; "auto" finds it, for early models alone, and is '
        "their default; else it is 3, or the finest",
        default_text="auto, else 3")
    overlap: float | None = of_levels(None,
        optional(number("from 1 to 2", lambda value: 1 <= value <= 2)), "--overlap F",
        "clusters a row is in, 1 to 2",
        "On average: rows near a border learn in the clusters on both sides of it, and are "
        "predicted by both. 1 is the paper's early prediction, and the default without --early.",
        keyword="clusters of the early level that a row is in on average, from 1 to 2; None is 1.5 "
        "for early models, else 1",
        default_text="1.5, else 1")
    seed: int = of_levels(0, integer(0), "--seed N",
        "seed of the samples and of the folds of -v and -b",
        keyword="of the samples and of all folds")
    cache_mb: int | None = of_long_runs(None, optional(MEGABYTES), "-m MB",
        "memory for caches and copies",
        "Matrices and working copies of all threads together; the rows, 64 bytes for each of "
        "them and 200 MB come on top. The default is half of the memory this process may use, at "
        "most 8000 MB, and no more than the rows leave.",
        keyword="megabytes for caches, matrices and working copies; None is half of the memory "
        "this process may use, at most 8000",
        default_text="half of what there is", is_basic=True, is_free=True)
    threads: int | None = threads_option(group="Long runs")
    max_iterations: int = of_long_runs(-1, integer(1, MOST_ITERATIONS, no_limit=-1),
        "--max-iter N",
        "stop after about N coordinate updates",
        default_text="no limit", in_grid=False)

    # fmt: on
    def __post_init__(self):
        super().__post_init__()
        if self.cache_mb is not None:
            object.__setattr__(self, "cache_mb", math.ceil(self.cache_mb))
        self._check_weights()
        self._check_problem()
        self._check_levels()

    @property
    def kernel_type(self) -> KernelType:
        return TYPES[self.kernel]

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
        if self.clustering == "kmeans" and self.kernel_type.is_precomputed:
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
