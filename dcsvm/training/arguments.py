"""The function `dcsvm.train`, and the checks and warnings shared with training on workers."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm._core import Stop
from dcsvm.data.arrays import Float64Parts
from dcsvm.data.columns import Frame, TableEncoding, TableRows, is_frame
from dcsvm.data.rows import Rows
from dcsvm.data.scaling import Extremes, Scaling, quantile_scaling
from dcsvm.model.model import Model
from dcsvm.problem.option_table import described
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.task import as_labels
from dcsvm.solving.checkpoint import Checkpoint, RunControl
from dcsvm.solving.report import Progress, TrainReport
from dcsvm.training.bar import default_progress
from dcsvm.training.early_level import TestRows
from dcsvm.training.feature_weights import FeatureWeights, learn_weights_of_used, weighted_rows
from dcsvm.training.train import train_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def train(  # noqa: PLR0913 (a public function with keyword parameters)
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    progress: Progress | None = None,
    stop: Stop | None = None,
    checkpoint: Checkpoint | None = None,
    init_model: Model | None = None,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    scale: str | None = None,
    feature_weights: ArrayLike | str | None = None,
    **options: Any,
) -> Model:
    """Train a support vector machine by divide and conquer.

    Parameters
    ----------
    X : array, scipy sparse matrix or data frame of shape (n, d)
        Training rows; features are used as float32. The columns of a data frame may be numbers,
        booleans or text; categories become one-hot features of value 0.5, and rows to predict are
        data frames with the same columns in any order. With kernel="precomputed", the symmetric
        kernel matrix (n, n); rows to predict are then their kernel values with the training rows.
    y : array of shape (n,), optional
        Labels, numbers or strings, or the targets of a regression. Not used by one-class SVM.
    sample_weight : array of shape (n,), optional
        Nonnegative weights: a row counts as that many copies of itself. 1 by default.
    progress : dcsvm.Progress, optional
        Its methods are called as training proceeds. The default is a bar in notebooks and on
        terminals, if training takes over two seconds; a plain dcsvm.Progress() shows nothing.
    stop : dcsvm.Stop, optional
        Ends training early, on request or after a time limit; the current model is returned.
    checkpoint : dcsvm.Checkpoint, optional
        Stores the state of the run, so that another process can resume it.
    init_model : dcsvm.Model, optional
        Warm start from a model of the same rows, or of the first of them.
    test : tuple (X, y), optional
        Test rows that choose the early level, if training searches for it.
    scale : {"auto", "quantile"}, optional
        Scale the features: to [-1, 1], or to a normal distribution by the ranks of their values.
        The model has the scaling and applies it to the rows it predicts.
    feature_weights : array of shape (d,) or "learn", optional
        Factors of the (scaled) features. "learn" finds them for kernels of a distance, from the
        changes of decision values if a feature is permuted; held-out rows choose among them and
        ones. They are `model.scaling.weights`; a feature of weight 0 is not used.
    **options
        Training options, see Notes.

    Returns
    -------
    Model
        Its attribute `report` is the TrainReport of the run.

    Raises
    ------
    ValueError
        If the input is invalid.
    TypeError
        If an option is unknown.
    Stopped
        If training is stopped before a model exists.

    Warns
    -----
    UserWarning
        If the solution did not converge.

    Notes
    -----
    The options (type, default):

    {options}
    """
    settings = TrainOptions.of(**options)
    control = checked_control(progress, stop, checkpoint, init_model)
    table = table_of(X)
    rows, scaling = scaled_rows(X, scale, table)
    labels = labels_of(y, rows.n_samples, settings)
    warn_of_labels(settings, labels)
    if feature_weights is not None:
        n_features = rows.n_features if scaling is None else np.shape(X)[1]
        n_features = n_features if table is None else table.n_features
        weights = weights_of(feature_weights, n_features, rows, labels, settings, control.stop)
        rows, scaling = weighted_rows(rows, weights, scaling, "X")
    test_rows = test_rows_of(test, X, settings, scaling, table)
    if test_rows is not None:
        settings = settings.choosing_by_test()
    model, report = train_rows(
        rows, labels, settings, control,
        sample_weight=sample_weight, init_model=init_model, test=test_rows,
    )  # fmt: skip
    warn_of_report(report)
    return replace(model, scaling=scaling, table=table)


def table_of(X: ArrayLike) -> TableEncoding | None:
    """Return the encoding of a data frame, None for other rows. Raises ValueError."""
    return table_of_frame(Frame.of(X)) if is_frame(X) else None


def table_of_frame(frame: Frame) -> TableEncoding:
    """Return the encoding of a frame; warn of columns without values. Raises DataError."""
    encoding = TableEncoding.of(frame)
    for name in set(frame.names) - {column.name for column in encoding.columns}:
        warnings.warn(f"column {name} has no values: dropped", stacklevel=5)
    return encoding


def scaled_rows(
    X: ArrayLike, scale: str | None, table: TableEncoding | None = None
) -> tuple[Rows, Scaling | None]:
    """Return the rows of X, encoded and scaled as asked, and the scaling. Raises ValueError."""
    if scale not in (None, "auto", "quantile"):
        raise ValueError(f"scale must be one of auto, quantile, got {scale!r}")
    if table is None and scale is None:
        return Rows.from_array(X), None
    parts = unscaled_rows(X, table)
    one_hot = None if table is None else table.one_hot
    if scale is None:
        return Scaling.identity(parts.n_features, "X").scaled_rows(parts, "X"), None
    if scale == "auto":
        scaling = Extremes.of(parts).scaling("X", one_hot=one_hot)
    else:
        scaling = quantile_scaling(parts, "X", one_hot=one_hot)
    return scaling.scaled_rows(parts, "X"), scaling


def unscaled_rows(X: ArrayLike, table: TableEncoding | None) -> Float64Parts | TableRows:
    """Return the rows of X, encoded by a table, in float64. Raises ValueError."""
    return Float64Parts(X) if table is None else table.rows(Frame.of(X))


def weights_of(
    given: ArrayLike | str,
    n_features: int,
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    stop: Stop,
) -> FeatureWeights:
    """Return the weights of scaled rows by an argument, for data of `n_features` features.

    Raises ValueError and Stopped.
    """
    if isinstance(given, str):
        if given != "learn":
            raise ValueError(f"feature_weights must be an array or 'learn', got {given!r}")
        return learn_weights_of_used(rows, labels, options, stop)
    weights = np.asarray(given, np.float64)
    if weights.shape != (n_features,):
        raise ValueError(f"feature_weights must have shape ({n_features},), got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("feature_weights must be finite and at least 0")
    return FeatureWeights(weights[: rows.n_features])  # a scaling drops constant columns at the end


train.__doc__ = described(train.__doc__, TrainOptions)


def checked_control(
    progress: Progress | None,
    stop: Stop | None,
    checkpoint: Checkpoint | None,
    init_model: Model | None,
) -> RunControl:
    """Return the control of a run. Raises TypeError for an argument of another type."""
    for name, value, kind in (
        ("progress", progress, Progress),
        ("stop", stop, Stop),
        ("checkpoint", checkpoint, Checkpoint),
        ("init_model", init_model, Model),
    ):
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name} must be a dcsvm.{kind.__name__} or None, not {value!r}")
    return RunControl(progress or default_progress(), stop or Stop(), checkpoint)


def labels_of(y: ArrayLike | None, n_rows: int, options: TrainOptions) -> np.ndarray:
    """Return the labels or targets of the training rows, zeros for one-class SVM.

    Raises ValueError.
    """
    if y is not None:
        return as_labels(y)
    if options.svm_type != "one_class":
        raise ValueError(f"{options.svm_type} needs labels or targets: y is None")
    return np.zeros(n_rows)


def test_rows_of(
    test: tuple[ArrayLike, ArrayLike] | None,
    X: ArrayLike,
    options: TrainOptions,
    scaling: Scaling | None = None,
    table: TableEncoding | None = None,
) -> TestRows | None:
    """Return the test rows of a tuple (X_test, y_test), for training rows X.

    Raises ValueError, and TypeError for anything but such a tuple.
    """
    if test is None:
        return None
    if not options.chooses_early_level:
        raise ValueError("test rows require early models whose level is searched")
    if not isinstance(test, tuple) or len(test) != 2:
        raise TypeError(f"test must be a tuple (X, y) or None, not {test!r}")
    labels = as_labels(test[1])
    if table is not None:
        parts = table.rows(Frame.of(test[0]))
        used = scaling or Scaling.identity(table.n_features, "X")
        return TestRows(used.scaled_rows(parts, "the test rows"), labels)
    rows = Rows.from_array(test[0])
    if len(labels) != rows.n_samples:
        raise ValueError(f"{rows.n_samples} test rows have {len(labels)} labels")
    shape = getattr(X, "shape", None) or np.shape(X)
    n_features = shape[1] if len(shape) == 2 else rows.n_features
    if not hasattr(test[0], "tocsr") and rows.n_features != n_features:
        raise ValueError(
            f"test rows have {rows.n_features} features, the training rows {n_features}"
        )
    if scaling is not None:
        rows = scaling.scaled_rows(Float64Parts(test[0]), "the test rows")
    return TestRows(rows, labels)


def warn_of_labels(options: TrainOptions, labels: np.ndarray) -> None:
    """Warn of labels of class_weight that no row has, or if class_weight has no effect."""
    if options.has_unused_weights:
        sentence = f"class_weight is for c_svc: it has no effect on {options.svm_type}"
        warnings.warn(sentence, stacklevel=3)
        return
    if not isinstance(options.class_weight, dict):
        return
    for label in set(options.class_weight) - set(labels.tolist()):
        warnings.warn(f"no row has the label {label!r} of class_weight", stacklevel=3)


def warn_of_report(report: TrainReport) -> None:
    """Warn if the model is not converged or incomplete."""
    if not report.converged:
        reached = "" if report.violation is None else f": violation {report.violation:.3g}"
        warnings.warn(f"not converged{reached}", stacklevel=3)
    elif report.missing:
        warnings.warn(f"stopped before the {' and '.join(report.missing)}", stacklevel=3)
