"""SVCCV and SVRCV: SVC and SVR with built-in cross validation of C, gamma and epsilon."""

import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import check_cv

from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.grid_search import GridResult
from dcsvm.sklearn.checks import Arguments, Input, Weights
from dcsvm.sklearn.estimator import Estimator
from dcsvm.sklearn.estimators import SVC, SVR
from dcsvm.sklearn.parameters import train_options, with_parameters
from dcsvm.training.held_out import fold_numbers
from dcsvm.training.setting_search import Search
from dcsvm.training.settings import DEFAULT_CS, DEFAULT_GAMMAS, Grid, best_of

OF_MODEL = ("_coef", "_probA", "_probB", "_reference")  # fitted attributes without a trailing _

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

    @property
    def _trains_model(self) -> bool:
        return self.refit

    def _fit(self, X: Input, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        for name in [one for one in vars(self) if one.endswith("_") or one in OF_MODEL]:
            delattr(self, name)
        super()._fit(X, y, sample_weight)

    def _choose(
        self,
        rows: Rows,
        labels: np.ndarray,
        weights: Weights,
        data: Arguments,
        seed: int,
        threads: int,
    ) -> None:
        params = self.get_params(deep=False)
        values = train_options(params, self._svm_type, 1.0, tolerance=float(self.tol))
        # random_state seeds the folds only; clusters always use seed 0
        values |= self._options(seed) | {"threads": threads, "seed": 0}
        options = TrainOptions.of(**values)
        grid = Grid.of(options, *self._axes(options))
        fold = fold_of_rows(self, data[0], data[1], labels, seed)
        search = Search(rows, labels, fold, options, sample_weight=weights, every=self.every)
        scores = tuple(search.run(grid, refine=self.refine))
        best = best_of(scores)
        if best is None:
            raise ValueError("no setting of the grid has a solution")
        self._keep_scores(GridResult(scores, best), int(fold.max()) + 1)

    def _axes(self, options: TrainOptions) -> tuple[list[float], Axis, Axis]:
        """Return the values of C, gamma and epsilon to try."""
        gammas = values_of("gammas", self.gammas, DEFAULT_GAMMAS)
        has_gamma = options.kernel_type.has_gamma
        return values_of("Cs", self.Cs, DEFAULT_CS), gammas if has_gamma else None, None

    def _keep_scores(self, result: GridResult, n_folds: int) -> None:
        scores, best = result.scores, result.best
        self.table_, self.best_score_ = result.table, self._score_of(best.loss)
        points = [[getattr(s.setting, name) or 0.0 for name in self._sought] for s in scores]
        axes = [np.unique(values) for values in zip(*points, strict=True)]
        losses = np.full((n_folds, *map(len, axes)), np.nan)
        is_complete = np.zeros(losses.shape[1:], bool)
        for score, point in zip(scores, points, strict=True):
            index = tuple(int(np.searchsorted(*pair)) for pair in zip(axes, point, strict=True))
            losses[np.index_exp[:] + index] = score.losses
            is_complete[index] = score.is_complete
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
                stacklevel=7,
            )
        if self.verbose:
            print(f"[dcsvm] {result!r}")

    def _score_of(self, loss: Any) -> Any:
        """Convert a loss, or an array of losses, to scores."""
        raise NotImplementedError

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


def values_of(name: str, value: int | ArrayLike, default: Sequence[float]) -> list[float]:
    """Return the values of a parameter to try.

    An integer n gives n values, evenly spaced in the exponent, over the range of `default`. Raises
    ValueError.
    """
    if isinstance(value, Integral):
        exponents = np.linspace(np.log2(default[0]), np.log2(default[-1]), int(value))
        return (2.0**exponents).tolist()
    values = np.asarray(value, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(f"{name} must be a number of values, or an array of positive values")
    return values.tolist()


def fold_of_rows(
    estimator: Searching, X: Input, y: ArrayLike | None, targets: np.ndarray, seed: int
) -> np.ndarray:
    """Return the index of the fold that tests each row, int64 (n,), or -1 for none.

    X and y are the arguments of fit; `targets` (n,) are class indices or regression targets. Raises
    ValueError if test sets of `cv` overlap, or if a split does not train on all other rows.
    """
    cv, n_rows = estimator.cv, len(targets)
    if cv is not None and not isinstance(cv, Integral):
        return _fold_of_splits(check_cv(cv).split(X, y), n_rows)
    n_folds = 5 if cv is None else int(cv)
    if n_folds > n_rows:
        raise ValueError(f"cv must be at most n_samples={n_rows}, got {n_folds} folds")
    return fold_numbers(targets if is_classifier(estimator) else None, n_rows, n_folds, seed)


def _fold_of_splits(splits: Iterable[tuple[ArrayLike, ArrayLike]], n_rows: int) -> np.ndarray:
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


@with_parameters("SEARCH", "SEARCHED_KERNEL", "SOLVING", "CLASSES", "CLUSTERS", "MACHINE")
class SVCCV(Searching, SVC):
    """C-support vector classification with cross validation of C and gamma.

    Scores are equal to GridSearchCV's over SVC with the same folds, up to tol (at most about one
    row in 1000 differs). But settings share rows, folds and clusters, and inferior settings are
    pruned. With early=True, early models are scored and trained. class_weight='balanced' is
    computed from all rows, also in the folds. Sample weights count copies of rows in the scores,
    too.

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
        Accuracy; nan for settings without a score.
    is_complete_ : bool array (n_gammas, n_Cs)
        Whether a setting was scored on all rows; scores of pruned settings are estimates.
    best_score_ : float
        Accuracy on all held-out rows.
    table_ : dict
        Columns with a value for each setting, as of dcsvm.grid_search.

    With refit=True also the attributes of SVC.
    """

    _sought = ("gamma", "C")

    def _score_of(self, loss: Any) -> Any:
        return 1.0 - loss


@with_parameters(
    "SEARCH", "epsilons", "SEARCHED_KERNEL", "SOLVING", "random_state", "CLUSTERS", "MACHINE"
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
    the smaller gamma, then the larger epsilon. Scores are negative mean squared errors. scores_ is
    (n_folds, n_gammas, n_Cs, n_epsilons), is_complete_ (n_gammas, n_Cs, n_epsilons).
    """

    _sought = ("gamma", "C", "epsilon")

    def _axes(self, options: TrainOptions) -> tuple[list[float], Axis, Axis]:
        epsilons = np.asarray(self.epsilons, dtype=np.float64)
        is_valid = epsilons.ndim == 1 and len(epsilons) and np.all(epsilons >= 0)
        if not is_valid or not np.all(np.isfinite(epsilons)):
            raise ValueError("epsilons must be an array of finite values of at least 0")
        return *super()._axes(options)[:2], epsilons.tolist()

    def _score_of(self, loss: Any) -> Any:
        return -loss
