"""Search for the level with the best early model, on part of the clusters.

From the finest level up, a level is compared with the next coarser one. Both are solved on the rows
of random clusters of the coarser level, and their leave-one-out losses on these rows are compared.
The coarser level is chosen if it gains enough, and is then compared with the next one. After a
failure the search continues only if the next level is cheap. Clusters of the chosen level that are
solved already are not solved again. Its loss is then estimated on random rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dcsvm.data.rows import Rows
from dcsvm.model.parts import ModelParts
from dcsvm.model.predict import predictions
from dcsvm.problem.task import Task
from dcsvm.solving.level_solver import LevelSolver
from dcsvm.solving.report import ERROR_RATE, SQUARED_ERROR, EarlyChoice
from dcsvm.training.leave_one_out import MAX_EXACT, loo_losses, n_spans

EARLY_TOLERANCE = 1e-3  # of early models, as guaranteed by the default -e
ENOUGH_ROWS = 50_000  # rows that two levels are compared on
# The loss of the chosen level is estimated on this many rows of all clusters, with exact spans for
# this many support vectors of a cluster.
TOLD_ROWS = 20_000
TOLD_EXACT = 1024
MAX_SPANS = 8_000  # spans computed for one comparison or estimate; random rows are dropped
MAX_VALUES = 2**21  # decision values, rows times pairs of classes, of one comparison or estimate
# A comparison may cost FREE_VALUES kernel values, or SHARE of the cost of the finer level; up to
# MAX_SHARE if a single cluster costs more.
FREE_VALUES, SHARE = 2e8, 0.4
MAX_SHARE = 1.5
# A coarser level that costs more than CHEAP_VALUES kernel values (about a second) must gain
# ROWS_THRESHOLD of the rows or ERROR_THRESHOLD of the squared error, and CERTAIN standard errors.
# Levels that cost DEAR times the squared number of variables are skipped: then the exact model is
# cheaper.
CHEAP_VALUES = 1e9
DEAR = 0.3
ROWS_THRESHOLD, ERROR_THRESHOLD, CERTAIN = 0.0025, 0.01, 0.5


@dataclass(frozen=True, eq=False)
class TestRows:
    """Test rows, with labels or targets (n,), that judge early models."""

    rows: Rows
    labels: np.ndarray


def check_test_rows(test: TestRows, task: Task) -> None:
    """Check that test rows fit a task. Raises ValueError."""
    if len(test.labels) == 0:
        raise ValueError("there are no test rows")
    if task.is_classification:
        if not np.isin(test.labels, task.labels).any():
            raise ValueError("no test row has a label of the training rows")
    elif test.labels.dtype.kind == "U" or not np.isfinite(test.labels).all():
        raise ValueError("the targets of test rows must be finite numbers")


@dataclass(frozen=True)
class LossSample:
    """Sample of the losses of a level, float64 (n,), with the weights of the rows."""

    losses: np.ndarray
    weights: np.ndarray

    @property
    def mean(self) -> float:
        return float(np.average(self.losses, weights=self.weights))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        total = self.weights.sum()
        squared = np.sum((self.weights * (self.losses - self.mean)) ** 2)
        return float(np.sqrt(squared) / total) if total > 0 else 0.0


def best_level(
    levels: Sequence[int],
    begin: Callable[[int], LevelSolver],
    keep: Callable[[LevelSolver], None],
    seed: int,
) -> EarlyChoice:
    """Search levels, the finest first, by leave-one-out losses.

    `begin` makes the solver of a level, `keep` is called with the best one so far; others are
    released. The choice has no loss yet. Raises Stopped.
    """
    rng = np.random.default_rng(seed)
    finer, coarsest = begin(levels[0]), levels[0]
    metric = metric_of(finer.solver.task)
    keep(finer)
    for level in levels[1:]:
        coarser = begin(level)
        cost = float(coarser.costs.sum())
        if cost > max(CHEAP_VALUES, DEAR * coarser.whole.problem.size**2):
            break
        region = _region(coarser, finer, rng)
        if region is None:
            break
        coarsest, rows = level, np.flatnonzero(region[coarser.division.cluster])
        for solver in (finer, coarser):  # the nearest clusters of these rows first
            clusters = np.arange(solver.division.n_clusters)
            solver.solve_clusters(EARLY_TOLERANCE, np.isin(clusters, solver.division.cluster[rows]))
        rows = _affordable(rows, (finer, coarser), rng)
        losses, coarser_losses = (_compared(solver, rows) for solver in (finer, coarser))
        if improves_enough(losses, coarser_losses, metric, is_cheap=cost <= CHEAP_VALUES):
            finer = coarser
            keep(finer)
        elif cost > FREE_VALUES:
            break
        del coarser, solver  # frees its memory before the next one is made
    return EarlyChoice(finer.level, levels[0], coarsest, None, None, 0, metric)


def estimate_loss(choice: EarlyChoice, level: LevelSolver, seed: int) -> EarlyChoice:
    """Estimate the loss of the chosen level, with all clusters solved, on random rows.

    The rows are drawn from all clusters because the losses of clusters differ. Raises Stopped.
    """
    n_rows = len(level.division.cluster)
    rng = np.random.default_rng(seed)
    n_sampled = min(n_rows, TOLD_ROWS, MAX_VALUES // level.formulation.n_problems)
    rows = level.solver.prepared.row_map.row_of_variable[
        rng.choice(n_rows, n_sampled, replace=False)
    ]
    rows = _affordable(np.sort(rows), (level,), rng)
    losses = _compared(level, rows, TOLD_EXACT)
    return replace(choice, loss=losses.mean, standard_error=losses.error, n_rows=len(rows))


def best_on_test(
    levels: Sequence[int],
    begin: Callable[[int], LevelSolver],
    keep: Callable[[LevelSolver], None],
    test: TestRows,
) -> EarlyChoice:
    """Search levels as `best_level` by test rows, until the next coarser one is not better.

    The choice has its loss on the test rows. Raises Stopped.
    """
    chosen, best = levels[0], None
    for level in levels:
        solver = begin(level)
        solver.solve_clusters(EARLY_TOLERANCE)
        test_losses = _test_losses(solver, test)
        losses = LossSample(test_losses, np.ones(len(test_losses)))
        if best is not None and not losses.mean < best.mean:
            break
        chosen, best = level, losses
        keep(solver)
        metric = metric_of(solver.solver.task)
        del solver
    assert best is not None
    return EarlyChoice(
        chosen, levels[0], level, best.mean, best.error, len(best.losses), metric, on_test_rows=True
    )


def _test_losses(level: LevelSolver, test: TestRows) -> np.ndarray:
    """Compute the losses of test rows by the early model of a level."""
    early, task = level.model()[0], level.solver.task
    early = replace(early, rows=early.rows.part(slice(0, early.rows.n_samples)))
    parts = ModelParts(level.solver.data.kernel, task.labels, None, early, task.svm_type)
    predicted = predictions(parts, test.rows, "early", level.solver.threads)
    if task.is_classification:
        return (predicted != test.labels).astype(np.float64)
    return (predicted - test.labels) ** 2


def metric_of(task: Task) -> str:
    return ERROR_RATE if task.is_classification else SQUARED_ERROR


def improves_enough(finer: LossSample, coarser: LossSample, metric: str, *, is_cheap: bool) -> bool:
    """Decide whether a coarser level gains enough."""
    gain = LossSample(finer.losses - coarser.losses, finer.weights)
    if is_cheap:
        return gain.mean > 0
    least = ROWS_THRESHOLD if metric == ERROR_RATE else ERROR_THRESHOLD * finer.mean
    return gain.mean > max(least, CERTAIN * gain.error)


def _region(level: LevelSolver, finer: LevelSolver, rng: np.random.Generator) -> np.ndarray | None:
    """Choose random clusters of a level for its comparison with a finer one.

    ENOUGH_ROWS and the cost limit their number. Returns bool (n_clusters,), or None if a single
    cluster costs too much.
    """
    costs, cost_of_finer = level.costs, float(finer.costs.sum())
    sizes = np.bincount(level.division.cluster, minlength=len(costs))
    order = rng.permutation(len(costs))
    order = order[sizes[order] > 0]
    rows, cost = np.cumsum(sizes[order]), np.cumsum(costs[order])
    enough = min(ENOUGH_ROWS, MAX_VALUES // level.formulation.n_problems)
    n_chosen = int(np.searchsorted(rows, enough)) + 1
    most = max(SHARE * cost_of_finer, FREE_VALUES)
    n_chosen = min(n_chosen, int(np.searchsorted(cost, most, side="right")))
    if n_chosen == 0:
        if cost[0] > MAX_SHARE * cost_of_finer:
            return None
        n_chosen = 1
    region = np.zeros(len(costs), bool)
    region[order[:n_chosen]] = True
    return region


def _affordable(
    rows: np.ndarray, levels: Sequence[LevelSolver], rng: np.random.Generator
) -> np.ndarray:
    """Sample rows so that no level needs more than MAX_SPANS spans for them.

    The sample does not depend on the order of the rows.
    """
    most = max(n_spans(level, rows) for level in levels)
    if most <= MAX_SPANS:
        return rows
    n_rows = max(len(rows) * MAX_SPANS // most, 1)
    row_map = levels[0].solver.prepared.row_map
    chosen = rng.choice(np.sort(row_map.order[rows]), n_rows, replace=False)
    return np.sort(row_map.row_of_variable[chosen])


def _compared(level: LevelSolver, rows: np.ndarray, n_exact: int = MAX_EXACT) -> LossSample:
    """Compute the leave-one-out losses of rows, with clusters that are solved. Raises Stopped."""
    losses = loo_losses(level, rows, n_exact)
    return LossSample(losses, level.solver.prepared.sample_weight[rows])
