"""Divide-and-conquer kernel SVM (Hsieh, Si and Dhillon, ICML 2014).

    from dcsvm import train, load_model

    model = train(X, y, C=32, gamma=2, levels=4)   # NumPy array or scipy CSR
    model.predict(X_test)                          # the exact solution
    model.predict(X_test, method="early")          # nearest center, then that cluster's model
    model.save("my.model")                         # svm-predict reads it
    model = load_model("my.model")

The floors, from the ground up; each uses those below it only:

    _core, _svmlight   the numerical core and the parser, in csrc/
    machine            threads, cores and memory of this process
    data               rows and labels, files that come in and go out
    kernel             kernel values, and what is known about distances
    compression        fewer vectors for a sum of kernel values
    problem            what is to be solved: options, types, folds, equal rows
    model              what comes out: parts, prediction, the model file
    solving            a problem being solved, checked, stored and reported
    training           Algorithm 1, probabilities, cross validation
    selection          choosing C and gamma: the settings of a grid, scored
    sklearn            scikit-learn's estimators (an extra)
    distributed        training on the workers of a Dask cluster (an extra)
    cli                the commands
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = [
    "Checkpoint",
    "Model",
    "Progress",
    "Stop",
    "Stopped",
    "TrainOptions",
    "grid_search",
    "load_model",
    "train",
]

if TYPE_CHECKING:
    from dcsvm.selection.grid_search import grid_search
    from dcsvm.training.arguments import train

_ATTRIBUTES = {
    "Checkpoint": "dcsvm.solving.checkpoint",
    "Model": "dcsvm.model.model",
    "Progress": "dcsvm.solving.report",
    "Stop": "dcsvm._core",
    "Stopped": "dcsvm._core",
    "TrainOptions": "dcsvm.problem.options",
    "grid_search": "dcsvm.selection.grid_search",
    "load_model": "dcsvm.model.file",
    "train": "dcsvm.training.arguments",
}


def __getattr__(name):
    """What is imported when it is asked for, so that the package starts at once."""
    if name not in _ATTRIBUTES:
        raise AttributeError(f"module 'dcsvm' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_ATTRIBUTES[name]), name)


def __dir__():
    return sorted([*globals(), *_ATTRIBUTES])
