"""Arrange rows by clusters and folds, in the arrays that the core requires."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import group_order
from dcsvm.kernel.partition import Assignment
from dcsvm.problem.folds import Folds
from dcsvm.problem.formulation import Formulation
from dcsvm.solving.engine import new_tree
from dcsvm.solving.level_partition import ClusteredFormulation, LevelPartition
from dcsvm.solving.preparation import Prepared


@dataclass(frozen=True, eq=False)
class HeldOutBatch:
    """Argument `held` of `_core.held_out_values` for a batch of clusters.

    `entries` int64 are the entries of `Folds` to predict, in the order of the values that the core
    returns. An entry occurs once for each of its clusters; `is_second` marks the second cluster.
    """

    members: np.ndarray
    start: np.ndarray
    left: np.ndarray
    rows: np.ndarray
    rows_start: np.ndarray
    entries: np.ndarray
    is_second: np.ndarray


@dataclass(frozen=True, eq=False)
class Layout:
    """The binary problems of all rows with C = 1, in `n_clusters` clusters, and the folds.

    `placed` assigns rows to clusters. If a row is nearer to a cluster boundary than `blend`, the
    predictions of two clusters are blended.
    """

    clustered: ClusteredFormulation
    folds: Folds
    placed: Assignment
    n_clusters: int
    blend: float

    @property
    def formulation(self) -> Formulation:
        return self.clustered.formulation

    @property
    def n_pairs(self) -> int:
        return self.formulation.n_problems

    @cached_property
    def left(self) -> np.ndarray:
        """Training weight of each row in each fold, float64 (n_folds, n_rows)."""
        return np.stack([self.folds.train_weight(fold) for fold in range(self.folds.n_folds)])

    @cached_property
    def blended(self) -> np.ndarray:
        """Held-out entries that two clusters predict, ascending."""
        row = self.folds.row
        is_near = self.placed.shares(self.blend)[row] < 1.0
        return np.flatnonzero(is_near & (self.placed.across(row) >= 0) & (self.folds.fold >= 0))

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """All variables (int32), grouped by cluster and pair, and the offset of each group."""
        part = (
            self.clustered.cluster.astype(np.int64) * self.n_pairs + self.formulation.problem_index
        )
        order = group_order(part).astype(np.int32)
        n_parts = self.n_clusters * self.n_pairs
        return order, np.searchsorted(part[order], np.arange(n_parts + 1))

    @cached_property
    def _entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Entries grouped by cluster and fold, flags of second clusters, and the group offsets."""
        held, row, two = self.folds.held, self.folds.row, self.blended
        entries = np.concatenate([np.arange(held.start, held.stop), two])
        cluster = np.concatenate([self.placed.nearest[row[held]], self.placed.across(row[two])])
        n_folds = self.folds.n_folds
        key = cluster.astype(np.int64) * n_folds + self.folds.fold[entries]
        order = group_order(key)
        start = np.searchsorted(key[order], np.arange(self.n_clusters * n_folds + 1))
        return entries[order], order >= held.stop - held.start, start

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of held-out entries of each cluster."""
        start = self._entries[2]
        return np.diff(start[:: self.folds.n_folds])

    def held(self, clusters: np.ndarray) -> HeldOutBatch:
        """Collect the arrays of a batch of clusters."""
        members, member_start = self._members
        entries, is_second, entry_start = self._entries
        own, start = _take_parts(member_start, clusters, self.n_pairs)
        own_entries, rows_start = _take_parts(entry_start, clusters, self.folds.n_folds)
        return HeldOutBatch(
            members=members[own],
            start=start,
            left=self.left,
            rows=self.folds.row[entries[own_entries]].astype(np.int32),
            rows_start=rows_start,
            entries=entries[own_entries],
            is_second=is_second[own_entries],
        )


def _take_parts(start: np.ndarray, clusters: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Select all parts of some clusters; each cluster has n parts, with offsets `start`.

    Returns the indices of their elements, and the offset of each part in them, both int64.
    """
    parts = (clusters[:, None] * n + np.arange(n)).reshape(-1)
    sizes = start[parts + 1] - start[parts]
    ends = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    index = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes) + np.repeat(start[parts], sizes)
    return index, ends


def whole(formulation: Formulation, folds: Folds, n_rows: int) -> Layout:
    """Make a layout with all rows in one cluster."""
    size = formulation.problem.size
    is_copy = np.zeros(size, bool)
    clustered = ClusteredFormulation(
        formulation, np.zeros(size, np.int32), np.arange(size), is_copy
    )
    return Layout(clustered, folds, Assignment.at_root(n_rows), 1, 0.0)


def in_clusters(formulation: Formulation, folds: Folds, division: LevelPartition) -> Layout:
    """Make a layout with the clusters of a level."""
    blend = division.partition.blend
    clustered = division.clustered(formulation)
    return Layout(clustered, folds, division.placed, division.n_clusters, blend)


def divided(prepared: Prepared, level: int, stop: _core.Stop) -> LevelPartition:
    """Find the clusters of a level as for early models, without components. Raises Stopped."""
    options = prepared.options
    tree = new_tree(prepared.engine, options, prepared.components.order)
    overlap = options.early_overlap
    for finer in range(1, level + 1):
        tree.grow(options.branching**finer, stop, second=overlap > 1)
    placed = tree.placed[level]
    assert placed is not None
    return LevelPartition.overlapping(tree.partition(level), placed, overlap)


def unit_formulation(prepared: Prepared, epsilon: float | None) -> Formulation:
    """Formulate the problems of prepared rows with C = 1 and unit weights.

    The core scales the bounds by the training weights of the folds and by C. If `epsilon` is None,
    the option is used.
    """
    task, options = prepared.task, prepared.options
    epsilon = options.epsilon if epsilon is None else epsilon
    unit_options = replace(options, C=1.0, epsilon=epsilon, probability=False)
    unit = replace(task, options=unit_options, C_of_class=task.C_of_class / options.C)
    return unit.formulate(prepared.targets, np.ones(len(prepared.targets)))
