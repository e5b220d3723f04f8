"""Score candidates (kernel, scaling, feature weights, C, gamma, epsilon) in a limited time.

A `Scorer` scores candidates on held-out rows of a sample. The `Clock` has the time limit of the
search and of the training after it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.model.metrics import chosen_metric
from dcsvm.problem.options import TrainOptions
from dcsvm.training.scores import held_out, loss_with_error
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

    def left(self, share: float = 1.0) -> float:
        """Return the seconds left of a share of the time limit."""
        return 0.0 if self.is_requested else share * self.limit - self.used

    def stop(self, share: float = 1.0) -> _core.Stop:
        """Return a stop at the end of a share of the time limit. Raises Stopped if it is over."""
        left = self.left(share)
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
        left = self.left()
        return left if left > 0 else GRACE

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


GIVEN = "given"  # the scaling of a candidate that the data set has
SCALING_NAMES = {"auto": "ranges", "quantile": "quantiles", GIVEN: "given"}
N_FOLDS = 5
MAX_HELD = 4000
TRIAL_TOLERANCE = 1e-2  # relative to the deviation of the targets


def with_metric(
    options: TrainOptions, metric: str | None, labels: np.ndarray
) -> tuple[TrainOptions, str]:
    """Return the options that all candidates share, and the metric, by default accuracy or rmse.

    Raises ValueError for a metric that does not fit the labels.
    """
    default = "rmse" if options.is_regression else "accuracy"
    metric = chosen_metric(metric or default, options, labels)
    if metric == "balanced-accuracy":
        options = replace(options, class_weight="balanced")
    return options, metric


@dataclass(frozen=True)
class Candidate:
    """A setting to score.

    C and epsilon are in units of `Scorer.target_std`, `gamma` in units of 1/median. `source` is the
    candidate that the feature weights are learned with; None means no weights.
    """

    kernel: str
    scale: str
    C: float
    gamma: float
    epsilon: float | None = None
    source: Candidate | None = None


@dataclass(frozen=True)
class Trial:
    """A candidate with its loss on `n_held` held-out rows, and the standard error of the loss.

    `options` train the model of all rows, scaled and weighted as the candidate says. `rmse` is the
    root mean squared error of a regression, nan for classes. `fold_seconds` is the mean time of a
    fold, to train and predict, without learning weights.
    """

    candidate: Candidate
    options: TrainOptions
    loss: float
    error: float
    n_held: int
    rmse: float
    fold_seconds: float

    @property
    def rank(self) -> tuple[float, float, float]:
        """Ties go to the smaller gamma, then the smaller C."""
        return self.loss, self.candidate.gamma, self.candidate.C


def scaled_as(data: Dataset, scale: str, feature_weights: ArrayLike | None) -> Dataset:
    """Return a data set in a scaling, with given weights."""
    scaled = data if scale == GIVEN else data.scaled(scale)
    return scaled if feature_weights is None else scaled.weighted(feature_weights)


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores candidates by a metric on held-out rows of a sample, `data`.

    `options` are those that all candidates share. `target_std` is the standard deviation of the
    targets of a regression, and 1 for classes: C and epsilon are multiplied by it, as is the
    tolerance if it exceeds 1 (below 1, it is the violation scale).
    `fold` int64 (n,) is the fold that holds out each row. The first `n_folds` of at most
    `max_folds` folds are used. Trainings count sample weights, losses do not.
    """

    data: Dataset
    options: TrainOptions
    metric: str
    target_std: float
    fold: np.ndarray
    max_folds: int
    feature_weights: ArrayLike | None = None
    n_folds: int = 1
    _scaled: dict[str, Dataset] = field(default_factory=dict)
    _weights: dict[tuple[Candidate, int], np.ndarray] = field(default_factory=dict)

    @staticmethod
    def of(
        data: Dataset,
        options: TrainOptions,
        metric: str,
        n_rows: int,
        feature_weights: ArrayLike | None = None,
    ) -> Scorer:
        """Make a scorer on about `n_rows` rows of a data set, stratified by class."""
        target_std = float(np.std(data.labels)) if options.is_regression else 1.0
        n = data.n_rows
        if n > n_rows:
            fold = options.fold_of_rows(data.labels, -(-n // n_rows))
            data = data.take(np.flatnonzero(fold == 0))
            n = data.n_rows
        max_folds = max(min(N_FOLDS, n), 2, -(-n // MAX_HELD))
        fold = replace(options, seed=options.seed + 1).fold_of_rows(data.labels, max_folds)
        max_folds = min(max_folds, N_FOLDS)
        return Scorer(data, options, metric, target_std or 1.0, fold, max_folds, feature_weights)

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

    def weights(self, source: Candidate, fold: int, stop: _core.Stop) -> np.ndarray:
        """Learn weights from the training rows of a fold, from all rows for fold -1.

        They are kept: weights of the folds that scored a trial are not learned again.
        """
        key = source, fold
        if key not in self._weights:
            trained = np.flatnonzero(self.fold != fold) if fold >= 0 else np.arange(len(self.fold))
            rows = self.scaled(source.scale).rows.take(trained)
            options, labels = self.options_of(source), self.data.labels[trained]
            self._weights[key] = learn_weights(rows, labels, options, stop)
        return self._weights[key]

    def trial(self, candidate: Candidate, stop: _core.Stop) -> Trial:
        """Score a candidate. Raises Stopped."""
        options = self.options_of(candidate)
        tolerance = max(TRIAL_TOLERANCE * max(1.0, self.target_std), options.tolerance)
        loose = replace(options, tolerance=tolerance)
        # weights are learned without the fold that scores them
        outcomes, seconds = [], 0.0
        for fold in range(self.n_folds):
            data = self.scaled(candidate.scale)
            if candidate.source is not None:
                weights = self.weights(candidate.source, fold, stop)
                data = data.weighted(weights, np.arange(len(weights)))
            start = time.perf_counter()
            outcomes.append(held_out(data, self.fold == fold, loose, stop))
            seconds += time.perf_counter() - start
        loss, error = loss_with_error(self.metric, outcomes)
        rmse = loss_with_error("rmse", outcomes)[0] if options.is_regression else np.nan
        fold_seconds = seconds / self.n_folds
        return Trial(candidate, options, loss, error, self.n_held, rmse, fold_seconds)
