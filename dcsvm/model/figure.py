"""Estimate the loss on new rows of a setting that was the best of several on the same rows.

The least of several losses is too small, because it was chosen by the noise of these rows. The
bootstrap corrects it: on rows drawn with replacement the best setting is chosen again, and its loss
is taken from the rows that were not drawn (Tsamardinos, Greasidou and Borboudakis,
"Bootstrapping the out-of-sample predictions for efficient and accurate cross-validation", Machine
Learning 107, 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dcsvm.model.metrics import DEFINITIONS, Metric, Outcome, variance_of

N_DRAWN = 200  # bootstrap samples
# Metrics that are no means over rows are computed anew for each sample, so of fewer samples and
# settings: the best ones.
N_DRAWN_OF_ALL, MAX_RIVALS = 40, 6

Losses = Callable[[np.ndarray], np.ndarray]  # of rows with counts (n,): of each trial (n_trials,)


def loss_of_best(
    metric: str, trials: Sequence[Sequence[Outcome]], chosen: int
) -> tuple[float, float]:
    """Estimate the loss on new rows of the chosen trial, and the standard error.

    `trials` are all that could have been chosen, each with one outcome per division of the rows
    into folds; all outcomes are of the same rows in the same order.
    """
    definition = DEFINITIONS[metric]
    own_losses = [definition.loss(outcome) for outcome in trials[chosen]]
    if definition.row_losses is not None:
        losses, n_drawn = _of_rows(definition, trials), N_DRAWN
    else:
        trials, chosen = _rivals(definition, trials, chosen)
        losses, n_drawn = _of_all(definition, trials), N_DRAWN_OF_ALL
    n = len(trials[0][0].labels)
    rng = np.random.default_rng(0)
    beyond, spread = [], []
    for _ in range(n_drawn):
        counts = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
        drawn = losses(counts)
        spread.append(drawn[chosen])
        best = chosen
        if not np.isnan(drawn).all() and not drawn[chosen] <= np.nanmin(drawn):
            best = int(np.nanargmin(drawn))
        if best == chosen:
            beyond.append(0.0)
        else:
            left = losses((counts == 0).astype(np.float64))
            beyond.append(left[best] - left[chosen])
    # the chosen trial's loss on the rows that were not drawn is its own loss, up to noise
    mean = float(np.nanmean(beyond))
    correction = mean if mean > 0 else 0.0
    return float(np.mean(own_losses)) + correction, float(np.nanstd(spread))


def _of_rows(definition: Metric, trials: Sequence[Sequence[Outcome]]) -> Losses:
    """Return the losses of trials by a metric that is a mean over rows."""
    assert definition.row_losses is not None
    first = trials[0][0]
    of_rows = np.array(
        [
            np.mean([definition.row_losses(one.labels, one.predicted) for one in outcomes], axis=0)
            for outcomes in trials
        ]
    )
    weights = np.ones(len(first.labels)) if first.weights is None else first.weights
    _, classes = np.unique(first.labels, return_inverse=True)

    def losses(counts: np.ndarray) -> np.ndarray:
        total = counts * weights
        if definition.is_balanced:  # all classes have the same weight
            of_classes = np.bincount(classes, total)
            total = total / np.where(of_classes > 0, of_classes, 1.0)[classes]
        if not total.any():
            return np.full(len(of_rows), np.nan)
        variance = variance_of(first.labels, total) if definition.is_relative else 1.0
        return np.asarray(definition.of_mean(of_rows @ total / total.sum(), variance))

    return losses


def _rivals(
    definition: Metric, trials: Sequence[Sequence[Outcome]], chosen: int
) -> tuple[list[Sequence[Outcome]], int]:
    """Return the trials of the smallest losses, the chosen one first; labels are numbers."""
    losses = [np.mean([definition.loss(one) for one in outcomes]) for outcomes in trials]
    order = [k for k in np.argsort(losses, kind="stable") if k != chosen]
    kept = [trials[chosen], *(trials[k] for k in order[: MAX_RIVALS - 1])]
    return [[_numbered(one) for one in outcomes] for outcomes in kept], 0


def _numbered(outcome: Outcome) -> Outcome:
    """Return an outcome whose labels of text are numbers in their order, which compare faster."""
    if outcome.labels.dtype.kind not in "UO":
        return outcome
    given = [outcome.labels, outcome.predicted]
    given += [] if outcome.classes is None else [outcome.classes]
    _, places = np.unique(np.concatenate([one.astype(str) for one in given]), return_inverse=True)
    labels, predicted, *classes = np.split(
        places.astype(np.float64), np.cumsum([len(one) for one in given[:-1]])
    )
    known = classes[0] if classes else None
    return replace(outcome, labels=labels, predicted=predicted, classes=known)


def _of_all(definition: Metric, trials: Sequence[Sequence[Outcome]]) -> Losses:
    """Return the losses of trials by any metric."""

    def losses(counts: np.ndarray) -> np.ndarray:
        rows = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
        if len(rows) == 0:  # of few rows, all may be drawn
            return np.full(len(trials), np.nan)
        return np.array(
            [np.mean([definition.loss(one.take(rows)) for one in outcomes]) for outcomes in trials]
        )

    return losses
