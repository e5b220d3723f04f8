"""Divide-and-conquer kernel SVM (Hsieh, Si and Dhillon, ICML 2014).

    from dcsvm import train, load_model

    model = train(X, y, C=32, gamma=2, levels=4)   # NumPy array or scipy CSR, two labels
    model.predict(X_test)                          # the exact solution
    model.predict(X_test, method="early")          # nearest center, then that cluster's model
    model.save("my.model")                         # svm-predict reads it
    model = load_model("my.model")

What is where:

    training     Algorithm 1: levels, refine                  predict      decision values
    preparation  rows merged, ordered, encoded                solving      one formulation; conquer
    partition    two-step kernel k-means, routing             model        Model and its parts
    formulation  problem types as box QPs                     model_file   save and load
    plan         levels, threads, memory                      certificate  float64 checks
    kernels      the five kernels                             dataset      rows, labels, reading
    precomputed  checks of a kernel matrix                    coupling     votes, probabilities
    options      what training can be told                    task         classes, targets
    extraction   models from a solution                       held_out     values of unseen rows
    run_state    where a run is                               checkpoint   stored, to go on from
    stopped      what a stopped run is worth                  warm_start   from an earlier model
    pair_weights sums over kernel values for all pairs        bcm          a committee of clusters
    duplicates   equal rows merged                            sample_weights  as they were given
    _core        the numerical core in csrc/                  cli          the commands
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["Checkpoint", "Model", "Stop", "Stopped", "load_model", "train"]

if TYPE_CHECKING:
    from dcsvm.model.model import Model


def train(
    X,
    y,
    *,
    sample_weight=None,
    C=1.0,
    gamma=None,
    progress=None,
    stop=None,
    checkpoint=None,
    init_model=None,
    **options,
) -> Model:
    """Train on rows X (n, d) with labels or targets y (n,); returns a Model. C-SVC by default.

    X is a NumPy array or a scipy sparse matrix; features are used as float32. With
    kernel="precomputed" X is the symmetric kernel matrix (n, n), and rows to predict are their
    kernel values with the training rows. `sample_weight` (n,), at least 0, counts each row as that
    many copies of it: its C is C times the weight, and a row of weight 0 is left out. `options` are
    the fields of `dcsvm.problem.options.TrainOptions` (kernel, levels, tolerance, early, threads,
    seed, ...). The model's attribute `report` holds the TrainReport. Raises ValueError for input
    that does not fit, and warns when the solution did not converge.

    A `Stop` ends training early, after some seconds or when another thread (or `progress`) requests
    it; the model is what there is by then, and Stopped is raised where that is nothing. A
    `Checkpoint` is kept up to date for another process to go on from. `init_model` is a model of
    the same rows, or of the first of them, to begin with.
    """
    import warnings

    import numpy as np

    from dcsvm.data.rows import Rows
    from dcsvm.problem.options import TrainOptions
    from dcsvm.training.algorithm import train_rows

    options = TrainOptions(C=C, gamma=gamma, **options)
    model, report = train_rows(
        Rows.from_array(X),
        np.asarray(y, dtype=np.float64).reshape(-1),
        options,
        progress,
        sample_weight=sample_weight,
        stop=stop,
        checkpoint=checkpoint,
        init_model=init_model,
    )
    if not report.converged:
        warnings.warn(f"not converged: violation {report.violation}", stacklevel=2)
    return model


def __getattr__(name):
    if name == "Model":
        from dcsvm.model.model import Model

        return Model
    if name == "Checkpoint":
        from dcsvm.solving.checkpoint import Checkpoint

        return Checkpoint
    if name in ("Stop", "Stopped"):
        from dcsvm import _core

        return getattr(_core, name)
    if name == "load_model":
        from dcsvm.model.file import load_model

        return load_model
    raise AttributeError(f"module 'dcsvm' has no attribute {name!r}")
