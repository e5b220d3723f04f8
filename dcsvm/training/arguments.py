"""`dcsvm.train`; and what it is given beside rows and options, here or on workers, and its
warnings."""

from __future__ import annotations

import warnings

import numpy as np

from dcsvm._core import Stop
from dcsvm.data.rows import Rows
from dcsvm.model.model import Model
from dcsvm.problem.option_table import described
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.task import as_labels
from dcsvm.solving.checkpoint import Checkpoint, Control
from dcsvm.solving.report import Progress, TrainReport
from dcsvm.training.early_level import TestRows
from dcsvm.training.train import train_rows


def train(
    X,
    y=None,
    *,
    sample_weight=None,
    progress=None,
    stop=None,
    checkpoint=None,
    init_model=None,
    test=None,
    **options,
) -> Model:
    """Train a support vector machine by divide and conquer; returns a Model.

    X (n, d) is a NumPy array or a scipy sparse matrix; features are used as float32. With
    kernel="precomputed" X is the symmetric kernel matrix (n, n), and rows to predict are their
    kernel values with the training rows. y (n,) are labels, numbers or strings, or the targets of
    a regression; one-class needs none. The options are (type, default):

    {options}

    Beside the options

    - sample_weight (n,), at least 0: counts each row as that many copies of it; rows of weight 0
      are left out.
    - progress: a dcsvm.Progress that is told what happens.
    - stop: a dcsvm.Stop, which ends training early, after some seconds or when it is requested;
      the model is what there is by then, and Stopped is raised where that is nothing.
    - checkpoint: a dcsvm.Checkpoint, kept up to date for another process to go on from.
    - init_model: a Model of the same rows, or of the first of them, to begin with.
    - test: (X, y) to choose the early level by, where training finds it.

    The model's attribute `report` is the TrainReport. Raises ValueError for input that does not
    fit and TypeError for an unknown option; warns when the solution did not converge.
    """
    options = TrainOptions.of(**options)
    control = checked_control(progress, stop, checkpoint, init_model)
    rows = Rows.from_array(X)
    labels = labels_of(y, rows.n_samples, options)
    warn_of_labels(options, labels)
    test = test_rows_of(test, X, options)
    options = options if test is None else options.choosing_by_test()
    given = {"sample_weight": sample_weight, "init_model": init_model, "test": test}
    model, report = train_rows(rows, labels, options, control, **given)
    warn_of_report(report)
    return model


train.__doc__ = described(train.__doc__, TrainOptions)


def checked_control(progress, stop, checkpoint, init_model) -> Control:
    """The control of a run. Raises TypeError for what is none of its parts, nor a Model to begin
    with."""
    for name, value, kind in (
        ("progress", progress, Progress),
        ("stop", stop, Stop),
        ("checkpoint", checkpoint, Checkpoint),
        ("init_model", init_model, Model),
    ):
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name} must be a dcsvm.{kind.__name__} or None, not {value!r}")
    return Control(progress or Progress(), stop or Stop(), checkpoint)


def labels_of(y, n_rows: int, options: TrainOptions) -> np.ndarray:
    """Return the labels or targets of the training rows; one-class needs none. Raises
    ValueError."""
    if y is not None:
        return as_labels(y)
    if options.svm_type != "one_class":
        raise ValueError(f"{options.svm_type} needs labels or targets: y is None")
    return np.zeros(n_rows)


def test_rows_of(test, X, options: TrainOptions) -> TestRows | None:
    """The test rows of a tuple (X_test, y_test), for training rows X. Raises ValueError and
    TypeError for what is none."""
    if test is None:
        return None
    if not options.chooses_early_level:
        raise ValueError("test rows are for early models whose level training finds")
    if not isinstance(test, tuple) or len(test) != 2:
        raise TypeError(f"test must be a tuple (X, y) or None, not {test!r}")
    given, found = test[0], TestRows(Rows.from_array(test[0]), as_labels(test[1]))
    if len(found.labels) != found.rows.n_samples:
        raise ValueError(f"{found.rows.n_samples} test rows have {len(found.labels)} labels")
    shape = getattr(X, "shape", None) or np.shape(X)
    n_features = shape[1] if len(shape) == 2 else found.rows.n_features
    if not hasattr(given, "tocsr") and found.rows.n_features != n_features:
        raise ValueError(
            f"test rows have {found.rows.n_features} features, the training rows {n_features}"
        )
    return found


def warn_of_labels(options: TrainOptions, labels: np.ndarray) -> None:
    """Warn of labels of class_weight that no row has."""
    for label in set(options.class_weight or {}) - set(labels.tolist()):
        warnings.warn(f"no row has the label {label!r} of class_weight", stacklevel=3)


def warn_of_report(report: TrainReport) -> None:
    """Warn of what a model lacks."""
    if not report.converged:
        worth = "" if report.violation is None else f": violation {report.violation:.3g}"
        warnings.warn(f"not converged{worth}", stacklevel=3)
    elif report.missing:
        warnings.warn(f"stopped before the {' and '.join(report.missing)}", stacklevel=3)
