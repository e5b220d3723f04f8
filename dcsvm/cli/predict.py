"""dcsvm-predict: predict a LIBSVM file with a model, as svm-predict does, exactly or early."""

from __future__ import annotations

import click

from dcsvm.cli.command import LibsvmCommand, exit_statuses
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import PredictJob
from dcsvm.cli.options import FILE, NO_OR_YES, group, other, shared, table_option
from dcsvm.problem.options import TrainOptions

method, output = group("Method"), group("Output")

EXAMPLES = (
    ("dcsvm-predict covtype.t covtype.tr.model labels", "predict, and print the accuracy"),
    ("dcsvm-predict --early covtype.t covtype.tr.model labels", "less exact, much faster"),
    ("dcsvm-predict -q covtype.t covtype.tr.model - | sort | uniq -c", "count the labels"),
)
FILES = (
    ("TEST_FILE", "a row a line, LABEL INDEX:VALUE ...; gzip, bzip2 and xz are unpacked"),
    ("MODEL_FILE", "of dcsvm-train or of svm-train"),
    ("MODEL_FILE.range", "what a model of --scale auto was scaled by"),
    ("OUTPUT_FILE", "a line for each row of TEST_FILE"),
)


# fmt: off
@click.command(
    "dcsvm-predict",
    cls=LibsvmCommand,
    examples=EXAMPLES,
    statuses=exit_statuses(done="done", stopped="OUTPUT_FILE is as it was"),
    files=FILES,
    see_also=("dcsvm-train", "svm-predict", "svm-scale"),
)
@click.argument("test_file", type=FILE)
@click.argument("model_file", type=FILE)
@click.argument("output_file", type=FILE)
@method("--early", "early", None, "the model of the nearest cluster alone", is_basic=True)
@output("-b 0|1", "probability", NO_OR_YES,
    "1: write the probabilities of the classes, too",
    "They follow the label; the first line is the labels they are of. A regression "
    "prints the sigma of its errors instead.",
    default=0, is_basic=True)
@output("--decision-values", "decision_values", None,
    "write the decision values, too",
    "A value is positive for the model's first label. Of more than two classes there is "
    "one for each pair, and the pairs in the first line.",
    is_basic=True)
@shared("scale", "lenient")
@table_option(TrainOptions, "threads", "Other")
@other("-q", "quiet", None, "print errors only, not the accuracy")
@shared("version", "help")
# fmt: on
def main(**given) -> None:
    """Predict the rows of a file with a model of dcsvm-train or svm-train.

    The predictions are written to OUTPUT_FILE, one a line: those of the exact solution, or of the
    early level where the model has nothing else. "-" is standard input for TEST_FILE and standard
    output for OUTPUT_FILE; what is printed then goes to standard error.
    """
    job = PredictJob(**given)
    job.check()
    run("predict_file", job)
