"""dcsvm-easy: choose all settings of a model within a time limit, as LIBSVM's easy.py does."""

from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.file_types import INPUT, OUTPUT
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import EasyJob, given_options
from dcsvm.cli.options import (
    NO_OR_YES,
    NUMBER,
    Numbered,
    OneOf,
    group,
    other,
    shared,
    table_option,
)
from dcsvm.problem.option_table import METRICS, SVM_NAMES, SVM_TYPES
from dcsvm.problem.options import TrainOptions

search, output = group("Search"), group("Output")

EXAMPLES = (
    ("dcsvm-easy heart_scale", "choose all settings, write heart_scale.model"),
    ("dcsvm-easy --time-limit 600 covtype.tr covtype.te", "ten minutes; predict covtype.te, too"),
    ("dcsvm-easy --metric auc ijcnn1 ijcnn1.t", "choose by the area under the ROC curve"),
)
FILES = (
    ("TRAINING_SET_FILE", DATA_FILE),
    ("TEST_FILE", "the same format; also without labels"),
    ("MODEL_FILE", "for dcsvm-predict; it has the scaling and the feature weights"),
)


# fmt: off
@click.command(
    "dcsvm-easy",
    cls=LibsvmCommand,
    examples=EXAMPLES,
    statuses=exit_statuses(
        done="done",
        missed="the model did not converge, or time limit: model written",
        stopped="the best model so far is written",
    ),
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-grid", "dcsvm-predict"),
)
@click.argument("training_set_file", type=INPUT)
@click.argument("test_file", type=INPUT, required=False)
@search("--time-limit SEC", "time_limit", NUMBER,
    "seconds for the search and the training",
    "Reading and prediction come on top. With a longer limit, more trials use more rows.",
    default=60, is_basic=True)
@search("--metric NAME", "metric", OneOf(METRICS),
    "choose by accuracy, auc, f1, rmse, ...",
    f"One of {', '.join(METRICS)}. auc and log-loss need two classes.",
    default_text="accuracy, rmse", is_basic=True)
@search("-s TYPE", "svm_type", Numbered(*SVM_TYPES, spellings=SVM_NAMES),
    "0: classification, 3: regression",
    "By default, text and up to 32 different whole numbers are classes.",
    default_text="by the labels", is_basic=True)
@search("-b 0|1", "probability", NO_OR_YES,
    "1: fit probabilities, too",
    "It takes five more trainings.",
    default=0)
@output("--model FILE", "model_file", OUTPUT,
    "the model file",
    default_text="TRAINING_SET_FILE.model", is_basic=True)
@output("--output FILE", "output_file", OUTPUT,
    "the predictions of TEST_FILE",
    default_text="TEST_FILE.predict")
@shared("format", "label", "drop", "weight", "report", "lenient")
@table_option(TrainOptions, "seed", "Other")
@table_option(TrainOptions, "cache_mb", "Other")
@table_option(TrainOptions, "threads", "Other")
@other("-q", "quiet", None,
    "print only errors, warnings of training, last lines",
    "The warnings about data are omitted.")
@shared("version", "help")
# fmt: on
def main(**given: Any) -> None:
    """Choose the settings of a model, train it on all rows, and predict TEST_FILE.

    Kernel, scaling, feature weights, C, gamma and epsilon are chosen on held-out rows. The model is
    exact, or early if that is better or faster on many rows. The last lines have the setting as a
    dcsvm-train command, and the loss on held-out rows. The model file and the predictions are
    written into the current folder.
    """
    job, options = EasyJob.from_values(given), given_options(TrainOptions, given)
    if options.get("svm_type") not in (None, "c_svc", "epsilon_svr"):
        raise click.UsageError(f"-s must be 0 or 3, got {SVM_TYPES.index(options['svm_type'])}")
    TrainOptions(**options)
    run("easy_file", job, options)
