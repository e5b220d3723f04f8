"""Train without some rows, predict them, and measure the predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.machine import usable_threads
from dcsvm.model.metrics import DEFINITIONS, Outcome
from dcsvm.model.model import Model
from dcsvm.model.predict import decision_values, predicted_from
from dcsvm.problem.data_gamma import EqualRowsError
from dcsvm.problem.option_table import CLASSIFIERS
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.checkpoint import RunControl
from dcsvm.solving.report import Progress
from dcsvm.training.fit import fit
from dcsvm.training.fold_losses import with_probabilities

N_DRAWN = 50  # bootstrap samples of a standard error


def held_out(
    data: Dataset, is_held: np.ndarray, options: TrainOptions, stop: _core.Stop
) -> Outcome:
    """Train on the other rows and predict the held-out ones. Raises Stopped."""
    trained, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
    labels, weights = data.labels[held], data.sample_weight
    first = data.labels[trained][:1]
    if options.svm_type in CLASSIFIERS and np.all(data.labels[trained] == first):
        return Outcome(labels, np.repeat(first, len(held)))
    own = Dataset(
        data.rows.take(trained), data.labels[trained],
        sample_weight=None if weights is None else weights[trained],
    )  # fmt: skip
    control = RunControl(Progress(), stop)
    try:
        model = fit(own, options, control)
    except EqualRowsError:  # K is 1 for any gamma
        model = fit(own, replace(options, gamma=1.0), control)
    if model.report.stopped:
        raise _core.Stopped
    threads = usable_threads(options.threads)
    values = decision_values(model, data.rows.take(held), None, threads)
    return Outcome(labels, predicted_from(model, values), _first_sign(model, values))


def _first_sign(model: Model, values: np.ndarray) -> np.ndarray | None:
    """Return decision values that are positive for the smaller label of two, else None."""
    if len(model.labels) != 2:
        return None
    return values[:, 0] if model.labels[0] < model.labels[1] else -values[:, 0]


def _joined(several: list[Outcome]) -> Outcome:
    """Join outcomes of different rows; they have values only if all have."""
    labels, predicted = (
        np.concatenate([getattr(one, name) for one in several]) for name in ("labels", "predicted")
    )
    values = [one.values for one in several if one.values is not None]
    all_values = np.concatenate(values) if len(values) == len(several) else None
    return Outcome(labels, predicted, all_values, classes=np.unique(labels))


def loss_with_error(metric: str, several: list[Outcome]) -> tuple[float, float]:
    """Return the loss of a metric on all rows of several outcomes, and its standard error.

    The standard error is a bootstrap estimate.
    """
    one, outcome = DEFINITIONS[metric], _joined(several)
    if one.needs_probabilities:  # of the sigmoid that fits these decision values best
        outcome = with_probabilities(outcome)
    n = len(outcome.labels)
    drawn = np.random.default_rng(0).integers(0, n, (N_DRAWN, n))
    losses = [one.loss(outcome.take(some)) for some in [np.arange(n), *drawn]]
    return losses[0], float(np.nanstd(losses[1:]))
