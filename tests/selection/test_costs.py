import math

import pytest

from dcsvm.selection.costs import LEAST_GROWTH, USUAL_GROWTH, Costs


def test_the_growth_is_fitted_to_two_sizes():
    costs = Costs()
    assert costs.of(10) == math.inf
    assert costs.affordable(1.0) == 0
    costs.add(1000, 0.1)
    assert costs.of(2000) == pytest.approx(0.1 * 2**USUAL_GROWTH)
    costs.add(4000, 0.8)
    assert costs.growth == pytest.approx(1.5)
    assert costs.of(16_000) == pytest.approx(6.4)
    assert costs.affordable(6.4) == pytest.approx(16_000, abs=1)


def test_sizes_that_are_close_or_too_short_to_measure_do_not_tell_the_growth():
    costs = Costs()
    costs.add(1000, 0.1)
    costs.add(1100, 0.5)
    assert costs.growth == USUAL_GROWTH
    costs = Costs()
    costs.add(1000, 0.0)
    costs.add(5000, 0.0)
    assert costs.growth == LEAST_GROWTH
    assert costs.of(10_000) < 0.01
