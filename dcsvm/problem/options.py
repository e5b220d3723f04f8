"""The options of training and of compression: defaults, valid values and combinations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dcsvm.data.files import ENDINGS, FORMATS, PACKED, table_format
from dcsvm.kernel.kernels import (
    DEFAULT,
    NAMES,
    SHORT_NAMES,
    TYPES,
    Kernel,
    KernelType,
    median_words,
    numbered_names,
    other_names,
    users_of,
)
from dcsvm.machine import MAX_THREADS, usable_threads
from dcsvm.problem.option_table import (
    AUTO,
    BALANCED,
    CLASSIFIERS,
    FACTORS,
    FINITE,
    GAMMA,
    METRICS,
    NOT_NEGATIVE,
    POSITIVE,
    REGRESSIONS,
    SVM_NAMES,
    SVM_TYPES,
    WITH_LEVELS,
    OptionError,
    OptionTable,
    Rule,
    checked_metric,
    is_per_median,
    label_text,
    option,
)

CLUSTERINGS = ("tree", "adaptive", "random", "kmeans")
TREES = ("tree", "kmeans")  # the clusterings of a level alone, and of levels with many clusters
MAX_BRANCHING = 256  # children of a cluster, MAX_PARTS of dcsvm/kernel/sources.py
MAX_LEVELS = 30
AUTO_SCALE, QUANTILE, LEARN = "auto", "quantile", "learn"
STANDARD_INPUT = ("-", "/dev/stdin")
CENTERED = "centered"  # value of `probability`: decision value 0 has probability 1/2
# Mean clusters per row of early models. At the same cost 1.2 and 2 are no better
# (docs/early-models.md).
DEFAULT_OVERLAP = 1.5
MAX_C = 1e100  # keeps sums of C^2 finite
MAX_CACHE = 10**9  # MB
MEGABYTES = Rule.number(f"positive and at most {MAX_CACHE}", lambda mb: 0 < mb <= MAX_CACHE)
MAX_ITERATIONS = 2**62
TOLERANCE_UNIT = (
    "in decision values, or in these units if they are below 1: the margin of nu-SVC, the "
    "standard deviation of the targets of a regression, nu n of one-class"
)

of_problem, of_kernel, of_accuracy, of_levels, of_long_runs = (
    partial(option, group=title)
    for title in ("Problem", "Kernel", "Accuracy", "Levels", "Long runs")
)

threads_option = partial(
    option,
    None,
    Rule.integer(1, MAX_THREADS).optional,
    "--threads N",
    "number of threads",
    "The default is OMP_NUM_THREADS if set, otherwise the cores available to this process.",
    keyword="number of threads; None is OMP_NUM_THREADS if set, otherwise the cores available to "
    "this process, and 1 for small problems",
    default_text="available cores",
    is_free=True,
)


@dataclass(frozen=True)
class TrainOptions(OptionTable):
    """The options of training; help(dcsvm.train) describes them. Raises OptionError."""

    function = "dcsvm.train"
    of_easy = ("seed", "threads", "cache_mb", "probability", "class_weight")  # it chooses the rest

    # arguments: default, rule, spelling, help, details, and other fields of Option
    # fmt: off
    svm_type: str = of_problem("c_svc",
        Rule.choice(*SVM_TYPES, spellings=SVM_NAMES, has_numbers=True), "-s TYPE",
        ", ".join(f"{number} {name}" for number, name in enumerate(SVM_NAMES)),
        "You can also give a name in any case, such as nu-SVC or nu_svc.",
        keyword='or "nu_svc", "one_class", "epsilon_svr", "nu_svr", also with -, or LIBSVM\'s '
        "number, 0 to 4",
        is_basic=True)
    C: float = of_problem(1.0, POSITIVE, "-c C",
        "penalty C of C-SVC, eps-SVR and nu-SVR",
        is_basic=True)
    class_weight: dict[float | str, float] | str | None = of_problem(None,
        FACTORS.or_word(BALANCED).optional,
        "-w LABEL FACTOR",
        "C-SVC: multiply C of class LABEL by FACTOR (-w-1 5)",
        "Give it once per class. The label follows the letter without a space.",
        is_multiple=True,
        keyword="label -> factor of C, for C-SVC; labels not in it have factor 1; or \"balanced\": "
        "n / (number of classes * rows of the class)")
    nu: float = of_problem(0.5, Rule.number("above 0 and at most 1", lambda value: 0 < value <= 1),
        "-n NU",
        "nu of nu-SVC, one-class and nu-SVR, up to 1",
        keyword="of nu-SVC, one-class and nu-SVR, above 0 and at most 1: upper bound on the "
        "fraction of margin errors, and lower bound on the fraction of support vectors")
    epsilon: float = of_problem(0.1, NOT_NEGATIVE, "-p EPSILON",
        "epsilon of the eps-SVR loss, in units of y",
        "Smaller errors have no loss.",
        keyword="epsilon of the epsilon-SVR loss, in units of y: smaller errors have no loss")
    bias: bool = of_problem(False, Rule.flag(), "--bias",
        "train C-SVC with a bias term, as LIBSVM does",
        "The other types always have a bias term.")
    probability: bool | str = of_problem(False, Rule.flag().or_word(CENTERED), "-b 0|1",
        "1: also fit class probabilities",
        "This adds a 5-fold cross-validation, except for one-class. For a regression, the width of "
        "the noise distribution is fitted.",
        keyword='fit a model of probabilities by 5-fold cross-validation (one-class: to the '
        'training rows); "centered" gives probability 1/2 to decision value 0')
    kernel: str = of_kernel(DEFAULT, Rule.choice(*NAMES, spellings=SHORT_NAMES), "-t TYPE",
        numbered_names(),
        "You can also give a name, in any case. The linear kernel is u'v. The data file of a "
        "precomputed kernel contains kernel values instead of features.",
        keyword=f"or {other_names()}",
        is_basic=True)
    degree: int = of_kernel(3, Rule.integer(0), "-d DEGREE", f"degree of {users_of('degree')}")
    gamma: float | str | None = of_kernel(None, GAMMA.optional, "-g GAMMA",
        f"number, auto or F/median: gamma of {users_of('gamma')}",
        "0 selects the default, as in LIBSVM. auto is 1 / (features * variance of all values). "
        f"F/median, such as 2/median, is {median_words()}. In 1/features, a column of categories "
        "counts once.",
        keyword=f'gamma of {users_of("gamma")}; at least 0, or "auto": 1 / (features * variance '
        f'of all values), or "F/median", such as "2/median": {median_words()}; None is 1/features, '
        "where a column of categories counts once",
        default_text="1/features", is_basic=True)
    coef0: float = of_kernel(0.0, FINITE, "-r COEF0", f"coef0 of {users_of('coef0')}")
    tolerance: float = of_accuracy(1e-3, POSITIVE, "-e TOL",
        "tolerance: stop at this KKT violation",
        f"{TOLERANCE_UNIT[0].upper()}{TOLERANCE_UNIT[1:]}. With --early, each cluster is solved to "
        "TOL; an early model beside an exact one is solved to TOL or 0.001, the larger one.",
        keyword=f"largest KKT violation of the solution, {TOLERANCE_UNIT}",
        is_basic=True)
    gap: float | None = of_accuracy(None, POSITIVE.optional, "--gap GAP",
        "stop at this relative duality gap instead of -e",
        "The gap is relative to the objective. Indefinite kernels have none.",
        keyword="stop at this duality gap, relative to the objective, instead of the tolerance",
        in_grid=False)
    certify: bool = of_accuracy(False, Rule.flag(), "--certify",
        "check every row in float64 at the end",
        "By default, a sample of the rows and all possible violators are checked.",
        is_free=True, in_grid=False)
    levels: int | None = of_levels(None, Rule.integer(0, MAX_LEVELS).optional, "-l --levels L",
        "number of cluster levels, 0 for none",
        "The finest level has branching^L clusters. By default, the number of rows decides. Levels "
        "with fewer than 100 rows per cluster on average are skipped. Only C-SVC and epsilon-SVR "
        "use levels.",
        default_text="by number of rows", in_grid=False)
    branching: int = of_levels(4, Rule.integer(2, MAX_BRANCHING), "-k --branching N",
        "child clusters per cluster of the coarser level",
        f"At most {MAX_BRANCHING}.")
    sample: int = of_levels(1000, Rule.integer(1), "--sample M",
        "rows sampled per level for kernel k-means",
        "At least 8 per cluster are sampled, and in a tree at most 64.")
    clustering: str = of_levels("tree", Rule.choice(*CLUSTERINGS), "--clustering NAME",
        "method: tree, adaptive, random, kmeans",
        "tree splits each cluster of the coarser level; kmeans does so by Euclidean distances. "
        "adaptive uses a sample of the finer level's support vectors (Algorithm 1 of the paper), "
        "and random a sample of all rows. --early needs tree or kmeans, "
        "unless -l and --early-level are given. Levels of more than "
        f"{MAX_BRANCHING} clusters use a tree, with a warning.",
        keyword='each cluster of the coarser level is split; or "adaptive", k-means on support '
        'vectors of the finer level; "random", on random rows; "kmeans", a Euclidean tree')
    early: bool = of_levels(False, Rule.flag(), "--early",
        "train only the early model: an SVM per cluster of rows",
        "With -l and --early-level, the finer levels are trained first, and each level starts from "
        "the solution of the finer one.",
        keyword="train one level only, a local model for each of its clusters: much faster; with "
        "levels and early_level the finer levels run before it",
        is_basic=True)
    early_level: int | str | None = of_levels(None,
        Rule.integer(1, MAX_LEVELS).or_word(AUTO).optional, "--early-level L",
        "level of the early model",
        "auto, only with --early, searches for the smallest leave-one-out error, starting from the "
        "finest level (that of -l, or 100 rows per cluster). By default, --early searches with "
        "more than 50,000 rows; otherwise, it uses level 1 or 2. Without --early, the default is "
        "3, or the finest level if that is smaller.",
        keyword='level of the early model; "auto", only with early, searches for it, and is the '
        "default then; otherwise 3, or the finest level",
        default_text="by number of rows")
    overlap: float | None = of_levels(None,
        Rule.number("from 1 to 2", lambda value: 1 <= value <= 2).optional, "--overlap F",
        "mean clusters per row, 1 to 2",
        "Rows near a cluster boundary are trained in the clusters on both sides, and both clusters "
        "predict them. With 1, each row has one cluster, as in the paper.",
        keyword="mean number of clusters of the early level that a row is in, from 1 to 2; None is "
        "1.5 with early, otherwise 1",
        default_text="1.5; 1 without --early")
    seed: int = of_levels(0, Rule.integer(0), "--seed N",
        "random seed of sampling and of the folds",
        keyword="random seed of the samples and the folds")
    cache_mb: int | None = of_long_runs(None, MEGABYTES.optional, "-m MB",
        "memory for caches and copies",
        "In 10^6 bytes, for kernel row caches, matrices and working copies of all threads. Rows, "
        "64 bytes per row and 200 MB for the program are not included. The default is half of the "
        "memory available to this process, at most 8000 MB, and at most what the rows leave free.",
        keyword="MB for caches, matrices and working copies; None is half of the memory available "
        "to this process, at most 8000",
        default_text="half of free memory", is_basic=True, is_free=True)
    threads: int | None = threads_option(group="Long runs")
    max_iterations: int = of_long_runs(-1, Rule.integer(1, MAX_ITERATIONS, no_limit=-1),
        "--max-iter N",
        "stop after about N coordinate updates",
        default_text="no limit", in_grid=False)

    # fmt: on
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cache_mb is not None:
            object.__setattr__(self, "cache_mb", math.ceil(self.cache_mb))
        self._check_weights()
        self._check_problem()
        self._check_levels()

    @property
    def kernel_type(self) -> KernelType:
        return TYPES[self.kernel]

    def kernel_on(self, n_features: int) -> Kernel:
        """Return the kernel on rows of `n_features` features; see `number_of_gamma`."""
        assert not isinstance(self.gamma, str)
        gamma = 1.0 / max(n_features, 1) if self.gamma is None else self.gamma
        return Kernel(self.kernel, gamma, self.coef0, self.degree)

    @property
    def has_bias(self) -> bool:
        return self.bias or self.svm_type != "c_svc"

    @property
    def is_regression(self) -> bool:
        return self.svm_type in REGRESSIONS

    @property
    def has_levels(self) -> bool:
        return self.svm_type in WITH_LEVELS

    @property
    def chooses_early_level(self) -> bool:
        """Whether training searches for the early level."""
        return self.early and self.early_level in (None, AUTO)

    def choosing_by_test(self) -> TrainOptions:
        """Return options that choose the early level by test rows, also for small data."""
        return replace(self, early_level=AUTO)

    @property
    def early_overlap(self) -> float:
        """Mean clusters per row of the early level; the default is 1 for exact models."""
        if self.overlap is not None:
            return self.overlap
        return DEFAULT_OVERLAP if self.early else 1.0

    def with_threads(self) -> TrainOptions:
        """Return options with the number of threads that None stands for."""
        return replace(self, threads=usable_threads(self.threads))

    def fold_of_rows(self, labels: Any, n_folds: int) -> Any:
        """Assign every row to a fold, int64 (n,): stratified for classes, drawn with the seed."""
        from dcsvm.problem.folds import shuffled_folds, stratified_folds

        if self.svm_type in CLASSIFIERS:
            return stratified_folds(labels, n_folds, self.seed)
        return shuffled_folds(len(labels), n_folds, self.seed)

    @classmethod
    def check_easy(cls, svm_type: object, options: dict[str, Any]) -> None:
        """Check what is given to `dcsvm.easy`. Raises TypeError and OptionError."""
        for name in set(options) & set(cls.names()) - set(cls.of_easy):
            raise TypeError(f"easy chooses {name} itself: its options are {', '.join(cls.of_easy)}")
        known = (*WITH_LEVELS, "one_class")
        if svm_type not in (None, *known):
            reason = f"must be {' or '.join(map(repr, known))}, got {svm_type!r}"
            raise OptionError("svm_type", reason)

    @staticmethod
    def learns_weights(given: object) -> bool:
        """Whether feature weights are to be learned. Raises OptionError for another word."""
        if isinstance(given, str) and given != LEARN:
            raise OptionError("feature_weights", f"must be an array or {LEARN!r}, got {given!r}")
        return isinstance(given, str)

    def check_feature_weights(self, weights: object) -> None:
        """Raise OptionError if rows cannot have feature weights, or if they cannot be learned."""
        if weights is None:
            return
        reason = ""
        if self.kernel_type.is_precomputed:
            reason = "need features, not a precomputed kernel"
        elif isinstance(weights, str) and weights == LEARN:
            if not self.kernel_type.is_of_distance:
                reason = f"can be learned for a kernel of a distance only, got {self.kernel}"
            elif self.svm_type == "one_class":
                reason = "are learned from labels or targets, got one_class"
        if reason:
            raise OptionError("feature_weights", reason)

    @property
    def has_unused_weights(self) -> bool:
        """Whether class weights were given for a type of SVM that does not use them."""
        return bool(self.class_weight) and self.svm_type != "c_svc"

    def _check_weights(self) -> None:
        if self.C > MAX_C:
            raise OptionError("C", f"must be at most {MAX_C:g}, got {self.C:g}")
        factors = self.class_weight if isinstance(self.class_weight, dict) else {}
        for label, factor in factors.items():
            C = self.C * factor
            if not 0 < C <= MAX_C:
                reason = f"above 0 and at most {MAX_C:g}, got {C:g}"
                reason = f"times C must be {reason} for class {label_text(label)}"
                raise OptionError("class_weight", reason)

    def _check_problem(self) -> None:
        """Check the options that depend on the SVM type and the kernel. Raises OptionError."""
        if self.clustering == "kmeans" and self.kernel_type.is_precomputed:
            raise OptionError("clustering", "kmeans requires features, not a precomputed kernel")
        if is_per_median(self.gamma) and not self.kernel_type.is_of_distance:
            reason = f"must be a number for kernel {self.kernel}, got {self.gamma!r}"
            raise OptionError("gamma", reason)
        kernel = Kernel(self.kernel, coef0=self.coef0, degree=self.degree)
        if self.gap is not None and not kernel.is_positive_semidefinite:
            raise OptionError("gap", f"requires a positive semidefinite kernel, got {self.kernel}")

    def _check_levels(self) -> None:
        """Check the options of the early level. Raises OptionError."""
        option = "early" if self.early else "early_level"
        has_finer = self.levels is not None and isinstance(self.early_level, int)
        if self.early and self.clustering not in TREES and not has_finer:
            reason = f"must be {' or '.join(TREES)} for early models, got {self.clustering}"
            more = "unless the number of levels and the early level are given"
            raise OptionError("clustering", f"{reason}, {more}")
        if self.early and self.gap is not None:
            raise OptionError("gap", "is not available for early models, which reach the tolerance")
        if self.early and self.certify:
            raise OptionError("certify", "is not available for early models, which are not exact")
        if not self.early and self.early_level is None:
            if self.overlap is None:
                return
            option = "overlap"
        if not self.has_levels:
            raise OptionError(option, f"is not available for {self.svm_type}, which has no levels")
        if self.levels == 0:
            raise OptionError(option, "requires at least one level")
        # a level must exist, and a search needs an early model
        if self.early_level == AUTO and not self.early:
            raise OptionError("early_level", "auto is for early models only")
        if (
            self.levels is not None
            and isinstance(self.early_level, int)
            and self.early_level > self.levels
        ):
            reason = f"must be at most {self.levels}, the finest level, got {self.early_level}"
            raise OptionError("early_level", reason)


of_files = partial(option, group="Files")


# Tables that only other tables inherit from need no constructor, so that commands start faster.
@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class DataOptions(OptionTable):
    """How data are read, scaled and weighted: the options of Dataset.read, and feature weights."""

    function = "dcsvm.Dataset.read"

    # fmt: off
    format: str | None = of_files(None, Rule.choice(*FORMATS).optional, "--format NAME",
        f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}",
        f"By default, the end of the file name decides: .{', .'.join(ENDINGS)}, also with "
        f"{', '.join(PACKED)}; any other file is LIBSVM text. Tables need pyarrow (pip install "
        "'.[tables]'), except csv and tsv files of numbers.",
        default_text="by the file name")
    label: str | None = of_files(None, Rule.text().optional, "--label COLUMN",
        "label column of a table, name or number",
        "The default is the last column. If another column is named target, label, class or y, and "
        "the last one is not, the command asks for this option. One-class has no label by default.",
        default_text="the last one")
    drop: tuple[str, ...] = of_files((), Rule.texts(), "--drop COLUMNS",
        "columns to ignore: comma-separated names or numbers",
        "Put a name that contains a comma in quotes.",
        is_multiple=True)
    category: tuple[str, ...] = of_files((), Rule.texts(), "--category COLUMN",
        "columns of numeric categories, given as in --drop",
        "Use it for codes, such as postal codes. Text columns are always categories; those that "
        "identify rows, with many different values, are dropped unless you name them here.",
        is_multiple=True)
    header: bool = of_files(False, Rule.flag(), "--header",
        "line 1 of CSV or TSV contains the column names",
        "By default, line 1 has names if it contains words above numbers, words that do not occur "
        "below, or 0, 1, 2, ...")
    no_header: bool = of_files(False, Rule.flag(), "--no-header",
        "line 1 of CSV or TSV is a row of data")
    weight: str | None = of_files(None, Rule.text().optional, "--weight COLUMN",
        "column of a table with sample weights",
        "A row of weight 2 counts as two rows, also in the scores of dcsvm-grid and dcsvm-easy.")
    scale: str | None = of_files(None, Rule.path(AUTO_SCALE, QUANTILE, *STANDARD_INPUT).optional,
        "--scale NAME|FILE",
        "scale features: auto, quantile, or a range file",
        "auto scales each feature of the training set to [-1, 1], as svm-scale does; quantile maps "
        "its values to a normal distribution by their ranks. The model stores this scaling and "
        "applies it to the rows it predicts. auto also writes MODEL_FILE.range, which svm-scale "
        "can read. If you give a range file, it is not stored: give it to dcsvm-predict as well.",
        keyword='"auto" scales each feature to [-1, 1], "quantile" to a normal distribution by the '
        "ranks of its values; or a scaling, such as another model's. The model stores the "
        "scaling and applies it to the rows it predicts")
    feature_weights: str | None = of_files(None, Rule.path(LEARN).optional, "--weights FILE",
        "feature weights: learn, or from a model file",
        "The weights multiply the scaled features and show which of them matter. learn finds "
        "weights for the kernels rbf, laplacian and exponential, from up to 3000 rows; if they do "
        "not lower the error on held-out rows, all weights are 1. The model stores them; "
        "dcsvm-predict --describe prints them. Use the weights of a model file with the --scale "
        "that the model was trained with.",
        keyword='array of shape (n_features,), factors of the scaled features; or "learn", which '
        "finds them for kernels of a distance from the slopes of decision values, and chooses by "
        "held-out rows; model_.scaling.weights has the result")
    lenient: bool = of_files(False, Rule.flag(), "--lenient",
        "accept malformed data lines that svm-train accepts",
        "Accepted are spaces after a colon, trailing words without a colon (ignored), and "
        "hexadecimal numbers. nan and inf remain errors.")
    # fmt: on

    def format_of(self, path: str) -> str | None:
        """Return the format of a table in a file, None for LIBSVM text."""
        return table_format(path, self.format)

    @property
    def of_tables(self) -> list[str]:
        """The spellings of the options for tables that are given."""
        names = ("label", "drop", "category", "weight", "header", "no_header")
        return list(self.spellings([name for name in names if getattr(self, name)]).values())


of_search = partial(option, group="Settings")


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class SearchOptions(OptionTable):
    """What a search of settings measures, and how far it goes."""

    function = "dcsvm.grid_search"

    # fmt: off
    metric: str | None = of_search(None, Rule.choice(*METRICS).optional, "--metric NAME",
        "choose by accuracy, balanced-accuracy, f1, auc, mae, ...",
        f"The metrics are {', '.join(METRICS)}. balanced-accuracy and f1 are means over the "
        "classes. With more than two classes, auc is the mean of each class against the rest. It "
        "then uses probabilities fitted to held-out rows as -b 1 does, and so does log-loss.",
        keyword=f"what to choose by: one of {', '.join(METRICS)}; None is accuracy, or an error of "
        "a regression",
        default_text="accuracy, mse", is_basic=True)
    refine: bool = of_search(False, Rule.flag(), "--refine",
        "also score a finer grid around the best setting",
        "Its step is a quarter of the grid's step; it extends half a grid step to each side.",
        keyword="then search a fine grid around the best setting",
        is_basic=True)
    every: bool = of_search(False, Rule.flag(), "--every",
        "score every setting on all rows",
        "By default, a setting is pruned once its total loss on some of the rows exceeds that of "
        "the best setting on all rows. Its score is then an estimate. With --metric f1, auc or "
        "log-loss, no setting is pruned.",
        keyword="score every setting on all rows, without pruning")
    # fmt: on

    def check_metric(self, options: TrainOptions) -> None:
        """Raise ValueError if the metric does not fit the SVM type."""
        checked_metric(self.metric, options.svm_type)


of_size = partial(option, None, group="Size (give one)", is_basic=True)
of_method = partial(option, group="Method")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CompressOptions(OptionTable):
    """The options of Model.compress: one of three target sizes, and the method.

    The target size is `vectors`, the maximum number of vectors; `times`, the factor by which kernel
    evaluations per row are reduced; or `loss`, the percentage of labels that may change. `method`
    defaults to "exact", or to "early" if the model has no exact part. `steps` is the number of
    optimization steps per cluster. Its default depends on the size of the cluster.
    """

    function = "dcsvm.Model.compress"

    # fmt: off
    vectors: int | None = of_size(Rule.integer(1).optional, "--vectors N",
        "maximum number of vectors",
        "The clusters of an early model share them.")
    times: float | None = of_size(
        Rule.number("above 1 and finite", lambda value: 1 < value < math.inf).optional, "--times T",
        "compute T times fewer kernel values per row",
        "Kernel values that assign a row to its cluster are included.")
    loss: float | None = of_size(
        Rule.number("above 0 and below 100", lambda value: 0 < value < 100).optional,
        "--loss PERCENT",
        "share of labels that may change; needs --test",
        "Several sizes are tried. The result is the smallest one that changes at most PERCENT of "
        "the labels with 95 % confidence, by the test rows.")
    method: str | None = option(None, Rule.choice("exact", "early").optional)
    steps: int | None = of_method(None, Rule.integer(1).optional, "--steps N",
        "optimization steps per cluster, 256 rows each",
        "The default is 200 passes over the rows, and at most 6000 steps. More steps fit better "
        "and take longer.",
        default_text="up to 6000")
    seed: int = of_method(0, Rule.integer(0), "--seed N", "random seed")
    threads: int | None = threads_option(group="Other")

    # fmt: on
    def __post_init__(self) -> None:
        super().__post_init__()
        targets = [name for name in ("vectors", "times", "loss") if getattr(self, name) is not None]
        if len(targets) != 1:
            reason = f"must be given, exactly one of them, got {len(targets)}"
            raise OptionError("vectors, times or loss", reason)
