"""dcsvm-easy: choose all settings of a model within a time limit, as LIBSVM's easy.py does."""

from dataclasses import dataclass
from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.guard import run
from dcsvm.cli.options import (
    HELP,
    INPUT,
    OUTPUT,
    SECONDS,
    STANDARD_INPUT,
    VERSION,
    WITH_SCALE,
    Conditions,
    DataJob,
    check,
    class_weight,
    is_stream,
    name_beside,
    of_other,
    of_output,
    of_search,
    of_table,
    option,
    parameters,
)
from dcsvm.problem.option_table import Rule
from dcsvm.problem.options import SearchOptions, TrainOptions

EXAMPLES = (
    ("dcsvm-easy heart_scale", "choose all settings, write heart_scale.model"),
    ("dcsvm-easy --time-limit 600 covtype.tr covtype.te", "ten minutes, then predict"),
    ("dcsvm-easy --metric auc ijcnn1 ijcnn1.t", "choose by the area under the ROC curve"),
)
FILES = (
    ("TRAINING_SET_FILE", DATA_FILE),
    ("TEST_FILE", "the same format; also without labels"),
    ("MODEL_FILE", "for dcsvm-predict; it contains the scaling and the feature weights"),
)


# fmt: off
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EasyJob(DataJob):
    """Options of dcsvm-easy beside some of TrainOptions."""

    training_set_file: str = option("", INPUT, "TRAINING_SET_FILE")
    test_file: str | None = option(None, INPUT.optional, "[TEST_FILE]")
    time_limit: float = of_search(60.0, SECONDS, "--time-limit SEC",
        "seconds for the search and the training",
        "Reading and prediction are not included. With more time, more settings are tried on more "
        "rows.",
        is_basic=True)
    metric: str | None = of_search(None, SearchOptions.rule("metric"), "--metric NAME",
        "choose by accuracy, auc, f1, rmse, ...",
        SearchOptions.details("metric"),
        default_text="accuracy, rmse", is_basic=True)
    svm_type: str | None = of_search(None, TrainOptions.rule("svm_type").optional, "-s --type TYPE",
        "0: classes, 2: outliers, 3: regression",
        "By default, text and up to 32 different whole numbers are classes. 2 (one-class) finds "
        "outliers without labels: it chooses the nu and gamma whose boundary depends least on the "
        "choice of training rows.",
        default_text="by the labels", is_basic=True)
    probability: bool = of_search(False, Rule.flag(), "-b 0|1",
        "1: also fit class probabilities",
        "This adds five trainings.")
    balanced: bool = of_search(False, Rule.flag(), "--balanced",
        "give all classes the same total weight",
        "-w balanced is the same option.")
    model_file: str | None = of_output(None, OUTPUT.optional, "--model FILE",
        "the model file",
        default_text="TRAINING_SET_FILE.model", is_basic=True)
    output_file: str | None = of_output(None, OUTPUT.optional, "--output FILE",
        "the predictions of TEST_FILE",
        default_text="TEST_FILE.predict")
    quiet: bool = of_other(False, Rule.flag(), "-q",
        "print only errors, training warnings, last lines",
        "Warnings about the data are omitted.")


OF_EASY: Conditions = (
    (lambda job, _: job.training_set_file in STANDARD_INPUT and not job.model_file,
     "--model is required for standard input"),
    (lambda job, _: job.test_file in STANDARD_INPUT and not job.output_file,
     "--output is required for standard input"),
    (lambda job, _: job.training_set_file in STANDARD_INPUT or is_stream(job.training_set_file),
     "the training set is read twice: it cannot be a pipe"),
    (lambda job, _: job.svm_type not in (None, "c_svc", "epsilon_svr", "one_class"),
     "-s must be 0, 2 or 3: nu-SVC and nu-SVR are other forms of 0 and 3"),
    (lambda job, _: job.svm_type == "one_class" and job.metric,
     "--metric needs labels, which one-class does not read"),
)
# fmt: on


TITLES = ("Search", "Output", "Files", "Other")


@click.command(
    "dcsvm-easy",
    cls=LibsvmCommand,
    params=parameters(
        TITLES,
        of_table(TrainOptions, ("seed", "cache_mb", "threads"), "Other"),
        of_table(TrainOptions, ("class_weight",), "Search"),
        of_table(EasyJob),
    ),
    examples=EXAMPLES,
    statuses=exit_statuses(
        done="done",
        missed="the model did not converge; it is written",
        stopped="the best model so far is written",
    ),
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-grid", "dcsvm-predict"),
)
@VERSION
@HELP
def main(**given: Any) -> None:
    """Choose the settings of a model, train it on all rows, and predict TEST_FILE.

    dcsvm-easy chooses kernel, scaling, feature weights, C, gamma and epsilon by the error on rows
    that were not used in training. With many rows, the model is an early one if that is more
    accurate or if an exact one would take too long. Standard output begins with the dcsvm-train
    command of the chosen settings and the accuracy to expect on new rows. The model file and the
    predictions are written into the current folder.
    """
    for name, path, ending in (("model", "training_set", "model"), ("output", "test", "predict")):
        if given[f"{name}_file"] is None:
            given[f"{name}_file"] = name_beside(given[f"{path}_file"], ending)
    given["class_weight"] = class_weight(given)
    job = EasyJob.taken(given)
    check([OF_EASY, WITH_SCALE], job)
    run("train_file", job, TrainOptions.taken(given), function="easy_file")
