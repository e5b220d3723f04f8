"""dcsvm-compress: a smaller model, fitted to the decision values of another."""

from __future__ import annotations

import click

from dcsvm.cli.command import LibsvmCommand, exit_statuses
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import CompressJob, given_options
from dcsvm.cli.options import FILE, group, other, shared, table_options
from dcsvm.problem.compress_options import CompressOptions

rows, method = group("Rows"), group("Method")

EXAMPLES = (
    ("dcsvm-compress --vectors 250 --rows ijcnn1 ijcnn1.model", "250 vectors, ijcnn1.model.small"),
    ("dcsvm-compress --times 10 --early --rows covtype.tr covtype.tr.model", "an early model"),
    ("dcsvm-compress --loss 1 --rows train --test new model small", "what changes few labels"),
)
FILES = (
    ("MODEL_FILE", "of dcsvm-train or of svm-train"),
    ("OUTPUT_FILE", "a model; an exact one is read by svm-predict, too"),
    ("OUTPUT_FILE.range", "a copy of MODEL_FILE.range, where the model needs that"),
)


# fmt: off
@click.command(
    "dcsvm-compress",
    cls=LibsvmCommand,
    examples=EXAMPLES,
    statuses=exit_statuses(done="done", stopped="OUTPUT_FILE is as it was"),
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-predict", "svm-predict"),
)
@click.argument("model_file", type=FILE)
@click.argument("output_file", type=FILE, required=False)
@table_options(CompressOptions, "Size, one of the three")
@rows("--rows FILE", "rows_file", FILE,
    "rows to fit to: the training file, or others",
    "Labels are not used. Without it only the support vectors are fitted, which says "
    "little of all that is between them.",
    is_basic=True)
@rows("--test FILE", "test_file", FILE,
    "rows the model has not seen, to count what changes",
    "Labels are not used.",
    is_basic=True)
@method("--early", "early", None,
    "compress the early level, not the exact solution",
    "That of a model that has nothing else is compressed without it.",
    is_basic=True)
@table_options(CompressOptions, "Method")
@shared("scale", "lenient")
@table_options(CompressOptions, "Other")
@other("-q", "quiet", None, "print errors only")
@shared("version", "help")
# fmt: on
def main(**given) -> None:
    """Write a model with fewer vectors, fitted to the predictions of a larger one.

    The support vectors of MODEL_FILE are replaced by landmarks, which are moved until their
    decision values are close to those of the model. OUTPUT_FILE is by default the model's name with
    .small appended, in the current folder.
    """
    given["method"] = "early" if given.pop("early") else None
    options = CompressOptions(**given_options(CompressOptions, given))
    job = CompressJob.of(given, CompressOptions)
    job.check()
    if options.loss is not None and job.test_file is None:
        raise click.UsageError("--loss is stated on rows the model has not seen: give --test")
    run("compress_file", job, options)
