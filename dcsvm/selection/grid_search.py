"""The function `dcsvm.grid_search` and its result."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm import _core
from dcsvm.data.html import table_html
from dcsvm.data.rows import Rows, stacked
from dcsvm.kernel.kernel_rows import threads_to_train
from dcsvm.problem.data_gamma import RowStatistics, median_unit, with_number
from dcsvm.problem.option_table import MEDIAN
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.task import as_labels
from dcsvm.training.arguments import scaled_rows, table_of, warn_of_labels
from dcsvm.training.setting_search import Search, fold_of_rows
from dcsvm.training.settings import DEFAULT_CS, DEFAULT_GAMMAS, Grid, Score, best_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class GridResult:
    """Result of a grid search.

    Attributes
    ----------
    scores : tuple of Score
        One per setting, in the order of the search.
    best : Score
        Score of the best setting.
    is_stopped : bool
        Whether the search stopped before all settings were scored.
    """

    scores: tuple[Score, ...]
    best: Score
    is_stopped: bool = False

    @property
    def best_C(self) -> float:  # noqa: N802 (C as in LIBSVM)
        return self.best.setting.C

    @property
    def best_gamma(self) -> float | None:
        return self.best.setting.gamma

    @property
    def best_epsilon(self) -> float | None:
        return self.best.setting.epsilon

    @property
    def best_loss(self) -> float:
        """Loss of the best setting, by default its error rate or mean squared error."""
        return self.best.loss

    @property
    def table(self) -> dict[str, np.ndarray]:
        """Settings and scores as columns (n_settings,), by name, e.g. for pandas.DataFrame."""
        columns = {
            name: np.array([getattr(score.setting, name) for score in self.scores])
            for name in ("C", "gamma", "epsilon")
        }
        for name in ("loss", "n_rows", "is_complete", "converged", "n_sv", "seconds"):
            columns[name] = np.array([getattr(score, name) for score in self.scores])
        return columns

    def _repr_html_(self) -> str:
        rows = [(name, f"{value:g}") for name, value in self.best.setting.sought.items()]
        rows += [("loss", f"{self.best_loss:.6g}"), ("settings", str(len(self.scores)))]
        return table_html("dcsvm.GridResult", rows)

    def __repr__(self) -> str:
        sought = self.best.setting.sought
        text = ", ".join(f"{name}={value:g}" for name, value in sought.items())
        return f"GridResult({len(self.scores)} settings, best {text}: loss {self.best_loss:.6g})"


def grid_search(  # noqa: PLR0913 (a public function with keyword parameters)
    X: ArrayLike,
    y: ArrayLike,
    *,
    Cs: Sequence[float] | None = None,  # noqa: N803 (several C)
    gammas: Sequence[float] | None = None,
    epsilons: Sequence[float] | None = None,
    gamma_unit: str | None = None,
    folds: int | ArrayLike = 5,
    every: bool = False,
    metric: str | None = None,
    refine: bool = False,
    sample_weight: ArrayLike | None = None,
    stop: _core.Stop | None = None,
    **options: Any,
) -> GridResult:
    """Score the settings of a grid on held-out rows.

    With early=True early models are scored, otherwise exact models as in cross validation.

    Parameters
    ----------
    X, y : arrays, or a data frame and an array
        Rows and labels or targets, as for `dcsvm.train`.
    Cs : sequence of float, optional
        Values of C. The default is 2^-5, 2^-3, ..., 2^15, as in svm-grid.
    gammas : sequence of float, optional
        Values of gamma. The default is the option `gamma` if given, else 2^-15, 2^-13, ..., 2^3.
    epsilons : sequence of float, optional
        Values of epsilon for epsilon-SVR. The default is the option `epsilon`.
    gamma_unit : {"median"}, optional
        With "median", a number F in `gammas` means gamma="F/median". The result contains the
        values of gamma themselves.
    folds : int or int array of shape (n,), default 5
        Number of folds, which are stratified by class and drawn with the option `seed`. An array
        gives the fold that holds out each row, negative for rows that are never held out.
    every : bool, default False
        Score every setting on all rows. By default, a setting is pruned when its loss on some of
        the rows exceeds the total loss of the best setting; its reported loss is then an estimate.
        Exact classifiers are first solved to a tolerance of 0.3. A setting is pruned if its
        error rate is then more than 0.01 above the best.
    metric : str, optional
        What to choose by: accuracy (the default for classes), balanced-accuracy, f1 (the mean over
        the classes), auc or log-loss (two classes); mse (the default for a regression), rmse, mae
        or r2. The loss is an error, or 1 minus a gain such as the accuracy. By f1, auc and log-loss
        no setting is pruned; probabilities are those of one sigmoid for all folds.
    refine : bool, default False
        Afterwards, score a fine grid around the best setting.
    sample_weight : array of shape (n,), optional
        Weights as for `dcsvm.train`. They also weight the losses.
    stop : dcsvm.Stop, optional
        Ends the search early.
    **options
        Training options of `dcsvm.train`.

    Returns
    -------
    GridResult
        Has `best_C`, `best_gamma`, `best_epsilon` and `best_loss`, by default the error rate or the
        mean squared error. Ties go to the smaller C. `table` has all settings and scores as
        columns.

    Raises
    ------
    ValueError
        If the input is invalid.
    TypeError
        If an option is unknown.
    Stopped
        If the search is stopped before any setting is scored.

    Warns
    -----
    UserWarning
        If settings did not converge. They are chosen only if no complete setting converged.
    """
    settings = TrainOptions.of(**options)
    if stop is not None and not isinstance(stop, _core.Stop):
        raise TypeError(f"stop must be a dcsvm.Stop or None, not {stop!r}")
    if gamma_unit not in (None, MEDIAN):
        raise ValueError(f"gamma_unit must be {MEDIAN!r} or None, got {gamma_unit!r}")
    grid = _default_grid(settings, Cs, gammas, epsilons)
    labels, table = as_labels(y), table_of(X)
    rows, _ = scaled_rows(X, None, table)
    warn_of_labels(settings, labels)
    statistics = RowStatistics.of(rows, 1)
    settings = with_number(settings, statistics)
    if gamma_unit == MEDIAN:
        grid = grid.in_gamma_unit(median_unit(settings, statistics))
    settings = replace(settings, threads=threads_to_train(settings.threads, rows))
    if len(labels) != rows.n_samples:
        raise ValueError(f"{rows.n_samples} rows have {len(labels)} labels")
    fold = _fold_of_each(folds, labels, settings)
    search = Search(
        rows, labels, fold, settings,
        sample_weight=sample_weight, every=every, metric=metric, stop=stop,
    )  # fmt: skip
    scores: list[Score] = []
    is_stopped = False
    try:
        scores.extend(search.run(grid, refine=refine))
    except _core.Stopped:
        is_stopped = True
        if not any(score.is_complete for score in scores):
            scores.extend(search.estimates)
    best = best_of(scores)
    if best is None and not is_stopped:
        raise ValueError("no setting of the grid has a solution")
    if best is None:
        raise _core.Stopped("stopped before any setting was scored")
    n_missed = sum(not score.converged for score in scores)
    if n_missed:
        warnings.warn(f"{n_missed} settings did not converge", stacklevel=2)
    return GridResult(tuple(scores), best, is_stopped)


def _fold_of_each(folds: int | ArrayLike, labels: np.ndarray, options: TrainOptions) -> np.ndarray:
    """Return the fold of each row, int64 (n,), given the number of folds or an array."""
    if np.ndim(folds) == 0:
        if not isinstance(folds, Integral) or isinstance(folds, bool):
            raise ValueError(f"folds must be a whole number or an array, not {folds!r}")
        return fold_of_rows(labels, options, int(folds))
    fold = np.asarray(folds)
    if fold.shape != labels.shape or fold.dtype.kind not in "iu":
        raise ValueError("folds must be a whole number, or an array of one for each row")
    fold = fold.astype(np.int64)
    numbers = np.unique(fold[fold >= 0])
    return np.where(fold < 0, -1, np.searchsorted(numbers, fold))


def _default_grid(
    options: TrainOptions,
    penalties: Sequence[float] | None,
    gammas: Sequence[float] | None,
    epsilons: Sequence[float] | None,
) -> Grid:
    """Make a grid, by default with the values of svm-grid."""
    if penalties is None:
        has_penalty = options.svm_type in ("c_svc", "epsilon_svr", "nu_svr")
        penalties = DEFAULT_CS if has_penalty else (options.C,)
    if gammas is None and options.kernel_type.has_gamma and options.gamma is None:
        gammas = DEFAULT_GAMMAS
    return Grid.of(options, penalties, gammas, epsilons)


def with_test_rows(
    rows: Rows, labels: np.ndarray, test_rows: Rows, test_labels: np.ndarray
) -> tuple[Rows, np.ndarray, np.ndarray]:
    """Append test rows as the held-out rows. Returns rows, labels and the fold of each row."""
    n_features = max(rows.n_features, test_rows.n_features)
    rows, test_rows = rows.with_features(n_features), test_rows.with_features(n_features)
    joined = stacked(rows, test_rows.in_form_of(rows, 1))
    fold = np.repeat([-1, 0], [rows.n_samples, test_rows.n_samples])
    return joined, np.concatenate([labels, test_labels]), fold
