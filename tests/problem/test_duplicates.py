"""Test merged duplicates: the problem stays the same, and every row gets its share of alpha."""

import tracemalloc

import numpy as np
import pytest

from dcsvm import _core
from dcsvm.data.rows import Rows, Storage
from dcsvm.problem import duplicates
from dcsvm.problem.duplicates import duplicates_by_keys, find_duplicates, row_keys


def repeated(n, n_distinct, seed=0, noise=0.1):
    """Draw rows with repetition; the labels of equal rows sometimes disagree."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(n_distinct, 3))[rng.integers(n_distinct, size=n)]
    y = np.where((X.sum(1) % 3 == 0) ^ (rng.random(n) < noise), 1.0, -1.0)
    return X.astype(np.float32), y


def test_the_rows_of_a_variable_are_equal_and_of_one_label():
    X, y = repeated(700, 60)
    found = find_duplicates(Rows.from_array(X), y, np.ones(700))
    assert np.array_equal(found.weighted_inputs, np.arange(700))
    keys = set()
    for variable in range(len(found.first)):
        rows = found.input_rows[found.start[variable] : found.start[variable + 1]]
        assert rows[0] == found.first[variable] and np.all(np.diff(rows) > 0)
        assert np.all(X[rows] == X[rows[0]]) and np.all(y[rows] == y[rows[0]])
        keys.add((*X[rows[0]], y[rows[0]]))
    assert len(keys) == len(found.first)


def test_few_duplicates_are_left_alone():
    X = np.random.default_rng(0).random((300, 4)).astype(np.float32)
    X[1] = X[0]
    assert len(find_duplicates(Rows.from_array(X), np.ones(300), np.ones(300)).first) == 300


def test_rows_with_the_same_hash_are_still_compared(monkeypatch):
    zeros = lambda rows, **_: np.zeros(rows.n_samples, np.uint64)  # noqa: E731
    monkeypatch.setattr(duplicates, "row_hashes", zeros)
    X = np.random.default_rng(0).random((300, 4)).astype(np.float32)
    assert len(find_duplicates(Rows.from_array(X), np.ones(300), np.ones(300)).first) == 300


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_of_equal_keys_is_found(threads):
    rng = np.random.default_rng(0)
    keys = rng.integers(2**64, size=500, dtype=np.uint64)[rng.integers(500, size=20_000)]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    assert np.array_equal(_core.first_equal(keys, threads), first[place])


@pytest.mark.parametrize("storage", Storage)
def test_rows_of_any_dense_storage_are_merged(storage):
    X, y = repeated(700, 60)
    rows = Rows.from_array(X)
    found = find_duplicates(rows.in_storage(storage), y, np.ones(700), threads=2)
    assert (found.n_merged > 0) == (storage is not Storage.SPARSE)
    if storage is not Storage.SPARSE:
        assert np.array_equal(found.first, find_duplicates(rows, y, np.ones(700)).first)


def test_comparing_packed_rows_copies_few_of_them():
    rng = np.random.default_rng(1)
    X = (rng.random((500, 80)) * (rng.random((500, 80)) < 0.3)).astype(np.float32)
    rows = Rows.from_array(X).in_storage(Storage.PACKED).take(rng.integers(500, size=60_000))
    n_bytes = rows.values.nbytes + rows.indices.nbytes
    tracemalloc.start()
    found = find_duplicates(rows, np.ones(60_000), np.ones(60_000))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.n_merged >= 59_500 and most < 2 * n_bytes


@pytest.mark.parametrize("C", [0.1, 1.0, 7.3])
def test_shares_are_filled_one_after_the_other(C):
    X, y = np.zeros((50, 2), np.float32), np.ones(50)
    y[::2] = -1
    found = find_duplicates(Rows.from_array(X), y, np.ones(50))
    total = np.array([-3.25 * C, 25 * C])
    place, row, share, bound = found.split(np.array([0, 1]), total[None], np.full(2, C))
    share = share[0]
    assert np.all(bound == C)
    assert np.allclose(np.bincount(place, share), total)
    assert np.all(np.abs(share) <= C)
    first = share[place == 0]
    assert row[place == 0].tolist() == [0, 2, 4, 6]
    assert np.all(first[:3] == -C) and first[3] < 0
    assert np.count_nonzero(place == 1) == 25


def test_keys_of_parts_tell_the_same_as_the_rows():
    rng = np.random.default_rng(3)
    rows = Rows.from_array(rng.integers(0, 4, (3000, 5)).astype(np.float32) / 4)
    targets, weight = rng.integers(0, 2, 3000), rng.integers(0, 3, 3000).astype(float)
    keys = np.concatenate([row_keys(rows.part(slice(a, a + 1000))) for a in range(0, 3000, 1000)])
    found, wanted = (
        duplicates_by_keys(keys, targets, weight),
        find_duplicates(rows, targets, weight),
    )
    assert found.n_merged == wanted.n_merged > 0
    for name in ("first", "input_rows", "start", "weights"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name))
