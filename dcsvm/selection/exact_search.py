"""The settings of a grid by exact models: folds side by side, as in cross validation.

Rows are prepared once for each gamma, and clusters are those of all its C. The promising settings
come first; another one is left after some folds where it has lost more in these than the best one
has in all. Where no |alpha| of a solution has reached C it is that of every larger C, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dcsvm import _core
from dcsvm.kernel.cluster_tree import Tree
from dcsvm.problem.folds import Folds
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.grid import Score, Setting, best_of
from dcsvm.solving.extraction import NoMargin
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.report import Progress
from dcsvm.training.cross_validation import HeldOut
from dcsvm.training.held_out import as_folds
from dcsvm.training.smaller_C import SmallerC


@dataclass(eq=False)
class ExactSearch:
    """A search by exact models of rows that are `prepared` for some options; `fold` is that of each
    row, -1 for rows that none of `n_folds` holds out; `estimates` tell what to begin with, and how
    many folds may be enough to leave a setting. `scores` that are known take part; `tell` is told
    how many settings are done."""

    prepared: Callable[[TrainOptions], Prepared]
    fold: np.ndarray
    n_folds: int
    options: TrainOptions
    order: list[Setting]
    largest_C: float
    estimates: dict[Setting, float]
    stop: _core.Stop
    every: bool  # whether settings that cannot win are scored all the same
    tell: Callable[[float], None]
    scores: list[Score] = field(default_factory=list)

    def __post_init__(self):
        self.of_gamma: tuple[Setting, Prepared, Folds] | None = None
        self.tree: Tree | None = None
        self.smaller = SmallerC()
        self.inside: dict[tuple, tuple[float, Score]] = {}

    def run(self) -> Iterator[Score]:
        """The scores of all settings, as they are found. Raises Stopped."""
        for n_done, setting in enumerate(self._by_promise()):
            self.tell(n_done)
            try:
                score = self._known(setting) or self._scored(setting)
            except NoMargin:
                score = Score(setting, np.nan, (), 0, 0.0, False, False, None, 0.0)
            self.scores.append(score)
            yield score

    def _by_promise(self) -> list[Setting]:
        """The best first, then gamma by gamma, for which rows are prepared, and by ascending C."""
        found = self.estimates
        if not found:
            return self.order
        of_axis: dict[tuple, float] = {}
        for one in self.order:
            of_axis[one.axis] = min(of_axis.get(one.axis, np.inf), found[one])
        best = min(self.order, key=lambda one: (found[one], one.C))
        rest = [one for one in self.order if one != best]
        rest.sort(key=lambda one: (of_axis[one.axis], one.gamma or 0.0, one.epsilon or 0.0, one.C))
        return [best, *rest]

    def _known(self, setting: Setting) -> Score | None:
        """The score of a smaller C whose solutions stay as they are."""
        largest, score = self.inside.get(setting.axis, (np.inf, None))
        return replace(score, setting=setting, seconds=0.0) if largest < setting.C else None

    def _scored(self, setting: Setting) -> Score:
        start = time.perf_counter()
        prepared, folds = self._prepared(setting)
        if not len(prepared.plan.levels):
            self.tree = None
        held = HeldOut(prepared, folds, Progress(), self.stop, self.tree, self.smaller)
        losses, seen = np.zeros(folds.n_folds), np.zeros(folds.n_folds)
        self._count(held, np.setdiff1d(folds.filled, held.open), losses, seen)
        best = best_of(score for score in self.scores if score.may_win)
        least = np.inf if best is None or self.every else best.total
        left = held.open
        while len(left) and losses.sum() <= least:
            some = held.batches(left[: self._enough(setting, folds, least, losses.sum())])[0]
            held.solve(some)
            self._count(held, some, losses, seen)
            left = left[len(some) :]
        self.tree = held.tree
        is_complete = len(left) == 0
        with np.errstate(invalid="ignore"):
            means = losses / seen
        score = Score(
            setting=setting,
            loss=float(losses.sum() / seen.sum()),
            losses=tuple(means.tolist()),
            n_rows=folds.n_held(np.setdiff1d(np.arange(folds.n_folds), left)),
            weight=float(seen.sum()),
            is_complete=is_complete,
            converged=bool(held.n_failed == 0),
            n_sv=held.n_sv // len(folds.filled) if is_complete else None,
            seconds=time.perf_counter() - start,
        )
        if score.may_win and held.largest < np.inf:
            known = self.inside.get(setting.axis, (np.inf, None))
            self.inside[setting.axis] = min(known, (held.largest, score), key=lambda one: one[0])
        return score

    def _enough(self, setting: Setting, folds: Folds, least: float, lost: float) -> int:
        """How many folds may be enough to leave a setting, or all of them."""
        estimate = self.estimates.get(setting)
        if not estimate or np.isinf(least):
            return folds.n_folds
        of_fold = estimate * folds.weight[folds.held].sum() / len(folds.filled)
        return max(int((least - lost) / of_fold) + 1, 1)

    def _count(self, held: HeldOut, some: np.ndarray, losses: np.ndarray, seen: np.ndarray):
        """Add the losses and the weight of what some folds hold out."""
        folds, task = held.folds, held.prepared.task
        for k in some:
            entries = folds.entries(k)
            found, weight = held.predicted[entries], folds.weight[entries]
            truth = held.prepared.targets[folds.row[entries]]
            if task.is_classification:
                losses[k] = weight[found != task.labels[truth]].sum()
            else:
                losses[k] = np.dot(weight, (found - truth) ** 2)
            seen[k] = weight.sum()

    def _prepared(self, setting: Setting) -> tuple[Prepared, Folds]:
        """The rows prepared for a setting: those of its gamma, with the problem of its C."""
        widest = replace(setting, C=self.largest_C)
        if self.of_gamma is None or self.of_gamma[0] != widest:
            self.of_gamma = self.tree = None  # whose memory goes before there is more
            self.smaller = SmallerC()
            options = widest.options(self.options)
            prepared = self.prepared(options)
            prepared = replace(prepared, plan=replace(prepared.plan, early_level=None))
            folds = as_folds(prepared, self.n_folds, self.fold)
            self.of_gamma = widest, prepared, folds
        _, prepared, folds = self.of_gamma
        options = setting.options(self.options)
        task = prepared.task
        C_of_class = task.C_of_class * (options.C / task.options.C)
        task = replace(task, options=options, C_of_class=C_of_class)
        formulation = task.formulate(prepared.targets, prepared.sample_weight)
        return replace(prepared, options=options, task=task, formulation=formulation), folds
