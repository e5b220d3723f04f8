"""dcsvm-train: train a model from a LIBSVM file, with svm-train's letters and defaults."""

from __future__ import annotations

import click

from dcsvm.cli.command import LibsvmCommand
from dcsvm.cli.guard import guarded, usage_error
from dcsvm.cli.jobs import train_job, training_options
from dcsvm.cli.options import (
    files,
    help_option,
    lenient_option,
    long_runs,
    other,
    training_scale_option,
    version_option,
)
from dcsvm.cli.training_options import (
    ACCURACY,
    CLUSTERS,
    EARLY,
    KERNEL,
    PROBLEM,
    WORKERS,
    cache_mb_option,
    levels,
    levels_option,
    max_iterations_option,
    problem,
    report_file_option,
    seed_option,
    shrinking_option,
    time_limit_option,
    with_options,
    working_threads_option,
)
from dcsvm.cli.values import FILE, FOLDER, WHOLE
from dcsvm.problem.option_rules import OptionError
from dcsvm.problem.options import TrainOptions

EXAMPLES = (
    ("dcsvm-train -c 32 -g 2 covtype.tr", "the exact model, and the early one, from one run"),
    ("dcsvm-train -c 32 -g 2 --early covtype.tr", "only the early model: less exact, much faster"),
    ("dcsvm-train -v 5 -c 8 -g 0.5 heart_scale", "the accuracy of 5-fold cross validation"),
)
STATUSES = (
    ("0", "converged, or the early model is done"),
    ("1", "failed; one sentence says why"),
    ("2", "wrong usage"),
    ("3", "not converged, or time limit: the model is written"),
    ("130, 143, 129", "SIGINT, SIGTERM, SIGHUP: what there is is written"),
)

FILES = (
    ("TRAINING_SET_FILE", "a row a line, LABEL INDEX:VALUE ...; gzip, bzip2 and xz are unpacked"),
    ("MODEL_FILE", "text; an exact model is read by svm-predict, too"),
    ("MODEL_FILE.range", "the ranges of --scale auto; text, as of svm-scale -s"),
)


@click.command(
    "dcsvm-train",
    cls=LibsvmCommand,
    examples=EXAMPLES,
    statuses=STATUSES,
    files=FILES,
    see_also=("dcsvm-predict", "svm-train", "svm-scale"),
)
@click.argument("training_set_file", type=FILE)
@click.argument("model_file", type=FILE, required=False)
@with_options(*PROBLEM)
@problem(
    "-v",
    "n_folds",
    type=WHOLE,
    metavar="N",
    is_basic=True,
    help="N-fold cross validation; writes no model",
    details="It prints the accuracy, or the errors of a regression.",
)
@with_options(*KERNEL, *ACCURACY, levels_option, *CLUSTERS, *EARLY)
@levels(
    "--test",
    "test_file",
    type=FILE,
    metavar="FILE",
    help="choose the early level by the rows of this file",
    details="For --early with --early-level auto: the level that predicts them best, of the finest "
    "and the coarser ones as long as these are better.",
)
@with_options(seed_option, cache_mb_option, working_threads_option)
@with_options(max_iterations_option, time_limit_option)
@long_runs(
    "--checkpoint",
    "checkpoint_folder",
    type=FOLDER,
    metavar="DIR",
    help="keep what is needed to go on in this folder",
    details="After a crash or a stop --resume goes on from it. With both options naming one folder "
    "a command can be repeated as it is until it is done; then the folder is removed.",
)
@long_runs(
    "--resume",
    "resume_folder",
    type=FOLDER,
    metavar="DIR",
    help="go on from a checkpoint, data and options the same",
    details="--threads, -m and --certify may differ.",
)
@long_runs(
    "--init-model",
    "init_model_file",
    type=FILE,
    metavar="FILE",
    help="begin with a model of the same rows",
    details="Or of the first of them, trained otherwise (another C, gamma or -e). With -l 0 it "
    "pays most where little has changed.",
)
@with_options(*WORKERS)
@training_scale_option
@lenient_option
@files(
    "--model-format",
    type=click.Choice(["dcsvm", "libsvm"]),
    default="dcsvm",
    metavar="FMT",
    default_text="dcsvm",
    help="dcsvm, or libsvm for exactly LIBSVM's",
    details="dcsvm: an exact model is LIBSVM's with a section after its end.",
)
@report_file_option
@other(
    "-q",
    "quiet",
    is_flag=True,
    help="print only errors, warnings and the lines of -v",
)
@shrinking_option
@version_option
@help_option
def main(**given) -> None:
    """Train a support vector machine by divide and conquer.

    TRAINING_SET_FILE is in LIBSVM's format, "-" is standard input. MODEL_FILE is by default the
    file's name with .model appended, in the current folder. One-letter options are svm-train's: the
    value is the next argument, whatever it starts with. Defaults are in brackets.
    """
    try:
        options = TrainOptions(**training_options(given))
        job = train_job(given)
        job.check(options)
    except OptionError as error:
        raise usage_error(error) from None

    def work() -> int:
        from dcsvm.cli.train_file import train_file

        return train_file(job, options)

    guarded(work)
