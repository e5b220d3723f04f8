"""Compute decision values of held-out rows.

Folds are solved side by side over the same rows. The problems of a fold have no variables for its
held-out rows. An entry is a held-out row of a fold (see Folds).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from dcsvm.data.sorting import distinct, slices
from dcsvm.kernel.kernel_rows import KernelEvalOptions
from dcsvm.kernel.kernel_sums import WeightedSources, weighted_sums
from dcsvm.kernel.partition import blended
from dcsvm.problem.folds import Folds, shuffled_folds, stratified_folds
from dcsvm.problem.formulation import Formulation, in_folds
from dcsvm.solving.extraction import check_margins
from dcsvm.solving.iterate import Subproblems
from dcsvm.solving.level_solver import LevelSolver
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.solver import FormulationSolver

BATCH_VALUES = 2**21


def folds_of(prepared: Prepared, n_folds: int) -> Folds:
    """Make folds with the seed of the options: stratified for classifiers, else shuffled."""
    task, given = prepared.task, prepared.row_map.input_rows
    labels = task.labels[task.targets[given]] if task.is_classification else None
    fold = fold_numbers(labels, len(given), n_folds, prepared.options.seed)
    return as_folds(prepared, n_folds, fold)


def fold_numbers(labels: np.ndarray | None, n_rows: int, n_folds: int, seed: int) -> np.ndarray:
    """Assign every row to a fold, int64 (n_rows,); stratified if `labels` is not None."""
    if labels is None:
        return shuffled_folds(n_rows, n_folds, seed)
    return stratified_folds(labels, n_folds, seed)


def as_folds(prepared: Prepared, n_folds: int, fold: np.ndarray) -> Folds:
    """Make folds from the `fold` of each input row of positive weight, -1 if never held out."""
    row_map, given = prepared.row_map, prepared.row_map.input_rows
    return Folds.of(n_folds, fold, row_map.row_of_input[given], row_map.weight_of_input[given])


def formulation_of_folds(prepared: Prepared, folds: Folds, batch: Iterable[int]) -> Formulation:
    """Formulate the problems of a batch of folds, each without its held-out rows."""
    weights = (folds.train_weight(k) for k in batch)
    return in_folds(prepared.task.formulate, prepared.targets, weights)


@dataclass(frozen=True, eq=False)
class FoldKernelSums:
    """Kernel sums of a fold's solution at its held-out entries.

    `alpha` has the values of the fold's variables. `sums`, float64 (n_entries, n_pairs), is K alpha
    at the entries.
    """

    alpha: np.ndarray
    sums: np.ndarray


def held_out_values(
    solver: FormulationSolver | LevelSolver,
    folds: Folds,
    batch: Iterable[int],
    known: dict[int, FoldKernelSums] | None = None,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Iterate over the decision values of the held-out entries of a batch of folds.

    `solver` has solved the folds of the batch; a LevelSolver predicts by its clusters. `known` has
    kernel sums of an earlier solution of each fold. They save kernel values if the solutions are
    similar, and are replaced by the sums of the new solution. Yields slices of entries with their
    values, float64 (m, n_pairs), nan if a fold or a cluster lacks a class of the pair. Raises
    NoMarginError and Stopped.
    """
    n_pairs = solver.formulation.n_problems_of_fold
    for k, fold in enumerate(batch):
        entries = folds.entries(fold)
        blocks = slices(entries.stop, BATCH_VALUES // n_pairs, entries.start)
        if isinstance(solver, LevelSolver):
            of_level = _LevelValues(solver, k)
            yield from ((block, of_level.of(folds.row[block])) for block in blocks)
            continue
        values = _Values(solver, k, None if known is None else known.get(int(fold)))
        all_sums = [np.zeros((0, n_pairs))]
        for block in blocks:
            sums = values.sums_of(folds, block)
            if known is not None:
                all_sums.append(sums)
            yield block, (sums - values.offset) / values.margin
        if known is not None:
            alpha = solver.alpha[solver.formulation.variables_of_fold(k)]
            known[int(fold)] = FoldKernelSums(alpha, np.concatenate(all_sums))


class _Values:
    """Decision values by the solution of fold k of a solver.

    Only support vectors in the component of a row contribute to its value. The `known` sums of
    another alpha are used if the difference of the two alphas has fewer nonzeros than this alpha.
    """

    def __init__(
        self, solver: FormulationSolver, k: int, known: FoldKernelSums | None = None
    ) -> None:
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
        self.column = solver.formulation.problem_index[self.support] - self.pairs.start
        self.part = self.part_of_support()
        self.offset, self.margin = (values[..., self.pairs] for values in self.offsets())

    def part_of_support(self) -> np.ndarray:
        """Return the component of each support vector."""
        return self.solver.units.row_component[self.row]

    def offsets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rho, (1, n_problems), and the divisor of each problem's decision values."""
        solution = self.solver.solution
        rho, margin = solution.offsets_and_margins(Subproblems.of_problems(solution.formulation))
        is_empty = np.diff(solution.formulation.start) == 0
        rho[is_empty], margin[is_empty] = np.nan, 1.0
        if not solution.task.divides_by_margin:
            return rho[None], np.ones_like(rho)
        check_margins(margin)
        return rho[None], margin

    def sums_of(self, folds: Folds, entries: slice) -> np.ndarray:
        """Compute K alpha at a slice of the fold's entries, float64 (m, n_pairs)."""
        rows = folds.row[entries]
        sums = self.sums(rows, self.solver.units.row_component[rows])
        if self.known is not None:
            begin = folds.entries(folds.fold[entries.start]).start
            sums += self.known.sums[entries.start - begin : entries.stop - begin]
        return sums

    def sums(self, targets: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """Compute kernel sums over the support vectors in the part given for each target."""
        solver, result = self.solver, np.zeros((len(targets), self.n_pairs))
        how = KernelEvalOptions(solver.needs_float64, solver.cutoff, solver.control.stop)
        for part in distinct(parts):
            mask, other = parts == part, self.part == part
            sources = WeightedSources(
                self.row[other], self.column[other], self.alpha[other], self.n_pairs
            )
            result[mask] = weighted_sums(solver.data, targets[mask], sources, how)[0]
        return result


class _LevelValues(_Values):
    """Decision values by the clusters of a level."""

    def __init__(self, level: LevelSolver, k: int) -> None:
        self.level = level
        super().__init__(level.solver, k)

    def part_of_support(self) -> np.ndarray:
        """Return the cluster of each support vector."""
        return self.level.cluster[self.support]

    def offsets(self) -> tuple[np.ndarray, np.ndarray]:
        rho = self.level.offsets()
        return rho, np.ones(rho.shape[1])

    def of(self, targets: np.ndarray) -> np.ndarray:
        """Compute values of rows; near a cluster boundary, blend the values of both clusters."""
        return blended(
            lambda rows, cluster: self.sums(targets[rows], cluster) - self.offset[cluster],
            self.level.division.placed.take(targets),
            self.level.division.partition.blend,
        )
