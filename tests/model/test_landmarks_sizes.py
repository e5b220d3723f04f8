"""Test the number of landmarks and the bound on changed predictions."""

import numpy as np
import pytest
from scipy import stats

from dcsvm.model.landmarks import CONFIDENCE, fewest_rows, most_changed, shares


def test_shares_are_proportional_and_add_up():
    assert shares(np.array([10, 30, 60]), 10).tolist() == [1, 3, 6]
    assert shares(np.array([1, 1, 1]), 2).sum() == 2
    assert shares(np.array([0, 5]), 100).tolist() == [0, 5]
    assert shares(np.array([0, 0]), 3).tolist() == [0, 0]


@pytest.mark.parametrize(("n_changed", "n", "n_trials"), [(0, 50, 1), (7, 1000, 1), (40, 300, 8)])
def test_as_few_changes_are_as_rare_as_the_confidence_says(n_changed, n, n_trials):
    part = most_changed(n_changed, n, n_trials)
    rarity = stats.binom.cdf(n_changed, n, part)
    assert rarity == pytest.approx((1 - CONFIDENCE) / n_trials)


def test_all_may_change_where_all_did():
    assert most_changed(5, 5, 1) == 1.0


def test_fewest_rows_are_those_that_can_show_a_part():
    n = fewest_rows(0.01, 8)
    assert most_changed(0, n, 8) <= 0.01 < most_changed(0, n - 1, 8)
