"""dcsvm-grid: choose C and gamma, with svm-grid's options and lines."""

from __future__ import annotations

import os

import click

from dcsvm.cli.command import LibsvmCommand, exit_statuses
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import GridJob, training_options
from dcsvm.cli.options import (
    FILE,
    NUMBER,
    POWERS,
    WHOLE,
    files,
    group,
    long_runs,
    other,
    shared,
    table_options,
)
from dcsvm.problem.options import TrainOptions

settings, ignored = map(group, ("Settings", "Of svm-grid, without effect"))

EXAMPLES = (
    ("dcsvm-grid heart_scale", "C and gamma by 5-fold cross validation of svm-grid's 110 settings"),
    ("dcsvm-grid --early --scale auto covtype.tr model", "by early models, and one of the best"),
    ("dcsvm-grid --refine -png map.png heart_scale", "a fine grid around the best, and a picture"),
)
FILES = (
    ("TRAINING_SET_FILE", "a row a line, LABEL INDEX:VALUE ...; gzip, bzip2 and xz are unpacked"),
    ("MODEL_FILE", "a model of the best setting, as of dcsvm-train"),
    ("TRAINING_SET_FILE.out", "a line for each setting, in the current folder (-out)"),
)
RESUME = "-resume"
OUT_FILE_BEGINS = b"log2"


class GridCommand(LibsvmCommand):
    """Whose -resume may have no value, as svm-grid's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        for place in [k for k, word in enumerate(given) if word == RESUME][:1]:
            rest = given[place + 1 :]
            if len(rest) < 2 or rest[0].startswith("-") or not may_be_out_file(rest[0]):
                given.insert(place + 1, "")
        return super().parse_args(ctx, given)


def may_be_out_file(name: str) -> bool:
    """Return whether a word after -resume is its file rather than the training set. A file that is
    missing or empty cannot be the training set."""
    try:
        with open(name, "rb") as file:
            start = file.read(len(OUT_FILE_BEGINS))
    except OSError:
        return not os.path.exists(name)
    return start in (b"", OUT_FILE_BEGINS)


# fmt: off
@click.command(
    "dcsvm-grid",
    cls=GridCommand,
    examples=EXAMPLES,
    statuses=exit_statuses(
        done="all settings are scored",
        missed="not converged, or time limit: the best so far is told",
        stopped="the best so far is told",
    ),
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-predict", "svm-grid", "svm-easy", "svm-scale"),
)
@click.argument("training_set_file", type=FILE)
@click.argument("model_file", type=FILE, required=False)
@settings("-log2c BEGIN,END,STEP|null", "log2c", POWERS,
    "exponents of C",
    "C is 2 to the power of each; null takes that of -c.",
    default="-5,15,2", is_basic=True)
@settings("-log2g BEGIN,END,STEP|null", "log2g", POWERS,
    "exponents of gamma",
    "null takes that of -g; so do kernels without gamma.",
    default="3,-15,-2", is_basic=True)
@settings("-log2p BEGIN,END,STEP|null", "log2p", POWERS,
    "exponents of epsilon, of eps-SVR",
    "null takes that of -p.",
    default="null")
@settings("-v N", "n_folds", WHOLE, "folds of the cross validation", default=5, is_basic=True)
@settings("--test FILE", "test_file", FILE,
    "score by the rows of this file, not by folds",
    "Models learn from all rows of the training set then.")
@settings("--refine", "refine", None,
    "then score a fine grid around the best setting",
    "A quarter of the steps, half a step to all sides.",
    is_basic=True)
@settings("--every", "every", None,
    "score every setting on all rows",
    "Otherwise a setting is left when it has lost more on some of the rows than the best "
    "one has on all: it cannot win. Its rate is then an estimate.")
@table_options(TrainOptions, "Levels", "Problem", "Kernel", "Accuracy", "Long runs", of_grid=True)
@long_runs("--time-limit SEC", "time_limit", NUMBER,
    "stop after so long, and tell the best so far",
    "The time includes reading. No model is trained then: -resume goes on.")
@files("-out FILE|null", "out_file", FILE,
    "where a line for each setting is written",
    "As soon as it is scored. null writes none.",
    default_text="TRAINING_SET_FILE.out")
@files(f"{RESUME} [FILE]", "resume_file", FILE,
    "take what is in this -out file, and go on",
    "Data and options must be the same. Without FILE, where an option or the training set "
    "follows, that of -out.")
@files("-png FILE", "png_file", FILE, "draw a map of the rates", "It needs matplotlib.")
@shared("scale or auto", "lenient", "report")
@ignored("-svmtrain PATH", "svmtrain", None, "training is built in", expose_value=False)
@ignored("-gnuplot PATH", "gnuplot", None, "-png draws", expose_value=False)
@shared("shrinking")
@other("-q", "quiet", None, "print only errors, warnings and the last line")
@shared("version", "help")
# fmt: on
def main(**given) -> None:
    """Choose C and gamma by cross validation.

    Every setting of a grid is scored on rows that its models have not seen. A line for each says
    what it is worth and which is the best so far; the last line has the best one: C, gamma, rate.
    Of equal rates the smaller C is better. With MODEL_FILE a model of it is trained on all rows.

    Rates are percent of right rows; of regressions, mean squared errors. Without --early they are
    those of dcsvm-train -v.
    """
    options, job = training_options(given), GridJob.of(given, TrainOptions)
    job.check(options)
    run("grid_file", job, options)
