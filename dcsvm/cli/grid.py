"""dcsvm-grid: choose C and gamma, with the options and the output of svm-grid."""

import os
from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.file_types import INPUT, OUTPUT, RESUMED_FILE
from dcsvm.cli.files import is_stream
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import GridJob, training_options
from dcsvm.cli.options import (
    NUMBER,
    POWERS,
    WHOLE,
    OneOf,
    files,
    group,
    long_runs,
    other,
    shared,
    table_options,
)
from dcsvm.problem.option_table import MEDIAN, METRICS
from dcsvm.problem.options import TrainOptions

settings, ignored = map(group, ("Settings", "Options of svm-grid without effect"))

EXAMPLES = (
    ("dcsvm-grid heart_scale", "C and gamma by 5-fold cross-validation of svm-grid's 110 settings"),
    (
        "dcsvm-grid --early --scale auto covtype.tr model",
        "score by early models, train the best setting",
    ),
    (
        "dcsvm-grid --refine -png map.png heart_scale",
        "add a finer grid around the best, draw a map",
    ),
)
FILES = (
    ("TRAINING_SET_FILE", DATA_FILE),
    ("MODEL_FILE", "the model of the best setting, as dcsvm-train writes it"),
    ("TRAINING_SET_FILE.out", "one line per setting, in the current folder (-out)"),
)
RESUME = "-resume"
OUT_FILE_BEGINS = b"log2"
MODEL_FILE_BEGINS = (b"svm_type", b"kernel_type", b"dcsvm_early_model")


class GridCommand(LibsvmCommand):
    """Command dcsvm-grid. As in svm-grid, the value of -resume is optional."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = list(args)
        if RESUME in args:
            k = args.index(RESUME) + 1
            if len(args) < k + 2 or args[k].startswith("-") or not is_out_file(*args[k : k + 2]):
                args.insert(k, "")
        return super().parse_args(ctx, args)


def is_out_file(name: str, next_word: str) -> bool:
    """Return whether the word after -resume is its value, not the training set.

    A folder and a missing or empty file cannot be the training set. Neither can a file before
    another file, unless the latter is a model to overwrite. Pipes are not read here.
    """
    start, next_start = beginning(name), beginning(next_word)
    if not start or start.startswith(OUT_FILE_BEGINS):
        return True
    return bool(next_start) and not next_start.startswith(MODEL_FILE_BEGINS)


def beginning(name: str) -> bytes:
    """Return the first bytes of a file: b"" if it does not exist, b"?" if unknown."""
    if not os.path.isfile(name):
        return b"?" if is_stream(name) else b""
    try:
        with open(name, "rb") as file:
            return file.read(20)
    except OSError:
        return b"?"


# fmt: off
@click.command(
    "dcsvm-grid",
    cls=GridCommand,
    examples=EXAMPLES,
    statuses=exit_statuses(
        done="all settings are scored",
        missed="not converged, or time limit: best so far printed",
        stopped="best setting so far printed",
    ),
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-predict", "svm-grid", "svm-easy", "svm-scale"),
)
@click.argument("training_set_file", type=INPUT)
@click.argument("model_file", type=OUTPUT, required=False)
@settings("-log2c BEGIN,END,STEP|null", "log2c", POWERS,
    "exponents of C: powers of 2",
    "null: C is that of -c.",
    default="-5,15,2", is_basic=True)
@settings("-log2g BEGIN,END,STEP|null", "log2g", POWERS,
    "exponents of gamma: powers of 2",
    "null: gamma is that of -g. Kernels without gamma ignore it.",
    default="3,-15,-2", is_basic=True)
@settings("--metric NAME", "metric", OneOf(METRICS),
    "choose by balanced-accuracy, f1, auc, mae, ...",
    f"One of {', '.join(METRICS)}. auc and log-loss need two classes. balanced-accuracy and f1 are "
    "means over the classes. With f1, auc and log-loss no setting is pruned.",
    default_text="accuracy, mse")
@settings("--gamma-unit UNIT", "gamma_unit", OneOf(["1", MEDIAN]),
    "unit of the powers of -log2g: 1 or median",
    "median: a power F stands for -g F/median. The last line has gamma itself.",
    default="1")
@settings("-log2p BEGIN,END,STEP|null", "log2p", POWERS,
    "exponents of epsilon of eps-SVR",
    "null: epsilon is that of -p.",
    default="null")
@settings("-v N", "n_folds", WHOLE, "number of cross-validation folds", default=5, is_basic=True)
@settings("--test FILE", "test_file", INPUT,
    "score on the rows of this file, not on folds",
    "Models are then trained on all rows of the training set.")
@settings("--refine", "refine", None,
    "score a finer grid around the best setting, too",
    "Its step is a quarter of the step of the grid, and it extends half a step to each side.",
    is_basic=True)
@settings("--every", "every", None,
    "score every setting on all rows",
    "By default a setting is pruned once its loss on some of the rows exceeds the loss of the best "
    "setting on all rows. The rate of a pruned setting is an estimate.")
@table_options(TrainOptions, "Levels", "Problem", "Kernel", "Accuracy", "Long runs", of_grid=True)
@shared("balanced")
@long_runs("--time-limit SEC", "time_limit", NUMBER,
    "stop after SEC seconds, print the best so far",
    "The time includes reading. No model is trained after a stop. -resume continues.")
@files("-out FILE|null", "out_file", OUTPUT,
    "write a line per scored setting to this file",
    "null writes no file.",
    default_text="TRAINING_SET_FILE.out")
@files(f"{RESUME} [FILE]", "resume_file", RESUMED_FILE,
    "continue from this -out file",
    "Data and options must be the same. The default FILE, if an option or the training set "
    "follows, is that of -out.")
@files("-png FILE", "png_file", OUTPUT, "draw a map of the rates", "Requires matplotlib.")
@shared("format", "label", "drop", "weight", "scale or auto", "lenient", "report")
@ignored("-svmtrain PATH", "svmtrain", None, "ignored: training is built in", expose_value=False)
@ignored("-gnuplot PATH", "gnuplot", None, "ignored: see -png", expose_value=False)
@shared("shrinking")
@other("-q", "quiet", None,
    "print only errors, warnings of the search, last line",
    "The warnings about data are omitted.")
@shared("version", "help")
# fmt: on
def main(**given: Any) -> None:
    """Choose C and gamma by cross-validation.

    Each setting of a grid is scored on held-out rows. One line per setting has its rate and the
    best setting so far; the last line has the best setting: C, gamma, rate. Ties are broken by the
    smaller C. If MODEL_FILE is given, a model of the best setting is trained on all rows.

    The rate is the accuracy in percent, for regressions the mean squared error. Without --early, it
    equals the result of dcsvm-train -v up to the tolerance (-e): at most about one row in 1000
    differs.
    """
    options, job = training_options(given), GridJob.of(given, TrainOptions)
    job.check(options)
    run("grid_file", job, options)
