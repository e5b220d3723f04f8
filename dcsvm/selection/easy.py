"""Provide `dcsvm.easy`, which chooses a kernel, a scaling, feature weights, C, gamma and epsilon.

The search has a time limit. It scores candidates on held-out rows or folds, in this order: two
kernels in two scalings with two C; feature weights for the best one; C and gamma by a pattern.
Large data are sampled; then the clusters of an early level score larger gamma on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.kernel.kernels import KERNEL_TYPES
from dcsvm.model.metrics import shown_loss
from dcsvm.model.model import Model
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.trials import GIVEN, Candidate, Clock, Problem, Sample, Trial, scaled_as
from dcsvm.training.early_level import finest_level
from dcsvm.training.grid import GridSearch
from dcsvm.training.report import Progress
from dcsvm.training.scores import held_out, loss_with_error
from dcsvm.training.train import MAX_FEATURES, checked_input, train

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dcsvm.data.scaling import Scaling

SCALINGS = ("auto", "quantile")
SCREENED_C = (2.0, 16.0)
MAX_C = 1000.0
N_SCREENED, N_SEARCHED, N_OTHERS = 8, 7, 5  # trials; the others are for weights and epsilon
EPSILON, EPSILON_OF_RMSE = 0.05, 0.1  # at the start, in standard deviations; then of the RMSE
FACTORS_OF_EPSILON = (0.3, 3.0)  # tried at the end
SCREENING_ROWS, SEARCH_ROWS = 5000, 20_000
# shares of the time limit at the end of the search, for few and for many rows, and at the end of
# the search by clusters; the rest is for training on all rows
SHARE_OF_SEARCH, SHARE_OF_SAMPLES, SHARE_OF_CLUSTERS = 0.6, 0.4, 0.6
GROWTH = 2.0  # power of the number of rows in the seconds of a training
LAST_TRAINING = 2.0  # seconds of a training at full tolerance, relative to those of a trial
EARLY_GAMMAS, EARLY_CS = (1.0, 3.0, 9.0), (1.0, 4.0)  # factors tried for the early level
N_EARLY_FOLDS, MAX_COMPARED = 5, 4000
METRICS_OF_CLUSTERS = ("accuracy", "rmse")  # others are scored on held-out rows


Tell = Callable[[str, Trial, Trial], None]  # step, trial, best trial so far


class EasySearch:
    """Search for the best candidate on samples of a data set.

    A scaling of the data set, and `feature_weights` (n_features,), are not chosen but given. `tell`
    is called after each trial. `skipped` lists omitted parts of the search.

    Raises ValueError if all rows are equal.
    """

    def __init__(
        self,
        data: Dataset,
        problem: Problem,
        clock: Clock,
        tell: Tell,
        feature_weights: ArrayLike | None = None,
    ):
        if data.n_features == 0:
            raise ValueError("the training set has no features")
        self.data, self.problem, self.clock, self.tell = data, problem, clock, tell
        self.trials: list[Trial] = []
        self.skipped: list[str] = []
        self.candidates: set[Candidate] = set()
        self.scalings = SCALINGS if data.scaling is None else (GIVEN,)
        self.feature_weights = feature_weights
        self.sample = self._sample(SCREENING_ROWS)
        is_constant = self.sample.scaled(self.scalings[0]).rows.n_features == 0
        # a sample may lack rare rows
        if is_constant and data.scaled("auto").rows.n_features == 0:
            raise ValueError("all rows are equal: there is nothing to learn from")
        self.share = SHARE_OF_SEARCH if self.is_small else SHARE_OF_SAMPLES

    def _sample(self, n_rows: int) -> Sample:
        return Sample.of(self.data, self.problem, n_rows, self.feature_weights)

    @property
    def is_small(self) -> bool:
        """Whether there are so few rows that an early model has no use."""
        return self.data.n_rows <= SEARCH_ROWS

    @property
    def n_trials(self) -> int:
        """Number of different candidates that were scored."""
        return len(self.candidates)

    @property
    def best(self) -> Trial:
        return min(self.trials, key=lambda trial: trial.rank)

    def run(self) -> Trial:
        """Carry out the steps. Raises Stopped with a message if no candidate was scored."""
        for name, step in (
            ("kernels and scalings", self._screen),
            ("feature weights", self._weigh),
            ("C and gamma", self._search),
            ("epsilon", self._refine_epsilon),
        ):
            try:
                step(name)
            except _core.Stopped:
                if not self.trials:
                    limit = f"the time limit of {self.clock.limit:g} s is too short: "
                    reason = "" if self.clock.is_requested else limit
                    raise _core.Stopped(f"{reason}stopped before a setting was scored") from None
                self.skipped.append(name)
        return self.best

    def _try(self, step: str, candidate: Candidate) -> Trial:
        """Score a candidate in the time left for the search. Raises Stopped."""
        self.sample.stop = self.clock.stop(self.share if self.trials else 1.0)
        trial = self.sample.trial(candidate)
        self.trials.append(trial)
        self.candidates.add(candidate)
        self.tell(step, trial, self.best)
        return trial

    def _screen(self, step: str) -> None:
        epsilon = EPSILON if self.problem.is_regression else None
        for kernel, scale, C in product(KERNEL_TYPES, self.scalings, SCREENED_C):
            if kernel.start is not None:
                self._try(step, Candidate(kernel.name, scale, C, kernel.start, epsilon))
                if self.n_trials == 1:
                    self._set_folds(step, N_SCREENED + N_SEARCHED + N_OTHERS)
        if self.problem.is_regression:
            self._set_epsilon("epsilon", (EPSILON_OF_RMSE * self._rmse,))

    def _set_folds(self, step: str, n_trials: int) -> None:
        """Use as many folds as the time of `n_trials` trials allows; score the first one again."""
        (trial,) = self.trials
        each = trial.seconds / self.sample.n_folds
        n_folds = self.clock.left(self.share) / (n_trials * each)
        n_folds = int(min(max(n_folds, 1), self.sample.max_folds))
        if n_folds != self.sample.n_folds:
            self._score_again(step, trial, replace(self.sample, n_folds=n_folds))

    def _score_again(self, step: str, trial: Trial, sample: Sample) -> None:
        """Score a candidate on another sample and continue there; keep the old one if stopped."""
        before = self.sample, self.trials
        self.sample, self.trials = sample, []
        try:
            self._try(step, trial.candidate)
        except _core.Stopped:
            self.sample, self.trials = before
            raise

    @property
    def _rmse(self) -> float:
        """Root mean squared error of the best trial, in units of the targets' deviation."""
        return self.best.rmse / self.problem.unit

    def _set_epsilon(self, step: str, several: tuple[float, ...]) -> None:
        best = self.best.candidate
        for epsilon in several:
            self._try(step, replace(best, epsilon=epsilon))

    def _weigh(self, step: str) -> None:
        if self.data.n_features > MAX_FEATURES:
            self.skipped.append(f"{step} (too many features)")
            return
        if self.feature_weights is not None:
            return
        best = self.best.candidate
        self._try(step, replace(best, source=best))

    def _search(self, step: str) -> None:
        """Search C and gamma by a pattern with factors 4 and 3, then their square roots."""
        self._enlarge(step)
        known = {(self.best.candidate.C, self.best.candidate.gamma)}
        power = 1.0
        while power > 0.4:
            before = self.best.candidate
            for C_factor, gamma_factor in ((1, 3.0), (4.0, 1), (1, 1 / 3), (0.25, 1)):
                key = min(before.C * C_factor**power, MAX_C), before.gamma * gamma_factor**power
                if key in known:
                    continue
                if len(known) > N_SEARCHED:
                    return
                known.add(key)
                self._try(step, replace(before, C=key[0], gamma=key[1]))
            if self.best.candidate == before:
                power /= 2

    def _enlarge(self, step: str) -> None:
        """Continue on a larger sample, as large as the time allows; score the best there."""
        n_now, n_all = self.sample.data.n_rows, self.data.n_rows
        if n_all <= n_now:
            return
        best = self.best
        each = best.seconds / self.sample.n_folds
        factor = self.clock.left(self.share) / ((N_SEARCHED + 2) * each)
        n_rows = int(min(n_all, SEARCH_ROWS, n_now * max(factor, 0.0) ** (1 / GROWTH)))
        if n_rows < 1.5 * n_now:
            return
        self._score_again(step, best, self._sample(n_rows))
        self._set_folds(step, N_SEARCHED + 1)

    def _refine_epsilon(self, step: str) -> None:
        if self.problem.is_regression:
            best = self.best.candidate
            assert best.epsilon is not None
            self._set_epsilon(step, tuple(best.epsilon * factor for factor in FACTORS_OF_EPSILON))

    def described(self, choice: Choice) -> dict[str, Any]:
        """Return what the report has on the search."""
        return {
            "metric": self.problem.metric, "loss": choice.loss, "standard_error": choice.error,
            "n_held": choice.n_held, "kernel": choice.options.kernel, "C": choice.options.C,
            "epsilon": choice.options.epsilon if self.problem.is_regression else None,
            "scale": choice.scale, "has_weights": choice.weights is not None,
            "early": choice.options.early, "n_trials": self.n_trials,
            "skipped": list(self.skipped), "seconds": self.clock.used,
            "quality": shown_loss(self.problem.metric, choice.loss, choice.error),
        }  # fmt: skip

    def seconds_of_all(self) -> float:
        """Estimate the seconds of an exact training of the best candidate on all rows."""
        each = self.best.seconds / self.sample.n_folds
        growth = (self.data.n_rows / self.sample.n_trained) ** GROWTH
        return LAST_TRAINING * each * growth


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen setting.

    `options` train the model on all rows, scaled by `scale` ("auto" or "quantile") and multiplied
    by `weights` (n_features,) unless they are None. `loss` and `error` are the loss on `n_held`
    held-out rows and its standard error.
    """

    options: TrainOptions
    scale: str
    weights: np.ndarray | None
    loss: float
    error: float
    n_held: int


def choose(search: EasySearch) -> tuple[Choice, Dataset]:
    """Search for the best setting, of an exact or an early model. Raises Stopped as `run`.

    Returns it, and all rows, scaled and weighted.
    """
    best = search.run()
    candidate, problem, data = best.candidate, search.problem, search.data
    weights = None
    if candidate.source is not None:
        weights = np.zeros(data.n_features)
        try:
            search.sample.stop = search.clock.stop()
            learned = search.sample.weights(candidate.source, -1)
        except _core.Stopped:  # take the weights of a fold that scored the candidate
            learned = search.sample.weights(candidate.source, 0)
        weights[: len(learned)] = learned  # constant columns at the end have none
    options = candidate.options(problem)
    choice = Choice(options, candidate.scale, weights, best.loss, best.error, search.sample.n_held)
    data = scaled_as(data, candidate.scale, search.feature_weights)
    if weights is not None:
        data = data.weighted(weights)
    if search.is_small and search.seconds_of_all() < search.clock.left_of_last:
        return choice, data
    return _of_many_rows(search, data, choice), data


def _of_many_rows(search: EasySearch, data: Dataset, exact: Choice) -> Choice:
    """Choose between exact and early models on scaled, weighted rows."""
    options = number_of_gamma(exact.options, data.rows)
    exact = replace(exact, options=options)
    level = finest_level(data, options)
    if level is None:
        return exact
    clock, early = search.clock, _by_clusters(search, data, options)
    if early is None and search.seconds_of_all() < clock.left_of_last:
        return exact
    if early is None:
        return replace(exact, options=replace(options, early=True, early_level=level))
    choices = [exact, replace(exact, options=early.options)]
    if 2 * search.seconds_of_all() > clock.left():
        search.skipped.append("an exact model of all rows")
        choices = choices[1:]
        if search.problem.metric in METRICS_OF_CLUSTERS:
            return replace(early, scale=exact.scale, weights=exact.weights)
    is_held = _compared(search)
    found, half = [], 0.5 * (1 + clock.used / clock.limit)
    for choice in choices:
        begin = clock.used
        try:
            outcome = held_out(data, is_held, choice.options, clock.stop(half))
        except _core.Stopped:
            continue
        if clock.used - begin > clock.left():  # no time to train it on all rows
            continue
        loss, error = loss_with_error(search.problem.metric, [outcome])
        found.append(replace(choice, loss=loss, error=error, n_held=len(outcome.labels)))
    return min(found, key=lambda choice: choice.loss, default=choices[-1])


def _compared(search: EasySearch) -> np.ndarray:
    """Mark the rows, bool (n,), that are held out to compare exact and early models."""
    n, options = search.data.n_rows, search.problem.options
    return options.fold_of_rows(search.data.labels, max(-(-n // MAX_COMPARED), N_EARLY_FOLDS)) == 0


def _by_clusters(search: EasySearch, data: Dataset, options: TrainOptions) -> Choice | None:
    """Score larger gamma and C on the clusters of the early level, which all rows share.

    The loss is the error rate, or the root mean squared error.
    """
    early = replace(options, early=True)
    assert isinstance(options.gamma, float)
    penalties = sorted(
        {min(options.C * factor, MAX_C * search.problem.unit) for factor in EARLY_CS}
    )
    gammas = [options.gamma * factor for factor in EARLY_GAMMAS]
    best = None
    try:
        by_clusters = GridSearch.over(
            data, early, penalties, gammas, folds=N_EARLY_FOLDS,
            stop=search.clock.stop(SHARE_OF_CLUSTERS),
        )  # fmt: skip
        for _ in chain(by_clusters.run(), by_clusters.use_estimates()):
            pass
        best = by_clusters.best
    except _core.Stopped:
        pass
    if best is None:
        search.skipped.append("early models")
        return None
    loss = best.loss
    if search.problem.is_regression:
        loss, of_folds = math.sqrt(loss), np.sqrt(best.losses)
        error = float(np.nanstd(of_folds)) / math.sqrt(len(of_folds))
    else:
        error = math.sqrt(max(loss * (1 - loss), 0.0) / best.n_rows)
    return Choice(best.setting.options(early), "", None, loss, error, best.n_rows)


MAX_CLASSES = 32  # more different whole numbers are the targets of a regression


def task_of(labels: np.ndarray) -> str:
    """Return the SVM type for labels: text and a few whole numbers are classes."""
    if labels.dtype.kind not in "iuf":
        return "c_svc"
    is_whole = bool(np.all(labels == np.round(labels)))
    return "c_svc" if is_whole and len(np.unique(labels)) <= MAX_CLASSES else "epsilon_svr"


def easy(  # noqa: PLR0913 (a public function with keyword parameters)
    X: ArrayLike | Dataset,
    y: ArrayLike | None = None,
    *,
    time_limit: float = 60.0,
    metric: str | None = None,
    svm_type: str | None = None,
    stop: _core.Stop | None = None,
    tell: Tell | None = None,
    sample_weight: ArrayLike | None = None,
    scale: str | Scaling | None = None,
    feature_weights: ArrayLike | str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Model:
    """Choose all settings within a time limit, then train a model on all rows.

    Two kernels (laplacian, exponential), two scalings, feature weights, C, gamma and epsilon are
    chosen on held-out rows. More than 20,000 rows are sampled for the search, and then the model is
    an exact or an early one, whichever is better and fits the time.

    Parameters
    ----------
    X : array, scipy sparse matrix, data frame of shape (n, d), or dcsvm.Dataset
        Training rows, as for `dcsvm.train`.
    y : array of shape (n,), optional
        Labels, numbers or strings, or the targets of a regression. A Dataset has its own.
    time_limit : float, default 60
        Seconds for the search and the training on all rows. The training of an early model may
        exceed it.
    metric : str, optional
        What to choose by, as the option --metric of dcsvm-easy: accuracy (the default for classes),
        rmse (the default for a regression), f1, auc, ...
    svm_type : {"c_svc", "epsilon_svr"}, optional
        Classification or regression. By default, text and up to 32 different whole numbers are
        classes.
    stop : dcsvm.Stop, optional
        Ends the search early. The best setting so far is then trained: in seconds if there are few
        rows, else as an early model.
    tell : callable, optional
        Called as tell(step, trial, best) after each trial.
    sample_weight : array of shape (n,), optional
        Weights as for `dcsvm.train`. They count in trainings, not in losses on held-out rows.
    scale : {"auto", "quantile"} or a scaling, optional
        Scale the features so, instead of by the better of auto and quantile.
    feature_weights : array of shape (d,) or "learn", optional
        Weights to use. By default they are learned, and used if held-out rows tell so.
    progress : dcsvm.Progress, optional
        As for `dcsvm.train`; it also receives the steps of the search.
    **options
        The options seed, threads, cache_mb, probability and class_weight of `dcsvm.train`.

    Returns
    -------
    Model
        It scales and weights the rows it predicts. `report.selection` has the chosen setting, its
        loss on held-out rows with the standard error, and what there was no time for.

    Raises
    ------
    ValueError
        If the input is invalid.
    Stopped
        If the search ends before any setting was scored.
    """
    if not time_limit > 0:
        raise ValueError(f"time_limit must be above 0, got {time_limit}")
    TrainOptions.check_easy(svm_type, options)
    clock = Clock(time_limit)
    if not isinstance(X, Dataset):
        X = Dataset(X, y, sample_weight=sample_weight, scale=scale)
        y = sample_weight = scale = None
    data, base, control = checked_input(
        X, y, {"svm_type": svm_type or task_of(X.labels), **options}, sample_weight=sample_weight,
        scale=scale, progress=progress, stop=stop,
    )  # fmt: skip
    data.check_is_here()
    base.check_feature_weights(feature_weights)
    given = None if base.learns_weights(feature_weights) else feature_weights  # it learns always
    problem = Problem.of(data.labels, metric, base)
    told = SearchLines(control.progress, problem, clock, tell)
    told.begin(data)
    with clock.following(stop):
        search = EasySearch(data, problem, clock, told.tell, given)
        choice, chosen = choose(search)
        told.end(search, choice)
        last = clock.stop_of_last(early=choice.options.early)
        model = train(
            chosen.without_source(), progress=control.progress, stop=last, **choice.options.values
        )
    model.report.set_selection(search.described(choice), choice.options)
    return model


class SearchLines:
    """Tells a Progress of the search: a line for each step, and the trials within a step."""

    def __init__(self, progress: Progress, problem: Problem, clock: Clock, tell: Tell | None):
        self.progress, self.problem, self.clock, self.user = progress, problem, clock, tell
        self.step, self.n_trials = "", 0
        self.told: set[Candidate] = set()
        self.best: Trial | None = None

    def begin(self, data: Dataset) -> None:
        """Describe the data and the problem."""
        kind = "regression"
        if not self.problem.is_regression:
            kind = f"classification, {len(np.unique(data.labels))} classes"
        threads, n = self.problem.options.with_threads().threads or 1, data.n_features
        self.progress.note(
            f"{data.n_rows} rows, {n} feature{'s'[: n != 1]}, {kind}; "
            f"at most {self.clock.limit:g} s with {threads} thread{'s'[: threads != 1]}"
        )

    def tell(self, step: str, trial: Trial, best: Trial) -> None:
        """Receive a trial; a candidate that is scored again is not counted."""
        if step != self.step:
            self._end_step()
            self.step, self.n_trials = step, 0
        self.n_trials += trial.candidate not in self.told
        self.told.add(trial.candidate)
        self.best = best
        self.progress.trial(step, self.n_trials, self._quality(best.loss, best.error))
        if self.user is not None:
            self.user(step, trial, best)

    def _end_step(self) -> None:
        if self.best is None:
            return
        one = self.best.candidate
        weights = "" if one.source is None else ", weights"
        self.progress.note(
            f"{self.step}: {self.n_trials} trial{'s'[: self.n_trials != 1]}; best: {one.kernel}, "
            f"{one.scaling_name}{weights}, C={one.C * self.problem.unit:.4g}, "
            f"gamma={one.gamma:.3g}/median: {self._quality(self.best.loss, self.best.error)}"
        )

    def end(self, search: EasySearch, choice: Choice) -> None:
        """Tell the end of the search, and what it left out."""
        self._end_step()
        if choice.options.early:
            self.progress.note(
                f"early model on all rows, C={choice.options.C:.4g}, "
                f"gamma={choice.options.gamma:.4g}: {self._quality(choice.loss, choice.error)}"
            )
        if search.skipped:
            self.progress.note(f"left out: {', '.join(search.skipped)}")

    def _quality(self, loss: float, error: float) -> str:
        return shown_loss(self.problem.metric, loss, error)
