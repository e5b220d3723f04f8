"""dcsvm-compress: fit a smaller model to the decision values of a larger one."""

import os
from typing import Any

import click

from dcsvm.cli.command import LibsvmCommand, exit_statuses
from dcsvm.cli.file_types import INPUT, MODEL, OUTPUT
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import CompressJob, given_options
from dcsvm.cli.options import group, other, shared, table_options
from dcsvm.problem.options import CompressOptions

rows, method = group("Rows"), group("Method")

EXAMPLES = (
    ("dcsvm-compress --vectors 250 --rows ijcnn1 ijcnn1.model", "250 vectors, ijcnn1.model.small"),
    ("dcsvm-compress --times 10 --early --rows covtype.tr covtype.tr.model", "an early model"),
    ("dcsvm-compress --loss 1 --rows train --test new model small", "at most 1 % other labels"),
)
FILES = (
    ("MODEL_FILE", "a model of dcsvm-train or svm-train"),
    ("OUTPUT_FILE", "the new model; svm-predict can read an exact one"),
    ("OUTPUT_FILE.range", "the ranges, if the model is of --scale auto; for svm-scale"),
)


# fmt: off
@click.command(
    "dcsvm-compress",
    cls=LibsvmCommand,
    examples=EXAMPLES,
    statuses=exit_statuses(done="done", stopped="OUTPUT_FILE is unchanged"),
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-predict", "svm-predict"),
)
@click.argument("model_file", type=MODEL)
@click.argument("output_file", type=OUTPUT, required=False)
@table_options(CompressOptions, "Size (give one)")
@rows("--rows FILE", "rows_file", INPUT,
    "fit to these rows: the training file, or similar rows",
    "Labels are not used. Without this option the model is fitted on its support vectors only, "
    "which are a poor sample of the rows to predict.",
    is_basic=True)
@rows("--test FILE", "test_file", INPUT,
    "report changed labels on these rows, not used so far",
    "Labels are not used.",
    is_basic=True)
@method("--early", "early", None,
    "compress the early model, not the exact solution",
    "Not needed for a model that has no exact solution.",
    is_basic=True)
@table_options(CompressOptions, "Method")
@shared("format", "scale", "lenient")
@table_options(CompressOptions, "Other")
@other("-q", "quiet", None, "print only errors")
@shared("version", "help")
# fmt: on
def main(**given: Any) -> None:
    """Write a model with fewer vectors, fitted to the predictions of a larger one.

    Landmarks replace the support vectors of MODEL_FILE. Their positions and weights are optimized
    until the decision values approximate the model. The default OUTPUT_FILE is the name
    of the model with .small appended, in the current folder.
    """
    given["method"] = "early" if given.pop("early") else None
    if given["output_file"] is None:
        given["output_file"] = os.path.basename(given["model_file"]) + ".small"
    options = CompressOptions(**given_options(CompressOptions, given))
    job = CompressJob.of(given, CompressOptions)
    job.check()
    if options.loss is not None and job.test_file is None:
        raise click.UsageError("--loss needs --test: rows that the model has not seen")
    run("compress_file", job, options)
