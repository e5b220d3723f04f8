"""Provide `dcsvm.easy`, which chooses a kernel, a scaling, feature weights, C, gamma and epsilon.

The search has a time limit. It scores candidates on held-out rows or folds, in this order: two
kernels in two scalings with two C; feature weights for the best one; C and gamma by a pattern.
Large data are sampled; then the clusters of an early level score larger gamma on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
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
from dcsvm.selection.trials import (
    GIVEN,
    SCALING_NAMES,
    Candidate,
    Clock,
    Scorer,
    Trial,
    scaled_as,
    with_metric,
)
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

    A scaling of the data set, and `feature_weights` (n_features,), are not chosen but given. The
    lines of `progress` tell the best candidate after each step; `tell` is called after each trial.

    Attributes
    ----------
    scorer, trials : the scorer on the current sample, and the trials on it.
    candidates : all that were scored, on any sample.
    skipped : names of the omitted parts of the search.

    Raises ValueError if all rows are equal.
    """

    def __init__(
        self,
        data: Dataset,
        options: TrainOptions,
        metric: str,
        clock: Clock,
        progress: Progress,
        *,
        tell: Tell | None = None,
        feature_weights: ArrayLike | None = None,
    ):
        if data.n_features == 0:
            raise ValueError("the training set has no features")
        self.data, self.options, self.metric, self.clock = data, options, metric, clock
        self.progress, self.tell, self.feature_weights = progress, tell, feature_weights
        self.trials: list[Trial] = []
        self.candidates: set[Candidate] = set()
        self.skipped: list[str] = []
        self.step = ""
        self.n_in_step: int | None = None  # new candidates, None before the first trial of the step
        self.scalings = SCALINGS if data.scaling is None else (GIVEN,)
        self.scorer = self._scorer(SCREENING_ROWS)
        is_constant = self.scorer.scaled(self.scalings[0]).rows.n_features == 0
        # a sample may lack rare rows
        if is_constant and data.scaled("auto").rows.n_features == 0:
            raise ValueError("all rows are equal: there is nothing to learn from")
        self.share = SHARE_OF_SEARCH if self.is_small else SHARE_OF_SAMPLES

    def _scorer(self, n_rows: int) -> Scorer:
        return Scorer.of(self.data, self.options, self.metric, n_rows, self.feature_weights)

    @property
    def is_small(self) -> bool:
        """Whether there are so few rows that an early model has no use."""
        return self.data.n_rows <= SEARCH_ROWS

    @property
    def best(self) -> Trial:
        return min(self.trials, key=lambda trial: trial.rank)

    def run(self) -> Trial:
        """Carry out the steps. Raises Stopped with a message if no candidate was scored."""
        for name, step in (
            ("kernels and scalings", self._screen_kernels),
            ("feature weights", self._try_weights),
            ("C and gamma", self._search_pattern),
            ("epsilon", self._refine_epsilon),
        ):
            self._begin(name)
            try:
                step()
            except _core.Stopped:
                # a step that lacks time is left out, but the first must score something
                if not self.trials:
                    limit = f"the time limit of {self.clock.limit:g} s is too short: "
                    reason = "" if self.clock.is_requested else limit
                    raise _core.Stopped(f"{reason}stopped before a setting was scored") from None
                self.skipped.append(name)
        self._begin("")
        return self.best

    def _try(self, candidate: Candidate, scorer: Scorer | None = None) -> None:
        """Score a candidate in the time left for the search. Raises Stopped.

        If `scorer` is given, the search continues with it, unless it is stopped before.
        """
        # the first trial on a sample may take all the time
        share = self.share if self.trials and scorer is None else 1.0
        trial = (scorer or self.scorer).trial(candidate, self.clock.stop(share))
        if scorer is not None:  # losses on other rows do not compare
            self.scorer, self.trials = scorer, []
        self.trials.append(trial)
        self.n_in_step = (self.n_in_step or 0) + (candidate not in self.candidates)
        self.candidates.add(candidate)
        best = self.best
        self.progress.trial(self.step, self.n_in_step, self.quality(best))
        if self.tell is not None:
            self.tell(self.step, trial, best)

    def quality(self, trial: Trial) -> str:
        """Format a loss with its standard error, as the metric shows it."""
        return shown_loss(self.metric, trial.loss, trial.error)

    def _begin(self, step: str) -> None:
        """Begin a step; tell the best candidate after the step before, if it tried any."""
        if self.n_in_step is not None:
            best, n = self.best.candidate, self.n_in_step
            weights = "" if best.source is None else ", weights"
            self.progress.note(
                f"{self.step}: {n} trial{'s'[: n != 1]}; best: {best.kernel}, "
                f"{SCALING_NAMES[best.scale]}{weights}, C={best.C * self.scorer.target_std:.4g}, "
                f"gamma={best.gamma:.3g}/median: {self.quality(self.best)}"
            )
        self.step, self.n_in_step = step, None

    def _screen_kernels(self) -> None:
        epsilon = EPSILON if self.options.is_regression else None
        for kernel, scale, C in product(KERNEL_TYPES, self.scalings, SCREENED_C):
            if kernel.start is not None:
                self._try(Candidate(kernel.name, scale, C, kernel.start, epsilon))
                if len(self.candidates) == 1:
                    self._set_folds(N_SCREENED + N_SEARCHED + N_OTHERS)
        if self.options.is_regression:
            best = self.best
            epsilon = EPSILON_OF_RMSE * (best.rmse / self.scorer.target_std)
            self._begin("epsilon")
            self._try(replace(best.candidate, epsilon=epsilon))

    def _set_folds(self, n_trials: int) -> None:
        """Use as many folds as the time of `n_trials` trials allows; score the first one again."""
        (trial,) = self.trials
        n_folds = self.clock.left(self.share) / (n_trials * trial.fold_seconds)
        n_folds = int(min(max(n_folds, 1), self.scorer.max_folds))
        if n_folds != self.scorer.n_folds:
            self._try(trial.candidate, replace(self.scorer, n_folds=n_folds))

    def _try_weights(self) -> None:
        if self.data.n_features > MAX_FEATURES:
            self.skipped.append(f"{self.step} (too many features)")
        elif self.feature_weights is None:
            best = self.best.candidate
            self._try(replace(best, source=best))

    def _search_pattern(self) -> None:
        """Search C and gamma by a pattern with factors 4 and 3, then their square roots."""
        self._enlarge()
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
                self._try(replace(before, C=key[0], gamma=key[1]))
            if self.best.candidate == before:
                power /= 2

    def _enlarge(self) -> None:
        """Continue on a larger sample, as large as the time allows; score the best there."""
        n_now, n_all = self.scorer.data.n_rows, self.data.n_rows
        if n_all <= n_now:
            return
        best = self.best
        factor = self.clock.left(self.share) / ((N_SEARCHED + 2) * best.fold_seconds)
        n_rows = int(min(n_all, SEARCH_ROWS, n_now * max(factor, 0.0) ** (1 / GROWTH)))
        if n_rows < 1.5 * n_now:
            return
        self._try(best.candidate, self._scorer(n_rows))
        self._set_folds(N_SEARCHED + 1)

    def _refine_epsilon(self) -> None:
        best = self.best.candidate
        if best.epsilon is not None:
            for factor in FACTORS_OF_EPSILON:
                self._try(replace(best, epsilon=best.epsilon * factor))

    def described(self, chosen: Trial) -> dict[str, Any]:
        """Return what the report has on the search."""
        options, candidate = chosen.options, chosen.candidate
        return {
            "metric": self.metric, "loss": chosen.loss, "standard_error": chosen.error,
            "n_held": chosen.n_held, "kernel": options.kernel, "C": options.C,
            "epsilon": options.epsilon if options.is_regression else None,
            "scale": candidate.scale, "has_weights": candidate.source is not None,
            "early": options.early, "n_trials": len(self.candidates),
            "skipped": list(self.skipped), "seconds": self.clock.used,
            "quality": self.quality(chosen),
        }  # fmt: skip

    def seconds_of_all(self) -> float:
        """Estimate the seconds of an exact training of the best candidate on all rows."""
        growth = (self.data.n_rows / self.scorer.n_trained) ** GROWTH
        return LAST_TRAINING * self.best.fold_seconds * growth


def choose(search: EasySearch) -> tuple[Trial, Dataset]:
    """Search for the best setting, of an exact or an early model. Raises Stopped as `run`.

    Returns it, with options that train the model, and all rows, scaled and weighted.
    """
    best = search.run()
    scale, source = best.candidate.scale, best.candidate.source
    weights = None if source is None else _final_weights(search, source)
    data = scaled_as(search.data, scale, search.feature_weights)
    if weights is not None:
        data = data.weighted(weights)
    if search.is_small and search.seconds_of_all() < search.clock.left_of_last:
        return best, data
    return _exact_or_early(search, data, best), data


def _final_weights(search: EasySearch, source: Candidate) -> np.ndarray:
    """Return feature weights (n_features,), learned from the whole sample if there is time."""
    try:
        learned = search.scorer.weights(source, -1, search.clock.stop())
    except _core.Stopped:  # those of a fold that scored the candidate are kept: no stop is needed
        learned = search.scorer.weights(source, 0, _core.Stop())
    weights = np.zeros(search.data.n_features)
    weights[: len(learned)] = learned  # constant columns at the end have none
    return weights


def _exact_or_early(search: EasySearch, data: Dataset, exact: Trial) -> Trial:
    """Choose between an exact and an early model of scaled, weighted rows."""
    exact = replace(exact, options=number_of_gamma(exact.options, data.rows, table=data.table))
    level = finest_level(data, exact.options)
    if level is None:
        return exact
    clock, early = search.clock, _by_clusters(search, data, exact)
    if early is None:  # no scores to compare: exact if there is time for it
        if search.seconds_of_all() < clock.left_of_last:
            return exact
        return replace(exact, options=replace(exact.options, early=True, early_level=level))
    # scored again on rows that both hold out, unless only the early one is possible
    rivals = [exact, replace(exact, options=early.options)]
    if 2 * search.seconds_of_all() > clock.left():
        search.skipped.append("an exact model of all rows")
        rivals = rivals[1:]
        if search.metric in METRICS_OF_CLUSTERS:
            return early
    n_folds = max(-(-data.n_rows // MAX_COMPARED), N_EARLY_FOLDS)
    is_held = search.options.fold_of_rows(data.labels, n_folds) == 0
    scored, half = [], 0.5 * (1 + clock.used / clock.limit)  # of the time left
    for rival in rivals:
        begin = clock.used
        try:
            outcome = held_out(data, is_held, rival.options, clock.stop(half))
        except _core.Stopped:
            continue
        if clock.used - begin > clock.left():  # no time to train it on all rows
            continue
        loss, error = loss_with_error(search.metric, [outcome])
        scored.append(replace(rival, loss=loss, error=error, n_held=len(outcome.labels)))
    return min(scored, key=lambda trial: trial.loss, default=rivals[-1])


def _by_clusters(search: EasySearch, data: Dataset, exact: Trial) -> Trial | None:
    """Score larger gamma and C on the clusters of the early level, which all rows share.

    The loss is the error rate, or the root mean squared error.
    """
    options = replace(exact.options, early=True)
    assert isinstance(options.gamma, float)
    largest_C = MAX_C * search.scorer.target_std
    penalties = sorted({min(options.C * factor, largest_C) for factor in EARLY_CS})
    gammas = [options.gamma * factor for factor in EARLY_GAMMAS]
    best = None
    try:
        by_clusters = GridSearch.over(
            data, options, penalties, gammas, folds=N_EARLY_FOLDS,
            stop=search.clock.stop(SHARE_OF_CLUSTERS),
        )  # fmt: skip
        # the whole grid at once: early models of all settings share clusters and kernel values
        for _ in chain(by_clusters.run(), by_clusters.use_estimates()):
            pass
        best = by_clusters.best
    except _core.Stopped:
        pass
    if best is None:
        search.skipped.append("early models")
        return None
    # a root for a regression, with the deviation of its folds; else a rate of independent rows
    loss = best.loss
    if options.is_regression:
        loss, of_folds = math.sqrt(loss), np.sqrt(best.losses)
        error = float(np.nanstd(of_folds)) / math.sqrt(len(of_folds))
    else:
        error = math.sqrt(max(loss * (1 - loss), 0.0) / best.n_rows)
    chosen = best.setting.options(options)
    return replace(exact, options=chosen, loss=loss, error=error, n_held=best.n_rows)


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
    base, metric = with_metric(base, metric, data.labels)
    tell_line = control.progress.note
    tell_line(_task_line(data, base, time_limit))
    with clock.following(stop):
        search = EasySearch(
            data, base, metric, clock, control.progress, tell=tell, feature_weights=given
        )
        chosen, rows = choose(search)
        if chosen.options.early:
            tell_line(
                f"early model on all rows, C={chosen.options.C:.4g}, "
                f"gamma={chosen.options.gamma:.4g}: {search.quality(chosen)}"
            )
        if search.skipped:
            tell_line(f"left out: {', '.join(search.skipped)}")
        last = clock.stop_of_last(early=chosen.options.early)
        model = train(
            rows.without_source(), progress=control.progress, stop=last, **chosen.options.values
        )
    model.report.set_selection(search.described(chosen), chosen.options)
    return model


def _task_line(data: Dataset, options: TrainOptions, time_limit: float) -> str:
    """Describe the data, the kind of labels, the time and the threads."""
    kind = "regression"
    if not options.is_regression:
        kind = f"classification, {len(np.unique(data.labels))} classes"
    threads, n = options.with_threads().threads or 1, data.n_features
    return (
        f"{data.n_rows} rows, {n} feature{'s'[: n != 1]}, {kind}; "
        f"at most {time_limit:g} s with {threads} thread{'s'[: threads != 1]}"
    )
