"""What a call of a command asks for, besides the options of training."""

from __future__ import annotations

import os
from types import SimpleNamespace

import click

from dcsvm.cli.files import AUTO, STANDARD_INPUT, is_stream
from dcsvm.problem.option_rules import FACTORS, POSITIVE, OptionError, integer, optional
from dcsvm.problem.option_table import OptionTable
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.grid import Grid

FOLDS, SECONDS = optional(integer(2)), optional(POSITIVE)
PROCESSES = optional(integer(1, 1024))
NOT_WITH_FOLDS = (
    *("time_limit", "checkpoint_folder", "resume_folder", "init_model_file", "report_file"),
    *("test_file", "scheduler", "scheduler_file", "n_workers"),
)


class Job(SimpleNamespace):
    """The values of a command's options and arguments by their names, but for those of a table."""

    @classmethod
    def of(cls, given: dict, table: type[OptionTable]) -> Job:
        return cls(**{name: value for name, value in given.items() if name not in table.names()})

    @property
    def range_file(self) -> str | None:
        """What is written beside the model."""
        if self.scale_file != AUTO or self.model_file is None:
            return None
        from dcsvm.data.range_file import range_file_of

        return range_file_of(self.model_file)


class TrainJob(Job):
    """The files of dcsvm-train and how to go about them. `n_folds` is that of a cross validation,
    which writes no model: `model_file` is None."""

    def check(self, options: TrainOptions) -> None:
        """Name the model as LIBSVM does, after the training set in the current folder. Raises
        UsageError, or OptionError, for what does not go together."""
        if self.n_folds is not None:
            self.model_file = None
        elif self.model_file is None:
            if self.training_set_file in STANDARD_INPUT:
                raise click.UsageError(
                    "MODEL_FILE is needed when the training set is standard input"
                )
            self.model_file = os.path.basename(self.training_set_file) + ".model"
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
        if self.scale_file is not None and options.kernel_type.is_precomputed:
            raise click.UsageError("the values of a precomputed kernel cannot be scaled (--scale)")
        if self.range_file is not None and is_stream(self.model_file):
            raise click.UsageError(
                "--scale auto writes a file beside the model: MODEL_FILE has to be a plain file"
            )
        PROCESSES.check("n_workers", self.n_workers)
        if sum(one is not None for one in self.workers) > 1:
            raise click.UsageError("give one of --scheduler, --scheduler-file and --workers")
        if self.is_remote and self.training_set_file in STANDARD_INPUT:
            raise click.UsageError("workers cannot read standard input: the training set is a file")
        if self.is_remote and options.kernel_type.is_precomputed:
            raise click.UsageError("a precomputed kernel (-t 4) is not for workers")
        if len({self.checkpoint_folder, self.resume_folder} - {None}) > 1:
            raise click.UsageError("--checkpoint and --resume name different folders")

    @property
    def workers(self) -> tuple[str | int | None, ...]:
        return self.scheduler, self.scheduler_file, self.n_workers

    @property
    def is_remote(self) -> bool:
        """Whether workers of Dask do it."""
        return any(self.workers)


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


class GridJob(Job):
    """The files of dcsvm-grid and how to go about them; the exponents are () where they are not
    sought."""

    def check(self, options: TrainOptions) -> None:
        """Name the -out file where it has no name, and take it where -resume has none. Raises
        UsageError, or OptionError, for what does not go together."""
        if self.out_file is None:
            is_input = self.training_set_file in STANDARD_INPUT
            name = "stdin" if is_input else os.path.basename(self.training_set_file)
            self.out_file = f"{name}.out"
        if self.out_file == "null":
            self.out_file = None
        if self.resume_file == "":
            self.resume_file = self.out_file
            if self.out_file is None:
                raise click.UsageError("-resume needs a file: -out null writes none")
        FOLDS.check("n_folds", self.n_folds)
        SECONDS.check("time_limit", self.time_limit)
        if options.svm_type == "one_class":
            raise click.UsageError("one-class (-s 2) has no C, and nothing to choose it by")
        if options.svm_type == "nu_svc" and self.log2c:
            raise click.UsageError(
                "nu-SVC (-s 1) has no C: give -log2c null, and gamma alone is chosen"
            )
        if self.log2p and options.svm_type != "epsilon_svr":
            raise click.UsageError("-log2p is for eps-SVR (-s 3)")
        if self.test_file == self.training_set_file == "-":
            raise click.UsageError("the training set and --test cannot both be standard input")
        if options.kernel_type.is_precomputed and (self.scale_file or self.test_file):
            raise click.UsageError("a precomputed kernel goes with neither --scale nor --test")
        if not (self.log2c or self.log2p or (self.log2g and options.kernel_type.has_gamma)):
            raise click.UsageError("there is nothing to choose: -log2c and -log2g are null")
        try:
            self.grid(options)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    def grid(self, options: TrainOptions) -> Grid:
        """The settings to score. Raises ValueError."""

        def powers(exponents: tuple[float, ...]) -> list[float] | None:
            return [2.0**exponent for exponent in exponents] or None

        gammas = powers(self.log2g) if options.kernel_type.has_gamma else None
        Cs = powers(self.log2c) or [options.C]
        return Grid.of(options, Cs, gammas, powers(self.log2p))


class PredictJob(Job):
    """The files of dcsvm-predict, what to write, and whether by the early level alone."""

    def check(self) -> None:
        TrainOptions.check("threads", self.threads)
        if self.probability and self.decision_values:
            raise click.UsageError("-b 1 and --decision-values cannot be used together")
        check_not_auto(self.scale_file)


class CompressJob(Job):
    """The files of dcsvm-compress: models in and out, rows to fit to and to test by."""

    def check(self) -> None:
        if self.output_file is None:
            self.output_file = os.path.basename(self.model_file) + ".small"
        if self.rows_file == self.test_file == "-":
            raise click.UsageError("--rows and --test cannot both be standard input")
        if self.scale_file is not None and self.rows_file is None and self.test_file is None:
            raise click.UsageError("--scale is for rows: give --rows or --test")
        check_not_auto(self.scale_file)


def check_not_auto(scale_file: str | None) -> None:
    """Raise UsageError where ranges are to be found for a model that is trained already."""
    if scale_file == AUTO:
        raise click.UsageError(
            "--scale auto is for training: the ranges of such a model are found without it"
        )
