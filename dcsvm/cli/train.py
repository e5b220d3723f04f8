"""dcsvm-train: train a model, with svm-train's letters and defaults."""

from dataclasses import fields
from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.file_types import (
    CHECKPOINT,
    INPUT,
    MODEL,
    OUTPUT,
    RESUMED_FOLDER,
    SCHEDULER,
    WEIGHTS,
)
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import TrainJob, training_options
from dcsvm.cli.options import (
    NUMBER,
    WHOLE,
    OneOf,
    files,
    group,
    long_runs,
    other,
    shared,
    table_options,
)
from dcsvm.problem.option_table import option_of
from dcsvm.problem.options import TrainOptions

EXAMPLES = (
    ("dcsvm-train -c 32 -g 2 covtype.tr", "an exact and an early model in one run"),
    (
        "dcsvm-train -c 32 -g 2 --early covtype.tr",
        "an early model only: much faster, often more accurate",
    ),
    ("dcsvm-train -v 5 -c 8 -g 0.5 heart_scale", "the accuracy of 5-fold cross-validation"),
)
problem, levels = group("Problem"), group("Levels")
FREE = [option_of(one).names[0] for one in fields(TrainOptions) if option_of(one).is_free]
FILES = (
    ("TRAINING_SET_FILE", DATA_FILE),
    ("MODEL_FILE", "text; svm-predict can read an exact model"),
    ("MODEL_FILE.range", "the ranges of --scale auto, for svm-scale; the model has them, too"),
)


# fmt: off
@click.command(
    "dcsvm-train",
    cls=LibsvmCommand,
    examples=EXAMPLES,
    statuses=exit_statuses(
        done="converged, or the early model is complete",
        missed="not converged, or time limit: model written",
        stopped="current model written",
    ),
    files=FILES,
    see_also=("dcsvm-predict", "svm-train", "svm-scale"),
)
@click.argument("training_set_file", type=INPUT)
@click.argument("model_file", type=OUTPUT, required=False)
@table_options(TrainOptions, "Problem", "Kernel", "Accuracy", "Levels", "Long runs")
@shared("balanced")
@problem("-v N", "n_folds", WHOLE,
    "N-fold cross-validation; writes no model",
    "It prints the accuracy, or the errors of a regression.",
    is_basic=True)
@levels("--test FILE", "test_file", INPUT,
    "choose the early level by the error on these rows",
    "For --early with --early-level auto. The search starts from the finest level and goes to "
    "coarser ones while they are better.")
@long_runs("--time-limit SEC", "time_limit", NUMBER,
    "stop after SEC seconds, write the current model",
    "The time includes reading.")
@long_runs("--checkpoint DIR", "checkpoint_folder", CHECKPOINT,
    "store checkpoints in this folder",
    "After a crash or a stop, --resume continues from the last one. If both options name the same "
    "folder, the same command can be repeated until training ends, which removes the folder.")
@long_runs("--resume DIR", "resume_folder", RESUMED_FOLDER,
    "continue from a checkpoint, same data and options",
    f"{', '.join(FREE[:-1])} and {FREE[-1]} may differ.")
@long_runs("--init-model FILE", "init_model_file", MODEL,
    "warm start from a model of the same rows",
    "Or of the first rows of the file. Its other options may differ (C, gamma, -e). It saves most "
    "time if little has changed, with -l 0.")
@long_runs("--scheduler ADDR", "scheduler", None,
    "train on the workers of this Dask scheduler",
    "For example tcp://10.0.0.1:8786. TRAINING_SET_FILE is a path that all workers can read, or "
    "a URL for fsspec. Needs the extra dask.")
@long_runs("--scheduler-file F", "scheduler_file", SCHEDULER,
    "the same, address from a scheduler file",
    "The file that dask scheduler --scheduler-file writes.")
@long_runs("--workers N", "n_workers", WHOLE,
    "train on N processes of this machine",
    "They are a Dask cluster that ends with the command, and share the threads.")
@shared("format", "label", "drop", "weight", "scale or auto", "lenient")
@files("--weights FILE", "weights", WEIGHTS,
    "feature weights: learn, or those of a model file",
    "The weights multiply the scaled features and show which of them matter. They need a kernel of "
    "a distance. learn finds them from up to 3000 rows and chooses by held-out rows among them; "
    "without a gain they are 1. The model has them: see dcsvm-predict --describe. The weights of a "
    "model file belong to the --scale it was trained with.")
@files("--model-format FMT", "model_format", OneOf(["dcsvm", "libsvm"]),
    "dcsvm, or libsvm for the format of LIBSVM only",
    "dcsvm: an exact model is in LIBSVM's format, followed by a section of dcsvm.",
    default="dcsvm")
@shared("report")
@other("-q", "quiet", None,
    "print only errors, warnings of training, lines of -v",
    "The warnings about data are omitted.")
@shared("shrinking", "version", "help")
# fmt: on
def main(**given: Any) -> None:
    """Train a support vector machine by divide and conquer.

    TRAINING_SET_FILE is LIBSVM text or a table (CSV, TSV, Parquet, Arrow); "-" is standard input.
    The default MODEL_FILE is the name of that file with .model appended, in the current folder.
    One-letter options are as in svm-train: the value is the next argument, even if it starts with
    a dash. Defaults are in brackets.
    """
    options, job = training_options(given), TrainJob.of(given, TrainOptions)
    job.check(options)
    run("train_file", job, options)
