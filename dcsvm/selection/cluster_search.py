"""Grid search by early models, or by exact ones of few rows, with one partition of the rows.

All settings are tried on part of the clusters. The best of them is then scored on all, followed by
the others in order of promise. A setting is pruned once its loss exceeds the total loss of the best
one. To see this soon, settings start with the clusters where the best one has the largest loss.
With all rows in one cluster the solutions are exact.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.partition import blended
from dcsvm.model.pair_weights import most_voted
from dcsvm.selection.grid import Score, Setting, best_of
from dcsvm.selection.layout import HeldOutBatch, Layout
from dcsvm.solving.preparation import Prepared

SCORE_TOLERANCE = 1e-2  # of early models: a tenth of it changes one row in 10,000
KERNEL_SHARE = 2  # kernel values take 1/2 of the memory budget, decision values the rest


class GridProblem:
    """Data shared by all settings of one epsilon.

    Attributes
    ----------
    prepared, layout, folds : prepared rows in clusters, with their folds.
    is_exact : whether the solutions are exact models, else early ones.
    truth : (n_entries,), class or target of each entry of the folds.
    alone : int64 (n_entries,), the only training class of the entry's fold, else -1.
    """

    def __init__(self, prepared: Prepared, layout: Layout, *, is_exact: bool) -> None:
        self.prepared, self.layout, self.folds = prepared, layout, layout.folds
        self.is_classification, self.is_exact = prepared.task.is_classification, is_exact
        self.truth = prepared.targets[self.folds.row]
        tolerance = prepared.options.tolerance
        self.tolerance = tolerance if is_exact else max(tolerance, SCORE_TOLERANCE)
        self.alone = np.full(len(self.truth), -1)
        if self.is_classification:
            self.alone = self.folds.classes_alone(self.truth, prepared.task.n_classes)

    @cached_property
    def means(self) -> np.ndarray:
        """Mean training target of each fold, predicted by clusters without training rows."""
        weights = self.layout.left
        return weights @ self.prepared.targets / weights.sum(axis=1)

    @property
    def memory_bytes(self) -> int:
        """Memory for kernel values; decision values get the same amount."""
        return self.prepared.solver_bytes(self.layout.formulation) // KERNEL_SHARE

    @property
    def most_at_once(self) -> int:
        """Number of C whose decision values of all rows fit into memory."""
        n_values = len(self.truth) + len(self.layout.blended)
        return max(1, self.memory_bytes // (4 * n_values * self.layout.n_pairs + 1))

    def solved(
        self, data: KernelRows, held: HeldOutBatch, penalties: Sequence[float], stop: _core.Stop
    ) -> tuple[np.ndarray, list[dict[str, int]]]:
        """Solve clusters for ascending C, and predict the rows held out. Raises Stopped.

        Returns decision values, float64 (n_C, n_entries, n_pairs), and a report for each C.
        """
        return _core.held_out_values(
            data.setup, data.points, self.layout.formulation.problem, held, penalties,
            self.tolerance, self.is_classification, not self.is_exact, self.memory_bytes,
            data.threads, stop,
        )  # fmt: skip

    def losses(self, entries: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Compute the weighted loss of entries from decision values (m, n_pairs)."""
        weight = self.folds.weight[entries]
        if not self.is_classification:
            means = self.means[self.folds.fold[entries]]
            predicted = np.where(np.isnan(values[:, 0]), means, values[:, 0])
            return weight * (predicted - self.truth[entries]) ** 2
        predicted = most_voted(values, self.prepared.task.n_classes)
        predicted = np.where(self.alone[entries] >= 0, self.alone[entries], predicted)
        return weight * (predicted != self.truth[entries])


class ClusterScores:
    """Scores of settings with ascending C, one gamma and one epsilon.

    Attributes
    ----------
    loss : float64 (n_C, n_folds), sum over the rows predicted so far.
    seen : float64 (n_C, n_folds), the weight of these rows.
    n_seen : int64 (n_C,), their number.
    converged, n_sv : (n_C,), whether all solved clusters converged, and their support vectors.
    alive : bool (n_C,), settings that are still being solved.
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
        self.first = np.empty((n, len(problem.truth), layout.n_pairs), np.float32)
        self.second = np.empty((n, len(layout.blended), layout.n_pairs), np.float32)
        self.of_blended = np.full(len(problem.truth), -1)
        self.of_blended[layout.blended] = np.arange(len(layout.blended))

    def solve(self, data: KernelRows, clusters: np.ndarray, stop: _core.Stop) -> None:
        """Solve a batch of clusters for the C in the race. Raises Stopped."""
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
        """Count the losses of rows with all of their clusters solved."""
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
            losses = self._losses(k, entries)
            self.loss[k] += np.bincount(fold, losses, problem.folds.n_folds)
            self.seen[k] += weight
            self.n_seen[k] += problem.folds.counts[entries].sum()

    def _losses(self, k: int, entries: np.ndarray) -> np.ndarray:
        layout = self.problem.layout

        def values_by(index: np.ndarray | slice, _cluster: np.ndarray) -> np.ndarray:
            if isinstance(index, slice):
                return self.first[k, entries].astype(np.float64)
            return self.second[k, self.of_blended[entries[index]]].astype(np.float64)

        placed = layout.placed.take(self.problem.folds.row[entries])
        return self.problem.losses(entries, blended(values_by, placed, layout.blend))

    def all_losses(self, k: int) -> np.ndarray:
        """Compute the loss of each held-out entry by a completely scored setting."""
        return self._losses(k, np.arange(len(self.is_judged))[self.problem.folds.held])

    def score(self, k: int) -> Score:
        seen, loss, folds = self.seen[k], self.loss[k], self.problem.folds
        is_complete = bool(self.is_judged.all() and self.in_race[k])
        with np.errstate(invalid="ignore"):
            losses = loss / seen
        return Score(
            setting=self.settings[k],
            loss=float(loss.sum() / (seen.sum() or 1.0)),
            losses=tuple(losses.tolist()),
            n_rows=int(self.n_seen[k]),
            weight=float(seen.sum()),
            is_complete=is_complete,
            converged=bool(self.converged[k]),
            n_sv=int(self.n_sv[k]) // folds.n_folds if is_complete else None,
            seconds=float(self.seconds[k]),
        )


# All settings are tried on at least this share of the rows, and this number.
PILOT_SHARE, PILOT_ROWS = 0.02, 2000
BATCHES = 32  # of clusters; settings may be pruned after each
MIN_BATCH = 2  # clusters of a batch
MIN_TRIED = 4  # settings; trying fewer does not pay


@dataclass(eq=False)
class ClusterSearch:
    """Search by clusters for the best of some settings.

    Attributes
    ----------
    problem_of : makes the Problem of an epsilon.
    order : the settings to score.
    every, tell : as in Search.
    scores : all scores so far.
    estimates : scores on part of the clusters.
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
        self.best: tuple[Score, np.ndarray] | None = None  # with its loss of each entry

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
        """Score all settings on clusters with at least a share of the rows. Raises Stopped.

        Returns the `estimates`, coarse to fine; an empty list if nearly all clusters were needed.
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
        """Sort clusters, the largest first: threads then finish at about the same time."""
        return clusters[np.argsort(-self.problem.layout.sizes[clusters], kind="stable")]

    def _score(self, settings: list[Setting]) -> Iterator[Score]:
        """Score settings with ascending C, one gamma and one epsilon. Raises Stopped."""
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
            if score.may_win and best_of([score, *self.scores]) is score:
                self._set_best(score, batch.all_losses(k))
        yield from scores.values()

    def _set_best(self, score: Score, losses: np.ndarray) -> None:
        """Compare others with this score, starting where its loss per row is largest."""
        self.best, layout = (score, losses), self.problem.layout
        cluster = layout.placed.nearest[layout.folds.row[layout.folds.held]]
        lost = np.bincount(cluster, losses, layout.n_clusters)
        self.clusters = np.argsort(-lost / np.maximum(layout.sizes, 1), kind="stable")

    def _prune(self, batch: ClusterScores) -> list[Score]:
        """Prune the settings with a larger loss so far than the best one in all."""
        best = best_of(score for score in self.scores if score.may_win)
        if best is None or self.every or batch.is_judged.all():
            return []
        pruned = np.flatnonzero(batch.in_race & (batch.loss.sum(axis=1) > best.total))
        scores = [self._estimate(batch, k) for k in pruned.tolist()]
        batch.in_race[pruned] = False
        return scores

    def _estimate(self, batch: ClusterScores, k: int) -> Score:
        """Estimate the score of a pruned setting, not better than the best one.

        Its loss on the remaining rows is extrapolated from the trial, and from the ratio to the
        best setting on the rows seen. The latter gets the share of the rows seen as its weight.
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
