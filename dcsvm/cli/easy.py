"""dcsvm-easy: choose all settings of a model within a time limit, as LIBSVM's easy.py does."""

from typing import Any

import click

from dcsvm.cli.command import DATA_FILE, LibsvmCommand, exit_statuses
from dcsvm.cli.files import BALANCED
from dcsvm.cli.guard import run
from dcsvm.cli.jobs import OF_EASY, WITH_SCALE, EasyJob, check, factors_of_classes, name_beside
from dcsvm.cli.options import HELP, VERSION, Some, parameters
from dcsvm.problem.options import TrainOptions

EXAMPLES = (
    ("dcsvm-easy heart_scale", "choose all settings, write heart_scale.model"),
    ("dcsvm-easy --time-limit 600 covtype.tr covtype.te", "ten minutes; predict covtype.te, too"),
    ("dcsvm-easy --metric auc ijcnn1 ijcnn1.t", "choose by the area under the ROC curve"),
)
FILES = (
    ("TRAINING_SET_FILE", DATA_FILE),
    ("TEST_FILE", "the same format; also without labels"),
    ("MODEL_FILE", "for dcsvm-predict; it has the scaling and the feature weights"),
)
TITLES = ("Search", "Output", "Files", "Other")
FREE = Some(TrainOptions, ("seed", "cache_mb", "threads"), "Other")
WEIGHTS = Some(TrainOptions, ("class_weight",), "Search")


@click.command(
    "dcsvm-easy",
    cls=LibsvmCommand,
    params=parameters(TITLES, FREE, WEIGHTS, EasyJob),
    examples=EXAMPLES,
    statuses=exit_statuses(
        done="done",
        missed="the model did not converge, or time limit: model written",
        stopped="the best model so far is written",
    ),
    files=FILES,
    see_also=("dcsvm-train", "dcsvm-grid", "dcsvm-predict"),
)
@VERSION
@HELP
def main(**given: Any) -> None:
    """Choose the settings of a model, train it on all rows, and predict TEST_FILE.

    Kernel, scaling, feature weights, C, gamma and epsilon are chosen on held-out rows. The model is
    exact, or early if that is better or faster on many rows. The last lines have the setting as a
    dcsvm-train command, and the loss on held-out rows. The model file and the predictions are
    written into the current folder.
    """
    for name, path, ending in (("model", "training_set", "model"), ("output", "test", "predict")):
        if given[f"{name}_file"] is None:
            given[f"{name}_file"] = name_beside(given[f"{path}_file"], ending)
    weights = factors_of_classes(given.pop("class_weight"))
    if weights and given["balanced"]:
        raise click.UsageError("give -w balanced or factors of classes, not both")
    job = EasyJob.taken(given)
    check([OF_EASY, WITH_SCALE], job)
    chosen = {"class_weight": BALANCED if job.balanced else weights, "svm_type": job.svm_type}
    run("easy_file", job, TrainOptions.taken(given | chosen))
