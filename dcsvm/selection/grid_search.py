"""The function `dcsvm.grid_search`, and its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dcsvm._core import Stop
from dcsvm.data.dataset import Dataset
from dcsvm.solving.report import Progress
from dcsvm.training.grid import GridResult, GridSearch
from dcsvm.training.train import checked_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from dcsvm.data.scaling import Scaling


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
    if gamma_unit not in (None, "median"):
        raise ValueError(f"gamma_unit must be 'median' or None, got {gamma_unit!r}")
    data, settings, control = checked_input(
        X, y, options, sample_weight=sample_weight, scale=scale, progress=Progress(), stop=stop
    )
    data.check_is_here()
    search = GridSearch.over(
        data, settings, Cs, gammas, epsilons, gamma_unit=gamma_unit, folds=folds, test=test,
        feature_weights=feature_weights, every=every, metric=metric, stop=control.stop,
    )  # fmt: skip
    for _ in search.run(refine=refine):
        pass
    for _ in search.use_estimates():
        pass
    result = search.result()
    if result.n_missed:
        control.progress.warn(f"{result.n_missed} settings did not converge")
    return result
