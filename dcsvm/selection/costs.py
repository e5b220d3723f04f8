"""Estimate the seconds of a training from those of smaller ones, and of a running one."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from dcsvm import _core
from dcsvm.training.report import Progress

USUAL_GROWTH = 2.0  # power of the number of rows, before it is measured
LEAST_GROWTH, MOST_GROWTH = 1.2, 2.5
APART = 1.5  # least ratio of two sizes that tell the growth
MOST_SECONDS = 1e9
LEAST_SECONDS = 0.05  # of trainings that tell the growth: shorter ones measure their beginning
DOUBT = 2.0  # a running training is given up if it seems to last so many times the time left


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


def seconds_to_go(first: float, violation: float, tolerance: float, seconds: float) -> float:
    """Estimate the seconds until a violation that was `first` and fell in `seconds` is tolerable.

    It is divided by about the same factor in equal times. Infinite if it did not fall.
    """
    if violation <= tolerance:
        return 0.0
    if violation >= first:
        return math.inf
    return seconds * math.log(violation / tolerance) / math.log(first / violation)


class Foresight(Progress):
    """Requests the stop of a training whose last phase will not end within `seconds` from now.

    `tolerance` is that of the violation. The course of the phase tells from a quarter of the time
    on that it has. `level` is the last level that it has solved.
    """

    level: int | None = None

    def __init__(self, stop: _core.Stop, seconds: float, tolerance: float):
        self.stop, self.tolerance = stop, tolerance
        self.deadline = time.perf_counter() + seconds
        self.is_last = False
        self.begun = self.first = self.least = math.inf

    def begin(self, name: str, n_rows: int) -> None:  # noqa: ARG002
        self.is_last = name == "conquer"
        self.begun, self.first, self.least = time.perf_counter(), math.inf, math.inf

    def end_level(self, report: Any) -> None:
        self.level = report.level

    def advance(
        self,
        rows_done: int,  # noqa: ARG002
        violation: float | None = None,
        n_active: int | None = None,  # noqa: ARG002
    ) -> None:
        if not self.is_last or violation is None or not violation > 0:
            return
        if math.isinf(self.first):
            self.first = violation
        self.least = min(self.least, violation)
        now = time.perf_counter()
        used, left = now - self.begun, self.deadline - now
        if used < left / 3:
            return
        if seconds_to_go(self.first, self.least, self.tolerance, used) > DOUBT * max(left, 0.0):
            self.stop.request()
