"""Sums of rows of a matrix, several at once."""

import numpy as np
import pytest

from dcsvm import _core


@pytest.mark.parametrize("threads", [1, 3])
def test_sums_are_those_of_numpy_in_the_order_of_rows(threads):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(90, 201)).astype(np.float32)
    sum_of = rng.integers(-1, 4, size=90).astype(np.int32)
    expected = np.zeros((5, 201))
    for row, s in zip(matrix, sum_of, strict=True):
        if s >= 0:
            expected[s] += row
    assert np.array_equal(_core.row_sums(matrix, sum_of, 5, threads), expected)


def test_a_sum_that_is_not_there_is_refused():
    matrix = np.zeros((2, 3), np.float32)
    for wrong in ([0, 2], [-2, 0], [0]):
        with pytest.raises(ValueError, match="sum"):
            _core.row_sums(matrix, np.array(wrong, np.int32), 2, 1)
