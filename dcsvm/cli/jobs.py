"""The options that several commands share, and conditions on options, which are tables."""

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
    QUANTILE,
    STANDARD_INPUT,
    is_stream,
)
from dcsvm.problem.option_table import Rule
from dcsvm.problem.options import DataOptions, TrainOptions

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
@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
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


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
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


NOT_AUTO: Conditions = (
    (lambda job, _: job.scale in (AUTO, QUANTILE),
     "--scale {job.scale} is for training: the model has its scaling"),
)


def of_ranges() -> Any:
    """Return the entry of a range file for rows to predict."""
    return files(None, INPUT.optional, "--scale FILE",
        "scale the data by a range file of svm-scale -s",
        "A model of --scale auto or quantile does not need it.")
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
