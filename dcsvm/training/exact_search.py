"""Grid search by exact models; folds are solved in batches, as in cross validation.

Rows are prepared once for each gamma and epsilon; all values of C share the clusters. The setting
with the best estimate is scored first. A setting is pruned if its loss on some folds exceeds the
total loss of the best setting. Classifiers are first solved to a loose tolerance. A setting whose
loss is then far above the best is pruned, the others are solved on from there. A solution without
bounded variables also solves every larger C.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from dcsvm import _core
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.problem.folds import Folds
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.extraction import NoMarginError
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.report import Progress
from dcsvm.training.cross_validation import CrossValidationRun
from dcsvm.training.fold_losses import FoldLosses
from dcsvm.training.held_out import as_folds
from dcsvm.training.settings import Score, Setting, best_of
from dcsvm.training.warm_start import PathWarmStart

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
        self.tree = held.levels.tree
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
