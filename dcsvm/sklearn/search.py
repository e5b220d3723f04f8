"""SVCCV and SVRCV: SVC and SVR that choose C, gamma and epsilon themselves."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import check_cv

from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.grid import DEFAULT_CS, DEFAULT_GAMMAS, Grid, best_of
from dcsvm.selection.grid_search import GridResult
from dcsvm.selection.search import Search
from dcsvm.sklearn.estimators import SVC, SVR
from dcsvm.sklearn.parameters import train_options, with_parameters
from dcsvm.training.held_out import fold_numbers

OF_MODEL = ("_coef", "_probA", "_probB", "_theirs")  # beside what ends with _


class Searching:
    """A fit that searches the grid of `Cs`, `gammas` and `epsilons` before it trains."""

    _sought: tuple[str, ...]  # axes of the scores

    # of SVC and SVR, which a search has not
    gap = time_limit = checkpoint = None
    warm_start = False

    def fit(self, X, y, sample_weight=None):
        """Choose C and gamma, of SVRCV epsilon too, and fit the model with them.

        X (n, d) is an array, a data frame or a sparse matrix, or (n, n) kernel values where the
        kernel is 'precomputed'; features are used as float32. y (n,) are labels or targets.
        sample_weight (n,) counts each row as that many copies, in the scores too; rows of weight 0
        or less are left out. Returns self. Raises ValueError for input that does not fit and for a
        cv that is no folds; warns (ConvergenceWarning) of settings that did not converge, which are
        not chosen, and when the model did not.
        """
        return super().fit(X, y, sample_weight)

    def _fit(self, X, y, sample_weight):
        for name in [one for one in vars(self) if one.endswith("_") or one in OF_MODEL]:
            delattr(self, name)
        super()._fit(X, y, sample_weight)

    def _choose(self, rows: Rows, labels, weights, given, seed: int, threads: int) -> bool:
        params = self.get_params(deep=False)
        options = train_options(params, self._svm_type, 1.0, tolerance=float(self.tol))
        # folds are random, clusters are not
        options |= self._options(seed) | {"threads": threads, "seed": 0}
        options = TrainOptions.of(**options)
        grid = Grid.of(options, *self._axes(options))
        fold = fold_of_rows(self, *given[:2], labels, seed)
        search = Search(rows, labels, fold, options, sample_weight=weights, every=self.every)
        scores = tuple(search.run(grid, refine=self.refine))
        best = best_of(scores)
        if best is None:
            raise ValueError("no setting of the grid has a solution")
        self._keep_scores(GridResult(scores, best), int(fold.max()) + 1)
        return self.refit

    def _axes(self, options: TrainOptions) -> tuple:
        """The values of C, gamma and epsilon to try, None for what is not sought."""
        gammas = values_of("gammas", self.gammas, DEFAULT_GAMMAS)
        has_gamma = options.kernel_type.has_gamma
        return values_of("Cs", self.Cs, DEFAULT_CS), gammas if has_gamma else None, None

    def _keep_scores(self, result: GridResult, n_folds: int) -> None:
        scores, best = result.scores, result.best
        self.table_, self.best_score_ = result.table, self._score_of(best.loss)
        points = [[getattr(one.setting, name) or 0.0 for name in self._sought] for one in scores]
        axes = [np.unique(values) for values in zip(*points, strict=True)]
        losses = np.full((n_folds, *map(len, axes)), np.nan)
        is_complete = np.zeros(losses.shape[1:], bool)
        for score, point in zip(scores, points, strict=True):
            place = tuple(map(np.searchsorted, axes, point))
            losses[(slice(None), *place)] = score.losses
            is_complete[place] = score.is_complete
        self.scores_, self.is_complete_ = self._score_of(losses), is_complete
        for name, axis in zip(self._sought, axes, strict=True):
            value = getattr(best.setting, name)
            setattr(self, f"{name}_", value)
            setattr(self, f"{name}s_", None if value is None else axis)
        n_missed = sum(not score.converged for score in scores)
        if n_missed:
            warnings.warn(
                f"{n_missed} of {len(scores)} settings did not converge",
                ConvergenceWarning,
                stacklevel=8,
            )
        if self.verbose:
            print(f"[dcsvm] {result!r}")

    def _score_of(self, losses):
        """What `score` is for losses: more is better."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        found = {name: getattr(self, f"{name}_") for name in self._sought}
        params = self.get_params(deep=False) | found
        return {name: value for name, value in params.items() if (name, value) != ("gamma", None)}

    def _check_is_fitted(self) -> None:
        super()._check_is_fitted()
        if not hasattr(self, "model_"):
            raise NotFittedError(
                f"this {type(self).__name__} has chosen parameters and has no model: refit=False"
            )


def values_of(name: str, given: int | Sequence[float], default: Sequence[float]) -> np.ndarray:
    """The values of a parameter: a number of them stands for that many, over the range of the
    default ones. Raises ValueError."""
    if isinstance(given, Integral):
        return 2.0 ** np.linspace(*np.log2([default[0], default[-1]]), given)
    values = np.asarray(given, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(f"{name} must be a number of values, or an array of positive ones")
    return values


def fold_of_rows(estimator, X, y, targets: np.ndarray, seed: int) -> np.ndarray:
    """The fold int64 (n,) that holds each row out by the `cv` of an estimator, -1 where none does.

    X and y are as they were given, `targets` (n,) are classes, or values of a regression. Raises
    ValueError for splits that are no folds.
    """
    cv, n_rows = estimator.cv, len(targets)
    if cv is not None and not isinstance(cv, Integral):
        return _fold_of_splits(check_cv(cv).split(X, y), n_rows)
    n_folds = 5 if cv is None else int(cv)
    if n_folds > n_rows:
        raise ValueError(f"n_samples={n_rows} cannot be divided into {n_folds} folds: cv is less")
    return fold_numbers(targets if is_classifier(estimator) else None, n_rows, n_folds, seed)


def _fold_of_splits(splits, n_rows: int) -> np.ndarray:
    fold, every = np.full(n_rows, -1), np.arange(n_rows)
    for k, (train, test) in enumerate(splits):
        try:
            train, test = every[np.asarray(train)], every[np.asarray(test)]
        except IndexError as error:
            raise ValueError(f"split {k} of cv is not one of {n_rows} rows: {error}") from None
        if not len(test):
            raise ValueError(f"split {k} of cv has no row to test")
        if len(np.unique(test)) < len(test) or (fold[test] >= 0).any():
            raise ValueError("cv tests a row twice: test sets must have no row in common")
        if not np.array_equal(np.sort(train), np.setdiff1d(every, test)):
            raise ValueError(
                f"split {k} of cv does not train on all rows that it does not test: "
                f"{len(train)} and {len(test)} of {n_rows}"
            )
        fold[test] = k
    if (fold < 0).all():
        raise ValueError("cv has no splits")
    return fold


@with_parameters("SEARCH", "SEARCHED_KERNEL", "SOLVING", "CLASSES", "CLUSTERS", "MACHINE")
class SVCCV(Searching, SVC):
    """C-support vector classification that chooses C and gamma by cross validation.

    Scores are those of GridSearchCV over SVC with the same folds, but settings share rows, folds
    and clusters, and one that cannot win any more is left. With early=True early models are scored
    and trained. class_weight='balanced' is that of all rows, also in the folds.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    C_, gamma_ : float
        What was chosen: the highest score, of equal ones the smaller C, then the smaller gamma.
        gamma_ and gammas_ are None where the kernel has none.
    Cs_, gammas_ : float64 (n_Cs,), (n_gammas,)
        What was tried, ascending; with refine=True the values of both grids.
    scores_ : float64 (n_folds, n_gammas, n_Cs)
        Accuracy; nan where nothing was scored.
    is_complete_ : bool (n_gammas, n_Cs)
        Whether a setting was scored on all rows. The scores of others, that were left, are
        estimates.
    best_score_ : float
        Accuracy on all rows that were held out.
    table_ : dict
        Columns of what is known of each setting, as of dcsvm.grid_search.

    With refit=True also those of SVC.
    """

    _sought = ("gamma", "C")

    def _score_of(self, losses):
        return 1.0 - losses


@with_parameters(
    "SEARCH", "epsilons", "SEARCHED_KERNEL", "SOLVING", "random_state", "CLUSTERS", "MACHINE"
)
class SVRCV(Searching, SVR):
    """Epsilon-support vector regression that chooses C, gamma and epsilon by cross validation.

    Scores are those of GridSearchCV over SVR with the same folds and
    scoring='neg_mean_squared_error'.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVCCV and SVR, and epsilon_ and epsilons_ (n_epsilons,). Of equal scores the larger
    epsilon is chosen, after the smaller C and gamma. Scores are negative mean squared errors;
    scores_ is (n_folds, n_gammas, n_Cs, n_epsilons), is_complete_ without the folds.
    """

    _sought = ("gamma", "C", "epsilon")

    def _axes(self, options):
        epsilons = np.asarray(self.epsilons, dtype=np.float64)
        is_valid = epsilons.ndim == 1 and len(epsilons) and np.all(epsilons >= 0)
        if not is_valid or not np.all(np.isfinite(epsilons)):
            raise ValueError("epsilons must be an array of values that are not negative")
        return *super()._axes(options)[:2], epsilons

    def _score_of(self, losses):
        return -losses
