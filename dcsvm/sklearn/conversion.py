"""What a fitted estimator can be turned into: scikit-learn's own, and a model file."""

from __future__ import annotations

import os
from copy import deepcopy

import numpy as np

from dcsvm.sklearn.theirs import SHARED, made_of


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
