"""dcsvm-compress: a smaller model, fitted to the decision values of another."""

from __future__ import annotations

import click

from dcsvm.cli.command import LibsvmCommand
from dcsvm.cli.guard import guarded, usage_error
from dcsvm.cli.jobs import CompressJob
from dcsvm.cli.options import (
    group,
    help_option,
    lenient_option,
    other,
    scale_option,
    threads_option,
    version_option,
)
from dcsvm.cli.values import FILE, NUMBER, WHOLE
from dcsvm.problem.compress_options import COMPRESS_RULES, CompressOptions
from dcsvm.problem.option_rules import OptionError

size, rows, method = group("Size, one of the three"), group("Rows"), group("Method")

EXAMPLES = (
    ("dcsvm-compress --vectors 250 --rows ijcnn1 ijcnn1.model", "250 vectors, ijcnn1.model.small"),
    ("dcsvm-compress --times 10 --early --rows covtype.tr covtype.tr.model", "an early model"),
    ("dcsvm-compress --loss 1 --rows train --test new model small", "what changes few labels"),
)
STATUSES = (
    ("0", "done"),
    ("1", "failed; one sentence says why"),
    ("2", "wrong usage"),
    ("130, 143, 129", "SIGINT, SIGTERM, SIGHUP: OUTPUT_FILE is as it was"),
)
FILES = (
    ("MODEL_FILE", "of dcsvm-train or of svm-train"),
    ("OUTPUT_FILE", "a model; an exact one is read by svm-predict, too"),
    ("OUTPUT_FILE.range", "a copy of MODEL_FILE.range, where the model needs that"),
)


@click.command(
    "dcsvm-compress",
    cls=LibsvmCommand,
    examples=EXAMPLES,
    statuses=STATUSES,
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-predict", "svm-predict"),
)
@click.argument("model_file", type=FILE)
@click.argument("output_file", type=FILE, required=False)
@size(
    "--vectors",
    type=WHOLE,
    metavar="N",
    is_basic=True,
    help="at most so many vectors",
    details="In all clusters of an early model together.",
)
@size(
    "--times",
    type=NUMBER,
    metavar="T",
    is_basic=True,
    help="about so many times fewer kernel values for a row",
    details="Of an early model with those that find the cluster of a row.",
)
@size(
    "--loss",
    type=NUMBER,
    metavar="PERCENT",
    is_basic=True,
    help="labels that may change, in percent; needs --test",
    details="The smallest size, of some, of which the test rows say that no more change, with 95 % "
    "confidence.",
)
@rows(
    "--rows",
    "rows_file",
    type=FILE,
    metavar="FILE",
    is_basic=True,
    help="rows to fit to: the training file, or others",
    details="Labels are not used. Without it only the support vectors are fitted, which says "
    "little of all that is between them.",
)
@rows(
    "--test",
    "test_file",
    type=FILE,
    metavar="FILE",
    is_basic=True,
    help="rows the model has not seen, to count what changes",
    details="Labels are not used.",
)
@method(
    "--early",
    is_flag=True,
    is_basic=True,
    help="compress the early level, not the exact solution",
    details="That of a model that has nothing else is compressed without it.",
)
@method(
    "--steps",
    type=WHOLE,
    metavar="N",
    default_text="up to 6000",
    help="steps of the landmarks of a cluster, or of all",
    details="The default is 200 times all rows, 256 a step, and at most 6000. More of them are "
    "better, and take longer.",
)
@method("--seed", type=WHOLE, metavar="N", default=0, default_text="0", help="of what is random")
@scale_option
@lenient_option
@threads_option(other)
@other("-q", "quiet", is_flag=True, help="print errors only")
@version_option
@help_option
def main(**given) -> None:
    """Write a model with fewer vectors, fitted to the predictions of a larger one.

    The support vectors of MODEL_FILE are replaced by landmarks, which are moved until their
    decision values are close to those of the model. OUTPUT_FILE is by default the model's name with
    .small appended, in the current folder.
    """
    given["method"] = "early" if given.pop("early") else None
    try:
        options = CompressOptions(**{name: given[name] for name in COMPRESS_RULES})
        job = CompressJob.of(given)
        if options.loss is not None and job.test_file is None:
            raise click.UsageError("--loss is stated on rows the model has not seen: give --test")
    except OptionError as error:
        raise usage_error(error) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None

    def work() -> int:
        from dcsvm.cli.compress_file import compress_file

        return compress_file(job, options)

    guarded(work)
