"""Race of the settings of a grid: score them on held-out rows, and prune those that cannot win.

The settings with the best estimates are scored first. A setting is pruned as soon as its loss on
some rows exceeds the total loss of the best setting. A scorer solves the settings part by part and
predicts the held-out rows of each part:

- FoldScorer solves exact models of whole folds, as in cross-validation. Classifiers are first
  solved to a loose tolerance. A setting whose loss is then far above the best is pruned, the others
  are solved on from there. A solution without bounded variables also solves every larger C.
- ClusterScorer solves early models cluster by cluster, or exact models of few rows. The settings
  share the clusters. To prune early, each setting starts with the clusters where the best setting
  has the largest loss per row. A trial on part of the clusters gives the estimates, also those of
  exact models.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import as_weights
from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import UsedColumns
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.machine import usable_threads
from dcsvm.model.metrics import DEFINITIONS, check_labels, variance_of
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.folds import Folds
from dcsvm.problem.formulation import class_order
from dcsvm.problem.option_table import CLASSIFIERS, WITH_LEVELS, checked_metric
from dcsvm.problem.options import TREES, OptionError, TrainOptions
from dcsvm.training.engine import Prepared, of_square, prepare_rows
from dcsvm.training.extraction import NoMarginError
from dcsvm.training.held_out import Axis, Grid, Score, Setting, as_folds, best_of
from dcsvm.training.memory import MB, early_plan, needs_rows
from dcsvm.training.probability import CrossValidationRun
from dcsvm.training.report import Progress
from dcsvm.training.scores import ClusterScorer, HeldOutLosses, Predictions
from dcsvm.training.warm_start import PathWarmStart

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


ROWS_OF_CLUSTER = 1200  # maximum of the mean training rows per cluster, for scores of early models
# Default overlap of clusters in a search. An overlap of 1 chooses the same settings at less than
# half the cost (docs/dcsvm-grid.md).
DEFAULT_OVERLAP = 1.0
MAX_WHOLE = 2048  # maximum rows in a single cluster; their kernel matrix stays in the CPU caches
# Share of the rows in a trial of all settings, before early and before exact models. With fewer
# rows than TRYING_THRESHOLD, a trial before exact models does not pay.
PILOT_SHARE, TRIED_SHARE = 0.02, 0.1
TRYING_THRESHOLD = 4000


class Race:
    """Race of the settings of a grid: those that can no longer win are pruned.

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
        if options.early and options.clustering not in TREES:
            reason = f"must be {' or '.join(TREES)} in a search of early models"
            raise OptionError("clustering", f"{reason}, got {options.clustering}")
        self.n_folds, self.metric = int(fold.max()) + 1, checked_metric(metric, options.svm_type)
        weights = as_weights(sample_weight, len(labels))
        # rows of weight 0 count nowhere
        if not np.all(weights):
            kept = np.flatnonzero(weights)
            rows = of_square(rows, 1) if options.kernel_type.is_precomputed else rows
            rows, labels, fold, weights = rows.take(kept), labels[kept], fold[kept], weights[kept]
        if not (fold >= 0).any():
            raise ValueError("no rows are held out to score settings on")
        if len(np.unique(fold)) == 1:
            raise ValueError("a single fold holds out all rows: there are no training rows")
        # a single fold has training rows of its own; their classes must do
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
        self._clusters: ClusterScorer | None = None
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
        yield from map(self._reported, self._run(grid, scores))
        coarse = set(grid.settings)
        best = best_of(score for score in scores if score.setting in coarse)
        if refine and best is not None:
            yield from map(self._reported, self._run(grid.around(best.setting), scores))

    def _run(self, grid: Grid, scores: list[Score]) -> Iterator[Score]:
        """Score the settings of a grid that have no score yet; append the new scores."""
        done = {score.setting for score in scores}
        remaining = [setting for setting in grid.coarse_to_fine() if setting not in done]
        if not remaining:
            return
        scorer, n_done = self._scorer(grid, remaining), 0
        remaining = scorer.ordered(remaining)
        while remaining:
            # the most promising setting alone: its loss is the limit of the others
            is_first = scorer.estimates and not scores
            n_together = 1 if is_first else scorer.most_at_once
            same_axis = [setting for setting in remaining if setting.axis == remaining[0].axis]
            together = sorted(same_axis[:n_together], key=attrgetter("C"))
            self.tell(n_done)
            for score in self._scored(scorer, together, scores, n_done):
                scores.append(score)
                yield score
            n_done += len(together)
            self.tell(n_done)
            remaining = [setting for setting in remaining if setting not in together]

    def _scored(
        self, scorer: Scorer, settings: list[Setting], scores: list[Score], n_done: int
    ) -> Iterator[Score]:
        """Score settings with ascending C and the same gamma and epsilon, the pruned ones first."""
        if (known := scorer.known(settings[0])) is not None:
            yield known
            return
        best = best_of(score for score in scores if score.may_win)
        tolerances, seconds = scorer.tolerances, np.zeros(len(settings))
        if best is None or self.every:
            best, tolerances = None, tolerances[-1:]
        # first the loose solutions, then the exact ones of settings that are near the best
        for tolerance in tolerances:
            limit, is_last = np.inf, tolerance == tolerances[-1]
            if best is not None:
                limit = best.total + (0.0 if is_last else LOOSE_MARGIN * best.weight)
            losses = scorer.begin(settings, tolerance)
            losses.add_seconds(slice(None), seconds)
            try:
                yield from self._pruned(scorer, losses, limit, n_done)
            except NoMarginError:  # of nu-SVC
                for setting in settings:
                    yield Score(setting, np.nan, (), 0, 0.0, False, False, None, 0.0)
                return
            complete = {k: scorer.score(k) for k in np.flatnonzero(losses.in_race).tolist()}
            if is_last:
                for k, score in complete.items():
                    is_best = score.may_win and best_of([score, *scores]) is score
                    scorer.finish(k, score, is_best=is_best)
                yield from complete.values()
                return
            near = [k for k, score in complete.items() if score.total <= limit]
            yield from (
                replace(score, is_complete=False) for k, score in complete.items() if k not in near
            )
            if not near:
                return
            settings, seconds = [settings[k] for k in near], losses.seconds[near]

    def _pruned(
        self, scorer: Scorer, losses: HeldOutLosses, limit: float, n_done: int
    ) -> Iterator[Score]:
        """Solve part by part, and prune settings beyond the limit. Raises NoMarginError, Stopped.

        The settings that remain in the race are scored on all rows.
        """
        while True:
            for k in losses.prune(limit):
                yield scorer.estimate(k)
            if losses.is_complete or not losses.in_race.any():
                return
            scorer.solve(limit)
            self.tell(n_done + losses.n_finished)

    def _scorer(self, grid: Grid, settings: list[Setting]) -> Scorer:
        """Return the scorer of settings, after their trial on clusters. Raises Stopped."""
        options, is_large = self.options, self.rows.n_samples >= TRYING_THRESHOLD
        if options.early or self._is_whole:
            return self._tried(grid, settings, PILOT_SHARE)
        estimates = {}
        if options.svm_type in WITH_LEVELS and is_large:
            trial = self._tried(grid, settings, TRIED_SHARE).estimates
            estimates = {score.setting: score.loss for score in trial}
            self._clusters = None  # frees memory for the solver
        return FoldScorer(
            self._prepared, self.fold, self.n_folds, options, self.metric, max(grid.Cs), estimates,
            self.stop,
        )  # fmt: skip

    def _tried(self, grid: Grid, settings: list[Setting], share: float) -> ClusterScorer:
        """Return the scorer by clusters, after a trial on a share of the rows. Raises Stopped."""
        scorer = self._clusters = self._clusters or self._cluster_scorer(grid)
        scorer.restart()
        self._estimates = scorer.estimates  # also those of a stopped trial
        scorer.try_all(settings, share)
        return scorer

    @property
    def _is_whole(self) -> bool:
        """Whether a single cluster has all rows."""
        options, is_small = self.options, self.rows.n_samples <= MAX_WHOLE
        return is_small and options.svm_type in WITH_LEVELS and not options.kernel_type.is_linear

    def _cluster_scorer(self, grid: Grid) -> ClusterScorer:
        """Divide the rows into clusters, found with the largest gamma. Raises Stopped."""
        widest = Setting(max(grid.Cs), grid.gammas[-1], grid.epsilons[-1])
        overlap = DEFAULT_OVERLAP if self.options.overlap is None else self.options.overlap
        options = replace(widest.options(self.options), levels=None, early_level=None)
        prepared = self._prepared(replace(options, early=False, overlap=None))
        prepared = replace(prepared, options=replace(options, early=True, overlap=overlap))
        folds = as_folds(prepared, self.n_folds, self.fold)
        weights_mb = -(-8 * folds.n_folds * len(prepared.targets) // MB)
        if weights_mb * MB > prepared.memory.budget:
            reason = f"must be at least {weights_mb} for {folds.n_folds} folds"
            raise OptionError("cache_mb", reason)
        level = self._level(prepared)
        if self._is_whole and not self.options.early:
            level = 0
        return ClusterScorer(prepared, folds, self.metric, level, self.stop)

    def _level(self, prepared: Prepared) -> int:
        """Return the level set by the options, or the coarsest level with small enough clusters."""
        options, n_rows = prepared.options, prepared.data.rows.n_samples
        plan = early_plan(self.options, n_rows)
        if isinstance(self.options.early_level, int):
            return self.options.early_level
        if self.options.early and plan.deepest == 0:
            raise OptionError("early", needs_rows(options.branching, n_rows))
        held_share = np.count_nonzero(self.fold >= 0) / (self.fold.max() + 1) / len(self.fold)
        level, size = 1, n_rows * (1.0 - held_share) * options.early_overlap / options.branching
        while size > ROWS_OF_CLUSTER:
            level, size = level + 1, size / options.branching
        return level


# Settings are first solved to this tolerance, and pruned if their error rate exceeds the least one
# by more than the margin. On ten data sets, the rates of settings within 2 % of the best differed
# from exact ones by at most 0.33 % (docs/dcsvm-grid.md).
LOOSE_TOLERANCE, LOOSE_MARGIN = 0.3, 0.01


@dataclass(eq=False)
class FoldScorer:
    """Scores settings one by one by exact models of whole folds, as in cross-validation.

    Rows are prepared once for each gamma and epsilon; all values of C share the clusters.

    Attributes
    ----------
    prepare : function that prepares the rows for training options.
    fold : int64 (n,), the fold that holds out each row, -1 for rows that are never held out.
    options : training options of all settings.
    C_max : the largest C of the grid.
    estimates : estimated losses of settings, for their order and the size of batches of folds.
    most_at_once : how many settings are scored together.
    """

    prepare: Callable[[TrainOptions], Prepared]
    fold: np.ndarray
    n_folds: int
    options: TrainOptions
    metric: str
    C_max: float
    estimates: dict[Setting, float]
    stop: _core.Stop
    most_at_once: int = 1

    def __post_init__(self) -> None:
        self.of_axis: tuple[Setting, Prepared, Folds] | None = None
        self.cross_validation: CrossValidationRun | None = None
        self.tree: Tree | None = None
        self.smaller = PathWarmStart()
        # by axis: the largest |alpha| of a solution without bounded variables, and its score
        self.unbounded: dict[Axis, tuple[float, Score]] = {}

    @property
    def tolerances(self) -> tuple[float, ...]:
        """The tolerances of the models; a setting must not be pruned by one to reach the next."""
        exact = self.options.tolerance
        is_loose_first = self.metric == "accuracy" and exact < LOOSE_TOLERANCE
        return (LOOSE_TOLERANCE, exact) if is_loose_first else (exact,)

    def ordered(self, settings: list[Setting]) -> list[Setting]:
        """Order settings: the best estimate first, then axis by axis with ascending C.

        A solution is a warm start for a larger C, and rows are prepared once for each axis.
        """
        losses = self.estimates
        if not losses:
            return settings
        least: dict[Axis, float] = {}
        for setting in settings:
            least[setting.axis] = min(least.get(setting.axis, np.inf), losses[setting])

        def rank(setting: Setting) -> tuple[float, ...]:
            gamma, epsilon = setting.axis
            return least[setting.axis], gamma or 0.0, epsilon or 0.0, setting.C

        best = min(settings, key=lambda setting: (losses[setting], setting.C))
        return [best, *sorted((other for other in settings if other != best), key=rank)]

    def known(self, setting: Setting) -> Score | None:
        """Return the score of a smaller C that has the same solutions, or None."""
        largest, score = self.unbounded.get(setting.axis, (np.inf, None))
        if score is None or not largest < setting.C:
            return None
        return replace(score, setting=setting, seconds=0.0)

    def begin(self, settings: list[Setting], tolerance: float) -> HeldOutLosses:
        """Start to score a setting by solutions to a tolerance."""
        start, (self.setting,) = time.perf_counter(), settings
        prepared, folds = self._prepared(self.setting, tolerance)
        if not len(prepared.plan.levels):
            self.tree = None
        self.losses = HeldOutLosses(prepared, folds, self.metric, settings, len(folds.nonempty))
        self.cross_validation = CrossValidationRun(
            prepared, folds, Progress(), self.stop, self.tree, self.smaller,
            keeps_values=self.losses.metric.needs_values,
        )  # fmt: skip
        self.unsolved = self.cross_validation.open
        self._add(np.setdiff1d(folds.nonempty, self.unsolved))
        self.losses.add_seconds(slice(None), time.perf_counter() - start)
        return self.losses

    def solve(self, limit: float) -> None:
        """Solve a batch of folds, at most as many as may exceed the limit of the loss.

        Raises NoMarginError and Stopped.
        """
        start, run = time.perf_counter(), self.cross_validation
        assert run is not None
        batch = run.batches(self.unsolved[: self._n_enough(limit)])[0]
        n_sv = run.n_sv
        run.solve(batch)
        self.tree, self.unsolved = run.tree, self.unsolved[len(batch) :]
        self.losses.add_solutions(0, converged=run.n_failed == 0, n_sv=run.n_sv - n_sv)
        self._add(batch)
        self.losses.add_seconds(slice(None), time.perf_counter() - start)

    def _n_enough(self, limit: float) -> int:
        """Estimate how many more folds suffice to prune the setting; all folds if unknown."""
        folds, estimate = self.losses.folds, self.estimates.get(self.setting)
        if not estimate or np.isinf(limit):
            return folds.n_folds
        fold_loss = estimate * folds.weight[folds.held].sum() / len(folds.nonempty)
        return max(int((limit - self.losses.loss.sum()) / fold_loss) + 1, 1)

    def _add(self, solved: np.ndarray) -> None:
        """Add the held-out entries of solved folds to the losses."""
        folds, losses = self.losses.folds, self.losses
        loss, weight = np.zeros(folds.n_folds), np.zeros(folds.n_folds)
        for k in solved:
            entries = folds.entries(k)
            if losses.is_by_rows:
                predicted = self._predict(0, entries)[0]
                loss[k] = np.dot(folds.weight[entries], losses.of_rows(entries, predicted))
            weight[k] = folds.weight[entries].sum()
        losses.add(0, np.flatnonzero(np.isin(folds.fold, solved)), loss, weight)

    def _predict(self, _k: int, entries: np.ndarray | slice) -> Predictions:
        """Return the predicted class indices or targets of entries (m,), and decision values."""
        run = self.cross_validation
        assert run is not None
        predicted, values = run.predicted[entries], run.values
        if run.prepared.task.is_classification:
            labels = run.prepared.task.labels
            order = np.argsort(labels)
            predicted = order[np.searchsorted(labels, predicted, sorter=order)]
        return predicted, None if values is None else values[entries]

    def score(self, k: int) -> Score:
        """Return the score of the setting, or its estimate by the folds solved so far."""
        return self.losses.score(k, self._predict)

    estimate = score

    def finish(self, _k: int, score: Score, *, is_best: bool) -> None:  # noqa: ARG002 (see ClusterScorer)
        """Keep the score of a setting if a larger C has the same solution."""
        assert self.cross_validation is not None
        largest = self.cross_validation.largest
        smallest, _ = self.unbounded.get(score.setting.axis, (np.inf, None))
        if score.may_win and largest < smallest:
            self.unbounded[score.setting.axis] = largest, score

    def _prepared(self, setting: Setting, tolerance: float) -> tuple[Prepared, Folds]:
        """Prepare rows and formulate the problem; settings of an axis share the prepared rows."""
        widest = replace(setting, C=self.C_max)
        if self.of_axis is None or self.of_axis[0] != widest:
            # frees memory before the next allocation
            self.of_axis = self.cross_validation = self.tree = None
            self.smaller = PathWarmStart()
            prepared = self.prepare(widest.options(self.options))
            prepared = replace(prepared, plan=replace(prepared.plan, early_level=None))
            folds = as_folds(prepared, self.n_folds, self.fold)
            self.of_axis = widest, prepared, folds
        _, prepared, folds = self.of_axis
        options = replace(setting.options(self.options), tolerance=tolerance)
        task = prepared.task
        C_of_class = task.C_of_class * (options.C / task.options.C)
        task = replace(task, options=options, C_of_class=C_of_class)
        formulation = task.formulate(prepared.targets, prepared.sample_weight)
        return replace(prepared, options=options, task=task, formulation=formulation), folds


Scorer = FoldScorer | ClusterScorer
