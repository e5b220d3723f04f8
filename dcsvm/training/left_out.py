"""What early models are worth, told from their own solutions: decision values of every row without
it (leave one out, by the span rule), and the losses that follow.

A support vector's own decision value is lower without it by |alpha| times its squared distance to
the span of the others (csrc/solver/span.h); that of other rows is as it is. Nothing is solved
again. Of a row that stands for several equal ones, one is left out.
"""

from __future__ import annotations

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import slices
from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.kernel.kernel_sums import Sources, weighted_sums
from dcsvm.model.coupling import most_voted
from dcsvm.problem.dual_problems import pairs_of
from dcsvm.solving.level_solving import LevelSolving

VALUES_AT_ONCE = 2**22  # decision values of rows and pairs of classes
SPAN_BYTES = 16_000_000  # that a thread needs for spans


def left_out_losses(level: LevelSolving, rows: np.ndarray) -> np.ndarray:
    """The loss of each of the rows int64 (m,), whose nearest clusters are solved, without it: 1 for
    a wrong class, the squared error of a regression. Raises Stopped."""
    losses = np.empty(len(rows))
    order = np.argsort(level.division.cluster[rows], kind="stable")  # spans are of clusters
    for some in slices(len(rows), VALUES_AT_ONCE // level.formulation.n_problems):
        losses[order[some]] = _losses(level, rows[order[some]])
    return losses


def _losses(level: LevelSolving, rows: np.ndarray) -> np.ndarray:
    values, truth = left_out_values(level, rows), level.prepared.targets[rows]
    if not level.task.is_classification:
        return (truth - values[:, 0]) ** 2
    wrong = _lost(values, truth, level.task.n_classes)
    if level.task.n_classes > 2:
        doubtful = np.flatnonzero(wrong)
        _add_other_pairs(level, rows[doubtful], values, doubtful)
        voted = most_voted(values[doubtful], level.task.n_classes)
        wrong[doubtful] = voted != truth[doubtful]
    return wrong.astype(np.float64)


def left_out_values(level: LevelSolving, rows: np.ndarray) -> np.ndarray:
    """Decision values float64 (m, n_pairs) of rows without them, of the pairs of their own class;
    nan of other pairs. Raises Stopped."""
    division, n_problems = level.division, level.formulation.n_problems
    place = np.full(level.data.rows.n_samples, -1, np.int64)
    place[rows] = np.arange(len(rows))
    variables = np.flatnonzero((place[level.problem.rows] >= 0) & level.is_solved[level.cluster])
    offsets = level.offsets()
    known = level.gradient[variables] + level.problem.linear[variables]
    known -= offsets[level.cluster[variables], level.formulation.number[variables]]
    lost = _what_one_adds(level, variables)
    lost *= _spans(level, variables, known, lost)[variables]
    row, is_copy = level.problem.rows[variables], level.clustered.is_copy[variables]
    cell = place[row] * n_problems + level.formulation.number[variables]
    values = _without(known, lost, cell, ~is_copy, len(rows) * n_problems)
    if is_copy.any():
        other = _without(known, lost, cell, is_copy, len(values))
        both = np.unique(cell[is_copy])
        placed = division.placed.take(rows[both // n_problems])
        share = placed.shares(division.partition.blend)
        values[both] = share * values[both] + (1.0 - share) * other[both]
    return values.reshape(len(rows), n_problems)


def _without(
    known: np.ndarray, lost: np.ndarray, cell: np.ndarray, some: np.ndarray, size: int
) -> np.ndarray:
    """What is known of the cells of some variables, less what is lost; nan of the other cells. Two
    variables of a regression have one cell, one value, and at most one of them is lost."""
    values = np.full(size, np.nan)
    values[cell[some]] = known[some]
    np.subtract.at(values, cell[some], lost[some])
    return values


def _spans(
    level: LevelSolving, variables: np.ndarray, known: np.ndarray, lost: np.ndarray
) -> np.ndarray:
    """Squared spans of those of the variables, by their decision values and what these lose per
    span, whose loss could change: no span is longer than K(x, x) = 1, or 2 with a sum."""
    if level.control.stop.is_requested:
        raise _core.Stopped
    wanted = np.zeros(level.problem.size, np.uint8)
    doubtful = lost != 0
    if level.task.is_classification and level.data.kernel.name == "rbf":
        longest = 2.0 if level.formulation.has_sums else 1.0
        doubtful &= known * np.sign(lost) <= longest * np.abs(lost)
    wanted[variables[doubtful]] = 1
    has_any = np.zeros(len(level.is_solved), bool)
    has_any[level.cluster[variables[doubtful]]] = True
    own = np.flatnonzero(has_any[level.cluster] & (level.alpha != 0))
    members = own[np.argsort(level.part[own], kind="stable")].astype(np.int32)
    sizes = np.unique(level.part[own], return_counts=True)[1]
    start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    data = level.data
    threads = max(min(level.threads, level.solver_bytes // SPAN_BYTES), 1)
    return _core.squared_spans(
        data.setup, data.points, level.problem, start, members, level.alpha, wanted, threads
    )


def _what_one_adds(level: LevelSolving, variables: np.ndarray) -> np.ndarray:
    """What alpha loses at least when one of the rows is left out that a row stands for: the others
    take over what their bounds allow."""
    problem, alpha = level.problem, level.alpha[variables]
    bound = np.maximum(problem.upper[variables], -problem.lower[variables])
    n_given = level.prepared.row_map.n_given_of_row[problem.rows[variables]]
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
    level: LevelSolving, rows: np.ndarray, values: np.ndarray, places: np.ndarray
) -> None:
    """Write the decision values of rows of the pairs that lack their class, by their nearest
    clusters, to the lines `places` of `values`."""
    cluster_of, number = level.division.cluster[rows], level.formulation.number
    support = np.flatnonzero((level.alpha != 0) & level.is_solved[level.cluster])
    support = support[np.argsort(level.cluster[support], kind="stable")]
    ends = np.searchsorted(level.cluster[support], np.arange(level.division.n_clusters + 1))
    offsets, how = level.offsets(), Evaluation(stop=level.control.stop)
    for c in np.unique(cluster_of):
        own, others = np.flatnonzero(cluster_of == c), support[ends[c] : ends[c + 1]]
        n_pairs = values.shape[1]
        sources = Sources(level.problem.rows[others], number[others], level.alpha[others], n_pairs)
        found = weighted_sums(level.data, rows[own], sources, how)[0] - offsets[c]
        unknown = np.isnan(values[places[own]])
        values[places[own]] = np.where(unknown, found, values[places[own]])
