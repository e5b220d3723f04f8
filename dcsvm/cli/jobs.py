"""The options of each command, beside those of training and compression, and their conditions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from dcsvm.cli.files import (
    AUTO,
    BALANCED,
    LEARN,
    MEDIAN,
    QUANTILE,
    STANDARD_INPUT,
    is_stream,
)
from dcsvm.problem.option_table import Rule
from dcsvm.problem.options import DataOptions, SearchOptions, TrainOptions

option = DataOptions.option
files, long_runs, other, problem, levels, output, rows, settings, ignored, search = (
    partial(option, group=title)
    for title in (
        "Files", "Long runs", "Other", "Problem", "Levels", "Output", "Rows", "Settings",
        "Options of svm-grid without effect", "Search",
    )
)  # fmt: skip

INPUT, OUTPUT = Rule.path(*STANDARD_INPUT), Rule.path(is_output=True)
MODEL = Rule.path()  # "-" is an ordinary name
SECONDS = Rule.number("above 0", lambda seconds: seconds > 0)  # inf: no limit
# a sentence for people, and when it is true of a job and its training options
Conditions = Sequence[tuple[Callable[[Any, Any], object], str]]


def check(conditions: Iterable[Conditions], job: Any, options: Any = None) -> None:
    """Raise UsageError with the sentence of the first condition that is true.

    `{job.NAME}` and `{options.NAME}` in a sentence stand for values.
    """
    for table in conditions:
        for is_true, sentence in table:
            if is_true(job, options):
                raise click.UsageError(sentence.format(job=job, options=options))


# fmt: off
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DataJob(DataOptions):
    """What commands on data share. A file is an option whose rule is a path."""

    report_file: str | None = files(None, OUTPUT.optional, "--report FILE",
        "write times, counts and results as JSON")
    quiet: bool = other(False, Rule.flag(), "-q", "print only errors")

    @property
    def range_file(self) -> str | None:
        """The path of the range file that the command writes, or None."""
        return None

    @property
    def remote_file(self) -> str | None:
        """The path of the input that other machines read, or None."""
        return None

    @property
    def reading(self) -> dict[str, Any]:
        """The options of Dataset.read for each file."""
        return {"format": self.format, "label": self.label, "lenient": self.lenient}

    @property
    def learns_weights(self) -> bool:
        """Whether feature weights are learned, not taken from a model file."""
        return self.feature_weights == LEARN


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainingJob(DataJob):
    """Options that dcsvm-train and dcsvm-grid share."""

    training_set_file: str = option("", INPUT, "TRAINING_SET_FILE")
    model_file: str | None = option(None, OUTPUT.optional, "[MODEL_FILE]")
    balanced: bool = problem(False, Rule.flag(), "--balanced",
        "C-SVC: class weights n / (classes * n_class)",
        "-w balanced is the same.")
    n_folds: int | None = problem(None, Rule.integer(2).optional, "-v N",
        "N-fold cross-validation; writes no model",
        "It prints the accuracy, or the errors of a regression.",
        is_basic=True)
    test_file: str | None = levels(None, INPUT.optional, "--test FILE",
        "choose the early level by the error on these rows",
        "For --early with --early-level auto. The search starts from the finest level and goes to "
        "coarser ones while they are better.")
    time_limit: float | None = long_runs(None, SECONDS.optional, "--time-limit SEC",
        "stop after SEC seconds, write the current model",
        "The time includes reading.")
    shrinking: bool = other(True, Rule.flag(), "-h 0|1",
        "shrinking of LIBSVM: accepted, no effect",
        "Shrinking is always on; all gradients are reconstructed at the end.")

    @property
    def range_file(self) -> str | None:
        is_written = self.scale == AUTO and self.model_file and not is_stream(self.model_file)
        return f"{self.model_file}.range" if is_written else None


OF_TABLES: Conditions = (
    (lambda job, _: job.of_tables and job.format_of(job.training_set_file) is None,
     "{job.of_tables[0]} is for tables: {job.training_set_file} is read as LIBSVM text; --format "
     "names another format"),
)
WITH_SCALE: Conditions = (
    *OF_TABLES,
    (lambda job, _: job.feature_weights and job.scale not in (None, AUTO, QUANTILE),
     "--weights needs --scale auto or quantile, not a file"),
)
SHARED: Conditions = (
    (lambda job, _: job.test_file == job.training_set_file == "-",
     "the training set and --test cannot both be standard input"),
    (lambda job, options: options.kernel_type.is_precomputed and job.scale,
     "a precomputed kernel cannot be scaled (--scale)"),
    *WITH_SCALE,
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainJob(TrainingJob):
    """Options of dcsvm-train beside TrainOptions. Cross-validation (`n_folds`) writes no model."""

    checkpoint_folder: str | None = long_runs(None,
        Rule.path(is_output=True, is_folder=True).optional, "--checkpoint DIR",
        "store checkpoints in this folder",
        "After a crash or a stop, --resume continues from the last one. If both options name the "
        "same folder, the same command can be repeated until training ends, which removes the "
        "folder.")
    resume_folder: str | None = long_runs(None,
        Rule.path(is_folder=True, continued_by="checkpoint_folder").optional, "--resume DIR",
        "continue from a checkpoint, same data and options",
        f"{', '.join(TrainOptions.free()[:-1])} and {TrainOptions.free()[-1]} may differ.")
    init_model_file: str | None = long_runs(None, MODEL.optional, "--init-model FILE",
        "warm start from a model of the same rows",
        "Or of the first rows of the file. Its other options may differ (C, gamma, -e). It saves "
        "most time if little has changed, with -l 0.")
    scheduler: str | None = long_runs(None, Rule.text().optional, "--scheduler ADDR",
        "train on the workers of this Dask scheduler",
        "For example tcp://10.0.0.1:8786. TRAINING_SET_FILE is a path that all workers can read, "
        "or a URL for fsspec. Needs the extra dask.")
    scheduler_file: str | None = long_runs(None, Rule.path(is_awaited=True).optional,
        "--scheduler-file F",
        "the same, address from a scheduler file",
        "The file that dask scheduler --scheduler-file writes.")
    n_workers: int | None = long_runs(None, Rule.integer(1, 1024).optional, "--workers N",
        "train on N processes of this machine",
        "They are a Dask cluster that ends with the command, and share the threads.")
    model_format: str = files("dcsvm", Rule.choice("dcsvm", "libsvm"), "--model-format FMT",
        "dcsvm, or libsvm for the format of LIBSVM only",
        "dcsvm: an exact model is in LIBSVM's format, followed by a section of dcsvm.")
    quiet: bool = other(False, Rule.flag(), "-q",
        "print only errors, warnings of training, lines of -v",
        "The warnings about data are omitted.")

    @property
    def remote_file(self) -> str | None:
        return self.training_set_file if self.is_remote else None

    @property
    def workers(self) -> dict[str, Any]:
        """The options that name workers."""
        return {name: getattr(self, name) for name in ("scheduler", "scheduler_file", "n_workers")}

    @property
    def is_remote(self) -> bool:
        """Whether training runs on the workers of a Dask cluster."""
        return any(self.workers.values())


NOT_WITH_FOLDS = ("time_limit", "checkpoint_folder", "resume_folder", "init_model_file",
                  "report_file", "test_file", "scheduler", "scheduler_file", "n_workers",
                  "weight")  # fmt: skip
OF_TRAINING: Conditions = (
    *((lambda job, _, name=name: job.n_folds is not None and getattr(job, name) is not None,
       f"{spelling} cannot be used with cross-validation (-v)")
      for name, spelling in TrainJob.spellings(NOT_WITH_FOLDS).items()),
    (lambda job, _: not (job.n_folds or job.model_file),
     "MODEL_FILE is required if the training set is stdin"),
    (lambda job, options: job.test_file and not options.chooses_early_level,
     "--test needs --early with --early-level auto"),
    (lambda job, options: job.model_format == "libsvm" and not options.kernel_type.is_in_libsvm,
     "LIBSVM has no kernel {options.kernel}: -t needs --model-format dcsvm"),
    (lambda job, options: job.model_format == "libsvm" and options.early,
     "LIBSVM has no early models: --early needs --model-format dcsvm"),
    (lambda job, _: job.scale == AUTO and job.model_file and is_stream(job.model_file),
     "--scale auto writes a file beside the model: MODEL_FILE must be a regular file"),
    (lambda job, _: job.model_format == "libsvm" and job.scale == QUANTILE,
     "LIBSVM has no quantiles: --scale quantile needs dcsvm's format"),
    (lambda job, _: job.model_format == "libsvm" and job.feature_weights,
     "LIBSVM has no weights: --weights needs dcsvm's format"),
    (lambda job, _: job.feature_weights == LEARN and job.init_model_file,
     "--weights learn is not possible with --init-model"),
    (lambda job, _: job.feature_weights == LEARN and job.n_folds,
     "--weights learn is not possible with folds (-v)"),
    (lambda job, _: sum(one is not None for one in job.workers.values()) > 1,
     "give one of --scheduler, --scheduler-file and --workers"),
    (lambda job, _: job.is_remote and job.training_set_file in STANDARD_INPUT,
     "workers cannot read standard input: give a file"),
    (lambda job, _: job.is_remote and job.format_of(job.training_set_file),
     "workers cannot read tables: give a LIBSVM file"),
    (lambda job, options: job.is_remote and options.kernel_type.is_precomputed,
     "workers cannot use a precomputed kernel (-t 4)"),
    (lambda job, _: len({job.checkpoint_folder, job.resume_folder} - {None}) > 1,
     "--checkpoint and --resume must name the same folder"),
)


def powers_of_two(text: str) -> tuple[float, ...]:
    """Return the exponents of svm-grid's begin,end,step, ascending; () for null."""
    most = 1000
    if text.lower() == "null":
        return ()
    try:
        begin, end, step = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError("is neither begin,end,step nor null") from None
    if not all(abs(number) <= most for number in (begin, end, step)):
        raise ValueError(f"has an exponent beyond {most}")
    if step == 0 or (end - begin) / step < 0:
        raise ValueError(f"does not lead from {begin:g} to {end:g}")
    n_steps = int((end - begin) / step * (1 + 1e-12) + 1e-12)
    if n_steps >= most:
        raise ValueError(f"has more than {most} values")
    return tuple(sorted(begin + k * step for k in range(n_steps + 1)))


POWERS = Rule("begin,end,step", lambda value: isinstance(value, tuple), tuple, parse=powers_of_two)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GridJob(SearchOptions, TrainingJob):
    """Options of dcsvm-grid beside TrainOptions. Without exponents a parameter is not searched."""

    log2c: tuple[float, ...] = settings(powers_of_two("-5,15,2"), POWERS,
        "-log2c BEGIN,END,STEP|null",
        "exponents of C: powers of 2",
        "null: C is that of -c.",
        default_text="-5,15,2", is_basic=True)
    log2g: tuple[float, ...] = settings(powers_of_two("3,-15,-2"), POWERS,
        "-log2g BEGIN,END,STEP|null",
        "exponents of gamma: powers of 2",
        "null: gamma is that of -g. Kernels without gamma ignore it.",
        default_text="3,-15,-2", is_basic=True)
    log2p: tuple[float, ...] = settings((), POWERS, "-log2p BEGIN,END,STEP|null",
        "exponents of epsilon of eps-SVR",
        "null: epsilon is that of -p.",
        default_text="null")
    gamma_unit: str = settings("1", Rule.choice("1", MEDIAN), "--gamma-unit UNIT",
        "unit of the powers of -log2g: 1 or median",
        "median: a power F stands for -g F/median. The last line has gamma itself.")
    n_folds: int = settings(5, Rule.integer(2), "-v N",
        "number of cross-validation folds",
        is_basic=True)
    test_file: str | None = settings(None, INPUT.optional, "--test FILE",
        "score on the rows of this file, not on folds",
        "Models are then trained on all rows of the training set.")
    time_limit: float | None = long_runs(None, SECONDS.optional, "--time-limit SEC",
        "stop after SEC seconds, print the best so far",
        "The time includes reading. No model is trained after a stop. -resume continues.")
    out_file: str | None = files(None, OUTPUT.optional, "-out FILE|null",
        "write a line per scored setting to this file",
        "null writes no file.",
        default_text="TRAINING_SET_FILE.out")
    resume_file: str | None = files(None, Rule.path(continued_by="out_file").optional,
        "-resume [FILE]",
        "continue from this -out file",
        "Data and options must be the same. The default FILE, if an option or the training set "
        "follows, is that of -out.")
    png_file: str | None = files(None, OUTPUT.optional, "-png FILE",
        "draw a map of the rates", "Requires matplotlib.")
    svmtrain: str | None = ignored(None, Rule.text().optional, "-svmtrain PATH",
        "ignored: training is built in")
    gnuplot: str | None = ignored(None, Rule.text().optional, "-gnuplot PATH",
        "ignored: see -png")
    quiet: bool = other(False, Rule.flag(), "-q",
        "print only errors, warnings of the search, last line",
        "The warnings about data are omitted.")


    def grid(self, options: TrainOptions) -> Any:
        """Return the Grid of settings, with gamma in units of `gamma_unit`. Raises ValueError."""
        from dcsvm.training.settings import Grid

        def powers(exponents: tuple[float, ...]) -> list[float] | None:
            return [2.0**exponent for exponent in exponents] or None

        gammas = powers(self.log2g) if options.kernel_type.has_gamma else None
        return Grid.of(options, powers(self.log2c) or [options.C], gammas, powers(self.log2p))


OF_GRID: Conditions = (
    (lambda _, options: options.svm_type == "one_class",
     "one-class (-s 2) has no C and no score to choose it by"),
    (lambda job, options: options.svm_type == "nu_svc" and job.log2c,
     "nu-SVC (-s 1) has no C: give -log2c null to choose gamma only"),
    (lambda job, options: job.log2p and options.svm_type != "epsilon_svr",
     "-log2p needs eps-SVR (-s 3)"),
    (lambda job, options: job.gamma_unit == MEDIAN and options.kernel_type.fall is None,
     "--gamma-unit must be 1 for kernel {options.kernel}, got median"),
    (lambda job, options: options.kernel_type.is_precomputed and job.test_file,
     "a precomputed kernel cannot be used with --scale or --test"),
    (lambda job, options: not (job.log2c or job.log2p
                               or (job.log2g and options.kernel_type.has_gamma)),
     "no parameter to choose: -log2c and -log2g are null"),
    (lambda job, _: job.resume_file == "", "-resume needs a file if -out is null"),
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EasyJob(DataJob):
    """Options of dcsvm-easy beside some of TrainOptions."""

    training_set_file: str = option("", INPUT, "TRAINING_SET_FILE")
    test_file: str | None = option(None, INPUT.optional, "[TEST_FILE]")
    time_limit: float = search(60.0, SECONDS, "--time-limit SEC",
        "seconds for the search and the training",
        "Reading and prediction come on top. With a longer limit, more trials use more rows.",
        is_basic=True)
    metric: str | None = search(None, SearchOptions.rule("metric"), "--metric NAME",
        "choose by accuracy, auc, f1, rmse, ...",
        SearchOptions.details("metric"),
        default_text="accuracy, rmse", is_basic=True)
    svm_type: str | None = search(None, TrainOptions.rule("svm_type").optional, "-s TYPE",
        "0: classification, 3: regression",
        "By default, text and up to 32 different whole numbers are classes.",
        default_text="by the labels", is_basic=True)
    probability: bool = search(False, Rule.flag(), "-b 0|1",
        "1: fit probabilities, too",
        "It takes five more trainings.")
    balanced: bool = search(False, Rule.flag(), "--balanced",
        "class weights n / (classes * n_class)",
        "-w balanced is the same.")
    model_file: str | None = output(None, OUTPUT.optional, "--model FILE",
        "the model file",
        default_text="TRAINING_SET_FILE.model", is_basic=True)
    output_file: str | None = output(None, OUTPUT.optional, "--output FILE",
        "the predictions of TEST_FILE",
        default_text="TEST_FILE.predict")
    quiet: bool = other(False, Rule.flag(), "-q",
        "print only errors, warnings of training, last lines",
        "The warnings about data are omitted.")


OF_EASY: Conditions = (
    (lambda job, _: job.training_set_file in STANDARD_INPUT and not job.model_file,
     "--model is required for standard input"),
    (lambda job, _: job.test_file in STANDARD_INPUT and not job.output_file,
     "--output is required for standard input"),
    (lambda job, _: job.training_set_file in STANDARD_INPUT or is_stream(job.training_set_file),
     "the training set is read twice: it cannot be a pipe"),
    (lambda job, _: job.svm_type not in (None, "c_svc", "epsilon_svr"),
     "-s must be 0 or 3, the types that are trained with levels, not {job.svm_type}"),
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PredictJob(DataJob):
    """Options of dcsvm-predict."""

    test_file: str = option("", INPUT, "TEST_FILE")
    model_file: str = option("", MODEL, "MODEL_FILE")
    output_file: str = option("", OUTPUT, "OUTPUT_FILE")
    early: bool = option(False, Rule.flag(), "--early",
        "early prediction: only the nearest clusters' models",
        group="Method", is_basic=True)
    probability: bool = output(False, Rule.flag(), "-b 0|1",
        "1: write class probabilities, too",
        "They follow the label. The first line is a header with the labels. For a regression the "
        "sigma of the noise is printed instead.",
        is_basic=True)
    decision_values: bool = output(False, Rule.flag(), "--decision-values",
        "write decision values, too",
        "A positive value stands for the first label of the model. For more than two classes there "
        "is one value per pair of classes, and the first line is a header with the pairs.",
        is_basic=True)
    has_metrics: bool = output(False, Rule.flag(), "--metrics",
        "print precision, recall, F1, AUC, ... , too",
        "For classes: precision, recall and F1 of each class, balanced accuracy, mean F1, the AUC "
        "of two classes, with -b 1 the log loss and the AUC of more classes, and the confusion "
        "matrix. For a regression: MAE, RMSE and R2.",
        is_basic=True)
    described: str | None = output(None, MODEL.optional, "--describe MODEL",
        "print what a model is, with its feature weights",
        "No other argument is then needed. The features of the largest weights come first.")
    plotted: tuple[str, str] | None = output(None, Rule.paths(MODEL, OUTPUT).optional,
        "--plot MODEL PNG",
        "draw the largest feature weights of a model",
        "No other argument is then needed. It needs matplotlib (extra plot).")
    scale: str | None = files(None, INPUT.optional, "--scale FILE",
        "scale the data by a range file of svm-scale -s",
        "A model of --scale auto or quantile does not need it.")
    quiet: bool = other(False, Rule.flag(), "-q", "print only errors: no accuracy, no warnings")


NOT_AUTO: Conditions = (
    (lambda job, _: job.scale in (AUTO, QUANTILE),
     "--scale {job.scale} is for training: the model has its scaling"),
)
OF_PREDICTION: Conditions = (
    (lambda job, _: job.probability and job.decision_values,
     "-b 1 and --decision-values cannot be used together"),
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CompressJob(DataJob):
    """Options of dcsvm-compress beside CompressOptions."""

    model_file: str = option("", MODEL, "MODEL_FILE")
    output_file: str | None = option(None, OUTPUT.optional, "[OUTPUT_FILE]")
    rows_file: str | None = rows(None, INPUT.optional, "--rows FILE",
        "fit to these rows: the training file, or similar rows",
        "Labels are not used. Without this option the model is fitted on its support vectors only, "
        "which are a poor sample of the rows to predict.",
        is_basic=True)
    test_file: str | None = rows(None, INPUT.optional, "--test FILE",
        "report changed labels on these rows, not used so far",
        "Labels are not used.",
        is_basic=True)
    early: bool = option(False, Rule.flag(), "--early",
        "compress the early model, not the exact solution",
        "Not needed for a model that has no exact solution.",
        group="Method", is_basic=True)
    scale: str | None = PredictJob.field("scale")


OF_COMPRESSION: Conditions = (
    (lambda job, _: job.rows_file == job.test_file == "-",
     "--rows and --test cannot both be standard input"),
    (lambda job, _: job.scale is not None and job.rows_file is None and job.test_file is None,
     "--scale needs --rows or --test"),
    (lambda job, options: options.loss is not None and job.test_file is None,
     "--loss needs --test: rows that the model has not seen"),
)
# fmt: on


def training_options(given: dict[str, Any]) -> TrainOptions:
    """Make training options from the values of a command. Raises OptionError."""
    chosen = given | {"class_weight": factors_of_classes(given["class_weight"])}
    chosen["gamma"] = chosen.get("gamma") or None  # 0 is LIBSVM's default
    if given["balanced"]:
        if chosen["class_weight"]:
            raise click.UsageError("give -w balanced or factors of classes, not both")
        chosen["class_weight"] = BALANCED
    return TrainOptions.taken(chosen)


def factors_of_classes(
    pairs: tuple[tuple[float | str, float], ...],
) -> dict[float | str, float] | None:
    """Collect {label: factor}; repeated factors of a label are multiplied, as in LIBSVM."""
    factors: dict[float | str, float] = {}
    for label, factor in pairs:
        TrainOptions.check("class_weight", {label: factor})
        factors[label] = factors.get(label, 1.0) * factor
    return factors or None


def name_beside(path: str | None, ending: str) -> str | None:
    """Return the name of a file in the current folder that is made from `path`."""
    if path is None or path in STANDARD_INPUT:
        return None
    return f"{os.path.basename(path)}.{ending}"
