"""The tree of clusters of a run, whose levels look at no solution."""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.kernels import Kernel
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.plan import Plan
from dcsvm.solving.work import Work


def new_tree(
    work: Work, options: TrainOptions, order: np.ndarray, group: np.ndarray | None = None
) -> Tree:
    """A tree without levels, of all rows that are worked on, which are in an `order` of their own
    and in each `group` int (n,)."""
    kernel = work.data.kernel if options.clustering == "kernel" else Kernel("linear")
    how = {"sample_size": options.sample, "seed": options.seed}
    return work.tree(kernel, **how, order=order, group=group)


def grow(
    tree: Tree, level: int, plan: Plan, options: TrainOptions, stop: _core.Stop | None = None
) -> None:
    """Find the clusters of all levels up to this one. Raises Stopped."""
    finest_early = max(plan.choices, default=plan.early_level or 0)
    while len(tree.forks) < level:
        next_level = len(tree.forks) + 1
        has_second = options.early_overlap > 1 and next_level <= finest_early
        tree.grow(plan.branching**next_level, stop, second=has_second)
