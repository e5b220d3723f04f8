"""Estimate the seconds of a training from those of smaller ones."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field

USUAL_GROWTH = 2.0  # power of the number of rows, before it is measured
LEAST_GROWTH, MOST_GROWTH = 1.2, 2.5
APART = 1.5  # least ratio of two sizes that tell the growth
MOST_SECONDS = 1e9
LEAST_SECONDS = 0.05  # of trainings that tell the growth: shorter ones measure their beginning


@dataclass(eq=False)
class Costs:
    """Seconds of trainings by setting and number of rows."""

    seconds: dict[Hashable, dict[int, float]] = field(default_factory=dict)

    def add(self, setting: Hashable, n_rows: int, seconds: float) -> None:
        """Add a measured training; the fastest of the same setting and size counts."""
        of_sizes = self.seconds.setdefault(setting, {})
        of_sizes[n_rows] = min(seconds, of_sizes.get(n_rows, math.inf))

    @property
    def growth(self) -> float:
        """The power of the number of rows that fits the sizes of one setting that differ most."""
        ratio, power = APART, USUAL_GROWTH
        for of_sizes in self.seconds.values():
            first, last = min(of_sizes), max(of_sizes)
            if last < ratio * first or min(of_sizes[first], of_sizes[last]) < LEAST_SECONDS:
                continue
            ratio = last / first
            power = math.log(of_sizes[last] / of_sizes[first]) / math.log(ratio)
        return min(max(power, LEAST_GROWTH), MOST_GROWTH)

    def of(self, setting: Hashable, n_rows: int) -> float:
        """Estimate the seconds of a training of so many rows; infinite if none was measured."""
        of_sizes = self.seconds.get(setting)
        if not of_sizes:
            return math.inf
        largest = max(of_sizes)
        return of_sizes[largest] * (n_rows / largest) ** self.growth

    def affordable(self, setting: Hashable, seconds: float) -> int:
        """Return the largest number of rows whose training takes at most so many seconds."""
        of_sizes = self.seconds.get(setting)
        if not of_sizes or seconds <= 0:
            return 0
        seconds, largest = min(seconds, MOST_SECONDS), max(of_sizes)
        least = max(of_sizes[largest], 1e-6)
        return int(largest * (seconds / least) ** (1 / self.growth))
