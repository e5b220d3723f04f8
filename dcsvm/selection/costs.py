"""Estimate the seconds of a training from those of smaller ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

USUAL_GROWTH = 2.0  # power of the number of rows, before it is measured
LEAST_GROWTH, MOST_GROWTH = 1.0, 2.5
APART = 1.5  # least ratio of two sizes that tell the growth
RESOLUTION = 1e-3  # seconds: shorter trainings tell nothing of the growth


@dataclass(eq=False)
class Costs:
    """Seconds of trainings of one setting by their number of rows."""

    seconds: dict[int, float] = field(default_factory=dict)

    def add(self, n_rows: int, seconds: float) -> None:
        """Add a measured training; a later one of the same size replaces it."""
        self.seconds[n_rows] = max(seconds, RESOLUTION)

    @property
    def growth(self) -> float:
        """The power of the number of rows that fits the smallest and the largest training."""
        sizes = sorted(self.seconds)
        if len(sizes) < 2 or sizes[-1] < APART * sizes[0]:
            return USUAL_GROWTH
        first, last = sizes[0], sizes[-1]
        power = math.log(self.seconds[last] / self.seconds[first]) / math.log(last / first)
        return min(max(power, LEAST_GROWTH), MOST_GROWTH)

    def of(self, n_rows: int) -> float:
        """Estimate the seconds of a training of so many rows; infinite if none was measured."""
        if not self.seconds:
            return math.inf
        largest = max(self.seconds)
        return self.seconds[largest] * (n_rows / largest) ** self.growth

    def affordable(self, seconds: float) -> int:
        """Return the largest number of rows whose training takes at most so many seconds."""
        if not self.seconds or seconds <= 0:
            return 0
        largest = max(self.seconds)
        return int(largest * (seconds / self.seconds[largest]) ** (1 / self.growth))
