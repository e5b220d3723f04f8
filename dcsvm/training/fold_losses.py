"""Losses of a metric on held-out rows, of single rows or of whole folds."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from dcsvm.model.metrics import DEFINITIONS, Outcome
from dcsvm.problem.folds import Folds
from dcsvm.problem.task import balanced_factors
from dcsvm.solving.preparation import Prepared
from dcsvm.training.probability import fit_sigmoid, sigmoid


def with_probabilities(outcome: Outcome) -> Outcome:
    """Add the probabilities of the sigmoid that fits the decision values best."""
    assert outcome.values is not None
    slope, offset = fit_sigmoid(outcome.values, outcome.is_first, outcome.weights)
    first = sigmoid(outcome.values, slope, offset)
    return replace(outcome, probabilities=np.column_stack([first, 1 - first]))


class FoldLosses:
    """Losses of the predictions of held-out entries of folds.

    Attributes
    ----------
    metric : the definition of the metric.
    truth : (n_entries,), class index or target of each entry of `folds`.
    """

    def __init__(self, prepared: Prepared, folds: Folds, metric: str) -> None:
        self.metric, self.folds, self.task = DEFINITIONS[metric], folds, prepared.task
        self.truth = prepared.targets[folds.row]
        self.factors: np.ndarray | None = None
        if self.metric.is_balanced:
            weights, n_classes = prepared.sample_weight, prepared.task.n_classes
            self.factors = balanced_factors(prepared.targets, weights, n_classes)

    @property
    def is_by_rows(self) -> bool:
        """Whether the sum of losses of rows shows which setting is best."""
        return self.metric.row_losses is not None

    @cached_property
    def alone(self) -> np.ndarray:
        """Training class of each entry's fold if it has only one, else -1; int64 (n_entries,)."""
        if not self.task.is_classification:
            return np.full(len(self.truth), -1)
        return self.folds.classes_alone(self.truth, self.task.n_classes)

    def of_rows(self, entries: np.ndarray | slice, predicted: np.ndarray) -> np.ndarray:
        """Compute the losses (m,) of entries from class indices or values (m,).

        For balanced-accuracy, an error in class k counts n / (n_classes n_k) times.
        """
        assert self.metric.row_losses is not None
        truth = self.truth[entries]
        losses = self.metric.row_losses(truth, predicted)
        return losses if self.factors is None else self.factors[truth] * losses

    def of_folds(
        self, entries: np.ndarray, predicted: np.ndarray, values: np.ndarray | None
    ) -> tuple[float, np.ndarray]:
        """Compute the loss of all these entries, and of each fold (n_folds,), nan without rows.

        `values` (m,) are decision values of two classes. A fold with one training class has the
        value 1 or -1, as for probabilities; a cluster without a model has 0.
        """
        fold, weights = self.folds.fold[entries], self.folds.weight[entries]
        classes = np.arange(self.task.n_classes)
        outcome = Outcome(self.truth[entries], predicted, None, None, weights, classes)
        if self.metric.needs_values:
            assert values is not None
            alone = self.alone[entries]
            values = np.where(alone >= 0, 1.0 - 2.0 * alone, values)
            outcome = replace(outcome, values=np.where(np.isnan(values), 0.0, values))
        if self.metric.needs_probabilities:
            outcome = with_probabilities(outcome)
        of_folds = np.full(self.folds.n_folds, np.nan)
        for k in np.unique(fold):
            of_folds[k] = self.metric.loss(outcome.take(fold == k))
        return self.metric.loss(outcome), of_folds
