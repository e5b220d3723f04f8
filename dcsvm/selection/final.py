"""Choose the model of all rows: exact or early, and its C and gamma at this number of rows.

The search was on a sample. Here all rows but some held-out ones are trained, so that losses are
those of the model that is written, up to the few rows that it lacks. These held-out rows are
outside the sample, which has chosen the kernel, the scaling and the feature weights.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.figure import loss_of_best
from dcsvm.selection.search import LEAST_POWER, MAX_C, PATTERN, EasySearch
from dcsvm.selection.trials import Candidate, Trial, joined_in_order, scaled_as
from dcsvm.training.early_level import finest_level
from dcsvm.training.grid import GridSearch
from dcsvm.training.scores import held_out

SHARE_OF_CLUSTERS = 0.6  # of the time limit, at the end of the search by clusters
EARLY_GAMMAS, EARLY_CS = (1.0, 3.0, 9.0), (1.0, 4.0)  # factors tried for the early level
N_EARLY_FOLDS = 5
# Held-out rows: few, so that the others train nearly the model of all, but enough for the figure.
MIN_HELD, HELD_SHARE = 4000, 0.04
MARGIN = 1.2  # on measured seconds of a training, for one on slightly more rows


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
    if search.is_small and search.seconds_of_all() < search.clock.left_of_last:
        return with_figure(search.metric, data, best, search.trials)
    exact = replace(best, options=number_of_gamma(best.options, data.rows, table=data.table))
    level = finest_level(data, exact.options)
    if level is None:
        return with_figure(search.metric, data, exact, [*search.trials, exact])
    return Finalists(search, data, exact, level).choose()


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

    def _held_rows(self) -> np.ndarray:
        """Draw the held-out rows, bool (n,), outside the sample of the search if there are any."""
        data, options = self.search.data, self.search.options
        n_held = max(MIN_HELD, HELD_SHARE * data.n_rows)
        n_folds = max(-(-data.n_rows // int(n_held)), N_EARLY_FOLDS)
        others = np.ones(data.n_rows, bool)
        others[self.search.scorer.chosen] = False
        if np.count_nonzero(others) < n_held:
            others[:] = True
        rows = np.flatnonzero(others)
        n_folds = max(2, n_folds * len(rows) // data.n_rows)
        is_held = np.zeros(data.n_rows, bool)
        is_held[rows[options.fold_of_rows(data.labels[rows], n_folds) == 0]] = True
        return is_held

    def choose(self) -> Choice:
        """Score early and exact models, then others around the best one while there is time."""
        search, clock = self.search, self.clock
        early = self._by_clusters()
        if early is None and search.seconds_of_all() < clock.left_of_last:
            return self._by_sample(self.exact.options)
        if early is None:
            return self._by_sample(self._early(self.exact.options, self.level))
        self._try(early)
        if 2.0 * search.seconds_of_all() > clock.left():
            seconds = search.seconds_of_all()
            search.skipped.append(f"an exact model of all rows (about {seconds:.0f} s)")
        else:
            # its training on all rows takes as long again
            self._try(self.exact.options, clock.left() / 2.0)
        if not self.trials:
            return self._by_sample(early)
        self._search_around_best()
        return self._best()

    @staticmethod
    def _early(options: TrainOptions, level: int | None) -> TrainOptions:
        return replace(options, early=True, early_level=level)

    def _by_sample(self, options: TrainOptions) -> Choice:
        """Choose options by the losses of the search, without a loss at this number of rows."""
        search = self.search
        chosen = with_figure(search.metric, self.data, search.best, search.trials)
        return replace(chosen, trial=replace(chosen.trial, options=options))

    def _try(self, options: TrainOptions, reserve: float = 0.0) -> None:
        """Score a model, unless time ends before."""
        begin = time.perf_counter()
        try:
            outcome = held_out(self.data, self.is_held, options, self.clock.stop(reserve))
        except _core.Stopped:
            kind = "early" if options.early else "exact"
            self.search.skipped.append(f"an {kind} model of all rows (more than the time left)")
            return
        search, exact = self.search, self.exact
        assert isinstance(options.gamma, float) and isinstance(exact.options.gamma, float)
        candidate = replace(
            exact.candidate,
            C=options.C / search.scorer.target_std,
            gamma=exact.candidate.gamma * options.gamma / exact.options.gamma,
        )
        rows = np.flatnonzero(self.is_held)
        outcome = joined_in_order([outcome], [rows], search.metric, search.weights_of_loss)
        seconds = time.perf_counter() - begin
        trial = Trial.of(candidate, options, search.metric, (outcome,), seconds)
        self.trials.append(trial)
        search.progress.note(
            f"{'early' if options.early else 'exact'} model of all rows but "
            f"{trial.n_held} held-out ones, C={options.C:.4g}, gamma={options.gamma:.4g}: "
            f"{search.quality(trial)}, {seconds:.1f} s"
        )

    def _seconds_of_all(self, trial: Trial) -> float:
        """Estimate the seconds to train a model on all rows, from those without the held-out."""
        return MARGIN * trial.fold_seconds / (1.0 - float(self.is_held.mean()))

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
                if self.clock.left() < 2.0 * self._seconds_of_all(self.best):
                    return
                C = min(center.options.C * C_factor**power, largest_C)
                gamma = center.options.gamma * gamma_factor**power
                if (C, gamma) not in known:
                    known.add((C, gamma))
                    options = replace(center.options, C=C, gamma=gamma)
                    self._try(options, self._seconds_of_all(self.best))
            if self.best is center:
                power /= 2

    def _best(self) -> Choice:
        """Return the best model that can be trained on all rows in the time left."""
        is_late = [self._seconds_of_all(one) > self.clock.left() for one in self.trials]
        possible = [
            one
            for one, late in zip(self.trials, is_late, strict=True)
            if one.options.early or not late
        ]
        best = min(possible or self.trials, key=lambda trial: trial.rank)
        chosen = with_figure(self.search.metric, self.data, best, self.trials)
        early = [one for one in self.trials if one.options.early]
        if best.options.early or not early:
            return chosen
        other = min(early, key=lambda trial: trial.rank)
        return replace(
            chosen, otherwise=with_figure(self.search.metric, self.data, other, self.trials)
        )

    def _by_clusters(self) -> TrainOptions | None:
        """Choose C and gamma of an early model on the clusters of its level, which they share.

        Larger gamma is tried, since more rows allow it. Returns None if there is no time.
        """
        search, options = self.search, replace(self.exact.options, early=True)
        assert isinstance(options.gamma, float)
        largest_C = MAX_C * search.scorer.target_std
        penalties = sorted({min(options.C * factor, largest_C) for factor in EARLY_CS})
        gammas = [options.gamma * factor for factor in EARLY_GAMMAS]
        best = None
        try:
            reserve = (1.0 - SHARE_OF_CLUSTERS) * self.clock.limit
            by_clusters = GridSearch.over(
                self.data, options, penalties, gammas, folds=N_EARLY_FOLDS,
                stop=self.clock.stop(reserve),
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
        return best.setting.options(options)
