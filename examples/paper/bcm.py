"""Prediction by a Bayesian committee of the early level's clusters, for comparison.

Tresp, "A Bayesian Committee Machine" (Neural Computation 12, 2000), with the probabilities of
SVMs: P(y|x) is proportional to the product over clusters m of p_m(y|x), divided by P(y)^(M-1). As
log odds: sum_m logit p_m(x) - (M - 1) logit P(+1). The p_m are logistic in the decision value of
cluster m (Platt), fitted on rows that no cluster was trained on. They are rows from everywhere:
a cluster says its prior of those far from it, not that of its own rows.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from dcsvm.model import ExactModel, Model

LARGEST_LOG_ODDS = np.log(1e6)  # of one cluster: more than its held-out rows can tell


def cluster_values(model: Model, X: np.ndarray, threads: int) -> np.ndarray:
    """Decision value of every cluster's own SVM for rows X (n, d): float64 (n, n_clusters)."""
    early = model.early
    values = np.zeros((len(X), early.partition.n_clusters))
    for cluster in np.unique(early.cluster):
        own = np.flatnonzero(early.cluster == cluster)
        exact = ExactModel(early.rows.take(own), early.coef[:, own], early.rho[cluster])
        part = Model(model.kernel, model.labels, exact, None)
        values[:, cluster] = part.decision_function(X, threads=threads)
    return values


class Committee:
    """An early model whose clusters vote by their probabilities.

    `X` (n, d) and `y` (n,) of +1 and -1 are held-out rows of both classes.
    """

    def __init__(self, model: Model, X: np.ndarray, y: np.ndarray, threads: int):
        self.model, self.threads = model, threads
        values = cluster_values(model, X, threads)
        fits = [LogisticRegression(C=np.inf).fit(column[:, None], y > 0) for column in values.T]
        self.slope = np.array([fit.coef_[0, 0] for fit in fits])
        self.offset = np.array([fit.intercept_[0] for fit in fits])
        share = np.mean(y > 0)
        self.prior = np.log(share / (1 - share))

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Log odds of label +1 for rows (n, d)."""
        values = cluster_values(self.model, X, self.threads)
        odds = np.clip(self.slope * values + self.offset, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
        return odds.sum(axis=1) - (values.shape[1] - 1) * self.prior
