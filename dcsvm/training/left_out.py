"""What early models are worth, told from their own solutions: decision values of every row without
it (leave one out, by the span rule), and the losses that follow.

A support vector's own decision value is lower without it by |alpha| times its squared distance to
the span of the others (csrc/solver/span.cc); that of other rows is as it is. Nothing is solved
again. Of a row that stands for several equal ones, one is left out.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from dcsvm import _core
from dcsvm.data.sorting import group_order, group_sizes, slices
from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.kernel.kernel_sums import Sources, weighted_sums
from dcsvm.model.pair_weights import most_voted
from dcsvm.problem.dual_problems import pairs_of
from dcsvm.solving.iterate import Parts
from dcsvm.solving.level_solver import LevelSolver

VALUES_AT_ONCE = 2**22  # decision values of rows and pairs of classes
FEWEST_EXACT, MOST_EXACT = 512, 4096  # free support vectors of a cluster that spans are of
EXACT_BYTES = 12  # of a thread, for each pair of them


def left_out_losses(level: LevelSolver, rows: np.ndarray, n_exact: int = MOST_EXACT) -> np.ndarray:
    """The loss of each of the rows int64 (m,), whose nearest clusters are solved, without it: 1 for
    a wrong class, the squared error of a regression. With more than `n_exact` free support vectors
    in a cluster losses may be too high. Raises Stopped."""
    losses = np.empty(len(rows))
    order = group_order(level.division.cluster[rows])  # spans are of clusters
    for some in slices(len(rows), VALUES_AT_ONCE // level.formulation.n_problems):
        losses[order[some]] = _losses(level, rows[order[some]], n_exact)
    return losses


def _losses(level: LevelSolver, rows: np.ndarray, n_exact: int) -> np.ndarray:
    values, truth = left_out_values(level, rows, n_exact), level.solver.prepared.targets[rows]
    if not level.solver.task.is_classification:
        return (truth - values[:, 0]) ** 2
    wrong = _lost(values, truth, level.solver.task.n_classes)
    if level.solver.task.n_classes > 2:
        doubtful = np.flatnonzero(wrong)
        _add_other_pairs(level, rows[doubtful], values, doubtful)
        voted = most_voted(values[doubtful], level.solver.task.n_classes)
        wrong[doubtful] = voted != truth[doubtful]
    return wrong.astype(np.float64)


def left_out_values(level: LevelSolver, rows: np.ndarray, n_exact: int = MOST_EXACT) -> np.ndarray:
    """Decision values float64 (m, n_pairs) of rows without them, of the pairs of their own class;
    nan of other pairs. Raises Stopped."""
    own = _Own(level, rows)
    lost = own.lost * _spans(level, own, n_exact)
    row, is_copy = (
        level.formulation.problem.rows[own.variables],
        level.clustered.is_copy[own.variables],
    )
    n_problems = level.formulation.n_problems
    cell = own.place[row] * n_problems + level.formulation.number[own.variables]
    values = _without(own.known, lost, cell, ~is_copy, len(rows) * n_problems)
    if is_copy.any():
        other = _without(own.known, lost, cell, is_copy, len(values))
        both = np.unique(cell[is_copy])
        placed = level.division.placed.take(rows[both // n_problems])
        share = placed.shares(level.division.partition.blend)
        values[both] = share * values[both] + (1.0 - share) * other[both]
    return values.reshape(len(rows), n_problems)


def n_spans(level: LevelSolver, rows: np.ndarray) -> int:
    """How many spans the losses of rows need, which is nearly all that they cost."""
    return int(np.count_nonzero(_Own(level, rows).is_doubtful))


class _Own:
    """The variables of some rows in clusters that are solved: the decision values that are `known`
    of them, and what these have `lost` per span without the row. `place` is that of each row."""

    def __init__(self, level: LevelSolver, rows: np.ndarray):
        self.place = np.full(level.solver.data.rows.n_samples, -1, np.int64)
        self.place[rows] = np.arange(len(rows))
        is_own = (self.place[level.formulation.problem.rows] >= 0) & level.is_solved[level.cluster]
        self.variables = np.flatnonzero(is_own)
        number = level.formulation.number[self.variables]
        problem = level.formulation.problem
        rows_of = problem.rows[self.variables]
        self.known = level.solver.gradient[self.variables] + problem.linear[self.variables]
        self.known -= level.offsets()[level.cluster[self.variables], number]
        self.lost = _what_one_adds(level, self.variables)
        # no span is longer than K(x, x) = 1, or 2 with a sum; that of one cluster alone may turn a
        # class, and with two of them neither says so
        self.is_doubtful = self.lost != 0
        if level.solver.task.is_classification and level.solver.data.kernel.type.fall:
            longest = 2.0 if level.formulation.has_sums else 1.0
            may_turn = self.known * np.sign(self.lost) <= longest * np.abs(self.lost)
            self.is_doubtful &= may_turn | level.division.is_in_two[rows_of]


def _without(
    known: np.ndarray, lost: np.ndarray, cell: np.ndarray, some: np.ndarray, size: int
) -> np.ndarray:
    """What is known of the cells of some variables, less what is lost; nan of the other cells. Two
    variables of a regression have one cell, one value, and at most one of them is lost."""
    values = np.full(size, np.nan)
    values[cell[some]] = known[some]
    np.subtract.at(values, cell[some], lost[some])
    return values


def _spans(level: LevelSolver, own: _Own, n_exact: int) -> np.ndarray:
    """Squared spans of those variables whose loss could change, 0 of the others."""
    solver = level.solver
    if solver.control.stop.is_requested:
        raise _core.Stopped
    wanted = np.zeros(solver.problem.size, np.uint8)
    doubtful = own.variables[own.is_doubtful]
    wanted[doubtful] = 1
    has_any = np.zeros(len(level.is_solved), bool)
    has_any[level.cluster[doubtful]] = True
    support = np.flatnonzero(has_any[level.cluster] & (solver.alpha != 0))
    members = support[group_order(level.part[support])].astype(np.int32)
    sizes = group_sizes(level.part[support])[1]
    room = isqrt(solver.memory_bytes // (EXACT_BYTES * solver.threads))
    n_exact = min(max(room, FEWEST_EXACT), n_exact)
    parts = Parts.of_sizes(solver.problem, members, sizes)
    spans = solver.engine.spans(parts, solver.alpha, wanted, n_exact, solver.threads)
    return spans[own.variables]


def _what_one_adds(level: LevelSolver, variables: np.ndarray) -> np.ndarray:
    """What alpha loses at least when one of the rows is left out that a row stands for: the others
    take over what their bounds allow."""
    problem, alpha = level.formulation.problem, level.solver.alpha[variables]
    bound = np.maximum(problem.upper[variables], -problem.lower[variables])
    n_given = level.solver.prepared.row_map.n_given_of_row[problem.rows[variables]]
    left = bound * (1.0 - 1.0 / n_given)
    return np.sign(alpha) * np.maximum(np.abs(alpha) - left, 0.0)


def _lost(values: np.ndarray, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Rows that lose a pair of their own class, bool (m,)."""
    lost = np.zeros(len(values), bool)
    for pair, (first, second) in enumerate(pairs_of(n_classes)):
        lost |= (classes == first) & ~(values[:, pair] > 0)
        lost |= (classes == second) & (values[:, pair] > 0)
    return lost


def _add_other_pairs(
    level: LevelSolver, rows: np.ndarray, values: np.ndarray, places: np.ndarray
) -> None:
    """Write the decision values of rows of the pairs that lack their class, by their nearest
    clusters, to the lines `places` of `values`."""
    solver = level.solver
    cluster_of, number = level.division.cluster[rows], level.formulation.number
    support = np.flatnonzero((solver.alpha != 0) & level.is_solved[level.cluster])
    support = support[group_order(level.cluster[support])]
    ends = np.searchsorted(level.cluster[support], np.arange(level.division.n_clusters + 1))
    offsets, how = level.offsets(), Evaluation(stop=solver.control.stop)
    for c in np.unique(cluster_of):
        own, others = np.flatnonzero(cluster_of == c), support[ends[c] : ends[c + 1]]
        sources = Sources(
            solver.problem.rows[others], number[others], solver.alpha[others], values.shape[1]
        )
        found = weighted_sums(solver.data, rows[own], sources, how)[0] - offsets[c]
        unknown = np.isnan(values[places[own]])
        values[places[own]] = np.where(unknown, found, values[places[own]])
