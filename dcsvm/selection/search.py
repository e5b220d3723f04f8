"""Search the kernel, scaling, feature weights, C, gamma and epsilon on samples of the rows.

Candidates are scored on held-out rows or folds, in this order: kernels in two scalings with two C;
feature weights for the best one; C and gamma by a pattern, on more rows; epsilon; the same pattern
for other kernels that are as good up to noise. While there is time, weights, C, gamma and epsilon
are searched again around the best until nothing improves, then C and gamma in smaller steps, and
the best ones are scored in other folds.

Of many rows, some are held back for the models of all other rows (final.py): no sample has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.kernel.kernels import KERNEL_TYPES
from dcsvm.model.figure import loss_of_best
from dcsvm.model.metrics import shown_loss
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.costs import APART, Costs
from dcsvm.selection.trials import (
    GIVEN,
    INFORMATION,
    SCALING_NAMES,
    SLOPES,
    Candidate,
    Clock,
    Scorer,
    Trial,
    sampled,
    weights_of_loss,
)
from dcsvm.training.report import Progress
from dcsvm.training.train import MAX_FEATURES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SCALINGS = ("auto", "quantile")
SCREENED_C = (2.0, 16.0)
MAX_C = 1000.0
N_SCREENED, N_SEARCHED, N_OTHERS = 8, 7, 5  # trials; the others are for weights and epsilon
N_OF_RIVAL = 4  # trials for each kernel that is nearly as good
N_NEAR = 24  # trials in small steps, so that time is left for other folds
N_AGAIN, MAX_ROUNDS = 40, 4  # trials of C and gamma in a round of another search, and rounds
LEAST_GAIN = 0.1  # of a round, in standard errors, for another one
EPSILON, EPSILON_OF_RMSE = 0.05, 0.1  # at the start, in standard deviations; then of the RMSE
FACTORS_OF_EPSILON = (0.3, 3.0)  # tried at the end
PATTERN = ((1.0, 3.0), (4.0, 1.0), (1.0, 1 / 3), (0.25, 1.0))  # factors of C and gamma
LEAST_POWER = 0.4  # of these factors: 1, then 1/2
FIRST_STEP, LEAST_STEP = 0.25, 0.1  # powers at the end: 1/4, then 1/8
SCREENING_ROWS, SEARCH_ROWS, MAX_SAMPLE = 5000, 20_000, 100_000
# Least share of the time limit for the search: of all rows, or of samples.
SHARE_OF_SEARCH, SHARE_OF_SAMPLES = 0.6, 0.4
# Seconds of a training at full tolerance relative to those of a trial, and with probabilities; what
# is reserved for it, relative to the estimate, and in addition.
LAST_TRAINING, WITH_PROBABILITIES, RESERVED, BESIDE = 2.0, 6.0, 1.5, 0.5
N_DIVISIONS, MAX_REPEATED = 8, 6  # divisions into folds, and settings that are scored in all
N_OTHER_FOLDS = 10  # least number of folds of the later divisions: nearly all rows are trained
# Held-back rows: few, so that the others train nearly the model of all, but enough for the figure.
MIN_HELD, HELD_SHARE = 4000, 0.04


Tell = Callable[[str, Trial, Trial], None]  # step, trial, best trial so far


class EasySearch:
    """Search for the best candidate on samples of a data set.

    A scaling of the data set, and `feature_weights` (n_features,), are not chosen but given. The
    lines of `progress` tell the best candidate after each step; `tell` is called after each trial.

    Attributes
    ----------
    n_rows : number of rows that count, of weight above 0.
    is_held_back : rows that no sample has, bool (n,); none of few rows.
    scorer, trials : the scorer on the current sample, and the trials on it.
    candidates : all that were scored, on any sample.
    skipped : names of the omitted parts of the search.
    costs : seconds of trainings by candidate.
    bias : how much too small the loss of the best is, because trials before had the same rows.

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
        counts_classes: bool = False,
    ):
        """With `counts_classes`, losses count class weights, not only sample weights."""
        if data.n_features == 0:
            raise ValueError("the training set has no features")
        self.data, self.options, self.metric, self.clock = data, options, metric, clock
        self.progress, self.tell, self.feature_weights = progress, tell, feature_weights
        self.weights_of_loss = weights_of_loss(data, options, counts_classes=counts_classes)
        self.n_rows = len(self._counted(np.arange(data.n_rows)))
        self.trials: list[Trial] = []
        self.screened: list[Trial] = []
        self.bias = 0.0
        self.candidates: set[Candidate] = set()
        self.skipped: list[str] = []
        self.costs = Costs()
        self.step = ""
        self.n_in_step: int | None = None  # new candidates, None before the first trial of the step
        self.scalings = SCALINGS if data.scaling is None else (GIVEN,)
        self.is_held_back = self._held_back()
        self.scorer = self._scorer(SCREENING_ROWS)
        is_constant = self.scorer.scaled(self.scalings[0]).rows.n_features == 0
        # a sample may lack rare rows
        if is_constant and data.scaled("auto").rows.n_features == 0:
            raise ValueError("all rows are equal: there is nothing to learn from")

    def _held_back(self) -> np.ndarray:
        """Draw the rows for the models of all other rows, bool (n,)."""
        data, is_held = self.data, np.zeros(self.data.n_rows, bool)
        if not self.is_small:
            rows = self._counted(np.arange(data.n_rows))
            is_held[sampled(rows, data.labels, self.options, self.n_to_hold)] = True
        return is_held

    @property
    def n_to_hold(self) -> int:
        """Number of rows to hold out of the models of all other rows."""
        return int(min(max(MIN_HELD, HELD_SHARE * self.n_rows), self.n_rows / 4))

    def _counted(self, rows: np.ndarray) -> np.ndarray:
        """Return those of some rows int64 (n,) that have a weight above 0."""
        weights = self.weights_of_loss
        return rows if weights is None else rows[weights[rows] > 0]

    def _scorer(self, n_rows: int) -> Scorer:
        rows = self._counted(np.flatnonzero(~self.is_held_back))
        return Scorer.of(
            self.data, self.options, self.metric, n_rows, self.feature_weights,
            self.weights_of_loss, rows,
        )  # fmt: skip

    @property
    def has_all_rows(self) -> bool:
        """Whether the sample has all rows that count."""
        return self.scorer.data.n_rows == self.n_rows

    @property
    def is_small(self) -> bool:
        """Whether there are so few rows that an early model has no use."""
        return self.n_rows <= SEARCH_ROWS

    @property
    def best(self) -> Trial:
        """The best trial of those that were scored in the most divisions into folds."""
        most = max(len(trial.outcomes) for trial in self.trials)
        scored = (trial for trial in self.trials if len(trial.outcomes) == most)
        return min(scored, key=lambda trial: trial.rank)

    @property
    def reserve(self) -> float:
        """Seconds that are kept for what follows the search."""
        limit = self.clock.limit
        if not self.trials:
            return 0.0  # the first trial may take all the time
        if not self.is_small:
            return (1.0 - SHARE_OF_SAMPLES) * limit
        needed = RESERVED * (self.seconds_of_all() + self.best.weight_seconds) + BESIDE
        return min(needed, (1.0 - SHARE_OF_SEARCH) * limit)

    def seconds_of_all(self) -> float:
        """Estimate the seconds of an exact training of the best candidate on all rows."""
        factor = WITH_PROBABILITIES if self.options.probability else 1.0
        return factor * LAST_TRAINING * self.costs.of(self.best.candidate, self.n_rows)

    def run(self) -> Trial:
        """Carry out the steps. Raises Stopped with a message if no candidate was scored."""
        for name, step in (
            ("kernels and scalings", self._screen_kernels),
            ("feature weights", self._try_weights),
            ("C and gamma", self._search_pattern),
            ("epsilon", self._refine_epsilon),
            ("other kernels", self._search_rivals),
            ("once more", self._search_again),
            ("smaller steps", self._search_near),
            ("other folds", self._divide_again),
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
                self.skipped.append(name if self.n_in_step is None else f"the rest of {name}")
        self._begin("")
        return self.best

    def _try(self, candidate: Candidate, scorer: Scorer | None = None) -> None:
        """Score a candidate in the time left for the search. Raises Stopped.

        If `scorer` is given, the search continues with it, unless it is stopped before.
        """
        used = scorer or self.scorer
        trial = used.trial(candidate, self.clock.stop(self.reserve))
        if scorer is not None:  # losses on other rows do not compare
            self._continue_on(scorer)
        self.trials.append(trial)
        self.n_in_step = (self.n_in_step or 0) + (candidate not in self.candidates)
        self.candidates.add(candidate)
        best = self.best
        self.costs.add(candidate, self.scorer.n_trained, trial.fold_seconds)
        self.progress.trial(self.step, self.n_in_step, self.quality(best))
        if self.tell is not None:
            self.tell(self.step, trial, best)

    def _continue_on(self, scorer: Scorer) -> None:
        """Use another scorer; what trials on the rows before have chosen is not forgotten."""
        if len(self.trials) > 1:
            best, outcomes = self.best, [one.outcomes for one in self.trials]
            loss, _ = loss_of_best(self.metric, outcomes, self.trials.index(best))
            self.bias += loss - best.loss
        self.bias *= min(self.scorer.n_held / scorer.n_held, 1.0)
        self.scorer, self.trials = scorer, []

    def quality(self, trial: Trial) -> str:
        """Format a loss with its standard error, as the metric shows it."""
        return shown_loss(self.metric, trial.loss, trial.error)

    def _begin(self, step: str) -> None:
        """Begin a step; tell the best candidate after the step before, if it tried any."""
        if self.n_in_step is not None:
            best, n = self.best.candidate, self.n_in_step
            weights = "" if best.weighting is None else f", weights by {best.weighting}"
            trials = f"{n} trial{'s'[: n != 1]}" if n else "no new setting"
            self.progress.note(
                f"{self.step}: {trials}; best: {best.kernel}, "
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
        self.screened = list(self.trials)

    def _set_folds(self, n_trials: int) -> None:
        """Use as many folds as the time of `n_trials` trials allows; score the first one again."""
        (trial,) = self.trials
        n_folds = self.clock.left(self.reserve) / (n_trials * trial.fold_seconds)
        n_folds = int(min(max(n_folds, 1), self.scorer.max_folds))
        if n_folds != self.scorer.n_folds:
            self._try(trial.candidate, self.scorer.with_folds(n_folds))

    def _try_weights(self) -> None:
        if self.data.n_features > MAX_FEATURES:
            self.skipped.append(f"{self.step} (too many features)")
        elif self.feature_weights is None:
            best = self.best.candidate
            self._try(replace(best, weighting=SLOPES, source=best))
            if self.scorer.scaled(best.scale).rows.is_dense:
                self._try(replace(best, weighting=INFORMATION))

    def _search_pattern(self) -> None:
        """Search C and gamma around the best, on as many rows as the time allows."""
        self._enlarge()
        self._pattern(self.best, N_SEARCHED)

    def _pattern(
        self, start: Trial, n_trials: int, power: float = 1.0, least: float = LEAST_POWER
    ) -> None:
        """Search C and gamma around a trial by powers of 4 and 3, the first and then its halves."""
        best, n_tried = start, 0
        fixed = replace(start.candidate, C=0.0, gamma=0.0)
        known = {
            (one.candidate.C, one.candidate.gamma)
            for one in self.trials
            if replace(one.candidate, C=0.0, gamma=0.0) == fixed
        }
        while power > least:
            center = best
            for C_factor, gamma_factor in PATTERN:
                C = min(center.candidate.C * C_factor**power, MAX_C)
                gamma = center.candidate.gamma * gamma_factor**power
                if (C, gamma) in known:
                    continue
                if n_tried == n_trials:
                    return
                known.add((C, gamma))
                n_tried += 1
                self._try(replace(center.candidate, C=C, gamma=gamma))
                if self.trials[-1].loss < best.loss:  # equal ones would lead on without end
                    best = self.trials[-1]
            if best is center:
                power /= 2

    def _enlarge(self) -> None:
        """Continue on a larger sample, as large as the time allows; score the best there."""
        n_now = self.scorer.data.n_rows
        n_all = len(self._counted(np.flatnonzero(~self.is_held_back)))
        if n_all <= n_now:
            return
        best = self.best.candidate
        of_trial = self.clock.left(self.reserve) / (N_SEARCHED + 2)
        share = self.scorer.n_trained / n_now
        n_rows = int(min(n_all, MAX_SAMPLE, self.costs.affordable(best, of_trial) / share))
        if n_rows < min(n_all, MAX_SAMPLE):
            self.skipped.append("larger samples")
        if n_rows < min(APART * n_now, n_all):
            return
        self._try(best, self._scorer(n_rows))
        self._set_folds(N_SEARCHED + 1)

    def _refine_epsilon(self) -> None:
        best = self.best.candidate
        if best.epsilon is not None:
            for factor in FACTORS_OF_EPSILON:
                self._try(replace(best, epsilon=best.epsilon * factor))

    def _search_rivals(self) -> None:
        """Search around the best of each other kernel that is worse by less than the noise."""
        screened = sorted(self.screened or self.trials, key=lambda trial: trial.rank)
        best, others = self.best.candidate, dict[str, Candidate]()
        for trial in screened:
            is_good = trial.loss < screened[0].loss + screened[0].error
            if is_good and trial.candidate.kernel != best.kernel:
                others.setdefault(trial.candidate.kernel, trial.candidate)
        for candidate in others.values():
            weighting = best.weighting
            if weighting == INFORMATION and not self.scorer.scaled(candidate.scale).rows.is_dense:
                weighting = None
            source = candidate if weighting == SLOPES else None
            candidate = replace(candidate, weighting=weighting, source=source, epsilon=best.epsilon)
            known = [trial for trial in self.trials if trial.candidate == candidate]
            if not known:
                self._try(candidate)
            trial = known[0] if known else self.trials[-1]
            if trial.loss < self.best.loss + self.best.error:
                self._pattern(trial, N_OF_RIVAL)

    def _search_again(self) -> None:
        """Search weights, C, gamma and epsilon around the best until nothing improves."""
        for _ in range(MAX_ROUNDS):
            before = self.best
            self._relearn_weights()
            self._pattern(self.best, N_AGAIN)
            self._refine_epsilon()
            if self.best.loss > before.loss - LEAST_GAIN * before.error:
                return

    def _relearn_weights(self) -> None:
        """Learn weights by slopes of a model with the C and gamma of the best."""
        best = self.best.candidate
        if self.feature_weights is not None or self.data.n_features > MAX_FEATURES:
            return
        source = replace(best, weighting=None, source=None)
        again = replace(best, weighting=SLOPES, source=source)
        if again not in self.candidates:
            self._try(again)

    def _search_near(self) -> None:
        """Search C and gamma around the best in small steps."""
        self._pattern(self.best, N_NEAR, power=FIRST_STEP, least=LEAST_STEP)

    def _divide_again(self) -> None:
        """Score the best ones in more folds, and then in other folds, to tell them apart."""
        if self.scorer.n_folds < self.scorer.max_folds:
            several, scorer = self._several_best(), self.scorer.with_folds(self.scorer.max_folds)
            for trial in several:
                self._try(trial.candidate, scorer if trial is several[0] else None)
        if not self.scorer.holds_out_all:
            return
        self.n_in_step = self.n_in_step or 0  # no new settings
        for times in range(1, N_DIVISIONS):
            several = self._several_best()
            if len(several) < 2:
                return
            scorer = self.scorer.divided_again(times, N_OTHER_FOLDS)
            others = [
                scorer.trial(trial.candidate, self.clock.stop(self.reserve)) for trial in several
            ]
            for trial, other in zip(several, others, strict=True):  # all, or none
                self.trials.remove(trial)
                self.trials.append(trial.again(self.metric, other))

    def _several_best(self) -> list[Trial]:
        """Return the best trials that noise does not tell apart, the best one first."""
        best = self.best
        equal = [
            trial
            for trial in self.trials
            if len(trial.outcomes) == len(best.outcomes) and trial.loss <= best.loss + best.error
        ]
        return sorted(equal, key=lambda trial: trial.rank)[:MAX_REPEATED]

    def final_weights(self, candidate: Candidate) -> np.ndarray:
        """Return feature weights, learned from the whole sample if there is time.

        Otherwise those of a fold that scored the candidate, which are kept.
        """
        try:
            return self.scorer.weights(candidate, -1, self.clock.stop())
        except _core.Stopped:
            return self.scorer.weights(candidate, 0, _core.Stop())
