"""dcsvm-grid: choose C and gamma, with svm-grid's options and lines."""

from __future__ import annotations

import os

import click

from dcsvm.cli.command import LibsvmCommand
from dcsvm.cli.grid_job import GridJob
from dcsvm.cli.guard import guarded
from dcsvm.cli.help import exit_statuses
from dcsvm.cli.jobs import training_options
from dcsvm.cli.options import (
    files,
    group,
    help_option,
    lenient_option,
    long_runs,
    other,
    report_file_option,
    shrinking_option,
    table_options,
    training_scale_option,
    version_option,
)
from dcsvm.cli.values import FILE, NUMBER, POWERS, WHOLE
from dcsvm.problem.options import TrainOptions

settings, ignored = map(group, ("Settings", "Of svm-grid, without effect"))

EXAMPLES = (
    ("dcsvm-grid heart_scale", "C and gamma by 5-fold cross validation of svm-grid's 110 settings"),
    ("dcsvm-grid --early --scale auto covtype.tr model", "by early models, and one of the best"),
    ("dcsvm-grid --refine -png map.png heart_scale", "a fine grid around the best, and a picture"),
)
STATUSES = exit_statuses(
    done="all settings are scored",
    missed="not converged, or time limit: the best so far is told",
    stopped="the best so far is told",
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


@click.command(
    "dcsvm-grid",
    cls=GridCommand,
    examples=EXAMPLES,
    statuses=STATUSES,
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-predict", "svm-grid", "svm-easy", "svm-scale"),
)
@click.argument("training_set_file", type=FILE)
@click.argument("model_file", type=FILE, required=False)
@settings(
    "-log2c",
    "log2c",
    type=POWERS,
    metavar="BEGIN,END,STEP|null",
    default="-5,15,2",
    default_text="-5,15,2",
    is_basic=True,
    help="exponents of C",
    details="C is 2 to the power of each; null takes that of -c.",
)
@settings(
    "-log2g",
    "log2g",
    type=POWERS,
    metavar="BEGIN,END,STEP|null",
    default="3,-15,-2",
    default_text="3,-15,-2",
    is_basic=True,
    help="exponents of gamma",
    details="null takes that of -g; so do kernels without gamma.",
)
@settings(
    "-log2p",
    "log2p",
    type=POWERS,
    metavar="BEGIN,END,STEP|null",
    default="null",
    default_text="null",
    help="exponents of epsilon, of eps-SVR",
    details="null takes that of -p.",
)
@settings(
    "-v",
    "n_folds",
    type=WHOLE,
    metavar="N",
    default=5,
    default_text="5",
    is_basic=True,
    help="folds of the cross validation",
)
@settings(
    "--test",
    "test_file",
    type=FILE,
    metavar="FILE",
    help="score by the rows of this file, not by folds",
    details="Models learn from all rows of the training set then.",
)
@settings(
    "--refine",
    is_flag=True,
    is_basic=True,
    help="then score a fine grid around the best setting",
    details="A quarter of the steps, half a step to all sides.",
)
@settings(
    "--every",
    is_flag=True,
    help="score every setting on all rows",
    details="Otherwise a setting is left when it has lost more on some of the rows than the best "
    "one has on all: it cannot win. Its rate is then an estimate.",
)
@table_options(TrainOptions, "Levels", "Problem", "Kernel", "Accuracy", "Long runs", of_grid=True)
@long_runs(
    "--time-limit",
    type=NUMBER,
    metavar="SEC",
    help="stop after so long, and tell the best so far",
    details="The time includes reading. No model is trained then: -resume goes on.",
)
@files(
    "-out",
    "out_file",
    type=FILE,
    metavar="FILE|null",
    default_text="TRAINING_SET_FILE.out",
    help="where a line for each setting is written",
    details="As soon as it is scored. null writes none.",
)
@files(
    RESUME,
    "resume_file",
    type=FILE,
    metavar="[FILE]",
    help="take what is in this -out file, and go on",
    details="Data and options must be the same. Without FILE, where an option or the training set "
    "follows, that of -out.",
)
@files(
    "-png",
    "png_file",
    type=FILE,
    metavar="FILE",
    help="draw a map of the rates",
    details="It needs matplotlib.",
)
@training_scale_option
@lenient_option
@report_file_option
@ignored("-svmtrain", "svmtrain", expose_value=False, metavar="PATH", help="training is built in")
@ignored("-gnuplot", "gnuplot", expose_value=False, metavar="PATH", help="-png draws")
@shrinking_option
@other("-q", "quiet", is_flag=True, help="print only errors, warnings and the last line")
@version_option
@help_option
def main(**given) -> None:
    """Choose C and gamma by cross validation.

    Every setting of a grid is scored on rows that its models have not seen. A line for each says
    what it is worth and which is the best so far; the last line has the best one: C, gamma, rate.
    Of equal rates the smaller C is better. With MODEL_FILE a model of it is trained on all rows.

    Rates are percent of right rows; of regressions, mean squared errors. Without --early they are
    those of dcsvm-train -v.
    """
    options, job = training_options(given), GridJob.of(given)
    job.check(options)

    def work() -> int:
        from dcsvm.cli.grid_file import search_file

        return search_file(job, options)

    guarded(work)
