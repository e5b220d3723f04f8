"""dcsvm-predict: predict a file as svm-predict does, or by early prediction."""

from dataclasses import dataclass
from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.guard import run
from dcsvm.cli.options import (
    HELP,
    INPUT,
    MODEL,
    NOT_AUTO,
    OUTPUT,
    VERSION,
    Conditions,
    DataJob,
    check,
    of_other,
    of_output,
    of_table,
    option,
    parameters,
    scale_by_file,
)
from dcsvm.problem.option_table import Rule
from dcsvm.problem.options import TrainOptions

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


# fmt: off
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PredictJob(DataJob):
    """Options of dcsvm-predict."""

    test_file: str = option("", INPUT, "TEST_FILE")
    model_file: str = option("", MODEL, "MODEL_FILE")
    output_file: str = option("", OUTPUT, "OUTPUT_FILE")
    early: bool = option(False, Rule.flag(), "--early",
        "predict each row by the model of its nearest cluster",
        group="Method", is_basic=True)
    probability: bool = of_output(False, Rule.flag(), "-b 0|1",
        "1: also write class probabilities",
        "They follow the label. The first line is a header with the labels. For a regression, the "
        "width of the noise (sigma) is printed instead.",
        is_basic=True)
    decision_values: bool = of_output(False, Rule.flag(), "--decision-values",
        "also write decision values",
        "A positive value stands for the first label of the model. For more than two classes there "
        "is one value per pair of classes, and the first line is a header with the pairs.",
        is_basic=True)
    has_metrics: bool = of_output(False, Rule.flag(), "--metrics",
        "also print precision, recall, F1, AUC and more",
        "For classes: precision, recall and F1 of each class, balanced accuracy, macro F1, the AUC "
        "of two classes and the confusion matrix; with -b 1 also the log loss and the AUC of more "
        "classes. For a regression: MAE, RMSE and R2.",
        is_basic=True)
    described: str | None = of_output(None, MODEL.optional, "--describe MODEL",
        "describe a model, with its feature weights",
        "This needs no other argument. Features with the largest weights are printed first.")
    plotted: tuple[str, str] | None = of_output(None, Rule.paths(MODEL, OUTPUT).optional,
        "--plot MODEL PNG",
        "draw the largest feature weights of a model",
        "This needs no other argument. It needs matplotlib (pip install '.[plot]').")
    scale: str | None = scale_by_file()
    quiet: bool = of_other(False, Rule.flag(), "-q", "print only errors: no accuracy, no warnings")


OF_PREDICTION: Conditions = (
    (lambda job, _: job.probability and job.decision_values,
     "-b 1 and --decision-values cannot be used together"),
)
# fmt: on


def describe(_ctx: click.Context, _parameter: click.Parameter, path: str | None) -> None:
    if path is not None:
        run("predict_file", PredictJob(described=path), function="describe_file")


def plot(_ctx: click.Context, _parameter: click.Parameter, paths: tuple[str, str] | None) -> None:
    if paths:
        run("grid_file", PredictJob(plotted=paths), function="plot_file")


TITLES = ("Method", "Output", "Files", "Other")
OWN = set(PredictJob.names()) - {"drop", "category", "weight", "feature_weights"}


@click.command(
    "dcsvm-predict",
    cls=LibsvmCommand,
    params=parameters(
        TITLES,
        of_table(PredictJob, OWN, described=describe, plotted=plot),
        of_table(TrainOptions, ("threads",), "Other"),
    ),
    examples=EXAMPLES,
    statuses=exit_statuses(done="done", stopped="OUTPUT_FILE is unchanged"),
    files=FILES,
    see_also=("dcsvm-train", "svm-predict", "svm-scale"),
)
@VERSION
@HELP
def main(**given: Any) -> None:
    """Predict the rows of a file with a model of dcsvm-train or svm-train.

    OUTPUT_FILE has one prediction per line, by the exact solution if the model has one, otherwise
    by the early level. "-" is standard input for TEST_FILE and standard output for OUTPUT_FILE; the
    accuracy is then printed to standard error.
    """
    threads, job = TrainOptions.check("threads", given.pop("threads")), PredictJob.taken(given)
    check([OF_PREDICTION, NOT_AUTO], job)
    run("predict_file", job, threads)
