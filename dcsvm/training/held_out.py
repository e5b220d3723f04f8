"""Settings of a grid (C, gamma, epsilon) and decision values of held-out rows.

Folds are solved side by side over the same rows. The problems of a fold have no variables for its
held-out rows. An entry is a held-out row of a fold (see Folds).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

import numpy as np

from dcsvm.data.arrays import distinct, slices
from dcsvm.kernel.kernel_rows import KernelEvalOptions, weighted_sums
from dcsvm.kernel.sources import blended
from dcsvm.problem.folds import Folds, shuffled_folds, stratified_folds
from dcsvm.problem.formulation import Formulation, in_folds
from dcsvm.problem.options import OptionError, TrainOptions
from dcsvm.training.certificate import Subproblems
from dcsvm.training.engine import Prepared
from dcsvm.training.extraction import check_margins
from dcsvm.training.solver import FormulationSolver, LevelSolver

# defaults of svm-grid
DEFAULT_CS = tuple(2.0**k for k in range(-5, 16, 2))
DEFAULT_GAMMAS = tuple(2.0**k for k in range(-15, 4, 2))
MAX_SETTINGS = 100_000
FINE_STEPS = 4  # steps of the fine grid per step of the coarse grid
Value = TypeVar("Value", float, float | None)


@dataclass(frozen=True)
class Setting:
    """Point of a grid; `gamma` or `epsilon` is None if the training options set it."""

    C: float
    gamma: float | None = None
    epsilon: float | None = None

    @property
    def axis(self) -> tuple[float | None, float | None]:
        """Gamma and epsilon, which settings that differ only in C share."""
        return self.gamma, self.epsilon

    @property
    def sought(self) -> dict[str, float]:
        """The values that the search varies, keyed by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def options(self, base: TrainOptions) -> TrainOptions:
        """Return training options with this setting."""
        gamma = base.gamma if self.gamma is None else self.gamma
        epsilon = base.epsilon if self.epsilon is None else self.epsilon
        return replace(base, C=self.C, gamma=gamma, epsilon=epsilon)


@dataclass(frozen=True)
class Score:
    """Loss of a setting on held-out rows.

    Attributes
    ----------
    loss : error rate or mean squared error, or the loss of another metric.
    losses : loss of each fold, nan for a fold without rows.
    n_rows, weight : number of rows scored, and the sum of their weights.
    is_complete : whether all rows were scored. Otherwise the setting was pruned or the search
        stopped, and the loss is an estimate.
    converged : whether all models converged.
    n_sv : mean number of support vectors of the models of the folds, None for pruned settings.
    seconds : time spent on the setting.
    """

    setting: Setting
    loss: float
    losses: tuple[float, ...]
    n_rows: int
    weight: float
    is_complete: bool
    converged: bool
    n_sv: int | None
    seconds: float

    @staticmethod
    def known(
        values: tuple[float, float | None, float | None], loss: float, n_rows: int, *,
        is_complete: bool, converged: bool,
    ) -> Score:  # fmt: skip
        """Return a score from a file, for the values of C, gamma and epsilon."""
        return Score(
            Setting(*values), loss, (), n_rows, float(n_rows), is_complete, converged, None, 0.0
        )

    @property
    def total(self) -> float:
        """Total loss, rounded up so that no setting of equal loss exceeds it."""
        return self.loss * self.weight * (1.0 + 1e-12)

    @property
    def may_win(self) -> bool:
        return self.is_complete and self.converged


def best_of(scores: Iterable[Score]) -> Score | None:
    """Return the score with the least loss, or None if no rows were scored.

    If any scores are complete and converged, only these are compared; else if any are complete,
    only these. Ties go to the smaller C, then the smaller gamma, then the larger epsilon.
    """
    scores = [score for score in scores if score.n_rows > 0]
    complete = [score for score in scores if score.is_complete]
    candidates = [score for score in complete if score.converged] or complete or scores

    def rank(score: Score) -> tuple[float, float, float, float]:
        setting = score.setting
        return score.loss, setting.C, setting.gamma or 0.0, -(setting.epsilon or 0.0)

    return min(candidates, key=rank, default=None)


@dataclass(frozen=True)
class Grid:
    """All combinations of ascending values; (None,) if the training options set the value."""

    Cs: tuple[float, ...]
    gammas: tuple[float | None, ...] = (None,)
    epsilons: tuple[float | None, ...] = (None,)

    @staticmethod
    def of(
        options: TrainOptions,
        Cs: Sequence[float],  # noqa: N803 (several C)
        gammas: Sequence[float] | None,
        epsilons: Sequence[float] | None = None,
    ) -> Grid:
        """Make a grid; for None, the training options set the value. Raises ValueError."""
        if epsilons is not None and options.svm_type != "epsilon_svr":
            raise ValueError(f"epsilons require epsilon_svr, got {options.svm_type}")
        if options.svm_type == "one_class":
            raise ValueError("one-class SVM has no C, and no score to choose it by")
        if gammas is not None and not options.kernel_type.has_gamma:
            raise ValueError(f"the kernel {options.kernel} has no gamma")
        grid = Grid(
            _ascending("C", Cs),
            (None,) if gammas is None else _ascending("gamma", gammas),
            (None,) if epsilons is None else _ascending("epsilon", epsilons),
        )
        if len(grid.settings) > MAX_SETTINGS:
            raise ValueError(
                f"a grid must have at most {MAX_SETTINGS} settings, got {len(grid.settings)}"
            )
        for setting in grid.settings:
            setting.options(options)
        return grid

    @property
    def axes(self) -> dict[str, tuple[float | None, ...]]:
        return {"C": self.Cs, "gamma": self.gammas, "epsilon": self.epsilons}

    @property
    def settings(self) -> list[Setting]:
        return [Setting(*values) for values in product(self.Cs, self.gammas, self.epsilons)]

    def coarse_to_fine(self) -> list[Setting]:
        """Order settings from the middle to ever finer meshes, so each prefix spans the grid."""
        ranks = [
            {value: rank for rank, value in enumerate(_middle_first(list(axis)))}
            for axis in self.axes.values()
        ]

        def fineness(setting: Setting) -> tuple[int, int]:
            own = [rank[value] for rank, value in zip(ranks, vars(setting).values(), strict=True)]
            return max(own), sum(own)

        return sorted(self.settings, key=fineness)

    def around(self, setting: Setting) -> Grid:
        """Make a fine grid that extends half a step to both sides of a setting.

        See Hsu, Chang and Lin, "A practical guide to support vector classification" (2003).
        """
        return Grid(
            _finer(self.Cs, setting.C),
            _finer(self.gammas, setting.gamma),
            _finer(self.epsilons, setting.epsilon),
        )

    def in_gamma_unit(self, unit: float) -> Grid:
        """Return this grid with every gamma multiplied by `unit`. Raises OptionError."""
        for gamma in self.gammas:
            if gamma and not 0 < gamma * unit < math.inf:
                reason = f"must be positive and finite, got {gamma:g} times {unit:g}"
                raise OptionError("gamma", reason)
        gammas = tuple(None if gamma is None else gamma * unit for gamma in self.gammas)
        return replace(self, gammas=gammas)

    def edges(self, setting: Setting) -> list[str]:
        """Name the values of a setting that lie on the edge of the grid."""
        return [
            f"the {'smallest' if value == self.axes[name][0] else 'largest'} {name}"
            for name, value in vars(setting).items()
            if len(self.axes[name]) > 2 and value in (self.axes[name][0], self.axes[name][-1])
        ]


def _ascending(name: str, values: Sequence[float] | float) -> tuple[float, ...]:
    several = [values] if isinstance(values, (int, float)) else values
    ascending = tuple(sorted({float(value) for value in several}))
    if not ascending:
        raise ValueError(f"the grid has no values of {name}")
    return ascending


def _middle_first(values: list[float | None]) -> list[float | None]:
    """Order values breadth first: the middle, the middles of both halves, and so on."""
    ordered, parts = [], [values]
    while parts:
        part = parts.pop(0)
        if part:
            middle = len(part) // 2
            ordered.append(part[middle])
            parts += [part[:middle], part[middle + 1 :]]
    return ordered


def _finer(axis: tuple[Value, ...], value: Value) -> tuple[Value, ...]:
    if len(axis) < 2 or value is None or value <= 0:
        return (value,)
    index = axis.index(value)
    neighbour = axis[index + 1] if index + 1 < len(axis) else axis[index - 1]
    if neighbour is None or neighbour <= 0:
        return (value,)
    step = abs(math.log2(neighbour / value))
    powers = [step * k / FINE_STEPS for k in range(-FINE_STEPS // 2, FINE_STEPS // 2 + 1)]
    return tuple(value * 2.0**power for power in powers)


BATCH_VALUES = 2**21


def folds_of(prepared: Prepared, n_folds: int) -> Folds:
    """Make folds with the seed of the options: stratified for classifiers, else shuffled."""
    task, given = prepared.task, prepared.row_map.weighted_inputs
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
    row_map, given = prepared.row_map, prepared.row_map.weighted_inputs
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
        solver = self.solver
        rho, margin = solver.offsets_and_margins(Subproblems.of_problems(solver.formulation))
        is_empty = np.diff(solver.formulation.start) == 0
        rho[is_empty], margin[is_empty] = np.nan, 1.0
        if not solver.task.divides_by_margin:
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
            result[mask], _ = weighted_sums(
                solver.data, targets[mask], self.row[other], self.column[other],
                self.alpha[other], self.n_pairs, how,
            )  # fmt: skip
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
