"""Estimators that choose all settings by `dcsvm.easy`: AutoSVC and AutoSVR."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dcsvm._core import Stop
from dcsvm.data.dataset import Dataset
from dcsvm.selection.easy import easy
from dcsvm.sklearn.checks import Input, Weights, given_weights
from dcsvm.sklearn.classes import TakesClasses, class_scores
from dcsvm.sklearn.parameters import Parameter, with_parameters
from dcsvm.sklearn.rows import TakesRows, in_known_frame

TIME_LIMIT = Parameter(
    60.0, [Interval(Real, 0.0, None, closed="neither")], "float: seconds of a fit."
)


class _Auto(TakesRows):
    """Fit and input of both estimators."""

    _svm_type: str
    _takes_gaps, _least_rows = True, 2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Input,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        stop: Stop | None = None,
    ) -> _Auto:
        """Choose the settings and train.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            NaN in an array, and a gap in a data frame, is a missing value. Columns of a data frame
            may be text.
        y : array (n,)
            Labels or targets.
        sample_weight : array (n,) or None
            Number of copies of each row in trainings, but not in losses on held-out rows; rows of
            weight 0 are ignored, and negative weights refused.
        stop : dcsvm.Stop or None
            Ends the search early, as in `dcsvm.easy`.
        """
        X, y = self._checked_data(in_known_frame(X), y)
        given = given_weights(sample_weight, X.shape)
        data = Dataset(X, sample_weight=given, scale=self.scale)
        weights = data.sample_weight
        labels, options = self._targets(y, weights)
        data = data.with_labels(labels, weights)
        if weights is not None:
            data = data.take(np.flatnonzero(weights))
        seed = check_random_state(self.random_state).randint(np.iinfo("i").max)
        model = easy(
            data, time_limit=self.time_limit, metric=self.metric, svm_type=self._svm_type,
            feature_weights=self.feature_weights, seed=seed, threads=self.threads, stop=stop,
            **options,
        )  # fmt: skip
        self.model_, self.selection_ = self._named(model), model.report.selection
        return self

    def _targets(
        self,
        y: ArrayLike,
        weights: Weights,  # noqa: ARG002 (of classes)
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Convert y to class indices or targets; return them and options of `dcsvm.easy`."""
        return column_or_1d(y, warn=True).astype(np.float64), {}

    def _named(self, model: Any) -> Any:
        """Return the model with its classes in order."""
        return model

    def _rows(self, X: Input) -> tuple[Any, Any]:
        """Check rows to predict; return them with the model that predicts them."""
        check_is_fitted(self)
        return self._checked_rows(in_known_frame(X), self.model_)


@with_parameters(
    "metric", "probability", "class_weight", "DATA", "random_state", "threads",
    time_limit=TIME_LIMIT,
)  # fmt: skip
class AutoSVC(TakesClasses, _Auto):
    """Classifier that chooses its kernel, scaling, feature weights, C and gamma in a time limit.

    A `scale` or an array of `feature_weights` is not chosen but given.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : array (k,)
        The labels, sorted.
    class_weight_ : array (k,)
        The factor of each class.
    model_ : dcsvm.Model
        The trained model; its labels are indices of `classes_`.
    selection_ : dict
        The chosen setting, its loss on held-out rows, and what there was no time for.
    """

    _svm_type = "c_svc"

    def _targets(self, y: ArrayLike, weights: Weights) -> tuple[np.ndarray, dict[str, Any]]:
        labels = self._class_indices(y, weights).astype(np.float64)
        factors: Any = self.class_weight  # "balanced" is of the rows of each training
        if isinstance(factors, dict):
            factors = dict(enumerate(self.class_weight_.tolist()))
        return labels, {"probability": self._has_probability, "class_weight": factors}

    def _named(self, model: Any) -> Any:
        return model.in_label_order(np.arange(len(self.classes_), dtype=np.float64))

    def predict(self, X: Input) -> np.ndarray:
        """Predict labels (n,)."""
        rows, model = self._rows(X)
        return self.classes_[model.predict(rows).astype(np.intp)]

    def decision_function(self, X: Input) -> np.ndarray:
        """Compute decision values, as SVC does.

        Two classes have values (n,), positive for classes_[1]; k classes have scores (n, k).
        """
        rows, model = self._rows(X)
        values = model.decision_function(rows)
        return -values if values.ndim == 1 else class_scores(values)

    @available_if(lambda self: self._has_probability)
    def predict_proba(self, X: Input) -> np.ndarray:
        """Predict the probabilities of the classes (n, k)."""
        rows, model = self._rows(X)
        return model.predict_probability(rows)


@with_parameters("metric", "DATA", "random_state", "threads", time_limit=TIME_LIMIT)
class AutoSVR(RegressorMixin, _Auto):
    """Regression that chooses its kernel, scaling, weights, C, gamma and epsilon in a time limit.

    A `scale` or an array of `feature_weights` is not chosen but given.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : dcsvm.Model
        The trained model.
    selection_ : dict
        The chosen setting, its loss on held-out rows, and what there was no time for.
    """

    _svm_type = "epsilon_svr"

    def predict(self, X: Input) -> np.ndarray:
        """Predict values (n,)."""
        rows, model = self._rows(X)
        return model.predict(rows)
