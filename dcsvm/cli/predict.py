"""dcsvm-predict: predict a file as svm-predict does, or by early prediction."""

from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.file_types import INPUT, MODEL, OUTPUT
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import PredictJob, ShowJob
from dcsvm.cli.options import NO_OR_YES, group, other, shared, table_option
from dcsvm.problem.options import TrainOptions

method, output = group("Method"), group("Output")

EXAMPLES = (
    ("dcsvm-predict covtype.t covtype.tr.model labels", "predict, and print the accuracy"),
    (
        "dcsvm-predict --early covtype.t covtype.tr.model labels",
        "by the models of the nearest clusters: often more accurate",
    ),
    ("dcsvm-predict -q covtype.t covtype.tr.model - | sort | uniq -c", "count the labels"),
)
FILES = (
    ("TEST_FILE", DATA_FILE),
    ("MODEL_FILE", "a model of dcsvm-train or svm-train"),
    ("OUTPUT_FILE", "one line per row of TEST_FILE"),
)


def describe(_ctx: click.Context, _parameter: click.Parameter, path: str | None) -> None:
    if path is not None:
        run("predict_file", ShowJob(described=path), function="describe_file")


def plot(_ctx: click.Context, _parameter: click.Parameter, paths: tuple[str, str] | None) -> None:
    if paths:
        run("weights_picture", ShowJob(plotted=paths), function="plot_file")


# fmt: off
@click.command(
    "dcsvm-predict",
    cls=LibsvmCommand,
    examples=EXAMPLES,
    statuses=exit_statuses(done="done", stopped="OUTPUT_FILE is unchanged"),
    files=FILES,
    see_also=("dcsvm-train", "svm-predict", "svm-scale"),
)
@click.argument("test_file", type=INPUT)
@click.argument("model_file", type=MODEL)
@click.argument("output_file", type=OUTPUT)
@method("--early", "early", None,
    "early prediction: only the nearest clusters' models",
    is_basic=True)
@output("-b 0|1", "probability", NO_OR_YES,
    "1: write class probabilities, too",
    "They follow the label. The first line is a header with the labels. For a regression the sigma "
    "of the noise is printed instead.",
    default=0, is_basic=True)
@output("--decision-values", "decision_values", None,
    "write decision values, too",
    "A positive value stands for the first label of the model. For more than two classes there is "
    "one value per pair of classes, and the first line is a header with the pairs.",
    is_basic=True)
@output("--metrics", "has_metrics", None,
    "print precision, recall, F1, AUC, ... , too",
    "For classes: precision, recall and F1 of each class, balanced accuracy, mean F1, the AUC of "
    "two classes, with -b 1 the log loss and the AUC of more classes, and the confusion matrix. "
    "For a regression: MAE, RMSE and R2.",
    is_basic=True)
@output("--describe MODEL", "described", MODEL,
    "print what a model is, with its feature weights",
    "No other argument is then needed. The features of the largest weights come first.",
    is_eager=True, expose_value=False, callback=describe)
@output("--plot MODEL PNG", "plotted", (MODEL, OUTPUT),
    "draw the largest feature weights of a model",
    "No other argument is then needed. It needs matplotlib (extra plot).",
    is_eager=True, expose_value=False, callback=plot, nargs=2)
@shared("format", "label", "scale", "lenient", "report")
@table_option(TrainOptions, "threads", "Other")
@other("-q", "quiet", None, "print only errors: no accuracy, no warnings")
@shared("version", "help")
# fmt: on
def main(**given: Any) -> None:
    """Predict the rows of a file with a model of dcsvm-train or svm-train.

    OUTPUT_FILE has one prediction per line, by the exact solution if the model has one, otherwise
    by the early level. "-" is standard input for TEST_FILE and standard output for OUTPUT_FILE; the
    accuracy is then printed to standard error.
    """
    job = PredictJob(**given)
    job.check()
    run("predict_file", job)
