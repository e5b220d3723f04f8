"""The five estimators: scikit-learn's constructor parameters with its defaults, then ours."""

from __future__ import annotations

import numpy as np
from sklearn.base import OutlierMixin, RegressorMixin
from sklearn.utils.validation import _num_samples

from dcsvm.sklearn.classifier import Classifier
from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.parameters import with_parameters


@with_parameters("C", "KERNEL", "shrinking", "SOLVING", "CLASSES", "CLUSTERS", "LIMITS", "MACHINE")
class SVC(Classifier):
    """C-support vector classification, one against one, with a bias.

    A drop-in for sklearn.svm.SVC. Sample weights are copies of rows, predict_proba agrees with
    predict, and `violation_` and `duality_gap_` say how good the solution is.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    Those of scikit-learn: support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_,
    classes_, class_weight_, fit_status_, n_iter_, shape_fit_, n_features_in_, feature_names_in_,
    probA_, probB_. Ours: model_ (dcsvm.Model), report_ (its TrainReport), violation_,
    duality_gap_. With early=True there are no dual_coef_ and intercept_: each cluster has its own,
    in model_.early.

    Notes
    -----
    Features are rounded to float32. Up to 1000 rows are solved as far as rounding allows, whatever
    tol is, where there is no limit to the work. With probability=True of more than two classes
    predict gives the class of the highest probability.
    """

    _svm_type = "c_svc"

    def _options(self, seed):
        weights = dict(enumerate(self.class_weight_.tolist()))
        return {**super()._options(seed), "bias": True, "class_weight": weights}


@with_parameters("nu", "KERNEL", "shrinking", "SOLVING", "CLASSES", "LIMITS", "MACHINE")
class NuSVC(Classifier):
    """Nu-support vector classification, one against one.

    A drop-in for sklearn.svm.NuSVC, but it heeds class_weight: it multiplies the weights of the
    rows of a class, and like these may make nu infeasible. Where a pair of classes has no margin
    the fit is left to scikit-learn's solver, which stops before it finds that out.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVC, but for the early model.
    """

    _svm_type = "nu_svc"
    _one_class_left = (
        "specified nu is infeasible: all samples with positive weights belong to the same class."
    )

    def _targets(self, y, weights):
        labels, weights = super()._targets(y, weights)
        if self.class_weight is None or (weights is not None and len(weights) != len(labels)):
            return labels, weights
        return labels, (1.0 if weights is None else weights) * self.class_weight_[labels]


@with_parameters("C", "epsilon", "KERNEL", "shrinking", "SOLVING", "CLUSTERS", "LIMITS", "MACHINE")
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


@with_parameters("nu", "C", "KERNEL", "shrinking", "SOLVING", "LIMITS", "MACHINE")
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


@with_parameters("nu", "KERNEL", "shrinking", "SOLVING", "LIMITS", "MACHINE")
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


OURS = {one._svm_type: one for one in (SVC, NuSVC, SVR, NuSVR, OneClassSVM)}
