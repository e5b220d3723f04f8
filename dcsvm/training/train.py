"""The function `dcsvm.train`, and feature weights, which it learns.

Weights are learned from the change of decision values when a feature is permuted. The new weight of
feature j is its old weight times
(E[(f(x with x'_j) - f(x))^2] / E[(x_j - x'_j)^2])^(p/2), where x' is another row. The ratio is the
mean squared slope of the decision values. For several classes, squared changes are summed over the
class pairs. Several powers p, and training without weights, are compared on held-out rows.

Weights are normalised to keep the median distance of the rows, so gamma keeps its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm import _core
from dcsvm._core import Stop
from dcsvm.data.arrays import has_label, slices
from dcsvm.data.dataset import Dataset, as_dataset
from dcsvm.data.rows import Rows, Storage, stacked
from dcsvm.data.scaling import Scaling
from dcsvm.data.used_columns import narrowed
from dcsvm.kernel.distances import median_distance
from dcsvm.kernel.kernels import DEGREES, Kernel
from dcsvm.machine import usable_threads
from dcsvm.model.metrics import DEFINITIONS, Outcome
from dcsvm.model.model import Model
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.formulation import check_labels
from dcsvm.problem.option_table import checked_metric, described, label_text
from dcsvm.problem.options import LEARN, OptionError, TrainOptions
from dcsvm.training.fit import fit
from dcsvm.training.report import Progress, default_progress
from dcsvm.training.state import Checkpoint, RunControl

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


MAX_FEATURES = 1000
# On covtype, spambase and magic, 4000 rows and the tolerance 1e-3 give the same error rate within
# 0.3 percentage points, for two to three times as many kernel values.
LEARNING_ROWS, HELD_SHARE, TOLERANCE = 3000, 0.25, 0.1
# Results of 50 rows correlate 0.93 to 0.99 with results of all rows; of 200 rows, 0.994. With more
# features, fewer rows are permuted.
MIN_PERMUTED, MAX_PERMUTED, PERMUTED_VALUES = 50, 300, 30_000
POWERS = (0.5, 1.0)
BATCH_VALUES = 2**22  # feature values in a batch of permuted rows


def _sampled(
    rows: Rows, labels: np.ndarray, sample_weight: np.ndarray | None, seed: int
) -> tuple[Dataset, Dataset]:
    """Draw rows to learn from, and rows to compare weights on, none of weight 0."""
    counted = np.arange(rows.n_samples) if sample_weight is None else np.flatnonzero(sample_weight)
    chosen = np.random.default_rng(seed).permutation(counted)[:LEARNING_ROWS]
    n_held_out = int(HELD_SHARE * len(chosen))
    held_out, learning = np.sort(chosen[:n_held_out]), np.sort(chosen[n_held_out:])
    floats = rows.take(np.concatenate([learning, held_out])).in_storage(Storage.FLOATS)
    first, second = slice(0, len(learning)), slice(len(learning), len(chosen))

    def part(place: slice, own: np.ndarray) -> Dataset:
        counts = None if sample_weight is None or len(own) == 0 else sample_weight[own]
        return Dataset(floats.part(place), labels[own], sample_weight=counts)

    return part(first, learning), part(second, held_out)


def with_weights(
    data: Dataset, given: ArrayLike | str | None, options: TrainOptions, stop: _core.Stop
) -> Dataset:
    """Return a data set with feature weights: none, those of an array, or learned ones.

    Raises ValueError and Stopped.
    """
    if given is None:
        return data
    options.check_feature_weights(given)
    if not options.learns_weights(given):
        return data.weighted(given)
    values, columns = learn_weights_of_used(
        data.rows, data.labels, options, stop, sample_weight=data.sample_weight
    )
    return data.weighted(values, columns)


def with_weights_and_gamma(
    data: Dataset, given: ArrayLike | str | None, options: TrainOptions, stop: _core.Stop
) -> tuple[Dataset, TrainOptions]:
    """Return `with_weights`, and the options with the gamma of the rows before weighting."""
    options = number_of_gamma(options, data.rows, table=data.table)
    return with_weights(data, given, options, stop), options


def learn_weights_of_used(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    stop: _core.Stop | None = None,
    *,
    sample_weight: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Learn weights as `learn_weights`; of many features, only of columns with nonzero values.

    Returns the weights and their columns, ascending.
    """
    if rows.n_features <= MAX_FEATURES:
        every = np.arange(rows.n_features)
        return learn_weights(rows, labels, options, stop, sample_weight=sample_weight), every
    if rows.is_dense:
        is_used = np.zeros(rows.n_features, bool)
        for batch in rows.slices():
            is_used |= rows.part(batch).features.any(axis=0)
        used = np.flatnonzero(is_used)
    else:
        used = np.unique(rows.csr.indices)
    narrow = narrowed(rows, used)
    return learn_weights(narrow, labels, options, stop, sample_weight=sample_weight), used


class _Unwarned(Progress):
    """Progress of trainings on a sample: the warnings come with the training on all rows."""

    def warn(self, sentence: str) -> None:
        """Show no warning."""


def learn_weights(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    stop: _core.Stop | None = None,
    *,
    sample_weight: np.ndarray | None = None,
) -> np.ndarray:
    """Learn feature weights for a distance-based kernel, float64 (n_features,).

    All weights are 1 unless other weights have a smaller loss on held-out rows. The loss is the
    error rate, or the squared error of a regression, and counts sample weights (n,). Raises
    ValueError and Stopped.
    """
    options.check_feature_weights(LEARN)
    if rows.n_features > MAX_FEATURES:
        reason = f"can be learned for at most {MAX_FEATURES} features, got {rows.n_features}"
        raise OptionError("feature_weights", reason)
    options = replace(options, early=False, early_level=None, probability=False)
    learning, held_out = _sampled(rows, labels, sample_weight, options.seed)
    none = np.ones(rows.n_features)
    # without held-out rows, classes or differences there is nothing to compare
    if len(held_out.labels) == 0 or len(np.unique(learning.labels)) < 2:
        return none
    if not learning.rows.unlike(learning.rows.part(slice(0, 1))).any():
        return none
    kernel = Kernel(options.kernel)  # only its distance is used
    options = replace(options, tolerance=_loose_tolerance(options, learning.labels))
    control = RunControl(_Unwarned(), stop or _core.Stop())
    sample = learning, held_out
    # compare powers of the slopes of a model without weights
    model, loss = _trained(sample, none, options, control)
    best, best_loss, best_power = none, loss, 0.0
    slopes = _slopes(model, held_out.rows, options)
    for power in POWERS:
        weights = normalised_weights(slopes ** (power / 2), learning.rows, kernel)
        candidate, loss = _trained(sample, weights, options, control)
        if loss < best_loss:
            best, best_loss, best_power, model = weights, loss, power, candidate
    # where the largest power is best, slopes of its model may say more
    if best_power == POWERS[-1]:
        slopes = _slopes(model, held_out.rows.weighted(best), options)
        weights = normalised_weights(best * slopes ** (best_power / 2), learning.rows, kernel)
        _, loss = _trained(sample, weights, options, control)
        best = weights if loss < best_loss else best
    return best


def _loose_tolerance(options: TrainOptions, labels: np.ndarray) -> float:
    """Return the tolerance of the trainings, relative to the targets of a regression."""
    if options.svm_type == "c_svc":
        return max(options.tolerance, TOLERANCE)
    if options.svm_type == "epsilon_svr":
        return max(options.tolerance, TOLERANCE * max(1.0, float(np.std(labels))))
    return options.tolerance


def _trained(
    sample: tuple[Dataset, Dataset],
    weights: np.ndarray,
    options: TrainOptions,
    control: RunControl,
) -> tuple[Model, float]:
    """Train on weighted rows. Returns the model and its loss on the held-out rows."""
    learning, held_out = sample
    weighted = Dataset(
        learning.rows.weighted(weights), learning.labels, sample_weight=learning.sample_weight
    )
    model = fit(weighted, options, control)
    if model.report.stopped:
        raise _core.Stopped
    threads = usable_threads(options.threads)
    predicted = model.predictions(held_out.rows.weighted(weights), None, threads)
    metric = DEFINITIONS[checked_metric(None, options.svm_type)]
    counts = held_out.sample_weight
    return model, metric.loss(Outcome(held_out.labels, predicted, weights=counts))


def _slopes(model: Model, rows: Rows, options: TrainOptions) -> np.ndarray:
    """Compute the mean squared slope of decision values in each feature, float64 (d,)."""
    rng = np.random.default_rng(options.seed)
    n_permuted = min(max(PERMUTED_VALUES // rows.n_features, MIN_PERMUTED), MAX_PERMUTED)
    X = rows.take(rng.permutation(rows.n_samples)[:n_permuted]).features
    others = X[rng.permutation(len(X))]
    threads = usable_threads(options.threads)
    # decision values before, and with one feature of another row
    values = model.pair_values(Rows.from_array(X), None, threads).reshape(len(X), -1)
    slopes = np.zeros(X.shape[1])
    gaps = np.mean((X.astype(np.float64) - others) ** 2, axis=0)
    for batch in slices(X.shape[1], max(BATCH_VALUES // X.size, 1)):
        changed = []
        for j in range(batch.start, batch.stop):
            permuted = X.copy()
            permuted[:, j] = others[:, j]
            changed.append(Rows.from_array(permuted))
        found = model.pair_values(stacked(*changed), None, threads)
        changes = found.reshape(len(changed), len(X), -1) - values
        slopes[batch] = (changes**2).sum(axis=2).mean(axis=1)
    return np.divide(slopes, gaps, out=np.zeros_like(slopes), where=gaps > 0)


def normalised_weights(weights: np.ndarray, rows: Rows, kernel: Kernel) -> np.ndarray:
    """Scale weights to keep the median distance of the rows, so that gamma keeps its meaning.

    Returns ones if the distance is 0.
    """
    before = median_distance(rows, kernel, 1)
    after = median_distance(rows.weighted(weights), kernel, 1)
    if not (before > 0 and after > 0):
        return np.ones(len(weights))
    return weights * (before / after) ** (1 / DEGREES[kernel.type.argument])


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
    data = data.shifted(settings.kernel_type, control.progress.warn, init_model)
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
    # data are checked last: that takes time
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
    is_known = has_label(rows.labels)
    if not is_known.all():  # rows of a file may lack them
        rows = rows.take(np.flatnonzero(is_known))
    # else no label could match
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
