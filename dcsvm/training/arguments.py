"""What is given to `dcsvm.train`, here or on workers, beside rows and options; and its warnings."""

from __future__ import annotations

import warnings

import numpy as np

from dcsvm._core import Stop
from dcsvm.data.rows import Rows
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.task import as_labels
from dcsvm.solving.checkpoint import Checkpoint
from dcsvm.solving.control import Control
from dcsvm.solving.report import Progress, TrainReport
from dcsvm.training.early_level import TestRows


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
