"""`dcsvm.grid_search`, and what it returns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import Rows, stacked
from dcsvm.kernel.kernel_rows import threads_to_train
from dcsvm.kernel.kernels import WITH_GAMMA
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.task import as_labels
from dcsvm.selection.grid import DEFAULT_CS, DEFAULT_GAMMAS, Grid, Score, best_of
from dcsvm.selection.search import Search, fold_of_rows


@dataclass(frozen=True, eq=False)
class GridResult:
    """The `scores` of all settings, in the order in which they were found, and the `best` one.
    `is_stopped`: the search was ended before all were."""

    scores: tuple[Score, ...]
    best: Score
    is_stopped: bool = False

    @property
    def best_C(self) -> float:
        return self.best.setting.C

    @property
    def best_gamma(self) -> float | None:
        return self.best.setting.gamma

    @property
    def best_epsilon(self) -> float | None:
        return self.best.setting.epsilon

    @property
    def best_loss(self) -> float:
        """Part of the rows that are wrong, or the mean squared error."""
        return self.best.loss

    @property
    def table(self) -> dict[str, np.ndarray]:
        """A column for each thing that is known of the settings, as pandas.DataFrame takes it."""
        columns = {
            name: np.array([getattr(score.setting, name) for score in self.scores])
            for name in ("C", "gamma", "epsilon")
        }
        for name in ("loss", "n_rows", "is_complete", "converged", "n_sv", "seconds"):
            columns[name] = np.array([getattr(score, name) for score in self.scores])
        return columns

    def __repr__(self) -> str:
        found = self.best.setting.sought
        text = ", ".join(f"{name}={value:g}" for name, value in found.items())
        return f"GridResult({len(self.scores)} settings, best {text}: loss {self.best_loss:.6g})"


def grid_search(
    X,
    y,
    *,
    Cs=None,
    gammas=None,
    epsilons=None,
    folds=5,
    every=False,
    refine=False,
    sample_weight=None,
    stop=None,
    **options,
) -> GridResult:
    """Score all settings of a grid on rows that were held out; returns a GridResult.

    X and y are as for `train`, and so are the options. With early=True early models are scored,
    else exact ones: their losses are those of cross validation.

    - Cs: the C to try; None is 2^-5, 2^-3, ... 2^15, svm-grid's.
    - gammas: the gamma to try; None is 2^-15, 2^-13, ... 2^3, or the `gamma` of the options.
    - epsilons: of epsilon-SVR; None is the `epsilon` of the options.
    - folds: a number, stratified by class, with the `seed` of the options; or for each row (n,) the
      number of the fold that holds it out, negative for rows that are never held out.
    - every (bool): score every setting on all rows. Otherwise a setting is left when it has lost
      more on some of the rows than the best one has on all; its loss is then an estimate. That
      changes nothing about which one is best.
    - refine (bool): then score a fine grid around the best setting.
    - sample_weight (n,): as of `train`; the rows that are held out count as often in the losses.
    - stop: a dcsvm.Stop, which ends the search early.

    The result has `best_C`, `best_gamma`, `best_epsilon` and `best_loss`, the part of the rows that
    are wrong or the mean squared error; of equal ones the smaller C is best. `table` has a column
    for everything that is known of each setting. Raises ValueError for input that does not fit,
    TypeError for an unknown option, and Stopped where it is stopped before anything was scored;
    warns of settings that did not converge, which are not chosen.
    """
    options = TrainOptions.of(**options)
    if stop is not None and not isinstance(stop, _core.Stop):
        raise TypeError(f"stop must be a dcsvm.Stop or None, not {stop!r}")
    grid = default_grid(options, Cs, gammas, epsilons)
    rows, labels = Rows.from_array(X), as_labels(y)
    options = replace(options, threads=threads_to_train(options.threads, rows))
    if len(labels) != rows.n_samples:
        raise ValueError(f"{rows.n_samples} rows have {len(labels)} labels")
    fold = _fold_of_each(folds, labels, options)
    how = {"every": every, "sample_weight": sample_weight, "stop": stop}
    search = Search(rows, labels, fold, options, **how)
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


def _fold_of_each(folds, labels: np.ndarray, options: TrainOptions) -> np.ndarray:
    """The fold of each row, int64 (n,), of a number of folds or of those that were given."""
    if np.ndim(folds) == 0:
        if not isinstance(folds, Integral) or isinstance(folds, bool):
            raise ValueError(f"folds must be a whole number or an array, not {folds!r}")
        return fold_of_rows(labels, options, int(folds))
    fold = np.asarray(folds)
    if fold.shape != labels.shape or fold.dtype.kind not in "iu":
        raise ValueError("folds must be a number, or the whole number of its fold for each row")
    fold = fold.astype(np.int64)
    numbers = np.unique(fold[fold >= 0])
    return np.where(fold < 0, -1, np.searchsorted(numbers, fold))


def default_grid(options: TrainOptions, Cs, gammas, epsilons) -> Grid:
    """The grid of some values, svm-grid's where there are none."""
    has_C = options.svm_type in ("c_svc", "epsilon_svr", "nu_svr")
    if Cs is None:
        Cs = DEFAULT_CS if has_C else (options.C,)
    if gammas is None and options.kernel in WITH_GAMMA and options.gamma is None:
        gammas = DEFAULT_GAMMAS
    return Grid.of(options, Cs, gammas, epsilons)


def with_test_rows(rows: Rows, labels: np.ndarray, test_rows: Rows, test_labels: np.ndarray):
    """Rows and labels with others behind them that are held out, and the fold of each."""
    n_features = max(rows.n_features, test_rows.n_features)
    rows, test_rows = rows.with_features(n_features), test_rows.with_features(n_features)
    joined = stacked(rows, test_rows.in_form_of(rows, 1))
    fold = np.repeat([-1, 0], [rows.n_samples, test_rows.n_samples])
    return joined, np.concatenate([labels, test_labels]), fold
