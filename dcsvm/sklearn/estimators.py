"""The five estimators, with scikit-learn's parameters and defaults and further parameters."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OutlierMixin, RegressorMixin
from sklearn.utils.validation import _num_samples

from dcsvm.sklearn.classifier import Classifier
from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.fitted import THEIRS, with_parameters
from dcsvm.sklearn.rows import Input, Weights, in_known_frame


@with_parameters(
    "C",
    "KERNEL",
    "DATA",
    "shrinking",
    "SOLVING",
    "CLASSES",
    "CLUSTERS",
    "LIMITS",
    "MACHINE",
)
class SVC(Classifier):
    """C-support vector classification, one-vs-one, with a bias.

    A drop-in replacement for sklearn.svm.SVC, with certified optimality (`violation_`,
    `duality_gap_`). Sample weights count copies of rows, and predict_proba agrees with predict.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : dcsvm.Model
    report_ : dcsvm.TrainReport or None
        None if scikit-learn's solver was used.
    violation_, duality_gap_ : float or None
        Largest KKT violation and duality gap.

    The other attributes are scikit-learn's: support_, support_vectors_, n_support_, dual_coef_,
    intercept_, coef_, classes_, class_weight_, fit_status_, n_iter_, shape_fit_, n_features_in_,
    feature_names_in_, probA_, probB_. With early=True dual_coef_ and intercept_ do not exist; each
    cluster has its own, in model_.early.

    Notes
    -----
    Features are rounded to float32. Up to 1000 rows are solved to a finer tolerance than tol if
    n (k - 1) is at most 5000 for n rows of k classes, unless max_iter, gap, time_limit or
    checkpoint is set. With probability=True and more than two classes predict returns the most
    probable class.
    """

    _svm_type = "c_svc"

    def _class_options(self) -> dict[str, Any]:
        weights = dict(enumerate(self.class_weight_.tolist()))
        return {**super()._class_options(), "bias": True, "class_weight": weights}


@with_parameters("nu", "KERNEL", "DATA", "shrinking", "SOLVING", "CLASSES", "LIMITS", "MACHINE")
class NuSVC(Classifier):
    """Nu-support vector classification, one-vs-one.

    A drop-in replacement for sklearn.svm.NuSVC, but class_weight is supported: it multiplies sample
    weights, and may make nu infeasible. If a pair of classes has no margin, scikit-learn's solver
    is used, which stops early.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVC, without an early model.
    """

    _svm_type = "nu_svc"
    _one_class_left = (
        "specified nu is infeasible: all samples with positive weights belong to the same class."
    )

    def _targets(self, y: ArrayLike, weights: Weights) -> tuple[np.ndarray, Weights]:
        labels, weights = super()._targets(y, weights)
        if self.class_weight is None or (weights is not None and len(weights) != len(labels)):
            return labels, weights
        return labels, (1.0 if weights is None else weights) * self.class_weight_[labels]


@with_parameters(
    "C",
    "epsilon",
    "KERNEL",
    "DATA",
    "shrinking",
    "SOLVING",
    "CLUSTERS",
    "LIMITS",
    "MACHINE",
)
class SVR(RegressorMixin, Estimator):
    """Epsilon-support vector regression.

    A drop-in replacement for sklearn.svm.SVR, with certified optimality (`violation_`,
    `duality_gap_`). Sample weights count copies of rows.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVC, without classes_, class_weight_, probA_ and probB_.
    """

    _svm_type = "epsilon_svr"

    def predict(self, X: Input, *, method: str | None = None) -> np.ndarray:
        """Predict targets, float64 (n,), with the 'exact' or 'early' part of the model."""
        return self._values(X, method)[:, 0]


@with_parameters("nu", "C", "KERNEL", "DATA", "shrinking", "SOLVING", "LIMITS", "MACHINE")
class NuSVR(RegressorMixin, Estimator):
    """Nu-support vector regression: nu instead of epsilon.

    A drop-in replacement for sklearn.svm.NuSVR.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVR, without an early model.
    """

    _svm_type = "nu_svr"

    def predict(self, X: Input) -> np.ndarray:
        """Predict targets, float64 (n,)."""
        return self._values(X, None)[:, 0]


@with_parameters("nu", "KERNEL", "DATA", "shrinking", "SOLVING", "LIMITS", "MACHINE")
class OneClassSVM(OutlierMixin, Estimator):
    """Novelty detection: the support of a distribution.

    A drop-in replacement for sklearn.svm.OneClassSVM.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of NuSVR, and offset_: decision_function is score_samples minus offset_.
    """

    _svm_type = "one_class"

    def fit(
        self,
        X: Input,
        y: ArrayLike | None = None,  # noqa: ARG002  scikit-learn's signature
        sample_weight: ArrayLike | None = None,
    ) -> Estimator:
        """Fit the model; y is ignored. X and sample_weight are as for SVC."""
        X = in_known_frame(X)
        return super().fit(X, np.ones(_num_samples(X)), sample_weight=sample_weight)

    def decision_function(self, X: Input) -> np.ndarray:
        """Compute decision values, float64 (n,); negative values stand for outliers."""
        return self._values(X, None)[:, 0]

    def score_samples(self, X: Input) -> np.ndarray:
        """Compute decision values without the offset, float64 (n,)."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Input) -> np.ndarray:
        """Predict +1 for inliers and -1 for outliers, int (n,)."""
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)

    @property
    def offset_(self) -> np.ndarray:
        """Offset of decision_function, float64 (1,)."""
        return -self.intercept_


OURS = dict(zip(THEIRS, (SVC, NuSVC, SVR, NuSVR, OneClassSVM), strict=True))
