"""LIBSVM: the command svm-train, which has a bias term."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from bench import process

from dcsvm import _svmlight, load_model
from dcsvm.kernel.kernels import NAMES
from dcsvm.machine import default_cache_mb
from paper.fitted import BATCH_ROWS, Fitted, OutOfTimeError

ITERATION_LIMIT = "reaching max number of iterations"  # a warning of svm-train
STOP_AT_ONCE = "1e9"  # a tolerance that svm-train meets before its first iteration


def fit(X, y, C, kernel, *, threads, seed=0, evaluate=None, tolerance=1e-3, limit=None) -> Fitted:
    """Run LIBSVM (Chang and Lin, 2011); it is deterministic and uses one thread.

    Seconds and memory exclude reading the file, and `limit` is seconds without it. dcsvm computes
    the decision values from the model file. Raises OutOfTimeError, MemoryError, FileNotFoundError
    without svm-train, and CalledProcessError if it fails.
    """
    command = ["svm-train", "-m", str(default_cache_mb()), "-c", repr(float(C))]
    command += ["-t", str(NAMES.index(kernel.name)), "-g", repr(float(kernel.gamma))]
    command += ["-d", str(kernel.degree), "-r", repr(float(kernel.coef0))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows, path = folder / "rows", folder / "model"
        write_rows(rows, X, y)
        reading = run([*command, "-e", STOP_AT_ONCE, rows, folder / "none"])
        timeout = None if limit is None else reading.wall + limit
        training = run([*command, "-e", repr(tolerance), rows, path], timeout)
        model = load_model(path)
    output = training.stdout + training.stderr
    found = re.search(r"^obj = (\S+), rho = (\S+)", output, re.MULTILINE)
    facts = {"objective": float(found[1]), "n_sv": len(model.exact.dual_coef[0])}
    facts["converged"] = ITERATION_LIMIT not in output
    facts["added_mb"] = max(training.peak_mb - reading.peak_mb, 0.0)
    seconds = max(training.wall - reading.wall, 0.0)
    sign = model.labels[0]

    def decide(rows: np.ndarray) -> np.ndarray:
        return sign * model.decision_function(rows, threads=threads)

    return Fitted(decide, seconds, facts=facts, model=model)


def run(command: list, timeout: float | None = None) -> process.Finished:
    """Run the command on one thread and measure it.

    Raises OutOfTimeError at the timeout, and MemoryError: svm-train does not check its memory.
    """
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"there is no program {command[0]}")
    finished = process.run(command, timeout, 1)
    if finished.timed_out:
        raise OutOfTimeError
    if finished.code in (-signal.SIGKILL, -signal.SIGSEGV):
        raise MemoryError(f"{command[0]} ended for lack of memory")
    if finished.code != 0:
        raise subprocess.CalledProcessError(finished.code, command, stderr=finished.stderr)
    return finished


def write_rows(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    """Write LIBSVM text; float32 values read back bit for bit."""
    with open(path, "wb") as file:
        for begin in range(0, len(y), BATCH_ROWS):
            own = slice(begin, begin + BATCH_ROWS)
            file.write(_svmlight.write_dense(y[own, None], np.ascontiguousarray(X[own])))


def as_read(values: np.ndarray) -> np.ndarray:
    """Return float32 values (n,) as svm-train reads them from the text: float64."""
    text = _svmlight.write_dense(np.zeros((len(values), 1)), values[:, None])
    return np.array([float(line.partition(b":")[2] or 0) for line in text.splitlines()])
