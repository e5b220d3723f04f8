"""The function `dcsvm.grid_search`: a grid on a data set, its folds, unit of gamma and result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm import _core
from dcsvm._core import Stop
from dcsvm.data.dataset import Dataset
from dcsvm.machine import threads_to_train
from dcsvm.model.metrics import DEFINITIONS, table_html
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.option_table import MEDIAN, checked_metric
from dcsvm.problem.options import TrainOptions
from dcsvm.training.held_out import DEFAULT_CS, DEFAULT_GAMMAS, Grid, Score, Setting, best_of
from dcsvm.training.race import Race
from dcsvm.training.report import Progress
from dcsvm.training.train import as_test_rows, checked_input, label_warnings, with_weights

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
        """C of the best setting."""
        return self.best.setting.C

    @property
    def best_gamma(self) -> float | None:
        """Gamma of the best setting; None for a kernel without gamma."""
        return self.best.setting.gamma

    @property
    def best_epsilon(self) -> float | None:
        """Epsilon of the best setting; None except for epsilon-SVR."""
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
    data : the training rows; their sample weights count in the losses.
    grid : the settings; gamma is in units of `gamma_unit`.
    feature_weights, folds, test, gamma_unit, every, metric : as for `dcsvm.grid_search`.
    fold_seed : seed of a number of folds, by default the option `seed`.

    Attributes
    ----------
    data : the training rows, with feature weights.
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
        grid: Grid,
        *,
        gamma_unit: str | None = None,
        feature_weights: ArrayLike | str | None = None,
        folds: int | ArrayLike = 5,
        fold_seed: int | None = None,
        test: tuple[ArrayLike, ArrayLike] | Dataset | None = None,
        every: bool = False,
        metric: str | None = None,
        stop: _core.Stop | None = None,
        progress: Progress | None = None,
    ):
        self.metric = checked_metric(metric, options.svm_type)
        self.definition = DEFINITIONS[self.metric]
        self.stop = stop or _core.Stop()
        for sentence in label_warnings(options, data.labels):
            (progress or Progress()).warn(sentence)
        self.data = data = with_weights(data, feature_weights, options, self.stop)
        # a setting of gamma is a number: kernels and estimates compare them
        tested = as_test_rows(test, data)
        options = number_of_gamma(options, data.rows, table=data.table)
        self.gamma_unit = 1.0
        if gamma_unit == MEDIAN:
            per_median = number_of_gamma(replace(options, gamma="1/median"), data.rows)
            assert isinstance(per_median.gamma, float)
            self.gamma_unit = per_median.gamma
            grid = grid.in_gamma_unit(self.gamma_unit)
        self.grid = grid
        work = data.rows.work_with(data.n_rows)
        self.options = replace(options, threads=threads_to_train(options.threads, work))
        # test rows are the single held-out fold
        if tested is None:
            seed = options.seed if fold_seed is None else fold_seed
            self.fold = _fold_of_each(folds, data.labels, replace(options, seed=seed))
        else:
            self.fold = np.repeat([-1, 0], [data.n_rows, tested.n_rows])
            data = data.followed_by(tested)
        self.n_held = int(np.count_nonzero(self.fold >= 0))
        self._tell: Callable[[float], None] = lambda _n_done: None
        self.race: Race | None = Race(
            data.rows, data.labels, self.fold, self.options, sample_weight=data.sample_weight,
            every=every, metric=metric, stop=self.stop, tell=lambda n_done: self._tell(n_done),
        )  # fmt: skip
        self.scores: list[Score] = []
        self.is_stopped = False

    def tell(self, progress: Callable[[float], None]) -> None:
        """Call `progress` with the number of finished settings, as the search proceeds."""
        self._tell = progress

    def add(self, score: Score) -> None:
        """Add a known score; its setting is not scored again."""
        self.scores.append(score)

    def run(self, *, refine: bool = False) -> Iterator[Score]:
        """Score the other settings of the grid, then those of a fine grid with `refine`."""
        assert self.race is not None
        try:
            for score in self.race.run(self.grid, list(self.scores), refine=refine):
                self.scores.append(score)
                yield score
        except _core.Stopped:
            self.is_stopped = True

    def use_estimates(self) -> Iterator[Score]:
        """Add the estimates of a search that was stopped before a setting was scored."""
        has_scores = any(score.is_complete for score in self.scores)
        if self.race is not None and self.is_stopped and not has_scores:
            for score in self.race.estimates:
                self.scores.append(score)
                yield score

    def release(self) -> Dataset:
        """Forget the copies of the rows. Returns the weighted rows for one training."""
        self.race = None
        return self.data.disposable()

    def result(self) -> GridResult:
        """Return the result. Raises ValueError, and Stopped if no setting was scored."""
        best = self.best
        if best is None and not self.is_stopped:
            raise ValueError("no setting of the grid has a solution")
        if best is None:
            raise _core.Stopped("stopped before any setting was scored")
        return GridResult(tuple(self.scores), best, self.is_stopped)

    @staticmethod
    def over(
        data: Dataset,
        options: TrainOptions,
        Cs: Sequence[float] | None = None,  # noqa: N803 (several C)
        gammas: Sequence[float] | None = None,
        epsilons: Sequence[float] | None = None,
        **more: Any,
    ) -> GridSearch:
        """Return a search over values of C, gamma and epsilon, by default those of svm-grid.

        For `more` see GridSearch. Raises ValueError.
        """
        if Cs is None:
            has_penalty = options.svm_type in ("c_svc", "epsilon_svr", "nu_svr")
            Cs = DEFAULT_CS if has_penalty else (options.C,)  # noqa: N806
        if gammas is None and options.kernel_type.has_gamma and options.gamma is None:
            gammas = DEFAULT_GAMMAS
        return GridSearch(data, options, Grid.of(options, Cs, gammas, epsilons), **more)

    @property
    def best(self) -> Score | None:
        """The best score so far, None before the first."""
        return self.best_of(self.scores)

    @staticmethod
    def known(
        values: tuple[float, float | None, float | None], loss: float, n_rows: int, *,
        is_complete: bool, converged: bool,
    ) -> Score:  # fmt: skip
        """Return a score from a file, for the values of C, gamma and epsilon."""
        setting, weight = Setting(*values), float(n_rows)
        return Score(setting, loss, (), n_rows, weight, is_complete, converged, None, 0.0)

    @staticmethod
    def best_of(scores: Iterable[Score]) -> Score | None:
        """Return the best of several scores, see `settings.best_of`."""
        return best_of(scores)


def _fold_of_each(folds: int | ArrayLike, labels: np.ndarray, options: TrainOptions) -> np.ndarray:
    """Return the fold of each row, int64 (n,), given the number of folds or an array."""
    if np.ndim(folds) == 0:
        if not isinstance(folds, Integral) or isinstance(folds, bool):
            raise ValueError(f"folds must be a whole number or an array, not {folds!r}")
        return options.fold_of_rows(labels, int(folds))
    fold = np.asarray(folds)
    if fold.shape != labels.shape or fold.dtype.kind not in "iu":
        raise ValueError("folds must be a whole number, or an array of one for each row")
    fold = fold.astype(np.int64)
    numbers = np.unique(fold[fold >= 0])
    return np.where(fold < 0, -1, np.searchsorted(numbers, fold))


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
    stop: Stop | None = None,
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
        What to choose by, as the option --metric of dcsvm-grid: accuracy (the default for classes),
        mse (the default for a regression), f1 (the mean over the classes), auc, ... The loss is an
        error, or 1 minus a gain such as the accuracy. By a metric that is no mean over rows, such
        as f1 or auc, no setting is pruned. Probabilities, of which log-loss is the loss, are those
        of one sigmoid for all folds.
    refine : bool, default False
        Afterwards, score a fine grid around the best setting.
    sample_weight : array of shape (n,), optional
        Weights as for `dcsvm.train`. They also weight the losses.
    scale, feature_weights : as for `dcsvm.train`
        Weights are learned once, from all rows, before the search.
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
    if gamma_unit not in (None, "median"):
        raise ValueError(f"gamma_unit must be 'median' or None, got {gamma_unit!r}")
    data, settings, control = checked_input(
        X, y, options, sample_weight=sample_weight, scale=scale, progress=Progress(), stop=stop
    )
    data.check_is_here()
    data = data.shifted(settings.kernel_type, control.progress.warn)
    search = GridSearch.over(
        data, settings, Cs, gammas, epsilons, gamma_unit=gamma_unit, folds=folds, test=test,
        feature_weights=feature_weights, every=every, metric=metric, stop=control.stop,
    )  # fmt: skip
    for _ in search.run(refine=refine):
        pass
    # what was pruned gets its estimate
    for _ in search.use_estimates():
        pass
    result = search.result()
    if result.n_missed:
        control.progress.warn(f"{result.n_missed} settings did not converge")
    return result
