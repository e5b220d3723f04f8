"""Grid search: score settings on held-out rows with early or exact models, and prune the others.

Exact models: folds are solved in batches, as in cross validation. Rows are prepared once for each
gamma and epsilon; all values of C share the clusters. The setting with the best estimate is scored
first. A setting is pruned if its loss on some folds exceeds the total loss of the best setting.
Classifiers are first solved to a loose tolerance. A setting whose loss is then far above the best
is pruned, the others are solved on from there. A solution without bounded variables also solves
every larger C.

Early models, or exact models of few rows: settings share one partition. A trial scores all settings
on part of the clusters. The best setting of the trial is then scored on all clusters. The others
follow by ascending loss in the trial. A setting is pruned once its loss exceeds the total loss of
the best setting. To prune early, each setting starts with the clusters where the best setting has
the largest loss per row. If one cluster has all rows, solutions are exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import as_weights
from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import UsedColumns
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.machine import usable_threads
from dcsvm.model.metrics import DEFINITIONS, check_labels, variance_of
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.folds import Folds
from dcsvm.problem.formulation import class_order
from dcsvm.problem.option_table import CLASSIFIERS, WITH_LEVELS, checked_metric
from dcsvm.problem.options import OptionError, TrainOptions
from dcsvm.training.engine import Prepared, of_square, prepare_rows
from dcsvm.training.extraction import NoMarginError
from dcsvm.training.held_out import Grid, Score, Setting, as_folds, best_of
from dcsvm.training.memory import MB, MIN_MEAN_CLUSTER, early_plan
from dcsvm.training.probability import CrossValidationRun
from dcsvm.training.report import Progress
from dcsvm.training.scores import (
    ClusterScores,
    FoldLosses,
    GridProblem,
    divided,
    in_clusters,
    unit_formulation,
    whole,
)
from dcsvm.training.warm_start import PathWarmStart

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


ROWS_OF_CLUSTER = 1200  # maximum of the mean training rows per cluster, for scores of early models
# Default overlap of clusters in a search. An overlap of 1 chooses the same settings at less than
# half the cost (docs/dcsvm-grid.md).
PLAIN = 1.0
MAX_WHOLE = 2048  # maximum rows in a single cluster; their kernel matrix stays in the CPU caches
TRIED_SHARE = 0.1  # share of the rows in a trial that precedes exact models
TRYING_THRESHOLD = 4000  # rows; with fewer, this trial does not pay


class Search:
    """Search for the best settings of a grid.

    Parameters
    ----------
    rows, labels : the rows, and classes or targets (n,).
    fold : int64 (n,), the fold that holds out each row, -1 for training rows of all folds.
    sample_weight : (n,), weight of each row, 1 by default; weight 2 counts as two equal rows.
    metric : a metric that fits the SVM type, by default accuracy or mse. Settings are not pruned
        by a metric that is no mean over rows, such as f1 or auc.
    every : whether to score settings on all rows even if they can no longer win.
    tell : progress callback, called with the number of finished settings.

    Attributes
    ----------
    n_folds : number of folds.

    Raises ValueError for invalid input.
    """

    def __init__(  # noqa: PLR0913 (keyword parameters)
        self,
        rows: Rows,
        labels: np.ndarray,
        fold: np.ndarray,
        options: TrainOptions,
        *,
        sample_weight: ArrayLike | None = None,
        every: bool = False,
        metric: str | None = None,
        stop: _core.Stop | None = None,
        tell: Callable[[float], None] | None = None,
    ) -> None:
        if options.probability:
            options = replace(options, probability=False)
        self.n_folds, self.metric = int(fold.max()) + 1, checked_metric(metric, options.svm_type)
        weights = as_weights(sample_weight, len(labels))
        if not np.all(weights):
            kept = np.flatnonzero(weights)
            rows = of_square(rows, 1) if options.kernel_type.is_precomputed else rows
            rows, labels, fold, weights = rows.take(kept), labels[kept], fold[kept], weights[kept]
        if not (fold >= 0).any():
            raise ValueError("no rows are held out to score settings on")
        if len(np.unique(fold)) == 1:
            raise ValueError("a single fold holds out all rows: there are no training rows")
        if options.svm_type in CLASSIFIERS:
            is_one = len(np.unique(fold[fold >= 0])) == 1
            class_order(labels[fold < 0] if is_one else labels)
        for own in (labels, labels[fold >= 0]):
            check_labels(self.metric, own)
        self.rows, self.labels, self.weights, self.fold = rows, labels, weights, fold
        options = replace(options, threads=usable_threads(options.threads))
        self.options = self._beside_rows(options)
        self.definition = DEFINITIONS[self.metric]
        self.every = every or self.definition.row_losses is None
        self.stop = stop or _core.Stop()
        self.tell = tell or (lambda _n_done: None)
        self.problem_of: Callable[[float | None], GridProblem] | None = None
        self._estimates: list[Score] = []

    @property
    def estimates(self) -> list[Score]:
        """Scores of settings on part of the rows."""
        return [self._reported(score) for score in self._estimates]

    @cached_property
    def _variances(self) -> np.ndarray:
        """Variance of the targets of each fold, then of all held-out rows, float64 (n_folds + 1,).

        Ones if the metric does not depend on it; nan for a fold without rows.
        """
        if not self.definition.is_relative:
            return np.ones(self.n_folds + 1)
        masks = [*(self.fold == k for k in range(self.n_folds)), self.fold >= 0]
        return np.array([
            variance_of(self.labels[own], self.weights[own]) if own.any() else np.nan
            for own in masks
        ])  # fmt: skip

    def _reported(self, score: Score) -> Score:
        """Convert mean losses of rows, which the scorers compare, to losses of the metric."""
        of_mean, variances = self.definition.of_mean, self._variances
        losses = of_mean(np.array(score.losses), variances[: len(score.losses)])
        loss = float(of_mean(score.loss, variances[-1]))
        return replace(score, loss=loss, losses=tuple(losses.tolist()))

    def _compared(self, score: Score) -> Score:
        """Convert the loss of the metric to a mean loss of rows; the losses of folds remain."""
        return replace(score, loss=self.definition.mean_of(score.loss, self._variances[-1]))

    def _beside_rows(self, options: TrainOptions) -> TrainOptions:
        """Reserve memory for a second, reordered copy of the rows. Raises OptionError."""
        if options.cache_mb is None:
            return options
        copy_mb = -(-self.rows.nbytes // MB)
        if copy_mb >= options.cache_mb:
            reason = f"must be more than {copy_mb}, not {options.cache_mb}: the rows are kept twice"
            raise OptionError("cache_mb", reason)
        return replace(options, cache_mb=options.cache_mb - copy_mb)

    def _prepared(self, options: TrainOptions) -> Prepared:
        """Prepare the rows for training options."""
        columns = UsedColumns.of_rows(self.rows)
        options = number_of_gamma(options, self.rows)
        return prepare_rows(columns.of(self.rows), self.labels, options, self.weights)

    def run(
        self, grid: Grid, known: Iterable[Score] = (), *, refine: bool = False
    ) -> Iterator[Score]:
        """Score the settings of a grid that have no score in `known`. Raises Stopped.

        With `refine`, then score the fine grid around the best setting.
        """
        scores = [self._compared(score) for score in known]
        for score in self._run(grid, list(scores)):
            scores.append(score)
            yield self._reported(score)
        coarse = set(grid.settings)
        best = best_of(score for score in scores if score.setting in coarse)
        if refine and best is not None:
            yield from map(self._reported, self._run(grid.around(best.setting), scores))

    def _run(self, grid: Grid, known: list[Score]) -> Iterator[Score]:
        done = {score.setting for score in known}
        order = [setting for setting in grid.coarse_to_fine() if setting not in done]
        if not order:
            return iter(())
        if self.options.early or self._is_whole:
            return self._clusters(grid, order, known).run()
        return self._exact(grid, order, known)

    @property
    def _is_whole(self) -> bool:
        options, is_small = self.options, self.rows.n_samples <= MAX_WHOLE
        return is_small and options.svm_type in WITH_LEVELS and not options.kernel_type.is_linear

    def _clusters(self, grid: Grid, order: list[Setting], known: list[Score]) -> ClusterSearch:
        if self.problem_of is None:
            self.problem_of = self._problems(grid)
        search = ClusterSearch(self.problem_of, order, self.stop, self.every, self.tell, known)
        self._estimates = search.estimates
        return search

    def _exact(self, grid: Grid, order: list[Setting], known: list[Score]) -> Iterator[Score]:
        estimates, options = {}, self.options
        if options.svm_type in WITH_LEVELS and self.rows.n_samples >= TRYING_THRESHOLD:
            clusters = self._clusters(grid, order, [])
            estimates = {score.setting: score.loss for score in clusters.tried(TRIED_SHARE)}
            self.problem_of = None  # frees memory for the solver
        yield from ExactSearch(
            self._prepared, self.fold, self.n_folds, options, order, max(grid.Cs), estimates,
            self.stop, self.every, self.tell, known, self.metric,
        ).run()  # fmt: skip

    def _problems(self, grid: Grid) -> Callable[[float | None], GridProblem]:
        """Return a function that makes the GridProblem of an epsilon. Raises Stopped.

        All of these problems share the same clusters, which are found with the largest gamma.
        """
        widest = Setting(max(grid.Cs), grid.gammas[-1], grid.epsilons[-1])
        overlap = PLAIN if self.options.overlap is None else self.options.overlap
        options = replace(widest.options(self.options), levels=None, early_level=None)
        exact = replace(options, early=False, overlap=None)
        prepared = self._prepared(exact)
        prepared = replace(prepared, options=replace(options, early=True, overlap=overlap))
        folds = as_folds(prepared, self.n_folds, self.fold)
        weights_mb = -(-8 * folds.n_folds * len(prepared.targets) // MB)
        if weights_mb * MB > prepared.memory.budget:
            reason = f"must be at least {weights_mb} for {folds.n_folds} folds"
            raise OptionError("cache_mb", reason)
        n_rows, level = prepared.data.rows.n_samples, self._level(prepared)
        is_whole = self._is_whole and not self.options.early
        division = None if is_whole else divided(prepared, level, self.stop)

        @lru_cache
        def problem_of(epsilon: float | None) -> GridProblem:
            formulation = unit_formulation(prepared, epsilon)
            if division is None:
                layout = whole(formulation, folds, n_rows)
                return GridProblem(prepared, layout, self.metric, is_exact=True)
            layout = in_clusters(formulation, folds, division)
            return GridProblem(prepared, layout, self.metric, is_exact=False)

        return problem_of

    def _level(self, prepared: Prepared) -> int:
        """Return the level set by the options, or the coarsest level with small enough clusters."""
        options, n_rows = prepared.options, prepared.data.rows.n_samples
        asked = self.options.early_level
        if isinstance(asked, int):
            early_plan(n_rows, None, options.branching, asked)  # raises if the level does not exist
            return asked
        held_share = np.count_nonzero(self.fold >= 0) / (self.fold.max() + 1) / len(self.fold)
        level, size = 1, n_rows * (1.0 - held_share) * options.early_overlap / options.branching
        while size > ROWS_OF_CLUSTER:
            level, size = level + 1, size / options.branching
        if self.options.early and n_rows < MIN_MEAN_CLUSTER * options.branching:
            raise ValueError(f"early models need a level: {n_rows} rows are too few for one")
        return level


# Settings are first solved to this tolerance, and pruned if their error rate exceeds the least one
# by more than the margin. On ten data sets, the rates of settings within 2 % of the best differed
# from exact ones by at most 0.33 % (docs/dcsvm-grid.md).
LOOSE_TOLERANCE, LOOSE_MARGIN = 0.3, 0.01


@dataclass(eq=False)
class ExactSearch:
    """Search for the best of some settings by exact models.

    Attributes
    ----------
    prepare : function that prepares the rows for training options.
    fold : int64 (n,), the fold that holds out each row, -1 for rows that are never held out.
    order : the settings to score.
    C_max : the largest C of the grid.
    estimates : estimated losses of settings, for the order of scoring and the size of batches.
    every, tell : as in Search.
    scores : all scores so far.
    """

    prepare: Callable[[TrainOptions], Prepared]
    fold: np.ndarray
    n_folds: int
    options: TrainOptions
    order: list[Setting]
    C_max: float
    estimates: dict[Setting, float]
    stop: _core.Stop
    every: bool
    tell: Callable[[float], None]
    scores: list[Score] = field(default_factory=list)
    metric: str = "accuracy"

    def __post_init__(self) -> None:
        self.of_gamma: tuple[Setting, Prepared, Folds] | None = None
        self.tree: Tree | None = None
        self.smaller = PathWarmStart()
        # by axis: the largest |alpha| of a solution without bounded variables, and its score
        self.inside: dict[tuple[float | None, float | None], tuple[float, Score]] = {}

    def run(self) -> Iterator[Score]:
        """Score all settings. Raises Stopped."""
        for n_done, setting in enumerate(self._by_promise()):
            self.tell(n_done)
            try:
                score = self._known(setting) or self._scored(setting)
            except NoMarginError:
                score = Score(setting, np.nan, (), 0, 0.0, False, False, None, 0.0)
            self.scores.append(score)
            yield score

    def _by_promise(self) -> list[Setting]:
        """Order settings: the best estimate first, then axis by axis with ascending C."""
        losses = self.estimates
        if not losses:
            return self.order
        of_axis: dict[tuple[float | None, float | None], float] = {}
        for one in self.order:
            of_axis[one.axis] = min(of_axis.get(one.axis, np.inf), losses[one])
        best = min(self.order, key=lambda one: (losses[one], one.C))
        rest = [one for one in self.order if one != best]
        rest.sort(key=lambda one: (of_axis[one.axis], one.gamma or 0.0, one.epsilon or 0.0, one.C))
        return [best, *rest]

    def _known(self, setting: Setting) -> Score | None:
        """Return the score of a smaller C that has the same solutions, or None."""
        if setting.axis not in self.inside:
            return None
        largest, score = self.inside[setting.axis]
        return replace(score, setting=setting, seconds=0.0) if largest < setting.C else None

    def _scored(self, setting: Setting) -> Score:
        best = best_of(score for score in self.scores if score.may_win)
        tolerance = self.options.tolerance
        if best is None or self.every:
            return self._solved(setting, tolerance, np.inf)
        start = time.perf_counter()
        if self.metric == "accuracy" and tolerance < LOOSE_TOLERANCE:
            limit = best.total + LOOSE_MARGIN * best.weight
            loose = self._solved(setting, LOOSE_TOLERANCE, limit)
            if not loose.is_complete or loose.total > limit:
                return replace(loose, is_complete=False, seconds=_since(start))
        return replace(self._solved(setting, tolerance, best.total), seconds=_since(start))

    def _solved(self, setting: Setting, tolerance: float, limit: float) -> Score:
        """Score a setting by solutions to a tolerance; prune it if its total exceeds the limit."""
        start = time.perf_counter()
        prepared, folds = self._prepared(setting, tolerance)
        if not len(prepared.plan.levels):
            self.tree = None
        of = FoldLosses(prepared, folds, self.metric)
        held = CrossValidationRun(
            prepared, folds, Progress(), self.stop, self.tree, self.smaller,
            keeps_values=of.metric.needs_values,
        )  # fmt: skip
        losses, seen = np.zeros(folds.n_folds), np.zeros(folds.n_folds)
        count = partial(_count, held, of, losses, seen)
        count(np.setdiff1d(folds.nonempty, held.open))
        remaining = held.open
        while len(remaining) and losses.sum() <= limit:
            n_enough = self._enough(setting, folds, limit, losses.sum())
            batch = held.batches(remaining[:n_enough])[0]
            held.solve(batch)
            count(batch)
            remaining = remaining[len(batch) :]
        self.tree = held.tree
        is_complete = len(remaining) == 0
        loss, of_folds = _loss(held, of, losses, seen)
        score = Score(
            setting=setting,
            loss=loss,
            losses=tuple(of_folds.tolist()),
            n_rows=folds.n_held(np.setdiff1d(np.arange(folds.n_folds), remaining)),
            weight=float(seen.sum()),
            is_complete=is_complete,
            converged=bool(held.n_failed == 0),
            n_sv=held.n_sv // len(folds.nonempty) if is_complete else None,
            seconds=time.perf_counter() - start,
        )
        known = self.inside.get(setting.axis)
        is_exact = score.may_win and tolerance == self.options.tolerance
        if is_exact and held.largest < (np.inf if known is None else known[0]):
            self.inside[setting.axis] = held.largest, score
        return score

    def _enough(self, setting: Setting, folds: Folds, limit: float, lost: float) -> int:
        """Estimate how many more folds suffice to prune a setting; all folds if unknown."""
        estimate = self.estimates.get(setting)
        if not estimate or np.isinf(limit):
            return folds.n_folds
        fold_loss = estimate * folds.weight[folds.held].sum() / len(folds.nonempty)
        return max(int((limit - lost) / fold_loss) + 1, 1)

    def _prepared(self, setting: Setting, tolerance: float) -> tuple[Prepared, Folds]:
        """Prepare rows and formulate the problem; settings of an axis share the prepared rows."""
        widest = replace(setting, C=self.C_max)
        if self.of_gamma is None or self.of_gamma[0] != widest:
            self.of_gamma = self.tree = None  # frees memory before the next allocation
            self.smaller = PathWarmStart()
            prepared = self.prepare(widest.options(self.options))
            prepared = replace(prepared, plan=replace(prepared.plan, early_level=None))
            folds = as_folds(prepared, self.n_folds, self.fold)
            self.of_gamma = widest, prepared, folds
        _, prepared, folds = self.of_gamma
        options = replace(setting.options(self.options), tolerance=tolerance)
        task = prepared.task
        C_of_class = task.C_of_class * (options.C / task.options.C)
        task = replace(task, options=options, C_of_class=C_of_class)
        formulation = task.formulate(prepared.targets, prepared.sample_weight)
        return replace(prepared, options=options, task=task, formulation=formulation), folds


def _since(start: float) -> float:
    return time.perf_counter() - start


def _predicted(held: CrossValidationRun, entries: np.ndarray | slice) -> np.ndarray:
    """Return the predicted class indices or targets of entries (m,)."""
    predicted, task = held.predicted[entries], held.prepared.task
    if not task.is_classification:
        return predicted
    order = np.argsort(task.labels)
    return order[np.searchsorted(task.labels, predicted, sorter=order)]


def _count(
    held: CrossValidationRun,
    of: FoldLosses,
    losses: np.ndarray,
    seen: np.ndarray,
    indices: np.ndarray,
) -> None:
    """Set the total loss and weight of the held-out entries of the folds `indices`.

    The loss remains 0 if the metric has no losses of rows.
    """
    for k in indices:
        entries = held.folds.entries(k)
        weight = held.folds.weight[entries]
        if of.is_by_rows:
            losses[k] = np.dot(weight, of.of_rows(entries, _predicted(held, entries)))
        seen[k] = weight.sum()


def _loss(
    held: CrossValidationRun, of: FoldLosses, losses: np.ndarray, seen: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the loss of the rows predicted so far, and that of each fold (n_folds,)."""
    if of.is_by_rows:
        with np.errstate(invalid="ignore"):
            return float(losses.sum() / seen.sum()), losses / seen
    entries = np.flatnonzero(held.folds.fold >= 0)
    values = None if held.values is None else held.values[entries]
    return of.of_folds(entries, _predicted(held, entries), values)


# The trial of all settings uses at least this share of the rows and this number of rows.
PILOT_SHARE, PILOT_ROWS = 0.02, 2000
BATCHES = 32  # batches of clusters; settings may be pruned after each batch
MIN_BATCH = 2  # clusters in a batch
MIN_TRIED = 4  # settings; a trial of fewer settings does not pay


@dataclass(eq=False)
class ClusterSearch:
    """Search for the best of some settings, cluster by cluster.

    Attributes
    ----------
    problem_of : function that returns the GridProblem of an epsilon.
    order : the settings to score.
    every, tell : as in Search.
    scores : all scores so far.
    estimates : scores of the trial, on part of the clusters.
    """

    problem_of: Callable[[float | None], GridProblem]
    order: list[Setting]
    stop: _core.Stop
    every: bool
    tell: Callable[[float], None]
    scores: list[Score] = field(default_factory=list)
    estimates: list[Score] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.problem = self.problem_of(self.order[0].epsilon)
        self.data: KernelRows = self.problem.prepared.data
        rng = np.random.default_rng(self.problem.prepared.options.seed)
        self.clusters = rng.permutation(self.problem.layout.n_clusters)
        self.open, self.n_done = set(self.order), 0
        self.best: tuple[Score, np.ndarray] | None = None  # and its loss on each entry

    def run(self) -> Iterator[Score]:
        """Score all settings. Raises Stopped."""
        tried = {score.setting: score for score in self.tried(PILOT_SHARE)}
        is_first = bool(tried) and not self.scores
        while self.open:
            remaining = [setting for setting in self.order if setting in self.open]
            if tried:
                remaining.sort(key=lambda setting: (tried[setting].loss, setting.C))
            same_axis = [setting for setting in remaining if setting.axis == remaining[0].axis]
            batch = same_axis[: 1 if is_first else self.problem.most_at_once]
            is_first = False
            for score in self._score(sorted(batch, key=attrgetter("C"))):
                self.open.discard(score.setting)
                self.scores.append(score)
                yield score

    def tried(self, share: float) -> list[Score]:
        """Score all settings on clusters that hold at least a share of the rows. Raises Stopped.

        Returns the `estimates`. The list is empty if this would take more than half of the
        clusters, or if there are fewer than MIN_TRIED settings.
        """
        sizes = self.problem.layout.sizes[self.clusters]
        n_rows = max(share * sizes.sum(), PILOT_ROWS)
        n_clusters = int(np.searchsorted(np.cumsum(sizes), n_rows)) + 1
        if 2 * n_clusters > len(sizes) or len(self.order) < MIN_TRIED:
            return []
        clusters = self._by_size(self.clusters[:n_clusters])
        for axis in dict.fromkeys(setting.axis for setting in self.order):
            same_axis = [setting for setting in self.order if setting.axis == axis]
            same_axis.sort(key=attrgetter("C"))
            for first in range(0, len(same_axis), self.problem.most_at_once):
                settings = same_axis[first : first + self.problem.most_at_once]
                batch = ClusterScores(self.problem_of(axis[1]), settings)
                batch.solve(self._data(settings[0]), clusters, self.stop)
                self.estimates += [batch.score(k) for k in range(len(settings))]
        return self.estimates

    def _data(self, setting: Setting) -> KernelRows:
        if setting.gamma is None:
            return self.data
        return self.data.with_kernel(replace(self.data.kernel, gamma=setting.gamma))

    def _by_size(self, clusters: np.ndarray) -> np.ndarray:
        """Sort clusters by descending size, so that threads finish at about the same time."""
        return clusters[np.argsort(-self.problem.layout.sizes[clusters], kind="stable")]

    def _score(self, settings: list[Setting]) -> Iterator[Score]:
        """Score settings with ascending C and the same gamma and epsilon. Raises Stopped."""
        batch = ClusterScores(self.problem_of(settings[0].epsilon), settings)
        data, n_clusters = self._data(settings[0]), len(self.clusters)
        batch_size = max(n_clusters // BATCHES, MIN_BATCH)
        for clusters in np.split(self.clusters, range(batch_size, n_clusters, batch_size)):
            batch.solve(data, self._by_size(clusters), self.stop)
            yield from self._prune(batch)
            if not batch.in_race.any():
                break
            done = batch.is_done.mean() * np.count_nonzero(batch.in_race)
            self.tell(self.n_done + np.count_nonzero(~batch.in_race) + done)
        self.n_done += len(settings)
        scores = {k: batch.score(k) for k in np.flatnonzero(batch.in_race).tolist()}
        for k, score in scores.items():
            is_best = score.may_win and best_of([score, *self.scores]) is score
            if is_best and self.problem.losses.is_by_rows:
                self._set_best(score, batch.all_losses(k))
        yield from scores.values()

    def _set_best(self, score: Score, losses: np.ndarray) -> None:
        """Set the best score, and sort clusters by its loss per row, the largest first."""
        self.best, layout = (score, losses), self.problem.layout
        cluster = layout.placed.nearest[layout.folds.row[layout.folds.held]]
        lost = np.bincount(cluster, losses, layout.n_clusters)
        self.clusters = np.argsort(-lost / np.maximum(layout.sizes, 1), kind="stable")

    def _prune(self, batch: ClusterScores) -> list[Score]:
        """Prune settings whose loss so far exceeds the total loss of the best setting."""
        best = best_of(score for score in self.scores if score.may_win)
        if best is None or self.every or batch.is_judged.all():
            return []
        pruned = np.flatnonzero(batch.in_race & (batch.loss.sum(axis=1) > best.total))
        scores = [self._estimate(batch, k) for k in pruned.tolist()]
        batch.in_race[pruned] = False
        return scores

    def _estimate(self, batch: ClusterScores, k: int) -> Score:
        """Estimate the score of a pruned setting; it is never better than the best score.

        The estimate is a weighted mean of two losses. The first is the loss of the best setting
        times the ratio of both settings' losses on the rows seen. Its weight is the share of rows
        seen. The second is the loss in the trial.
        """
        score = replace(batch.score(k), is_complete=False, n_sv=None)
        if self.best is None:
            return score
        best, losses = self.best
        lost = losses[batch.is_judged[self.problem.folds.held]].sum()
        by_best = best.total * score.total / lost if lost > 0 else score.total
        trial = next((one for one in self.estimates if one.setting == score.setting), None)
        seen = score.weight / best.weight
        by_trial = by_best if trial is None else trial.loss * best.weight
        total = max(seen * by_best + (1.0 - seen) * by_trial, score.total)
        factor = total / best.weight / score.loss
        of_folds = tuple(loss * factor for loss in score.losses)
        return replace(score, loss=score.loss * factor, losses=of_folds)
