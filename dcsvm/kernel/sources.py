"""Sources of kernel sums, such as support vectors, prepared for many blocks of targets.

Sources are encoded once: exclusive 0/1 columns as codes, evenly spaced values as bytes. Targets are
encoded in the same way. Targets that would lose values, with two ones in a code or values off the
grid, use the sources without encoding. How a target is computed does not depend on the other
targets of its block. Sources of evenly spaced integers, such as landmarks of images, are also
combined with targets of bytes.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows, has_far_columns
from dcsvm.kernel.kernel_rows import ClusterRanges, Cutoff, KernelEvalOptions, KernelRows, two_sides
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.row_components import MIN_ROWS, is_worth_ordering, is_worth_skipping

SAMPLE = 512  # rows, whose distances say whether an order could pay
# part of the pairs of sources that must be beyond the cutoff: targets are more, in smaller boxes
MIN_SKIPPED = 0.05
FORMS = ("stepped", "coded", "plain")  # what targets that fit no other meet is the last
COPY_BYTES = 100_000_000  # that a copy may take more than the rows: sparse ones as bytes
THREADS_THRESHOLD = 2**16  # values; to encode fewer takes less than to start threads

_cache: weakref.WeakKeyDictionary[Rows, EncodedSources] = weakref.WeakKeyDictionary()
_lock = threading.RLock()


@dataclass(frozen=True, eq=False)
class EncodedBatch:
    """Targets of a block and sources in the same encoding.

    The targets are the rows `numbers` int32 of the block, None for all; `targets` has the whole
    block. `float64`: kernel values are float64, else float32.
    """

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
    def place(self) -> slice | np.ndarray:
        """Where the targets are in the block."""
        return slice(None) if self.numbers is None else self.numbers

    def product(
        self,
        weights: np.ndarray | tuple,
        rows: np.ndarray | None = None,
        *,
        some: np.ndarray | None = None,
        cutoff: Cutoff | None = None,
    ) -> np.ndarray:
        """Compute the kernel product of targets with these sources, see `KernelRows.product`.

        `some` int32 selects targets. Kernel values beyond `cutoff` may be skipped.
        """
        return self.sources.product(
            weights,
            rows,
            targets=self.targets,
            target_rows=self._numbers(some),
            how=KernelEvalOptions(self.float64, cutoff),
        )

    def cluster_product(
        self, weights: np.ndarray | tuple, ranges: ClusterRanges, some: np.ndarray
    ) -> np.ndarray:
        """As `KernelRows.cluster_product` with these sources; `some` int32 are the targets."""
        chosen = some if self.numbers is None else self.numbers[some]
        return self.sources.cluster_product(weights, ranges, self.targets, chosen, self.float64)

    def near_product(
        self, weights: np.ndarray | tuple, rows: np.ndarray, cutoff: Cutoff
    ) -> np.ndarray:
        """Compute a product with spatially ordered sources that may skip values beyond `cutoff`."""
        threads = self.sources.threads
        order = _core.neighbour_order(_core.Points(self.rows, threads), threads)
        sums = self.product(weights, rows, some=order, cutoff=cutoff)
        result = np.empty_like(sums)
        result[order] = sums
        return result

    def _numbers(self, some: np.ndarray | None) -> np.ndarray | None:
        if self.numbers is None or some is None:
            return self.numbers if some is None else some
        return self.numbers[some]


class EncodedSources:
    """Sources with a kernel.

    Their encodings take at most the memory of the rows, 20 bytes a row and COPY_BYTES.
    """

    def __init__(self, rows: Rows, kernel: Kernel):
        self.rows, self.kernel = rows, kernel
        self._forms: dict[str, KernelRows | None] = {}
        self._order: np.ndarray | None = None

    @staticmethod
    def cached(rows: Rows, kernel: Kernel) -> EncodedSources:
        """Return the sources of these Rows and kernel, cached as long as the rows live."""
        with _lock:
            sources = _cache.get(rows)
            if sources is None or sources.kernel != kernel:
                # of a copy, since the rows live as long as anything here refers to them
                sources = _cache[rows] = EncodedSources(replace(rows), kernel)
        return sources

    def row_size(self, threads: int) -> int:
        """Values of 4 bytes that a target takes in the forms of these."""
        has_bytes = not self.rows.is_dense and self.form(threads).points.has_bytes
        return self.rows.n_features // 4 if has_bytes else self.rows.row_size

    def meetings(self, block: Rows, threads: int) -> list[EncodedBatch]:
        """All rows of a block, by the form in which they meet these."""
        if has_far_columns(self.rows) or self.kernel.is_precomputed:
            return [EncodedBatch(None, *two_sides(block, self.rows, self.kernel, threads))]
        few = 1 if block.n_samples * block.row_size < THREADS_THRESHOLD else threads
        result, left = [], np.ones(block.n_samples, bool)
        as_given = _core.Points(block, few)
        for how in FORMS:
            sources = self._form(threads, how)
            if sources is None or (how == "stepped" and not block.is_dense):
                continue
            encoded = None
            if how != "plain":
                encoded = sources.encoding.of_others(as_given, block, sources.setup, few)
            points, fits = (as_given, left) if encoded is None else encoded
            own = left & fits
            targets = KernelRows(block, self.kernel, few, points=points, setup=sources.setup)
            if own.all():
                return [EncodedBatch(None, targets, sources)]
            if own.any():
                result.append(EncodedBatch(np.flatnonzero(own).astype(np.int32), targets, sources))
            left = left & ~own
            if not left.any():
                break
        return result

    def order(self, cutoff: Cutoff, threads: int) -> np.ndarray | None:
        """Return a spatial order of all sources, int32.

        None if too few kernel values are provably beyond the cutoff.
        """
        n_rows = self.rows.n_samples
        if self.kernel.type.fall is None or not self.rows.is_dense or n_rows < MIN_ROWS:
            return None
        sources = self.form(threads)
        some = self.rows.take(np.arange(0, n_rows, -(-n_rows // SAMPLE)))
        if sources.setup.form != "difference" or not is_worth_ordering(some, cutoff):
            return None
        with _lock:
            if self._order is None:
                self._order = _core.neighbour_order(_core.Points(self.rows, threads), threads)
        whole = np.array([0, n_rows])
        worth = is_worth_skipping(sources.points, self._order, whole, cutoff, threads, MIN_SKIPPED)
        return self._order if worth else None

    def form(self, threads: int = 1) -> KernelRows:
        """Return all sources, encoded if that pays."""
        form = self._form(threads, "coded")
        assert form is not None
        return form

    def stepped(self, threads: int = 1) -> KernelRows | None:
        """Return all sources as they meet rows of bytes, None if they cannot."""
        return self._form(threads, "stepped")

    def _form(self, threads: int, how: str) -> KernelRows | None:
        """Return all sources, "coded", "plain" as they are, or "stepped" to meet rows of bytes.

        None if they cannot meet rows of bytes.
        """
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
        grid = self.form(threads).encoding.grid
        if grid is None or not self.rows.is_dense or not grid.may_meet_bytes(self.rows):
            return None
        spacing = int(grid.origin), int(grid.step)
        points = _core.Points(self.rows, threads).with_bytes(grid.codes(self.rows), *spacing)
        return KernelRows(self.rows, self.kernel, threads, points=points)
