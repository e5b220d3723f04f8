"""Settings of a grid (C, gamma, epsilon) and decision values of held-out rows.

Folds are solved side by side over the same rows. The problems of a fold have no variables for its
held-out rows. An entry is a held-out row of a fold (see Folds).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TypeVar

import numpy as np

from dcsvm.data.arrays import distinct, group_order, slices
from dcsvm.kernel.kernel_rows import KernelEvalOptions, weighted_sums
from dcsvm.kernel.sources import blended
from dcsvm.problem.folds import Folds
from dcsvm.problem.formulation import Formulation, in_folds
from dcsvm.problem.options import OptionError, TrainOptions
from dcsvm.training.certificate import Subproblems
from dcsvm.training.engine import Prepared
from dcsvm.training.extraction import check_margins
from dcsvm.training.level_partition import ClusteredFormulation, LevelPartition
from dcsvm.training.solver import FormulationSolver, LevelSolver

# defaults of svm-grid
DEFAULT_CS = tuple(2.0**k for k in range(-5, 16, 2))
DEFAULT_GAMMAS = tuple(2.0**k for k in range(-15, 4, 2))
MAX_SETTINGS = 100_000
FINE_STEPS = 4  # steps of the fine grid per step of the coarse grid
Value = TypeVar("Value", float, float | None)
Axis = tuple[float | None, float | None]  # gamma and epsilon


@dataclass(frozen=True)
class Setting:
    """Point of a grid; `gamma` or `epsilon` is None if the training options set it."""

    C: float
    gamma: float | None = None
    epsilon: float | None = None

    @property
    def axis(self) -> Axis:
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

    @property
    def total(self) -> float:
        """Total loss, rounded up so that no setting of equal loss exceeds it."""
        return self.loss * self.weight * (1.0 + 1e-12)

    @property
    def standard_error(self) -> float:
        """Standard error of the loss, from the losses of the folds; nan of fewer than two."""
        known = [loss for loss in self.losses if not math.isnan(loss)]
        return float(np.std(known, ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else math.nan

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
        # each setting must be valid before the search begins
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
    axis = [values] if isinstance(values, (int, float)) else values
    ascending = tuple(sorted({float(value) for value in axis}))
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
    labels = task.targets[given]
    if task.is_classification:
        labels = task.labels[labels]
    return as_folds(prepared, n_folds, prepared.options.fold_of_rows(labels, n_folds))


def as_folds(prepared: Prepared, n_folds: int, fold: np.ndarray) -> Folds:
    """Make folds from the `fold` of each input row of positive weight, -1 if never held out."""
    row_map, given = prepared.row_map, prepared.row_map.weighted_inputs
    return Folds.of(n_folds, fold, row_map.row_of_input[given], row_map.weight_of_input[given])


def formulation_of_folds(prepared: Prepared, folds: Folds, batch: Iterable[int]) -> Formulation:
    """Formulate the problems of a batch of folds, each without its held-out rows."""
    weights = (folds.train_weight(k) for k in batch)
    return in_folds(prepared.task.formulate, prepared.targets, weights)


@dataclass(frozen=True, eq=False)
class Layout:
    """Variables and held-out entries of clusters: argument `held` of `_core.held_out_values`.

    Attributes
    ----------
    members : int32, the variables by cluster and class pair.
    start : int64 (n_clusters * n_pairs + 1,), the first of each group of `members`.
    left : float64 (n_folds, n_rows), training weight of each row in each fold.
    rows : int32, the rows of held-out entries by cluster and fold.
    rows_start : int64 (n_clusters * n_folds + 1,), the first of each group of `rows`.
    entries : int64, the entry of `Folds` of each of `rows`, in each of its clusters.
    is_second : bool, whether the cluster is the second one of the row.
    """

    members: np.ndarray
    start: np.ndarray
    left: np.ndarray
    rows: np.ndarray
    rows_start: np.ndarray
    entries: np.ndarray
    is_second: np.ndarray

    @staticmethod
    def of(
        clustered: ClusteredFormulation, folds: Folds, division: LevelPartition, two: np.ndarray
    ) -> Layout:
        """Arrange a level; `two` are the held-out entries that two clusters predict, ascending."""
        n_pairs, n_clusters = clustered.formulation.n_problems, division.n_clusters
        pair = clustered.formulation.problem_index
        group = clustered.cluster.astype(np.int64) * n_pairs + pair
        # as the core reads them: variables by cluster and pair, entries by cluster and fold
        members, start = _grouped(group, n_clusters * n_pairs)
        placed, held = division.placed, folds.held
        entries = np.concatenate([np.arange(held.start, held.stop), two])
        cluster = np.concatenate([placed.nearest[folds.row[held]], placed.across(folds.row[two])])
        group = cluster.astype(np.int64) * folds.n_folds + folds.fold[entries]
        order, rows_start = _grouped(group, n_clusters * folds.n_folds)
        return Layout(
            members=members.astype(np.int32),
            start=start,
            left=np.stack([folds.train_weight(fold) for fold in range(folds.n_folds)]),
            rows=folds.row[entries[order]].astype(np.int32),
            rows_start=rows_start,
            entries=entries[order],
            is_second=order >= held.stop - held.start,
        )

    @staticmethod
    def of_problems(
        formulation: Formulation, problems: slice, folds: Folds, entries: list[np.ndarray]
    ) -> Layout:
        """Make each problem a cluster of its own, with its held-out `entries`, ascending."""
        start = formulation.start[problems.start : problems.stop + 1]
        sizes = [np.bincount(folds.fold[own], minlength=folds.n_folds) for own in entries]
        every = np.concatenate(entries)
        return Layout(
            members=np.arange(start[0], start[-1], dtype=np.int32),
            start=start - start[0],
            left=np.stack([folds.train_weight(fold) for fold in range(folds.n_folds)]),
            rows=folds.row[every].astype(np.int32),
            rows_start=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            entries=every,
            is_second=np.zeros(len(every), bool),
        )

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of held-out entries of each cluster."""
        return np.diff(self.rows_start[:: len(self.left)])

    def take(self, clusters: np.ndarray) -> Layout:
        """Return the layout of some clusters."""
        n_pairs = (len(self.start) - 1) // len(self.sizes)
        own, start = _take_groups(self.start, clusters, n_pairs)
        own_rows, rows_start = _take_groups(self.rows_start, clusters, len(self.left))
        return Layout(
            self.members[own], start, self.left, self.rows[own_rows], rows_start,
            self.entries[own_rows], self.is_second[own_rows],
        )  # fmt: skip


def _grouped(group: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the stable order by group, and the first of each group in it, then their number."""
    order = group_order(group)
    return order, np.searchsorted(group[order], np.arange(n_groups + 1))


def _take_groups(start: np.ndarray, clusters: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Select all groups of some clusters; each cluster has n groups, with offsets `start`.

    Returns the indices of their elements, and the offset of each group in them, both int64.
    """
    groups = (clusters[:, None] * n + np.arange(n)).reshape(-1)
    sizes = start[groups + 1] - start[groups]
    ends = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    index = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes) + np.repeat(start[groups], sizes)
    return index, ends


# alpha of a fold's variables, and K alpha at its held-out entries, float64 (n_entries, n_pairs)
KernelSums = tuple[np.ndarray, np.ndarray]


def held_out_values(
    solver: FormulationSolver | LevelSolver,
    folds: Folds,
    batch: Iterable[int],
    known: dict[int, KernelSums] | None = None,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Iterate over the decision values of the held-out entries of a batch of folds.

    `solver` has solved the folds of the batch; a LevelSolver predicts by its clusters. `known` has
    kernel sums of an earlier solution of each fold. They save kernel values if the solutions are
    similar, and are replaced by the sums of the new solution. Yields slices of entries with their
    values, float64 (m, n_pairs), nan if a fold or a cluster lacks a class of the pair. Raises
    NoMarginError and Stopped.
    """
    if isinstance(solver, LevelSolver):
        for k, fold in enumerate(batch):
            for block in _blocks(solver.solver, folds, fold):
                yield block, _values_by_clusters(solver, k, folds.row[block])
        return
    rho, margin = _offsets_and_margins(solver)
    component, n_pairs = solver.components.row_component, solver.formulation.n_problems_of_fold
    for k, fold in enumerate(batch):
        own = slice(k * n_pairs, (k + 1) * n_pairs)
        variables = solver.formulation.variables_of_fold(k)
        alpha = summed = solver.alpha[variables]
        # sums are linear in alpha: for a similar alpha, add those of the difference
        earlier = None if known is None else known.get(int(fold))
        if earlier is not None:
            change = alpha - earlier[0]
            if np.count_nonzero(change) < np.count_nonzero(alpha):
                summed = change
            else:
                earlier = None
        group = component[solver.formulation.problem.rows[variables]]
        begin, all_sums = folds.entries(fold).start, [np.zeros((0, n_pairs))]
        for block in _blocks(solver, folds, fold):
            targets = folds.row[block]
            sums = _kernel_sums(solver, k, summed, group, targets, component[targets])
            if earlier is not None:
                sums += earlier[1][block.start - begin : block.stop - begin]
            if known is not None:
                all_sums.append(sums)
            yield block, (sums - rho[own]) / margin[own]
        if known is not None:
            known[int(fold)] = alpha, np.concatenate(all_sums)


def _blocks(solver: FormulationSolver, folds: Folds, fold: int) -> list[slice]:
    """Divide the held-out entries of a fold into slices of BATCH_VALUES decision values."""
    entries = folds.entries(fold)
    return slices(
        entries.stop, BATCH_VALUES // solver.formulation.n_problems_of_fold, entries.start
    )


def _offsets_and_margins(solver: FormulationSolver) -> tuple[np.ndarray, np.ndarray]:
    """Return rho of each problem, nan if it has no variables, and the divisor of its values.

    Raises NoMarginError.
    """
    rho, margin = solver.offsets_and_margins(Subproblems.of_problems(solver.formulation))
    is_empty = np.diff(solver.formulation.start) == 0
    rho[is_empty], margin[is_empty] = np.nan, 1.0
    if not solver.task.divides_by_margin:
        return rho, np.ones_like(rho)
    check_margins(margin)
    return rho, margin


def _values_by_clusters(level: LevelSolver, k: int, targets: np.ndarray) -> np.ndarray:
    """Compute values of rows by fold k; near a cluster boundary, blend those of both clusters."""
    solver, n_pairs = level.solver, level.formulation.n_problems_of_fold
    variables = level.formulation.variables_of_fold(k)
    alpha, cluster = solver.alpha[variables], level.cluster[variables]
    offset = level.offsets()[:, k * n_pairs : (k + 1) * n_pairs]

    def values_by(rows: np.ndarray | slice, own: np.ndarray) -> np.ndarray:
        return _kernel_sums(solver, k, alpha, cluster, targets[rows], own) - offset[own]

    return blended(
        values_by,
        level.division.placed.take(targets),
        level.division.partition.blend,
    )


def _kernel_sums(
    solver: FormulationSolver,
    k: int,
    alpha: np.ndarray,
    group: np.ndarray,
    targets: np.ndarray,
    target_group: np.ndarray,
) -> np.ndarray:
    """Compute sums of alpha K at target rows by the solution of fold k, float64 (m, n_pairs).

    `alpha` and `group` are those of the variables of the fold. Only variables in the group of a
    target contribute: its component, or one of its clusters.
    """
    support, n_pairs = np.flatnonzero(alpha), solver.formulation.n_problems_of_fold
    variables = solver.formulation.variables_of_fold(k)[support]
    row = solver.formulation.problem.rows[variables]
    column = solver.formulation.problem_of(variables) - k * n_pairs
    alpha, group = alpha[support], group[support]
    options = KernelEvalOptions(solver.needs_float64, solver.cutoff, solver.control.stop)
    sums = np.zeros((len(targets), n_pairs))
    for shared in distinct(target_group):
        own, other = target_group == shared, group == shared
        sums[own], _ = weighted_sums(
            solver.data, targets[own], row[other], column[other], alpha[other], n_pairs, options
        )
    return sums
