"""What `dcsvm.grid_search` does and returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np

from dcsvm import _core
from dcsvm.data.coded_rows import coded
from dcsvm.data.rows import Rows, stacked
from dcsvm.kernel.kernels import WITH_GAMMA
from dcsvm.kernel.small_work import threads_to_train
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.task import as_labels
from dcsvm.selection.grid import DEFAULT_CS, DEFAULT_GAMMAS, Grid
from dcsvm.selection.score import Score, best_of
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
        settings = [score.setting for score in self.scores]
        columns = {
            name: np.array([getattr(one, name) for one in settings])
            for name in ("C", "gamma", "epsilon")
        }
        for name in ("loss", "n_rows", "is_complete", "converged", "n_sv", "seconds"):
            columns[name] = np.array([getattr(score, name) for score in self.scores])
        return columns

    def __repr__(self) -> str:
        found = {"C": self.best_C, "gamma": self.best_gamma, "epsilon": self.best_epsilon}
        text = ", ".join(f"{name}={value:g}" for name, value in found.items() if value is not None)
        return f"GridResult({len(self.scores)} settings, best {text}: loss {self.best_loss:.6g})"


def search_grid(
    X,
    y,
    options: TrainOptions,
    grid: Grid,
    *,
    folds: int | Sequence[int],
    refine: bool,
    **how,
) -> GridResult:
    """Score the settings of a grid; see `dcsvm.grid_search`, and for the rest Search. Raises
    ValueError for what does not fit, and Stopped where nothing was scored."""
    rows, labels = Rows.from_array(X), as_labels(y)
    options = replace(options, threads=threads_to_train(options.threads, rows))
    rows = coded(rows, options.threads)
    if len(labels) != rows.n_samples:
        raise ValueError(f"{rows.n_samples} rows have {len(labels)} labels")
    if np.ndim(folds) == 0:
        if not isinstance(folds, Integral) or isinstance(folds, bool):
            raise ValueError(f"folds must be a whole number or an array, not {folds!r}")
        fold = fold_of_rows(labels, options, int(folds))
    else:
        fold = np.asarray(folds)
        if fold.shape != labels.shape or fold.dtype.kind not in "iu":
            raise ValueError("folds must be a number, or the whole number of its fold for each row")
        fold = fold.astype(np.int64)
        numbers = np.unique(fold[fold >= 0])
        fold = np.where(fold < 0, -1, np.searchsorted(numbers, fold))
    search = Search(rows, labels, fold, options, **how)
    run = search.run_coarse_to_fine if refine else search.run
    scores: list[Score] = []
    is_stopped = False
    try:
        scores.extend(run(grid))
    except _core.Stopped:
        is_stopped = True
        if not any(score.is_complete for score in scores):
            scores.extend(search.estimates)
    best = best_of(scores)
    if best is None and not is_stopped:
        raise ValueError("no setting of the grid has a solution")
    if best is None:
        raise _core.Stopped("stopped before any setting was scored")
    return GridResult(tuple(scores), best, is_stopped)


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
