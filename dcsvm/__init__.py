"""Divide-and-conquer kernel SVM (Hsieh, Si and Dhillon, ICML 2014).

    from dcsvm import train, load_model

    model = train(X, y, C=32, gamma=2, levels=4)   # NumPy array or scipy CSR
    model.predict(X_test)                          # exact solution
    model.predict(X_test, method="early")          # model of the nearest cluster
    model.save("my.model")                         # svm-predict reads the file
    model = load_model("my.model")

The packages, lowest layer first; each imports only packages listed above it:

    _core, _svmlight   the numerical core and the parser, in csrc/
    system             what only some operating systems have
    machine            threads and memory of this process
    data               Dataset: rows, labels and weights; input and output files
    kernel             kernel values, clusters, components
    problem            tables of options, dual problems, duplicates, folds
    model              parts of a model, prediction, metrics, compression, the model file, C
    training           Algorithm 1: dcsvm.train, cross validation, dcsvm.grid_search
    selection          dcsvm.easy
    sklearn            scikit-learn's estimators (optional)
    distributed        training on the workers of a Dask cluster (optional)
    cli                the commands
"""

import os
import warnings
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from math import inf
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Checkpoint",
    "Dataset",
    "Model",
    "Progress",
    "Stop",
    "Stopped",
    "TrainOptions",
    "easy",
    "grid_search",
    "load_model",
    "train",
]

if TYPE_CHECKING:
    from dcsvm.data.dataset import Dataset
    from dcsvm.model.model import Model
    from dcsvm.model.reader import load_model
    from dcsvm.problem.options import TrainOptions
    from dcsvm.selection.easy import easy
    from dcsvm.training.grid import grid_search
    from dcsvm.training.report import Progress
    from dcsvm.training.state import Checkpoint
    from dcsvm.training.train import train

_ATTRIBUTES = {
    "Checkpoint": "dcsvm.training.state",
    "Dataset": "dcsvm.data.dataset",
    "Model": "dcsvm.model.model",
    "Progress": "dcsvm.training.report",
    "Stop": "dcsvm._core",
    "Stopped": "dcsvm._core",
    "TrainOptions": "dcsvm.problem.options",
    "easy": "dcsvm.selection.easy",
    "grid_search": "dcsvm.training.grid",
    "load_model": "dcsvm.model.reader",
    "train": "dcsvm.training.train",
}


def __getattr__(name: str) -> Any:
    """Import public names on first use, which keeps `import dcsvm` fast."""
    if name not in _ATTRIBUTES:
        raise AttributeError(f"module 'dcsvm' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_ATTRIBUTES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_ATTRIBUTES])


def _warn_of_old_modules(folder: str) -> None:
    """Warn if the compiled modules in `folder` are older than their sources in a checkout."""
    sources = os.path.join(os.path.dirname(folder), "csrc")
    if not os.path.isdir(sources):
        return
    folders = [folder, *(one.path for one in os.scandir(sources) if one.is_dir())]
    own = EXTENSION_SUFFIXES[0]  # modules of other versions of Python may be older
    endings = (".cc", ".h", ".pyx", ".pxd", ".pxi")
    times = {}
    for file in (file for one in folders for file in os.scandir(one)):
        if file.name.endswith((own, *endings)):
            with suppress(OSError):  # an editor may have removed it
                times[file.path] = file.stat().st_mtime
    oldest = min((time for path, time in times.items() if path.endswith(own)), default=inf)
    newer = [path for path, time in times.items() if path.endswith(endings) and time > oldest]
    if newer:
        told = f"{newer[0]} is newer than the compiled modules of dcsvm: run `make build`"
        warnings.warn(told, RuntimeWarning, stacklevel=2)


_warn_of_old_modules(os.path.dirname(os.path.abspath(__file__)))
