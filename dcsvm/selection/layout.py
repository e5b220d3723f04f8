"""Rows in clusters, with the folds that hold them out, as the core takes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dcsvm.data.sorting import group_order
from dcsvm.kernel.partition import Placed
from dcsvm.problem.folds import Folds
from dcsvm.problem.formulation import Formulation
from dcsvm.solving.division import Clustered, Division
from dcsvm.solving.engine import new_tree
from dcsvm.solving.preparation import Prepared


@dataclass(frozen=True, eq=False)
class Held:
    """What `_core.held_out_values` takes of some clusters, and `entries` int64: those of the folds
    that the lines of its values are of, one for each cluster an entry is in."""

    members: np.ndarray
    start: np.ndarray
    left: np.ndarray
    rows: np.ndarray
    rows_start: np.ndarray
    entries: np.ndarray
    is_second: np.ndarray


@dataclass(frozen=True, eq=False)
class Layout:
    """`clustered` has the problems of all rows with C = 1, in `n_clusters` clusters where the rows
    are `placed`; predictions near a border, nearer than `blend`, are blended."""

    clustered: Clustered
    folds: Folds
    placed: Placed
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
        """The weight of each row in what each fold learns from, float64 (n_folds, n_rows)."""
        return np.stack([self.folds.left(fold) for fold in range(self.folds.n_folds)])

    @cached_property
    def blended(self) -> np.ndarray:
        """Entries that two clusters predict, ascending."""
        row = self.folds.row
        is_near = self.placed.shares(self.blend)[row] < 1.0
        return np.flatnonzero(is_near & (self.placed.across(row) >= 0) & (self.folds.fold >= 0))

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """All variables int32, by cluster and pair, and where each of these begins."""
        part = self.clustered.cluster.astype(np.int64) * self.n_pairs + self.formulation.number
        order = group_order(part).astype(np.int32)
        n_parts = self.n_clusters * self.n_pairs
        return order, np.searchsorted(part[order], np.arange(n_parts + 1))

    @cached_property
    def _entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The entries of each cluster and fold, which of these are of the row's second cluster, and
        where each cluster and fold begins."""
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
        """Entries of each cluster."""
        start = self._entries[2]
        return np.diff(start[:: self.folds.n_folds])

    def held(self, clusters: np.ndarray) -> Held:
        """That of some clusters."""
        members, member_start = self._members
        entries, is_second, entry_start = self._entries
        own, start = _taken(member_start, clusters, self.n_pairs)
        of, rows_start = _taken(entry_start, clusters, self.folds.n_folds)
        return Held(
            members=members[own],
            start=start,
            left=self.left,
            rows=self.folds.row[entries[of]].astype(np.int32),
            rows_start=rows_start,
            entries=entries[of],
            is_second=is_second[of],
        )


def _taken(start: np.ndarray, clusters: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of the elements that `start` divides, n parts for each cluster, are of some clusters,
    and where their parts begin, int64."""
    parts = (clusters[:, None] * n + np.arange(n)).reshape(-1)
    sizes = start[parts + 1] - start[parts]
    ends = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    place = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes) + np.repeat(start[parts], sizes)
    return place, ends


def whole(formulation: Formulation, folds: Folds, n_rows: int) -> Layout:
    """All rows in one cluster."""
    size = formulation.problem.size
    every = np.arange(size)
    clustered = Clustered(formulation, np.zeros(size, np.int32), every, np.zeros(size, bool))
    return Layout(clustered, folds, Placed.at_root(n_rows), 1, 0.0)


def in_clusters(formulation: Formulation, folds: Folds, division: Division) -> Layout:
    """The rows in the clusters of a level."""
    blend = division.partition.blend
    clustered = division.clustered(formulation)
    return Layout(clustered, folds, division.placed, division.n_clusters, blend)


def divided(prepared: Prepared, level: int, stop) -> Division:
    """The clusters of a level; those of early models, but that rows far from each other count as
    well. Raises Stopped."""
    options = prepared.options
    tree = new_tree(prepared.engine, options, prepared.locality.order)
    overlap = options.early_overlap
    for one in range(1, level + 1):
        tree.grow(options.branching**one, stop, second=overlap > 1)
    return Division.overlapping(tree.partition(level), tree.placed[level], overlap)


def unit_formulation(prepared: Prepared, epsilon: float | None) -> Formulation:
    """The problems of prepared rows with C = 1, and weights 1; folds have weights of their own."""
    task, options = prepared.task, prepared.options
    found = {"C": 1.0, "probability": False} | ({} if epsilon is None else {"epsilon": epsilon})
    unit = replace(task, options=replace(options, **found), C_of_class=task.C_of_class / options.C)
    return unit.formulate(prepared.targets, np.ones(len(prepared.targets)))
