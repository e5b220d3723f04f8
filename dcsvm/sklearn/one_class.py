"""OneClassSVM: scikit-learn's constructor parameters with its defaults, then ours."""

from __future__ import annotations

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import _num_samples

from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.parameters import (
    KERNEL,
    LIMITS,
    MACHINE,
    SOLVING,
    with_parameters,
)


@with_parameters("nu", *KERNEL, "shrinking", *SOLVING, *LIMITS, *MACHINE)
class OneClassSVM(OutlierMixin, Estimator):
    """Novelty detection: the support of a distribution.

    A drop-in for sklearn.svm.OneClassSVM.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVR, and offset_: decision_function is score_samples less offset_.
    """

    _svm_type = "one_class"

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model; y is ignored. X and sample_weight are as of SVC."""
        return super().fit(X, np.ones(_num_samples(X)), sample_weight=sample_weight)

    def decision_function(self, X):
        """Decision values (n,): positive inside, negative for outliers."""
        return self._values(X, None)[:, 0]

    def score_samples(self, X):
        """Decision values (n,) without the offset."""
        return self.decision_function(X) + self.offset_

    def predict(self, X):
        """+1 for inliers, -1 for outliers, (n,)."""
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)

    @property
    def offset_(self):
        """What decision_function takes from score_samples."""
        return -self.intercept_
