"""Which level makes the best early model: found while training, from some of the clusters.

From the finest level up, a level and the next coarser one are compared on the same rows, those of
random clusters of the coarser one: both are solved there, and judged by the losses of the rows left
out. The coarser one is taken where it loses less, and then compared in its turn; where it does not,
the next is still looked at if that costs next to nothing. What was solved of the level that is
taken in the end is not solved again. What it is worth is told by random rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.model.parts import ModelParts
from dcsvm.model.predict import predictions
from dcsvm.problem.task import Task
from dcsvm.solving.level_solver import LevelSolver
from dcsvm.solving.report import EarlyChoice
from dcsvm.training.left_out import MOST_EXACT, left_out_losses, n_spans

EARLY_TOLERANCE = 1e-3  # of early models: a promise, that of the default -e
ENOUGH_ROWS = 50_000  # to compare two levels by
TOLD_ROWS = 20_000  # that tell what the level is worth in the end, from all of its clusters,
TOLD_EXACT = 1024  # by spans of so many support vectors
MOST_SPANS = 8_000  # of either: of more rows some are taken
MOST_VALUES = 2**21  # decision values of either, one for each row and pair of classes
# what comparing may cost: kernel values, or this part of what solving all of the finer level costs
FREE_VALUES, SHARE = 2e8, 0.4
LARGEST_SHARE = 1.5  # the same where one cluster costs more
# what a coarser level has to gain where it costs more kernel values than these, about a second:
# rows, or a part of the squared error, and standard errors of the gain
CHEAP_VALUES = 1e9
DEAR = 0.3  # of the squared number of variables: costs more than the exact model may
WORTH_ROWS, WORTH_ERROR, CERTAIN = 0.0025, 0.01, 0.5


@dataclass(frozen=True, eq=False)
class TestRows:
    """Rows to judge early models by, and their labels or targets (n,)."""

    rows: Rows
    labels: np.ndarray


def check_test_rows(test: TestRows, task: Task) -> None:
    """Raise ValueError for rows that cannot judge the models of a task."""
    if len(test.labels) == 0:
        raise ValueError("there are no test rows")
    if task.is_classification:
        if not np.isin(test.labels, task.labels).any():
            raise ValueError("no test row has a label of the training rows")
    elif test.labels.dtype.kind == "U" or not np.isfinite(test.labels).all():
        raise ValueError("the targets of test rows must be finite numbers")


@dataclass(frozen=True)
class Compared:
    """A level on the rows of some clusters: the losses of the rows left out, and their weights."""

    losses: np.ndarray
    weights: np.ndarray

    @property
    def mean(self) -> float:
        return float(np.average(self.losses, weights=self.weights))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        total = self.weights.sum()
        squared = np.sum((self.weights * (self.losses - self.mean)) ** 2)
        return float(np.sqrt(squared) / total) if total > 0 else 0.0


def best_level(
    levels: Sequence[int],
    begin: Callable[[int], LevelSolver],
    take: Callable[[LevelSolver], None],
    seed: int,
) -> EarlyChoice:
    """The best of some levels, from the finest, by what `begin` makes of each; `take` is given the
    best so far, and others are let go. What it is worth is not told yet. Raises Stopped."""
    rng = np.random.default_rng(seed)
    finer, last = begin(levels[0]), levels[0]
    is_wrong = finer.solver.task.is_classification
    take(finer)
    for level in levels[1:]:
        coarser = begin(level)
        cost = float(coarser.costs.sum())
        if cost > max(CHEAP_VALUES, DEAR * coarser.whole.problem.size**2):
            break
        region = _region(coarser, finer, rng)
        if region is None:
            break
        last, rows = level, np.flatnonzero(region[coarser.division.cluster])
        for one in (finer, coarser):  # the clusters that predict these rows first
            every = np.arange(one.division.n_clusters)
            one.solve_clusters(EARLY_TOLERANCE, np.isin(every, one.division.cluster[rows]))
        rows = _affordable(rows, (finer, coarser), rng)
        compared, other = (_compared(one, rows) for one in (finer, coarser))
        if is_worth(compared, other, is_wrong, is_cheap=cost <= CHEAP_VALUES):
            finer = coarser
            take(finer)
        elif cost > FREE_VALUES:
            break
        del coarser  # before there is another
    return EarlyChoice(finer.level, levels[0], last, None, None, 0, is_wrong)


def told_by_random_rows(choice: EarlyChoice, level: LevelSolver, seed: int) -> EarlyChoice:
    """A choice with what its level is worth, of which all clusters are solved: clusters differ, and
    rows of some of them would not tell. Raises Stopped."""
    n_rows = len(level.division.cluster)
    rng = np.random.default_rng(seed)
    n_told = min(n_rows, TOLD_ROWS, MOST_VALUES // level.formulation.n_problems)
    rows = level.solver.prepared.row_map.place[rng.choice(n_rows, n_told, replace=False)]
    rows = _affordable(np.sort(rows), (level,), rng)
    told = _compared(level, rows, TOLD_EXACT)
    return replace(choice, loss=told.mean, error=told.error, n_rows=len(rows))


def best_on_test(
    levels: Sequence[int],
    begin: Callable[[int], LevelSolver],
    take: Callable[[LevelSolver], None],
    test: TestRows,
) -> EarlyChoice:
    """The same by test rows, with what it is worth: levels are solved as long as the coarser one is
    better. Raises Stopped."""
    best = None
    for level in levels:
        solving = begin(level)
        solving.solve_clusters(EARLY_TOLERANCE)
        losses = _losses_of(solving, test)
        found = Compared(losses, np.ones(len(losses)))
        if best is not None and not found.mean < best[1].mean:
            break
        best = level, found
        take(solving)
        is_wrong = solving.solver.task.is_classification
        del solving
    chosen, found = best
    return EarlyChoice(
        chosen, levels[0], level, found.mean, found.error, len(found.losses),
        is_wrong, is_test=True,
    )  # fmt: skip


def _losses_of(solving: LevelSolver, test: TestRows) -> np.ndarray:
    """The losses of test rows by the early model of a level."""
    early, task = solving.model()[0], solving.solver.task
    early = replace(early, rows=early.rows.part(slice(0, early.rows.n_samples)))
    parts = ModelParts(solving.solver.data.kernel, task.labels, None, early, task.svm_type)
    found = predictions(parts, test.rows, "early", solving.solver.threads)
    if task.is_classification:
        return (found != test.labels).astype(np.float64)
    return (found - test.labels) ** 2


def is_worth(finer: Compared, coarser: Compared, is_wrong: bool, *, is_cheap: bool) -> bool:
    """Whether a coarser level gains enough."""
    gain = Compared(finer.losses - coarser.losses, finer.weights)
    if is_cheap:
        return gain.mean > 0
    least = WORTH_ROWS if is_wrong else WORTH_ERROR * finer.mean
    return gain.mean > max(least, CERTAIN * gain.error)


def _region(level: LevelSolver, finer: LevelSolver, rng) -> np.ndarray | None:
    """Random clusters of a level to compare it on with a finer one, bool (n_clusters,): as many as
    have enough rows and do not cost too much; None where one would."""
    costs, cost_of_finer = level.costs, float(finer.costs.sum())
    sizes = np.bincount(level.division.cluster, minlength=len(costs))
    order = rng.permutation(len(costs))
    order = order[sizes[order] > 0]
    rows, cost = np.cumsum(sizes[order]), np.cumsum(costs[order])
    enough = min(ENOUGH_ROWS, MOST_VALUES // level.formulation.n_problems)
    n_chosen = int(np.searchsorted(rows, enough)) + 1
    most = max(SHARE * cost_of_finer, FREE_VALUES)
    n_chosen = min(n_chosen, int(np.searchsorted(cost, most, side="right")))
    if n_chosen == 0:
        if cost[0] > LARGEST_SHARE * cost_of_finer:
            return None
        n_chosen = 1
    region = np.zeros(len(costs), bool)
    region[order[:n_chosen]] = True
    return region


def _affordable(rows: np.ndarray, levels: Sequence[LevelSolver], rng) -> np.ndarray:
    """As many random ones of the rows as need not too many spans in any of the levels; the same in
    whatever order rows are."""
    most = max(n_spans(level, rows) for level in levels)
    if most <= MOST_SPANS:
        return rows
    n_rows = max(len(rows) * MOST_SPANS // most, 1)
    row_map = levels[0].solver.prepared.row_map
    chosen = rng.choice(np.sort(row_map.order[rows]), n_rows, replace=False)
    return np.sort(row_map.place[chosen])


def _compared(level: LevelSolver, rows: np.ndarray, n_exact: int = MOST_EXACT) -> Compared:
    """The losses of rows whose clusters are solved. Raises Stopped."""
    losses = left_out_losses(level, rows, n_exact)
    return Compared(losses, level.solver.prepared.sample_weight[rows])
