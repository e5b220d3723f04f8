"""dcsvm-train: train a model from a LIBSVM file, with svm-train's letters and defaults."""

from __future__ import annotations

from dataclasses import fields

import click

from dcsvm.cli.command import LibsvmCommand, exit_statuses
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import TrainJob, training_options
from dcsvm.cli.options import (
    FILE,
    FOLDER,
    NUMBER,
    WHOLE,
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
    ("dcsvm-train -c 32 -g 2 covtype.tr", "the exact model, and the early one, from one run"),
    ("dcsvm-train -c 32 -g 2 --early covtype.tr", "only the early model: less exact, much faster"),
    ("dcsvm-train -v 5 -c 8 -g 0.5 heart_scale", "the accuracy of 5-fold cross validation"),
)
problem, levels = group("Problem"), group("Levels")
FREE = [option_of(one).names[0] for one in fields(TrainOptions) if option_of(one).is_free]
FILES = (
    ("TRAINING_SET_FILE", "a row a line, LABEL INDEX:VALUE ...; gzip, bzip2 and xz are unpacked"),
    ("MODEL_FILE", "text; an exact model is read by svm-predict, too"),
    ("MODEL_FILE.range", "the ranges of --scale auto; text, as of svm-scale -s"),
)


# fmt: off
@click.command(
    "dcsvm-train",
    cls=LibsvmCommand,
    examples=EXAMPLES,
    statuses=exit_statuses(
        done="converged, or the early model is done",
        missed="not converged, or time limit: the model is written",
        stopped="what there is is written",
    ),
    files=FILES,
    see_also=("dcsvm-predict", "svm-train", "svm-scale"),
)
@click.argument("training_set_file", type=FILE)
@click.argument("model_file", type=FILE, required=False)
@table_options(TrainOptions, "Problem", "Kernel", "Accuracy", "Levels", "Long runs")
@problem("-v N", "n_folds", WHOLE,
    "N-fold cross validation; writes no model",
    "It prints the accuracy, or the errors of a regression.",
    is_basic=True)
@levels("--test FILE", "test_file", FILE,
    "choose the early level by the rows of this file",
    "For --early with --early-level auto: the level that predicts them best, of the finest "
    "and the coarser ones as long as these are better.")
@long_runs("--time-limit SEC", "time_limit", NUMBER,
    "stop after so long, and write the model there is",
    "The time includes reading.")
@long_runs("--checkpoint DIR", "checkpoint_folder", FOLDER,
    "keep what is needed to go on in this folder",
    "After a crash or a stop --resume goes on from it. With both options naming one folder "
    "a command can be repeated as it is until it is done; then the folder is removed.")
@long_runs("--resume DIR", "resume_folder", FOLDER,
    "go on from a checkpoint, data and options the same",
    f"{', '.join(FREE[:-1])} and {FREE[-1]} may differ.")
@long_runs("--init-model FILE", "init_model_file", FILE,
    "begin with a model of the same rows",
    "Or of the first of them, trained otherwise (another C, gamma or -e). With -l 0 it "
    "pays most where little has changed.")
@long_runs("--scheduler ADDR", "scheduler", None,
    "train on the workers of this Dask scheduler",
    "Such as tcp://10.0.0.1:8786. TRAINING_SET_FILE is a path that all workers see, or "
    "a URL of fsspec. Needs the extra dask.")
@long_runs("--scheduler-file F", "scheduler_file", FILE,
    "the same, of the scheduler that wrote this file",
    "That of dask scheduler --scheduler-file.")
@long_runs("--workers N", "n_workers", WHOLE,
    "train on N processes of this machine",
    "A Dask cluster that ends with the command. The processes share the threads.")
@shared("scale or auto", "lenient")
@files("--model-format FMT", "model_format", click.Choice(["dcsvm", "libsvm"]),
    "dcsvm, or libsvm for exactly LIBSVM's",
    "dcsvm: an exact model is LIBSVM's with a section after its end.",
    default="dcsvm")
@shared("report")
@other("-q", "quiet", None, "print only errors, warnings and the lines of -v")
@shared("shrinking", "version", "help")
# fmt: on
def main(**given) -> None:
    """Train a support vector machine by divide and conquer.

    TRAINING_SET_FILE is in LIBSVM's format, "-" is standard input. MODEL_FILE is by default the
    file's name with .model appended, in the current folder. One-letter options are svm-train's: the
    value is the next argument, whatever it starts with. Defaults are in brackets.
    """
    options, job = training_options(given), TrainJob.of(given, TrainOptions)
    job.check(options)
    run("train_file", job, options)
