"""Find the components of remote rows: join the components of sections with near bounding boxes.

Boxes can be nearer than the rows in them. Then components are joined needlessly, which costs time
but does not change the solution.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from distributed import get_worker

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.distributed.chunks import taken
from dcsvm.distributed.remote_rows import RemoteRows
from dcsvm.kernel.kernel_rows import Cutoff
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import (
    LEFT_OUT,
    MIN_COMPONENT,
    MIN_ROWS,
    NEGLIGIBLE,
    SAMPLE,
    RowComponents,
    is_worth_ordering,
)

MAX_BOXES = 4096  # boxes, compared pairwise; with more, all rows are one component
SAFETY = 1.0 + 1e-6  # factor on distances for rounding: corners are float32


@dataclass(frozen=True, eq=False)
class ComponentBoxes:
    """Components of a section and their bounding boxes.

    `group` int32 (n,) is the component of each row. `low` and `high` float32 (n_groups, d) are the
    corners of the boxes.
    """

    group: np.ndarray
    low: np.ndarray
    high: np.ndarray


def find_remote_components(
    rows: RemoteRows, kernel: Kernel, weight: float, tolerance: float, stop: _core.Stop
) -> RowComponents:
    """Find the components and order of remote rows, as `find_components`. Raises Stopped."""
    n_rows = rows.n_samples
    whole = RowComponents(np.arange(n_rows, dtype=np.int32), np.array([0, n_rows], dtype=np.int64))
    if kernel.type.fall is None or not rows.is_dense or n_rows < MIN_ROWS or weight == 0:
        return whole
    between = Cutoff.of(kernel, NEGLIGIBLE * tolerance / weight)
    within = Cutoff.of(kernel, LEFT_OUT * tolerance / weight)
    sample = rows.take(np.arange(0, n_rows, -(-n_rows // SAMPLE)), stop)
    start = _core.find_components(_core.Points(sample, 1), between, 1, 1)[1]
    if len(start) == 2:
        pays = is_worth_ordering(sample, within, stop)
        return replace(whole, between=between, within=within) if pays else whole
    group = np.empty(n_rows, np.int64)
    positions = np.concatenate([positions for _, positions, _ in rows.in_chunks])
    group[positions] = _joined(_boxes_of_sections(rows, between, stop), between)
    group, sizes = _large_enough(group)
    order = np.argsort(group, kind="stable").astype(np.int32)
    start = np.concatenate(([0], np.cumsum(sizes)))
    return RowComponents(order, start, between, within, is_ordered=True)


def boxes_of(
    chunk: Rows, selected: np.ndarray | None, sections: np.ndarray, between: Cutoff
) -> list[ComponentBoxes]:
    """Find the components of selected rows of a chunk, section by section.

    `selected` is ascending, or None for all rows. `sections` has the ends of the sections.
    """
    rows, threads = taken(chunk, selected), max(get_worker().state.nthreads, 1)
    ends = sections if selected is None else np.searchsorted(selected, sections)
    return [
        _boxes(rows.part(slice(begin, end)), between, threads)
        for begin, end in pairwise([0, *ends.tolist()])
        if begin < end
    ]


def _boxes(rows: Rows, between: Cutoff, threads: int) -> ComponentBoxes:
    points = _core.Points(rows, threads)
    order, start = _core.find_components(points, between, 1, threads)
    if len(start) - 1 > MAX_BOXES:
        order = np.arange(rows.n_samples, dtype=np.int32)
        start = np.array([0, rows.n_samples])
    group = np.empty(rows.n_samples, np.int32)
    group[order] = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
    sorted_rows = rows.features[order].astype(np.float32)
    low = np.minimum.reduceat(sorted_rows, start[:-1], axis=0)
    return ComponentBoxes(group, low, np.maximum.reduceat(sorted_rows, start[:-1], axis=0))


def _boxes_of_sections(rows: RemoteRows, between: Cutoff, stop: _core.Stop) -> list[ComponentBoxes]:
    futures = [
        rows.tasks.submit(
            f"groups-chunk{chunk}", boxes_of, rows.chunks[chunk], selected, rows.sections[chunk],
            between,
        )
        for chunk, _, selected in rows.in_chunks
    ]  # fmt: skip
    return [boxes for of_chunk in rows.tasks.results(futures, stop) for boxes in of_chunk]


def _joined(boxes: list[ComponentBoxes], between: Cutoff) -> np.ndarray:
    """Join components with near boxes. Returns the component of each row, section by section."""
    n_boxes = [len(one.low) for one in boxes]
    first = np.cumsum(n_boxes) - n_boxes
    group = np.concatenate([one.group + begin for one, begin in zip(boxes, first, strict=True)])
    low, high = (np.concatenate([getattr(one, end) for one in boxes]) for end in ("low", "high"))
    if len(low) > MAX_BOXES:
        return np.zeros(len(group), np.int64)
    return _connected(low, high, between)[group]


def _connected(low: np.ndarray, high: np.ndarray, between: Cutoff) -> np.ndarray:
    """Label boxes by connected component; the label is the index of its first box."""
    label, free = np.empty(len(low), np.int64), np.arange(len(low))  # free: boxes without a label
    free_low, free_high = low, high
    while len(free):
        first, stack = free[0], [free[0]]
        while stack:
            box = stack.pop()
            label[box] = first
            apart = _core.box_distances(between.argument, low[box], high[box], free_low, free_high)
            is_near = (apart < SAFETY * between.distance) | (free == box)
            if is_near.any():
                stack += [one for one in free[is_near] if one != box]
                free, free_low, free_high = (one[~is_near] for one in (free, free_low, free_high))
    return label


def _large_enough(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort components by first row; the last merges all small ones. Returns (group, sizes)."""
    _, first, group, sizes = np.unique(
        group, return_index=True, return_inverse=True, return_counts=True
    )
    is_small = sizes < MIN_COMPONENT
    order = np.lexsort((first, is_small))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    n_large = int(np.count_nonzero(~is_small))
    number = np.minimum(number, n_large if is_small.any() else len(order) - 1)
    return number[group], np.bincount(number[group])
