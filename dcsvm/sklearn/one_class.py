"""OneClassSVM: scikit-learn's constructor parameters with its defaults, then ours."""

from __future__ import annotations

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import _num_samples

from dcsvm.sklearn.conversion import Convertible
from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.parameters import documented


@documented
class OneClassSVM(Convertible, OutlierMixin, Estimator):
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

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        nu=0.5,
        shrinking=True,
        cache_size=200,
        verbose=False,
        max_iter=-1,
        gap=None,
        time_limit=None,
        checkpoint=None,
        warm_start=False,
        threads=None,
        memory=None,
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.gap = gap
        self.time_limit = time_limit
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.threads = threads
        self.memory = memory

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
