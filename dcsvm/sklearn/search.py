"""SVCCV and SVRCV: SVC and SVR with built-in cross validation of C, gamma and epsilon."""

import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import check_cv

from dcsvm.data.dataset import Dataset
from dcsvm.problem.options import TrainOptions
from dcsvm.sklearn.checks import Input
from dcsvm.sklearn.estimator import Arguments, Estimator, Given
from dcsvm.sklearn.estimators import SVC, SVR
from dcsvm.sklearn.parameters import kernel_type, with_parameters
from dcsvm.training.grid import GridSearch

OF_MODEL = ("_coef", "_probA", "_probB", "_reference")  # fitted attributes without a trailing _
EXPONENTS_OF_C, EXPONENTS_OF_GAMMA = (-5, 15), (-15, 3)  # of 2, as svm-grid's

Axis = list[float] | None  # values of a parameter to try; None if it is not searched


class Searching(Estimator):
    """Estimator that chooses parameters by cross validation before it trains.

    fit also raises ValueError if the test sets of cv overlap. It warns (ConvergenceWarning) if some
    settings do not converge; they are never chosen.
    """

    _sought: tuple[str, ...]  # searched parameters, in the order of the axes of scores_

    # parameters of SVC and SVR that a search does not have
    gap = time_limit = checkpoint = None
    warm_start = False

    def _fit(self, X: Input, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        for name in [one for one in vars(self) if one.endswith("_") or one in OF_MODEL]:
            delattr(self, name)
        super()._fit(X, y, sample_weight)

    def _choose(
        self, given: Given, seed: int, threads: int | None
    ) -> tuple[Dataset, TrainOptions] | None:
        """Weight the features, once, and choose the parameters by a search."""
        params = self.get_params(deep=False)
        # random_state seeds the folds only; clusters always use seed 0
        options = self._options(params, None, 0, threads)
        data, options = self._weighted(given, options)
        self._search(data, options, self._folds(given.arguments, data.n_rows), seed)
        if not self.refit:
            return None
        params |= {name: getattr(self, f"{name}_") for name in self._sought}
        self._gamma = params["gamma"] or 0.0
        return data, self._options(params, self._gamma, seed, threads)

    def _search(
        self, data: Dataset, options: TrainOptions, folds: int | np.ndarray, seed: int
    ) -> None:
        """Score the settings of the grid, and set the attributes of the search."""
        Cs, gammas, epsilons = self._axes()
        search = GridSearch.over(
            data, options, Cs, gammas, epsilons, folds=folds, fold_seed=seed,
            every=self.every, metric=self.metric,
        )  # fmt: skip
        for _ in search.run(refine=self.refine):
            pass
        self._keep_scores(search)

    def _axes(self) -> tuple[list[float], Axis, Axis]:
        """Return the values of C, gamma and epsilon to try."""
        gammas = values_of("gammas", self.gammas, EXPONENTS_OF_GAMMA)
        has_gamma = kernel_type(self.kernel).has_gamma
        return values_of("Cs", self.Cs, EXPONENTS_OF_C), gammas if has_gamma else None, None

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
        result = search.result()
        scores, best = result.scores, result.best
        self.table_, self.best_score_ = result.table, search.definition.score(best.loss)
        points = [[getattr(s.setting, name) or 0.0 for name in self._sought] for s in scores]
        axes = [np.unique(values) for values in zip(*points, strict=True)]
        losses = np.full((len(best.losses), *map(len, axes)), np.nan)
        is_complete = np.zeros(losses.shape[1:], bool)
        for score, point in zip(scores, points, strict=True):
            index = tuple(int(np.searchsorted(*pair)) for pair in zip(axes, point, strict=True))
            losses[np.index_exp[:] + index] = score.losses
            is_complete[index] = score.is_complete
        self.scores_, self.is_complete_ = search.definition.score(losses), is_complete
        for name, axis in zip(self._sought, axes, strict=True):
            value = getattr(best.setting, name)
            setattr(self, f"{name}_", value)
            setattr(self, f"{name}s_", None if value is None else axis)
        if result.n_missed:
            warnings.warn(
                f"{result.n_missed} of {len(scores)} settings did not converge",
                ConvergenceWarning,
                stacklevel=8,
            )
        if self.verbose:
            print(f"[dcsvm] {result!r}")

    def _settings(self) -> dict[str, Any]:
        chosen = {name: getattr(self, f"{name}_") for name in self._sought}
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
class SVCCV(Searching, SVC):
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

    _sought = ("gamma", "C")


@with_parameters(
    "SEARCH",
    "epsilons",
    "SEARCHED_KERNEL",
    "DATA",
    "SOLVING",
    "random_state",
    "CLUSTERS",
    "MACHINE",
)
class SVRCV(Searching, SVR):
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

    _sought = ("gamma", "C", "epsilon")

    def _axes(self) -> tuple[list[float], Axis, Axis]:
        epsilons = np.asarray(self.epsilons, dtype=np.float64)
        is_valid = epsilons.ndim == 1 and len(epsilons) and np.all(epsilons >= 0)
        if not is_valid or not np.all(np.isfinite(epsilons)):
            raise ValueError("epsilons must be an array of finite values of at least 0")
        return *super()._axes()[:2], epsilons.tolist()
