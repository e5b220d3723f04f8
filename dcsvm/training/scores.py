"""Losses on held-out rows: of rows held out once, and of settings by exact or early models.

ClusterScorer solves settings of a grid cluster by cluster, and predicts the held-out rows of each.
Models are early models, or exact ones of few rows if one cluster has all rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from operator import attrgetter

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import slices
from dcsvm.data.dataset import Dataset
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.sources import Assignment, Partition, blended
from dcsvm.machine import usable_threads
from dcsvm.model.metrics import DEFINITIONS, Outcome
from dcsvm.model.parts import coupled, most_voted, pair_probabilities
from dcsvm.problem.data_gamma import EqualRowsError
from dcsvm.problem.folds import Folds
from dcsvm.problem.formulation import BoxQP, balanced_factors, pairs_of
from dcsvm.problem.option_table import CLASSIFIERS
from dcsvm.problem.options import TrainOptions
from dcsvm.training.engine import Prepared, new_tree
from dcsvm.training.fit import fit
from dcsvm.training.held_out import Layout, Score, Setting
from dcsvm.training.level_partition import ClusteredFormulation, LevelPartition
from dcsvm.training.memory import Plan
from dcsvm.training.probability import fit_sigmoid
from dcsvm.training.report import Progress
from dcsvm.training.state import RunControl

Predictions = tuple[np.ndarray, np.ndarray | None]  # classes or targets, decision values
Predict = Callable[[int, np.ndarray], Predictions]  # of a setting by index, and entries


def with_probabilities(outcome: Outcome) -> Outcome:
    """Add probabilities: of the sigmoids that fit the decision values of the class pairs best.

    Those of several classes are coupled as by the option -b 1.
    """
    values, classes = outcome.values, outcome.classes
    assert values is not None and classes is not None
    fits = np.zeros((2, values.shape[1]))  # without rows of a pair its classes are equally likely
    for pair, (first, second) in enumerate(pairs_of(len(classes))):
        is_first = outcome.labels == classes[first]
        own = is_first | (outcome.labels == classes[second])
        if own.any():
            weights = None if outcome.weights is None else outcome.weights[own]
            fits[:, pair] = fit_sigmoid(values[own, pair], is_first[own], weights)
    probabilities = coupled(pair_probabilities(values, *fits), len(classes))
    return replace(outcome, probabilities=probabilities)


def held_out(
    parts: Iterable[tuple[Dataset, np.ndarray]],
    options: TrainOptions,
    stop: _core.Stop,
    *,
    metric: str | None = None,
    weights: np.ndarray | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Train on some rows and predict others, several times; return the joined outcome.

    Each of the `parts` is a data set, and which of its rows are held out, bool (n,). The outcome is
    in the order of the held-out rows, and has what the metric needs, with `weights` (n,) of the
    rows. Raises Stopped.
    """
    outcomes, rows = [], []
    for data, is_held in parts:
        control = RunControl(progress or Progress(), stop)
        outcomes.append(_held_out_once(data, is_held, options, control))
        rows.append(np.flatnonzero(is_held))
    of_all, held = _joined(outcomes), np.concatenate(rows)
    if weights is not None:
        of_all = replace(of_all, weights=weights[held])
    needs_values = metric is not None and DEFINITIONS[metric].needs_values
    if needs_values:
        of_all = with_probabilities(of_all)
    if not needs_values or (of_all.classes is not None and len(of_all.classes) > 2):
        of_all = replace(of_all, values=None)
    return of_all.take(np.argsort(held, kind="stable"))


def _held_out_once(
    data: Dataset, is_held: np.ndarray, options: TrainOptions, control: RunControl
) -> Outcome:
    """Train on the other rows and predict the held-out ones. Raises Stopped."""
    trained, tested = np.flatnonzero(~is_held), np.flatnonzero(is_held)
    labels, weights = data.labels[tested], data.sample_weight
    classes = np.unique(data.labels) if options.svm_type in CLASSIFIERS else None
    first = data.labels[trained][:1]
    if classes is not None and np.all(data.labels[trained] == first):
        values = _values_of_pairs(first, np.zeros((len(tested), 0)), classes)
        return Outcome(labels, np.repeat(first, len(tested)), values, classes=classes)
    own = Dataset(
        data.rows.take(trained), data.labels[trained],
        sample_weight=None if weights is None else weights[trained],
    )  # fmt: skip
    try:
        model = fit(own, options, control)
    except EqualRowsError:  # K is 1 for any gamma
        model = fit(own, replace(options, gamma=1.0), control)
    if model.report.stopped:
        raise _core.Stopped
    threads = usable_threads(options.threads)
    values = model.pair_values(data.rows.take(tested), None, threads)
    predicted = model.predicted_from(values)
    if classes is None:
        return Outcome(labels, predicted)
    return Outcome(
        labels, predicted, _values_of_pairs(model.labels, values, classes), classes=classes
    )


def _values_of_pairs(labels: np.ndarray, values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Turn decision values of the pairs of labels into those of the pairs of all sorted classes.

    As in LIBSVM, a value is 1 or -1 for the class that the labels have, 0 if they have neither.
    """
    has_class = np.isin(classes, labels).astype(np.float64)
    first, second = np.triu_indices(len(classes), 1)
    result = np.tile(has_class[first] - has_class[second], (len(values), 1))
    pair_of = np.zeros((len(classes), len(classes)), np.int64)
    pair_of[first, second] = np.arange(len(first))
    # labels may be in another order, in which the signs of pairs differ
    place = np.searchsorted(classes, labels)
    first, second = (place[k] for k in np.triu_indices(len(labels), 1))
    pairs = pair_of[np.minimum(first, second), np.maximum(first, second)]
    result[:, pairs] = np.where(first < second, values, -values)
    return result


def _joined(outcomes: list[Outcome]) -> Outcome:
    """Join outcomes of different rows of a data set."""
    if len(outcomes) == 1:
        return outcomes[0]

    def of_all(name: str) -> np.ndarray | None:
        parts = [getattr(outcome, name) for outcome in outcomes]
        return None if parts[0] is None else np.concatenate(parts)

    labels, predicted = of_all("labels"), of_all("predicted")
    assert labels is not None and predicted is not None
    return Outcome(
        labels, predicted, of_all("values"), of_all("probabilities"), of_all("weights"),
        outcomes[0].classes,
    )  # fmt: skip


class HeldOutLosses:
    """Losses so far of settings that are scored together, on the held-out entries of folds.

    Attributes
    ----------
    settings : their gamma and epsilon are the same, and C ascends.
    metric : the definition of the metric.
    truth : (n_entries,), class index or target of each entry of `folds`.
    loss : float64 (n_settings, n_folds), total loss of the entries scored so far; 0 if the metric
        has no losses of rows.
    weight : float64 (n_settings, n_folds), total weight of these entries.
    n_rows : int64 (n_settings,), number of input rows of these entries.
    is_scored : bool (n_entries,), whether an entry has been scored or is never held out.
    in_race : bool (n_settings,), whether the setting has not been pruned.
    converged : bool (n_settings,), whether all solutions so far converged.
    n_sv : int64 (n_settings,), number of support vectors of these solutions.
    seconds : float64 (n_settings,), time spent on each setting.
    """

    def __init__(
        self, prepared: Prepared, folds: Folds, metric: str, settings: list[Setting], n_models: int
    ) -> None:
        """Start without scores; `n_models` models together have `n_sv` support vectors."""
        self.settings, self.n_models = settings, n_models
        self.metric, self.folds, self.task = DEFINITIONS[metric], folds, prepared.task
        self.truth = prepared.targets[folds.row]
        self.factors: np.ndarray | None = None
        if self.metric.is_balanced:
            held = folds.held  # they may have other shares of the classes than the other rows
            n_classes = prepared.task.n_classes
            self.factors = balanced_factors(self.truth[held], folds.weight[held], n_classes)
        n = len(settings)
        self.loss, self.weight = np.zeros((n, folds.n_folds)), np.zeros((n, folds.n_folds))
        self.n_rows, self.is_scored = np.zeros(n, np.int64), folds.fold < 0
        self.in_race, self.converged = np.ones(n, bool), np.ones(n, bool)
        self.n_sv, self.seconds = np.zeros(n, np.int64), np.zeros(n)

    @property
    def is_by_rows(self) -> bool:
        """Whether the sum of losses of rows shows which setting is best."""
        return self.metric.row_losses is not None

    @property
    def is_complete(self) -> bool:
        return bool(self.is_scored.all())

    @property
    def n_finished(self) -> float:
        """Number of settings pruned or scored; those in the race count by their share of rows."""
        share = self.is_scored[self.folds.held].mean()
        return float(np.sum(np.where(self.in_race, share, 1.0)))

    @cached_property
    def lone_class(self) -> np.ndarray:
        """Training class of each entry's fold if it has only one, else -1; int64 (n_entries,)."""
        if not self.task.is_classification:
            return np.full(len(self.truth), -1)
        return self.folds.classes_alone(self.truth, self.task.n_classes)

    @cached_property
    def _values_of_one_class(self) -> np.ndarray:
        """Values of the pairs of which a fold lacks a class, else 0; float64 (n_folds, n_pairs)."""
        n_classes = self.task.n_classes
        has_class = self.folds.learns(self.truth, n_classes).astype(np.float64)
        first, second = np.triu_indices(n_classes, 1)
        return has_class[:, first] - has_class[:, second]

    def of_rows(self, entries: np.ndarray | slice, predicted: np.ndarray) -> np.ndarray:
        """Compute the losses (m,) of entries from class indices or values (m,).

        For balanced-accuracy, an error in class k counts n / (n_classes n_k) times.
        """
        assert self.metric.row_losses is not None
        truth = self.truth[entries]
        losses = self.metric.row_losses(truth, predicted)
        return losses if self.factors is None else self.factors[truth] * losses

    def add(
        self, k: int, entries: np.ndarray, loss: np.ndarray | float, weight: np.ndarray
    ) -> None:
        """Add entries of setting k, with their total loss and weight by fold, (n_folds,)."""
        self.is_scored[entries] = True
        self.loss[k] += loss
        self.weight[k] += weight
        self.n_rows[k] += self.folds.counts[entries].sum()

    def add_solutions(self, k: int, *, converged: bool, n_sv: int) -> None:
        """Add solutions of setting k."""
        self.converged[k] &= converged
        self.n_sv[k] += n_sv

    def add_seconds(self, settings: list[int] | slice, seconds: np.ndarray | float) -> None:
        """Add time spent on some of the settings, given by index."""
        self.seconds[settings] += seconds

    def prune(self, limit: float) -> list[int]:
        """Prune the settings whose loss so far exceeds the limit; return them by index.

        Settings that are scored on all rows are not pruned.
        """
        if self.is_complete:
            return []
        pruned = np.flatnonzero(self.in_race & (self.loss.sum(axis=1) > limit))
        self.in_race[pruned] = False
        return pruned.tolist()

    def score(self, k: int, predict: Predict) -> Score:
        """Return the score of setting k on the entries scored so far.

        `predict` predicts entries, for metrics without losses of rows.
        """
        is_complete = bool(self.is_complete and self.in_race[k])
        if self.is_by_rows or not self.n_rows[k]:
            total, weight = self.loss[k], self.weight[k]
            with np.errstate(invalid="ignore"):  # a fold without entries has nan
                loss, losses = float(total.sum() / (weight.sum() or 1.0)), total / weight
        else:
            entries = np.flatnonzero(self.is_scored & (self.folds.fold >= 0))
            loss, losses = self._of_predictions(entries, *predict(k, entries))
        return Score(
            setting=self.settings[k],
            loss=loss,
            losses=tuple(losses.tolist()),
            n_rows=int(self.n_rows[k]),
            weight=float(self.weight[k].sum()),
            is_complete=is_complete,
            converged=bool(self.converged[k]),
            n_sv=int(self.n_sv[k]) // self.n_models if is_complete else None,
            seconds=float(self.seconds[k]),
        )

    def _of_predictions(
        self, entries: np.ndarray, predicted: np.ndarray, values: np.ndarray | None
    ) -> tuple[float, np.ndarray]:
        """Compute the loss of all these entries, and of each fold (n_folds,), nan without rows.

        `values` (m, n_pairs) are decision values of classes. A fold without training rows of one
        class of a pair has the value 1 or -1, as for probabilities; a cluster without a model has
        0.
        """
        fold, weights = self.folds.fold[entries], self.folds.weight[entries]
        classes = np.arange(self.task.n_classes)
        outcome = Outcome(self.truth[entries], predicted, None, None, weights, classes)
        if self.metric.needs_values:
            assert values is not None
            of_one_class = self._values_of_one_class[fold]
            is_known = (of_one_class == 0) & ~np.isnan(values)
            values = np.where(is_known, values, of_one_class)
            outcome = with_probabilities(replace(outcome, values=values))
        of_folds = np.full(self.folds.n_folds, np.nan)
        for k in np.unique(fold):
            of_folds[k] = self.metric.loss(outcome.take(fold == k))
        return self.metric.loss(outcome), of_folds


def clusters_of(prepared: Prepared, level: int, stop: _core.Stop) -> LevelPartition:
    """Find the clusters of a level as for early models, without components. Raises Stopped.

    Level 0 has one cluster of all rows.
    """
    options, rows = prepared.options, prepared.data.rows
    if level == 0:
        root = Partition(prepared.data.kernel, rows.take(np.zeros(0, np.int32)), ())
        return LevelPartition(root, Assignment.at_root(rows.n_samples))
    tree = new_tree(prepared.engine, options, prepared.row_components.order)
    Plan((level,), (), level, options.branching).grow(tree, level, options, stop)
    placed = tree.placed[level]
    assert placed is not None
    return LevelPartition.overlapping(tree.partition(level), placed, options.early_overlap)


SCORE_TOLERANCE = 1e-2  # of early models; a tenth of it changes 1 prediction in 10,000
KERNEL_SHARE = 2  # kernel values get 1/2 of the memory budget, decision values the rest
PILOT_ROWS = 2000  # least number of rows in a trial of all settings
BATCHES = 32  # batches of clusters; settings may be pruned after each batch
MIN_BATCH = 2  # clusters in a batch
MIN_TRIED = 4  # settings; a trial of fewer settings does not pay


class ClusterScorer:
    """Scores settings cluster by cluster: by early models, or exact ones in one cluster.

    All settings share the clusters; settings of one axis share kernel values.

    Attributes
    ----------
    estimates : scores of the trial of all settings, on part of the clusters.
    most_at_once : how many settings are scored together: their decision values fit into memory.
    tolerances : the tolerance of the models.
    """

    def __init__(
        self, prepared: Prepared, folds: Folds, metric: str, level: int, stop: _core.Stop
    ) -> None:
        """Divide prepared rows into the clusters of a level; level 0 has one. Raises Stopped."""
        self.prepared, self.folds, self.metric, self.stop = prepared, folds, metric, stop
        self.division, self.is_exact = clusters_of(prepared, level, stop), level == 0
        tolerance = prepared.options.tolerance
        self.tolerances = (tolerance if self.is_exact else max(tolerance, SCORE_TOLERANCE),)
        # the held-out entries that two clusters predict, and the index of each entry in them
        placed, blend = self.division.placed, self.division.partition.blend
        is_near = (placed.shares(blend)[folds.row] < 1.0) & (placed.across(folds.row) >= 0)
        self.in_two = np.flatnonzero(is_near & (folds.fold >= 0))
        self.index_in_two = np.full(len(folds.fold), -1)
        self.index_in_two[self.in_two] = np.arange(len(self.in_two))
        # epsilon changes only the linear term: all epsilons share the layout
        self.problems: dict[float, BoxQP] = {}
        clustered = self._clustered(prepared.options.epsilon)
        self.layout = Layout.of(clustered, folds, self.division, self.in_two)
        self.n_pairs = clustered.formulation.n_problems
        self.memory_bytes = prepared.solver_bytes(clustered.formulation) // KERNEL_SHARE
        n_values = (len(folds.fold) + len(self.in_two)) * self.n_pairs
        self.most_at_once = max(1, self.memory_bytes // (4 * n_values + 1))
        self.restart()

    def restart(self) -> None:
        """Start another race: in random order of the clusters, without estimates."""
        rng = np.random.default_rng(self.prepared.options.seed)
        self.clusters = rng.permutation(len(self.layout.sizes))
        self.estimates: list[Score] = []
        self.best: tuple[Score, np.ndarray] | None = None  # and its loss on each held-out entry

    def _clustered(self, epsilon: float) -> ClusteredFormulation:
        """Formulate the problems of all clusters, with C = 1 and unit weights.

        The core scales the bounds by the training weights of the folds and by C.
        """
        task, options = self.prepared.task, self.prepared.options
        unit_options = replace(options, C=1.0, epsilon=epsilon, probability=False)
        unit = replace(task, options=unit_options, C_of_class=task.C_of_class / options.C)
        targets = self.prepared.targets
        clustered = self.division.clustered(unit.formulate(targets, np.ones(len(targets))))
        self.problems[epsilon] = clustered.formulation.problem
        return clustered

    def _problem(self, epsilon: float | None) -> BoxQP:
        """Return the problem of an epsilon; None is that of the options."""
        epsilon = self.prepared.options.epsilon if epsilon is None else epsilon
        if epsilon not in self.problems:
            self._clustered(epsilon)
        return self.problems[epsilon]

    def _data(self, gamma: float | None) -> KernelRows:
        data = self.prepared.data
        return data if gamma is None else data.with_kernel(replace(data.kernel, gamma=gamma))

    def try_all(self, settings: list[Setting], share: float) -> None:
        """Add the estimates of all settings, on clusters with at least a share of the rows.

        There are none if this would take more than half of the clusters, or with fewer than
        MIN_TRIED settings. Raises Stopped.
        """
        sizes = self.layout.sizes[self.clusters]
        n_rows = max(share * sizes.sum(), PILOT_ROWS)
        n_clusters = int(np.searchsorted(np.cumsum(sizes), n_rows)) + 1
        if 2 * n_clusters > len(sizes) or len(settings) < MIN_TRIED:
            return
        for axis in dict.fromkeys(setting.axis for setting in settings):
            same_axis = [setting for setting in settings if setting.axis == axis]
            same_axis.sort(key=attrgetter("C"))
            for together in slices(len(same_axis), self.most_at_once):
                losses = self.begin(same_axis[together], self.tolerances[0])
                self._solve(self.clusters[:n_clusters])
                self.estimates += [self.score(k) for k in range(len(losses.settings))]

    def ordered(self, settings: list[Setting]) -> list[Setting]:
        """Order settings by ascending estimates."""
        losses = {score.setting: score.loss for score in self.estimates}
        if not losses:
            return settings
        return sorted(settings, key=lambda setting: (losses[setting], setting.C))

    def known(self, _setting: Setting) -> Score | None:
        """Return None: the solutions of a smaller C are not known to solve another."""
        return None

    def begin(self, settings: list[Setting], tolerance: float) -> HeldOutLosses:
        """Start to score settings with ascending C and the same gamma and epsilon."""
        n, n_clusters, folds = len(settings), len(self.clusters), self.folds
        self.losses = HeldOutLosses(self.prepared, folds, self.metric, settings, folds.n_folds)
        self.tolerance, self.is_solved = tolerance, np.zeros(n_clusters, bool)
        # decision values of each entry by the nearest cluster, and of some by the second one
        self.nearest_values = self.second_values = np.empty(0)  # frees memory
        self.nearest_values = np.empty((n, len(folds.fold), self.n_pairs), np.float32)
        self.second_values = np.empty((n, len(self.in_two), self.n_pairs), np.float32)
        batch_size = max(n_clusters // BATCHES, MIN_BATCH)
        self.unsolved = [self.clusters[batch] for batch in slices(n_clusters, batch_size)]
        return self.losses

    def solve(self, _limit: float) -> None:
        """Solve the next batch of clusters. Raises Stopped."""
        self._solve(self.unsolved.pop(0))

    def _solve(self, clusters: np.ndarray) -> None:
        """Solve clusters for every C in the race, and predict their held-out rows."""
        start, losses = time.perf_counter(), self.losses
        # by descending size, so that threads finish at about the same time
        clusters = clusters[np.argsort(-self.layout.sizes[clusters], kind="stable")]
        racing, layout = np.flatnonzero(losses.in_race).tolist(), self.layout.take(clusters)
        data = self._data(losses.settings[0].gamma)
        values, reports = _core.held_out_values(
            data.setup, data.points, self._problem(losses.settings[0].epsilon), layout,
            [losses.settings[k].C for k in racing], self.tolerance,
            self.prepared.task.is_classification, not self.is_exact, self.memory_bytes,
            data.threads, self.stop,
        )  # fmt: skip
        second = layout.is_second
        for k, own, report in zip(racing, values, reports, strict=True):
            self.nearest_values[k, layout.entries[~second]] = own[~second]
            self.second_values[k, self.index_in_two[layout.entries[second]]] = own[second]
            losses.add_solutions(k, converged=report["missed"] == 0, n_sv=report["support"])
        self.is_solved[clusters] = True
        self._add(racing)
        work = 1.0 + np.array([report["iterations"] for report in reports])
        losses.add_seconds(racing, (time.perf_counter() - start) * work / work.sum())

    def _add(self, racing: list[int]) -> None:
        """Add the entries whose clusters are all solved to the losses."""
        folds, losses, placed = self.folds, self.losses, self.division.placed
        is_ready = ~losses.is_scored & self.is_solved[placed.nearest[folds.row]]
        is_ready[self.in_two] &= self.is_solved[placed.across(folds.row[self.in_two])]
        entries = np.flatnonzero(is_ready)
        fold = folds.fold[entries]
        weight = np.bincount(fold, folds.weight[entries], folds.n_folds)
        for k in racing:
            row_losses = self._weighted_losses(k, entries) if losses.is_by_rows else None
            loss = 0.0 if row_losses is None else np.bincount(fold, row_losses, folds.n_folds)
            losses.add(k, entries, loss, weight)

    def _weighted_losses(self, k: int, entries: np.ndarray) -> np.ndarray:
        """Compute the weighted losses (m,) of single entries."""
        losses = self.losses.of_rows(entries, self._predict(k, entries)[0])
        return self.folds.weight[entries] * losses

    def _predict(self, k: int, entries: np.ndarray) -> Predictions:
        """Predict classes or targets (m,) of entries; return also the decision values."""

        def values_by(index: np.ndarray | slice, _cluster: np.ndarray) -> np.ndarray:
            if isinstance(index, slice):
                return self.nearest_values[k, entries].astype(np.float64)
            return self.second_values[k, self.index_in_two[entries[index]]].astype(np.float64)

        placed = self.division.placed.take(self.folds.row[entries])
        values = blended(values_by, placed, self.division.partition.blend)
        if not self.prepared.task.is_classification:
            means = self._means[self.folds.fold[entries]]
            return np.where(np.isnan(values[:, 0]), means, values[:, 0]), None
        lone, n_classes = self.losses.lone_class[entries], self.prepared.task.n_classes
        return np.where(lone >= 0, lone, most_voted(values, n_classes)), values

    @cached_property
    def _means(self) -> np.ndarray:
        """Mean training target of each fold: the prediction of clusters without training rows."""
        weights = self.layout.left
        return weights @ self.prepared.targets / weights.sum(axis=1)

    def score(self, k: int) -> Score:
        """Return the score of setting k on the clusters solved so far."""
        return self.losses.score(k, self._predict)

    def finish(self, k: int, score: Score, *, is_best: bool) -> None:
        """Keep the losses of the best setting, and sort clusters by them.

        Clusters with the largest loss per row are solved first for the settings that follow.
        """
        if not (is_best and self.losses.is_by_rows):
            return
        held = self.folds.held
        losses = self._weighted_losses(k, np.arange(held.start, held.stop))
        self.best = score, losses
        cluster = self.division.placed.nearest[self.folds.row[held]]
        lost = np.bincount(cluster, losses, len(self.clusters))
        self.clusters = np.argsort(-lost / np.maximum(self.layout.sizes, 1), kind="stable")

    def estimate(self, k: int) -> Score:
        """Estimate the score of a pruned setting; it is never better than the best score.

        The estimate is a weighted mean of two losses. The first is the loss of the best setting
        times the ratio of both settings' losses on the rows seen. Its weight is the share of rows
        seen. The second is the loss in the trial.
        """
        score = self.score(k)
        if self.best is None:
            return score
        best, losses = self.best
        lost = losses[self.losses.is_scored[self.folds.held]].sum()
        by_best = best.total * score.total / lost if lost > 0 else score.total
        tried = [other.loss for other in self.estimates if other.setting == score.setting]
        seen = score.weight / best.weight
        by_trial = tried[0] * best.weight if tried else by_best
        total = max(seen * by_best + (1.0 - seen) * by_trial, score.total)
        factor = total / best.weight / score.loss
        of_folds = tuple(loss * factor for loss in score.losses)
        return replace(score, loss=score.loss * factor, losses=of_folds)
