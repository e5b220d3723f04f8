"""The function `dcsvm.grid_search`, its result, and the search behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset, as_dataset
from dcsvm.data.html import table_html
from dcsvm.kernel.kernel_rows import threads_to_train
from dcsvm.problem.data_gamma import RowStatistics, median_unit, with_number
from dcsvm.problem.option_table import MEDIAN, checked_metric
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.report import Progress
from dcsvm.training.feature_weights import with_weights
from dcsvm.training.setting_search import Search, fold_of_rows
from dcsvm.training.settings import DEFAULT_CS, DEFAULT_GAMMAS, Grid, Score, best_of
from dcsvm.training.train import as_test_rows, check_labels, checked_control, label_warnings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from dcsvm.data.scaling import Scaling


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
    def n_missed(self) -> int:
        """Number of settings that did not converge."""
        return sum(not score.converged for score in self.scores)

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


class GridSearch:
    """A search of the best setting of a grid on held-out rows of a data set.

    Parameters
    ----------
    data : the training rows, scaled and weighted; their weights count in the losses.
    folds, test, Cs, gammas, epsilons, gamma_unit, every, metric : as for `grid_search`.
    fold_seed : seed of a number of folds, by default the option `seed`.
    tell : progress callback, called with the number of finished settings.

    Attributes
    ----------
    options : the training options, with the number of gamma.
    grid, gamma_unit : the settings, and the gamma that the number 1 of `gammas` stands for.
    n_held : number of held-out rows.
    scores : the scores so far.
    is_stopped : whether the search stopped before all settings were scored.

    Raises ValueError for invalid input, Stopped if weights are not learned in time.
    """

    def __init__(  # noqa: PLR0913 (keyword parameters)
        self,
        data: Dataset,
        options: TrainOptions,
        *,
        Cs: Sequence[float] | None = None,  # noqa: N803 (several C)
        gammas: Sequence[float] | None = None,
        epsilons: Sequence[float] | None = None,
        gamma_unit: str | None = None,
        folds: int | ArrayLike = 5,
        fold_seed: int | None = None,
        test: Dataset | None = None,
        every: bool = False,
        metric: str | None = None,
        stop: _core.Stop | None = None,
        tell: Callable[[float], None] | None = None,
    ):
        self.metric = checked_metric(metric, options.svm_type)
        grid = _default_grid(options, Cs, gammas, epsilons)
        statistics, self.gamma_unit = RowStatistics.of(data.rows, 1), 1.0
        if gamma_unit == MEDIAN:
            self.gamma_unit = median_unit(options, statistics)
            grid = grid.in_gamma_unit(self.gamma_unit)
        options, self.grid = with_number(options, statistics), grid
        self.options = replace(options, threads=threads_to_train(options.threads, data.rows))
        if test is None:
            seed = options.seed if fold_seed is None else fold_seed
            fold = _fold_of_each(folds, data.labels, replace(options, seed=seed))
        else:
            fold = np.repeat([-1, 0], [data.n_rows, test.n_rows])
            data = data.followed_by(test)
        self.n_held = int(np.count_nonzero(fold >= 0))
        self.search = Search(
            data.rows, data.labels, fold, self.options,
            sample_weight=data.sample_weight, every=every, metric=metric, stop=stop, tell=tell,
        )  # fmt: skip
        self.scores: list[Score] = []
        self.is_stopped = False

    def run(self, known: Iterable[Score] = (), *, refine: bool = False) -> Iterator[Score]:
        """Score the settings of the grid that are not `known`, then a fine grid with `refine`."""
        self.scores += known
        try:
            for score in self.search.run(self.grid, list(self.scores), refine=refine):
                self.scores.append(score)
                yield score
        except _core.Stopped:
            self.is_stopped = True
            if not any(score.is_complete for score in self.scores):
                self.scores += self.search.estimates

    @property
    def best(self) -> Score | None:
        """The best score so far, None before the first."""
        return best_of(self.scores)

    @property
    def result(self) -> GridResult:
        """The scores so far. Raises ValueError without any, Stopped if the search stopped."""
        best = self.best
        if best is None and self.is_stopped:
            raise _core.Stopped("stopped before any setting was scored")
        if best is None:
            raise ValueError("no setting of the grid has a solution")
        return GridResult(tuple(self.scores), best, self.is_stopped)

    def score(self, loss: Any) -> Any:
        """Convert losses, a number or an array, to scores of which more is better."""
        return self.search.definition.score(loss)


def grid_search(  # noqa: PLR0913 (a public function with keyword parameters)
    X: ArrayLike | Dataset,
    y: ArrayLike | None = None,
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
    scale: str | Scaling | None = None,
    feature_weights: ArrayLike | str | None = None,
    test: tuple[ArrayLike, ArrayLike] | Dataset | None = None,
    stop: _core.Stop | None = None,
    **options: Any,
) -> GridResult:
    """Score the settings of a grid on held-out rows.

    With early=True early models are scored, otherwise exact models as in cross validation.

    Parameters
    ----------
    X, y : array, sparse matrix, data frame or dcsvm.Dataset, and array
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
    scale, feature_weights
        As for `dcsvm.train`. Weights are learned once, from all rows, before the search.
    test : tuple (X, y) or dcsvm.Dataset, optional
        Score on these rows instead of folds; models are trained on all rows of X.
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
    control = checked_control(Progress(), stop)
    if gamma_unit not in (None, MEDIAN):
        raise ValueError(f"gamma_unit must be {MEDIAN!r} or None, got {gamma_unit!r}")
    data = as_dataset(X, y, sample_weight=sample_weight, scale=scale)
    check_labels(data, settings)
    for sentence in label_warnings(settings, data.labels):
        control.progress.warn(sentence)
    weighted = with_weights(data, feature_weights, settings, control.stop)
    search = GridSearch(
        weighted, settings, Cs=Cs, gammas=gammas, epsilons=epsilons, gamma_unit=gamma_unit,
        folds=folds, test=as_test_rows(test, weighted), every=every, metric=metric,
        stop=control.stop,
    )  # fmt: skip
    for _ in search.run(refine=refine):
        pass
    result = search.result
    if result.n_missed:
        control.progress.warn(f"{result.n_missed} settings did not converge")
    return result


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
