"""dcsvm-export: write a model as a file for programs without dcsvm."""

from dataclasses import dataclass
from typing import Any

import click

from dcsvm.cli.command import LibsvmCommand, exit_statuses
from dcsvm.cli.guard import run
from dcsvm.cli.options import (
    HELP,
    MODEL,
    OUTPUT,
    VERSION,
    Conditions,
    DataJob,
    check,
    of_other,
    of_table,
    option,
    parameters,
)
from dcsvm.problem.option_table import Rule
from dcsvm.problem.options import TrainOptions

ENDINGS = (".onnx", ".c")
EXAMPLES = (
    ("dcsvm-export income.model income.onnx", "for onnxruntime and others"),
    ("dcsvm-export income.model income.c", "for a C compiler"),
    ("dcsvm-export --early both.model early.c", "the clusters' models of a model with both parts"),
)
FILES = (
    ("MODEL_FILE", "a model of dcsvm-train, dcsvm-easy, dcsvm-compress or svm-train"),
    ("OUTPUT_FILE", "an ONNX graph of standard operators, or a file of C99 that needs only libm"),
)


# fmt: off
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExportJob(DataJob):
    """Options of dcsvm-export."""

    model_file: str = option("", MODEL, "MODEL_FILE")
    output_file: str = option("", OUTPUT, "OUTPUT_FILE")
    early: bool = option(False, Rule.flag(), "--early",
        "export the early model, not the exact solution",
        "Not needed for a model without an exact solution.",
        group="Method", is_basic=True)
    quiet: bool = of_other(False, Rule.flag(), "-q", "print only errors", is_basic=True)


OF_EXPORT: Conditions = (
    (lambda job, _: not job.output_file.lower().endswith(ENDINGS),
     "the name of OUTPUT_FILE must end in .onnx or .c, got {job.output_file}"),
)
# fmt: on


@click.command(
    "dcsvm-export",
    cls=LibsvmCommand,
    params=parameters(
        ("Method", "Other"),
        of_table(ExportJob, ("model_file", "output_file", "early", "quiet")),
        of_table(TrainOptions, ("threads",), "Other"),
    ),
    examples=EXAMPLES,
    statuses=exit_statuses(done="done", stopped="OUTPUT_FILE is unchanged"),
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-easy", "dcsvm-compress"),
)
@VERSION
@HELP
def main(**given: Any) -> None:
    """Write a model as ONNX or as C, for programs without dcsvm.

    The name of OUTPUT_FILE selects the format: it ends in .onnx or .c. The exact solution is
    exported if the model contains one, otherwise the early model. The file includes the scaling,
    the encoding of table columns, the labels and the probabilities. ONNX needs pip install
    '.[onnx]'.
    """
    threads, job = TrainOptions.check("threads", given.pop("threads")), ExportJob.taken(given)
    check([OF_EXPORT], job)
    run("export_file", job, threads)
