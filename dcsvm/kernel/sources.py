"""Sources of kernel sums that many targets meet, a block at a time: support vectors and the rows
they predict.

Sources are prepared once: exclusive 0/1 columns as codes, evenly spaced values as bytes. Targets
are encoded in the same way. Those that do not fit, with two ones in a code or with other values,
meet the sources as they are: how a target is computed does not depend on what it comes with.
Sources of evenly spaced integers, such as landmarks of images, meet targets of bytes, too.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows, has_far_columns
from dcsvm.kernel.kernel_rows import ClusterRanges, Evaluation, KernelRows, Reach, two_sides
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.locality import FEWEST_ROWS, is_worth_ordering, is_worth_skipping

SAMPLE = 512  # rows, whose distances say whether an order could pay
# part of the pairs of sources that must be out of reach: targets are more, in smaller boxes
LEAST_SKIPPED = 0.05
FORMS = ("stepped", "coded", "plain")  # what targets that fit no other meet is the last
COPY_BYTES = 100_000_000  # that a copy may take more than the rows: sparse ones as bytes
WORTH_THREADS = 2**16  # values; to encode fewer takes less than to start threads

_kept: weakref.WeakKeyDictionary[Rows, Sources] = weakref.WeakKeyDictionary()
_lock = threading.RLock()


@dataclass(frozen=True, eq=False)
class Meeting:
    """Targets and sources in the same form. The targets are the rows `numbers` int32 of a block,
    None for all of it; `targets` has the whole block. Kernel values of sums are `float64`, or
    float32."""

    numbers: np.ndarray | None
    targets: KernelRows
    sources: KernelRows
    float64: bool = False

    @property
    def rows(self) -> Rows:
        """The targets alone."""
        return self.targets.rows if self.numbers is None else self.targets.rows.take(self.numbers)

    @property
    def n_targets(self) -> int:
        return self.targets.rows.n_samples if self.numbers is None else len(self.numbers)

    @property
    def place(self):
        """Where the targets are in the block."""
        return slice(None) if self.numbers is None else self.numbers

    def product(
        self,
        weights,
        rows: np.ndarray | None = None,
        *,
        some: np.ndarray | None = None,
        reach: Reach | None = None,
    ) -> np.ndarray:
        """As `KernelRows.product` with these sources; `some` int32 chooses targets. What is out of
        `reach` may be left out."""
        return self.sources.product(
            weights,
            rows,
            targets=self.targets,
            target_rows=self._numbers(some),
            how=Evaluation(self.float64, reach),
        )

    def cluster_product(self, weights, ranges: ClusterRanges, some: np.ndarray) -> np.ndarray:
        """As `KernelRows.cluster_product` with these sources; `some` int32 are the targets."""
        return self.sources.cluster_product(
            weights, ranges, self.targets, self._numbers(some), self.float64
        )

    def near_product(self, weights, rows: np.ndarray, reach: Reach) -> np.ndarray:
        """The product where what is out of reach may be left out, for sources in an order in which
        neighbours are near."""
        threads = self.sources.threads
        order = _core.neighbour_order(_core.Points(self.rows, threads), threads)
        sums = self.product(weights, rows, some=order, reach=reach)
        result = np.empty_like(sums)
        result[order] = sums
        return result

    def _numbers(self, some: np.ndarray | None) -> np.ndarray | None:
        if self.numbers is None or some is None:
            return self.numbers if some is None else some
        return self.numbers[some]


class Sources:
    """Sources with a kernel on them. What is prepared of them takes no more memory than the rows,
    20 bytes a row and COPY_BYTES."""

    def __init__(self, rows: Rows, kernel: Kernel):
        self.rows, self.kernel = rows, kernel
        self._forms: dict[str, KernelRows | None] = {}
        self._order: np.ndarray | None = None

    @staticmethod
    def kept(rows: Rows, kernel: Kernel) -> Sources:
        """Those of an earlier call with these very Rows and kernel, which are kept for as long as
        the rows are, or new ones."""
        with _lock:
            sources = _kept.get(rows)
            if sources is None or sources.kernel != kernel:
                # of a copy, since the rows live as long as anything here refers to them
                sources = _kept[rows] = Sources(replace(rows), kernel)
        return sources

    def row_size(self, threads: int) -> int:
        """Values of 4 bytes that a target takes in the forms of these."""
        has_bytes = not self.rows.is_dense and self.form(threads).points.has_bytes
        return self.rows.n_features // 4 if has_bytes else self.rows.row_size

    def meetings(self, block: Rows, threads: int) -> list[Meeting]:
        """All rows of a block, by the form in which they meet these."""
        if has_far_columns(self.rows) or self.kernel.is_precomputed:
            return [Meeting(None, *two_sides(block, self.rows, self.kernel, threads))]
        few = 1 if block.n_samples * block.row_size < WORTH_THREADS else threads
        result, left = [], np.ones(block.n_samples, bool)
        for how in FORMS:
            sources = self.form(threads, how)
            points = _core.Points(block, few)
            if sources is None or (how == "stepped" and not block.is_dense):
                continue
            fits = None if how == "plain" else sources.encode(points, block, few)
            own = left if fits is None else left & fits
            targets = KernelRows(block, self.kernel, few, points=points, setup=sources.setup)
            if own.all():
                return [Meeting(None, targets, sources)]
            if own.any():
                result.append(Meeting(np.flatnonzero(own).astype(np.int32), targets, sources))
            left = left & ~own
            if not left.any():
                break
        return result

    def order(self, reach: Reach, threads: int) -> np.ndarray | None:
        """All sources, int32, such that neighbours are near; None where too few kernel values are
        provably out of reach."""
        n_rows = self.rows.n_samples
        if self.kernel.type.fall is None or not self.rows.is_dense or n_rows < FEWEST_ROWS:
            return None
        sources = self.form(threads)
        some = self.rows.take(np.arange(0, n_rows, -(-n_rows // SAMPLE)))
        if sources.setup.form != "difference" or not is_worth_ordering(some, reach):
            return None
        with _lock:
            if self._order is None:
                self._order = _core.neighbour_order(_core.Points(self.rows, threads), threads)
        whole = np.array([0, n_rows])
        worth = is_worth_skipping(sources.points, self._order, whole, reach, threads, LEAST_SKIPPED)
        return self._order if worth else None

    def form(self, threads: int = 1, how: str = "coded") -> KernelRows | None:
        """All sources, "coded" where that pays, "plain" as they are, or "stepped" as they meet rows
        of bytes, None where they are not such."""
        with _lock:
            if how not in self._forms:
                self._forms[how] = self._made(threads, how)
            form = self._forms[how]
        return form and form.with_threads(threads)

    def _made(self, threads: int, how: str) -> KernelRows | None:
        if how != "stepped":
            most = self.rows.nbytes + COPY_BYTES
            coded = how == "coded"
            return KernelRows(self.rows, self.kernel, threads, coded=coded, memory_bytes=most)
        lattice = self.form(threads).lattice
        if lattice is None or not self.rows.is_dense or not lattice.is_stepped(self.rows):
            return None
        points = _core.Points(self.rows, threads)
        points.take_bytes(lattice.codes(self.rows), int(lattice.origin), int(lattice.step))
        return KernelRows(self.rows, self.kernel, threads, points=points)
