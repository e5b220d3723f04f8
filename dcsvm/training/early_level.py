"""Search for the level with the best early model, using part of the clusters.

The search starts at the finest level and compares the best level so far with the next coarser one.
Both are solved on the rows of random clusters of the coarser level, and their leave-one-out losses
on these rows are compared. If the coarser level reduces the loss enough, it becomes the best level.
If not, the search continues only if that level was cheap. The solved clusters of the chosen level
are kept. The loss of the chosen level is then estimated on random rows.

Leave-one-out losses are estimated by the span rule, without solving again. Removing a support
vector changes its own decision value from f to f - alpha d^2, where d is its distance to the span
of the other support vectors (csrc/solver/span.cc). Rows with alpha = 0 keep their decision values.
Of a row with duplicates, only one copy is removed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isqrt

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import distinct, group_order, group_sizes, slices
from dcsvm.data.dataset import Dataset
from dcsvm.kernel.kernel_rows import KernelEvalOptions, weighted_sums
from dcsvm.model.metrics import DEFINITIONS
from dcsvm.model.parts import ModelParts, most_voted
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.duplicates import find_duplicates
from dcsvm.problem.formulation import Task, pairs_of
from dcsvm.problem.option_table import AUTO, checked_metric
from dcsvm.problem.options import TrainOptions
from dcsvm.training.certificate import Subproblems
from dcsvm.training.extraction import early_model
from dcsvm.training.memory import early_plan
from dcsvm.training.report import ERROR_RATE, SQUARED_ERROR, EarlyChoice
from dcsvm.training.solver import LevelSolver

BATCH_VALUES = 2**22  # decision values (rows times class pairs)
# Exact spans use at most MAX_EXACT free support vectors of a cluster. If memory is short, this
# limit can fall to MIN_EXACT. Each pair of these vectors takes EXACT_BYTES bytes per thread.
MIN_EXACT, MAX_EXACT = 512, 4096
EXACT_BYTES = 12


def loo_losses(level: LevelSolver, rows: np.ndarray, n_exact: int = MAX_EXACT) -> np.ndarray:
    """Compute leave-one-out losses of rows, int64 (m,), whose nearest clusters are solved.

    The loss is 1 for a wrong class and 0 for the right one, or the squared error of a regression.
    With more than `n_exact` free support vectors in a cluster, losses may be too high. Returns
    float64 (m,). Raises Stopped.
    """
    losses = np.empty(len(rows))
    order = group_order(level.division.cluster[rows])  # spans are computed cluster by cluster
    for batch in slices(len(rows), BATCH_VALUES // level.formulation.n_problems):
        losses[order[batch]] = _losses(level, rows[order[batch]], n_exact)
    return losses


def _losses(level: LevelSolver, rows: np.ndarray, n_exact: int) -> np.ndarray:
    values, truth = loo_values(level, rows, n_exact), level.solver.prepared.targets[rows]
    task = level.solver.task
    if not task.is_classification:
        return (truth - values[:, 0]) ** 2
    wrong = _loses_own_pair(values, truth, task.n_classes)
    if task.n_classes > 2:
        doubtful = np.flatnonzero(wrong)
        _add_other_pairs(level, rows[doubtful], values, doubtful)
        voted = most_voted(values[doubtful], task.n_classes)
        wrong[doubtful] = voted != truth[doubtful]
    return wrong.astype(np.float64)


def loo_values(level: LevelSolver, rows: np.ndarray, n_exact: int = MAX_EXACT) -> np.ndarray:
    """Compute leave-one-out decision values of rows for class pairs with their own class.

    Returns float64 (m, n_pairs), nan for the other pairs. Raises Stopped.
    """
    # the variables of the rows, and how much their decision values change without the row
    variables, position = _variables_of_rows(level, rows)
    values, alpha_lost = _values_with_all_rows(level, variables), _alpha_lost(level, variables)
    doubtful = variables[_needs_span(level, variables, values, alpha_lost)]
    change = alpha_lost * _spans(level, doubtful, n_exact)[variables]
    # a cell for each row and class pair
    row = level.formulation.problem.rows[variables]
    is_copy = level.clustered.is_copy[variables]
    n_problems = level.formulation.n_problems
    cell = position[row] * n_problems + level.formulation.problem_index[variables]
    cells = _fill_cells(values, change, cell, ~is_copy, len(rows) * n_problems)
    if is_copy.any():  # rows near a boundary blend the values of two clusters
        other = _fill_cells(values, change, cell, is_copy, len(cells))
        both = distinct(cell[is_copy])
        placed = level.division.placed.take(rows[both // n_problems])
        share = placed.shares(level.division.partition.blend)
        cells[both] = share * cells[both] + (1.0 - share) * other[both]
    return cells.reshape(len(rows), n_problems)


def n_spans(level: LevelSolver, rows: np.ndarray) -> int:
    """Count the spans required for the losses of rows; spans take nearly all the time."""
    variables, _ = _variables_of_rows(level, rows)
    values, alpha_lost = _values_with_all_rows(level, variables), _alpha_lost(level, variables)
    return int(np.count_nonzero(_needs_span(level, variables, values, alpha_lost)))


def _variables_of_rows(level: LevelSolver, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the variables of given rows in solved clusters, int64 (m,).

    Returns also the index of each row among the given ones, int64 (n_rows,), -1 for other rows.
    """
    position = np.full(level.solver.data.rows.n_samples, -1, np.int64)
    position[rows] = np.arange(len(rows))
    is_given = position[level.formulation.problem.rows] >= 0
    return np.flatnonzero(is_given & level.is_solved[level.cluster]), position


def _values_with_all_rows(level: LevelSolver, variables: np.ndarray) -> np.ndarray:
    """Return decision values of the rows of variables, float64 (m,), before any row is removed."""
    formulation = level.formulation
    values = level.solver.gradient[variables] + formulation.problem.linear[variables]
    values -= level.offsets()[level.cluster[variables], formulation.problem_index[variables]]
    return values


def _needs_span(
    level: LevelSolver, variables: np.ndarray, values: np.ndarray, alpha_lost: np.ndarray
) -> np.ndarray:
    """Return whether the loss of the row of each variable may depend on its span, bool (m,)."""
    is_doubtful = alpha_lost != 0
    if level.solver.task.is_classification and level.solver.data.kernel.type.is_of_distance:
        # A squared span is at most K(x, x) = 1, or 2 with an equality constraint. For a row in two
        # clusters, the value of one cluster alone does not decide the class.
        longest = 2.0 if level.formulation.has_constraints else 1.0
        may_turn = values * np.sign(alpha_lost) <= longest * np.abs(alpha_lost)
        rows = level.formulation.problem.rows[variables]
        is_doubtful &= may_turn | level.division.is_in_two[rows]
    return is_doubtful


def _fill_cells(
    values: np.ndarray, change: np.ndarray, cell: np.ndarray, mask: np.ndarray, size: int
) -> np.ndarray:
    """Write `values - change` of the masked variables to their cells, nan to other cells.

    The two variables of a regression row share a cell. They have the same value, and at most one of
    them has a change.
    """
    cells = np.full(size, np.nan)
    cells[cell[mask]] = values[mask]
    np.subtract.at(cells, cell[mask], change[mask])
    return cells


def _spans(level: LevelSolver, doubtful: np.ndarray, n_exact: int) -> np.ndarray:
    """Compute the squared spans of variables, 0 for others; (n_variables,). Raises Stopped."""
    solver = level.solver
    if solver.control.stop.is_requested:
        raise _core.Stopped
    wanted = np.zeros(solver.problem.size, np.uint8)
    wanted[doubtful] = 1
    # only clusters with such variables take part
    has_any = np.zeros(len(level.is_solved), bool)
    has_any[level.cluster[doubtful]] = True
    support = np.flatnonzero(has_any[level.cluster] & (solver.alpha != 0))
    part, _ = level.parts(support)
    members = support[group_order(part)].astype(np.int32)
    sizes = group_sizes(part)[1]
    affordable = isqrt(solver.memory_bytes // (EXACT_BYTES * solver.threads))
    n_exact = min(max(affordable, MIN_EXACT), n_exact)
    parts = Subproblems.of_sizes(solver.problem, members, sizes)
    return solver.engine.spans(parts, solver.alpha, wanted, n_exact, solver.threads)


def _alpha_lost(level: LevelSolver, variables: np.ndarray) -> np.ndarray:
    """Compute the part of alpha lost when one input row of each variable is removed.

    The remaining duplicates take over as much of alpha as their bounds allow.
    """
    problem, alpha = level.formulation.problem, level.solver.alpha[variables]
    bound = np.maximum(problem.upper[variables], -problem.lower[variables])
    n_input_rows = level.solver.prepared.row_map.n_inputs_of_row[problem.rows[variables]]
    remaining = bound * (1.0 - 1.0 / n_input_rows)
    return np.sign(alpha) * np.maximum(np.abs(alpha) - remaining, 0.0)


def _loses_own_pair(values: np.ndarray, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Find rows whose own class loses against another class, bool (m,)."""
    lost = np.zeros(len(values), bool)
    for pair, (first, second) in enumerate(pairs_of(n_classes)):
        lost |= (classes == first) & ~(values[:, pair] > 0)
        lost |= (classes == second) & (values[:, pair] > 0)
    return lost


def _add_other_pairs(
    level: LevelSolver, rows: np.ndarray, values: np.ndarray, positions: np.ndarray
) -> None:
    """Write decision values of the class pairs without the row's own class, in place.

    The values of rows[i] go to values[positions[i]]. The nearest cluster of each row computes them.
    """
    solver = level.solver
    clusters, number = level.division.cluster[rows], level.formulation.problem_index
    support = np.flatnonzero((solver.alpha != 0) & level.is_solved[level.cluster])
    support = support[group_order(level.cluster[support])]
    ends = np.searchsorted(level.cluster[support], np.arange(level.division.n_clusters + 1))
    offsets, options = level.offsets(), KernelEvalOptions(stop=solver.control.stop)
    for c in distinct(clusters):
        own, members = np.flatnonzero(clusters == c), support[ends[c] : ends[c + 1]]
        others, _ = weighted_sums(
            solver.data, rows[own], solver.problem.rows[members], number[members],
            solver.alpha[members], values.shape[1], options,
        )  # fmt: skip
        others -= offsets[c]
        unknown = np.isnan(values[positions[own]])
        values[positions[own]] = np.where(unknown, others, values[positions[own]])


EARLY_TOLERANCE = 1e-3  # KKT tolerance of early levels; equals the default of -e
ENOUGH_ROWS = 50_000  # rows on which two levels are compared
# The loss of the chosen level is estimated on ESTIMATE_ROWS rows of all clusters. Spans are exact
# for up to ESTIMATE_EXACT free support vectors of a cluster.
ESTIMATE_ROWS = 20_000
ESTIMATE_EXACT = 1024
MAX_SPANS = 8_000  # spans of one comparison or estimate; random rows are dropped to meet it
MAX_VALUES = 2**21  # decision values (rows times class pairs) of one comparison or estimate
# A comparison may cost FREE_VALUES kernel values or SHARE of the cost of the finer level, whichever
# is more. If a single cluster costs more, the limit is MAX_SHARE of the cost of the finer level.
FREE_VALUES, SHARE = 2e8, 0.4
MAX_SHARE = 1.5
# If a coarser level costs more than CHEAP_VALUES kernel values (about a second), it must reduce the
# error rate by ROWS_THRESHOLD, or the squared error by the fraction ERROR_THRESHOLD. The reduction
# must also exceed CERTAIN standard errors. The search ends at a level that also costs more than
# DEAR times the squared number of variables, because the exact model is then cheaper.
CHEAP_VALUES = 1e9
DEAR = 0.3
ROWS_THRESHOLD, ERROR_THRESHOLD, CERTAIN = 0.0025, 0.01, 0.5


def check_test_rows(test: Dataset, task: Task) -> None:
    """Check that test rows fit a task. Raises ValueError."""
    if len(test.labels) == 0:
        raise ValueError("there are no test rows")
    if task.is_classification:
        if not np.isin(test.labels, task.labels).any():
            raise ValueError("no test row has a label of the training rows")
    elif test.labels.dtype.kind == "U" or not np.isfinite(test.labels).all():
        raise ValueError("the targets of test rows must be finite numbers")


def tolerance_of_search(level: LevelSolver) -> float:
    """Return the tolerance in a search: the model keeps the clusters of the chosen level."""
    return min(level.solver.options.tolerance, EARLY_TOLERANCE)


def mean_with_error(losses: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return the mean of weighted losses (n,) of sampled rows, and its standard error."""
    mean, total = float(np.average(losses, weights=weights)), weights.sum()
    squared = np.sum((weights * (losses - mean)) ** 2)
    return mean, float(np.sqrt(squared) / total) if total > 0 else 0.0


def best_level(
    levels: Sequence[int],
    begin: Callable[[int], LevelSolver],
    keep: Callable[[LevelSolver], None],
    seed: int,
) -> EarlyChoice:
    """Search levels, the finest first, by leave-one-out losses.

    `begin` makes the solver of a level. `keep` is called with each new best solver; the others are
    released. The loss of the returned choice is None. Raises Stopped.
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
        for solver in (finer, coarser):  # solve only the nearest clusters of the rows
            clusters = np.arange(solver.division.n_clusters)
            nearest = np.isin(clusters, solver.division.cluster[rows])
            solver.solve_clusters(tolerance_of_search(solver), nearest)
        rows = _affordable(rows, (finer, coarser), rng)
        losses, coarser_losses = (loo_losses(solver, rows) for solver in (finer, coarser))
        weights, is_cheap = finer.solver.prepared.sample_weight[rows], cost <= CHEAP_VALUES
        if improves_enough(losses, coarser_losses, weights, metric, is_cheap=is_cheap):
            finer = coarser
            keep(finer)
        elif cost > FREE_VALUES:
            break
        del coarser, solver  # free its memory before the next solver is made
    return EarlyChoice(finer.level, levels[0], coarsest, None, None, 0, metric)


def estimate_loss(choice: EarlyChoice, level: LevelSolver, seed: int) -> EarlyChoice:
    """Estimate the loss of the chosen level, with all clusters solved, on random rows.

    The rows are drawn from all clusters because clusters differ in loss. Raises Stopped.
    """
    n_rows = len(level.division.cluster)
    rng = np.random.default_rng(seed)
    n_sampled = min(n_rows, ESTIMATE_ROWS, MAX_VALUES // level.formulation.n_problems)
    by_input = group_order(level.solver.prepared.row_map.first)
    rows = by_input[rng.choice(n_rows, n_sampled, replace=False)]
    rows = _affordable(np.sort(rows), (level,), rng)
    weights = level.solver.prepared.sample_weight[rows]
    loss, error = mean_with_error(loo_losses(level, rows, ESTIMATE_EXACT), weights)
    return replace(choice, loss=loss, standard_error=error, n_rows=len(rows))


def best_on_test(
    levels: Sequence[int],
    begin: Callable[[int], LevelSolver],
    keep: Callable[[LevelSolver], None],
    test: Dataset,
) -> EarlyChoice:
    """Search levels, the finest first, by their losses on test rows.

    The search ends at the first level that is not better than the level before it. The returned
    choice has the loss on the test rows. Raises Stopped.
    """
    chosen, n_rows = levels[0], len(test.labels)
    best: tuple[float, float] | None = None
    for level in levels:
        solver = begin(level)
        solver.solve_clusters(tolerance_of_search(solver))
        loss, error = mean_with_error(_test_losses(solver, test), np.ones(n_rows))
        if best is not None and not loss < best[0]:
            break
        chosen, best = level, (loss, error)
        keep(solver)
        metric = metric_of(solver.solver.task)
        del solver  # free its memory before the next solver is made
    assert best is not None
    return EarlyChoice(chosen, levels[0], level, *best, n_rows, metric, on_test_rows=True)


def _test_losses(level: LevelSolver, test: Dataset) -> np.ndarray:
    """Compute the losses of test rows by the early model of a level."""
    early, task = early_model(level)[0], level.solver.task
    early = replace(early, rows=early.rows.part(slice(0, early.rows.n_samples)))
    parts = ModelParts(level.solver.data.kernel, task.labels, None, early, task.svm_type)
    predicted = parts.predictions(test.rows, "early", level.solver.threads)
    row_losses = DEFINITIONS[checked_metric(None, task.svm_type)].row_losses
    assert row_losses is not None
    return row_losses(test.labels, predicted)


def metric_of(task: Task) -> str:
    return ERROR_RATE if task.is_classification else SQUARED_ERROR


def improves_enough(
    finer: np.ndarray, coarser: np.ndarray, weights: np.ndarray, metric: str, *, is_cheap: bool
) -> bool:
    """Decide from losses and weights (n,) whether a coarser level reduces the loss enough.

    If it is cheap, any amount is enough.
    """
    gain, error = mean_with_error(finer - coarser, weights)
    if is_cheap:
        return gain > 0
    finer_loss, _ = mean_with_error(finer, weights)
    least = ROWS_THRESHOLD if metric == ERROR_RATE else ERROR_THRESHOLD * finer_loss
    return gain > max(least, CERTAIN * error)


def _region(level: LevelSolver, finer: LevelSolver, rng: np.random.Generator) -> np.ndarray | None:
    """Choose random clusters of a level on which to compare it with a finer one.

    ENOUGH_ROWS and the cost limit the number of clusters. Returns a mask, bool (n_clusters,), or
    None if a single cluster costs too much.
    """
    costs, cost_of_finer = level.costs, float(finer.costs.sum())
    sizes = np.bincount(level.division.cluster, minlength=len(costs))
    order = rng.permutation(len(costs))
    order = order[sizes[order] > 0]
    rows, cost = np.cumsum(sizes[order]), np.cumsum(costs[order])
    # as many as rows and cost allow; a single one that costs more may still pay
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
    first_input = levels[0].solver.prepared.row_map.first[rows]
    return np.sort(rng.choice(rows[group_order(first_input)], n_rows, replace=False))


LEAST_SHARE = 0.7  # of all rows: a model of so few is scored at the same level


def for_all_rows(data: Dataset, options: TrainOptions) -> tuple[TrainOptions, int | None]:
    """Return options with the number of gamma, and the finest level of an early model.

    Models of LEAST_SHARE of the rows have this level, too. It is None if there are too few distinct
    rows.
    """
    options = number_of_gamma(options, data.rows, table=data.table)
    _, targets = np.unique(data.labels, return_inverse=True)
    weights = np.ones(len(targets)) if data.sample_weight is None else data.sample_weight
    n_different = len(find_duplicates(data.rows, targets.astype(np.float64), weights).first)
    early, n_least = replace(options, early=True), int(LEAST_SHARE * n_different)
    of_least = early_plan(replace(early, early_level=AUTO), n_least)
    return options, min(early_plan(early, n_different).deepest, of_least.deepest) or None
