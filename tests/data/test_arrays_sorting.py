"""Test sorting of entries by group index against NumPy."""

from itertools import pairwise

import numpy as np
import pytest

from dcsvm.data.arrays import group_order, group_sizes, numbered, reduce_parts


@pytest.mark.parametrize("most", [1, 2, 300, 2**16, 2**16 + 1, 10**6, 2**40])
@pytest.mark.parametrize("n", [0, 1, 5000])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_groups_are_those_of_numpy(most, n, dtype):
    group = np.random.default_rng(n).integers(0, min(most, np.iinfo(dtype).max), n, dtype)
    np.testing.assert_array_equal(group_order(group), np.argsort(group, kind="stable"))
    for found, wanted in zip(group_sizes(group), np.unique(group, return_counts=True), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.fmin])
def test_parts_are_reduced_to_the_bits_of_each_by_itself(ufunc):
    rng = np.random.default_rng(0)
    sizes = np.append(rng.integers(0, 400, 60), [0, 100_000, 0])
    start = np.concatenate(([0], np.cumsum(sizes)))
    values = rng.normal(size=start[-1])
    initial = {np.add: 0.0, np.maximum: -np.inf, np.fmin: np.nan}[ufunc]
    expected = [ufunc.reduce(values[a:b], initial=initial) for a, b in pairwise(start)]
    assert np.array_equal(reduce_parts(ufunc, values, start, initial), expected, equal_nan=True)
    assert len(reduce_parts(ufunc, values[:0], start[:1])) == 0


@pytest.mark.parametrize("largest", [5, 10**6])
def test_values_are_numbered_in_their_order(largest):
    values = np.random.default_rng(0).integers(0, largest + 1, 50)
    for own in (values, values[:0]):
        different, index = numbered(own)
        assert np.array_equal(different, np.unique(own))
        assert np.array_equal(different[index], own)
