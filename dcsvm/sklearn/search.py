"""Estimators with built-in search: SVCCV, SVRCV (C, gamma, epsilon), AutoSVC, AutoSVR (all)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dcsvm.data.dataset import Dataset
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.easy import easy
from dcsvm.sklearn.estimator import Estimator, FitInput
from dcsvm.sklearn.estimators import ABOVE_0, SVC, SVR, Parameter, class_scores, with_parameters
from dcsvm.sklearn.fitted import Arguments, has_probability, kernel_type
from dcsvm.sklearn.onnx_methods import OnnxMethods
from dcsvm.sklearn.rows import (
    Input,
    Weights,
    checked_data,
    checked_rows,
    encoded_classes,
    given_weights,
    in_known_frame,
)
from dcsvm.training.grid import GridSearch

TIME_LIMIT = Parameter(60.0, [ABOVE_0], "float: seconds of a fit.")


class AutoEstimator(OnnxMethods, BaseEstimator):
    """Base class of the estimators with automatic settings."""

    _svm_type: str

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
        stop: Any = None,
    ) -> AutoEstimator:
        """Choose the settings and train.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            NaN in an array, and a gap in a data frame, is a missing value. Columns of a data frame
            may be text.
        y : array (n,)
            Labels or targets.
        sample_weight : array (n,) or None
            Number of copies of each row, in trainings and in losses on held-out rows; rows of
            weight 0 are ignored, and negative weights refused.
        stop : dcsvm.Stop or None
            Ends the search early, as in `dcsvm.easy`.
        """
        X, y = in_known_frame(X), Dataset.complete_labels(y)
        X, y, self._encoding_of_gaps = checked_data(self, X, y, takes_gaps=True, least_rows=2)
        weights = given_weights(sample_weight, X.shape)
        data = Dataset(X, sample_weight=weights, scale=self.scale)
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
        self.selection_ = model.report.selection
        if is_classifier(self):
            model = model.in_label_order(np.arange(len(self.classes_), dtype=np.float64))
        self.model_ = model
        return self

    def _targets(
        self,
        y: ArrayLike,
        weights: Weights,  # noqa: ARG002 (of classes)
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Convert y to class indices or targets; return them and options of `dcsvm.easy`."""
        return column_or_1d(y, warn=True).astype(np.float64), {}

    def _check_is_fitted(self) -> None:
        check_is_fitted(self)

    def _rows(self, X: Input) -> tuple[Any, Any]:
        """Check rows to predict; return them with the model that predicts them."""
        self._check_is_fitted()
        X = in_known_frame(X)
        return checked_rows(self, X, self.model_, self._encoding_of_gaps, takes_gaps=True)


@with_parameters(
    "metric", "probability", "class_weight", "DATA", "random_state", "threads",
    time_limit=TIME_LIMIT,
)  # fmt: skip
class AutoSVC(ClassifierMixin, AutoEstimator):
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
        classes = encoded_classes(y, weights, self.class_weight)
        self.classes_, self.class_weight_, indices = classes
        factors: Any = self.class_weight  # "balanced" is of the rows of each training
        if isinstance(factors, dict):
            factors = dict(enumerate(self.class_weight_.tolist()))
        options = {"probability": has_probability(self), "class_weight": factors}
        return indices.astype(np.float64), options

    def predict(self, X: Input) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows; missing values are allowed.

        Returns
        -------
        array (n,)
            The label of each row.
        """
        rows, model = self._rows(X)
        return self.classes_[model.predict(rows).astype(np.intp)]

    def decision_function(self, X: Input) -> np.ndarray:
        """Compute decision values, as SVC does.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows; missing values are allowed.

        Returns
        -------
        float64 array
            (n,) for two classes; positive values stand for classes_[1]. For k classes, scores
            (n, k).
        """
        rows, model = self._rows(X)
        values = model.decision_function(rows)
        return -values if values.ndim == 1 else class_scores(values)

    @available_if(has_probability)
    def predict_proba(self, X: Input) -> np.ndarray:
        """Predict the probabilities of the classes.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows; missing values are allowed.

        Returns
        -------
        float64 array (n, k)
            The probabilities, in the order of classes_.
        """
        rows, model = self._rows(X)
        return model.predict_probability(rows)

    def _onnx_choice(self) -> dict[str, Any]:
        return {"has_scores": True}


@with_parameters("metric", "DATA", "random_state", "threads", time_limit=TIME_LIMIT)
class AutoSVR(RegressorMixin, AutoEstimator):
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
        """Predict targets.

        Parameters
        ----------
        X : array, data frame or sparse matrix (n, d)
            The rows; missing values are allowed.

        Returns
        -------
        float64 array (n,)
            The target of each row.
        """
        rows, model = self._rows(X)
        return model.predict(rows)


OF_MODEL = ("_primal", "_probA", "_probB", "_reference")  # fitted attributes without a trailing _
EXPONENTS_OF_C, EXPONENTS_OF_GAMMA = (-5, 15), (-15, 3)  # of 2, as svm-grid's

Axis = list[float] | None  # values of a parameter to try; None if it is not searched


class SearchCV(Estimator):
    """Estimator that chooses parameters by cross validation before it trains.

    fit also raises ValueError if the test sets of cv overlap. It warns (ConvergenceWarning) if some
    settings do not converge; they are never chosen.
    """

    _searched: tuple[str, ...]  # searched parameters, in the order of the axes of scores_

    # parameters of SVC and SVR that a search does not have
    gap = time_limit = checkpoint = None
    warm_start = False

    def _fit(self, X: Input, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        for name in [key for key in vars(self) if key.endswith("_") or key in OF_MODEL]:
            delattr(self, name)
        super()._fit(X, y, sample_weight)

    def _chosen(
        self, checked: FitInput, seed: int, threads: int | None
    ) -> tuple[Dataset, TrainOptions] | None:
        """Weight the features, once, and choose the parameters by a search."""
        params = self.get_params(deep=False)
        # random_state seeds the folds only; clusters always use seed 0
        options = self._options(params, None, 0, threads)
        data, options = self._weighted(checked, options)
        folds = self._folds(checked.arguments, data.n_rows)
        search = GridSearch.over(
            data, options, *self._axes(), folds=folds, fold_seed=seed,
            every=self.every, metric=self.metric,
        )  # fmt: skip
        for _ in search.run(refine=self.refine):
            pass
        self._keep_scores(search)
        if not self.refit:
            return None
        params |= {name: getattr(self, f"{name}_") for name in self._searched}
        self._gamma = params["gamma"] or 0.0
        return data, self._options(params, self._gamma, seed, threads)

    def _axes(self) -> tuple[list[float], Axis, Axis]:
        """Return the values of C, gamma and epsilon to try."""
        gammas: Axis = values_of("gammas", self.gammas, EXPONENTS_OF_GAMMA)
        if not kernel_type(self.kernel).has_gamma:
            gammas = None
        if "epsilon" not in self._searched:
            return values_of("Cs", self.Cs, EXPONENTS_OF_C), gammas, None
        epsilons = np.asarray(self.epsilons, dtype=np.float64)
        is_valid = epsilons.ndim == 1 and len(epsilons) and np.all(epsilons >= 0)
        if not is_valid or not np.all(np.isfinite(epsilons)):
            raise ValueError("epsilons must be an array of finite values of at least 0")
        return values_of("Cs", self.Cs, EXPONENTS_OF_C), gammas, epsilons.tolist()

    def _folds(self, arguments: Arguments, n_rows: int) -> int | np.ndarray:
        """Return the number of folds, or the fold that tests each row, -1 for none.

        Raises ValueError if test sets of `cv` overlap, or if a split does not train on all other
        rows.
        """
        if self.cv is not None and not isinstance(self.cv, Integral):
            return fold_of_splits(check_cv(self.cv).split(*arguments[:2]), n_rows)
        n_folds = 5 if self.cv is None else int(self.cv)
        if n_folds > n_rows:
            raise ValueError(f"cv must be at most n_samples={n_rows}, got {n_folds} folds")
        return n_folds

    def _keep_scores(self, search: GridSearch) -> None:
        """Set the attributes of the search: tables and arrays of scores, and the best setting."""
        result = search.result()
        scores, best = result.scores, result.best
        self.table_, self.best_score_ = result.table, search.definition.score(best.loss)
        points = [[getattr(s.setting, name) or 0.0 for name in self._searched] for s in scores]
        # a refined search has settings of several grids: others stay nan
        axes = [np.unique(values) for values in zip(*points, strict=True)]
        losses = np.full((len(best.losses), *map(len, axes)), np.nan)
        is_complete = np.zeros(losses.shape[1:], bool)
        for score, point in zip(scores, points, strict=True):
            index = tuple(int(np.searchsorted(*pair)) for pair in zip(axes, point, strict=True))
            losses[np.index_exp[:] + index] = score.losses
            is_complete[index] = score.is_complete
        self.scores_, self.is_complete_ = search.definition.score(losses), is_complete
        for name, axis in zip(self._searched, axes, strict=True):
            value = getattr(best.setting, name)
            setattr(self, f"{name}_", value)
            setattr(self, f"{name}s_", None if value is None else axis)
        if result.n_missed:
            warnings.warn(
                f"{result.n_missed} of {len(scores)} settings did not converge",
                ConvergenceWarning,
                stacklevel=7,
            )
        if self.verbose:
            print(f"[dcsvm] {result!r}")

    def _trained_params(self) -> dict[str, Any]:
        chosen = {name: getattr(self, f"{name}_") for name in self._searched}
        params = self.get_params(deep=False) | chosen
        return {name: value for name, value in params.items() if (name, value) != ("gamma", None)}

    def _check_is_fitted(self) -> None:
        super()._check_is_fitted()
        if not hasattr(self, "model_"):
            raise NotFittedError(
                f"this {type(self).__name__} has no model, only chosen parameters: refit=False"
            )


def values_of(name: str, value: int | ArrayLike, exponents: tuple[int, int]) -> list[float]:
    """Return the values of a parameter to try.

    An integer n gives n values, evenly spaced in the exponent of 2. Raises ValueError.
    """
    if isinstance(value, Integral):
        return (2.0 ** np.linspace(*exponents, int(value))).tolist()
    values = np.asarray(value, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(f"{name} must be a number of values, or an array of positive values")
    return values.tolist()


def fold_of_splits(splits: Iterable[tuple[ArrayLike, ArrayLike]], n_rows: int) -> np.ndarray:
    """Return the index of the split that tests each row, int64 (n,), -1 for none."""
    fold, rows = np.full(n_rows, -1), np.arange(n_rows)
    for k, split in enumerate(splits):
        try:
            train, test = (rows[np.asarray(part)] for part in split)
        except IndexError as error:
            raise ValueError(f"split {k} of cv does not index {n_rows} rows: {error}") from None
        if not len(test):
            raise ValueError(f"split {k} of cv has an empty test set")
        if len(np.unique(test)) < len(test) or (fold[test] >= 0).any():
            raise ValueError("the test sets of cv must be disjoint")
        if not np.array_equal(np.sort(train), np.setdiff1d(rows, test)):
            raise ValueError(
                f"split {k} of cv must train on all rows outside its test set: "
                f"{len(train)} and {len(test)} of {n_rows}"
            )
        fold[test] = k
    if (fold < 0).all():
        raise ValueError("cv has no splits")
    return fold


@with_parameters("SEARCH", "SEARCHED_KERNEL", "DATA", "SOLVING", "CLASSES", "CLUSTERS", "MACHINE")
class SVCCV(SearchCV, SVC):
    """C-support vector classification with cross validation of C and gamma.

    Scores are equal to GridSearchCV's over SVC with the same folds, up to tol (at most about one
    row in 1000 differs). But settings share rows, folds and clusters, and inferior settings are
    pruned. With early=True, early models are scored and trained. class_weight='balanced' is
    computed from all rows, also in the folds. Sample weights count copies of rows in the scores,
    too. Learned feature weights are those of all rows, too.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    C_, gamma_ : float
        The setting with the highest score; ties go to the smaller C, then the smaller gamma.
        gamma_ and gammas_ are None for kernels without gamma.
    Cs_, gammas_ : float64 arrays (n_Cs,), (n_gammas,)
        The values tried, ascending; with refine=True of both grids.
    scores_ : float64 array (n_folds, n_gammas, n_Cs)
        Scores by the metric: gains such as the accuracy, negative errors; nan for settings without
        a score.
    is_complete_ : bool array (n_gammas, n_Cs)
        Whether a setting was scored on all rows; scores of pruned settings are estimates.
    best_score_ : float
        Score on all held-out rows.
    table_ : dict
        Columns with a value for each setting, as of dcsvm.grid_search.

    With refit=True also the attributes of SVC.
    """

    _searched = ("gamma", "C")


@with_parameters(
    "SEARCH", "epsilons", "SEARCHED_KERNEL", "DATA", "SOLVING", "random_state", "CLUSTERS",
    "MACHINE",
)  # fmt: skip
class SVRCV(SearchCV, SVR):
    """Epsilon-support vector regression with cross validation of C, gamma and epsilon.

    Scores are equal, up to tol, to GridSearchCV's over SVR with the same folds and
    scoring='neg_mean_squared_error'.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVCCV and SVR, and epsilon_ and epsilons_ (n_epsilons,). Ties go to the smaller C, then
    the smaller gamma, then the larger epsilon. Scores are negative mean squared errors, unless the
    metric is another. scores_ is (n_folds, n_gammas, n_Cs, n_epsilons), is_complete_ (n_gammas,
    n_Cs, n_epsilons).
    """

    _searched = ("gamma", "C", "epsilon")
