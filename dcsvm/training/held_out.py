"""Values of rows by solutions that have not seen them: folds solved side by side over the same
rows, in which the rows a fold holds out have no variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dcsvm.data.sorting import slices
from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.kernel.kernel_sums import Sources, weighted_sums
from dcsvm.kernel.partition import blended
from dcsvm.problem.folds import Folds, shuffled_folds, stratified_folds
from dcsvm.problem.formulation import Formulation, in_folds
from dcsvm.solving.extraction import check_margins
from dcsvm.solving.iterate import Parts
from dcsvm.solving.level_solver import LevelSolver
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.solver import FormulationSolver

VALUES_AT_ONCE = 2**21


def folds_of(prepared: Prepared, n_folds: int) -> Folds:
    """Folds by the seed of the options: stratified for classes and shuffled otherwise."""
    task, given = prepared.task, prepared.row_map.given
    labels = task.labels[task.targets[given]] if task.is_classification else None
    fold = fold_numbers(labels, len(given), n_folds, prepared.options.seed)
    return as_folds(prepared, n_folds, fold)


def fold_numbers(labels: np.ndarray | None, n_rows: int, n_folds: int, seed: int) -> np.ndarray:
    """The fold of each row int64 (n_rows,), stratified by its label where there are any."""
    if labels is None:
        return shuffled_folds(n_rows, n_folds, seed)
    return stratified_folds(labels, n_folds, seed)


def as_folds(prepared: Prepared, n_folds: int, fold: np.ndarray) -> Folds:
    """Folds of prepared rows, by the fold of each given row that has a weight, -1 for none."""
    row_map, given = prepared.row_map, prepared.row_map.given
    return Folds.of(n_folds, fold, row_map.row_of_given[given], row_map.weight_of_given[given])


def formulation_of_folds(prepared: Prepared, folds: Folds, some: Sequence[int]) -> Formulation:
    """The problems of some folds: of rows that they do not hold out."""
    weights = (folds.left(k) for k in some)
    return in_folds(prepared.task.formulate, prepared.targets, weights)


@dataclass(frozen=True, eq=False)
class HeldSums:
    """What an `alpha` of the variables of a fold adds up to: the `sums` K alpha float64 (m,
    n_pairs) of the entries that the fold holds out."""

    alpha: np.ndarray
    sums: np.ndarray


def held_out_values(
    solver: FormulationSolver | LevelSolver,
    folds: Folds,
    some: Sequence[int],
    known: dict[int, HeldSums] | None = None,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Decision values of what `some` folds hold out by the solutions of a solver of those folds: a
    slice of the entries and their values float64 (m, n_pairs), until all have been.

    By the clusters of a level where that is solved. Otherwise `known` sums of folds, by their
    number, save the kernel values of what alpha has in common with theirs, and become those of the
    solver. nan for a pair of classes of which a fold, or a cluster of it, has not both to learn
    from. Raises ValueError for a nu-SVC without margin, and Stopped.
    """
    n_pairs = solver.formulation.n_problems_of_fold
    for k, fold in enumerate(some):
        own = folds.entries(fold)
        blocks = slices(own.stop, VALUES_AT_ONCE // n_pairs, own.start)
        if isinstance(solver, LevelSolver):
            of_level = _LevelValues(solver, k)
            yield from ((entries, of_level.of(folds.row[entries])) for entries in blocks)
            continue
        values, sums = _Values(solver, k, None if known is None else known.get(int(fold))), []
        for entries in blocks:
            found = values.sums_of(folds, entries)
            if known is not None:
                sums.append(found)
            yield entries, values.of_sums(found)
        if known is not None:
            own = solver.formulation.variables_of_fold(k)
            sums = np.concatenate(sums) if sums else np.zeros((0, n_pairs))
            known[int(fold)] = HeldSums(solver.alpha[own].copy(), sums)


class _Values:
    """Decision values by the solution of fold number k of a solver; each row meets those of its own
    place."""

    def __init__(self, solver: FormulationSolver, k: int, known: HeldSums | None = None):
        self.solver, self.n_pairs = solver, solver.formulation.n_problems_of_fold
        self.pairs = slice(k * self.n_pairs, (k + 1) * self.n_pairs)
        support = solver.formulation.variables_of_fold(k)
        alpha, self.known = solver.alpha[support], known
        if known is not None:
            change = alpha - known.alpha
            if np.count_nonzero(change) < np.count_nonzero(alpha):
                alpha = change
            else:
                self.known = None
        self.support, self.alpha = support[alpha != 0], alpha[alpha != 0]
        self.row = solver.formulation.problem.rows[self.support]
        self.column = solver.formulation.number[self.support] - self.pairs.start
        self.place = self.place_of_support()
        self.offset, self.margin = (one[..., self.pairs] for one in self.offsets())

    def place_of_support(self) -> np.ndarray:
        return self.solver.units.group[self.row]

    def offsets(self) -> tuple[np.ndarray, np.ndarray]:
        """rho (1, n_problems) and what the values of a problem are divided by."""
        solution = self.solver.solution
        rho, margin = solution.offsets_and_margins(Parts.of_problems(solution.formulation))
        is_empty = np.diff(solution.formulation.start) == 0
        rho[is_empty], margin[is_empty] = np.nan, 1.0
        if not solution.task.divides_by_margin:
            return rho[None], np.ones_like(rho)
        check_margins(margin)
        return rho[None], margin

    def sums_of(self, folds: Folds, entries: slice) -> np.ndarray:
        """K alpha of some entries of the fold."""
        rows = folds.row[entries]
        sums = self.sums(rows, self.solver.units.group[rows])
        if self.known is not None:
            begin = folds.entries(folds.fold[entries.start]).start
            sums += self.known.sums[entries.start - begin : entries.stop - begin]
        return sums

    def of_sums(self, sums: np.ndarray) -> np.ndarray:
        return (sums - self.offset) / self.margin

    def sums(self, targets: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Sums of rows over the support vectors in their places."""
        solver, result = self.solver, np.zeros((len(targets), self.n_pairs))
        how = Evaluation(solver.needs_float64, solver.reach, solver.control.stop)
        for one in np.unique(place):
            own, other = place == one, self.place == one
            sources = Sources(self.row[other], self.column[other], self.alpha[other], self.n_pairs)
            result[own] = weighted_sums(solver.data, targets[own], sources, how)[0]
        return result


class _LevelValues(_Values):
    """Those by the clusters of a level."""

    def __init__(self, level: LevelSolver, k: int):
        self.level = level
        super().__init__(level.solver, k)

    def place_of_support(self) -> np.ndarray:
        return self.level.cluster[self.support]

    def offsets(self) -> tuple[np.ndarray, np.ndarray]:
        rho = self.level.offsets()
        return rho, np.ones(rho.shape[1])

    def of(self, targets: np.ndarray) -> np.ndarray:
        placed = self.level.division.placed.take(targets)
        return blended(
            lambda some, cluster: self.sums(targets[some], cluster) - self.offset[cluster],
            placed,
            self.level.division.partition.blend,
        )
