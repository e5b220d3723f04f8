"""dcsvm-train: train a model, with svm-train's letters and defaults."""

from dataclasses import dataclass
from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.guard import run
from dcsvm.cli.options import (
    AUTO,
    HELP,
    LEARN,
    MODEL,
    QUANTILE,
    SHARED,
    STANDARD_INPUT,
    VERSION,
    Conditions,
    TrainingJob,
    check,
    is_stream,
    name_beside,
    of_files,
    of_long_runs,
    of_other,
    of_table,
    parameters,
    training_options,
)
from dcsvm.problem.option_table import Rule
from dcsvm.problem.options import TrainOptions

EXAMPLES = (
    ("dcsvm-train -c 32 -g 2 covtype.tr", "an exact and an early model in one run"),
    (
        "dcsvm-train -c 32 -g 2 --early covtype.tr",
        "an early model only: much faster, often more accurate",
    ),
    ("dcsvm-train -v 5 -c 8 -g 0.5 heart_scale", "the accuracy of 5-fold cross-validation"),
)
FILES = (
    ("TRAINING_SET_FILE", DATA_FILE),
    ("MODEL_FILE", "text; svm-predict can read an exact model"),
    ("MODEL_FILE.range", "the ranges of --scale auto, for svm-scale; the model has them, too"),
)
TITLES = ("Problem", "Kernel", "Accuracy", "Levels", "Long runs", "Files", "Other")


# fmt: off
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainJob(TrainingJob):
    """Options of dcsvm-train beside TrainOptions. Cross-validation (`n_folds`) writes no model."""

    checkpoint_folder: str | None = of_long_runs(None,
        Rule.path(is_output=True, is_folder=True).optional, "--checkpoint DIR",
        "store checkpoints in this folder",
        "After a crash or a stop, --resume continues from the last one. If both options name the "
        "same folder, the same command can be repeated until training ends, which removes the "
        "folder.")
    resume_folder: str | None = of_long_runs(None,
        Rule.path(is_folder=True, continued_by="checkpoint_folder").optional, "--resume DIR",
        "continue a checkpoint of the same data and options",
        f"{', '.join(TrainOptions.free()[:-1])} and {TrainOptions.free()[-1]} may differ.")
    init_model_file: str | None = of_long_runs(None, MODEL.optional, "--init-model FILE",
        "warm start from a model of the same rows",
        "It may be trained on only the first rows of the file, and with other options (C, gamma, "
        "-e). After small changes, -l 0 saves most time.")
    scheduler: str | None = of_long_runs(None, Rule.text().optional, "--scheduler ADDR",
        "train on the workers of this Dask scheduler",
        "For example tcp://10.0.0.1:8786. TRAINING_SET_FILE is a path that all workers can read, "
        "or a URL for fsspec. This needs Dask (pip install '.[dask]').")
    scheduler_file: str | None = of_long_runs(None, Rule.path(is_awaited=True).optional,
        "--scheduler-file F",
        "the same, with the address from this file",
        "dask scheduler --scheduler-file writes it.")
    n_workers: int | None = of_long_runs(None, Rule.integer(1, 1024).optional, "--workers N",
        "train on N processes of this machine",
        "They are a Dask cluster that ends with the command, and share the threads.")
    model_format: str = of_files("dcsvm", Rule.choice("dcsvm", "libsvm"), "--model-format FMT",
        "dcsvm, or libsvm: without dcsvm's own section",
        "An exact model is in LIBSVM's format, followed by a section that only dcsvm reads.")
    quiet: bool = of_other(False, Rule.flag(), "-q",
        "print only errors, training warnings, results of -v",
        "Warnings about the data are omitted.")

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
# fmt: on


@click.command(
    "dcsvm-train",
    cls=LibsvmCommand,
    params=parameters(TITLES, of_table(TrainOptions), of_table(TrainJob)),
    examples=EXAMPLES,
    statuses=exit_statuses(
        done="converged, or the early model is complete",
        missed="not converged, or time limit: model written",
        stopped="current model written",
    ),
    files=FILES,
    see_also=("dcsvm-predict", "svm-train", "svm-scale"),
)
@VERSION
@HELP
def main(**given: Any) -> None:
    """Train a support vector machine by divide and conquer.

    TRAINING_SET_FILE is LIBSVM text or a table (CSV, TSV, Parquet, Arrow); "-" is standard input.
    The default MODEL_FILE is the name of that file with .model appended, in the current folder.
    One-letter options are as in svm-train: the value is the next argument, even if it starts with
    a dash. Defaults are in brackets.
    """
    options = training_options(given)
    if given["n_folds"] is not None:
        given["model_file"] = None
    elif given["model_file"] is None:
        given["model_file"] = name_beside(given["training_set_file"], "model")
    job = TrainJob.taken(given)
    check([OF_TRAINING, SHARED], job, options)
    options.check_feature_weights(job.feature_weights)
    run("train_file", job, options)
