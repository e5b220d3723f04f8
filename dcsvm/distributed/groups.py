"""Independent groups of remote rows: they are found in every section of a chunk, and joined where
the boxes around them are not out of reach of each other.

Boxes may be near where rows are not: then groups are joined that need not be, which costs time and
changes no solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from distributed import get_worker

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.distributed.chunks import taken
from dcsvm.distributed.remote_rows import RemoteRows
from dcsvm.kernel.kernel_rows import Reach
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.locality import (
    FEWEST_ROWS,
    LEFT_OUT,
    NEGLIGIBLE,
    SAMPLE,
    SMALLEST_GROUP,
    Locality,
    is_worth_ordering,
)

MOST_BOXES = 4096  # of all sections: all pairs meet; where there are more all rows are one group
SAFETY = 1.0 + 1e-6  # of the distance of boxes: their ends are float32


@dataclass(frozen=True, eq=False)
class Boxes:
    """The `group` int32 of each row of a section, and the ends float32 (n_groups, d) of the box
    around each group."""

    group: np.ndarray
    low: np.ndarray
    high: np.ndarray


def find_remote_locality(
    rows: RemoteRows, kernel: Kernel, weight: float, tolerance: float, stop: _core.Stop
) -> Locality:
    """As `find_locality`, of remote rows. Raises Stopped."""
    n_rows = rows.n_samples
    whole = Locality(np.arange(n_rows, dtype=np.int32), np.array([0, n_rows], dtype=np.int64))
    if kernel.name != "rbf" or not rows.is_dense or n_rows < FEWEST_ROWS or weight == 0:
        return whole
    between = Reach.of(kernel, NEGLIGIBLE * tolerance / weight)
    within = Reach.of(kernel, LEFT_OUT * tolerance / weight)
    some = rows.take(np.arange(0, n_rows, -(-n_rows // SAMPLE)), stop)
    start = _core.find_groups(_core.Points(some, 1), between.squared_distance, 1, 1)[1]
    if len(start) == 2:
        is_worth = is_worth_ordering(some, within, stop)
        return replace(whole, between=between, within=within) if is_worth else whole
    group = np.empty(n_rows, np.int64)
    places = np.concatenate([places for _, places, _ in rows.in_chunks])
    group[places] = _joined(_boxes_of_sections(rows, between, stop), between)
    group, sizes = _large_enough(group)
    order = np.argsort(group, kind="stable").astype(np.int32)
    start = np.concatenate(([0], np.cumsum(sizes)))
    return Locality(order, start, between, within, is_ordered=True)


def boxes_of(
    chunk: Rows, own: np.ndarray | None, sections: np.ndarray, between: Reach
) -> list[Boxes]:
    """The groups of some rows of a chunk, ascending, in each of the sections that have these
    ends."""
    rows, threads = taken(chunk, own), max(get_worker().state.nthreads, 1)
    ends = sections if own is None else np.searchsorted(own, sections)
    return [
        _boxes(rows.part(slice(begin, end)), between, threads)
        for begin, end in pairwise([0, *ends.tolist()])
        if begin < end
    ]


def _boxes(rows: Rows, between: Reach, threads: int) -> Boxes:
    points = _core.Points(rows, threads)
    order, start = _core.find_groups(points, between.squared_distance, 1, threads)
    if len(start) - 1 > MOST_BOXES:
        order, start = np.arange(rows.n_samples), np.array([0, rows.n_samples])
    group = np.empty(rows.n_samples, np.int32)
    group[order] = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
    sorted_rows = rows.features[order].astype(np.float32)
    low = np.minimum.reduceat(sorted_rows, start[:-1], axis=0)
    return Boxes(group, low, np.maximum.reduceat(sorted_rows, start[:-1], axis=0))


def _boxes_of_sections(rows: RemoteRows, between: Reach, stop: _core.Stop) -> list[Boxes]:
    futures = [
        rows.tasks.submit(
            f"groups-chunk{chunk}", boxes_of, rows.chunks[chunk], own, rows.sections[chunk], between
        )
        for chunk, _, own in rows.in_chunks
    ]
    return [one for of_chunk in rows.tasks.results(futures, stop) for one in of_chunk]


def _joined(boxes: list[Boxes], between: Reach) -> np.ndarray:
    """The group of every row, section by section: boxes that may be within reach are in one."""
    n_boxes = [len(one.low) for one in boxes]
    first = np.cumsum(n_boxes) - n_boxes
    group = np.concatenate([one.group + begin for one, begin in zip(boxes, first, strict=True)])
    low, high = (np.concatenate([getattr(one, end) for one in boxes]) for end in ("low", "high"))
    if len(low) > MOST_BOXES:
        return np.zeros(len(group), np.int64)
    return _connected(low.astype(np.float64), high.astype(np.float64), between)[group]


def _connected(low: np.ndarray, high: np.ndarray, between: Reach) -> np.ndarray:
    """The number of the group of each box: the first box that it is connected with."""
    label, left = np.empty(len(low), np.int64), np.arange(len(low))  # in no group yet
    low_left, high_left = low, high
    while len(left):
        first, waiting = left[0], [left[0]]
        while waiting:
            box = waiting.pop()
            label[box] = first
            gap = np.maximum(np.maximum(low_left - high[box], low[box] - high_left), 0.0)
            near = (gap**2).sum(axis=1) < SAFETY * between.squared_distance
            near |= left == box
            if near.any():
                waiting += [one for one in left[near] if one != box]
                left, low_left, high_left = (one[~near] for one in (left, low_left, high_left))
    return label


def _large_enough(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Groups numbered in the order of their first rows, small ones together as the last, and their
    sizes."""
    _, first, group, sizes = np.unique(
        group, return_index=True, return_inverse=True, return_counts=True
    )
    is_small = sizes < SMALLEST_GROUP
    order = np.lexsort((first, is_small))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    n_large = int(np.count_nonzero(~is_small))
    number = np.minimum(number, n_large if is_small.any() else len(order) - 1)
    return number[group], np.bincount(number[group])
