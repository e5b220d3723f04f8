"""Estimators that choose all settings by `dcsvm.easy`: AutoSVC and AutoSVR."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from dcsvm._core import Stop
from dcsvm.data.columns import is_frame
from dcsvm.model.writer import with_label_order
from dcsvm.selection.easy import easy
from dcsvm.sklearn.checks import Input
from dcsvm.sklearn.classifier import class_scores
from dcsvm.sklearn.estimator import DTYPES
from dcsvm.solving.report import TrainReport

MIN_ROWS = 2


class _Auto(BaseEstimator):
    """Parameters and input of both estimators."""

    _svm_type: str

    def __init__(
        self,
        *,
        time_limit: float = 60.0,
        metric: str | None = None,
        random_state: Any = None,
        threads: int | None = None,
    ):
        self.time_limit, self.metric = time_limit, metric
        self.random_state, self.threads = random_state, threads

    def _fit(self, X: Input, y: np.ndarray, stop: Stop | None, **options: Any) -> None:
        rows = self._checked(X, reset=True)
        check_consistent_length(rows, y)
        seed = check_random_state(self.random_state).randint(np.iinfo("i").max)
        self.model_ = easy(
            rows, y, time_limit=self.time_limit, metric=self.metric, svm_type=self._svm_type,
            seed=seed, threads=self.threads, stop=stop, **options,
        )  # fmt: skip
        assert isinstance(self.model_.report, TrainReport)
        self.selection_ = self.model_.report.selection

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Check rows; data frames may have columns of text."""
        if is_frame(X):
            _check_feature_names(self, X, reset=reset)
            _check_n_features(self, X, reset=reset)
            if len(X) < MIN_ROWS and reset:
                raise ValueError(f"a fit needs at least {MIN_ROWS} rows, got {len(X)} sample(s)")
            return X
        least = MIN_ROWS if reset else 1
        return validate_data(
            self, X, accept_sparse="csr", dtype=DTYPES, reset=reset, ensure_min_samples=least
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class AutoSVC(ClassifierMixin, _Auto):
    """Classifier that chooses its kernel, scaling, feature weights, C and gamma in a time limit.

    Parameters
    ----------
    time_limit : float, default 60
        Seconds of a fit.
    metric : str or None
        What to choose by: accuracy (None), balanced-accuracy, f1, auc or log-loss.
    probability : bool, default False
        Whether to fit probabilities, for `predict_proba`.
    random_state : int, RandomState or None
        Seed of samples and folds.
    threads : int or None
        Number of threads; None is all available cores.

    Attributes
    ----------
    classes_ : array (k,)
        The labels, sorted.
    model_ : dcsvm.Model
        The trained model; its labels are indices of `classes_`.
    selection_ : dict
        The chosen setting, its loss on held-out rows, and what there was no time for.
    """

    _svm_type = "c_svc"

    def __init__(
        self,
        *,
        time_limit: float = 60.0,
        metric: str | None = None,
        probability: bool = False,
        random_state: Any = None,
        threads: int | None = None,
    ):
        super().__init__(
            time_limit=time_limit, metric=metric, random_state=random_state, threads=threads
        )
        self.probability = probability

    def fit(self, X: Input, y: ArrayLike, *, stop: Stop | None = None) -> AutoSVC:
        """Choose the settings and train.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            Columns of a data frame may be text.
        y : array (n,)
            Labels.
        stop : dcsvm.Stop or None
            Ends the search early, as in `dcsvm.easy`.
        """
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("The number of classes has to be greater than one; got one class")
        self._fit(X, codes.astype(np.float64), stop, probability=bool(self.probability))
        order = np.arange(len(self.classes_), dtype=np.float64)
        self.model_ = with_label_order(self.model_, order)
        return self

    def predict(self, X: Input) -> np.ndarray:
        """Predict labels (n,)."""
        check_is_fitted(self)
        return self.classes_[self.model_.predict(self._checked(X, reset=False)).astype(np.intp)]

    def decision_function(self, X: Input) -> np.ndarray:
        """Compute decision values, as SVC does.

        Two classes have values (n,), positive for classes_[1]; k classes have scores (n, k).
        """
        check_is_fitted(self)
        values = self.model_.decision_function(self._checked(X, reset=False))
        return -values if values.ndim == 1 else class_scores(values)

    def _has_probability(self) -> bool:
        return bool(self.probability)

    @available_if(_has_probability)
    def predict_proba(self, X: Input) -> np.ndarray:
        """Predict the probabilities of the classes (n, k)."""
        check_is_fitted(self)
        return self.model_.predict_probability(self._checked(X, reset=False))


class AutoSVR(RegressorMixin, _Auto):
    """Regression that chooses its kernel, scaling, weights, C, gamma and epsilon in a time limit.

    Parameters
    ----------
    time_limit : float, default 60
        Seconds of a fit.
    metric : str or None
        What to choose by: rmse (None), mae or r2.
    random_state : int, RandomState or None
        Seed of samples and folds.
    threads : int or None
        Number of threads; None is all available cores.

    Attributes
    ----------
    model_ : dcsvm.Model
        The trained model.
    selection_ : dict
        The chosen setting, its loss on held-out rows, and what there was no time for.
    """

    _svm_type = "epsilon_svr"

    def fit(self, X: Input, y: ArrayLike, *, stop: Stop | None = None) -> AutoSVR:
        """Choose the settings and train.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            Columns of a data frame may be text.
        y : array (n,)
            Targets.
        stop : dcsvm.Stop or None
            Ends the search early, as in `dcsvm.easy`.
        """
        targets = column_or_1d(y, warn=True).astype(np.float64)
        if not np.isfinite(targets).all():
            raise ValueError("Input y contains NaN or infinity.")
        self._fit(X, targets, stop)
        return self

    def predict(self, X: Input) -> np.ndarray:
        """Predict values (n,)."""
        check_is_fitted(self)
        return self.model_.predict(self._checked(X, reset=False))
