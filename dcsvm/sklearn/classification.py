"""SVC and NuSVC: scikit-learn's constructor parameters with its defaults, then ours."""

from __future__ import annotations

from dcsvm.sklearn.classifier import Classifier
from dcsvm.sklearn.conversion import Convertible
from dcsvm.sklearn.parameters import documented


@documented
class SVC(Convertible, Classifier):
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

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        probability=False,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
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
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
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

    def _options(self, seed):
        weights = dict(enumerate(self.class_weight_.tolist()))
        return {**super()._options(seed), "bias": True, "class_weight": weights}


@documented
class NuSVC(Convertible, Classifier):
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

    def __init__(
        self,
        *,
        nu=0.5,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        probability=False,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
        gap=None,
        time_limit=None,
        checkpoint=None,
        warm_start=False,
        threads=None,
        memory=None,
    ):
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.gap = gap
        self.time_limit = time_limit
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.threads = threads
        self.memory = memory

    def _targets(self, y, weights):
        labels, weights = super()._targets(y, weights)
        if self.class_weight is None or (weights is not None and len(weights) != len(labels)):
            return labels, weights
        return labels, (1.0 if weights is None else weights) * self.class_weight_[labels]
