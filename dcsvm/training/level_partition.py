"""A level of clusters over the rows of a run, and the problems of its clusters.

A row near a cluster boundary may be in the clusters on both sides, with a variable in each. Other
rows have no extra cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dcsvm.kernel.kernel_rows import TermIndex
from dcsvm.kernel.row_components import RowComponents
from dcsvm.kernel.sources import Assignment, Partition
from dcsvm.problem.formulation import BoxQP, Formulation


@dataclass(frozen=True, eq=False)
class VariableComponents:
    """Components of the variables of a formulation, which are solved independently.

    With an equality constraint a component is a binary problem (one-vs-one). Without one it is the
    part of a binary problem in one row component. A fold family is the components with the same
    binary problem and row component in all folds.
    """

    formulation: Formulation
    row_components: RowComponents

    @cached_property
    def row_component(self) -> np.ndarray:
        """The component of every row, int32; all 0 with an equality constraint."""
        if self.formulation.has_constraints:
            return np.zeros(len(self.row_components.order), np.int32)
        return self.row_components.component

    @cached_property
    def component(self) -> np.ndarray:
        """The component of every variable."""
        n_groups = int(self.row_component[-1]) + 1
        return (
            self.formulation.problem_index * n_groups
            + self.row_component[self.formulation.problem.rows]
        )

    @property
    def n_components_of_fold(self) -> int:
        return self.formulation.n_problems_of_fold * (int(self.row_component[-1]) + 1)

    @property
    def n_components(self) -> int:
        return self.formulation.n_folds * self.n_components_of_fold

    @cached_property
    def start(self) -> np.ndarray:
        """The first variable of each component, then the number of variables."""
        return np.searchsorted(self.component, np.arange(self.n_components + 1))

    def sizes(self, variables: np.ndarray) -> np.ndarray:
        """Count ascending variables by component."""
        return np.diff(np.searchsorted(variables, self.start))

    def terms(self, variables: np.ndarray) -> TermIndex:
        """Return these variables as terms of kernel sums, separated by row component.

        Components stay separate even if an equality constraint couples them.
        """
        n_groups, rows = self.row_components.n_components, self.formulation.problem.rows[variables]
        component = np.zeros(len(rows), np.int32)
        if n_groups > 1:
            component = self.row_components.component[rows]
        if self.formulation.n_problems == 1:
            return TermIndex(rows, component, component)
        component += self.formulation.problem_index[variables] * n_groups
        return TermIndex(
            rows, component, component % (self.formulation.n_problems_of_fold * n_groups)
        )


@dataclass(frozen=True, eq=False)
class LevelPartition:
    """The `partition` of a level and the assignment `placed` of every row.

    Rows with a distance to their nearest cluster boundary below `border` are in two clusters.
    `seconds` is the time of the clustering. `kernel_evaluations` are those of the choice between
    clusterings, without those of the clustering itself.
    """

    partition: Partition
    placed: Assignment
    border: float = 0.0
    seconds: float = 0.0
    kernel_evaluations: int = 0

    @staticmethod
    def overlapping(partition: Partition, placed: Assignment, overlap: float) -> LevelPartition:
        """Create a partition with about `overlap` clusters per row on average.

        Prediction blends two clusters for rows within the median distance to a boundary, or
        within `border` if that is smaller.
        """
        if overlap == 1 or placed.second is None:
            return LevelPartition(partition, placed)
        second, distance = placed.boundaries
        has_border = second >= 0
        if not has_border.any():
            return LevelPartition(partition, placed)
        wanted = min(round((overlap - 1.0) * len(has_border)), int(np.count_nonzero(has_border)))
        distances = distance[has_border]
        last, middle = max(wanted, 1) - 1, (len(distances) - 1) // 2
        distances = np.partition(distances, [last, middle])
        border = np.nextafter(distances[last], np.inf)
        blend = min(border, distances[middle])
        return LevelPartition(replace(partition, blend=float(blend)), placed, float(border))

    @property
    def n_clusters(self) -> int:
        return self.partition.n_clusters

    @property
    def cluster(self) -> np.ndarray:
        """The nearest cluster of every row."""
        return self.placed.nearest

    @cached_property
    def is_in_two(self) -> np.ndarray:
        if self.border == 0:
            return np.zeros(len(self.cluster), bool)
        return self.placed.boundaries[1] < self.border

    def clustered(self, formulation: Formulation) -> ClusteredFormulation:
        """Return the formulation with one variable per row and cluster of the row."""
        problem = formulation.problem
        if self.border == 0:
            every = np.arange(problem.size)
            return ClusteredFormulation(
                formulation, self.cluster[problem.rows], every, np.zeros(problem.size, bool)
            )
        copied = np.flatnonzero(self.is_in_two[problem.rows])
        number = formulation.problem_index[copied]
        # the copies of each problem follow its original variables
        origin = np.insert(np.arange(problem.size), formulation.start[number + 1], copied)
        is_copy = np.insert(np.zeros(problem.size, bool), formulation.start[number + 1], True)
        counts = np.bincount(number, minlength=formulation.n_problems)
        rows = problem.rows[origin]
        cluster = self.placed.nearest[rows]
        cluster[is_copy] = self.placed.boundaries[0][rows[is_copy]]
        whole = replace(
            formulation,
            problem=_chosen(problem, origin),
            start=formulation.start + np.concatenate(([0], np.cumsum(counts))),
            alpha=np.where(is_copy, 0.0, formulation.alpha[origin]),
        )
        return ClusteredFormulation(whole, cluster, origin, is_copy)


@dataclass(frozen=True, eq=False)
class ClusteredFormulation:
    """A formulation with each variable in one cluster.

    Attributes
    ----------
    formulation : the formulation, copies of variables included.
    cluster : int32, cluster of each variable.
    origin : index of the variable in the original formulation.
    is_copy : whether the variable is in the second-nearest cluster of its row.
    """

    formulation: Formulation
    cluster: np.ndarray
    origin: np.ndarray
    is_copy: np.ndarray


def _chosen(problem: BoxQP, variables: np.ndarray) -> BoxQP:
    return replace(problem.part(variables), row=problem.rows[variables].astype(np.int32))
