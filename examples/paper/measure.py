"""Measure one cell in this process and print its result as the last line of standard output.

    python -m paper.measure EXPERIMENT DATA_FOLDER SETTINGS_JSON LIMIT

paper.run starts this, so that a measurement can be stopped and its memory is its own. The exit
status is UNUSABLE if the data cannot be used, with the reason on standard error, and OUT_OF_TIME if
svm-train exceeds LIMIT seconds without its reading.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np

from dcsvm.kernel.kernels import Kernel
from paper import memory, problems
from paper.baselines import fitter, takes_bytes
from paper.fitted import OutOfTimeError

UNUSABLE, OUT_OF_TIME = 3, 4
limit: float | None = None  # seconds that svm-train has for training


def fit_and_test(settings: dict, folder: Path) -> dict:
    """Measure one method on one problem: time, accuracy, memory beyond the rows, and its facts.

    A method in another process reports its own memory.
    """
    as_bytes = takes_bytes(settings["method"])
    data = problems.load(settings["problem"], folder, as_bytes=as_bytes)
    options = dict(settings.get("options", {}))
    if settings["method"] == "libsvm":
        options["limit"] = limit
    if settings.get("history"):
        options["evaluate"] = lambda decide: accuracy(decide(data.X_test), data.y_test)
    fit, problem = fitter(settings["method"]), (data.X, data.y, settings["C"])
    kernel, threads = Kernel(**settings["kernel"]), settings["threads"]
    fitted, added = memory.measured(lambda: fit(*problem, kernel, threads=threads, **options))
    start = time.perf_counter()
    values = fitted.decision_function(data.X_test)
    return {
        "seconds": fitted.seconds,
        "predict_seconds": time.perf_counter() - start,
        "accuracy": accuracy(values, data.y_test),
        "n_rows": len(data.y),
        "n_features": data.X.shape[1],
        "history": fitted.history,
        "added_mb": added,
        **fitted.facts,
    }


def accuracy(values: np.ndarray, y: np.ndarray) -> float:
    """Return the share of rows whose decision value has the label's sign; 0 counts as -1."""
    return float(np.mean((values > 0) == (y > 0)))


def main(experiment: str, folder: str, text: str, seconds: str) -> None:
    global limit
    limit = float(seconds)
    module = import_module(f"paper.experiments.{experiment}")
    try:
        result = module.measure(json.loads(text), Path(folder))
    except problems.UnusableError as error:
        print(error, file=sys.stderr)
        raise SystemExit(UNUSABLE) from error
    except OutOfTimeError:
        raise SystemExit(OUT_OF_TIME) from None
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
