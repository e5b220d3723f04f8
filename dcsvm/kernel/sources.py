"""Sources of kernel sums, such as support vectors, and the tree of clusters that rows descend.

cluster_tree.py builds the tree. A center is the mean, in kernel space, of sampled rows of its
cluster. A row descends the tree: on each level it goes to the nearest child of its cluster, and
is compared only with the sampled rows of that cluster. Training and test rows are assigned by the
same code. A row is near a cluster boundary if another center is almost as near as the nearest one.
Such a row may be trained on, and predicted, in both clusters.

Sources are encoded once: exclusive 0/1 columns as codes, evenly spaced values as bytes. Targets are
encoded in the same way. Targets with two ones in the columns of a code, or with values off the
uniform grid, cannot be encoded: they are combined with the sources without encoding. The encoding
of a target does not depend on the other targets of its block. Sources of evenly spaced integers,
such as landmarks of images, have a second encoding for products with targets stored as bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import slices
from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import has_far_columns, without_empty_columns
from dcsvm.kernel.distances import Cutoff
from dcsvm.kernel.kernel_rows import KernelEvalOptions, KernelRows, Weights, two_sides
from dcsvm.kernel.kernels import PRODUCT, Kernel
from dcsvm.kernel.row_components import MIN_ROWS, is_worth_ordering, is_worth_skipping

BATCH_ROUTED = 2**22  # values in a batch of rows
ROUTED_BY_FEW = 2**20  # for the linear kernel: the batch stays in the CPU cache between levels
MAX_PARTS = 256  # children of a node; the cost grows with the number of pairs of their centers
MAX_ENCODINGS = 2  # kept encodings of the sampled rows of a tree: encoded and as given


def fields_only(instance: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, the state to pickle: what it keeps besides is made anew."""
    return {field.name: getattr(instance, field.name) for field in fields(instance)}


@dataclass(frozen=True, eq=False)
class Assignment:
    """Assignment of rows to the clusters of a level.

    `nearest` int32 (n,) is the nearest cluster. With overlap, `second` int32 (n,) is the cluster
    beyond the nearest cluster boundary, or -1 if there is no boundary, and `distance` float64 (n,)
    is the distance to that boundary in kernel space. Without overlap both are None.
    """

    nearest: np.ndarray
    second: np.ndarray | None = None
    distance: np.ndarray | None = None

    @staticmethod
    def at_root(n: int, *, second: bool = False) -> Assignment:
        boundaries = (np.full(n, -1, np.int32), np.full(n, np.inf)) if second else ()
        return Assignment(np.zeros(n, np.int32), *boundaries)

    @property
    def boundaries(self) -> tuple[np.ndarray, np.ndarray]:
        """`second` and `distance`, for an assignment with overlap."""
        assert self.second is not None and self.distance is not None
        return self.second, self.distance

    def take(self, rows: np.ndarray | slice) -> Assignment:
        taken = {name: array[rows] for name, array in vars(self).items() if array is not None}
        return Assignment(**taken)

    def across(self, rows: np.ndarray) -> np.ndarray:
        """Return the second clusters of rows, -1 for rows with one cluster."""
        return np.full(len(rows), -1, np.int32) if self.second is None else self.second[rows]

    def put(self, rows: np.ndarray | slice, placed: Assignment) -> None:
        """Set the assignment of some rows; both assignments have second clusters, or neither."""
        self.nearest[rows] = placed.nearest
        if self.second is not None:
            second, distance = self.boundaries
            second[rows], distance[rows] = placed.boundaries

    def shares(self, blend: float) -> np.ndarray:
        """Return the weight of the nearest cluster in predictions, float64 (n,).

        It is 1/2 at a boundary and grows linearly to 1 at the distance `blend`.
        """
        if blend == 0:
            return np.ones(len(self.nearest))
        return np.minimum(0.5 * (1.0 + self.boundaries[1] / blend), 1.0)


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """Split of the nodes of one level into the clusters of the next finer level.

    The children of node p are the clusters first_child[p] to before first_child[p + 1]. Its sampled
    rows are start[p] to before start[p + 1], sorted by child; a node with one child has no sampled
    rows. Both arrays are int64 (n_nodes + 1,). `child` int32 is the child of each sampled row,
    counted from 0 within its node. `products` float64 are the inner products of the centers, an
    n x n block for a node with n children.
    """

    first_child: np.ndarray
    start: np.ndarray
    child: np.ndarray
    products: np.ndarray

    @property
    def n_clusters(self) -> int:
        return int(self.first_child[-1])

    @property
    def n_parts(self) -> np.ndarray:
        """Number of children of each node."""
        return np.diff(self.first_child)

    @property
    def cluster(self) -> np.ndarray:
        """Cluster of each sampled row, ascending."""
        return np.repeat(self.first_child[:-1], np.diff(self.start)) + self.child

    def of(self, data: KernelRows, rows: np.ndarray) -> _core.FoundSplit:
        """Return the core's split, given the indices int32 of the sampled rows in `data`."""
        nodes = _core.Nodes(data.points, rows, self.start)
        return _core.FoundSplit(nodes, self.first_child, self.child, self.products)


@dataclass(frozen=True, eq=False)
class Partition:
    """Tree of clusters.

    `splits` are the node splits of each level, coarsest first, and `sample` their sampled rows,
    level by level. Rows nearer to a cluster boundary than `blend`, in kernel space, are predicted
    by the models of both clusters; 0 uses the nearest cluster only.
    """

    kernel: Kernel
    sample: Rows
    splits: tuple[NodeSplit, ...]
    blend: float = 0.0

    __getstate__ = fields_only

    @property
    def n_clusters(self) -> int:
        return self.splits[-1].n_clusters if self.splits else 1

    def with_features(self, n_features: int) -> Partition:
        return replace(self, sample=self.sample.with_features(n_features))

    @cached_property
    def sources(self) -> EncodedSources:
        """The sampled rows, encoded."""
        return EncodedSources(self.sample, self.kernel)

    @cached_property
    def _splits_by_encoding(self) -> dict[_core.Points, list[_core.FoundSplit]]:
        return {}

    def place(
        self,
        rows: Rows,
        threads: int,
        stop: _core.Stop | None = None,
        *,
        second: bool = False,
        begin: Assignment | None = None,
        float64: bool = False,
    ) -> Assignment:
        """Assign rows to the finest level, with second clusters if `second`.

        `begin` is the assignment to the nodes of the first split, by default to the root. Ties go
        to the cluster with the lowest index. `float64` is for rows whose kernel values
        overflow float32. Raises Stopped.
        """
        begin = begin or Assignment.at_root(rows.n_samples)
        placed = Assignment.at_root(rows.n_samples, second=second)
        sources = self.sources
        row_size = max(rows.row_size, sources.row_size(threads))
        batch_size = ROUTED_BY_FEW if self.kernel.type.is_linear else BATCH_ROUTED
        for batch in slices(rows.n_samples, batch_size // row_size):
            block = rows.part(batch)
            # rows that cannot be encoded as the others descend in a batch of their own
            batches = (
                [sources.float64_batch(block, threads)]
                if float64
                else sources.batches(block, threads)
            )
            for encoded in batches:
                # level by level, to the finest
                part = begin.take(batch).take(encoded.place)
                for split in self.found_splits(encoded.sources):
                    part = route_step(
                        encoded.targets, part, split, stop, encoded.numbers,
                        second=second, float64=float64,
                    )  # fmt: skip
                placed.put(np.arange(batch.start, batch.stop)[encoded.place], part)
        return placed

    def found_splits(self, sources: KernelRows) -> list[_core.FoundSplit]:
        """Return the core's splits, kept, for the sampled rows in one encoding."""
        cache = self._splits_by_encoding
        splits = cache.get(sources.points)
        if splits is None:
            ends = np.cumsum([0, *(len(split.child) for split in self.splits)])
            splits = [
                split.of(sources, np.arange(first, last, dtype=np.int32))
                for split, first, last in zip(self.splits, ends[:-1], ends[1:], strict=True)
            ]
            if len(cache) >= MAX_ENCODINGS:
                cache.clear()
            cache[sources.points] = splits
        return splits

    def assign(self, rows: Rows, threads: int, stop: _core.Stop | None = None) -> np.ndarray:
        """Return the nearest cluster of the finest level, int32 (n,). Raises Stopped."""
        return self.place(rows, threads, stop).nearest


def blended(
    values_by: Callable[[np.ndarray | slice, np.ndarray], np.ndarray],
    placed: Assignment,
    blend: float,
) -> np.ndarray:
    """Blend the decision values (n, k) of rows near a cluster boundary.

    `values_by(rows, cluster)` returns decision values of rows, each by the model of its given
    cluster, or nan if that cluster has no model. A row near a boundary gets the mean of both
    clusters, weighted by `Assignment.shares`. If only one cluster has a model, it gets that value.
    """
    values = values_by(slice(None), placed.nearest)
    if blend == 0:
        return values
    share, (across, _) = placed.shares(blend), placed.boundaries
    near = np.flatnonzero((share < 1.0) & (across >= 0))
    if len(near) == 0:
        return values
    first, second = values[near], values_by(near, across[near])
    mean = share[near, None] * first + (1.0 - share[near, None]) * second
    values[near] = np.where(np.isnan(mean), np.where(np.isnan(first), second, first), mean)
    return values


def partition_of(
    kernel: Kernel,
    sample: Rows,
    n_parts: np.ndarray,
    clusters: list[np.ndarray],
    blend: float,
    products: np.ndarray | None = None,
) -> Partition:
    """Build a partition from the data of a model file.

    `n_parts` int64 is the number of children of each node, level by level. `clusters` has an array
    for each level: the cluster of each sampled row, ascending. `products` are the inner products of
    the centers of all levels, None to compute them from the sample. Raises ValueError for
    inconsistent arrays.
    """
    data = None
    splits, n_nodes, first = [], 1, 0
    for cluster in clusters:
        # the nodes of this level, and their children
        n_children, n_parts = n_parts[:n_nodes], n_parts[n_nodes:]
        first_child = np.concatenate(([0], np.cumsum(n_children)))
        if (
            len(n_children) < n_nodes
            or np.any((n_children < 1) | (n_children > MAX_PARTS))
            or n_children[n_children > 1].sum() > len(cluster)
            or np.any(cluster >= first_child[-1])
        ):
            raise ValueError("the clusters of a level do not fit the level above")
        # the node and the child of each sampled row
        node = np.searchsorted(first_child, cluster, side="right") - 1
        start = np.searchsorted(node, np.arange(n_nodes + 1))
        part = (cluster - first_child[node]).astype(np.int32)
        rows = np.arange(first, first + len(cluster), dtype=np.int32)
        # the inner products of the centers of this level
        if products is None:
            data = data or KernelRows(sample, kernel, 1)
            nodes = _core.Nodes(data.points, rows, start)
            level_products = _core.mean_products(data.setup, nodes, part, first_child, 1)
        else:
            size = int((n_children**2).sum())
            level_products, products = products[:size], products[size:]
            if len(level_products) < size:
                raise ValueError("too few inner products of centers")
        splits.append(NodeSplit(first_child, start, part, level_products))
        n_nodes, first = int(first_child[-1]), first + len(cluster)
    if len(n_parts) or not splits or (products is not None and len(products)):
        raise ValueError("more nodes or inner products of centers than the levels have")
    return Partition(kernel, sample, tuple(splits), blend)


def route_step(
    data: KernelRows,
    placed: Assignment,
    split: _core.FoundSplit,
    stop: _core.Stop | None,
    rows: np.ndarray | None = None,
    *,
    second: bool,
    float64: bool = False,
) -> Assignment:
    """Assign rows to the next finer level.

    `rows` int32 are the indices of the assigned rows in `data`, None for all. Raises Stopped.
    """

    def routed(
        node: np.ndarray, second: bool
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        return _core.route(
            data.setup, data.points, rows, node, split, data.threads, stop,
            second=second, double_tiles=float64,
        )  # fmt: skip

    in_level = Assignment(*routed(placed.nearest, second))
    if not second or placed.second is None:
        return in_level
    across, distance = in_level.boundaries
    across_above, distance_above = placed.boundaries
    is_nearer = distance < distance_above
    # If the nearest boundary is that of a level above, the second cluster is a child of the cluster
    # beyond it.
    beyond = routed(np.where(is_nearer, -1, across_above).astype(np.int32), False)[0]
    return Assignment(
        in_level.nearest,
        np.where(is_nearer, across, beyond),
        np.where(is_nearer, distance, distance_above),
    )


SAMPLE = 512  # rows; their distances decide whether a spatial order is computed
# Fraction of pairs of a source and a block of sources that must be beyond the cutoff. Less than
# SKIPPING_THRESHOLD, because targets are more numerous and the boxes of their blocks are smaller.
MIN_SKIPPED = 0.05
# Encodings of sources, tried in this order: integers of a step for targets of bytes, as encoded if
# that pays, and as given, which fits all targets.
FOR_BYTES, ENCODED, AS_GIVEN = "for bytes", "encoded", "as given"
COPY_BYTES = 100_000_000  # by which a copy may exceed the rows: sparse rows are larger as bytes
THREADS_THRESHOLD = 2**16  # values; encoding fewer takes less time than starting threads

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
        weights: Weights,
        rows: np.ndarray | None = None,
        *,
        targets: np.ndarray | None = None,
        cutoff: Cutoff | None = None,
    ) -> np.ndarray:
        """Compute the kernel product of targets with these sources, see `KernelRows.product`.

        `targets` int32 selects targets. Kernel values beyond `cutoff` may be skipped.
        """
        evaluation = KernelEvalOptions(self.float64, cutoff)
        return self.sources.product(
            weights,
            rows,
            targets=self.targets,
            target_rows=self._numbers(targets),
            evaluation=evaluation,
        )

    def cluster_product(
        self,
        weights: Weights,
        cluster: np.ndarray,
        targets: np.ndarray,
        target_cluster: np.ndarray,
    ) -> np.ndarray:
        """Compute the kernel product within each cluster, see `KernelRows.cluster_product`.

        `targets` int32 selects targets, sorted by `target_cluster`.
        """
        numbers = targets if self.numbers is None else self.numbers[targets]
        return self.sources.cluster_product(
            weights, cluster, self.targets, numbers, target_cluster,
            evaluation=KernelEvalOptions(self.float64),
        )  # fmt: skip

    def near_product(self, weights: Weights, rows: np.ndarray, cutoff: Cutoff) -> np.ndarray:
        """Compute a kernel product that may skip values beyond `cutoff`.

        `rows` int32 are the sources in a spatial order.
        """
        threads = self.sources.threads
        order = _core.neighbour_order(_core.Points(self.rows, threads), threads)
        sums = self.product(weights, rows, targets=order, cutoff=cutoff)
        result = np.empty_like(sums)
        result[order] = sums
        return result

    def _numbers(self, targets: np.ndarray | None) -> np.ndarray | None:
        if targets is None:
            return self.numbers
        return targets if self.numbers is None else self.numbers[targets]


class EncodedSources:
    """Sources with a kernel.

    Each encoding takes at most the memory of the rows plus COPY_BYTES plus 20 bytes per row.
    """

    def __init__(self, rows: Rows, kernel: Kernel):
        self.rows, self.kernel = rows, kernel
        self._encodings: dict[str, KernelRows | None] = {}
        self._order: np.ndarray | None = None
        self._most_in_float32: float | None = None

    def float64_batch(self, block: Rows, threads: int) -> EncodedBatch:
        """Encode rows of a block for kernel values with every step in float64."""
        own = self.rows.as_floats(threads)
        block = block.in_form_of(own, threads).as_floats(threads)
        narrow = without_empty_columns(block, own)
        targets, sources = (_core.Points(rows, threads) for rows in narrow)
        form = "sparse"
        if own.is_dense:
            form = "product" if self.kernel.type.argument == PRODUCT else "difference"
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
        has_bytes = not self.rows.is_dense and self.encoded(threads).points.has_bytes
        return self.rows.n_features // 4 if has_bytes else self.rows.row_size

    def batches(self, block: Rows, threads: int) -> list[EncodedBatch]:
        """Encode all rows of a block as targets, in one batch per encoding.

        A target is in the batch of the first encoding that keeps its values.
        """
        if has_far_columns(self.rows) or self.kernel.is_precomputed:
            return [EncodedBatch(None, *two_sides(block, self.rows, self.kernel, threads))]
        # each encoding takes the targets that it fits, of those that the earlier ones left
        few = 1 if block.n_samples * block.row_size < THREADS_THRESHOLD else threads
        result, remaining = [], np.ones(block.n_samples, bool)
        as_given = _core.Points(block, few)
        for encoding in (FOR_BYTES, ENCODED, AS_GIVEN):
            sources = self._encoding(threads, encoding)
            if sources is None or (encoding == FOR_BYTES and not block.is_dense):
                continue
            encoded = None
            if encoding != AS_GIVEN:
                encoded = sources.encode_others(as_given, block, few)
            points, fits = (as_given, remaining) if encoded is None else encoded
            own = remaining & fits
            targets = KernelRows(block, self.kernel, few, points=points, setup=sources.setup)
            if own.all():
                return [EncodedBatch(None, targets, sources)]
            if own.any():
                result.append(EncodedBatch(np.flatnonzero(own).astype(np.int32), targets, sources))
            remaining = remaining & ~own
            if not remaining.any():
                break
        return result

    def order(self, cutoff: Cutoff, threads: int) -> np.ndarray | None:
        """Return a spatial order of all sources, int32.

        None if it would not prove enough kernel values to be beyond the cutoff.
        """
        n_rows = self.rows.n_samples
        if not self.kernel.type.is_of_distance or not self.rows.is_dense or n_rows < MIN_ROWS:
            return None
        sources = self.encoded(threads)
        sample = self.rows.take(np.arange(0, n_rows, -(-n_rows // SAMPLE)))
        if sources.setup.form != "difference" or not is_worth_ordering(sample, cutoff, threads):
            return None
        with _lock:
            if self._order is None:
                self._order = _core.neighbour_order(_core.Points(self.rows, threads), threads)
        whole = np.array([0, n_rows])
        pays = is_worth_skipping(sources.points, self._order, whole, cutoff, threads, MIN_SKIPPED)
        return self._order if pays else None

    def encoded(self, threads: int = 1) -> KernelRows:
        """Return all sources, encoded if that pays."""
        encoded = self._encoding(threads, ENCODED)
        assert encoded is not None
        return encoded

    def for_bytes(self, threads: int = 1) -> KernelRows | None:
        """Return all sources encoded for targets of bytes, or None if that is impossible."""
        return self._encoding(threads, FOR_BYTES)

    def _encoding(self, threads: int, encoding: str) -> KernelRows | None:
        """Return all sources in one encoding; only FOR_BYTES can be None."""
        with _lock:
            if encoding not in self._encodings:
                self._encodings[encoding] = (
                    self._made_for_bytes(threads)
                    if encoding == FOR_BYTES
                    else KernelRows(
                        self.rows, self.kernel, threads, coded=encoding == ENCODED,
                        memory_bytes=self.rows.nbytes + COPY_BYTES,
                    )
                )  # fmt: skip
            sources = self._encodings[encoding]
        return sources and sources.with_threads(threads)

    def _made_for_bytes(self, threads: int) -> KernelRows | None:
        grid = self.encoded(threads).grid
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
