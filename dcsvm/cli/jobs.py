"""What a call of a command asks for, besides the options of training."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields

import click

from dcsvm.cli.files import AUTO, is_stream
from dcsvm.cli.streams import STANDARD_INPUT
from dcsvm.problem.option_rules import FACTORS, POSITIVE, OptionError, integer, optional
from dcsvm.problem.option_table import OptionTable
from dcsvm.problem.options import TrainOptions

FOLDS, SECONDS = optional(integer(2)), optional(POSITIVE)
PROCESSES = optional(integer(1, 1024))
NOT_WITH_FOLDS = (
    *("time_limit", "checkpoint_folder", "resume_folder", "init_model_file", "report_file"),
    *("test_file", "scheduler", "scheduler_file", "n_workers"),
)


@dataclass(frozen=True)
class TrainJob:
    """The files of dcsvm-train and how to go about them. `n_folds` is that of a cross validation,
    which writes no model: `model_file` is None."""

    training_set_file: str
    model_file: str | None
    n_folds: int | None
    quiet: bool
    lenient: bool
    scale_file: str | None
    report_file: str | None
    model_format: str
    time_limit: float | None
    checkpoint_folder: str | None
    resume_folder: str | None
    init_model_file: str | None
    test_file: str | None
    scheduler: str | None
    scheduler_file: str | None
    n_workers: int | None

    @property
    def range_file(self) -> str | None:
        """What is written beside the model."""
        if self.scale_file != AUTO or self.model_file is None:
            return None
        from dcsvm.data.range_file import range_file_of

        return range_file_of(self.model_file)

    def check(self, options: TrainOptions) -> None:
        """Raise UsageError, or OptionError, for what does not go together."""
        FOLDS.check("n_folds", self.n_folds)
        SECONDS.check("time_limit", self.time_limit)
        for name in NOT_WITH_FOLDS:
            if self.n_folds is not None and getattr(self, name) is not None:
                raise OptionError(name, "is not for cross validation (-v)")
        if self.test_file == self.training_set_file == "-":
            raise click.UsageError("the training set and --test cannot both be standard input")
        if self.test_file is not None and not options.chooses_early_level:
            raise click.UsageError("--test is for --early with --early-level auto")
        if self.model_format == "libsvm" and options.early:
            raise click.UsageError("LIBSVM has no early models: --early needs --model-format dcsvm")
        if self.scale_file is not None and options.kernel == "precomputed":
            raise click.UsageError("the values of a precomputed kernel cannot be scaled (--scale)")
        if self.range_file is not None and is_stream(self.model_file):
            raise click.UsageError(
                "--scale auto writes a file beside the model: MODEL_FILE has to be a plain file"
            )
        self.check_workers(options)
        folders = {self.checkpoint_folder, self.resume_folder} - {None}
        if len(folders) > 1:
            raise click.UsageError("--checkpoint and --resume name different folders")

    @property
    def is_remote(self) -> bool:
        """Whether workers of Dask do it."""
        return any(self.workers_named)

    @property
    def workers_named(self) -> tuple[str | int | None, ...]:
        return self.scheduler, self.scheduler_file, self.n_workers

    def check_workers(self, options: TrainOptions) -> None:
        """Raise UsageError, or OptionError, for what does not go together."""
        PROCESSES.check("n_workers", self.n_workers)
        if sum(one is not None for one in self.workers_named) > 1:
            raise click.UsageError("give one of --scheduler, --scheduler-file and --workers")
        if not self.is_remote:
            return
        if self.training_set_file in STANDARD_INPUT:
            raise click.UsageError("workers cannot read standard input: the training set is a file")
        if options.kernel == "precomputed":
            raise click.UsageError("a precomputed kernel (-t 4) is not for workers")


def model_file_of(training_set_file: str, model_file: str | None, n_folds: int | None):
    """As LIBSVM names it, after the training set in the current folder; None with -v."""
    if n_folds is not None:
        return None
    if model_file is not None:
        return model_file
    if training_set_file in STANDARD_INPUT:
        raise click.UsageError("MODEL_FILE is needed when the training set is standard input")
    return os.path.basename(training_set_file) + ".model"


def given_options(table: type[OptionTable], given: dict) -> dict:
    """Select the values of a table's options; those that were not given have its defaults."""
    return {name: given[name] for name in table.names() if given.get(name) is not None}


def training_options(given: dict) -> TrainOptions:
    """Make the training options of the values given. Raises OptionError."""
    chosen = given_options(TrainOptions, given)
    chosen["gamma"] = chosen.get("gamma") or None  # 0 is LIBSVM's default
    chosen["class_weight"] = factors_of_classes(given["class_weight"])
    return TrainOptions(**chosen)


def factors_of_classes(pairs: tuple[tuple[float, float], ...]) -> dict[float, float] | None:
    """{label: factor}; those of one label multiply, as in LIBSVM."""
    factors = {}
    for label, factor in pairs:
        FACTORS.check("class_weight", {label: factor})
        factors[label] = factors.get(label, 1.0) * factor
    return factors or None


def train_job(given: dict) -> TrainJob:
    """What was given beside the training options."""
    rest = {name: value for name, value in given.items() if name not in TrainOptions.names()}
    names = (rest["training_set_file"], rest["model_file"], rest["n_folds"])
    return TrainJob(**rest | {"model_file": model_file_of(*names)})


@dataclass(frozen=True)
class PredictJob:
    """The files of dcsvm-predict, what to write, and whether by the early level alone."""

    test_file: str
    model_file: str
    output_file: str
    probability: bool
    decision_values: bool
    early: bool
    quiet: bool
    lenient: bool
    scale_file: str | None
    threads: int | None

    def check(self) -> None:
        TrainOptions.check("threads", self.threads)
        if self.probability and self.decision_values:
            raise click.UsageError("-b 1 and --decision-values cannot be used together")
        check_not_auto(self.scale_file)


@dataclass(frozen=True)
class CompressJob:
    """The files of dcsvm-compress: models in and out, rows to fit to and to test by."""

    model_file: str
    output_file: str
    rows_file: str | None
    test_file: str | None
    quiet: bool
    lenient: bool
    scale_file: str | None

    @staticmethod
    def of(given: dict) -> CompressJob:
        """What was given beside the options of compression. Raises UsageError."""
        found = {field.name: given[field.name] for field in fields(CompressJob)}
        if found["output_file"] is None:
            found["output_file"] = os.path.basename(found["model_file"]) + ".small"
        job = CompressJob(**found)
        if job.rows_file == job.test_file == "-":
            raise click.UsageError("--rows and --test cannot both be standard input")
        if job.scale_file is not None and job.rows_file is None and job.test_file is None:
            raise click.UsageError("--scale is for rows: give --rows or --test")
        check_not_auto(job.scale_file)
        return job


def check_not_auto(scale_file: str | None) -> None:
    """Raise UsageError where ranges are to be found for a model that is trained already."""
    if scale_file == AUTO:
        raise click.UsageError(
            "--scale auto is for training: the ranges of such a model are found without it"
        )
