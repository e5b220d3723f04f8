"""dcsvm-compress: fit a smaller model to the decision values of a larger one."""

from dataclasses import dataclass
from typing import Any

import click

from dcsvm.cli.command import LibsvmCommand, exit_statuses
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
    name_beside,
    of_table,
    option,
    parameters,
    scale_by_file,
)
from dcsvm.problem.option_table import Rule
from dcsvm.problem.options import CompressOptions

EXAMPLES = (
    ("dcsvm-compress --vectors 250 --rows ijcnn1 ijcnn1.model", "250 vectors, ijcnn1.model.small"),
    ("dcsvm-compress --times 10 --early --rows covtype.tr covtype.tr.model", "an early model"),
    ("dcsvm-compress --loss 1 --rows train --test new model small", "change at most 1 % of labels"),
)
FILES = (
    ("MODEL_FILE", "a model of dcsvm-train or svm-train"),
    ("OUTPUT_FILE", "the new model; svm-predict can read an exact one"),
    ("OUTPUT_FILE.range", "the ranges for svm-scale, if the model was trained with --scale auto"),
)


# fmt: off
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CompressJob(DataJob):
    """Options of dcsvm-compress beside CompressOptions."""

    model_file: str = option("", MODEL, "MODEL_FILE")
    output_file: str | None = option(None, OUTPUT.optional, "[OUTPUT_FILE]")
    rows_file: str | None = option(None, INPUT.optional, "--rows FILE",
        "fit to these rows: the training file, or similar rows",
        "Labels are not used. Without this option, the fit uses only the support vectors, which "
        "are a poor sample of the rows to predict.",
        group="Rows", is_basic=True)
    test_file: str | None = option(None, INPUT.optional, "--test FILE",
        "count changed labels on new rows: those of this file",
        "Labels are not used.",
        group="Rows", is_basic=True)
    early: bool = option(False, Rule.flag(), "--early",
        "compress the early model, not the exact solution",
        "Not needed for a model without an exact solution.",
        group="Method", is_basic=True)
    scale: str | None = scale_by_file()


OF_COMPRESSION: Conditions = (
    (lambda job, _: job.rows_file == job.test_file == "-",
     "--rows and --test cannot both be standard input"),
    (lambda job, _: job.scale is not None and job.rows_file is None and job.test_file is None,
     "--scale needs --rows or --test"),
    (lambda job, options: options.loss is not None and job.test_file is None,
     "--loss needs --test: rows that the model has not seen"),
)
# fmt: on


TITLES = ("Size (give one)", "Rows", "Method", "Files", "Other")
OWN = set(CompressJob.names()) - {
    "label", "drop", "category", "weight", "feature_weights", "report_file"
}  # fmt: skip


@click.command(
    "dcsvm-compress",
    cls=LibsvmCommand,
    params=parameters(TITLES, of_table(CompressJob, OWN), of_table(CompressOptions)),
    examples=EXAMPLES,
    statuses=exit_statuses(done="done", stopped="OUTPUT_FILE is unchanged"),
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-predict", "svm-predict"),
)
@VERSION
@HELP
def main(**given: Any) -> None:
    """Write a model with fewer vectors, fitted to the predictions of a larger one.

    The new vectors and their coefficients are optimized until the decision values agree with those
    of MODEL_FILE as well as possible. The default OUTPUT_FILE is the name of the model with .small
    appended, in the current folder.
    """
    given["method"] = "early" if given["early"] else None
    if given["output_file"] is None:
        given["output_file"] = name_beside(given["model_file"], "small")
    if sum(given[size] is not None for size in ("vectors", "times", "loss")) != 1:
        raise click.UsageError("give exactly one of --vectors, --times and --loss")
    options, job = CompressOptions.taken(given), CompressJob.taken(given)
    check([OF_COMPRESSION, NOT_AUTO], job, options)
    run("predict_file", job, options, function="compress_file")
