"""Losses on held-out rows: of whole folds, of rows held out once, and cluster by cluster.

Cluster by cluster, settings of one gamma and epsilon are scored by early models, or by exact ones
of few rows if one cluster has all rows. All settings share the clusters; settings of one axis share
kernel values. Rows are arranged by clusters and folds, as the core requires.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import group_order
from dcsvm.data.dataset import Dataset
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.sources import Assignment, blended
from dcsvm.machine import usable_threads
from dcsvm.model.metrics import DEFINITIONS, Outcome
from dcsvm.model.model import Model
from dcsvm.model.parts import most_voted
from dcsvm.problem.data_gamma import EqualRowsError
from dcsvm.problem.folds import Folds
from dcsvm.problem.formulation import Formulation, balanced_factors
from dcsvm.problem.option_table import CLASSIFIERS
from dcsvm.problem.options import TrainOptions
from dcsvm.training.engine import Prepared, new_tree
from dcsvm.training.fit import fit
from dcsvm.training.held_out import Score, Setting
from dcsvm.training.level_partition import ClusteredFormulation, LevelPartition
from dcsvm.training.probability import fit_sigmoid, sigmoid
from dcsvm.training.report import Progress
from dcsvm.training.state import RunControl


def with_probabilities(outcome: Outcome) -> Outcome:
    """Add the probabilities of the sigmoid that fits the decision values best."""
    assert outcome.values is not None
    slope, offset = fit_sigmoid(outcome.values, outcome.is_first, outcome.weights)
    first = sigmoid(outcome.values, slope, offset)
    return replace(outcome, probabilities=np.column_stack([first, 1 - first]))


class FoldLosses:
    """Losses of the predictions of held-out entries of folds.

    Attributes
    ----------
    metric : the definition of the metric.
    truth : (n_entries,), class index or target of each entry of `folds`.
    """

    def __init__(self, prepared: Prepared, folds: Folds, metric: str) -> None:
        self.metric, self.folds, self.task = DEFINITIONS[metric], folds, prepared.task
        self.truth = prepared.targets[folds.row]
        self.factors: np.ndarray | None = None
        if self.metric.is_balanced:
            weights, n_classes = prepared.sample_weight, prepared.task.n_classes
            self.factors = balanced_factors(prepared.targets, weights, n_classes)

    @property
    def is_by_rows(self) -> bool:
        """Whether the sum of losses of rows shows which setting is best."""
        return self.metric.row_losses is not None

    @cached_property
    def alone(self) -> np.ndarray:
        """Training class of each entry's fold if it has only one, else -1; int64 (n_entries,)."""
        if not self.task.is_classification:
            return np.full(len(self.truth), -1)
        return self.folds.classes_alone(self.truth, self.task.n_classes)

    def of_rows(self, entries: np.ndarray | slice, predicted: np.ndarray) -> np.ndarray:
        """Compute the losses (m,) of entries from class indices or values (m,).

        For balanced-accuracy, an error in class k counts n / (n_classes n_k) times.
        """
        assert self.metric.row_losses is not None
        truth = self.truth[entries]
        losses = self.metric.row_losses(truth, predicted)
        return losses if self.factors is None else self.factors[truth] * losses

    def of_folds(
        self, entries: np.ndarray, predicted: np.ndarray, values: np.ndarray | None
    ) -> tuple[float, np.ndarray]:
        """Compute the loss of all these entries, and of each fold (n_folds,), nan without rows.

        `values` (m,) are decision values of two classes. A fold with one training class has the
        value 1 or -1, as for probabilities; a cluster without a model has 0.
        """
        fold, weights = self.folds.fold[entries], self.folds.weight[entries]
        classes = np.arange(self.task.n_classes)
        outcome = Outcome(self.truth[entries], predicted, None, None, weights, classes)
        if self.metric.needs_values:
            assert values is not None
            alone = self.alone[entries]
            values = np.where(alone >= 0, 1.0 - 2.0 * alone, values)
            outcome = replace(outcome, values=np.where(np.isnan(values), 0.0, values))
        if self.metric.needs_probabilities:
            outcome = with_probabilities(outcome)
        of_folds = np.full(self.folds.n_folds, np.nan)
        for k in np.unique(fold):
            of_folds[k] = self.metric.loss(outcome.take(fold == k))
        return self.metric.loss(outcome), of_folds


N_DRAWN = 50  # bootstrap samples of a standard error


def held_out(
    data: Dataset, is_held: np.ndarray, options: TrainOptions, stop: _core.Stop
) -> Outcome:
    """Train on the other rows and predict the held-out ones. Raises Stopped."""
    trained, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
    labels, weights = data.labels[held], data.sample_weight
    first = data.labels[trained][:1]
    if options.svm_type in CLASSIFIERS and np.all(data.labels[trained] == first):
        return Outcome(labels, np.repeat(first, len(held)))
    own = Dataset(
        data.rows.take(trained), data.labels[trained],
        sample_weight=None if weights is None else weights[trained],
    )  # fmt: skip
    control = RunControl(Progress(), stop)
    try:
        model = fit(own, options, control)
    except EqualRowsError:  # K is 1 for any gamma
        model = fit(own, replace(options, gamma=1.0), control)
    if model.report.stopped:
        raise _core.Stopped
    threads = usable_threads(options.threads)
    values = model.pair_values(data.rows.take(held), None, threads)
    return Outcome(labels, model.predicted_from(values), _first_sign(model, values))


def _first_sign(model: Model, values: np.ndarray) -> np.ndarray | None:
    """Return decision values that are positive for the smaller label of two, else None."""
    if len(model.labels) != 2:
        return None
    return values[:, 0] if model.labels[0] < model.labels[1] else -values[:, 0]


def _joined(several: list[Outcome]) -> Outcome:
    """Join outcomes of different rows; they have values only if all have."""
    labels, predicted = (
        np.concatenate([getattr(one, name) for one in several]) for name in ("labels", "predicted")
    )
    values = [one.values for one in several if one.values is not None]
    all_values = np.concatenate(values) if len(values) == len(several) else None
    return Outcome(labels, predicted, all_values, classes=np.unique(labels))


def loss_with_error(metric: str, several: list[Outcome]) -> tuple[float, float]:
    """Return the loss of a metric on all rows of several outcomes, and its standard error.

    The standard error is a bootstrap estimate.
    """
    one, outcome = DEFINITIONS[metric], _joined(several)
    if one.needs_probabilities:  # of the sigmoid that fits these decision values best
        outcome = with_probabilities(outcome)
    n = len(outcome.labels)
    drawn = np.random.default_rng(0).integers(0, n, (N_DRAWN, n))
    losses = [one.loss(outcome.take(some)) for some in [np.arange(n), *drawn]]
    return losses[0], float(np.nanstd(losses[1:]))


@dataclass(frozen=True, eq=False)
class HeldOutBatch:
    """Argument `held` of `_core.held_out_values` for a batch of clusters.

    `entries` int64 are the entries of `Folds` to predict, in the order of the values that the core
    returns. An entry occurs once for each of its clusters; `is_second` marks the second cluster.
    """

    members: np.ndarray
    start: np.ndarray
    left: np.ndarray
    rows: np.ndarray
    rows_start: np.ndarray
    entries: np.ndarray
    is_second: np.ndarray


@dataclass(frozen=True, eq=False)
class Layout:
    """The binary problems of all rows with C = 1, in `n_clusters` clusters, and the folds.

    `placed` assigns rows to clusters. If a row is nearer to a cluster boundary than `blend`, the
    predictions of two clusters are blended.
    """

    clustered: ClusteredFormulation
    folds: Folds
    placed: Assignment
    n_clusters: int
    blend: float

    @property
    def formulation(self) -> Formulation:
        return self.clustered.formulation

    @property
    def n_pairs(self) -> int:
        return self.formulation.n_problems

    @cached_property
    def left(self) -> np.ndarray:
        """Training weight of each row in each fold, float64 (n_folds, n_rows)."""
        return np.stack([self.folds.train_weight(fold) for fold in range(self.folds.n_folds)])

    @cached_property
    def blended(self) -> np.ndarray:
        """Held-out entries that two clusters predict, ascending."""
        row = self.folds.row
        is_near = self.placed.shares(self.blend)[row] < 1.0
        return np.flatnonzero(is_near & (self.placed.across(row) >= 0) & (self.folds.fold >= 0))

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """All variables (int32), grouped by cluster and pair, and the offset of each group."""
        part = (
            self.clustered.cluster.astype(np.int64) * self.n_pairs + self.formulation.problem_index
        )
        order = group_order(part).astype(np.int32)
        n_parts = self.n_clusters * self.n_pairs
        return order, np.searchsorted(part[order], np.arange(n_parts + 1))

    @cached_property
    def _entries(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Entries grouped by cluster and fold, flags of second clusters, and the group offsets."""
        held, row, two = self.folds.held, self.folds.row, self.blended
        entries = np.concatenate([np.arange(held.start, held.stop), two])
        cluster = np.concatenate([self.placed.nearest[row[held]], self.placed.across(row[two])])
        n_folds = self.folds.n_folds
        key = cluster.astype(np.int64) * n_folds + self.folds.fold[entries]
        order = group_order(key)
        start = np.searchsorted(key[order], np.arange(self.n_clusters * n_folds + 1))
        return entries[order], order >= held.stop - held.start, start

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of held-out entries of each cluster."""
        start = self._entries[2]
        return np.diff(start[:: self.folds.n_folds])

    def held(self, clusters: np.ndarray) -> HeldOutBatch:
        """Collect the arrays of a batch of clusters."""
        members, member_start = self._members
        entries, is_second, entry_start = self._entries
        own, start = _take_parts(member_start, clusters, self.n_pairs)
        own_entries, rows_start = _take_parts(entry_start, clusters, self.folds.n_folds)
        return HeldOutBatch(
            members=members[own],
            start=start,
            left=self.left,
            rows=self.folds.row[entries[own_entries]].astype(np.int32),
            rows_start=rows_start,
            entries=entries[own_entries],
            is_second=is_second[own_entries],
        )


def _take_parts(start: np.ndarray, clusters: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Select all parts of some clusters; each cluster has n parts, with offsets `start`.

    Returns the indices of their elements, and the offset of each part in them, both int64.
    """
    parts = (clusters[:, None] * n + np.arange(n)).reshape(-1)
    sizes = start[parts + 1] - start[parts]
    ends = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    index = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes) + np.repeat(start[parts], sizes)
    return index, ends


def whole(formulation: Formulation, folds: Folds, n_rows: int) -> Layout:
    """Make a layout with all rows in one cluster."""
    size = formulation.problem.size
    is_copy = np.zeros(size, bool)
    clustered = ClusteredFormulation(
        formulation, np.zeros(size, np.int32), np.arange(size), is_copy
    )
    return Layout(clustered, folds, Assignment.at_root(n_rows), 1, 0.0)


def in_clusters(formulation: Formulation, folds: Folds, division: LevelPartition) -> Layout:
    """Make a layout with the clusters of a level."""
    blend = division.partition.blend
    clustered = division.clustered(formulation)
    return Layout(clustered, folds, division.placed, division.n_clusters, blend)


def divided(prepared: Prepared, level: int, stop: _core.Stop) -> LevelPartition:
    """Find the clusters of a level as for early models, without components. Raises Stopped."""
    options = prepared.options
    tree = new_tree(prepared.engine, options, prepared.components.order)
    overlap = options.early_overlap
    for finer in range(1, level + 1):
        tree.grow(options.branching**finer, stop, second=overlap > 1)
    placed = tree.placed[level]
    assert placed is not None
    return LevelPartition.overlapping(tree.partition(level), placed, overlap)


def unit_formulation(prepared: Prepared, epsilon: float | None) -> Formulation:
    """Formulate the problems of prepared rows with C = 1 and unit weights.

    The core scales the bounds by the training weights of the folds and by C. If `epsilon` is None,
    the option is used.
    """
    task, options = prepared.task, prepared.options
    epsilon = options.epsilon if epsilon is None else epsilon
    unit_options = replace(options, C=1.0, epsilon=epsilon, probability=False)
    unit = replace(task, options=unit_options, C_of_class=task.C_of_class / options.C)
    return unit.formulate(prepared.targets, np.ones(len(prepared.targets)))


SCORE_TOLERANCE = 1e-2  # of early models; a tenth of it changes 1 prediction in 10,000
KERNEL_SHARE = 2  # kernel values get 1/2 of the memory budget, decision values the rest


class GridProblem:
    """Data that all settings of one epsilon share.

    Attributes
    ----------
    prepared, layout, folds : prepared rows, their clusters and their folds.
    is_exact : whether models are exact; otherwise they are early models.
    losses : the losses of the metric.
    """

    def __init__(self, prepared: Prepared, layout: Layout, metric: str, *, is_exact: bool) -> None:
        self.prepared, self.layout, self.folds = prepared, layout, layout.folds
        self.is_classification, self.is_exact = prepared.task.is_classification, is_exact
        self.losses = FoldLosses(prepared, self.folds, metric)
        tolerance = prepared.options.tolerance
        self.tolerance = tolerance if is_exact else max(tolerance, SCORE_TOLERANCE)

    @cached_property
    def means(self) -> np.ndarray:
        """Mean training target of each fold: the prediction of clusters without training rows."""
        weights = self.layout.left
        return weights @ self.prepared.targets / weights.sum(axis=1)

    @property
    def memory_bytes(self) -> int:
        """Memory for kernel values in bytes; decision values get the same amount."""
        return self.prepared.solver_bytes(self.layout.formulation) // KERNEL_SHARE

    @property
    def most_at_once(self) -> int:
        """Number of C to solve together: their decision values of all rows fit into memory."""
        n_values = len(self.folds.fold) + len(self.layout.blended)
        return max(1, self.memory_bytes // (4 * n_values * self.layout.n_pairs + 1))

    def solved(
        self, data: KernelRows, held: HeldOutBatch, penalties: Sequence[float], stop: _core.Stop
    ) -> tuple[np.ndarray, list[dict[str, int]]]:
        """Solve clusters for ascending C and predict their held-out rows. Raises Stopped.

        Returns decision values, float64 (n_C, n_entries, n_pairs), and one report per C.
        """
        return _core.held_out_values(
            data.setup, data.points, self.layout.formulation.problem, held, penalties,
            self.tolerance, self.is_classification, not self.is_exact, self.memory_bytes,
            data.threads, stop,
        )  # fmt: skip

    def predicted(self, entries: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Predict classes or targets (m,) of entries from their decision values (m, n_pairs)."""
        if not self.is_classification:
            means = self.means[self.folds.fold[entries]]
            return np.where(np.isnan(values[:, 0]), means, values[:, 0])
        alone = self.losses.alone[entries]
        return np.where(alone >= 0, alone, most_voted(values, self.prepared.task.n_classes))


class ClusterScores:
    """Scores of settings with ascending C and the same gamma and epsilon.

    Attributes
    ----------
    loss : float64 (n_C, n_folds), total loss of the rows predicted so far; 0 if the metric has no
        losses of rows.
    seen : float64 (n_C, n_folds), total weight of these rows.
    n_seen : int64 (n_C,), number of these rows.
    converged : bool (n_C,), whether all clusters solved so far converged.
    n_sv : int64 (n_C,), number of support vectors of these clusters.
    in_race : bool (n_C,), whether the setting has not been pruned.
    """

    def __init__(self, problem: GridProblem, settings: list[Setting]) -> None:
        self.problem, self.settings = problem, settings
        layout, n = problem.layout, len(settings)
        shape = n, problem.folds.n_folds
        self.loss, self.seen = np.zeros(shape), np.zeros(shape)
        self.n_seen = np.zeros(n, np.int64)
        self.converged, self.n_sv = np.ones(n, bool), np.zeros(n, np.int64)
        self.in_race, self.seconds = np.ones(n, bool), np.zeros(n)
        self.is_done = np.zeros(layout.n_clusters, bool)
        self.is_judged = problem.folds.fold < 0
        self.first = np.empty((n, len(problem.folds.fold), layout.n_pairs), np.float32)
        self.second = np.empty((n, len(layout.blended), layout.n_pairs), np.float32)
        self.of_blended = np.full(len(problem.folds.fold), -1)
        self.of_blended[layout.blended] = np.arange(len(layout.blended))

    def solve(self, data: KernelRows, clusters: np.ndarray, stop: _core.Stop) -> None:
        """Solve a batch of clusters for every C not yet pruned. Raises Stopped."""
        start = time.perf_counter()
        problem, alive = self.problem, np.flatnonzero(self.in_race)
        penalties, work = [self.settings[k].C for k in alive], np.ones(len(alive))
        held = problem.layout.held(clusters)
        values, reports = problem.solved(data, held, penalties, stop)
        second = held.is_second
        for k, own, report in zip(alive, values, reports, strict=True):
            self.first[k, held.entries[~second]] = own[~second]
            self.second[k, self.of_blended[held.entries[second]]] = own[second]
            self.converged[k] &= report["missed"] == 0
            self.n_sv[k] += report["support"]
        work += [report["iterations"] for report in reports]
        self.is_done[clusters] = True
        self._judge(alive)
        self.seconds[alive] += (time.perf_counter() - start) * work / work.sum()

    def _judge(self, alive: np.ndarray) -> None:
        """Add the losses of rows whose clusters are all solved."""
        problem, layout = self.problem, self.problem.layout
        row = problem.folds.row
        ready = ~self.is_judged & self.is_done[layout.placed.nearest[row]]
        two = layout.blended
        ready[two] &= self.is_done[layout.placed.across(row[two])]
        entries = np.flatnonzero(ready)
        self.is_judged[entries] = True
        fold = problem.folds.fold[entries]
        weight = np.bincount(fold, problem.folds.weight[entries], problem.folds.n_folds)
        for k in alive:
            if problem.losses.is_by_rows:
                losses = self._losses(k, entries)
                self.loss[k] += np.bincount(fold, losses, problem.folds.n_folds)
            self.seen[k] += weight
            self.n_seen[k] += problem.folds.counts[entries].sum()

    def _losses(self, k: int, entries: np.ndarray) -> np.ndarray:
        """Compute the weighted losses (m,) of single entries."""
        problem = self.problem
        predicted = problem.predicted(entries, self._values(k, entries))
        return problem.folds.weight[entries] * problem.losses.of_rows(entries, predicted)

    def _values(self, k: int, entries: np.ndarray) -> np.ndarray:
        """Return the decision values (m, n_pairs) of entries."""
        layout = self.problem.layout

        def values_by(index: np.ndarray | slice, _cluster: np.ndarray) -> np.ndarray:
            if isinstance(index, slice):
                return self.first[k, entries].astype(np.float64)
            return self.second[k, self.of_blended[entries[index]]].astype(np.float64)

        placed = layout.placed.take(self.problem.folds.row[entries])
        return blended(values_by, placed, layout.blend)

    def all_losses(self, k: int) -> np.ndarray:
        """Compute the loss of each held-out entry for a completely scored setting."""
        return self._losses(k, np.arange(len(self.is_judged))[self.problem.folds.held])

    def _loss(self, k: int) -> tuple[float, np.ndarray]:
        """Return the loss of the rows predicted so far, and that of each fold (n_folds,)."""
        problem, loss, seen = self.problem, self.loss[k], self.seen[k]
        if problem.losses.is_by_rows or not self.n_seen[k]:
            with np.errstate(invalid="ignore"):
                return float(loss.sum() / (seen.sum() or 1.0)), loss / seen
        entries = np.flatnonzero(self.is_judged & (problem.folds.fold >= 0))
        values = self._values(k, entries)
        return problem.losses.of_folds(entries, problem.predicted(entries, values), values[:, 0])

    def score(self, k: int) -> Score:
        seen, folds = self.seen[k], self.problem.folds
        is_complete = bool(self.is_judged.all() and self.in_race[k])
        loss, losses = self._loss(k)
        return Score(
            setting=self.settings[k],
            loss=loss,
            losses=tuple(losses.tolist()),
            n_rows=int(self.n_seen[k]),
            weight=float(seen.sum()),
            is_complete=is_complete,
            converged=bool(self.converged[k]),
            n_sv=int(self.n_sv[k]) // folds.n_folds if is_complete else None,
            seconds=float(self.seconds[k]),
        )
