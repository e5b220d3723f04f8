"""Which levels run, decided from counts before anything runs; no clock is looked at. Their clusters
are a tree, whose levels look at no solution, or each level is found alone.

A Plan is a plain value; training carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass

from dcsvm import _core
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.partition import MOST_PARTS
from dcsvm.problem.options import TrainOptions

# rows; by default no level is finer. 500 cost 1.1 times, 2000 take 0.8 to 1.0 of the time on 20,000
# to 50,000 rows: docs/benchmark.md, Constants
DEFAULT_MEAN_CLUSTER = 1000
LEVEL_STEP = 2  # between the default levels from the early one to the finest; 1 and 4 cost the same
# the coarsest by default. Level l costs about 3.5 |S_l| n / branching^l kernel values, one with 4
# clusters nearly as many as the whole problem needs: docs/how-it-works.md has what it saves
COARSEST = 2
# Early models of at most so many rows have a level without a search, which would cost more than the
# exact model: the finest of 1 and 2 that has clusters of so many rows on average.
SEARCHED_FROM, UNSEARCHED_MEAN_CLUSTER = 50_001, 3000
SMALLEST_MEAN_CLUSTER = 100  # rows; a finer level asked for is skipped


@dataclass(frozen=True)
class Plan:
    """The levels to run, from the finest; `skipped` ones were asked for but would be too small.

    `early_level` is one of `levels`, or None when there are none. Of `choices`, from the finest,
    training finds the early level instead, and runs no other.
    """

    levels: tuple[int, ...]
    skipped: tuple[int, ...]
    early_level: int | None
    branching: int
    choices: tuple[int, ...] = ()

    @property
    def deepest(self) -> int:
        """The finest level that may be run, 0 for none."""
        return max((*self.levels, *self.choices), default=0)

    def is_alone(self, level: int, options: TrainOptions) -> bool:
        """Whether a level is found alone, not in a tree. Early models by themselves have the tree:
        many small clusters are found once; and so have more clusters than are told apart by one
        product."""
        is_exact = not options.early and options.clustering in ("adaptive", "random")
        return is_exact and self.branching**level <= MOST_PARTS

    def grow(
        self, tree: Tree, level: int, options: TrainOptions, stop: _core.Stop | None = None
    ) -> None:
        """Find the clusters of all levels of a tree up to this one. Raises Stopped."""
        finest_early = max(self.choices, default=self.early_level or 0)
        for next_level in range(len(tree.forks) + 1, level + 1):
            has_second = options.early_overlap > 1 and next_level <= finest_early
            tree.grow(self.branching**next_level, stop, second=has_second)

    def describe(self) -> str:
        if self.choices:
            coarsest, finest = (self.branching ** self.choices[end] for end in (-1, 0))
            text = f"an early level of {coarsest} to {finest} clusters"
        elif not self.levels:
            text = "no levels"
        else:
            counts = ", ".join(str(self.branching**level) for level in self.levels)
            text = f"levels of {counts} clusters (early level {self.early_level})"
        if self.skipped:
            names = ", ".join(map(str, self.skipped))
            text += f", level {names} skipped: fewer than {SMALLEST_MEAN_CLUSTER} rows a cluster"
        return text


def make_plan(n_samples: int, levels: int | None, branching: int, early_level: int | None) -> Plan:
    """Levels l..1 with branching**l clusters each; see the module constants for the rules.

    Without `levels` those run that pay: the early one, every second finer one and the coarsest.
    """
    if levels is None:
        deepest = _deepest(n_samples, branching, DEFAULT_MEAN_CLUSTER)
        if early_level is not None:
            finest = _deepest(n_samples, branching, SMALLEST_MEAN_CLUSTER)
            _check_exists(early_level, tuple(range(1, finest + 1)))
            deepest = max(deepest, early_level)
        wanted = deepest
    else:
        deepest = min(levels, _deepest(n_samples, branching, SMALLEST_MEAN_CLUSTER))
        wanted = levels
    kept = tuple(range(deepest, 0, -1))
    skipped = tuple(range(wanted, deepest, -1))
    if early_level is not None:
        _check_exists(early_level, kept)
    if early_level is None and kept:
        early_level = min(3, deepest)
    if levels is None and kept:
        coarsest = min(COARSEST, deepest)
        wanted_levels = {coarsest, *range(early_level, deepest + 1, LEVEL_STEP)}
        kept = tuple(level for level in kept if level in wanted_levels)
    return Plan(kept, skipped, early_level, branching)


def early_plan(
    n_samples: int, levels: int | None, branching: int, early_level: int | str | None
) -> Plan:
    """Of early models alone: the level that is asked for, that of few rows, or those to find it
    among, which are all that are not too fine."""
    deepest = _deepest(n_samples, branching, SMALLEST_MEAN_CLUSTER)
    wanted = deepest if levels is None else levels
    kept = tuple(range(min(deepest, wanted), 0, -1))
    if early_level is None and levels is None and kept and n_samples < SEARCHED_FROM:
        early_level = 2 if n_samples >= branching**2 * UNSEARCHED_MEAN_CLUSTER else 1
    if not isinstance(early_level, int):
        return Plan((), tuple(range(wanted, deepest, -1)), None, branching, kept)
    _check_exists(early_level, kept)
    return Plan((early_level,), (), early_level, branching)


def _check_exists(early_level: int, levels: tuple[int, ...]) -> None:
    if early_level not in levels:
        known = f"levels are 1 to {max(levels)}" if levels else "there are no levels"
        raise ValueError(f"early level {early_level} does not exist: {known}")


def _deepest(n_samples: int, branching: int, mean_cluster: int) -> int:
    level = 0
    while branching ** (level + 1) * mean_cluster <= n_samples:
        level += 1
    return level
