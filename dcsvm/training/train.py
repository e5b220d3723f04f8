"""The function `dcsvm.train`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm._core import Stop
from dcsvm.data.dataset import Dataset, as_dataset
from dcsvm.data.scaling import Scaling
from dcsvm.model.model import Model
from dcsvm.problem.option_table import described, label_text
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.task import check_labels
from dcsvm.solving.checkpoint import Checkpoint, RunControl
from dcsvm.solving.report import Progress
from dcsvm.training.bar import default_progress
from dcsvm.training.feature_weights import with_weights
from dcsvm.training.fit import fit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def train(  # noqa: PLR0913 (a public function with keyword parameters)
    X: ArrayLike | Dataset,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    progress: Progress | None = None,
    stop: Stop | None = None,
    checkpoint: Checkpoint | None = None,
    init_model: Model | None = None,
    test: tuple[ArrayLike, ArrayLike] | Dataset | None = None,
    scale: str | Scaling | None = None,
    feature_weights: ArrayLike | str | None = None,
    **options: Any,
) -> Model:
    """Train a support vector machine by divide and conquer.

    Parameters
    ----------
    X : array, scipy sparse matrix, data frame of shape (n, d), or dcsvm.Dataset
        Training rows, as for `dcsvm.Dataset`: numbers, or columns of numbers, booleans and text,
        also with missing values. Rows to predict are alike; the columns of a data frame may have
        another order. With kernel="precomputed", the symmetric kernel matrix (n, n); rows to
        predict are then their kernel values with the training rows.
    y : array of shape (n,), optional
        Labels, numbers or strings, or the targets of a regression. Not used by one-class SVM. A
        Dataset has its own.
    sample_weight : array of shape (n,), optional
        Nonnegative weights: a row counts as that many copies of itself. 1 by default, or those of
        a Dataset.
    progress : dcsvm.Progress, optional
        Its methods are called as training proceeds. The default is a bar in notebooks and on
        terminals, if training takes over two seconds; a plain dcsvm.Progress() shows nothing.
    stop : dcsvm.Stop, optional
        Ends training early, on request or after a time limit; the current model is returned.
    checkpoint : dcsvm.Checkpoint, optional
        Stores the state of the run, so that another process can resume it.
    init_model : dcsvm.Model, optional
        Warm start from a model of the same rows, or of the first of them.
    test : tuple (X, y) or Dataset, optional
        Test rows that choose the early level, if training searches for it.
    scale : {"auto", "quantile"} or a scaling, optional
        Scale the features: to [-1, 1], or to a normal distribution by the ranks of their values, or
        as other data, by the attribute `scaling` of a model or a Dataset. The model has the scaling
        and applies it to the rows it predicts.
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
    data, settings, control = checked_input(
        X, y, options, sample_weight=sample_weight, scale=scale, progress=progress, stop=stop,
        checkpoint=checkpoint, init_model=init_model,
    )  # fmt: skip
    if test is not None and not settings.chooses_early_level:
        raise ValueError("test rows require early models whose level is searched")
    model = train_dataset(
        data, settings, control,
        init_model=init_model, test=as_test_rows(test, data), feature_weights=feature_weights,
    ).with_own_rows()  # fmt: skip
    caveat = model.report.caveat(settings.tolerance, settings.gap)
    if caveat:
        control.progress.caveat(model.report, caveat)
    return model


def train_dataset(
    data: Dataset,
    options: TrainOptions,
    control: RunControl,
    *,
    init_model: Model | None = None,
    test: Dataset | None = None,
    feature_weights: ArrayLike | str | None = None,
) -> Model:
    """Train a model of a data set, with the arguments of `train`. Raises ValueError and Stopped."""
    if test is not None:
        options = options.choosing_by_test()
    for sentence in label_warnings(options, data.labels):
        control.progress.warn(sentence)
    weighted = with_weights(data, feature_weights, options, control.stop)
    if test is not None:
        test = test.encoded_as(weighted)
    return fit(weighted, options, control, init_model=init_model, test=test)


train.__doc__ = described(train.__doc__, TrainOptions)


def checked_input(  # noqa: PLR0913 (the arguments of train)
    X: ArrayLike | Dataset,
    y: ArrayLike | None,
    options: dict[str, Any],
    *,
    sample_weight: ArrayLike | None,
    scale: str | Scaling | None,
    progress: Progress | None,
    stop: Stop | None,
    checkpoint: Checkpoint | None = None,
    init_model: Model | None = None,
) -> tuple[Dataset, TrainOptions, RunControl]:
    """Return the data, the training options and the control of a run; see `train`.

    Raises ValueError for invalid input, TypeError for an argument of another type.
    """
    settings = TrainOptions.of(**options)
    for name, value, kind in (
        ("progress", progress, Progress),
        ("stop", stop, Stop),
        ("checkpoint", checkpoint, Checkpoint),
        ("init_model", init_model, Model),
    ):
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name} must be a dcsvm.{kind.__name__} or None, not {value!r}")
    control = RunControl(progress or default_progress(), stop or Stop(), checkpoint)
    data = as_dataset(X, y, sample_weight=sample_weight, scale=scale)
    if not data.has_labels and settings.svm_type != "one_class":
        raise ValueError(f"{settings.svm_type} needs labels or targets: y is None")
    if settings.svm_type != "one_class":
        check_labels(data.labels, settings)
    if settings.kernel_type.is_precomputed:
        data.check_kernel_values()
    return data, settings, control


def as_test_rows(
    test: tuple[ArrayLike, ArrayLike] | Dataset | None, data: Dataset
) -> Dataset | None:
    """Return test rows, encoded as the training rows.

    Raises ValueError, and TypeError for anything but a Dataset or a tuple (X, y).
    """
    if test is None:
        return None
    if isinstance(test, Dataset):
        test.check_is_here()
        rows = test.encoded_as(data)
    elif isinstance(test, tuple) and len(test) == 2:
        rows = Dataset(*test, like=data)
        is_short = rows.n_features != data.n_features and data.table is None
        if is_short and not hasattr(test[0], "tocsr"):
            raise ValueError(
                f"test rows have {rows.n_features} features, the training rows {data.n_features}"
            )
    else:
        raise TypeError(f"test must be a tuple (X, y), a dcsvm.Dataset or None, not {test!r}")
    if not rows.has_labels:
        raise ValueError("test rows need labels")
    if (rows.labels.dtype.kind == "U") != (data.labels.dtype.kind == "U"):
        kinds = ["strings" if one.labels.dtype.kind == "U" else "numbers" for one in (rows, data)]
        raise ValueError(f"the labels of test rows are {kinds[0]}, those to train {kinds[1]}")
    return rows


def label_warnings(options: TrainOptions, labels: np.ndarray) -> Iterator[str]:
    """Yield warnings of class weights without effect."""
    if options.has_unused_weights:
        yield f"class weights are for C-SVC: they have no effect on {options.svm_type}"
    elif isinstance(options.class_weight, dict):
        for label in options.class_weight:
            if label not in labels:
                yield f"no row has the label {label_text(label)}, which has a class weight"
