"""The clusters of the levels of a run: a tree, or each level from a sample of its own."""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.solving.division import Division
from dcsvm.solving.engine import new_tree
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.solver import FormulationSolver


class Levels:
    """Finds the clusters of prepared rows. Those of the `tree` (None before the first) look at no
    solution: runs over the same rows may share it."""

    def __init__(self, prepared: Prepared, tree: Tree | None = None):
        self.options, self.plan = prepared.options, prepared.plan
        self.engine, self.locality = prepared.engine, prepared.locality
        self.tree = prepared.tree if tree is None else tree
        self.seconds_alone = 0.0

    def grow(self, level: int, stop: _core.Stop) -> Tree:
        """Find the clusters of the tree up to this level. Raises Stopped."""
        if self.tree is None:
            self.tree = self._new_tree()
        self.plan.grow(self.tree, level, self.options, stop)
        return self.tree

    def divided(self, level: int, solver: FormulationSolver) -> Division:
        """Divide the rows of a solver into the clusters of a level. Raises Stopped."""
        overlap = self.options.early_overlap
        if level != self.plan.early_level and level not in self.plan.choices:
            overlap = 1.0
        if self.plan.is_alone(level, self.options):
            tree, n_levels = self._found_alone(level, solver, second=overlap > 1), 1
        else:
            tree, n_levels = self.grow(level, solver.control.stop), level
        return Division.overlapping(tree.partition(n_levels), tree.placed[n_levels], overlap)

    def seconds(self, level: int) -> float:
        """What finding the clusters of a level took, in a tree the step to it from the next coarser
        level of the plan."""
        if self.plan.is_alone(level, self.options):
            return self.seconds_alone
        coarser = max((one for one in self.plan.levels if one < level), default=0)
        return sum(self.tree.seconds[coarser + 1 : level + 1])

    def _new_tree(self) -> Tree:
        group = self.locality.group if self.locality.n_groups > 1 else None
        return new_tree(self.engine, self.options, self.locality.order, group)

    def _found_alone(self, level: int, solver: FormulationSolver, *, second: bool) -> Tree:
        """A level that is found from a sample of all rows, or of the support vectors of the level
        below (the paper's adaptive clustering, Theorem 3), which the state keeps. Raises
        Stopped."""
        tree, state = self._new_tree(), solver.state
        n_clusters = self.plan.branching**level
        if state.sample is None:
            support = np.unique(solver.problem.rows[np.flatnonzero(solver.alpha)])
            is_adaptive = self.options.clustering == "adaptive" and len(support) > 0
            state.sample = tree.sample(n_clusters, support if is_adaptive else None, level)
        tree.grow_alone(n_clusters, state.sample, solver.control.stop, second=second)
        self.seconds_alone = tree.seconds[1]
        return tree
