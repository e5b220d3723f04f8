"""Grid search: score settings on held-out rows with early or exact models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import as_weights
from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import UsedColumns
from dcsvm.kernel.kernel_rows import of_square
from dcsvm.machine import usable_threads
from dcsvm.model.metrics import DEFINITIONS, check_labels, variance_of
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.option_table import CLASSIFIERS, WITH_LEVELS, checked_metric
from dcsvm.problem.options import OptionError, TrainOptions
from dcsvm.problem.task import class_order
from dcsvm.solving.memory import MB, MIN_MEAN_CLUSTER, early_plan
from dcsvm.solving.preparation import Prepared, prepare_rows
from dcsvm.training.cluster_layout import divided, in_clusters, unit_formulation, whole
from dcsvm.training.cluster_scores import GridProblem
from dcsvm.training.cluster_search import ClusterSearch
from dcsvm.training.exact_search import ExactSearch
from dcsvm.training.held_out import as_folds
from dcsvm.training.settings import Grid, Score, Setting, best_of

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
