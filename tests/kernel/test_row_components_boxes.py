"""Test components of rows in sections: rows of different components are beyond the cutoff."""

import numpy as np
import pytest

from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernels import DEGREES
from dcsvm.kernel.row_components import _joined, _near


def test_boxes_within_reach_are_one_group_through_others():
    low = np.array([[0], [10], [3], [20]], np.float32)
    high = low + np.array([[1], [1], [6], [1]], np.float32)
    label = _near(low, high, Cutoff(4.1, 1e-9))
    assert label.tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize("argument", DEGREES)
def test_boxes_of_random_components_are_apart(argument):
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 90, (200, 2)).astype(np.float32)
    high = low + rng.uniform(0, 1, (200, 2)).astype(np.float32)
    label = _near(low, high, Cutoff(3.0, 1e-9, argument))
    gap = np.maximum(np.maximum(low[:, None] - high, low - high[:, None]), 0)
    is_near = (gap ** DEGREES[argument]).sum(axis=2) < 3
    assert np.all((label[:, None] == label)[is_near])
    assert len(np.unique(label)) > 10


def test_small_groups_are_solved_together():
    corners = np.array([[0], [100], [200], [300]], np.float32)
    first = np.repeat([0, 1, 2], [300, 10, 400]), corners[:3], corners[:3]
    second = np.zeros(20, int), corners[3:], corners[3:]
    order, start = _joined([first, second], Cutoff(1.0, 1e-9))
    assert np.diff(start).tolist() == [300, 400, 30]
    assert np.array_equal(order, np.r_[:300, 310:710, 300:310, 710:730])
