"""Score candidates (kernel, scaling, feature weights, C, gamma, epsilon) in a limited time.

A `Scorer` scores candidates on held-out rows of a sample. The `Clock` has the time limit of the
search and of the training after it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.model.figure import loss_of_best
from dcsvm.model.metrics import Outcome, chosen_metric
from dcsvm.problem.options import TrainOptions
from dcsvm.training.information import information_weights
from dcsvm.training.scores import held_out
from dcsvm.training.train import learn_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


GRACE = 2.0  # seconds for the last training if the search was stopped or no time is left
WATCHED = 0.05  # seconds between checks of the user's stop


@dataclass(eq=False)
class Clock:
    """Time limit in seconds from the start; `request` ends the current step and the search.

    The last training then has GRACE seconds. Early training is not stopped, since that would
    leave no model.
    """

    limit: float
    start: float = field(default_factory=time.perf_counter)
    is_requested: bool = False
    last_stop: _core.Stop = field(default_factory=_core.Stop)

    @property
    def used(self) -> float:
        return time.perf_counter() - self.start

    def left(self, reserve: float = 0.0) -> float:
        """Return the seconds left if so many are kept for later."""
        if math.isinf(self.limit):
            return 0.0 if self.is_requested else math.inf
        return 0.0 if self.is_requested else self.limit - reserve - self.used

    def stop(self, reserve: float = 0.0) -> _core.Stop:
        """Return a stop as soon as only `reserve` seconds are left. Raises Stopped if they are."""
        left = self.left(reserve)
        if left > 0:
            stop = self._stop_after(left)
            if not self.is_requested:  # a request from now on ends this stop
                return stop
        raise _core.Stopped("no time is left")

    def _stop_after(self, seconds: float) -> _core.Stop:
        self.last_stop = _core.Stop(seconds)
        return self.last_stop

    @property
    def left_of_last(self) -> float:
        """Seconds left for the training on all rows."""
        return max(self.left(), GRACE)

    def stop_of_last(self, *, early: bool) -> _core.Stop:
        """Return the stop of the training on all rows."""
        if early:
            return _core.Stop()
        was_requested = self.is_requested
        stop = self._stop_after(self.left_of_last)
        if self.is_requested and not was_requested:  # the request may have ended the previous stop
            stop = self._stop_after(GRACE)
        return stop

    def request(self) -> None:
        self.is_requested = True
        self.last_stop.request()

    @contextmanager
    def following(self, stop: _core.Stop | None) -> Iterator[None]:
        """Request this clock as soon as the user's stop is requested or its time is over."""
        if stop is None:
            yield
            return
        is_done = threading.Event()

        def is_stopped() -> bool:
            try:
                stop.check()
            except _core.Stopped:
                self.request()
                return True
            return False

        def watch() -> None:
            while not is_stopped() and not is_done.wait(WATCHED):
                pass

        is_stopped()  # before the search begins, not only in the watcher
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            is_done.set()
            watcher.join()


SLOPES, INFORMATION = "slopes", "information"  # kinds of feature weights
GIVEN = "given"  # the scaling of a candidate that the data set has
SCALING_NAMES = {"auto": "scale auto", "quantile": "scale quantile", GIVEN: "given scale"}
N_FOLDS = 5
MAX_HELD = 4000
TRIAL_TOLERANCE = 1e-2  # relative to the deviation of the targets


def with_metric(
    options: TrainOptions, metric: str | None, labels: np.ndarray
) -> tuple[TrainOptions, str]:
    """Return the options that all candidates share, and the metric.

    By default, it is rmse for a regression, accuracy for classes, or balanced-accuracy if their
    weights are balanced. Raises ValueError for a metric that does not fit the labels.
    """
    default = "balanced-accuracy" if options.class_weight == "balanced" else "accuracy"
    default = "rmse" if options.is_regression else default
    metric = chosen_metric(metric or default, options, labels)
    if metric == "balanced-accuracy":
        options = replace(options, class_weight="balanced")
    return options, metric


@dataclass(frozen=True)
class Candidate:
    """A setting to score.

    C and epsilon are in units of `Scorer.target_std`, `gamma` in units of 1/median. `weighting` is
    the kind of feature weights; None means no weights. SLOPES are learned with the candidate
    `source`.
    """

    kernel: str
    scale: str
    C: float
    gamma: float
    epsilon: float | None = None
    weighting: str | None = None
    source: Candidate | None = None


WeightKey = tuple[str, str, str, Candidate | None, int]  # weighting, kernel, scale, source, fold


@dataclass(frozen=True)
class Trial:
    """A candidate with its loss on `n_held` held-out rows, and the standard error of the loss.

    `options` train the model of all rows, scaled and weighted as the candidate says. `outcomes` has
    the predictions of the held-out rows, in the order of the rows, for each time the rows were
    divided into folds. `fold_seconds` is the mean time of a fold, to train and predict, without
    `weight_seconds`, the time to find feature weights.
    """

    candidate: Candidate
    options: TrainOptions
    loss: float
    error: float
    outcomes: tuple[Outcome, ...]
    fold_seconds: float
    weight_seconds: float = 0.0

    @staticmethod
    def of(
        candidate: Candidate,
        options: TrainOptions,
        metric: str,
        outcomes: tuple[Outcome, ...],
        fold_seconds: float,
        weight_seconds: float = 0.0,
    ) -> Trial:
        """Make a trial of one or more outcomes."""
        losses = [loss_of_best(metric, [[one]], 0) for one in outcomes]
        loss, error = map(float, np.mean(losses, axis=0))
        return Trial(candidate, options, loss, error, outcomes, fold_seconds, weight_seconds)

    @property
    def n_held(self) -> int:
        return len(self.outcomes[0].labels)

    @property
    def rmse(self) -> float:
        """Root mean squared error of a regression."""
        return float(np.mean([loss_of_best("rmse", [[one]], 0)[0] for one in self.outcomes]))

    def again(self, metric: str, other: Trial) -> Trial:
        """Return this trial with the outcomes of other folds of the same rows."""
        outcomes, seconds = (*self.outcomes, *other.outcomes), self.fold_seconds
        return Trial.of(
            self.candidate, self.options, metric, outcomes, seconds, self.weight_seconds
        )

    @property
    def rank(self) -> tuple[float, float, float]:
        """Ties go to the smaller gamma, then the smaller C."""
        return self.loss, self.candidate.gamma, self.candidate.C


PARTS_OF_SAMPLE = 16  # a sample is drawn in whole parts of this many, stratified by class


def sampled(rows: np.ndarray, labels: np.ndarray, options: TrainOptions, n_rows: int) -> np.ndarray:
    """Draw about `n_rows` of the rows int64 (n,), stratified by class; ascending, if `rows` are."""
    if len(rows) <= n_rows:
        return rows
    n_rows = max(n_rows, 1)
    n_parts = min(PARTS_OF_SAMPLE * -(-len(rows) // n_rows), len(rows))
    n_taken = max(n_parts * n_rows // len(rows), 1)
    part = options.fold_of_rows(labels[rows], n_parts)
    # evenly spaced parts: the rows of a rare class are in successive ones
    return rows[part * n_taken % n_parts < n_taken]


def scaled_as(data: Dataset, scale: str, feature_weights: ArrayLike | None) -> Dataset:
    """Return a data set in a scaling, with given weights."""
    scaled = data if scale == GIVEN else data.scaled(scale)
    return scaled if feature_weights is None else scaled.weighted(feature_weights)


def weights_of_loss(
    data: Dataset, options: TrainOptions, *, counts_classes: bool
) -> np.ndarray | None:
    """Return the weights of rows in losses (n,), None if all are 1.

    They are the sample weights, times the class weights with `counts_classes`.
    """
    weights = data.sample_weight
    if counts_classes and isinstance(options.class_weight, dict):
        labels, classes = np.unique(data.labels, return_inverse=True)
        factors = np.array([options.class_weight.get(label, 1.0) for label in labels.tolist()])
        of_rows = factors[classes]
        weights = of_rows if weights is None else weights * of_rows
    return weights


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores candidates by a metric on held-out rows of a sample, `data`.

    `options` are those that all candidates share. `target_std` is the standard deviation of the
    targets of a regression, and 1 for classes: C and epsilon are multiplied by it, as is the
    tolerance if it exceeds 1 (below 1, it is the violation scale).
    `fold` int64 (n,) is the fold that holds out each row. The first `n_folds` of at most
    `max_folds` folds are used. `weights_of_loss` (n,) count in losses: sample weights, and class
    weights if no metric was asked for; None if all rows count 1.
    `chosen` int64 (n,) are the indices of the rows of the sample in the whole data set.
    """

    data: Dataset
    options: TrainOptions
    metric: str
    target_std: float
    fold: np.ndarray
    max_folds: int
    chosen: np.ndarray
    feature_weights: ArrayLike | None = None
    weights_of_loss: np.ndarray | None = None
    n_folds: int = 1
    _scaled: dict[str, Dataset] = field(default_factory=dict)
    _weights: dict[WeightKey, tuple[np.ndarray, float]] = field(default_factory=dict)

    @staticmethod
    def of(
        data: Dataset,
        options: TrainOptions,
        metric: str,
        n_rows: int,
        feature_weights: ArrayLike | None = None,
        weights_of_loss: np.ndarray | None = None,
        rows: np.ndarray | None = None,
    ) -> Scorer:
        """Make a scorer on about `n_rows` of the rows of a data set, by default of all."""
        target_std = float(np.std(data.labels)) if options.is_regression else 1.0
        chosen = np.arange(data.n_rows) if rows is None else rows
        chosen = sampled(chosen, data.labels, options, n_rows)
        data = data if len(chosen) == data.n_rows else data.take(chosen)
        n = data.n_rows
        max_folds = max(min(N_FOLDS, n), 2, -(-n // MAX_HELD))
        fold = replace(options, seed=options.seed + 1).fold_of_rows(data.labels, max_folds)
        max_folds = min(max_folds, N_FOLDS)
        of_loss = None if weights_of_loss is None else weights_of_loss[chosen]
        return Scorer(
            data, options, metric, target_std or 1.0, fold, max_folds, chosen, feature_weights,
            of_loss,
        )  # fmt: skip

    def with_folds(self, n_folds: int) -> Scorer:
        """Return a scorer that uses more or fewer of the same folds."""
        return replace(self, n_folds=n_folds)

    def divided_again(self, times: int, n_folds: int) -> Scorer:
        """Return a scorer on the same rows in other, at least `n_folds` folds.

        `times` counts the divisions before.
        """
        n_folds = max(min(n_folds, len(self.fold)), self.max_folds)
        again = replace(self.options, seed=self.options.seed + 1 + times)
        fold = again.fold_of_rows(self.data.labels, n_folds)
        return replace(self, fold=fold, max_folds=n_folds, n_folds=n_folds, _weights={})

    @property
    def holds_out_all(self) -> bool:
        """Whether each row is held out by one of the folds."""
        return self.n_folds > int(self.fold.max())

    @property
    def n_trained(self) -> int:
        """Number of training rows of a fold."""
        return int(np.count_nonzero(self.fold != 0))

    @property
    def n_held(self) -> int:
        """Number of held-out rows."""
        return int(np.count_nonzero(self.fold < self.n_folds))

    def options_of(self, candidate: Candidate) -> TrainOptions:
        """Return training options; gamma is relative to the median distance."""
        gamma = f"{candidate.gamma!r}/median"
        C = candidate.C * self.target_std
        options = replace(self.options, kernel=candidate.kernel, C=C, gamma=gamma)
        if candidate.epsilon is None:
            return options
        epsilon = candidate.epsilon * self.target_std
        tolerance = options.tolerance * max(1.0, self.target_std)
        return replace(options, epsilon=epsilon, tolerance=tolerance)

    def scaled(self, scale: str) -> Dataset:
        """Return the rows in a scaling, dense ones as floats."""
        if scale not in self._scaled:
            scaled = scaled_as(self.data, scale, self.feature_weights)
            self._scaled[scale] = scaled.as_floats()
        return self._scaled[scale]

    def weights(self, candidate: Candidate, fold: int, stop: _core.Stop) -> np.ndarray:
        """Find the weights of a candidate by the training rows of a fold, by all for fold -1.

        They are kept: weights of the folds that scored a trial are not learned again.
        """
        key = self._key(candidate, fold)
        if key not in self._weights:
            begin = time.perf_counter()
            trained = np.flatnonzero(self.fold != fold) if fold >= 0 else np.arange(len(self.fold))
            found = self._found_weights(candidate, trained, stop)
            self._weights[key] = found, time.perf_counter() - begin
        return self._weights[key][0]

    @staticmethod
    def _key(candidate: Candidate, fold: int) -> WeightKey:
        assert candidate.weighting is not None
        return candidate.weighting, candidate.kernel, candidate.scale, candidate.source, fold

    def _found_weights(
        self, candidate: Candidate, trained: np.ndarray, stop: _core.Stop
    ) -> np.ndarray:
        data, counts = self.scaled(candidate.scale), self.data.sample_weight
        rows, labels = data.rows.take(trained), self.data.labels[trained]
        counts = None if counts is None else counts[trained]
        if candidate.weighting == INFORMATION:
            return information_weights(
                rows, labels, candidate.kernel, table=data.table,
                is_regression=self.options.is_regression, counts=counts, stop=stop,
            )  # fmt: skip
        assert candidate.source is not None
        options = self.options_of(candidate.source)
        return learn_weights(rows, labels, options, stop, sample_weight=counts)

    def trial(self, candidate: Candidate, stop: _core.Stop) -> Trial:
        """Score a candidate. Raises Stopped."""
        options = self.options_of(candidate)
        tolerance = max(TRIAL_TOLERANCE * max(1.0, self.target_std), options.tolerance)
        loose = replace(options, tolerance=tolerance, probability=False)
        begin, of_weights = time.perf_counter(), [0.0]

        def parts() -> Iterator[tuple[Dataset, np.ndarray]]:
            for fold in range(self.n_folds):
                data, start = self.scaled(candidate.scale), time.perf_counter()
                if candidate.weighting is not None:  # without the fold that is held out
                    weights = self.weights(candidate, fold, stop)
                    data = data.weighted(weights, np.arange(len(weights)))
                of_weights.append(time.perf_counter() - start)
                yield data, self.fold == fold

        outcome = held_out(parts(), loose, stop, metric=self.metric, weights=self.weights_of_loss)
        per_fold = (time.perf_counter() - begin - sum(of_weights)) / self.n_folds
        found = 0.0
        if candidate.weighting is not None:
            keys = [self._key(candidate, fold) for fold in range(self.n_folds)]
            found = max(self._weights[key][1] for key in keys)
        return Trial.of(candidate, options, self.metric, (outcome,), per_fold, found)
