"""What a fitted estimator can be turned into: scikit-learn's own, and a model file."""

from __future__ import annotations

import os

import numpy as np
from sklearn.svm import _classes as theirs
from sklearn.utils.validation import check_is_fitted

NAMES = {
    "c_svc": "SVC",
    "nu_svc": "NuSVC",
    "epsilon_svr": "SVR",
    "nu_svr": "NuSVR",
    "one_class": "OneClassSVM",
}
SHARED = (  # attributes that both have, in the same layout
    "support_", "support_vectors_", "n_features_in_", "feature_names_in_", "shape_fit_",
    "fit_status_", "classes_", "class_weight_", "_gamma", "_sparse", "_dual_coef_", "_intercept_",
    "dual_coef_", "intercept_", "_n_support", "_probA", "_probB",
)  # fmt: skip


class Convertible:
    """What a fitted estimator can be turned into."""

    def to_sklearn(self):
        """The fitted estimator of scikit-learn with the same decision function, for what reads
        only those. Raises ValueError for an early model, which has no single one."""
        check_is_fitted(self)
        if self.model_.exact is None:
            raise ValueError(
                "an early model has a decision function for each cluster: scikit-learn has no such"
                " estimator"
            )
        made = getattr(theirs, NAMES[self._svm_type])()
        params = self.get_params(deep=False)
        params["probability"] = params.get("probability") in (True, np.True_)
        if not params["probability"]:
            del params["probability"]
        made.set_params(**{name: params[name] for name in made.get_params() if name in params})
        state = {name: getattr(self, name) for name in SHARED if hasattr(self, name)}
        is_classifier = self.model_.is_classifier
        nothing = np.empty(0)
        made.__dict__.update({"_probA": nothing, "_probB": nothing, **state})
        made._effective_probability = len(made._probA) > 0
        made._n_support = self._n_support.copy()
        if not is_classifier:
            made._n_support = np.array([self._n_support[0], 0], np.int32)
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
        check_is_fitted(self)
        self.model_.save(path, format)
