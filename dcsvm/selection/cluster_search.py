"""The settings of a grid by early models, or by exact ones where the rows are few: all from one
partition of the rows.

First all settings are tried on some of the clusters. Then the best of them is scored on all, and
the others, the promising ones first, until they are done or have lost more than it has in all. They
begin where that one has lost most, so that this is seen soon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.selection.cluster_scores import ClusterScores, Problem
from dcsvm.selection.grid import Score, Setting, best_of

PILOT_SHARE, PILOT_ROWS = 0.02, 2000  # of the clusters that all settings are tried on, at least
BATCHES = 32  # of clusters, after each of which settings may be left
FEWEST_AT_ONCE = 2  # clusters of a batch
FEWEST_TRIED = 4  # settings, for which it pays


@dataclass(eq=False)
class ClusterSearch:
    """A search by clusters, which `problem_of` an epsilon has, of the settings in `order`. `scores`
    that are known take part; `tell` is told how many settings are done."""

    problem_of: Callable[[float | None], Problem]
    order: list[Setting]
    stop: _core.Stop
    every: bool  # whether settings that cannot win are scored all the same
    tell: Callable[[float], None]
    scores: list[Score] = field(default_factory=list)
    estimates: list[Score] = field(default_factory=list)

    def __post_init__(self):
        self.problem = self.problem_of(self.order[0].epsilon)
        self.data: KernelRows = self.problem.prepared.data
        rng = np.random.default_rng(self.problem.prepared.options.seed)
        self.clusters = rng.permutation(self.problem.layout.n_clusters)
        self.open, self.n_done = set(self.order), 0
        self.best: tuple[Score, np.ndarray] | None = None  # with its loss of each entry

    def run(self) -> Iterator[Score]:
        """The scores of all settings, as they are found. Raises Stopped."""
        tried = {score.setting: score for score in self.tried(PILOT_SHARE)}
        is_first = bool(tried) and not self.scores
        while self.open:
            left = [setting for setting in self.order if setting in self.open]
            if tried:
                left.sort(key=lambda setting: (tried[setting].loss, setting.C))
            own = [one for one in left if one.axis == left[0].axis]
            some = sorted(own[: 1 if is_first else self.problem.most_at_once], key=attrgetter("C"))
            is_first = False
            for score in self._score(some):
                self.open.discard(score.setting)
                self.scores.append(score)
                yield score

    def tried(self, share: float) -> list[Score]:
        """All settings on some of the clusters, of at least a share of the rows, from coarse to
        fine; nothing where these are nearly all. `estimates` has them too. Raises Stopped."""
        sizes = self.problem.layout.sizes[self.clusters]
        wanted = max(share * sizes.sum(), PILOT_ROWS)
        n_clusters = int(np.searchsorted(np.cumsum(sizes), wanted)) + 1
        if 2 * n_clusters > len(sizes) or len(self.order) < FEWEST_TRIED:
            return []
        clusters = self._by_size(self.clusters[:n_clusters])
        for axis in dict.fromkeys(one.axis for one in self.order):
            own = sorted((one for one in self.order if one.axis == axis), key=attrgetter("C"))
            for first in range(0, len(own), self.problem.most_at_once):
                settings = own[first : first + self.problem.most_at_once]
                some = ClusterScores(self.problem_of(axis[1]), settings)
                some.solve(self._data(settings[0]), clusters, self.stop)
                self.estimates += [some.score(k) for k in range(len(settings))]
        return self.estimates

    def _data(self, setting: Setting) -> KernelRows:
        if setting.gamma is None:
            return self.data
        return self.data.with_kernel(replace(self.data.kernel, gamma=setting.gamma))

    def _by_size(self, clusters: np.ndarray) -> np.ndarray:
        """The largest first: threads are done at about the same time."""
        return clusters[np.argsort(-self.problem.layout.sizes[clusters], kind="stable")]

    def _score(self, settings: list[Setting]) -> Iterator[Score]:
        """Scores of settings with ascending C and the same gamma and epsilon. Raises Stopped."""
        some = ClusterScores(self.problem_of(settings[0].epsilon), settings)
        data, n_clusters = self._data(settings[0]), len(self.clusters)
        at_once = max(n_clusters // BATCHES, FEWEST_AT_ONCE)
        ends = range(at_once, n_clusters, at_once)
        for batch in np.split(self.clusters, ends):
            some.solve(data, self._by_size(batch), self.stop)
            yield from self._left(some)
            if not some.alive.any():
                break
            done = some.is_done.mean() * np.count_nonzero(some.alive)
            self.tell(self.n_done + np.count_nonzero(~some.alive) + done)
        self.n_done += len(settings)
        found = {k: some.score(k) for k in np.flatnonzero(some.alive)}
        for k, score in found.items():
            if score.may_win and best_of([score, *self.scores]) is score:
                self._take_best(score, some.all_losses(k))
        yield from found.values()

    def _take_best(self, score: Score, losses: np.ndarray) -> None:
        """Score the others against this one, and begin where it has lost most by row."""
        self.best, layout = (score, losses), self.problem.layout
        cluster = layout.placed.nearest[layout.folds.row[layout.folds.held]]
        lost = np.bincount(cluster, losses, layout.n_clusters)
        self.clusters = np.argsort(-lost / np.maximum(layout.sizes, 1), kind="stable")

    def _left(self, some: ClusterScores) -> list[Score]:
        """The scores of settings that have lost more by now than the best one has in all."""
        best = best_of(score for score in self.scores if score.may_win)
        if best is None or self.every or some.is_judged.all():
            return []
        left = np.flatnonzero(some.alive & (some.loss.sum(axis=1) > best.total))
        scores = [self._estimate(some, k) for k in left]
        some.alive[left] = False
        return scores

    def _estimate(self, some: ClusterScores, k: int) -> Score:
        """The score of a setting that is not scored on all rows. Of those left out it is taken to
        lose as much as where it was tried, or as much more than the best one as where both are
        scored: the latter the more the more rows there were, but never less than the best one."""
        score = replace(some.score(k), is_complete=False, n_sv=None)
        if self.best is None:
            return score
        best, losses = self.best
        lost = losses[some.is_judged[self.problem.folds.held]].sum()
        by_best = best.total * score.total / lost if lost > 0 else score.total
        tried = next((one for one in self.estimates if one.setting == score.setting), None)
        seen = score.weight / best.weight
        by_trial = by_best if tried is None else tried.loss * best.weight
        total = max(seen * by_best + (1.0 - seen) * by_trial, score.total)
        factor = total / best.weight / score.loss
        of_folds = tuple(loss * factor for loss in score.losses)
        return replace(score, loss=score.loss * factor, losses=of_folds)
