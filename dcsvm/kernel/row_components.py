"""Components: sets of rows with negligible kernel values between them.

Kernel values between components change no gradient by more than a small fraction of the tolerance,
for any alpha within the box constraints (Theorem 1 of the paper with D(pi) = 0). They are never
computed: components are solved as independent problems. Inside a component, kernel values beyond a
cutoff are omitted from sums if the bounding boxes of blocks of rows prove their distance.

"Flat" below means that half or twice the value changes training times by at most 10 %, see
Constants in docs/benchmark.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import slices
from dcsvm.data.rows import Rows
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.kernels import SQUARED_DISTANCE, Kernel

# Truncation errors as fractions of the tolerance: of all kernel values between components, and of
# the kernel values that the solver omits inside a component (flat).
NEGLIGIBLE, LEFT_OUT = 1e-6, 0.05
MIN_COMPONENT = 250  # rows; smaller ones are merged; with 125 covtype takes 1.15 times as long
MIN_ROWS = 2000  # fewer rows are one component
SAMPLE = 2048  # rows that decide whether components of all rows are searched for
MEASURED_FROM = 256  # sampled rows that are compared with all sampled rows
ORDERING_VALUES = 2**22  # float64 values in a batch of rows whose distances are computed
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


def find_components(
    rows: Rows,
    kernel: Kernel,
    weight: float,
    tolerance: float,
    threads: int,
    stop: _core.Stop | None = None,
) -> RowComponents:
    """Find the components of the rows, and the cutoff inside them.

    `weight` is an upper bound of the sum of |alpha|. Only dense rows, with a kernel that falls with
    a distance, can have several components. Returns one component with all rows in input order if
    too few kernel values are negligible. Raises Stopped.
    """
    n_rows = rows.n_samples
    whole = RowComponents(np.arange(n_rows, dtype=np.int32), np.array([0, n_rows], dtype=np.int64))
    if kernel.type.fall is None or not rows.is_dense or n_rows < MIN_ROWS:
        return whole
    between = Cutoff.of(kernel, NEGLIGIBLE * tolerance / weight)
    within = Cutoff.of(kernel, LEFT_OUT * tolerance / weight)
    sample = rows.take(np.arange(0, n_rows, -(-n_rows // SAMPLE)))
    points = _core.Points(sample, threads)
    start = _core.find_components(points, between, 1, threads)[1]
    if len(start) == 2 and not is_worth_ordering(sample, within, stop):
        return whole
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


def is_worth_ordering(rows: Rows, cutoff: Cutoff, stop: _core.Stop | None = None) -> bool:
    """Return whether enough pairs of these dense rows are beyond the cutoff. Raises Stopped."""
    indices = np.arange(0, rows.n_samples, max(1, rows.n_samples // MEASURED_FROM))
    enough = ORDERING_THRESHOLD * len(indices) * rows.n_samples
    if cutoff.argument != SQUARED_DISTANCE:
        data = KernelRows(rows, Kernel(cutoff.argument), 1)
        distances = data.matrix(target_rows=indices.astype(np.int32))
        return bool(np.count_nonzero(distances >= cutoff.distance) >= enough)
    few = _dense64(rows, indices)
    norms, n_apart = np.einsum("ij,ij->i", few, few), 0
    for batch in slices(rows.n_samples, ORDERING_VALUES // max(rows.n_features, 1)):
        if stop is not None:
            stop.check()
        others = _dense64(rows, np.arange(batch.start, batch.stop))
        distances = norms[:, None] + np.einsum("ij,ij->i", others, others) - 2.0 * few @ others.T
        n_apart += int(np.count_nonzero(distances >= cutoff.distance))
    return n_apart >= enough


def _dense64(rows: Rows, numbers: np.ndarray) -> np.ndarray:
    return rows.take(numbers).features.astype(np.float64)


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
