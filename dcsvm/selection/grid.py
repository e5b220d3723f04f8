"""The settings of a grid: C, gamma and, for epsilon-SVR, epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from dcsvm.kernel.kernels import WITH_GAMMA
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

    def options(self, base: TrainOptions) -> TrainOptions:
        """The options of training with this setting."""
        found = {"C": self.C, "gamma": self.gamma, "epsilon": self.epsilon}
        return replace(base, **{name: value for name, value in found.items() if value is not None})


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
        has_gamma = options.kernel in WITH_GAMMA
        if gammas is not None and not has_gamma:
            raise ValueError(f"the kernel {options.kernel} has no gamma")
        grid = Grid(
            _ascending("C", Cs),
            _ascending("gamma", gammas) if gammas is not None else (None,),
            _ascending("epsilon", epsilons) if epsilons is not None else (None,),
        )
        if len(grid.settings) > MOST_SETTINGS:
            raise ValueError(f"{len(grid.settings)} settings are more than {MOST_SETTINGS}")
        for setting in grid.settings:
            setting.options(options)
        return grid

    @property
    def settings(self) -> list[Setting]:
        return [Setting(*values) for values in product(self.Cs, self.gammas, self.epsilons)]

    def coarse_to_fine(self) -> list[Setting]:
        """The middle first, then ever finer meshes, so that any first part covers all of it."""
        ranks = [
            {value: rank for rank, value in enumerate(_middle_first(list(axis)))}
            for axis in (self.Cs, self.gammas, self.epsilons)
        ]

        def fineness(setting: Setting) -> tuple[int, int]:
            values = (setting.C, setting.gamma, setting.epsilon)
            own = [rank[value] for rank, value in zip(ranks, values, strict=True)]
            return max(own), sum(own)

        return sorted(self.settings, key=fineness)

    def around(self, setting: Setting) -> Grid:
        """The fine grid around one of these settings: half a step of this one to both sides (Hsu,
        Chang and Lin, A practical guide to support vector classification, 2003)."""
        return Grid(
            _finer(self.Cs, setting.C),
            _finer(self.gammas, setting.gamma),
            _finer(self.epsilons, setting.epsilon),
        )

    def edges(self, setting: Setting) -> list[str]:
        """Of which values a setting has the first or last of several: C, gamma, epsilon."""
        axes = {"C": self.Cs, "gamma": self.gammas, "epsilon": self.epsilons}
        values = (setting.C, setting.gamma, setting.epsilon)
        return [
            f"the {'smallest' if value == axis[0] else 'largest'} {name}"
            for (name, axis), value in zip(axes.items(), values, strict=True)
            if len(axis) > 2 and value in (axis[0], axis[-1])
        ]


def _ascending(name: str, values: Sequence[float]) -> tuple[float, ...]:
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
