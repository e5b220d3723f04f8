"""Components: sets of rows with negligible kernel values between them.

Kernel values between components change no gradient by more than a small fraction of the tolerance,
for any alpha within the box constraints (Theorem 1 of the paper with D(pi) = 0). They are never
computed: components are solved as independent problems. Inside a component, kernel values beyond a
cutoff are omitted from sums if the bounding boxes of blocks of rows prove their distance.

"Flat" below means that half or twice the value changes training times by at most 10 %, see
Constants in examples/bench/README.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import slices
from dcsvm.data.rows import Rows
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import Kernel

# Truncation errors as fractions of the tolerance: of all kernel values between components, and of
# the kernel values that the solver omits inside a component (flat).
NEGLIGIBLE, LEFT_OUT = 1e-6, 0.05
MIN_COMPONENT = 250  # rows; smaller ones are merged; with 125 covtype takes 1.15 times as long
MIN_ROWS = 2000  # fewer rows are one component
SAMPLE = 2048  # rows that decide whether components of all rows are searched for
MEASURED_FROM = 256  # sampled rows that are compared with all sampled rows
ORDERING_WORK = 2**28  # features of a batch of pairs whose distances are computed
ORDERING_THRESHOLD = 0.5  # fraction of sampled pairs that must be beyond the cutoff; flat
SKIPPING_THRESHOLD = 0.2  # fraction of pairs of a row and a block beyond the cutoff; flat
# Bytes for the bounding boxes, fixed and per row: less than the arrays of the variables. The
# limit must not depend on the machine, because the order of the rows depends on it, and checkpoints
# depend on that order.
TREE_BYTES, TREE_BYTES_OF_ROW = 50_000_000, 16
TRIED_ROWS, MEASURED_GROUPS = 64, 8  # sampled rows of a component; largest components sampled


@dataclass(frozen=True, eq=False)
class RowComponents:
    """Components of the rows.

    `order` int32 (n,) lists the rows component by component, component c from start[c] to before
    start[c + 1]; `start` is int64. Rows of different components are beyond the cutoff `between`.
    The solver may omit kernel values beyond the cutoff `within`. `is_ordered` says whether `order`
    may differ from the input order.
    """

    order: np.ndarray
    start: np.ndarray
    between: Cutoff = Cutoff()
    within: Cutoff = Cutoff()
    is_ordered: bool = False

    @property
    def n_components(self) -> int:
        return len(self.start) - 1

    def cutoff(self, *, coupled: bool) -> Cutoff:
        """Return the cutoff of the solver.

        `coupled`: an equality constraint couples the components, so that they are solved together.
        Then at least the kernel values between components are omitted.
        """
        return self.between if coupled and self.within == Cutoff() else self.within

    @property
    def component(self) -> np.ndarray:
        """Component of row order[i], for all i: int32 (n,)."""
        return np.repeat(np.arange(self.n_components, dtype=np.int32), np.diff(self.start))


# Boxes are compared pairwise; with more boxes, all rows are one component. Distances are multiplied
# by SAFETY for rounding: corners are float32.
MAX_BOXES, SAFETY = 4096, 1.0 + 1e-6

# Components of consecutive rows: the component of each row, int32 (n,), and the lower and the upper
# corners of their bounding boxes, float32 (n_components, d).
Boxes = tuple[np.ndarray, np.ndarray, np.ndarray]


def find_components(
    rows: Rows,
    kernel: Kernel,
    weight: float,
    tolerance: float,
    threads: int,
    stop: _core.Stop | None = None,
    *,
    boxes_of: Callable[[Cutoff], list[Boxes]] | None = None,
) -> RowComponents:
    """Find the components of the rows, and the cutoff inside them.

    `weight` is an upper bound of the sum of |alpha|. Only dense rows, with a kernel that falls with
    a distance, can have several components. Returns one component with all rows in input order if
    too few kernel values are negligible. Raises Stopped.

    `boxes_of` is for rows in sections on workers: it returns the components of each section, rows
    of which are beyond a cutoff. Components of sections are joined if their boxes are near. Boxes
    can be nearer than the rows in them. Then components are joined needlessly, which costs time but
    does not change the solution.
    """
    n_rows = rows.n_samples
    whole = RowComponents(np.arange(n_rows, dtype=np.int32), np.array([0, n_rows], dtype=np.int64))
    if not kernel.type.is_of_distance or not rows.is_dense or n_rows < MIN_ROWS or weight == 0:
        return whole
    between = Cutoff.of(kernel, NEGLIGIBLE * tolerance / weight)
    within = Cutoff.of(kernel, LEFT_OUT * tolerance / weight)
    # a sample decides, since a search among all rows costs more than it saves if nothing is omitted
    sample = rows.take(np.arange(0, n_rows, -(-n_rows // SAMPLE)))
    if sample.is_packed:
        sample = sample.as_floats(threads)
    start = _core.find_components(_core.Points(sample, threads), between, 1, threads)[1]
    is_single = len(start) == 2
    if is_single and not is_worth_ordering(sample, within, threads, stop):
        return whole
    if boxes_of is not None:
        if is_single:
            return replace(whole, between=between, within=within)
        order, start = _joined(boxes_of(between), between)
        return RowComponents(order, start, between, within, is_ordered=True)
    points = _core.Points(rows, threads)
    order, start = _core.find_components(
        points,
        between,
        MIN_COMPONENT,
        threads,
        TREE_BYTES + n_rows * TREE_BYTES_OF_ROW,
    )
    if not is_worth_skipping(points, order, start, within, threads):
        within = Cutoff()
        if len(start) == 2:
            return whole
    return RowComponents(order, start, between, within, is_ordered=True)


def boxes_of_rows(rows: Rows, between: Cutoff, threads: int) -> Boxes:
    """Find the components of dense rows, however small, and their bounding boxes."""
    points = _core.Points(rows, threads)
    order, start = _core.find_components(points, between, 1, threads)
    if len(start) - 1 > MAX_BOXES:
        order = np.arange(rows.n_samples, dtype=np.int32)
        start = np.array([0, rows.n_samples])
    component = np.empty(rows.n_samples, np.int32)
    component[order] = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
    ordered = rows.features[order].astype(np.float32)
    low = np.minimum.reduceat(ordered, start[:-1], axis=0)
    return component, low, np.maximum.reduceat(ordered, start[:-1], axis=0)


def _joined(sections: list[Boxes], between: Cutoff) -> tuple[np.ndarray, np.ndarray]:
    """Join components of sections with near boxes; return `order` and `start` of all rows.

    The order is that of the sections. Components are sorted by their first rows. Those of fewer
    than MIN_COMPONENT rows are merged into the last one.
    """
    n_boxes = [len(low) for _, low, _ in sections]
    first_box = np.cumsum(n_boxes) - n_boxes
    box = np.concatenate([own[0] + begin for own, begin in zip(sections, first_box, strict=True)])
    low, high = (np.concatenate([own[corner] for own in sections]) for corner in (1, 2))
    label = np.zeros(len(low), np.int64) if len(low) > MAX_BOXES else _near(low, high, between)
    _, first_row, component, sizes = np.unique(
        label[box], return_index=True, return_inverse=True, return_counts=True
    )
    is_small = sizes < MIN_COMPONENT
    by_first_row = np.lexsort((first_row, is_small))
    number = np.empty(len(sizes), np.int64)
    number[by_first_row] = np.arange(len(sizes))
    number = np.minimum(number, np.count_nonzero(~is_small))  # one number for all small ones
    component = number[component.reshape(-1)]
    order = np.argsort(component, kind="stable").astype(np.int32)
    return order, np.concatenate(([0], np.cumsum(np.bincount(component))))


def _near(low: np.ndarray, high: np.ndarray, between: Cutoff) -> np.ndarray:
    """Label boxes by chains of near boxes; the label is the index of the first box of a chain."""
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
                stack += [other for other in free[is_near] if other != box]
                free, free_low, free_high = (own[~is_near] for own in (free, free_low, free_high))
    return label


def is_worth_ordering(
    rows: Rows, cutoff: Cutoff, threads: int, stop: _core.Stop | None = None
) -> bool:
    """Return whether enough pairs of these dense rows are beyond the cutoff. Raises Stopped."""
    indices = np.arange(0, rows.n_samples, max(1, rows.n_samples // MEASURED_FROM), dtype=np.int32)
    data, n_apart = KernelRows(rows, Kernel(cutoff.argument), threads), 0
    farthest = np.float64(cutoff.distance)  # may be beyond float32
    for batch in slices(len(indices), ORDERING_WORK // (rows.n_samples * rows.row_size)):
        if stop is not None:
            stop.check()
        n_apart += int(np.count_nonzero(data.matrix(target_rows=indices[batch]) >= farthest))
    return n_apart >= ORDERING_THRESHOLD * len(indices) * rows.n_samples


def is_worth_skipping(
    points: _core.Points,
    order: np.ndarray,
    start: np.ndarray,
    cutoff: Cutoff,
    threads: int,
    least: float = SKIPPING_THRESHOLD,
) -> bool:
    """Return whether enough pairs of rows and blocks of rows are provably beyond the cutoff.

    Blocks are consecutive rows in `order`, within the components that begin at `start`. `least` is
    the fraction of pairs that is enough.
    """
    sizes = np.diff(start).astype(np.float64)
    groups = np.argsort(-sizes, kind="stable")[:MEASURED_GROUPS]
    shares = [
        _core.share_apart(points, order[start[g] : start[g + 1]], cutoff, TRIED_ROWS, threads)
        for g in groups
    ]
    return float(np.average(shares, weights=sizes[groups] ** 2)) >= least
