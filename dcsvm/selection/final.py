"""Choose the model of all rows: exact or early, and its C and gamma at this number of rows.

The search was on a sample. Here all rows but some held-out ones are trained, so that losses are
those of the model that is written, up to the few rows that it lacks. These held-out rows are
outside the sample, which has chosen the kernel, the scaling and the feature weights. A model that
is scored is trained on all rows later: each training has less than half of the time that is left.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.model.figure import loss_of_best
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.costs import Foresight
from dcsvm.selection.search import (
    LEAST_POWER,
    MAX_C,
    PATTERN,
    RESERVED,
    WITH_PROBABILITIES,
    EasySearch,
)
from dcsvm.selection.trials import Candidate, Trial, sampled, scaled_as
from dcsvm.training.early_level import for_all_rows
from dcsvm.training.grid import GridSearch
from dcsvm.training.scores import held_out

SHARE_OF_CLUSTERS = 0.6  # of the time limit, at the end of the search by clusters
EARLY_GAMMAS, EARLY_CS = (1.0, 3.0, 9.0), (1.0, 4.0)  # factors tried for the early level
N_EARLY_FOLDS = 5
# share of the rows in the clusters that were scored: with less, clusters differ too much for the
# printed accuracy. On census, 2.4 % of the rows gave 96.9 % in one run and 91.2 % in another; test
# rows had 95.2 %.
MIN_SCORED = 0.5
# On measured seconds of a training, for one on slightly more rows; and on what is kept for it.
MARGIN, KEPT = 1.2, 1.1
OF_COARSER = 3.0  # seconds of an early model of a quarter of the clusters, relative
KEPT_EARLY = 0.4  # of the time left, for an early model: without its score, the figure is poor
# An exact model is tried if its estimate is at most so many times the seconds left: its own course
# tells more than samples, whose trainings have no levels. It is the first one if it has few rows,
# as it then costs hardly more than an early model, and more hope.
HOPE, HOPE_OF_FIRST = 6.0, 4.0
EXACT_FIRST = 60_000  # rows


@dataclass(frozen=True, eq=False)
class Choice:
    """What to train.

    `data` are all rows, scaled and weighted; `trial` has the options. `loss` and `error` are the
    figure: the estimated loss on new rows, and its standard error, by `n_held` rows. `otherwise`
    is an early model, if `trial` is an exact one that may lack time.
    """

    data: Dataset
    trial: Trial
    loss: float
    error: float
    n_held: int
    otherwise: Choice | None = None


def choose(search: EasySearch) -> Choice:
    """Search for the best setting, of an exact or an early model. Raises Stopped as `run`."""
    best = search.run()
    data = scaled_as(search.data, best.candidate.scale, search.feature_weights)
    if best.candidate.weighting is not None:
        data = data.weighted(_final_weights(search, best.candidate))
    seconds = search.seconds_of_all() / RESERVED
    if search.has_all_rows and seconds < search.clock.left_of_last:
        return _of_search(search, data, best)
    options, level = for_all_rows(data, best.options)
    exact = replace(best, options=options)
    if level is None:
        return _of_search(search, data, exact)
    return Finalists(search, data, exact, level).choose()


def _of_search(search: EasySearch, data: Dataset, trial: Trial) -> Choice:
    """Return the choice of the best trial of the search, or one that differs in its gamma only."""
    chosen = with_figure(search.metric, data, search.best, search.trials)
    return replace(chosen, trial=trial, loss=chosen.loss + search.bias)


def with_figure(metric: str, data: Dataset, trial: Trial, trials: list[Trial]) -> Choice:
    """Return the choice of a trial; the figure corrects that it is the best of `trials`."""
    loss, error = loss_of_best(metric, [one.outcomes for one in trials], trials.index(trial))
    return Choice(data, trial, loss, error, trial.n_held)


def _final_weights(search: EasySearch, candidate: Candidate) -> np.ndarray:
    """Return feature weights of all columns (n_features,)."""
    learned = search.final_weights(candidate)
    weights = np.zeros(search.data.n_features)
    weights[: len(learned)] = learned  # constant columns at the end have none
    return weights


class Finalists:
    """Exact and early models of nearly all rows, scored on the same held-out rows.

    `exact` is the best trial of the search, with the number of gamma for all rows; `level` is the
    finest level.
    """

    def __init__(self, search: EasySearch, data: Dataset, exact: Trial, level: int):
        self.search, self.clock, self.data = search, search.clock, data
        self.exact, self.level = exact, level
        self.is_held = self._held_rows()
        self.trials: list[Trial] = []
        # loss, standard error and rows of an early model in folds of the other rows
        self.of_clusters: tuple[float, float, int] | None = None

    def _held_rows(self) -> np.ndarray:
        """Return the held-out rows, bool (n,): those that the search has held back, or others."""
        search = self.search
        if search.is_held_back.any():
            return search.is_held_back
        data, is_held = search.data, np.zeros(search.data.n_rows, bool)
        others = ~is_held
        if search.weights_of_loss is not None:
            others &= search.weights_of_loss > 0
        is_counted = others.copy()
        others[search.scorer.chosen] = False
        n_held = search.n_to_hold
        if np.count_nonzero(others) < n_held / 2:  # time ended on nearly all rows
            others = is_counted
        is_held[sampled(np.flatnonzero(others), data.labels, search.options, n_held)] = True
        return is_held

    def choose(self) -> Choice:
        """Score early and exact models, then others around the best one while there is time."""
        search, clock = self.search, self.clock
        early, seconds = self._by_clusters(), search.seconds_of_all()
        early = early or self._early(self.exact.options, self.level)
        if search.n_rows < EXACT_FIRST and self._is_hopeful(seconds, HOPE_OF_FIRST):
            self._try_exact(seconds)
            self._try(early, self._seconds_of_all(self.best) if self.trials else self._kept_early)
        else:
            self._try(early, self._kept_early)
            self._try_exact(seconds)
        self._try_exact_like(early)
        if not self.trials:
            other = self._unscored(early)
            if seconds >= clock.left_of_last:
                return other
            exact = replace(other.trial, options=self._exact_like(early))
            return replace(other, trial=exact, otherwise=other)
        self._try_coarser()
        self._search_around_best()
        return self._best(early)

    def _try_exact(self, seconds: float) -> None:
        """Score an exact model, unless a training of all rows, about `seconds`, is hopeless."""
        if self._is_hopeful(seconds, HOPE):
            self._try(self.exact.options, self._reserve)
        else:
            self.search.skipped.append(f"an exact model of all rows (about {seconds:.0f} s)")

    def _is_hopeful(self, seconds: float, hope: float) -> bool:
        """Return whether there may be time to score and train an exact model.

        The estimated `seconds` of a training may exceed the time by the factor `hope`.
        """
        return (1.0 / self._factor + KEPT * MARGIN) * seconds <= hope * self.clock.left()

    @property
    def _kept_early(self) -> float:
        """Seconds to keep while an early model is scored: its training may exceed the limit."""
        return KEPT_EARLY * self.clock.left()

    def _exact_like(self, early: TrainOptions) -> TrainOptions:
        """Return options of an exact model with C and gamma of the early one."""
        return replace(self.exact.options, C=early.C, gamma=early.gamma)

    def _try_exact_like(self, early: TrainOptions) -> None:
        """Score an exact model with C and gamma of the early one, chosen on more rows."""
        exact = [one for one in self.trials if not one.options.early]
        other = self._exact_like(early)
        if exact and other != exact[0].options and not self._is_late(exact[0]):
            self._try(other, self._reserve, is_first=False)

    def _try_coarser(self) -> None:
        """Score early models of fewer clusters than the best one has, while they are better."""
        while True:
            best = self.best
            level = best.options.early_level
            if not best.options.early or not isinstance(level, int) or level == 1:
                return
            if self._is_late(best, OF_COARSER):
                self.search.skipped.append("early models of fewer clusters")
                return
            coarser = replace(best.options, early_level=level - 1)
            self._try(coarser, self._seconds_of_all(best), is_first=False)
            if self.best is best:
                return

    def _is_late(self, trial: Trial, factor: float = 1.0) -> bool:
        """Return whether no time is left to score a model and train it on all rows.

        Both take `factor` times the seconds of a trial.
        """
        return self.clock.left() < 2.0 * factor * self._seconds_of_all(trial)

    @staticmethod
    def _early(options: TrainOptions, level: int | None) -> TrainOptions:
        return replace(options, early=True, early_level=level)

    def _unscored(self, options: TrainOptions) -> Choice:
        """Choose options that were not scored at this number of rows.

        Their loss is that of early models in folds of the rows, or, without it, that of the search.
        """
        trial = replace(self.search.best, options=options)
        if self.of_clusters is None:
            return _of_search(self.search, self.data, trial)
        return Choice(self.data, trial, *self.of_clusters)

    def _try(self, options: TrainOptions, reserve: float, *, is_first: bool = True) -> None:
        """Score a model, unless only `reserve` seconds are left before, or seem to be."""
        begin, loose = time.perf_counter(), replace(options, probability=False)
        try:
            stop = self.clock.stop(reserve)
            foresight = Foresight(stop, self.clock.left(reserve), options.tolerance)
            outcome = held_out(
                [(self.data, self.is_held)], loose, stop, metric=self.search.metric,
                weights=self.search.weights_of_loss, progress=foresight,
            )  # fmt: skip
        except _core.Stopped:
            if is_first:
                kind = "early" if options.early else "exact"
                self.search.skipped.append(f"an {kind} model of all rows (more than the time left)")
            return
        if options.early:  # slightly more rows could choose another level
            options = replace(options, early_level=foresight.level)
        search, exact = self.search, self.exact
        assert isinstance(options.gamma, float) and isinstance(exact.options.gamma, float)
        candidate = replace(
            exact.candidate,
            C=options.C / search.scorer.target_std,
            gamma=exact.candidate.gamma * options.gamma / exact.options.gamma,
        )
        seconds = time.perf_counter() - begin
        trial = Trial.of(candidate, options, search.metric, (outcome,), seconds)
        self.trials.append(trial)
        kind = f"early model of level {options.early_level}" if options.early else "exact model"
        search.progress.note(
            f"{kind} of all rows but "
            f"{trial.n_held} held-out ones, C={options.C:.4g}, gamma={options.gamma:.4g}: "
            f"{search.quality(trial)}, {seconds:.1f} s"
        )

    @property
    def _factor(self) -> float:
        """Seconds of the last training, relative to those without probabilities."""
        return WITH_PROBABILITIES if self.exact.options.probability else 1.0

    @property
    def _relative(self) -> float:
        """Seconds of a training on all rows, relative to those to score the model."""
        share = np.count_nonzero(self.is_held) / self.search.n_rows
        return self._factor * MARGIN / (1.0 - share)

    @property
    def _reserve(self) -> float:
        """Seconds to keep while a model is scored, so that it can be trained on all rows."""
        return self.clock.left() * (1.0 - 1.0 / (1.0 + KEPT * self._relative))

    def _seconds_of_all(self, trial: Trial) -> float:
        """Estimate the seconds to train a model on all rows, from those without the held-out."""
        return self._relative * trial.fold_seconds

    @property
    def best(self) -> Trial:
        return min(self.trials, key=lambda trial: trial.rank)

    def _search_around_best(self) -> None:
        """Search C and gamma by a pattern around the best model, while there is time."""
        known = {(one.options.C, one.options.gamma) for one in self.trials}
        largest_C, power = MAX_C * self.search.scorer.target_std, 1.0
        while power > LEAST_POWER:
            center = self.best
            for C_factor, gamma_factor in PATTERN:
                if self._is_late(self.best):
                    self.search.skipped.append("more C and gamma on all rows")
                    return
                C = min(center.options.C * C_factor**power, largest_C)
                gamma = center.options.gamma * gamma_factor**power
                if (C, gamma) not in known:
                    known.add((C, gamma))
                    options = replace(center.options, C=C, gamma=gamma)
                    self._try(options, self._seconds_of_all(self.best), is_first=False)
            if not self.best.loss < center.loss:
                power /= 2

    def _best(self, early_options: TrainOptions) -> Choice:
        """Return the best model that can be trained on all rows in the time left.

        An exact one may lack time: then an early one is trained, of `early_options` if none was
        scored.
        """
        is_late = [self._seconds_of_all(one) > self.clock.left() for one in self.trials]
        possible = [
            one
            for one, late in zip(self.trials, is_late, strict=True)
            if one.options.early or not late
        ]
        possible = possible or self.trials
        best = min(possible, key=lambda trial: trial.rank)
        chosen = with_figure(self.search.metric, self.data, best, possible)
        early = [one for one in self.trials if one.options.early]
        if best.options.early:
            return chosen
        if early:
            other = with_figure(
                self.search.metric, self.data, min(early, key=lambda trial: trial.rank), early
            )
        else:
            other = self._unscored(early_options)
        return replace(chosen, otherwise=other)

    def _by_clusters(self) -> TrainOptions | None:
        """Choose C and gamma of an early model on the clusters of its level, which they share.

        The held-out rows take part in no choice. Larger gamma is tried, since more rows allow it.
        Returns None if there is no time.
        """
        search, options = self.search, replace(self.exact.options, early=True, probability=False)
        assert isinstance(options.gamma, float)
        largest_C = MAX_C * search.scorer.target_std
        penalties = sorted({min(options.C * factor, largest_C) for factor in EARLY_CS})
        gammas = [options.gamma * factor for factor in EARLY_GAMMAS]
        best = None
        try:
            reserve = (1.0 - SHARE_OF_CLUSTERS) * self.clock.limit
            folds = options.fold_of_rows(self.data.labels, N_EARLY_FOLDS)
            folds[self.is_held] = -1  # always trained, never scored
            by_clusters = GridSearch.over(
                self.data, options, penalties, gammas, folds=folds,
                stop=self.clock.stop(reserve), metric=search.metric,
            )  # fmt: skip
            # the whole grid at once: early models of all settings share clusters and kernel values
            for _ in chain(by_clusters.run(), by_clusters.use_estimates()):
                pass
            best = by_clusters.best
        except _core.Stopped:
            pass
        if best is None:
            search.skipped.append("C and gamma of early models")
            return None
        # an estimate on few clusters may be far from the loss on all rows
        if best.n_rows >= MIN_SCORED * np.count_nonzero(folds >= 0):
            self.of_clusters = best.loss, best.standard_error, best.n_rows
        return replace(best.setting.options(options), probability=self.exact.options.probability)
