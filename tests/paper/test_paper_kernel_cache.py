"""Test LaSVM's cache of kernel values against the whole matrix."""

import numpy as np
import pytest
from paper.baselines import kernel_cache
from paper.baselines.kernel_cache import KernelCache

ALL_VALUES, FEW_VALUES, ONE_ROW = 1.0, 600e-6 * 4, 0.0  # megabytes
N_ROWS = 60


class Watched:
    """A cache and, beside it, the row numbers of its members, in the matrix of all rows."""

    def __init__(self, megabytes):
        self.matrix = np.random.default_rng(0).normal(size=(N_ROWS, N_ROWS)).astype(np.float32)
        self.matrix += self.matrix.T
        self.cache = KernelCache(megabytes, N_ROWS)
        self.members = np.zeros(0, np.int64)

    def append(self, row):
        self.members = np.append(self.members, row)
        self.cache.append(self.matrix[row, self.members])

    def remove(self, gone):
        size = len(self.members) - np.count_nonzero(gone)
        holes, movers = self.cache.remove(gone)
        self.members[holes] = self.members[movers]
        self.members = self.members[:size]

    def keep(self, member):
        self.cache.keep(member, self.matrix[self.members[member], self.members])

    def kept(self):
        """Return the members with a row, after a check of all values."""
        assert self.cache.size == len(self.members)
        rows = [self.cache.row(member) for member in range(self.cache.size)]
        for row, number in zip(rows, self.members, strict=True):
            assert row is None or np.array_equal(row, self.matrix[number, self.members])
        return [member for member, row in enumerate(rows) if row is not None]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(kernel_cache, "FIRST_CAPACITY", 4)


@pytest.mark.parametrize("megabytes", [ALL_VALUES, FEW_VALUES, ONE_ROW])
@pytest.mark.parametrize("seed", range(5))
def test_rows_follow_their_members_through_random_changes(megabytes, seed):
    rng = np.random.default_rng(seed)
    watched = Watched(megabytes)
    for _ in range(200):
        absent = np.setdiff1d(np.arange(N_ROWS), watched.members)
        if len(absent) and rng.random() < 0.7:
            watched.append(int(rng.choice(absent)))
        elif len(watched.members):
            watched.remove(rng.random(len(watched.members)) < rng.choice((0.05, 0.3, 1.0)))
        kept = watched.kept()
        missing = np.setdiff1d(np.arange(len(watched.members)), kept)
        assert megabytes != ALL_VALUES or not len(missing)
        if len(missing):
            watched.keep(int(rng.choice(missing)))
    assert len(watched.cache.memory) == max(min(megabytes * 250_000, N_ROWS**2), N_ROWS)


def test_the_row_used_least_recently_makes_room():
    watched = Watched(FEW_VALUES)
    for row in range(N_ROWS):
        watched.append(row)
    kept = watched.kept()
    assert len(kept) == 600 // N_ROWS
    watched.cache.row(kept[0])
    watched.keep(0)
    assert watched.kept() == sorted({0, *kept} - {kept[1]})


def test_a_removed_member_frees_its_slot():
    watched = Watched(FEW_VALUES)
    for row in range(N_ROWS):
        watched.append(row)
    kept = watched.kept()
    gone = np.zeros(N_ROWS, bool)
    gone[kept[-1]] = True
    watched.remove(gone)
    watched.keep(0)
    assert watched.kept() == [0, *kept[:-1]]


def test_there_is_never_less_than_one_row():
    watched = Watched(ONE_ROW)
    for row in range(N_ROWS):
        watched.append(row)
        assert row in watched.kept()
    assert watched.kept() == [row]
