"""Estimate leave-one-out losses of early models by the span rule, without solving again.

Removing a support vector changes its own decision value from f to f - alpha d^2, where d is its
distance to the span of the other support vectors (csrc/solver/span.cc). Rows with alpha = 0 keep
their decision values. Of a row with duplicates, only one copy is removed.
"""

from math import isqrt

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import distinct, group_order, group_sizes, slices
from dcsvm.kernel.kernel_rows import KernelEvalOptions
from dcsvm.kernel.kernel_sums import WeightedSources, weighted_sums
from dcsvm.model.pair_weights import most_voted
from dcsvm.problem.dual_problems import pairs_of
from dcsvm.solving.iterate import Subproblems
from dcsvm.solving.level_solver import LevelSolver

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
    variables = _RowVariables(level, rows)
    change = variables.alpha_lost * _spans(level, variables, n_exact)
    row = level.formulation.problem.rows[variables.index]
    is_copy = level.clustered.is_copy[variables.index]
    n_problems = level.formulation.n_problems
    cell = variables.position[row] * n_problems + level.formulation.problem_index[variables.index]
    values = _fill_cells(variables.values, change, cell, ~is_copy, len(rows) * n_problems)
    if is_copy.any():
        other = _fill_cells(variables.values, change, cell, is_copy, len(values))
        both = distinct(cell[is_copy])
        placed = level.division.placed.take(rows[both // n_problems])
        share = placed.shares(level.division.partition.blend)
        values[both] = share * values[both] + (1.0 - share) * other[both]
    return values.reshape(len(rows), n_problems)


def n_spans(level: LevelSolver, rows: np.ndarray) -> int:
    """Count the spans required for the losses of rows; spans take nearly all the time."""
    return int(np.count_nonzero(_RowVariables(level, rows).is_doubtful))


class _RowVariables:
    """Variables of given rows in solved clusters.

    Attributes
    ----------
    position : int64 (n_rows,), index of each row among the given rows, -1 for other rows.
    index : int64 (m,), indices of the variables.
    values : float64 (m,), decision values of their rows before any row is removed.
    alpha_lost : float64 (m,), the part of alpha lost when one input row is removed.
    is_doubtful : bool (m,), whether the loss of the row may depend on the span.
    """

    def __init__(self, level: LevelSolver, rows: np.ndarray) -> None:
        formulation, problem = level.formulation, level.formulation.problem
        self.position = np.full(level.solver.data.rows.n_samples, -1, np.int64)
        self.position[rows] = np.arange(len(rows))
        mask = (self.position[problem.rows] >= 0) & level.is_solved[level.cluster]
        self.index = np.flatnonzero(mask)
        self.values = level.solver.gradient[self.index] + problem.linear[self.index]
        offsets = level.offsets()
        self.values -= offsets[level.cluster[self.index], formulation.problem_index[self.index]]
        self.alpha_lost = _alpha_lost(level, self.index)
        # A squared span is at most K(x, x) = 1, or 2 with an equality constraint. For a row in two
        # clusters, the value of one cluster alone does not decide the class.
        self.is_doubtful = self.alpha_lost != 0
        if level.solver.task.is_classification and level.solver.data.kernel.type.fall is not None:
            longest = 2.0 if level.formulation.has_constraints else 1.0
            may_turn = self.values * np.sign(self.alpha_lost) <= longest * np.abs(self.alpha_lost)
            self.is_doubtful &= may_turn | level.division.is_in_two[problem.rows[self.index]]


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


def _spans(level: LevelSolver, variables: _RowVariables, n_exact: int) -> np.ndarray:
    """Compute the squared spans of the doubtful variables, 0 for others. Raises Stopped."""
    solver = level.solver
    if solver.control.stop.is_requested:
        raise _core.Stopped
    wanted = np.zeros(solver.problem.size, np.uint8)
    doubtful = variables.index[variables.is_doubtful]
    wanted[doubtful] = 1
    has_any = np.zeros(len(level.is_solved), bool)
    has_any[level.cluster[doubtful]] = True
    support = np.flatnonzero(has_any[level.cluster] & (solver.alpha != 0))
    members = support[group_order(level.part[support])].astype(np.int32)
    sizes = group_sizes(level.part[support])[1]
    affordable = isqrt(solver.memory_bytes // (EXACT_BYTES * solver.threads))
    n_exact = min(max(affordable, MIN_EXACT), n_exact)
    parts = Subproblems.of_sizes(solver.problem, members, sizes)
    spans = solver.engine.spans(parts, solver.alpha, wanted, n_exact, solver.threads)
    return spans[variables.index]


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
    offsets, how = level.offsets(), KernelEvalOptions(stop=solver.control.stop)
    for c in distinct(clusters):
        own, members = np.flatnonzero(clusters == c), support[ends[c] : ends[c + 1]]
        sources = WeightedSources(
            solver.problem.rows[members], number[members], solver.alpha[members], values.shape[1]
        )
        others = weighted_sums(solver.data, rows[own], sources, how)[0] - offsets[c]
        unknown = np.isnan(values[positions[own]])
        values[positions[own]] = np.where(unknown, others, values[positions[own]])
