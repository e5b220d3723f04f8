"""Score settings of one gamma and epsilon on held-out rows, cluster by cluster.

Models are early ones, or exact ones of few rows if one cluster has all rows. All settings share the
clusters; settings of one axis share kernel values.
"""

import time
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from dcsvm import _core
from dcsvm.kernel.kernel_rows import KernelRows
from dcsvm.kernel.partition import blended
from dcsvm.model.pair_weights import most_voted
from dcsvm.solving.preparation import Prepared
from dcsvm.training.cluster_layout import HeldOutBatch, Layout
from dcsvm.training.fold_losses import FoldLosses
from dcsvm.training.settings import Score, Setting

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
