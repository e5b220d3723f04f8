"""The clusters of a run: a tree, whose levels look at no solution, or each level alone."""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.partition import MOST_PARTS
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.engine import Engine
from dcsvm.solving.plan import Plan


def new_tree(
    engine: Engine, options: TrainOptions, order: np.ndarray, group: np.ndarray | None = None
) -> Tree:
    """A tree without levels, of all rows of an engine, which are in an `order` of their own and in
    each `group` int (n,)."""
    kernel = Kernel("linear") if options.clustering == "kmeans" else engine.data.kernel
    return engine.tree(kernel, options, order, group)


def is_alone(level: int, plan: Plan, options: TrainOptions) -> bool:
    """Whether a level is found alone. Early models by themselves have the tree: many small clusters
    are found once; and so have more clusters than are told apart by one product."""
    is_exact = not options.early and options.clustering in ("adaptive", "random")
    return is_exact and plan.branching**level <= MOST_PARTS


def grow(
    tree: Tree, level: int, plan: Plan, options: TrainOptions, stop: _core.Stop | None = None
) -> None:
    """Find the clusters of all levels up to this one. Raises Stopped."""
    finest_early = max(plan.choices, default=plan.early_level or 0)
    while len(tree.forks) < level:
        next_level = len(tree.forks) + 1
        has_second = options.early_overlap > 1 and next_level <= finest_early
        tree.grow(plan.branching**next_level, stop, second=has_second)
