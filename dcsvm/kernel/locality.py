"""Rows that provably do not matter to each other (the paper's Theorem 1 with D(pi) taken as zero).

Where all kernel values between two groups of rows are so small that, summed with any weights the
bounds allow, they change no gradient by more than a small part of the tolerance, the groups are
problems of their own, and no kernel value between them is ever computed. Inside a group, kernel
values of rows out of reach are left out of sums where boxes around neighbouring rows prove it.

"Flat" below: half and double change the seconds of training by at most 0.1, see Constants in
docs/benchmark.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.data.sorting import slices
from dcsvm.kernel.kernel_rows import Reach
from dcsvm.kernel.kernels import Kernel

NEGLIGIBLE = 1e-6  # of the tolerance: what all kernel values between groups together may add
LEFT_OUT = 0.05  # of the tolerance: the same for those the solver leaves out; flat
SMALLEST_GROUP = 250  # rows; smaller groups are solved together; 125 costs covtype 1.15 times
FEWEST_ROWS = 2000  # no groups are looked for in less
SAMPLE = 2048  # rows; where these are one group, all are taken to be
MEASURED_FROM = 256  # of the sample: distances from about so many to all of it
ORDERING_VALUES = 2**22  # of rows in float64, whose distances are computed together
WORTH_ORDERING = 0.5  # part of the sampled pairs that must be out of reach; flat
WORTH_SKIPPING = 0.2  # part of the pairs of rows and blocks that must be out of reach; flat
# memory for the boxes: no more than later takes arrays of variables, and nothing that a checkpoint
# could not rely on, since the order of the rows follows from it
TREE_BYTES, TREE_BYTES_OF_ROW = 50_000_000, 16
TRIED_ROWS, MEASURED_GROUPS = 64, 8  # rows of each, the largest groups


@dataclass(frozen=True, eq=False)
class Locality:
    """Independent groups: `order` lists the rows group by group, `start` int64 where each begins in
    it, and the end. Rows of different groups are out of the reach `between`; kernel values out of
    the reach `within` may be left out by the solver. `is_ordered`: the order is not that in which
    the rows were given."""

    order: np.ndarray
    start: np.ndarray
    between: Reach = Reach()
    within: Reach = Reach()
    is_ordered: bool = False

    @property
    def n_groups(self) -> int:
        return len(self.start) - 1

    def reach(self, *, coupled: bool) -> Reach:
        """What the solver may leave out: between groups it has nothing to leave out unless a sum
        couples them."""
        return self.between if coupled and self.within == Reach() else self.within

    @property
    def group(self) -> np.ndarray:
        """The group of every row, in order."""
        return np.repeat(np.arange(self.n_groups, dtype=np.int32), np.diff(self.start))


def find_locality(
    rows: Rows,
    kernel: Kernel,
    weight: float,
    tolerance: float,
    threads: int,
    stop: _core.Stop | None = None,
) -> Locality:
    """The independent groups of rows, and the reach inside them, where no sum of |alpha| is above
    `weight`; one group with all rows, in order, when nothing is negligible. Only kernels that fall
    with a distance have others, on dense rows. Raises Stopped."""
    n_rows = rows.n_samples
    whole = Locality(np.arange(n_rows, dtype=np.int32), np.array([0, n_rows], dtype=np.int64))
    if kernel.type.fall is None or not rows.is_dense or n_rows < FEWEST_ROWS:
        return whole
    between = Reach.of(kernel, NEGLIGIBLE * tolerance / weight)
    within = Reach.of(kernel, LEFT_OUT * tolerance / weight)
    some = rows.take(np.arange(0, n_rows, -(-n_rows // SAMPLE)))
    points = _core.Points(some, threads)
    start = _core.find_groups(points, between.squared_distance, 1, threads)[1]
    if len(start) == 2 and not is_worth_ordering(some, within, stop):
        return whole
    points = _core.Points(rows, threads)
    order, start = _core.find_groups(
        points,
        between.squared_distance,
        SMALLEST_GROUP,
        threads,
        TREE_BYTES + n_rows * TREE_BYTES_OF_ROW,
    )
    if not is_worth_skipping(points, order, start, within, threads):
        within = Reach()
        if len(start) == 2:
            return whole
    return Locality(order, start, between, within, is_ordered=True)


def is_worth_ordering(rows: Rows, reach: Reach, stop: _core.Stop | None = None) -> bool:
    """Whether enough pairs of the dense rows of a sample are out of reach. Raises Stopped."""
    few = _dense64(rows, np.arange(0, rows.n_samples, max(1, rows.n_samples // MEASURED_FROM)))
    norms, n_apart = np.einsum("ij,ij->i", few, few), 0
    for part in slices(rows.n_samples, ORDERING_VALUES // max(rows.n_features, 1)):
        if stop is not None:
            stop.check()
        some = _dense64(rows, np.arange(part.start, part.stop))
        distances = norms[:, None] + np.einsum("ij,ij->i", some, some) - 2.0 * few @ some.T
        n_apart += np.count_nonzero(distances >= reach.squared_distance)
    return n_apart >= WORTH_ORDERING * len(few) * rows.n_samples


def _dense64(rows: Rows, numbers: np.ndarray) -> np.ndarray:
    return rows.take(numbers).features.astype(np.float64)


def is_worth_skipping(
    points, order, start, reach: Reach, threads: int, least: float = WORTH_SKIPPING
) -> bool:
    """Whether enough pairs of rows and blocks of them, in an order and inside groups that begin at
    `start`, are provably out of reach."""
    sizes = np.diff(start).astype(np.float64)
    groups = np.argsort(-sizes, kind="stable")[:MEASURED_GROUPS]
    shares = [
        _core.share_apart(
            points, order[start[g] : start[g + 1]], reach.squared_distance, TRIED_ROWS, threads
        )
        for g in groups
    ]
    return float(np.average(shares, weights=sizes[groups] ** 2)) >= least
