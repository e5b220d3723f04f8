"""The options of training, as the commands that train declare them."""

from __future__ import annotations

from collections.abc import Callable

import click

from dcsvm.cli.options import files, group, long_runs, other, threads_option
from dcsvm.cli.values import FILE, LEVEL, NO_OR_YES, NUMBER, WHOLE, Numbered
from dcsvm.kernel.kernels import NAMES
from dcsvm.problem.options import CLUSTERINGS
from dcsvm.problem.svm_types import SVM_TYPES

problem, kernel, accuracy, levels = map(group, ("Problem", "Kernel", "Accuracy", "Levels"))


def with_options(*options: Callable) -> Callable:
    """The decorator that adds some options, in their order."""

    def decorated(command):
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


svm_type_option = problem(
    "-s",
    "svm_type",
    type=Numbered(*SVM_TYPES),
    metavar="TYPE",
    is_basic=True,
    help="0 C-SVC, 1 nu-SVC, 2 one-class, 3 eps-SVR, 4 nu-SVR",
)
cost_option = problem(
    "-c",
    "C",
    type=NUMBER,
    metavar="C",
    is_basic=True,
    help="cost of an error, of C-SVC and both regressions",
)
class_weight_option = problem(
    "-w",
    "class_weight",
    type=(NUMBER, NUMBER),
    multiple=True,
    metavar="LABEL FACTOR",
    help="C of the class LABEL times FACTOR, as -w-1 5, of C-SVC",
    details="Once for each class; the label follows the letter without a blank.",
)
nu_option = problem(
    "-n", "nu", type=NUMBER, metavar="NU", help="nu of nu-SVC, one-class and nu-SVR, up to 1"
)
epsilon_option = problem(
    "-p",
    "epsilon",
    type=NUMBER,
    metavar="EPSILON",
    help="of eps-SVR: errors up to it cost nothing",
)
bias_option = problem(
    "--bias",
    is_flag=True,
    help="C-SVC with a bias, as in LIBSVM",
    details="The other problems always have one.",
)
probability_option = problem(
    "-b",
    "probability",
    type=NO_OR_YES,
    metavar="0|1",
    help="1: a model that can predict probabilities",
)
kernel_option = kernel(
    "-t",
    "kernel",
    type=Numbered(*NAMES),
    metavar="TYPE",
    is_basic=True,
    help="0 linear, 1 poly, 2 rbf, 3 sigmoid, 4 precomputed",
    details="The linear kernel is u'v. The file of a precomputed kernel has kernel values in place "
    "of features.",
)
degree_option = kernel(
    "-d",
    "degree",
    type=WHOLE,
    metavar="DEGREE",
    help="of poly (gamma u'v + coef0)^degree",
)
gamma_option = kernel(
    "-g",
    "gamma",
    type=NUMBER,
    metavar="GAMMA",
    is_basic=True,
    default_text="1/features",
    help="of rbf exp(-gamma |u-v|^2), poly, sigmoid",
    details="0 is the default, as in LIBSVM.",
)
coef0_option = kernel(
    "-r",
    "coef0",
    type=NUMBER,
    metavar="COEF0",
    help="of poly and of sigmoid tanh(gamma u'v + coef0)",
)
tolerance_option = accuracy(
    "-e",
    "tolerance",
    type=NUMBER,
    metavar="TOL",
    is_basic=True,
    help="largest violation of the optimality conditions",
)
gap_option = accuracy(
    "--gap",
    type=NUMBER,
    metavar="GAP",
    help="stop at this relative duality gap, not at -e",
    details="It is relative to the objective, and cannot be stated for indefinite kernels.",
)
certify_option = accuracy(
    "--certify",
    is_flag=True,
    help="check every row with float64 kernel values",
    details="Without it a sample of rows is checked, and all that could violate.",
)
levels_option = levels(
    "-l",
    "--levels",
    type=WHOLE,
    metavar="L",
    default_text="by the number of rows",
    help="levels of clusters, 0 for none",
    details="The finest level has branching^L clusters. The default is the early level, every "
    "second finer one down to 1000 rows a cluster, and level 2 (not where kernel values are "
    "expensive, with hundreds of features). Levels of fewer than 100 rows a cluster on average "
    "are skipped. Only C-SVC and epsilon-SVR have levels.",
)
branching_option = levels(
    "-k",
    "--branching",
    type=WHOLE,
    metavar="N",
    help="clusters for each one of the next coarser level",
)
sample_option = levels(
    "--sample",
    type=WHOLE,
    metavar="M",
    help="rows of a level that kernel k-means is run on",
    details="At least 8 for every one of its clusters; in a tree at most 64.",
)
clustering_option = levels(
    "--clustering",
    type=click.Choice(CLUSTERINGS),
    metavar="HOW",
    help="tree, adaptive, random, kmeans",
    details="adaptive: each level by two-step kernel k-means of a sample of the support vectors of "
    "the level below (Algorithm 1 of the paper). random: the same of a sample of all rows. "
    "tree: clusters are parts of those of the next coarser level, as always with --early and where "
    "there are more than 256. kmeans: such a tree with Euclidean distances.",
)
early_option = levels(
    "--early",
    is_flag=True,
    is_basic=True,
    help="only one level, a model of local models: much faster",
)
early_level_option = levels(
    "--early-level",
    type=LEVEL,
    metavar="L",
    help="level of early prediction",
    default_text="auto, else 3",
    details="auto, for --early alone, takes the level with the fewest wrong rows, or the least "
    "squared error, as the rows of some clusters tell that are left out one by one. It looks from "
    "the finest level up, that of -l or of 100 rows a cluster. By default up to 50,000 rows have "
    "level 1 or 2 without a search. Without --early the default is 3.",
)
overlap_option = levels(
    "--overlap",
    type=NUMBER,
    metavar="F",
    default_text="1.5, else 1",
    help="clusters a row is in, 1 to 2",
    details="On average: rows near a border learn in the clusters on both sides of it, and are "
    "predicted by both. 1 is the paper's early prediction, and the default without --early.",
)
seed_option = levels(
    "--seed", type=WHOLE, metavar="N", help="seed of the samples and of the folds of -v and -b"
)
cache_mb_option = long_runs(
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
max_iterations_option = long_runs(
    "--max-iter",
    "max_iterations",
    type=WHOLE,
    metavar="N",
    default_text="no limit",
    help="stop after about N coordinate updates",
)
time_limit_option = long_runs(
    "--time-limit",
    type=NUMBER,
    metavar="SEC",
    help="stop after so long, and write the model there is",
    details="The time includes reading.",
)
scheduler_option = long_runs(
    "--scheduler",
    metavar="ADDR",
    help="train on the workers of this Dask scheduler",
    details="Such as tcp://10.0.0.1:8786. TRAINING_SET_FILE is a path that all workers see, or a "
    "URL of fsspec. Needs the extra dask.",
)
scheduler_file_option = long_runs(
    "--scheduler-file",
    type=FILE,
    metavar="F",
    help="the same, of the scheduler that wrote this file",
    details="That of dask scheduler --scheduler-file.",
)
workers_option = long_runs(
    "--workers",
    "n_workers",
    type=WHOLE,
    metavar="N",
    help="train on N processes of this machine",
    details="A Dask cluster that ends with the command. The processes share the threads.",
)
report_file_option = files(
    "--report", "report_file", type=FILE, metavar="FILE", help="write what happened as JSON"
)
working_threads_option = threads_option(long_runs)
shrinking_option = other(
    "-h",
    "shrinking",
    type=NO_OR_YES,
    expose_value=False,
    metavar="0|1",
    help="LIBSVM's shrinking: accepted, without effect",
    details="Rows are always left out while they cannot matter, and looked at again at the end.",
)

PROBLEM = (
    svm_type_option,
    cost_option,
    class_weight_option,
    nu_option,
    epsilon_option,
    bias_option,
    probability_option,
)
KERNEL = (kernel_option, degree_option, gamma_option, coef0_option)
ACCURACY = (tolerance_option, gap_option, certify_option)
CLUSTERS = (branching_option, sample_option, clustering_option)
EARLY = (early_option, early_level_option, overlap_option)
WORKERS = (scheduler_option, scheduler_file_option, workers_option)
