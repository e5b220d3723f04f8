"""The settings of a grid: C, gamma and, for epsilon-SVR, epsilon; what they are worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from dcsvm.problem.options import TrainOptions

# svm-grid's
DEFAULT_CS = tuple(2.0**k for k in range(-5, 16, 2))
DEFAULT_GAMMAS = tuple(2.0**k for k in range(-15, 4, 2))
MOST_SETTINGS = 100_000
FINE_STEPS = 4  # of a fine grid, for each step of the coarse one


@dataclass(frozen=True)
class Setting:
    """What is chosen. `gamma` is None where the kernel has none, `epsilon` where it is not sought;
    then the options say what it is."""

    C: float
    gamma: float | None = None
    epsilon: float | None = None

    @property
    def axis(self) -> tuple[float | None, float | None]:
        """What settings of other C have in common."""
        return self.gamma, self.epsilon

    @property
    def sought(self) -> dict[str, float]:
        """What is sought, by its name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def options(self, base: TrainOptions) -> TrainOptions:
        """The options of training with this setting."""
        return replace(base, **self.sought)


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

    def rank(score: Score):
        setting = score.setting
        return score.loss, setting.C, setting.gamma or 0.0, -(setting.epsilon or 0.0)

    return min(among, key=rank, default=None)


@dataclass(frozen=True)
class Grid:
    """All settings of some values, which ascend; (None,) stands for what is not sought."""

    Cs: tuple[float, ...]
    gammas: tuple[float | None, ...] = (None,)
    epsilons: tuple[float | None, ...] = (None,)

    @staticmethod
    def of(
        options: TrainOptions,
        Cs: Sequence[float],
        gammas: Sequence[float] | None,
        epsilons: Sequence[float] | None = None,
    ) -> Grid:
        """A grid for what the options say; None is the value that is in them. Raises ValueError
        for what does not fit."""
        if epsilons is not None and options.svm_type != "epsilon_svr":
            raise ValueError(f"epsilon is of epsilon-SVR, {options.svm_type} has none")
        if options.svm_type == "one_class":
            raise ValueError("one-class SVM has no C, and nothing to choose it by")
        if gammas is not None and not options.kernel_type.has_gamma:
            raise ValueError(f"the kernel {options.kernel} has no gamma")
        named = {"C": Cs, "gamma": gammas, "epsilon": epsilons}.items()
        grid = Grid(*(_ascending(name, values) for name, values in named))
        if len(grid.settings) > MOST_SETTINGS:
            raise ValueError(f"{len(grid.settings)} settings are more than {MOST_SETTINGS}")
        for setting in grid.settings:
            setting.options(options)
        return grid

    @property
    def axes(self) -> dict[str, tuple]:
        return {"C": self.Cs, "gamma": self.gammas, "epsilon": self.epsilons}

    @property
    def settings(self) -> list[Setting]:
        return [Setting(*values) for values in product(*self.axes.values())]

    def coarse_to_fine(self) -> list[Setting]:
        """The middle first, then ever finer meshes, so that any first part covers all of it."""
        ranks = [
            {value: rank for rank, value in enumerate(_middle_first(list(axis)))}
            for axis in self.axes.values()
        ]

        def fineness(setting: Setting) -> tuple[int, int]:
            own = [rank[value] for rank, value in zip(ranks, vars(setting).values(), strict=True)]
            return max(own), sum(own)

        return sorted(self.settings, key=fineness)

    def around(self, setting: Setting) -> Grid:
        """The fine grid around one of these settings: half a step of this one to both sides (Hsu,
        Chang and Lin, A practical guide to support vector classification, 2003)."""
        values = vars(setting).values()
        return Grid(*map(_finer, self.axes.values(), values))

    def edges(self, setting: Setting) -> list[str]:
        """Of which values a setting has the first or last of several: C, gamma, epsilon."""
        return [
            f"the {'smallest' if value == self.axes[name][0] else 'largest'} {name}"
            for name, value in vars(setting).items()
            if len(self.axes[name]) > 2 and value in (self.axes[name][0], self.axes[name][-1])
        ]


def _ascending(name: str, values: Sequence[float] | None) -> tuple[float | None, ...]:
    if values is None:
        return (None,)
    several = [values] if isinstance(values, (int, float)) else values
    found = sorted({float(value) for value in several})
    if not found:
        raise ValueError(f"there is no {name} to try")
    return tuple(found)


def _middle_first(values: list) -> list:
    """The middle, then the middles of both halves in turn, and so on."""
    ordered, parts = [], [values]
    while parts:
        part = parts.pop(0)
        if part:
            middle = len(part) // 2
            ordered.append(part[middle])
            parts += [part[:middle], part[middle + 1 :]]
    return ordered


def _finer(axis: tuple, value) -> tuple:
    if len(axis) < 2 or value is None or value <= 0:
        return (value,)
    place = axis.index(value)
    beside = axis[place + 1] if place + 1 < len(axis) else axis[place - 1]
    if beside <= 0:
        return (value,)
    step = abs(math.log2(beside / value))
    powers = [step * k / FINE_STEPS for k in range(-FINE_STEPS // 2, FINE_STEPS // 2 + 1)]
    return tuple(value * 2.0**power for power in powers)
