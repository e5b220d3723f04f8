"""dcsvm-train: train a model from a LIBSVM file, with svm-train's letters and defaults."""

from __future__ import annotations

import math
import os
import time

import click

from dcsvm.cli.libsvm_syntax import LibsvmCommand
from dcsvm.cli.options import (
    CONTEXT,
    FAILED,
    NOT_CONVERGED,
    NOT_NEGATIVE,
    POSITIVE,
    Finite,
    check_writable,
    guarded,
    lenient_option,
    read_data,
    scale_option,
    threads_option,
    version_option,
)
from dcsvm.cli.streams import say, show_beside

LARGEST_N = 2**31 - 2


def factors_of_classes(_ctx, _option, pairs: tuple[tuple[float, float], ...]):
    """{label: factor}; those of one label multiply, as in LIBSVM."""
    factors = {}
    for label, factor in pairs:
        factors[label] = factors.get(label, 1.0) * factor
    return factors or None


def not_with_folds(ctx: click.Context, option, value):
    if value is not None and ctx.params["n_folds"] is not None:
        raise click.UsageError(f"{option.opts[0]} is not for cross validation (-v)")
    return value


def model_file_or_default(ctx: click.Context, _argument, path: str | None) -> str | None:
    """As LIBSVM names it, after the training set in the current folder; None with -v."""
    training_set_file = ctx.params["training_set_file"]
    if ctx.params["n_folds"] is not None:
        return None
    if path is not None:
        return path
    if training_set_file in ("-", "/dev/stdin"):
        raise click.UsageError("MODEL_FILE is needed when the training set is standard input")
    return os.path.basename(training_set_file) + ".model"


@click.command(cls=LibsvmCommand, context_settings=CONTEXT)
@click.argument("training_set_file")
@click.argument("model_file", required=False, callback=model_file_or_default)
@click.option(
    "-s",
    "svm_type",
    type=click.IntRange(0, 4),
    default=0,
    metavar="TYPE",
    help="Problem: 0 C-SVC, 1 nu-SVC, 2 one-class, 3 epsilon-SVR, 4 nu-SVR. Default 0.",
)
@click.option(
    "-t",
    "kernel_type",
    type=click.IntRange(0, 4),
    default=2,
    metavar="TYPE",
    help="Kernel: 0 linear u'v, 1 polynomial (gamma u'v + coef0)^degree, "
    "2 rbf exp(-gamma |u-v|^2), 3 sigmoid tanh(gamma u'v + coef0), "
    "4 precomputed (kernel values in the file). Default 2.",
)
@click.option(
    "-d",
    "degree",
    type=click.IntRange(0, LARGEST_N),
    default=3,
    metavar="DEGREE",
    help="Degree of the polynomial. Default 3.",
)
@click.option(
    "-g",
    "gamma",
    type=NOT_NEGATIVE,
    metavar="GAMMA",
    help="gamma; 0 is the default, 1/number of features.",
)
@click.option("-r", "coef0", type=Finite(), default=0.0, metavar="COEF0", help="coef0. Default 0.")
@click.option(
    "-c",
    "C",
    type=POSITIVE,
    default=1.0,
    metavar="C",
    help="C, the cost of an error, of C-SVC and both regressions. Default 1.",
)
@click.option(
    "-w",
    "class_weight",
    type=(Finite(), POSITIVE),
    multiple=True,
    callback=factors_of_classes,
    metavar="LABEL FACTOR",
    help="-wLABEL FACTOR, as in -w-1 5: C of a class times the factor, for C-SVC. Default 1.",
)
@click.option(
    "-n",
    "nu",
    type=Finite(min=0, max=1, min_open=True),
    default=0.5,
    metavar="NU",
    help="nu of nu-SVC, one-class and nu-SVR. Default 0.5.",
)
@click.option(
    "-p",
    "epsilon",
    type=NOT_NEGATIVE,
    default=0.1,
    metavar="EPSILON",
    help="epsilon of epsilon-SVR: errors up to it cost nothing. Default 0.1.",
)
@click.option(
    "--bias",
    is_flag=True,
    help="C-SVC with a bias, as in LIBSVM; the other problems always have one.",
)
@click.option(
    "-b",
    "probability",
    type=click.IntRange(0, 1),
    default=0,
    metavar="0|1",
    help="1: a model that can predict probabilities. Default 0.",
)
@click.option(
    "-v",
    "n_folds",
    type=click.IntRange(2, LARGEST_N),
    is_eager=True,
    metavar="N",
    help="N-fold cross validation: prints its accuracy or errors and writes no model.",
)
@click.option(
    "-e",
    "tolerance",
    type=POSITIVE,
    default=0.001,
    metavar="TOLERANCE",
    help="Largest KKT violation. Default 0.001.",
)
@click.option(
    "--gap",
    type=POSITIVE,
    metavar="GAP",
    help="Stop at this duality gap relative to the objective instead of at a violation of -e.",
)
@click.option(
    "-m",
    "cache_mb",
    type=Finite(0, 1e9, min_open=True),
    metavar="MB",
    help="Memory for caches, matrices and working copies of all threads together; the rows, 64 "
    "bytes for each of them and 200 MB come on top. Default: half of the memory this process may "
    "use, at most 8000, and no more than is left.",
)
@click.option(
    "-h",
    "shrinking",
    type=click.IntRange(0, 1),
    expose_value=False,
    metavar="0|1",
    help="Accepted and ignored: LIBSVM's shrinking. Here rows are always left out while they "
    "cannot matter, and looked at again before the end.",
)
@click.option(
    "-q",
    "quiet",
    is_flag=True,
    help="Say nothing but errors, the lines of -v and what did not converge.",
)
@click.option(
    "-l",
    "--levels",
    type=click.IntRange(0, 30),
    metavar="L",
    help="Levels of clusters, branching^L of them in the finest; 0 solves directly. Default: "
    "the early level, every second finer one down to 1000 rows a cluster, and level 1 (not where "
    "kernel values are expensive, with hundreds of features). Levels of fewer than 100 rows a "
    "cluster on average are skipped. Only C-SVC and epsilon-SVR have levels.",
)
@click.option(
    "-k",
    "--branching",
    type=click.IntRange(2, LARGEST_N),
    default=4,
    metavar="N",
    help="Clusters a level has for each of the next coarser one. Default 4.",
)
@click.option(
    "--sample",
    type=click.IntRange(1, LARGEST_N),
    default=1000,
    metavar="M",
    help="Rows that kernel k-means is run on; at least one for every cluster. Default 1000.",
)
@click.option("--early", is_flag=True, help="Stop after the early level: a model of local models.")
@click.option(
    "--early-level",
    type=click.IntRange(1, 30),
    metavar="L",
    help="Level kept for early prediction. Default: the one with branching^3 clusters, or "
    "the finest.",
)
@click.option(
    "--clustering",
    type=click.Choice(["kernel", "kmeans"]),
    default="kernel",
    help="Two-step kernel k-means, or the same with Euclidean distances. Default kernel.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, LARGEST_N),
    default=0,
    metavar="N",
    help="Seed of the samples. Default 0.",
)
@scale_option
@lenient_option
@threads_option
@click.option(
    "--max-iter",
    "max_iterations",
    type=click.IntRange(1, 2**62),
    metavar="N",
    help="Stop after about N coordinate updates, not converged.",
)
@click.option(
    "--time-limit",
    type=POSITIVE,
    callback=not_with_folds,
    metavar="SECONDS",
    help="Stop after so long, reading included, and write the model there is by then.",
)
@click.option(
    "--checkpoint",
    "checkpoint_folder",
    callback=not_with_folds,
    metavar="DIR",
    help="Keep what is needed to go on after a crash or a stop in this folder.",
)
@click.option(
    "--resume",
    "resume_folder",
    callback=not_with_folds,
    metavar="DIR",
    help="Go on from the checkpoint in this folder, with the same data and options.",
)
@click.option(
    "--init-model",
    "init_model_file",
    callback=not_with_folds,
    metavar="FILE",
    help="Begin with a model of the same rows, or of the first of them, trained otherwise (another "
    "C, gamma or -e). With -l 0 it pays most where little has changed.",
)
@click.option("--certify", is_flag=True, help="Check every row with float64 kernel values.")
@click.option(
    "--report",
    "report_file",
    callback=not_with_folds,
    metavar="FILE",
    help="Write what happened as JSON.",
)
@click.option(
    "--model-format",
    type=click.Choice(["dcsvm", "libsvm"]),
    default="dcsvm",
    help="dcsvm: an exact model is LIBSVM's with a section after its end; libsvm: LIBSVM's alone. "
    "Default dcsvm.",
)
@version_option
def main(training_set_file: str, model_file: str | None, **options) -> None:
    """Train a support vector machine by divide and conquer.

    TRAINING_SET_FILE is in LIBSVM's format ("-" for standard input). MODEL_FILE is by default the
    file's name with .model appended, in the current folder. Options with one letter are read as
    svm-train reads them: the value is the next argument, whatever it starts with. Exit status: 0
    converged, 1 failed, 2 usage, 3 a usable model that did not converge; SIGINT and SIGTERM write
    what there is, with status 130 and 143.
    """
    guarded(lambda: train_file(training_set_file, model_file, **options))


def train_file(training_set_file, model_file, *, n_folds, svm_type, kernel_type, gamma, cache_mb,
               threads, quiet, report_file, model_format, max_iterations, probability, lenient,
               scale_file, time_limit, checkpoint_folder, resume_folder, init_model_file,
               **options) -> int:  # fmt: skip
    """Read, train, write and report, or cross validate; returns the exit status."""
    from dcsvm._core import Stop, Stopped
    from dcsvm.cli.cross_validation import cross_validate_data
    from dcsvm.cli.interrupts import Interrupts
    from dcsvm.cli.report import (
        TerminalProgress,
        say_not_converged,
        say_result,
        say_stopped,
        write_report,
    )
    from dcsvm.data.advice import advice
    from dcsvm.kernel.kernels import NAMES
    from dcsvm.machine import default_threads
    from dcsvm.model.file import load_model
    from dcsvm.problem.options import TrainOptions
    from dcsvm.problem.svm_types import REGRESSIONS, SVM_TYPES
    from dcsvm.solving.control import Control
    from dcsvm.training.train import train_rows

    start = time.perf_counter()
    if model_format == "libsvm" and options["early"]:
        raise click.UsageError("LIBSVM has no early models: --early needs --model-format dcsvm")
    if scale_file is not None and NAMES[kernel_type] == "precomputed":
        raise click.UsageError("the values of a precomputed kernel cannot be scaled (--scale)")
    try:
        options = TrainOptions(
            svm_type=SVM_TYPES[svm_type],
            kernel=NAMES[kernel_type],
            gamma=gamma or None,
            probability=bool(probability),
            cache_mb=math.ceil(cache_mb) if cache_mb else None,
            threads=threads or default_threads(),
            max_iterations=-1 if max_iterations is None else max_iterations,
            **options,
        )
    except ValueError as error:  # options that do not go together
        raise click.UsageError(str(error)) from None
    if model_file is not None:
        check_writable(model_file, training_set_file, scale_file)
    if report_file is not None:
        check_writable(report_file, training_set_file, scale_file, model_file)
    checkpoint = checkpoint_of(checkpoint_folder, resume_folder)
    stop = Stop(time_limit)
    init_model = None
    if init_model_file is not None:
        init_model = load_model(init_model_file, threads=options.threads)
    data = read_data(
        training_set_file,
        lenient=lenient,
        scale_file=scale_file,
        threads=options.threads,
        serials="training" if options.kernel == "precomputed" else None,
    )
    read = time.perf_counter()
    classes = None if options.svm_type in REGRESSIONS else data.labels
    for sentence in [] if quiet else advice(data.rows, classes):
        say(f"warning: {sentence}")
    for label in options.class_weight or {}:
        if label not in data.labels:
            say(f"warning: no row has the label {label:g} of -w{label:g}")
    progress = TerminalProgress(quiet)
    if n_folds is not None:
        return cross_validate_data(data, options, n_folds, progress)
    with Interrupts(stop) as interrupts:
        try:
            model, report = train_rows(
                data.rows,
                data.labels,
                options,
                Control(progress, stop, checkpoint),
                init_model=init_model,
                consume=True,
            )
        except Stopped:
            say("error: stopped before anything was solved: there is no model")
            return status_of(interrupts, FAILED)
        trained = time.perf_counter()
        model.save(model_file, format=model_format)
        written = time.perf_counter()
    if report_file is not None:
        seconds = {"read": read - start, "write": written - trained, "total": written - start}
        write_report(report_file, report, seconds)
    if not quiet:
        tell = show_beside(model_file, report_file)
        say_result(report, tell, is_classifier=model.is_classifier)
    if report.stopped:
        say_stopped(report, None if interrupts.received else time_limit, checkpoint)
        return status_of(interrupts, NOT_CONVERGED)
    if checkpoint is not None:
        checkpoint.remove()
    if not report.converged:
        say_not_converged(report, options.tolerance, options.gap)
    return 0 if report.converged else NOT_CONVERGED


def checkpoint_of(checkpoint_folder: str | None, resume_folder: str | None):
    """The Checkpoint that the options ask for, or None; both may name one folder, which goes on
    where there is something to go on from."""
    from dcsvm.solving.checkpoint import Checkpoint

    if checkpoint_folder is None and resume_folder is None:
        return None
    if resume_folder is None:
        return Checkpoint(checkpoint_folder)
    if checkpoint_folder not in (None, resume_folder):
        raise click.UsageError("--checkpoint and --resume name different folders")
    may_begin = checkpoint_folder is not None
    return Checkpoint(resume_folder, resume=not may_begin or Checkpoint.exists(resume_folder))


def status_of(interrupts, otherwise: int) -> int:
    """The exit status of a run that was stopped."""
    return 128 + interrupts.received if interrupts.received else otherwise
