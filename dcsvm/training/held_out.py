"""Values of rows by solutions that have not seen them: folds solved side by side over the same
rows, in which the rows a fold holds out have no variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.kernel.kernel_sums import Sources, weighted_sums
from dcsvm.problem.folds import Folds, shuffled_folds, stratified_folds
from dcsvm.problem.formulation import Formulation, in_folds
from dcsvm.solving.extraction import Division, Solution, check_margins
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.solving import Solving

VALUES_AT_ONCE = 2**21


def folds_of(prepared: Prepared, n_folds: int) -> Folds:
    """Folds by the seed of the options: stratified for classes and shuffled otherwise."""
    row_map, task, seed = prepared.row_map, prepared.task, prepared.options.seed
    given = row_map.given
    if task.is_classification:
        fold = stratified_folds(task.labels[task.targets[given]], n_folds, seed)
    else:
        fold = shuffled_folds(len(given), n_folds, seed)
    return Folds.of(fold, row_map.row_of_given[given], row_map.weight_of_given[given])


def formulation_of_folds(prepared: Prepared, folds: Folds, some: Sequence[int]) -> Formulation:
    """The problems of some folds: of rows that they do not hold out."""
    weights = (folds.left(k) for k in some)
    return in_folds(prepared.task.formulate, prepared.targets, weights)


def held_out_values(
    run: Solving, folds: Folds, some: Sequence[int], division: Division | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Decision values of what `some` folds hold out by the solutions of a run of those folds: a
    slice of the entries and their values float64 (m, n_pairs), until all have been.

    With a division each is that of the row's cluster alone. nan for a pair of classes of which a
    fold, or a cluster of it, has not both to learn from. Raises ValueError for a nu-SVC without
    margin, and Stopped.
    """
    place, n_clusters = run.units.group, 1
    if division is not None:
        n_clusters = division.partition.n_clusters
        place = place * n_clusters + division.cluster
    formulation, alpha = run.formulation, run.alpha
    n_pairs, number = formulation.n_problems_of_fold, formulation.number
    offset, margin = _offsets_and_margins(run.solution, division)
    how = Evaluation(reach=run.reach, stop=run.control.stop)
    for k, fold in enumerate(some):
        pairs = slice(k * n_pairs, (k + 1) * n_pairs)
        support = formulation.variables_of_fold(k)
        support = support[alpha[support] != 0]
        rows, column = formulation.problem.rows[support], number[support] - k * n_pairs
        for entries in _blocks(folds.entries(fold), max(VALUES_AT_ONCE // n_pairs, 1)):
            targets = folds.row[entries]
            values = np.zeros((len(targets), n_pairs))
            for one in np.unique(place[targets]):
                own, other = place[targets] == one, place[rows] == one
                sources = Sources(rows[other], column[other], alpha[support[other]], n_pairs)
                values[own] = weighted_sums(run.data, targets[own], sources, how)[0]
            cluster = place[targets] % n_clusters
            yield entries, (values - offset[cluster, pairs]) / margin[pairs]


def _offsets_and_margins(
    solution: Solution, division: Division | None
) -> tuple[np.ndarray, np.ndarray]:
    """rho (n_clusters, n_problems) and what the values of a problem are divided by."""
    ones = np.ones(solution.formulation.n_problems)
    if division is not None:
        return solution.offsets_of_clusters(division), ones
    found = [
        solution.offset_and_margin(np.arange(part.start, part.stop))
        if part.start < part.stop
        else (np.nan, 1.0)
        for part in solution.formulation.parts()
    ]
    rho, margin = np.array(found).T
    if not solution.task.divides_by_margin:
        return rho[None], ones
    check_margins(margin)
    return rho[None], margin


def _blocks(entries: slice, size: int) -> list[slice]:
    return [
        slice(begin, min(begin + size, entries.stop))
        for begin in range(entries.start, entries.stop, size)
    ]
