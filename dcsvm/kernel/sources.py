"""Sources of kernel sums, such as support vectors, prepared for many blocks of targets.

Sources are encoded once: exclusive 0/1 columns as codes, evenly spaced values as bytes. Targets are
encoded in the same way. Targets with two ones in the columns of a code, or with values off the
uniform grid, cannot be encoded: they are combined with the sources without encoding. The encoding
of a target does not depend on the other targets of its block. Sources of evenly spaced integers,
such as landmarks of images, have a second encoding for products with targets stored as bytes.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, replace

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import has_far_columns, without_empty_columns
from dcsvm.kernel.kernel_rows import ClusterRanges, Cutoff, KernelEvalOptions, KernelRows, two_sides
from dcsvm.kernel.kernels import PRODUCT, Kernel
from dcsvm.kernel.row_components import MIN_ROWS, is_worth_ordering, is_worth_skipping

SAMPLE = 512  # rows; their distances decide whether a spatial order is computed
# Fraction of pairs of a source and a block of sources that must be beyond the cutoff. Less than
# SKIPPING_THRESHOLD, because targets are more numerous and the boxes of their blocks are smaller.
MIN_SKIPPED = 0.05
FORMS = ("stepped", "coded", "plain")  # tried in this order; "plain" fits all targets
COPY_BYTES = 100_000_000  # by which a copy may exceed the rows: sparse rows are larger as bytes
THREADS_THRESHOLD = 2**16  # values; encoding fewer takes less time than starting threads

_cache: weakref.WeakKeyDictionary[Rows, EncodedSources] = weakref.WeakKeyDictionary()
_lock = threading.RLock()


@dataclass(frozen=True, eq=False)
class EncodedBatch:
    """Targets of a block and sources in the same encoding.

    `targets` is the whole encoded block, and `numbers` int32 are the indices of the targets in it,
    None for all. `float64` selects float64 kernel values instead of float32.
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
        """Indices of the targets in the block."""
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
        """Compute the kernel product within each cluster, see `KernelRows.cluster_product`.

        `some` int32 selects targets, sorted by cluster.
        """
        chosen = some if self.numbers is None else self.numbers[some]
        return self.sources.cluster_product(weights, ranges, self.targets, chosen, self.float64)

    def near_product(
        self, weights: np.ndarray | tuple, rows: np.ndarray, cutoff: Cutoff
    ) -> np.ndarray:
        """Compute a kernel product that may skip values beyond `cutoff`.

        `rows` int32 are the sources in a spatial order.
        """
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

    Each encoding takes at most the memory of the rows plus COPY_BYTES plus 20 bytes per row.
    """

    def __init__(self, rows: Rows, kernel: Kernel):
        self.rows, self.kernel = rows, kernel
        self._forms: dict[str, KernelRows | None] = {}
        self._order: np.ndarray | None = None
        self._most_in_float32: float | None = None

    @staticmethod
    def cached(rows: Rows, kernel: Kernel) -> EncodedSources:
        """Return the sources of these Rows and kernel, cached as long as the rows live."""
        with _lock:
            sources = _cache.get(rows)
            if sources is None or sources.kernel != kernel:
                # a copy: a reference to the key itself would keep the entry alive
                sources = _cache[rows] = EncodedSources(replace(rows), kernel)
        return sources

    def float64_meeting(self, block: Rows, threads: int) -> EncodedBatch:
        """Encode rows of a block for kernel values with every step in float64."""
        own = self.rows.as_floats(threads)
        block = block.in_form_of(own, threads).as_floats(threads)
        targets, sources = (_core.Points(one, threads) for one in without_empty_columns(block, own))
        argument, form = self.kernel.type.argument, "sparse"
        if own.is_dense:
            form = "product" if argument == PRODUCT else "difference"
        setup = _core.Setup(self.kernel, sources, _core.Form[form])
        first, second = (
            KernelRows(rows, self.kernel, threads, points=points, setup=setup)
            for rows, points in ((block, targets), (own, sources))
        )
        return EncodedBatch(None, first, second, float64=True)

    def most_in_float32(self, threads: int) -> float:
        """Return the largest |x|^2 of targets whose kernel values fit float32; -1 if none fit."""
        if self._most_in_float32 is None:
            most = self.kernel.most_in_float32
            self._most_in_float32 = most if _largest_square(self.rows, threads) <= most else -1.0
        return self._most_in_float32

    def beyond_float32(self, block: Rows, threads: int) -> np.ndarray:
        """Return the rows of a block whose kernel values may overflow float32, int32."""
        kernel = self.kernel
        if kernel.is_precomputed or block.n_samples == 0:
            return np.empty(0, np.int32)
        limit = self.most_in_float32(threads)
        if _largest_square(block, threads) <= limit:
            return np.empty(0, np.int32)
        return np.flatnonzero(_squares(block.as_floats(threads)) > limit).astype(np.int32)

    def row_size(self, threads: int) -> int:
        """Return the size of an encoded target in values of 4 bytes."""
        has_bytes = not self.rows.is_dense and self.form(threads).points.has_bytes
        return self.rows.n_features // 4 if has_bytes else self.rows.row_size

    def meetings(self, block: Rows, threads: int) -> list[EncodedBatch]:
        """Encode all rows of a block as targets, in one batch per encoding.

        A target is in the batch of the first encoding that keeps its values.
        """
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

        None if it would not prove enough kernel values to be beyond the cutoff.
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
        """Return all sources encoded for targets of bytes, or None if that is impossible."""
        return self._form(threads, "stepped")

    def _form(self, threads: int, how: str) -> KernelRows | None:
        """Return all sources in one of FORMS.

        "coded" is encoded if that pays, "plain" is not encoded, "stepped" is encoded for targets of
        bytes, or None if that is impossible.
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
        # rows of different steps are combined by products alone
        if grid is None or not self.rows.is_dense:
            return None
        argument = self.kernel.type.argument
        if not _core.is_from_products(argument) or not grid.may_meet_bytes(self.rows):
            return None
        spacing = int(grid.origin), int(grid.step)
        points = _core.Points(self.rows, threads).with_bytes(grid.codes(self.rows), *spacing)
        return KernelRows(self.rows, self.kernel, threads, points=points)


def _largest_square(rows: Rows, threads: int) -> float:
    """Return the largest |x|^2 of rows, or a bound on it for rows of bytes."""
    if rows.is_bytes:
        return 255.0**2 * rows.n_features
    return float(_core.Points(rows, threads).largest_squared_norm)


def _squares(rows: Rows) -> np.ndarray:
    """Return |x|^2 of each row, float64 (n,)."""
    if rows.is_dense:
        return np.einsum("ij,ij->i", rows.features, rows.features, dtype=np.float64)
    indptr, _, values = rows.csr
    owner = np.repeat(np.arange(rows.n_samples), np.diff(indptr))
    return np.bincount(owner, values.astype(np.float64) ** 2, rows.n_samples)
