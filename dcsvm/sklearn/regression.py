"""SVR and NuSVR: scikit-learn's constructor parameters with its defaults, then ours."""

from __future__ import annotations

from sklearn.base import RegressorMixin

from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.parameters import (
    CLUSTERS,
    KERNEL,
    LIMITS,
    MACHINE,
    SOLVING,
    with_parameters,
)


@with_parameters("C", "epsilon", *KERNEL, "shrinking", *SOLVING, *CLUSTERS, *LIMITS, *MACHINE)
class SVR(RegressorMixin, Estimator):
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

    def predict(self, X, *, method=None):
        """Values (n,). `method` is 'exact' or 'early'; None is what was fitted."""
        return self._values(X, method)[:, 0]


@with_parameters("nu", "C", *KERNEL, "shrinking", *SOLVING, *LIMITS, *MACHINE)
class NuSVR(RegressorMixin, Estimator):
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

    def predict(self, X):
        """Values (n,)."""
        return self._values(X, None)[:, 0]
