"""dcsvm-grid: choose C and gamma, with the options and the output of svm-grid."""

import os
from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.files import STANDARD_INPUT, is_stream
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import OF_GRID, SHARED, GridJob, check, training_options
from dcsvm.cli.options import HELP, VERSION, Some, parameters
from dcsvm.problem.options import TrainOptions

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


TITLES = ("Settings", "Levels", "Problem", "Kernel", "Accuracy", "Long runs", "Files",
          "Options of svm-grid without effect", "Other")  # fmt: skip
OF_GRID_TOO = [name for name, option, _ in TrainOptions.entries() if option.in_grid]


@click.command(
    "dcsvm-grid",
    cls=GridCommand,
    params=parameters(TITLES, Some(TrainOptions, OF_GRID_TOO), GridJob),
    examples=EXAMPLES,
    statuses=exit_statuses(
        done="all settings are scored",
        missed="not converged, or time limit: best so far printed",
        stopped="best setting so far printed",
    ),
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-predict", "svm-grid", "svm-easy", "svm-scale"),
)
@VERSION
@HELP
def main(**given: Any) -> None:
    """Choose C and gamma by cross-validation.

    Each setting of a grid is scored on held-out rows. One line per setting has its rate and the
    best setting so far; the last line has the best setting: C, gamma, rate. Ties are broken by the
    smaller C. If MODEL_FILE is given, a model of the best setting is trained on all rows.

    The rate is the accuracy in percent, for regressions the mean squared error. Without --early, it
    equals the result of dcsvm-train -v up to the tolerance (-e): at most about one row in 1000
    differs.
    """
    options = training_options(given)
    if given["out_file"] is None:
        path = given["training_set_file"]
        name = "stdin" if path in STANDARD_INPUT else os.path.basename(path)
        given["out_file"] = f"{name}.out"
    if given["out_file"] == "null":
        given["out_file"] = None
    if given["resume_file"] == "":
        given["resume_file"] = given["out_file"] or ""
    job = GridJob.taken(given)
    check([OF_GRID, SHARED], job, options)
    options.check_feature_weights(job.feature_weights)
    try:
        job.check_metric(options)
        job.grid(options)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    run("grid_file", job, options)
