"""dcsvm-grid: choose C and gamma, with the options and the output of svm-grid."""

import os
from dataclasses import dataclass
from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.guard import run
from dcsvm.cli.options import (
    HELP,
    INPUT,
    MEDIAN,
    OUTPUT,
    SECONDS,
    SHARED,
    STANDARD_INPUT,
    VERSION,
    Conditions,
    TrainingJob,
    check,
    is_stream,
    of_files,
    of_long_runs,
    of_other,
    of_settings,
    of_table,
    option,
    parameters,
    training_options,
)
from dcsvm.problem.option_table import Rule
from dcsvm.problem.options import SearchOptions, TrainOptions

EXAMPLES = (
    ("dcsvm-grid heart_scale", "C and gamma by 5-fold cross-validation of svm-grid's 110 settings"),
    (
        "dcsvm-grid --early --scale auto covtype.tr model",
        "score by early models, train the best setting",
    ),
    (
        "dcsvm-grid --refine -png map.png heart_scale",
        "add a finer grid around the best, draw a map",
    ),
)
FILES = (
    ("TRAINING_SET_FILE", DATA_FILE),
    ("MODEL_FILE", "the model of the best setting, as dcsvm-train writes it"),
    ("TRAINING_SET_FILE.out", "one line per setting, in the current folder (-out)"),
)
RESUME = "-resume"
OUT_FILE_BEGINS = b"log2"
MODEL_FILE_BEGINS = (b"svm_type", b"kernel_type", b"dcsvm_early_model")


def with_resume_file(args: list[str]) -> list[str]:
    """Insert an empty value after -resume if it has none, as it may in svm-grid."""
    if RESUME not in args:
        return args
    k = args.index(RESUME) + 1
    if len(args) >= k + 2 and not args[k].startswith("-") and is_out_file(*args[k : k + 2]):
        return args
    return [*args[:k], "", *args[k:]]


def is_out_file(name: str, next_word: str) -> bool:
    """Return whether the word after -resume is its value, not the training set.

    A folder and a missing or empty file cannot be the training set. Neither can a file before
    another file, unless the latter is a model to overwrite. Pipes are not read here.
    """
    start, next_start = beginning(name), beginning(next_word)
    if not start or start.startswith(OUT_FILE_BEGINS):
        return True
    return bool(next_start) and not next_start.startswith(MODEL_FILE_BEGINS)


def beginning(name: str) -> bytes:
    """Return the first bytes of a file: b"" if it does not exist, b"?" if unknown."""
    if not os.path.isfile(name):
        return b"?" if is_stream(name) else b""
    try:
        with open(name, "rb") as file:
            return file.read(20)
    except OSError:
        return b"?"


IGNORED = "Options of svm-grid without effect"
TITLES = ("Settings", "Levels", "Problem", "Kernel", "Accuracy", "Long runs", "Files",
          IGNORED, "Other")  # fmt: skip


# fmt: off
def powers_of_two(text: str) -> tuple[float, ...]:
    """Return the exponents of svm-grid's begin,end,step, ascending; () for null."""
    most = 1000
    if text.lower() == "null":
        return ()
    try:
        begin, end, step = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError("is neither begin,end,step nor null") from None
    if not all(abs(number) <= most for number in (begin, end, step)):
        raise ValueError(f"has an exponent beyond {most}")
    if step == 0:
        raise ValueError("has the step 0")
    if (end - begin) / step < 0:
        sign = "negative" if end < begin else "positive"
        raise ValueError(f"needs a {sign} step to lead from {begin:g} to {end:g}")
    n_steps = int((end - begin) / step * (1 + 1e-12) + 1e-12)
    if n_steps >= most:
        raise ValueError(f"has more than {most} values")
    return tuple(sorted(begin + k * step for k in range(n_steps + 1)))


POWERS = Rule("begin,end,step", lambda value: isinstance(value, tuple), tuple, parse=powers_of_two)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GridJob(SearchOptions, TrainingJob):
    """Options of dcsvm-grid beside TrainOptions. Without exponents a parameter is not searched."""

    log2c: tuple[float, ...] = of_settings(powers_of_two("-5,15,2"), POWERS,
        "-log2c BEGIN,END,STEP|null",
        "C: powers of 2 with these exponents",
        "With null, C is the value of -c.",
        default_text="-5,15,2", is_basic=True)
    log2g: tuple[float, ...] = of_settings(powers_of_two("3,-15,-2"), POWERS,
        "-log2g BEGIN,END,STEP|null",
        "gamma: powers of 2 with these exponents",
        "With null, gamma is the value of -g. Kernels without gamma ignore this option.",
        default_text="3,-15,-2", is_basic=True)
    log2p: tuple[float, ...] = of_settings((), POWERS, "-log2p BEGIN,END,STEP|null",
        "epsilon of eps-SVR, likewise",
        "With null, epsilon is the value of -p.",
        default_text="null")
    gamma_unit: str = of_settings("1", Rule.choice("1", MEDIAN), "--gamma-unit UNIT",
        "unit of gamma in the grid: 1 or median",
        "With median, a power F of -log2g means -g F/median. The last line has gamma itself.")
    n_folds: int = of_settings(5, Rule.integer(2), "-v N",
        "number of cross-validation folds",
        is_basic=True)
    test_file: str | None = of_settings(None, INPUT.optional, "--test FILE",
        "score on the rows of this file instead of folds",
        "Models are then trained on all rows of the training set.")
    time_limit: float | None = of_long_runs(None, SECONDS.optional, "--time-limit SEC",
        "stop after SEC seconds, print the best so far",
        "The time includes reading. After a stop, no model is trained; -resume continues.")
    out_file: str | None = of_files(None, OUTPUT.optional, "-out FILE|null",
        "write a line per scored setting to this file",
        "null writes no file.",
        default_text="TRAINING_SET_FILE.out")
    resume_file: str | None = of_files(None, Rule.path(continued_by="out_file").optional,
        "-resume [FILE]",
        "continue from this -out file",
        "Use the same data and options. Without FILE, the file of -out is continued.")
    png_file: str | None = of_files(None, OUTPUT.optional, "-png FILE",
        "draw a map of the scores", "This needs matplotlib (pip install '.[plot]').")
    svmtrain: str | None = option(None, Rule.text().optional, "-svmtrain PATH",
        "ignored: training is built in", group=IGNORED)
    gnuplot: str | None = option(None, Rule.text().optional, "-gnuplot PATH",
        "ignored: see -png", group=IGNORED)
    quiet: bool = of_other(False, Rule.flag(), "-q",
        "print only errors, search warnings and the last line",
        "Warnings about the data are omitted.")


    def grid(self, options: TrainOptions) -> Any:
        """Return the Grid of settings, with gamma in units of `gamma_unit`. Raises ValueError."""
        from dcsvm.training.held_out import Grid

        def powers(exponents: tuple[float, ...]) -> list[float] | None:
            return [2.0**exponent for exponent in exponents] or None

        gammas = powers(self.log2g) if options.kernel_type.has_gamma else None
        return Grid.of(options, powers(self.log2c) or [options.C], gammas, powers(self.log2p))


OF_GRID: Conditions = (
    (lambda _, options: options.svm_type == "one_class",
     "one-class (-s 2) has no C and no score to choose it by"),
    (lambda job, options: options.svm_type == "nu_svc" and job.log2c,
     "nu-SVC (-s 1) has no C: give -log2c null to choose gamma only"),
    (lambda job, options: job.log2p and options.svm_type != "epsilon_svr",
     "-log2p needs eps-SVR (-s 3)"),
    (lambda job, options: job.gamma_unit == MEDIAN and not options.kernel_type.is_of_distance,
     "--gamma-unit must be 1 for kernel {options.kernel}, got median"),
    (lambda job, options: options.kernel_type.is_precomputed and job.test_file,
     "a precomputed kernel cannot be used with --scale or --test"),
    (lambda job, options: not (job.log2c or job.log2p
                               or (job.log2g and options.kernel_type.has_gamma)),
     "no parameter to choose: -log2c and -log2g are null"),
    (lambda job, _: job.resume_file == "", "-resume needs a file if -out is null"),
)
# fmt: on


OF_GRID_TOO = [name for name, option, _ in TrainOptions.entries() if option.in_grid]


@click.command(
    "dcsvm-grid",
    cls=LibsvmCommand,
    prepare_args=with_resume_file,
    params=parameters(TITLES, of_table(TrainOptions, OF_GRID_TOO), of_table(GridJob)),
    examples=EXAMPLES,
    statuses=exit_statuses(
        done="all settings are scored",
        missed="not converged, or time limit: best so far printed",
        stopped="best setting so far printed",
    ),
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-predict", "svm-grid", "svm-easy", "svm-scale"),
)
@VERSION
@HELP
def main(**given: Any) -> None:
    """Choose C and gamma by cross-validation.

    Each setting is scored on rows that were not used to train it. One line per setting shows its
    score and the best setting so far. The last line is the best setting: C, gamma and its score.
    Among equal scores, the smallest C wins. If you give MODEL_FILE, a model with the best setting
    is trained on all rows.

    The score is the accuracy in percent; for regressions, it is the mean squared error. Without
    --early, it equals the result of dcsvm-train -v up to the tolerance (-e): at most about one row
    in 1000 differs.
    """
    options = training_options(given)
    # svm-grid names the file of results by the training set; "null" writes none
    if given["out_file"] is None:
        path = given["training_set_file"]
        name = "stdin" if path in STANDARD_INPUT else os.path.basename(path)
        given["out_file"] = f"{name}.out"
    if given["out_file"] == "null":
        given["out_file"] = None
    if given["resume_file"] == "":
        given["resume_file"] = given["out_file"] or ""
    job = GridJob.taken(given)
    check([OF_GRID, SHARED], job, options)
    options.check_feature_weights(job.feature_weights)
    try:
        job.check_metric(options)
        job.grid(options)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    run("grid_file", job, options)
