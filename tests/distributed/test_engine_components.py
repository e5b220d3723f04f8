"""Test components of remote rows: rows of different components lie beyond the cutoff."""

import numpy as np
import pytest

from dcsvm.distributed.engine import _connected, _large_enough
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernels import DEGREES


def test_boxes_within_reach_are_one_group_through_others():
    low = np.array([[0], [10], [3], [20]], np.float32)
    high = low + np.array([[1], [1], [6], [1]], np.float32)
    label = _connected(low, high, Cutoff(4.1, 1e-9))
    assert label.tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize("argument", DEGREES)
def test_boxes_of_random_components_are_apart(argument):
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 90, (200, 2)).astype(np.float32)
    high = low + rng.uniform(0, 1, (200, 2)).astype(np.float32)
    label = _connected(low, high, Cutoff(3.0, 1e-9, argument))
    gap = np.maximum(np.maximum(low[:, None] - high, low - high[:, None]), 0)
    is_near = (gap ** DEGREES[argument]).sum(axis=2) < 3
    assert np.all((label[:, None] == label)[is_near])
    assert len(np.unique(label)) > 10


def test_small_groups_are_solved_together():
    group = np.repeat([5, 2, 9, 4], [300, 10, 400, 20])
    numbers, sizes = _large_enough(group)
    assert sizes.tolist() == [300, 400, 30]
    assert np.array_equal(np.unique(numbers[group == 5]), [0])
    assert np.array_equal(np.unique(numbers[(group == 2) | (group == 4)]), [2])
