"""scikit-learn's own estimators: made with our parameters, what they found taken over, and made of
what ours have found."""

from __future__ import annotations

import os
import warnings
from copy import deepcopy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import _classes

from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import Kernel
from dcsvm.model.model import Model
from dcsvm.model.parts import ExactModel, Probability
from dcsvm.problem.option_rules import CLASSIFIERS
from dcsvm.problem.task import as_labels
from dcsvm.sklearn.parameters import KERNELS, is_linear, kernel_type

THEIRS = {  # of their own module: the names in sklearn.svm may be replaced
    "c_svc": _classes.SVC,
    "nu_svc": _classes.NuSVC,
    "epsilon_svr": _classes.SVR,
    "nu_svr": _classes.NuSVR,
    "one_class": _classes.OneClassSVM,
}
SHARED = (  # attributes that both have, in the same layout
    "support_", "support_vectors_", "n_features_in_", "feature_names_in_", "shape_fit_",
    "fit_status_", "classes_", "class_weight_", "_gamma", "_sparse", "_dual_coef_", "_intercept_",
    "dual_coef_", "intercept_", "_n_support", "_probA", "_probB",
)  # fmt: skip


def made_of(svm_type: str, params: dict[str, Any]):
    """scikit-learn's estimator with those of our parameters that it has."""
    made, params = THEIRS[svm_type](), dict(params)
    if params.get("probability") in (False, np.False_, "deprecated"):
        del params["probability"]  # the default warns the least
    return made.set_params(**{name: params[name] for name in made.get_params() if name in params})


def fitted_by_scikit_learn(ours, X, y, sample_weight, max_iter: int | None):
    """scikit-learn's estimator with the parameters of ours, fitted. It does not warn that its
    probability is deprecated, nor of a `max_iter` that the user did not give."""
    made = made_of(ours._svm_type, ours._settings())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        if max_iter is not None:
            made.set_params(max_iter=max_iter)
            warnings.simplefilter("ignore", ConvergenceWarning)
        return made.fit(X, y, sample_weight=sample_weight)


def take_over(ours, fitted) -> None:
    """Give ours what a fitted estimator of scikit-learn has found. Its `model_` is None where that
    does not fit float32."""
    found = vars(fitted)
    ours.__dict__.update({name: found[name] for name in SHARED if name in found})
    ours._n_support = np.asarray(fitted.n_support_, np.int32)
    ours.n_support_ = ours._n_support
    ours._iterations = np.atleast_1d(fitted.n_iter_).astype(np.int32)
    ours.report_ = None
    if callable(fitted.kernel):
        ours._X_fit = fitted._BaseLibSVM__Xfit
    if ours._is_of_matrix:
        ours.support_vectors_ = np.empty((0, 0))
    if ours._svm_type in CLASSIFIERS:
        ours._labels = labels_of(ours.classes_)
    try:
        ours.model_ = _model_of(ours)
    except ValueError:
        ours.model_ = None
    if is_linear(ours.kernel):
        ours._coef = ours._pair_coef()


def _model_of(ours) -> Model:
    is_classifier = ours._svm_type in CLASSIFIERS
    if ours._is_of_matrix:
        kernel = Kernel("precomputed", 0.0)
        rows = Rows(len(ours.support_), ours.shape_fit_[0], columns=ours.support_)
    else:
        kernel = Kernel(KERNELS[ours.kernel].name, ours._gamma, ours.coef0, ours.degree)
        rows = Rows.from_array(ours.support_vectors_)
    coef = ours._dual_coef_
    exact = ExactModel(
        rows=rows,
        dual_coef=np.ascontiguousarray(coef.toarray() if sparse.issparse(coef) else coef),
        rho=-ours._intercept_,
        n_sv=ours._n_support.astype(np.int64) if is_classifier else None,
        row_numbers=ours.support_.astype(np.int64),
    )
    return Model(
        kernel,
        ours._labels if is_classifier else np.empty(0),
        exact,
        None,
        svm_type=ours._svm_type,
        probability=Probability(ours._probA, ours._probB) if len(ours._probA) else None,
    )


def labels_of(classes: np.ndarray) -> np.ndarray:
    """The labels that a Model has for classes: the same ones, or their numbers where those are
    neither numbers nor strings."""
    try:
        labels = as_labels(classes)
    except ValueError:
        return np.arange(float(len(classes)))
    return labels if len(np.unique(labels)) == len(classes) else np.arange(float(len(classes)))


def pair_values(fitted, X) -> np.ndarray:
    """Decision values (n, n_pairs) of an estimator of scikit-learn, positive for the first class of
    a pair."""
    if not hasattr(fitted, "classes_"):
        return getattr(fitted, "decision_function", fitted.predict)(X)[:, None]
    shape = fitted.decision_function_shape
    try:
        values = fitted.set_params(decision_function_shape="ovo").decision_function(X)
    finally:
        fitted.set_params(decision_function_shape=shape)
    return -values[:, None] if values.ndim == 1 else values


class Convertible:
    """What a fitted estimator can be turned into."""

    def to_sklearn(self):
        """The fitted estimator of scikit-learn with the same decision function, for what reads
        only those. Raises ValueError for an early model, which has no single one, and for a model
        file of scaled rows."""
        self._check_is_fitted()
        if self._theirs is not None:
            return deepcopy(self._theirs)
        if self.model_.exact is None:
            raise ValueError(
                "an early model has a decision function for each cluster: scikit-learn has no such"
                " estimator"
            )
        if self.model_.scaling is not None:
            raise ValueError(
                f"the model is of rows scaled by {self.model_.scaling.name}: scikit-learn's"
                " estimator cannot scale"
            )
        if kernel_type(self.kernel).sklearn_name is None:
            raise ValueError(f"scikit-learn has no kernel {self.kernel!r}")
        made = made_of(self._svm_type, self._settings())
        state = {name: getattr(self, name) for name in SHARED if hasattr(self, name)}
        is_classifier = self.model_.is_classifier
        nothing = np.empty(0)
        made.__dict__.update({"_probA": nothing, "_probB": nothing, **state})
        made._effective_probability = len(made._probA) > 0
        made._n_support = self._n_support.copy()
        if not is_classifier:
            made._n_support = np.array([self._n_support[0], 0], np.int32)
        made.support_vectors_ = self._vectors()
        if self._is_of_matrix:
            made.support_vectors_ = np.empty((0, 0))
        if callable(self.kernel):
            made._BaseLibSVM__Xfit = self._X_fit
        made._num_iter = self._iterations if len(self._iterations) else np.zeros(1, np.int32)
        made.n_iter_ = made._num_iter if is_classifier else int(made._num_iter[0])
        if not is_classifier and self._svm_type == "one_class":
            made.offset_ = -made._intercept_
        return made

    def save(self, path: str | os.PathLike[str], format: str = "dcsvm") -> None:
        """Write the model file that dcsvm-predict reads, and svm-predict where it is exact; the
        format "libsvm" is nothing but LIBSVM. Raises ValueError for labels that are strings."""
        self._check_is_fitted()
        if self.model_ is None:
            raise ValueError("the model does not fit float32, which a file holds")
        self.model_.save(path, format)
