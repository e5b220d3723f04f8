"""dcsvm-predict: predict a file as svm-predict does, or by early prediction."""

from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import NOT_AUTO, OF_PREDICTION, PredictJob, check
from dcsvm.cli.options import HELP, VERSION, Some, parameters
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
TITLES = ("Method", "Output", "Files", "Other")
OWN = Some(PredictJob, set(PredictJob.names()) - {"drop", "weight", "feature_weights"})
THREADS = Some(TrainOptions, ("threads",), "Other")


def describe(_ctx: click.Context, _parameter: click.Parameter, path: str | None) -> None:
    if path is not None:
        run("predict_file", PredictJob(described=path), function="describe_file")


def plot(_ctx: click.Context, _parameter: click.Parameter, paths: tuple[str, str] | None) -> None:
    if paths:
        run("weights_picture", PredictJob(plotted=paths), function="plot_file")


@click.command(
    "dcsvm-predict",
    cls=LibsvmCommand,
    params=parameters(TITLES, OWN, THREADS, described=describe, plotted=plot),
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
