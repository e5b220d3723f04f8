"""Score candidates (kernel, scaling, feature weights, C, gamma, epsilon) on held-out rows."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.machine import usable_threads
from dcsvm.model.metrics import loss_of
from dcsvm.model.model import Model
from dcsvm.model.predict import decision_values, predicted_from
from dcsvm.problem.data_gamma import EqualRowsError
from dcsvm.problem.option_table import CLASS_METRICS, CLASSIFIERS, REGRESSION_METRICS
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.task import class_order
from dcsvm.solving.checkpoint import RunControl
from dcsvm.solving.report import Progress
from dcsvm.training.feature_weights import learn_weights
from dcsvm.training.fit import fit
from dcsvm.training.held_out import fold_numbers
from dcsvm.training.probability import fit_sigmoid, sigmoid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

GIVEN = "given"  # the scaling of a candidate that the data set has
SCALING_NAMES = {"auto": "ranges", "quantile": "quantiles", GIVEN: "given"}
PERCENTAGES = ("accuracy", "balanced-accuracy", "f1", "auc")
N_FOLDS = 5
MAX_HELD = 4000
N_DRAWN = 50  # bootstrap samples of a standard error
METRICS_OF_VALUES = ("auc", "log-loss")
TRIAL_TOLERANCE = 1e-2  # relative to the unit of the targets


@dataclass(frozen=True)
class Problem:
    """What all candidates share.

    `unit` is the standard deviation of the targets of a regression, and 1 for classes: C, epsilon
    and the tolerance are multiplied by it.
    """

    metric: str
    unit: float
    options: TrainOptions

    @staticmethod
    def of(labels: np.ndarray, metric: str | None, options: TrainOptions) -> Problem:
        """Make the problem of labels. Raises ValueError for a metric that does not fit them."""
        is_regression = options.svm_type == "epsilon_svr"
        if not is_regression:
            class_order(labels)  # raises an error for a single class
        metric = metric or ("rmse" if is_regression else "accuracy")
        possible = REGRESSION_METRICS if is_regression else CLASS_METRICS
        if metric not in possible:
            kind = "a regression" if is_regression else "classes"
            raise ValueError(f"the metric of {kind} must be one of {', '.join(possible)}, "
                             f"got {metric!r}")  # fmt: skip
        if metric in METRICS_OF_VALUES and len(np.unique(labels)) != 2:
            raise ValueError(f"the metric {metric} needs two classes")
        if metric == "balanced-accuracy":
            options = replace(options, class_weight="balanced")
        unit = float(np.std(labels)) if is_regression else 1.0
        return Problem(metric, unit or 1.0, options)

    @property
    def is_regression(self) -> bool:
        return self.options.svm_type == "epsilon_svr"


@dataclass(frozen=True)
class Candidate:
    """A setting; C and epsilon are in units of `Problem.unit`, `gamma` in units of 1/median.

    `source` is the candidate that the feature weights are learned with; None means no weights.
    """

    kernel: str
    scale: str
    C: float
    gamma: float
    epsilon: float | None = None
    source: Candidate | None = None

    @property
    def scaling_name(self) -> str:
        return SCALING_NAMES[self.scale]

    def options(self, problem: Problem) -> TrainOptions:
        """Return the training options, with gamma relative to the median distance."""
        chosen = replace(
            problem.options, kernel=self.kernel, C=self.C * problem.unit,
            gamma=f"{self.gamma!r}/median",
        )  # fmt: skip
        if problem.is_regression:
            assert self.epsilon is not None
            tolerance = problem.options.tolerance * problem.unit
            return replace(chosen, epsilon=self.epsilon * problem.unit, tolerance=tolerance)
        return chosen


@dataclass(frozen=True, eq=False)
class Outcome:
    """Labels and predictions of held-out rows (n,), and decision values for two classes (n,)."""

    labels: np.ndarray
    predicted: np.ndarray
    values: np.ndarray | None

    @staticmethod
    def joined(several: list[Outcome]) -> Outcome:
        labels, predicted = (
            np.concatenate([getattr(one, name) for one in several])
            for name in ("labels", "predicted")
        )
        values = [one.values for one in several if one.values is not None]
        return Outcome(
            labels, predicted, np.concatenate(values) if len(values) == len(several) else None
        )

    @property
    def rmse(self) -> float:
        """Root mean squared error of a regression, nan for classes."""
        if self.predicted.dtype.kind == "U" or self.values is not None:
            return np.nan
        return float(np.sqrt(np.mean((self.labels - self.predicted) ** 2)))

    def scored(self, metric: str) -> tuple[float, float]:
        """Return the loss of a metric and its bootstrap standard error."""
        probabilities = None
        if metric == "log-loss":  # of the sigmoid that fits these decision values best
            assert self.values is not None
            is_first = self.labels == self.labels.min()
            slope, offset = fit_sigmoid(self.values, is_first)
            first = sigmoid(self.values, slope, offset)
            probabilities = np.column_stack([first, 1 - first])
        everything = np.arange(len(self.labels))
        rng = np.random.default_rng(0)
        losses = []
        for some in [everything, *rng.integers(0, len(everything), (N_DRAWN, len(everything)))]:
            values, of_classes = (
                None if one is None else one[some] for one in (self.values, probabilities)
            )
            loss = loss_of(metric, self.labels[some], self.predicted[some], values, of_classes)
            losses.append(loss)
        return losses[0], float(np.nanstd(losses[1:]))


def scaled_as(data: Dataset, scale: str, feature_weights: ArrayLike | None) -> Dataset:
    """Return a data set in a scaling, with given weights."""
    scaled = data if scale == GIVEN else data.scaled(scale)
    return scaled if feature_weights is None else scaled.weighted(feature_weights)


def described_loss(metric: str, loss: float, error: float) -> str:
    """Format a loss: the metric, its value, and its standard error."""
    if metric in PERCENTAGES:
        return f"{metric} {100 * (1 - loss):.2f} +- {100 * error:.2f} %"
    return f"{metric} {1 - loss if metric == 'r2' else loss:.5g} +- {error:.2g}"


def held_out(
    data: Dataset, is_held: np.ndarray, options: TrainOptions, stop: _core.Stop
) -> Outcome:
    """Train on the other rows and predict the held-out ones. Raises Stopped."""
    trained, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
    labels, weights = data.labels[held], data.sample_weight
    first = data.labels[trained][:1]
    if options.svm_type in CLASSIFIERS and np.all(data.labels[trained] == first):
        return Outcome(labels, np.repeat(first, len(held)), None)
    own = Dataset(
        data.rows.take(trained), data.labels[trained],
        sample_weight=None if weights is None else weights[trained],
    )  # fmt: skip
    control = RunControl(Progress(), stop)
    try:
        model = fit(own, options, control)
    except EqualRowsError:  # K is 1 for any gamma
        model = fit(own, replace(options, gamma=1.0), control)
    if model.report.stopped:
        raise _core.Stopped
    threads = usable_threads(options.threads)
    values = decision_values(model, data.rows.take(held), None, threads)
    return Outcome(labels, predicted_from(model, values), _first_sign(model, values))


@dataclass(frozen=True)
class Trial:
    """A candidate with its loss on held-out rows and its standard error.

    `seconds` were spent to train and predict, without learning weights. `rmse` is the root mean
    squared error of a regression, nan for classes.
    """

    candidate: Candidate
    loss: float
    error: float
    rmse: float
    seconds: float

    @property
    def rank(self) -> tuple[float, float, float]:
        """Ties go to the smaller gamma, then the smaller C."""
        return self.loss, self.candidate.gamma, self.candidate.C


@dataclass(eq=False)
class Sample:
    """Rows to score candidates on, in the scalings that were asked for.

    `fold` int64 (n,) is the fold that holds out each row. The first `n_folds` of at most
    `max_folds` folds are used. Trainings count sample weights, losses do not.
    """

    data: Dataset
    problem: Problem
    fold: np.ndarray
    max_folds: int
    feature_weights: ArrayLike | None = None
    n_folds: int = 1
    stop: _core.Stop = field(default_factory=_core.Stop)
    _scaled: dict[str, Dataset] = field(default_factory=dict)
    _weights: dict[tuple[Candidate, int], np.ndarray] = field(default_factory=dict)

    @staticmethod
    def of(
        data: Dataset, problem: Problem, n_rows: int, feature_weights: ArrayLike | None = None
    ) -> Sample:
        """Sample about `n_rows` rows, stratified by class."""
        seed, n = problem.options.seed, data.n_rows
        if n > n_rows:
            classes = None if problem.is_regression else data.labels
            fold = fold_numbers(classes, n, -(-n // n_rows), seed)
            data = data.take(np.flatnonzero(fold == 0))
            n = data.n_rows
        max_folds = max(min(N_FOLDS, n), 2, -(-n // MAX_HELD))
        classes = None if problem.is_regression else data.labels
        fold = fold_numbers(classes, n, max_folds, seed + 1)
        return Sample(data, problem, fold, min(max_folds, N_FOLDS), feature_weights)

    @property
    def n_trained(self) -> int:
        """Number of training rows of a fold."""
        return int(np.count_nonzero(self.fold != 0))

    def scaled(self, scale: str) -> Dataset:
        """Return the rows in a scaling, dense ones as floats."""
        if scale not in self._scaled:
            scaled = scaled_as(self.data, scale, self.feature_weights)
            self._scaled[scale] = scaled.as_floats()
        return self._scaled[scale]

    def weights(self, source: Candidate, fold: int) -> np.ndarray:
        """Learn weights from the training rows of a fold, from all rows for fold -1.

        They are kept: weights of the folds that scored a trial are not learned again.
        """
        key = source, fold
        if key not in self._weights:
            chosen = np.flatnonzero(self.fold != fold) if fold >= 0 else np.arange(len(self.fold))
            rows = self.scaled(source.scale).rows.take(chosen)
            options, labels = source.options(self.problem), self.data.labels[chosen]
            self._weights[key] = learn_weights(rows, labels, options, self.stop)
        return self._weights[key]

    @property
    def n_held(self) -> int:
        """Number of held-out rows."""
        return int(np.count_nonzero(self.fold < self.n_folds))

    def trial(self, candidate: Candidate) -> Trial:
        """Score a candidate. Raises Stopped."""
        options = candidate.options(self.problem)
        tolerance = max(TRIAL_TOLERANCE * self.problem.unit, options.tolerance)
        options = replace(options, tolerance=tolerance)
        several, seconds = [], 0.0
        for fold in range(self.n_folds):
            data = self.scaled(candidate.scale)
            if candidate.source is not None:
                weights = self.weights(candidate.source, fold)
                data = data.weighted(weights, np.arange(len(weights)))
            start = time.perf_counter()
            several.append(held_out(data, self.fold == fold, options, self.stop))
            seconds += time.perf_counter() - start
        outcome = Outcome.joined(several)
        loss, error = outcome.scored(self.problem.metric)
        return Trial(candidate, loss, error, outcome.rmse, seconds)


def _first_sign(model: Model, values: np.ndarray) -> np.ndarray | None:
    """Return decision values that are positive for the smaller label of two, else None."""
    if len(model.labels) != 2:
        return None
    return values[:, 0] if model.labels[0] < model.labels[1] else -values[:, 0]
