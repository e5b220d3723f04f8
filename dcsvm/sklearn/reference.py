"""Conversion from and to scikit-learn's own estimators."""

import os
import warnings
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import _classes

from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.sklearn.checks import Input, dense
from dcsvm.sklearn.fitted import Fitted
from dcsvm.sklearn.parameters import kernel_type

THEIRS = {  # from the defining module: patch() may have replaced the names in sklearn.svm
    "c_svc": _classes.SVC,
    "nu_svc": _classes.NuSVC,
    "epsilon_svr": _classes.SVR,
    "nu_svr": _classes.NuSVR,
    "one_class": _classes.OneClassSVM,
}
SHARED = (  # attributes of both libraries, in the same layout
    "support_", "support_vectors_", "n_features_in_", "feature_names_in_", "shape_fit_",
    "fit_status_", "classes_", "class_weight_", "_gamma", "_sparse", "_dual_coef_", "_intercept_",
    "dual_coef_", "intercept_", "_n_support", "_probA", "_probB",
)  # fmt: skip
X_FIT = "_BaseLibSVM__Xfit"  # attribute with the training rows of a callable kernel


class Convertible(Fitted):
    """Fitted estimator that converts to scikit-learn's estimator and to a model file."""

    def to_sklearn(self) -> BaseEstimator:
        """Convert to scikit-learn's estimator with the same decision function.

        Returns
        -------
        fitted : estimator of sklearn.svm with the same name

        Raises
        ------
        ValueError
            For an early model, which has a decision function per cluster; for a model that scales
            rows; and for a kernel that scikit-learn lacks.
        """
        self._check_is_fitted()
        kernel = kernel_type(self.kernel)
        if kernel is None or kernel.sklearn_name is None:
            raise ValueError(f"scikit-learn has no kernel {self.kernel!r}")
        if self._reference is not None:
            return deepcopy(self._reference)
        model = self.model_
        assert model is not None  # only None if a reference was fitted
        if model.exact is None:
            raise ValueError(
                "an early model has a decision function for each cluster, which scikit-learn's"
                " estimators do not support"
            )
        if model.scaling is not None:
            raise ValueError(
                f"the rows of the model are scaled by {model.scaling.name}: scikit-learn's"
                " estimator cannot scale"
            )
        if model.table is not None:
            raise ValueError(
                "the model encodes the columns of a data frame: scikit-learn's estimator cannot"
            )
        state = {name: getattr(self, name) for name in SHARED if hasattr(self, name)}
        state = {"_probA": np.empty(0), "_probB": np.empty(0), **state}
        n_support = self._n_support if model.is_classifier else [self._n_support[0], 0]
        n_iter = self._iterations if len(self._iterations) else np.zeros(1, np.int32)
        state |= {
            "_effective_probability": len(state["_probA"]) > 0,
            "_n_support": np.array(n_support, np.int32),
            "support_vectors_": np.empty((0, 0)) if self._has_kernel_matrix else self._vectors(),
            "_num_iter": n_iter,
            "n_iter_": n_iter if model.is_classifier else int(n_iter[0]),
        }
        if callable(self.kernel):
            state[X_FIT] = self._X_fit
        if self._svm_type == "one_class":
            state["offset_"] = -self._intercept_
        reference = self._make_reference()
        vars(reference).update(state)
        return reference

    def save(self, path: str | os.PathLike[str], format: str = "dcsvm") -> None:
        """Write a model file for dcsvm-predict, and for svm-predict if the model is exact.

        The format 'libsvm' omits dcsvm's extensions. Raises ValueError for string labels and for
        values outside the range of float32.
        """
        self._check_is_fitted()
        if self.model_ is None:
            raise ValueError("the model does not fit float32, the precision of model files")
        self.model_.save(path, format)

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that the model is trained with."""
        return self.get_params(deep=False)

    def _make_reference(self) -> BaseEstimator:
        """Make scikit-learn's estimator; parameters that it lacks are dropped.

        A kernel that it lacks becomes a callable.
        """
        made, params = THEIRS[self._svm_type](), self._settings()
        if self._lacks_kernel:
            params["kernel"] = _Distances(self.kernel, self._gamma)
        if params.get("probability") in (False, np.False_, "deprecated"):
            del params["probability"]  # its default gives the fewest warnings
        gamma = params.get("gamma")
        if isinstance(gamma, str) and gamma not in ("scale", "auto"):  # F/median
            params["gamma"] = self._gamma
        names = [name for name in made.get_params() if name in params]
        return made.set_params(**{name: params[name] for name in names})

    @property
    def _lacks_kernel(self) -> bool:
        """Whether scikit-learn has no kernel of this name."""
        own = kernel_type(self.kernel)
        return own is not None and own.sklearn_name is None

    def _fit_reference(
        self, X: Input, y: ArrayLike | None, sample_weight: ArrayLike | None, max_iter: int | None
    ) -> BaseEstimator:
        """Fit scikit-learn's estimator, with `max_iter` if it is not None.

        Warnings that `probability` is deprecated or that this `max_iter` is reached are suppressed.
        """
        reference = self._make_reference()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            if max_iter is not None:
                reference.set_params(max_iter=max_iter)
                warnings.simplefilter("ignore", ConvergenceWarning)
            return reference.fit(X, y, sample_weight=sample_weight)

    def _take_over(self, fitted: BaseEstimator) -> None:
        """Copy the fitted attributes of scikit-learn's estimator.

        `model_` is None if its values exceed the range of float32.
        """
        state = vars(fitted)
        shared = {name: state[name] for name in SHARED if name in state}
        if self._lacks_kernel:
            del shared["_gamma"]  # scikit-learn's is 0 for a callable
        self.__dict__.update(shared)
        self._n_support = self.n_support_ = np.asarray(fitted.n_support_, np.int32)
        self._iterations = np.atleast_1d(fitted.n_iter_).astype(np.int32)
        self.report_ = None
        self.__dict__.pop("_coef", None)
        if self._lacks_kernel:
            self.support_vectors_ = state[X_FIT][self.support_]
            self._sparse = sparse.issparse(state[X_FIT])
        elif callable(fitted.kernel):
            self._X_fit = state[X_FIT]
        if self._has_kernel_matrix:
            self.support_vectors_ = np.empty((0, 0))
        try:
            self.model_ = self._model_of_attributes()
        except ValueError:
            self.model_ = None

    def _model_of_attributes(self) -> Model:
        options = TrainOptions(svm_type=self._svm_type, kernel=kernel_type(self.kernel).name)
        if not self._has_kernel_matrix:
            parameters = {"gamma": self._gamma, "coef0": self.coef0, "degree": self.degree}
            options = replace(options, **parameters)
        has_classes = is_classifier(self)
        model = Model.of_vectors(
            options,
            None if self._has_kernel_matrix else self.support_vectors_,
            np.ascontiguousarray(dense(self._dual_coef_)),
            -self._intercept_,
            row_numbers=self.support_,
            n_rows=self.shape_fit_[0],
            n_sv=self._n_support.astype(np.int64) if has_classes else None,
            sigmoids=(self._probA, self._probB) if len(self._probA) else None,
        )
        return model.with_labels(self.classes_) if has_classes else model


class _Distances:
    """A kernel that scikit-learn lacks, as a callable for its estimators."""

    def __init__(self, kernel: str, gamma: float):
        options = TrainOptions(kernel=kernel_type(kernel).name, gamma=gamma)
        self.kernel = options.kernel_on(0)

    def __call__(self, X: Input, others: Input) -> np.ndarray:
        return self.kernel.values_of_distances(dense(X), dense(others))


def pair_values(fitted: BaseEstimator, X: Input) -> np.ndarray:
    """Compute decision values (n, n_pairs) of scikit-learn's estimator.

    Positive values stand for the first class of a pair.
    """
    if not hasattr(fitted, "classes_"):
        return getattr(fitted, "decision_function", fitted.predict)(X)[:, None]
    shape = fitted.decision_function_shape
    try:
        values = fitted.set_params(decision_function_shape="ovo").decision_function(X)
    finally:
        fitted.set_params(decision_function_shape=shape)
    return -values[:, None] if values.ndim == 1 else values
