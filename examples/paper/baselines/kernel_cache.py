"""A cache of kernel values between the members of a set that grows and shrinks."""

from __future__ import annotations

import numpy as np

FIRST_CAPACITY = 1000
BYTES_PER_VALUE = 4


class KernelCache:
    """Rows of the kernel matrix of a set, float32, in at most `megabytes` MB.

    Members have the numbers 0 to size - 1. Each kept row has a slot and the values with all
    members; a row without a slot takes the one that was used least recently. The memory is
    reserved at once, for `max_members` at most, and touched as rows come.
    """

    def __init__(self, megabytes: float, max_members: int):
        self.max_members = max(max_members, FIRST_CAPACITY)
        n_values = min(int(megabytes * 1_000_000) // BYTES_PER_VALUE, self.max_members**2)
        self.memory = np.empty(max(n_values, self.max_members), np.float32)
        self.size = 0
        self.clock = 0
        self.n_filled = 0  # slots from here on were never used
        self.slot = np.full(FIRST_CAPACITY, -1)
        self.rows = self.shaped(FIRST_CAPACITY)
        self.member = np.zeros(len(self.rows), np.int64)
        self.used = np.zeros(len(self.rows), np.int64)  # 0 for a free slot

    def shaped(self, capacity: int) -> np.ndarray:
        """Return the memory as rows (n_slots, capacity)."""
        n_slots = min(capacity, len(self.memory) // capacity)
        return self.memory[: n_slots * capacity].reshape(n_slots, capacity)

    def row(self, member: int) -> np.ndarray | None:
        """Return a view of the row of a member (size,), valid until the next change, or None."""
        slot = self.slot[member]
        if slot < 0:
            return None
        self.touch(slot)
        return self.rows[slot, : self.size]

    def touch(self, slot: int) -> None:
        self.clock += 1
        self.used[slot] = self.clock

    def keep(self, member: int, values: np.ndarray) -> None:
        """Keep the row of a member (size,) that has no slot."""
        slot = int(self.used.argmin())
        if self.used[slot]:
            self.slot[self.member[slot]] = -1
        self.n_filled = max(self.n_filled, slot + 1)
        self.slot[member], self.member[slot] = slot, member
        self.rows[slot, : self.size] = values
        self.touch(slot)

    def append(self, values: np.ndarray) -> None:
        """Add a member by its row (size + 1,), which ends with its value with itself."""
        if self.size == len(self.slot):
            self.grow()
        new, filled = self.size, self.n_filled
        self.rows[:filled, new] = values[self.member[:filled]]
        self.size += 1
        self.keep(new, values)

    def grow(self) -> None:
        """Make room for half as many members more; rows move in place, from the last to the first.

        If there are fewer slots then, rows of the last slots are dropped.
        """
        capacity = min(self.size + self.size // 2, self.max_members)
        narrow, self.rows = self.rows, self.shaped(capacity)
        n_slots = len(self.rows)
        dropped = self.member[n_slots:][self.used[n_slots:] > 0]
        self.slot[dropped] = -1
        self.slot = resized(self.slot, capacity, -1)
        self.member, self.used = (resized(a, n_slots, 0) for a in (self.member, self.used))
        self.n_filled = min(self.n_filled, n_slots)
        for slot in reversed(range(self.n_filled)):
            self.rows[slot, : self.size] = narrow[slot, : self.size]

    def remove(self, gone: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Remove members by a mask (size,); the last members that stay take their numbers.

        Returns the numbers that are taken, and those that the members had.
        """
        size = self.size - int(np.count_nonzero(gone))
        holes, movers = np.flatnonzero(gone[:size]), size + np.flatnonzero(~gone[size:])
        freed = self.slot[: self.size][gone]
        freed = freed[freed >= 0]
        self.used[freed] = self.member[freed] = 0
        filled = self.rows[: self.n_filled]
        filled[:, holes] = filled[:, movers]
        self.slot[holes] = self.slot[movers]
        with_slot = holes[self.slot[holes] >= 0]
        self.member[self.slot[with_slot]] = with_slot
        self.slot[size : self.size] = -1
        self.size = size
        return holes, movers


def resized(array: np.ndarray, length: int, fill: int) -> np.ndarray:
    """Return a copy (length,) of an array, cut or filled up."""
    out = np.full(length, fill)
    count = min(length, len(array))
    out[:count] = array[:count]
    return out
