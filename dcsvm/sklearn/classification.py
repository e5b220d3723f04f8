"""SVC and NuSVC: scikit-learn's constructor parameters with its defaults, then ours."""

from __future__ import annotations

from dcsvm.sklearn.classifier import Classifier
from dcsvm.sklearn.parameters import (
    CLASSES,
    CLUSTERS,
    KERNEL,
    LIMITS,
    MACHINE,
    SOLVING,
    with_parameters,
)


@with_parameters("C", *KERNEL, "shrinking", *SOLVING, *CLASSES, *CLUSTERS, *LIMITS, *MACHINE)
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


@with_parameters("nu", *KERNEL, "shrinking", *SOLVING, *CLASSES, *LIMITS, *MACHINE)
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
