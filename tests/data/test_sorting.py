"""Entries by the numbers of their groups against NumPy's own sorting."""

import numpy as np
import pytest

from dcsvm.data.sorting import group_order, group_sizes


@pytest.mark.parametrize("most", [1, 2, 300, 2**16, 2**16 + 1, 10**6, 2**40])
@pytest.mark.parametrize("n", [0, 1, 5000])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_groups_are_those_of_numpy(most, n, dtype):
    group = np.random.default_rng(n).integers(0, min(most, np.iinfo(dtype).max), n, dtype)
    np.testing.assert_array_equal(group_order(group), np.argsort(group, kind="stable"))
    for found, wanted in zip(group_sizes(group), np.unique(group, return_counts=True), strict=True):
        np.testing.assert_array_equal(found, wanted)
