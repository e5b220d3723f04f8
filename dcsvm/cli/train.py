"""dcsvm-train: train a model from a LIBSVM file, with svm-train's letters and defaults."""

from __future__ import annotations

import click

from dcsvm.cli.command import LibsvmCommand
from dcsvm.cli.guard import guarded, usage_error
from dcsvm.cli.jobs import train_job, training_options
from dcsvm.cli.options import (
    files,
    group,
    help_option,
    lenient_option,
    long_runs,
    other,
    threads_option,
    training_scale_option,
    version_option,
)
from dcsvm.cli.values import FILE, FOLDER, LEVEL, NO_OR_YES, NUMBER, WHOLE, Numbered
from dcsvm.kernel.kernels import NAMES
from dcsvm.problem.option_rules import OptionError
from dcsvm.problem.options import CLUSTERINGS, TrainOptions
from dcsvm.problem.svm_types import SVM_TYPES

problem, kernel, accuracy, levels = map(group, ("Problem", "Kernel", "Accuracy", "Levels"))

EXAMPLES = (
    ("dcsvm-train -c 32 -g 2 covtype.tr", "the exact model, and the early one, from one run"),
    ("dcsvm-train -c 32 -g 2 --early covtype.tr", "only the early model: less exact, much faster"),
    ("dcsvm-train -v 5 -c 8 -g 0.5 heart_scale", "the accuracy of 5-fold cross validation"),
)
STATUSES = (
    ("0", "converged, or the early model is done"),
    ("1", "failed; one sentence says why"),
    ("2", "wrong usage"),
    ("3", "not converged, or time limit: a usable model is written"),
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
@problem(
    "-s",
    "svm_type",
    type=Numbered(*SVM_TYPES),
    metavar="TYPE",
    is_basic=True,
    help="0 C-SVC, 1 nu-SVC, 2 one-class, 3 eps-SVR, 4 nu-SVR",
)
@problem(
    "-c",
    "C",
    type=NUMBER,
    metavar="C",
    is_basic=True,
    help="cost of an error, of C-SVC and both regressions",
)
@problem(
    "-w",
    "class_weight",
    type=(NUMBER, NUMBER),
    multiple=True,
    metavar="LABEL FACTOR",
    help="C of the class LABEL times FACTOR, as -w-1 5, of C-SVC",
    details="Once for each class; the label follows the letter without a blank.",
)
@problem("-n", "nu", type=NUMBER, metavar="NU", help="nu of nu-SVC, one-class and nu-SVR, up to 1")
@problem(
    "-p",
    "epsilon",
    type=NUMBER,
    metavar="EPSILON",
    help="of eps-SVR: errors up to it cost nothing",
)
@problem(
    "--bias",
    is_flag=True,
    help="C-SVC with a bias, as in LIBSVM",
    details="The other problems always have one.",
)
@problem(
    "-b",
    "probability",
    type=NO_OR_YES,
    metavar="0|1",
    help="1: a model that can predict probabilities",
)
@problem(
    "-v",
    "n_folds",
    type=WHOLE,
    metavar="N",
    is_basic=True,
    help="N-fold cross validation; writes no model",
    details="It prints the accuracy, or the errors of a regression.",
)
@kernel(
    "-t",
    "kernel",
    type=Numbered(*NAMES),
    metavar="TYPE",
    is_basic=True,
    help="0 linear, 1 poly, 2 rbf, 3 sigmoid, 4 precomputed",
    details="The linear kernel is u'v. The file of a precomputed kernel has kernel values in place "
    "of features.",
)
@kernel(
    "-d",
    "degree",
    type=WHOLE,
    metavar="DEGREE",
    help="of poly (gamma u'v + coef0)^degree",
)
@kernel(
    "-g",
    "gamma",
    type=NUMBER,
    metavar="GAMMA",
    is_basic=True,
    default_text="1/features",
    help="of rbf exp(-gamma |u-v|^2), poly, sigmoid",
    details="0 is the default, as in LIBSVM.",
)
@kernel(
    "-r",
    "coef0",
    type=NUMBER,
    metavar="COEF0",
    help="of poly and of sigmoid tanh(gamma u'v + coef0)",
)
@accuracy(
    "-e",
    "tolerance",
    type=NUMBER,
    metavar="TOL",
    is_basic=True,
    help="largest violation of the optimality conditions",
)
@accuracy(
    "--gap",
    type=NUMBER,
    metavar="GAP",
    help="stop at this relative duality gap, not at -e",
    details="It is relative to the objective, and cannot be stated for indefinite kernels.",
)
@accuracy(
    "--certify",
    is_flag=True,
    help="check every row with float64 kernel values",
    details="Without it a sample of rows is checked, and all that could violate.",
)
@levels(
    "-l",
    "--levels",
    type=WHOLE,
    metavar="L",
    default_text="by the number of rows",
    help="levels of clusters, 0 for none",
    details="The finest level has branching^L clusters. The default is the early level, every "
    "second finer one down to 1000 rows a cluster, and level 1 (not where kernel values are "
    "expensive, with hundreds of features). Levels of fewer than 100 rows a cluster on average "
    "are skipped. Only C-SVC and epsilon-SVR have levels.",
)
@levels(
    "-k",
    "--branching",
    type=WHOLE,
    metavar="N",
    help="clusters for each one of the next coarser level",
)
@levels(
    "--sample",
    type=WHOLE,
    metavar="M",
    help="rows that kernel k-means is run on",
    details="For each level: at least 8 and at most 64 for every one of its clusters.",
)
@levels(
    "--clustering",
    type=click.Choice(CLUSTERINGS),
    metavar="HOW",
    help="kernel, or kmeans: Euclidean distances",
)
@levels(
    "--early",
    is_flag=True,
    is_basic=True,
    help="only one level, a model of local models: much faster",
)
@levels(
    "--early-level",
    type=LEVEL,
    metavar="L",
    help="level of early prediction",
    default_text="auto, else 3",
    details="auto, for --early alone, takes the level with the fewest wrong rows, or the least "
    "squared error, as the rows of some clusters tell that are left out one by one. It looks from "
    "the finest level up, that of -l or of 100 rows a cluster. Without --early the default is 3.",
)
@levels(
    "--overlap",
    type=NUMBER,
    metavar="F",
    default_text="1.5, else 1",
    help="clusters a row is in, 1 to 2",
    details="On average: rows near a border learn in the clusters on both sides of it, and are "
    "predicted by both. 1 is the paper's early prediction, and the default without --early.",
)
@levels(
    "--test",
    "test_file",
    type=FILE,
    metavar="FILE",
    help="choose the early level by the rows of this file",
    details="For --early with --early-level auto: the level that predicts them best, of the finest "
    "and the coarser ones as long as these are better.",
)
@levels(
    "--measure-levels",
    is_flag=True,
    help="report of each level what it left out",
    details="With --report: what the clusters leave out of the problem, and the bound of it; it "
    "takes time.",
)
@levels("--seed", type=WHOLE, metavar="N", help="seed of the samples and of the folds of -v and -b")
@long_runs(
    "-m",
    "cache_mb",
    type=NUMBER,
    metavar="MB",
    is_basic=True,
    default_text="half of what there is",
    help="memory for caches and copies",
    details="Matrices and working copies of all threads together; the rows, 64 bytes for each of "
    "them and 200 MB come on top. The default is half of the memory this process may use, at most "
    "8000 MB, and no more than the rows leave.",
)
@threads_option(long_runs)
@long_runs(
    "--max-iter",
    "max_iterations",
    type=WHOLE,
    metavar="N",
    default_text="no limit",
    help="stop after about N coordinate updates",
)
@long_runs(
    "--time-limit",
    type=NUMBER,
    metavar="SEC",
    help="stop after so long, and write the model there is",
    details="The time includes reading.",
)
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
    details="--threads, -m, --certify and --measure-levels may differ.",
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
@files("--report", "report_file", type=FILE, metavar="FILE", help="write what happened as JSON")
@other(
    "-q",
    "quiet",
    is_flag=True,
    help="print only errors, warnings and the lines of -v",
)
@other(
    "-h",
    "shrinking",
    type=NO_OR_YES,
    expose_value=False,
    metavar="0|1",
    help="LIBSVM's shrinking: accepted, without effect",
    details="Rows are always left out while they cannot matter, and looked at again at the end.",
)
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
