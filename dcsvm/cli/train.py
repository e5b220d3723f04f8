"""dcsvm-train: train a model, with svm-train's letters and defaults."""

from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import OF_TRAINING, SHARED, TrainJob, check, name_beside, training_options
from dcsvm.cli.options import HELP, VERSION, parameters
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


@click.command(
    "dcsvm-train",
    cls=LibsvmCommand,
    params=parameters(TITLES, TrainOptions, TrainJob),
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
