"""Files and settings of one command call, except the training options."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dcsvm.cli.files import AUTO, LEARN, QUANTILE, STANDARD_INPUT, is_stream, print_status
from dcsvm.data.formats import TableOptions, table_format
from dcsvm.problem.option_table import (
    BALANCED,
    FACTORS,
    MEDIAN,
    OptionError,
    OptionTable,
    checked_metric,
    integer,
    number,
    optional,
)
from dcsvm.problem.options import TrainOptions

if TYPE_CHECKING:
    from dcsvm.training.settings import Grid

FOLDS = optional(integer(2))
SECONDS = optional(number("above 0", lambda seconds: seconds > 0))  # inf: no limit
PROCESSES = optional(integer(1, 1024))
NOT_WITH_FOLDS = (
    *("time_limit", "checkpoint_folder", "resume_folder", "init_model_file", "report_file"),
    *("test_file", "scheduler", "scheduler_file", "n_workers"),
)
AnyJob = TypeVar("AnyJob", bound="DataJob")


class Job:
    """Files of a command: an attribute for each parameter whose Click type is FileName."""

    @property
    def range_file(self) -> str | None:
        """Return the path of the range file that the command writes, or None."""
        return None

    @property
    def remote_file(self) -> str | None:
        """Return the path of the input that other machines read, or None."""
        return None


@dataclass(kw_only=True)
class DataJob(Job):
    """Settings of every command: scaling and syntax of the data, and quiet mode."""

    scale_file: str | None
    lenient: bool
    quiet: bool
    format: str | None = None
    label: str | None = None
    drop: tuple[str, ...] = ()
    weight: str | None = None

    @property
    def table_options(self) -> TableOptions:
        """Return what the user says of a table."""
        dropped = [name for names in self.drop for name in names.split(",")]
        return TableOptions(self.format, self.label, tuple(dropped), self.weight)

    @classmethod
    def of(cls: type[AnyJob], given: dict[str, Any], table: type[OptionTable]) -> AnyJob:
        """Make a job from the values of a command, without the options in `table`."""
        return cls(**{name: value for name, value in given.items() if name not in table.names()})


@dataclass(kw_only=True)
class TrainingJob(DataJob):
    """Settings that dcsvm-train and dcsvm-grid share."""

    training_set_file: str
    model_file: str | None
    test_file: str | None
    n_folds: int | None
    time_limit: float | None
    report_file: str | None

    @property
    def range_file(self) -> str | None:
        if self.scale_file != AUTO or self.model_file is None:
            return None
        from dcsvm.data.range_file import range_file_of

        return range_file_of(self.model_file)

    def check_shared(self) -> None:
        FOLDS.check("n_folds", self.n_folds)
        SECONDS.check("time_limit", self.time_limit)
        if self.weight is not None and self.n_folds is not None and isinstance(self, TrainJob):
            raise click.UsageError("--weight cannot be used with cross-validation (-v)")
        if self.test_file == self.training_set_file == "-":
            raise click.UsageError("the training set and --test cannot both be standard input")


@dataclass(kw_only=True)
class TrainJob(TrainingJob):
    """Files and settings of dcsvm-train. `model_file` is None for cross-validation (`n_folds`)."""

    checkpoint_folder: str | None
    resume_folder: str | None
    init_model_file: str | None
    scheduler: str | None
    scheduler_file: str | None
    n_workers: int | None
    model_format: str
    weights: str | None

    def check(self, options: TrainOptions) -> None:
        """Choose the default model file; raise UsageError or OptionError for conflicts."""
        if self.n_folds is not None:
            self.model_file = None
        elif self.model_file is None:
            if self.training_set_file in STANDARD_INPUT:
                raise click.UsageError("MODEL_FILE is required if the training set is stdin")
            self.model_file = os.path.basename(self.training_set_file) + ".model"
        self.check_shared()
        for name in NOT_WITH_FOLDS:
            if self.n_folds is not None and getattr(self, name) is not None:
                raise OptionError(name, "cannot be used with cross-validation (-v)")
        if self.test_file is not None and not options.chooses_early_level:
            raise click.UsageError("--test needs --early with --early-level auto")
        if self.model_format == "libsvm" and not options.kernel_type.is_in_libsvm:
            raise click.UsageError(
                f"LIBSVM has no kernel {options.kernel}: -t needs --model-format dcsvm"
            )
        if self.model_format == "libsvm" and options.early:
            raise click.UsageError("LIBSVM has no early models: --early needs --model-format dcsvm")
        self._check_scaling(options)
        self._check_workers(options)
        if len({self.checkpoint_folder, self.resume_folder} - {None}) > 1:
            raise click.UsageError("--checkpoint and --resume must name the same folder")

    def _check_scaling(self, options: TrainOptions) -> None:
        if self.scale_file is not None and options.kernel_type.is_precomputed:
            raise click.UsageError("a precomputed kernel cannot be scaled (--scale)")
        if self.range_file is not None and self.model_file and is_stream(self.model_file):
            raise click.UsageError(
                "--scale auto writes a file beside the model: MODEL_FILE must be a regular file"
            )
        if self.scale_file == QUANTILE and self.model_format == "libsvm":
            raise click.UsageError("LIBSVM has no quantiles: --scale quantile needs dcsvm's format")
        if self.weights is not None:
            self._check_weights(options)
        if self.scale_file == QUANTILE and self.is_remote:
            raise click.UsageError("--scale quantile is not possible on workers of a Dask cluster")

    def _check_weights(self, options: TrainOptions) -> None:
        """Raise UsageError if this job cannot have feature weights, or cannot learn them."""
        if options.kernel_type.fall is None:
            raise click.UsageError(f"--weights needs a kernel of a distance, got {options.kernel}")
        if self.scale_file not in (None, AUTO, QUANTILE):
            raise click.UsageError("--weights needs --scale auto or quantile, not a file")
        if self.model_format == "libsvm":
            raise click.UsageError("LIBSVM has no weights: --weights needs dcsvm's format")
        if self.is_remote:
            raise click.UsageError("--weights is not possible on workers of a Dask cluster")
        if self.weights != LEARN:
            return
        if options.svm_type == "one_class":
            raise click.UsageError("--weights learn needs labels or targets, got one_class")
        if self.init_model_file is not None:
            raise click.UsageError("--weights learn is not possible with --init-model")
        if self.n_folds is not None:
            raise click.UsageError("--weights learn is not possible with folds (-v)")

    def _check_workers(self, options: TrainOptions) -> None:
        PROCESSES.check("n_workers", self.n_workers)
        if sum(one is not None for one in self._workers) > 1:
            raise click.UsageError("give one of --scheduler, --scheduler-file and --workers")
        if self.is_remote and self.training_set_file in STANDARD_INPUT:
            raise click.UsageError("workers cannot read standard input: give a file")
        if self.is_remote and table_format(self.training_set_file, self.format):
            raise click.UsageError("workers cannot read tables: give a LIBSVM file")
        if self.is_remote and options.kernel_type.is_precomputed:
            raise click.UsageError("workers cannot use a precomputed kernel (-t 4)")

    @property
    def _workers(self) -> tuple[str | int | None, ...]:
        return self.scheduler, self.scheduler_file, self.n_workers

    @property
    def remote_file(self) -> str | None:
        return self.training_set_file if self.is_remote else None

    @property
    def is_remote(self) -> bool:
        """Return whether training runs on the workers of a Dask cluster."""
        return any(self._workers)


def given_options(table: type[OptionTable], given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a table that have a value in `given`."""
    return {name: given[name] for name in table.names() if given.get(name) is not None}


def training_options(given: dict[str, Any]) -> TrainOptions:
    """Make training options from the values of a command. Raises OptionError."""
    chosen = given_options(TrainOptions, given)
    chosen["gamma"] = chosen.get("gamma") or None  # 0 is LIBSVM's default
    chosen["class_weight"] = factors_of_classes(given["class_weight"])
    if given.pop("is_balanced"):
        if chosen["class_weight"]:
            raise click.UsageError("give -w balanced or factors of classes, not both")
        chosen["class_weight"] = BALANCED
    options = TrainOptions(**chosen)
    if options.has_unused_weights:
        print_status(f"warning: -w is for C-SVC: it has no effect on {options.svm_type}")
    return options


def factors_of_classes(pairs: tuple[tuple[float, float], ...]) -> dict[float, float] | None:
    """Collect {label: factor}; repeated factors of a label are multiplied, as in LIBSVM."""
    factors: dict[float, float] = {}
    for label, factor in pairs:
        FACTORS.check("class_weight", {label: factor})
        factors[label] = factors.get(label, 1.0) * factor
    return factors or None


@dataclass(kw_only=True)
class GridJob(TrainingJob):
    """Files and settings of dcsvm-grid. Exponents () mean that a parameter is not searched."""

    n_folds: int
    log2c: tuple[float, ...]
    log2g: tuple[float, ...]
    log2p: tuple[float, ...]
    gamma_unit: str
    metric: str | None
    refine: bool
    every: bool
    out_file: str | None
    resume_file: str | None
    png_file: str | None

    def check(self, options: TrainOptions) -> None:
        """Choose the default -out and -resume files; raise UsageError or OptionError."""
        self._name_files()
        self.check_shared()
        if options.svm_type == "one_class":
            raise click.UsageError("one-class (-s 2) has no C and no score to choose it by")
        if options.svm_type == "nu_svc" and self.log2c:
            raise click.UsageError("nu-SVC (-s 1) has no C: give -log2c null to choose gamma only")
        try:
            self.metric = checked_metric(self.metric, options.svm_type)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        if self.log2p and options.svm_type != "epsilon_svr":
            raise click.UsageError("-log2p needs eps-SVR (-s 3)")
        if self.gamma_unit == MEDIAN and options.kernel_type.fall is None:
            reason = f"must be 1 for kernel {options.kernel}, got {MEDIAN}"
            raise OptionError("gamma_unit", reason)
        if options.kernel_type.is_precomputed and (self.scale_file or self.test_file):
            raise click.UsageError("a precomputed kernel cannot be used with --scale or --test")
        if not (self.log2c or self.log2p or (self.log2g and options.kernel_type.has_gamma)):
            raise click.UsageError("no parameter to choose: -log2c and -log2g are null")
        try:
            self.grid(options)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    def _name_files(self) -> None:
        if self.out_file is None:
            is_input = self.training_set_file in STANDARD_INPUT
            name = "stdin" if is_input else os.path.basename(self.training_set_file)
            self.out_file = f"{name}.out"
        if self.out_file == "null":
            self.out_file = None
        if self.resume_file == "":
            self.resume_file = self.out_file
            if self.out_file is None:
                raise click.UsageError("-resume needs a file if -out is null")

    def grid(self, options: TrainOptions) -> Grid:
        """Make the grid of settings, with gamma in units of `gamma_unit`. Raises ValueError."""
        from dcsvm.training.settings import Grid

        def powers(exponents: tuple[float, ...]) -> list[float] | None:
            return [2.0**exponent for exponent in exponents] or None

        gammas = powers(self.log2g) if options.kernel_type.has_gamma else None
        return Grid.of(options, powers(self.log2c) or [options.C], gammas, powers(self.log2p))


@dataclass(kw_only=True)
class PredictJob(DataJob):
    """Files and settings of dcsvm-predict."""

    test_file: str
    model_file: str
    output_file: str
    early: bool
    probability: bool
    decision_values: bool
    threads: int | None
    has_metrics: bool = False
    report_file: str | None = None

    def check(self) -> None:
        TrainOptions.check("threads", self.threads)
        if self.probability and self.decision_values:
            raise click.UsageError("-b 1 and --decision-values cannot be used together")
        check_not_auto(self.scale_file)


@dataclass(kw_only=True)
class ShowJob(Job):
    """Files of dcsvm-predict --describe and --plot."""

    described: str | None = None
    plotted: tuple[str, str] | None = None


@dataclass(kw_only=True)
class CompressJob(DataJob):
    """Files of dcsvm-compress."""

    model_file: str
    output_file: str
    rows_file: str | None
    test_file: str | None

    def check(self) -> None:
        if self.rows_file == self.test_file == "-":
            raise click.UsageError("--rows and --test cannot both be standard input")
        if self.scale_file is not None and self.rows_file is None and self.test_file is None:
            raise click.UsageError("--scale needs --rows or --test")
        check_not_auto(self.scale_file)


def check_not_auto(scale_file: str | None) -> None:
    """Raise UsageError for --scale auto or quantile, which are only for training."""
    if scale_file in (AUTO, QUANTILE):
        raise click.UsageError(f"--scale {scale_file} is for training: the model has its scaling")


@dataclass(kw_only=True)
class EasyJob(DataJob):
    """Files and settings of dcsvm-easy."""

    scale_file: str | None = None  # the search chooses a scaling

    training_set_file: str
    test_file: str | None
    model_file: str
    output_file: str | None
    time_limit: float
    metric: str | None
    report_file: str | None

    @staticmethod
    def from_values(given: dict[str, Any]) -> EasyJob:
        """Make a job with default file names. Raises UsageError and OptionError."""
        SECONDS.check("time_limit", given["time_limit"])
        values = {name: given[name] for name in EasyJob.__dataclass_fields__ if name in given}
        train, test = given["training_set_file"], given["test_file"]
        for name, path, ending in (("model", train, "model"), ("output", test, "predict")):
            if values[f"{name}_file"] is None and path in STANDARD_INPUT:
                raise click.UsageError(f"--{name} is required for standard input")
            if values[f"{name}_file"] is None and path is not None:
                values[f"{name}_file"] = f"{os.path.basename(path)}.{ending}"
        if train in STANDARD_INPUT or is_stream(train):
            raise click.UsageError("the training set is read twice: it cannot be a pipe")
        return EasyJob(**values)

    def train_job(self, scale: str) -> TrainJob:
        """Return the job of dcsvm-train with a scaling."""
        values: dict[str, Any] = dict.fromkeys(TrainJob.__dataclass_fields__)
        values |= {name: value for name, value in vars(self).items() if name in values}
        values |= {"scale_file": scale, "model_format": "dcsvm", "quiet": True}
        return TrainJob(**values)
