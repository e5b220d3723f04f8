"""Values of rows by solutions that have not seen them: folds solved side by side over the same
rows, in which the rows a fold holds out have no variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.kernel.kernel_sums import Sources, weighted_sums
from dcsvm.kernel.partition import blended
from dcsvm.problem.folds import Folds, shuffled_folds, stratified_folds
from dcsvm.problem.formulation import Formulation, in_folds
from dcsvm.solving.extraction import check_margins
from dcsvm.solving.level_solving import LevelSolving
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.solving import Solving

VALUES_AT_ONCE = 2**21


def folds_of(prepared: Prepared, n_folds: int) -> Folds:
    """Folds by the seed of the options: stratified for classes and shuffled otherwise."""
    task, given = prepared.task, prepared.row_map.given
    labels = task.labels[task.targets[given]] if task.is_classification else None
    return as_folds(prepared, fold_numbers(labels, len(given), n_folds, prepared.options.seed))


def fold_numbers(labels: np.ndarray | None, n_rows: int, n_folds: int, seed: int) -> np.ndarray:
    """The fold of each row int64 (n_rows,), stratified by its label where there are any."""
    if labels is None:
        return shuffled_folds(n_rows, n_folds, seed)
    return stratified_folds(labels, n_folds, seed)


def as_folds(prepared: Prepared, fold: np.ndarray) -> Folds:
    """Folds of prepared rows, by the fold of each given row that has a weight, -1 for none."""
    row_map, given = prepared.row_map, prepared.row_map.given
    return Folds.of(fold, row_map.row_of_given[given], row_map.weight_of_given[given])


def formulation_of_folds(prepared: Prepared, folds: Folds, some: Sequence[int]) -> Formulation:
    """The problems of some folds: of rows that they do not hold out."""
    weights = (folds.left(k) for k in some)
    return in_folds(prepared.task.formulate, prepared.targets, weights)


def held_out_values(
    run: Solving, folds: Folds, some: Sequence[int]
) -> Iterator[tuple[slice, np.ndarray]]:
    """Decision values of what `some` folds hold out by the solutions of a run of those folds: a
    slice of the entries and their values float64 (m, n_pairs), until all have been.

    By the clusters of a level where the run is one. nan for a pair of classes of which a fold, or
    a cluster of it, has not both to learn from. Raises ValueError for a nu-SVC without margin, and
    Stopped.
    """
    n_pairs = run.formulation.n_problems_of_fold
    for k, fold in enumerate(some):
        values = _LevelValues(run, k) if isinstance(run, LevelSolving) else _Values(run, k)
        for entries in _blocks(folds.entries(fold), max(VALUES_AT_ONCE // n_pairs, 1)):
            yield entries, values.of(folds.row[entries])


class _Values:
    """Decision values by the solution of fold number k of a run; each row meets those of its own
    place."""

    def __init__(self, run: Solving, k: int):
        self.run, self.n_pairs = run, run.formulation.n_problems_of_fold
        self.pairs = slice(k * self.n_pairs, (k + 1) * self.n_pairs)
        support = run.formulation.variables_of_fold(k)
        self.support = support[run.alpha[support] != 0]
        self.row = run.formulation.problem.rows[self.support]
        self.column = run.formulation.number[self.support] - self.pairs.start
        self.place = self.place_of_support()
        self.offset, self.margin = (one[..., self.pairs] for one in self.offsets())

    def place_of_support(self) -> np.ndarray:
        return self.run.units.group[self.row]

    def offsets(self) -> tuple[np.ndarray, np.ndarray]:
        """rho (1, n_problems) and what the values of a problem are divided by."""
        solution = self.run.solution
        found = [
            solution.offset_and_margin(np.arange(part.start, part.stop))
            if part.start < part.stop
            else (np.nan, 1.0)
            for part in solution.formulation.parts()
        ]
        rho, margin = np.array(found).T
        if not solution.task.divides_by_margin:
            return rho[None], np.ones_like(rho)
        check_margins(margin)
        return rho[None], margin

    def of(self, targets: np.ndarray) -> np.ndarray:
        return (self.sums(targets, self.run.units.group[targets]) - self.offset) / self.margin

    def sums(self, targets: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Sums of rows over the support vectors in their places."""
        run, result = self.run, np.zeros((len(targets), self.n_pairs))
        how = Evaluation(reach=run.reach, stop=run.control.stop)
        for one in np.unique(place):
            own, other = place == one, self.place == one
            alpha = run.alpha[self.support[other]]
            sources = Sources(self.row[other], self.column[other], alpha, self.n_pairs)
            result[own] = weighted_sums(run.data, targets[own], sources, how)[0]
        return result


class _LevelValues(_Values):
    """Those by the clusters of a level."""

    def place_of_support(self) -> np.ndarray:
        return self.run.cluster[self.support]

    def offsets(self) -> tuple[np.ndarray, np.ndarray]:
        rho = self.run.offsets()
        return rho, np.ones(rho.shape[1])

    def of(self, targets: np.ndarray) -> np.ndarray:
        placed = self.run.division.placed.take(targets)
        return blended(
            lambda some, cluster: self.sums(targets[some], cluster) - self.offset[cluster],
            placed,
            self.run.division.partition.blend,
        )


def _blocks(entries: slice, size: int) -> list[slice]:
    return [
        slice(begin, min(begin + size, entries.stop))
        for begin in range(entries.start, entries.stop, size)
    ]
