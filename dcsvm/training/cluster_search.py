"""Grid search by early models, or by exact models of few rows; settings share one partition.

A trial scores all settings on part of the clusters. The best setting of the trial is then scored on
all clusters. The others follow by ascending loss in the trial. A setting is pruned once its loss
exceeds the total loss of the best setting. To prune early, each setting starts with the clusters
where the best setting has the largest loss per row. If one cluster has all rows, solutions are
exact.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.training.cluster_scores import ClusterScores, GridProblem
from dcsvm.training.settings import Score, Setting, best_of

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
