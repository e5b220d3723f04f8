"""SVR and NuSVR: scikit-learn's constructor parameters with its defaults, then ours."""

from __future__ import annotations

from sklearn.base import RegressorMixin

from dcsvm.sklearn.conversion import Convertible
from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.parameters import documented


@documented
class SVR(Convertible, RegressorMixin, Estimator):
    """Epsilon-support vector regression.

    A drop-in for sklearn.svm.SVR. Sample weights are copies of rows; `violation_` and
    `duality_gap_` say how good the solution is.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVC, without those of classes.
    """

    _svm_type = "epsilon_svr"

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        C=1.0,
        epsilon=0.1,
        shrinking=True,
        cache_size=200,
        verbose=False,
        max_iter=-1,
        levels=None,
        early=False,
        early_level=None,
        overlap=None,
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
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.levels = levels
        self.early = early
        self.early_level = early_level
        self.overlap = overlap
        self.gap = gap
        self.time_limit = time_limit
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.threads = threads
        self.memory = memory

    def predict(self, X, *, method=None):
        """Values (n,). `method` is 'exact' or 'early'; None is what was fitted."""
        return self._values(X, method)[:, 0]


@documented
class NuSVR(Convertible, RegressorMixin, Estimator):
    """Nu-support vector regression: nu instead of epsilon.

    A drop-in for sklearn.svm.NuSVR.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVR, but for the early model.
    """

    _svm_type = "nu_svr"

    def __init__(
        self,
        *,
        nu=0.5,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        tol=1e-3,
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
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.gap = gap
        self.time_limit = time_limit
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.threads = threads
        self.memory = memory

    def predict(self, X):
        """Values (n,)."""
        return self._values(X, None)[:, 0]
