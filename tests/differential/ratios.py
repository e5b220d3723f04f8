"""Ratios of two states' times, now over base, their spread, and the limits that make them fail."""

import math
from dataclasses import dataclass
from itertools import cycle
from statistics import fmean, quantiles

SIDES = ("base", "now")
MOST, MOST_ON_AVERAGE = 1.10, 1.03  # of a case, and of the geometric mean of a part's cases


@dataclass(frozen=True)
class Ratio:
    """Median and quartiles of the ratios of pairs, which are measured back to back."""

    low: float
    middle: float
    high: float

    @staticmethod
    def of(pairs):
        """Return the ratio of pairs (base, now)."""
        ratios = [now / base for base, now in pairs]
        return Ratio(*(quantiles(ratios, n=4, method="inclusive") if ratios[1:] else 3 * ratios))

    @property
    def is_slower(self):
        return self.low > MOST

    def __str__(self):
        return f"{self.middle:5.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Measured:
    """The ratio of a case, the words on its line, and a remark for the end."""

    case: object
    ratio: Ratio
    words: str
    remark: str = ""


def in_turn(measure):
    """Measure repeatedly in the order base, now, now, base; yield pairs (base, now)."""
    for order in cycle((SIDES, SIDES[::-1])):
        found = {side: measure(side) for side in order}
        yield tuple(found[side] for side in SIDES)


def geometric_mean(measured):
    """Return the geometric mean of the ratios, 1 if there are no ratios."""
    return math.exp(fmean([math.log(one.ratio.middle) for one in measured] or [0.0]))


def is_slower_on_average(measured):
    return geometric_mean(measured) > MOST_ON_AVERAGE


def to_repeat(measured):
    """Return the cases of a part that have to be measured again before they fail."""
    every = is_slower_on_average(measured)
    return [one.case for one in measured if every or one.ratio.is_slower]
