import math

import pytest

from dcsvm import _core
from dcsvm.selection.costs import (
    LEAST_GROWTH,
    LEAST_SECONDS,
    USUAL_GROWTH,
    Costs,
    Foresight,
    seconds_to_go,
)


def test_the_growth_is_fitted_to_two_sizes_of_one_setting():
    costs = Costs()
    assert costs.of("a", 10) == math.inf
    assert costs.affordable("a", 1.0) == 0
    costs.add("a", 1000, 0.1)
    costs.add("b", 4000, 5.0)  # another setting does not tell
    assert costs.of("a", 2000) == pytest.approx(0.1 * 2**USUAL_GROWTH)
    costs.add("a", 4000, 0.8)
    costs.add("a", 4000, 1.2)  # disturbed
    assert costs.growth == pytest.approx(1.5)
    assert costs.of("a", 16_000) == pytest.approx(6.4)
    assert costs.of("b", 16_000) == pytest.approx(40.0)
    assert costs.affordable("a", 6.4) == pytest.approx(16_000, abs=1)


def test_sizes_that_are_close_or_too_short_to_measure_do_not_tell_the_growth():
    costs = Costs()
    costs.add("a", 1000, 0.1)
    costs.add("a", 1100, 0.5)
    assert costs.growth == USUAL_GROWTH
    costs = Costs()
    costs.add("a", 1000, 0.5 * LEAST_SECONDS)
    costs.add("a", 5000, 2.0)
    assert costs.growth == USUAL_GROWTH
    costs = Costs()
    costs.add("a", 1000, 0.1)
    costs.add("a", 5000, 0.1)
    assert costs.growth == LEAST_GROWTH
    assert costs.affordable("a", 1.0) > 5000


def test_a_violation_that_falls_tells_the_seconds_to_go():
    assert seconds_to_go(1.0, 0.1, 1e-3, 3.0) == pytest.approx(6.0)
    assert seconds_to_go(1.0, 1e-3, 1e-3, 3.0) == 0.0
    assert seconds_to_go(1.0, 1.0, 1e-3, 3.0) == math.inf


@pytest.mark.parametrize(("phase", "violations", "is_stopped"), [
    ("conquer", [1.0, 0.9, 0.9], True),
    ("conquer", [1.0, 0.9, 1e-3], False),
    ("level 1", [1.0, 0.9, 0.9], False),
])  # fmt: skip
def test_a_training_that_will_not_end_in_time_is_stopped(
    monkeypatch, phase, violations, is_stopped
):
    now = iter([0.0, 0.0, 1.0, 2.0, 4.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    stop = _core.Stop()
    foresight = Foresight(stop, 10.0, 1e-3)
    foresight.begin(phase, 100)
    for violation in violations:
        foresight.advance(0, violation)
    monkeypatch.undo()
    if is_stopped:
        with pytest.raises(_core.Stopped):
            stop.check()
    else:
        stop.check()
