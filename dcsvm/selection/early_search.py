"""The settings of a grid by early models, or by exact ones where the rows are few: all from one
partition of the rows.

First all settings are tried on some of the clusters. Then the best of them is scored on all, and
the others, the promising ones first, until they are done or have lost more than it has in all. They
begin where that one has lost most, so that this is seen soon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.selection.cluster_scores import ClusterScores, Problem
from dcsvm.selection.grid import Grid, Setting
from dcsvm.selection.score import Score, best_of

PILOT_SHARE, PILOT_ROWS = 0.02, 4000  # of the clusters that all settings are tried on, at least
BATCHES = 32  # of clusters, after each of which settings may be left
CLUSTERS_OF_THREAD = 4  # in a batch, at least


@dataclass(eq=False)
class ClusterSearch:
    """A search by clusters: a problem for each epsilon, and the settings that are `open`."""

    problems: dict[float | None, Problem]
    grid: Grid
    open: set[Setting]
    stop: _core.Stop
    every: bool  # whether settings that cannot win are scored all the same
    seed: int
    best: Score | None = None
    scores: list[Score] = field(default_factory=list)

    def __post_init__(self):
        self.problem = next(iter(self.problems.values()))
        self.data: KernelRows = self.problem.prepared.data
        self.order = np.random.default_rng(self.seed).permutation(self.problem.layout.n_clusters)

    def run(self) -> Iterator[Score]:
        """The scores of all open settings, as they are found. Raises Stopped, after the scores of
        what is solved in part."""
        tried = self._try()
        while self.open:
            estimates = tried or [Score(one, 0, (), 0, False, True, None, 0) for one in self.open]
            left = [score for score in estimates if score.setting in self.open]
            first = min(left, key=lambda score: (score.loss, score.setting.C)).setting
            if not self.scores and tried:
                Cs = [first.C]
            else:
                Cs = [
                    one.C
                    for one in self.open
                    if (one.gamma, one.epsilon) == (first.gamma, first.epsilon)
                ]
            most = self.problem.most_at_once
            for score in self._score(first, sorted(Cs)[:most]):
                self.open.discard(score.setting)
                self.scores.append(score)
                yield score

    def _try(self) -> list[Score]:
        """All open settings on some of the clusters; nothing where these are nearly all."""
        sizes = self.problem.layout.sizes[self.order]
        wanted = max(PILOT_SHARE * sizes.sum(), PILOT_ROWS)
        n_clusters = int(np.searchsorted(np.cumsum(sizes), wanted)) + 1
        if 2 * n_clusters > len(sizes) or len(self.open) < 3:
            return []
        tried = []
        for gamma, epsilon in self._axes():
            Cs = sorted(one.C for one in self.open if (one.gamma, one.epsilon) == (gamma, epsilon))
            some = ClusterScores(self.problems[epsilon], gamma, Cs, epsilon)
            some.solve(self._data(gamma), self._by_size(self.order[:n_clusters]), self.stop)
            tried += [some.score(k) for k in range(len(Cs))]
        return tried

    def _axes(self) -> list[tuple]:
        pairs = [(one.gamma, one.epsilon) for one in self.grid.coarse_to_fine() if one in self.open]
        return list(dict.fromkeys(pairs))

    def _data(self, gamma: float | None) -> KernelRows:
        if gamma is None:
            return self.data
        return self.data.with_kernel(replace(self.data.kernel, gamma=gamma))

    def _by_size(self, clusters: np.ndarray) -> np.ndarray:
        """The largest first: threads are done at about the same time."""
        return clusters[np.argsort(-self.problem.layout.sizes[clusters], kind="stable")]

    def _score(self, setting: Setting, Cs: list[float]) -> Iterator[Score]:
        """Scores of some C with the gamma and epsilon of a setting. Raises Stopped."""
        some = ClusterScores(self.problems[setting.epsilon], setting.gamma, Cs, setting.epsilon)
        data = self._data(setting.gamma)
        n_clusters = len(self.order)
        at_once = max(n_clusters // BATCHES, CLUSTERS_OF_THREAD * data.threads)
        try:
            for batch in np.split(self.order, range(at_once, n_clusters, at_once)):
                some.solve(data, self._by_size(batch), self.stop)
                if self.best is not None and not self.every:
                    yield from self._left(some)
                if not some.alive.any():
                    return
        except _core.Stopped:
            yield from (self._estimate(some, k) for k in np.flatnonzero(some.alive))
            raise
        found = {k: some.score(k) for k in np.flatnonzero(some.alive)}
        for k, score in found.items():
            if score.may_win and best_of([score, *self.scores]) is score:
                self._take_best(score, some.all_losses(k))
        yield from found.values()

    def _take_best(self, score: Score, losses: np.ndarray) -> None:
        """Score the others against this one, and begin where it has lost most by row."""
        self.best, self.losses = score, losses
        layout = self.problem.layout
        cluster = layout.placed.nearest[layout.folds.row[layout.folds.held]]
        lost = np.bincount(cluster, losses, layout.n_clusters)
        self.order = np.argsort(-lost / np.maximum(layout.sizes, 1), kind="stable")

    def _left(self, some: ClusterScores) -> list[Score]:
        """The scores of settings that have lost more by now than the best one has in all."""
        least = self.losses.sum()
        left = np.flatnonzero(some.alive & (some.loss.sum(axis=1) > least))
        scores = [self._estimate(some, k) for k in left]
        some.alive[left] = False
        return scores

    def _estimate(self, some: ClusterScores, k: int) -> Score:
        """The score of a setting that is not scored on all rows: as much more than the best one is
        said to lose as it loses more where both are scored."""
        score = replace(some.score(k), is_complete=False, n_sv=None)
        if self.best is None or score.n_rows == 0:
            return score
        lost = self.losses[some.is_judged[self.problem.folds.held]].sum()
        if not lost > 0:
            return score
        factor = self.best.loss * score.n_rows / lost
        losses = tuple(loss * factor for loss in score.losses)
        return replace(score, loss=score.loss * factor, losses=losses)
