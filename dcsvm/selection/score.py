"""What the settings of a grid are worth, and the best of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dcsvm.selection.grid import Setting


@dataclass(frozen=True)
class Score:
    """What models of a setting make of rows that they have not seen: the mean `loss`, part of the
    rows that are wrong or squared error, of `n_rows` rows of this `weight`. That is all of them
    where the score `is_complete`; otherwise the setting was left, since it could not win any more
    (or the search was stopped). `losses` has one of each fold, nan where it has no rows.

    `n_sv` support vectors have the models of all folds, None where the setting was left. `seconds`
    is its share of the time."""

    setting: Setting
    loss: float
    losses: tuple[float, ...]
    n_rows: int
    weight: float
    is_complete: bool
    converged: bool
    n_sv: int | None
    seconds: float

    @property
    def total(self) -> float:
        """The sum of the losses, or hardly more: settings that are equal do not exceed it."""
        return self.loss * self.weight * (1.0 + 1e-12)

    @property
    def may_win(self) -> bool:
        return self.is_complete and self.converged


def best_of(scores: Iterable[Score]) -> Score | None:
    """The least loss of complete scores, where there are any that converged; ties go to the
    smaller C, then the smaller gamma and the larger epsilon. None of nothing."""
    scores = [score for score in scores if score.n_rows > 0]
    complete = [score for score in scores if score.is_complete]
    among = [score for score in complete if score.converged] or complete or scores
    return min(among, key=_rank, default=None)


def _rank(score: Score):
    setting = score.setting
    return score.loss, setting.C, setting.gamma or 0.0, -(setting.epsilon or 0.0)
