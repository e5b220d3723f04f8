"""Provide `dcsvm.easy`, which chooses a kernel, a scaling, feature weights, C, gamma and epsilon.

The search (search.py) has a time limit. On many rows it uses samples; then the model of all rows is
chosen (final.py), an exact or an early one. The figure that is told is that of the chosen setting
on new rows (figure.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm import _core
from dcsvm.data.dataset import Dataset
from dcsvm.model.metrics import shown_loss
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.final import Choice, choose
from dcsvm.selection.one_class import choose_boundary
from dcsvm.selection.search import RESERVED, EasySearch, Tell
from dcsvm.selection.trials import GIVEN, Clock, sampled, scaled_as, with_metric
from dcsvm.training.report import Progress
from dcsvm.training.train import checked_input, train

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dcsvm.data.scaling import Scaling

MAX_CLASSES = 32  # more different whole numbers are the targets of a regression


def task_of(labels: np.ndarray) -> str:
    """Return the SVM type for labels: text and a few whole numbers are classes."""
    if labels.dtype.kind not in "iuf":
        return "c_svc"
    is_whole = bool(np.all(labels == np.round(labels)))
    return "c_svc" if is_whole and len(np.unique(labels)) <= MAX_CLASSES else "epsilon_svr"


def easy(  # noqa: PLR0913 (a public function with keyword parameters)
    X: ArrayLike | Dataset,
    y: ArrayLike | None = None,
    *,
    time_limit: float = 60.0,
    metric: str | None = None,
    svm_type: str | None = None,
    stop: _core.Stop | None = None,
    tell: Tell | None = None,
    sample_weight: ArrayLike | None = None,
    scale: str | Scaling | None = None,
    feature_weights: ArrayLike | str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Model:
    """Choose all settings within a time limit, then train a model on all rows.

    Kernel, scaling, feature weights, C, gamma and epsilon are chosen on held-out rows. Of more than
    20,000 rows, samples are searched, and then the model is an exact or an early one, whichever is
    better and fits the time.

    Parameters
    ----------
    X : array, scipy sparse matrix, data frame of shape (n, d), or dcsvm.Dataset
        Training rows, as for `dcsvm.train`.
    y : array of shape (n,), optional
        Labels, numbers or strings, or the targets of a regression. A Dataset has its own.
    time_limit : float, default 60
        Seconds for the search and the training on all rows. The training of an early model may
        exceed it.
    metric : str, optional
        What to choose by, as the option --metric of dcsvm-easy: accuracy (the default for classes),
        rmse (the default for a regression), f1, auc, ...
    svm_type : {"c_svc", "epsilon_svr", "one_class"}, optional
        Classification or regression. By default, text and up to 32 different whole numbers are
        classes. "one_class" needs no labels: nu and gamma of the rbf kernel are those whose
        boundary depends least on which rows are trained (selection/one_class.py).
    stop : dcsvm.Stop, optional
        Ends the search early. The best setting so far is then trained: in seconds if there are few
        rows, else as an early model.
    tell : callable, optional
        Called as tell(step, trial, best) after each trial.
    sample_weight : array of shape (n,), optional
        Weights as for `dcsvm.train`. They count in trainings and in losses on held-out rows. Class
        weights count in losses, too, if no metric is given; balanced ones choose by balanced
        accuracy.
    scale : {"auto", "quantile"} or a scaling, optional
        Scale the features so, instead of by the better of auto and quantile.
    feature_weights : array of shape (d,) or "learn", optional
        Weights to use. By default they are learned, and used if held-out rows tell so.
    progress : dcsvm.Progress, optional
        As for `dcsvm.train`; it also receives the steps of the search.
    **options
        The options seed, threads, cache_mb, probability and class_weight of `dcsvm.train`.

    Returns
    -------
    Model
        It scales and weights the rows it predicts. `report.selection` has the chosen setting, its
        loss on held-out rows with the standard error, and what there was no time for.

    Raises
    ------
    ValueError
        If the input is invalid.
    Stopped
        If the search ends before any setting was scored.
    """
    if not time_limit > 0:
        raise ValueError(f"time_limit must be above 0, got {time_limit}")
    TrainOptions.check_easy(svm_type, options)
    clock = Clock(time_limit)
    if svm_type == "one_class":
        options["kernel"] = "rbf"
    if not isinstance(X, Dataset):
        X = Dataset(X, y, sample_weight=sample_weight, scale=scale)
        y = sample_weight = scale = None
    data, base, control = checked_input(
        X, y, {**options, "svm_type": svm_type or task_of(X.labels)}, sample_weight=sample_weight,
        scale=scale, progress=progress, stop=stop,
    )  # fmt: skip
    data.check_is_here()
    base.check_feature_weights(feature_weights)
    given = None if base.learns_weights(feature_weights) else feature_weights  # it learns always
    if base.svm_type == "one_class":
        return _novelty(data, base, metric, clock, control.progress, stop, given)
    counts_classes = metric is None and base.svm_type == "c_svc"
    base, metric = with_metric(base, metric, data.labels)
    tell_line = control.progress.note
    tell_line(_task_line(data, base, time_limit))
    with clock.following(stop):
        search = EasySearch(
            data, base, metric, clock, control.progress, tell=tell, feature_weights=given,
            counts_classes=counts_classes,
        )  # fmt: skip
        choice = choose(search)
        if search.skipped:
            tell_line(f"not tried: {', '.join(search.skipped)}")
        elif clock.left() > 0:
            tell_line(f"search complete after {clock.used:.1f} s")
        model, choice = _trained(choice, clock, control.progress, metric)
    model.report.set_selection(_described(search, choice), choice.trial.options)
    return model


def _novelty(
    data: Dataset,
    options: TrainOptions,
    metric: str | None,
    clock: Clock,
    progress: Progress,
    stop: _core.Stop | None,
    feature_weights: ArrayLike | None,
) -> Model:
    """Choose nu and gamma of a one-class model, and train it on all rows."""
    if metric is not None:
        raise ValueError("one_class has no labels to choose by: give no metric")
    progress.note(_task_line(data, options, clock.limit))
    scale, skipped = "auto" if data.scaling is None else GIVEN, []
    rows = scaled_as(data, scale, feature_weights)
    with clock.following(stop):
        chosen = choose_boundary(rows, options, clock, progress)
        if chosen.is_incomplete:
            skipped.append("nu and gamma")
        n_affordable = chosen.costs.affordable(chosen.setting, clock.left_of_last / RESERVED)
        if n_affordable < rows.n_rows:
            skipped.append(f"all rows but {n_affordable}")
            rows = rows.take(sampled(np.arange(rows.n_rows), rows.labels, options, n_affordable))
        if skipped:
            progress.note(f"not tried: {', '.join(skipped)}")
        last = clock.stop_of_last(early=False)
        own = replace(chosen.options, probability=options.probability)
        model = train(rows.without_source(), progress=progress, stop=last, **own.values)
    selection = {
        "metric": "outside", "loss": chosen.outside, "standard_error": chosen.error,
        "n_held": chosen.n_held, "n_trained": rows.n_rows, "kernel": options.kernel,
        "nu": chosen.options.nu,
        "kappa": chosen.kappa, "scale": scale, "has_weights": False, "early": False,
        "skipped": skipped, "seconds": clock.used,
        "quality": f"share outside {100 * chosen.outside:.2f} +- {100 * chosen.error:.2f} %",
    }  # fmt: skip
    model.report.set_selection(selection, own)
    return model


def _trained(choice: Choice, clock: Clock, progress: Progress, metric: str) -> tuple[Model, Choice]:
    """Train the model that was chosen; if time ends before an exact one, the early one.

    The user's request during the training of an exact model ends it as it is.
    """
    was_requested = clock.is_requested
    trained: tuple[Model, Choice, _UntilTaken] | None = None
    for one in (choice, choice.otherwise):
        if one is None:
            break
        options = one.trial.options
        if options.early:
            progress.note(
                f"early model on all rows, C={options.C:.4g}, gamma={options.gamma:.4g}: "
                f"{shown_loss(metric, one.loss, one.error)}"
            )
        last, rows = clock.stop_of_last(early=options.early), one.data.without_source()
        kept = _UntilTaken(progress)
        try:
            trained = train(rows, progress=kept, stop=last, **options.values), one, kept
        except _core.Stopped:  # before a model existed
            if trained is None and choice.otherwise in (None, one):
                raise
            continue
        report = trained[0].report
        if not report.stopped or report.converged or clock.is_requested > was_requested:
            break
    assert trained is not None
    model, taken, kept = trained
    kept.take()
    return model, taken


class _UntilTaken(Progress):
    """Passes events on to a progress, but warnings about a model only once it is taken."""

    def __init__(self, progress: Progress):
        for name in vars(Progress):
            if not name.startswith("_") and name != "caveat":
                setattr(self, name, getattr(progress, name))
        self.tell = progress.caveat
        self.caveats: list[tuple[Any, str]] = []

    def caveat(self, report: Any, sentence: str) -> None:
        self.caveats.append((report, sentence))

    def take(self) -> None:
        for report, sentence in self.caveats:
            self.tell(report, sentence)


def _described(search: EasySearch, choice: Choice) -> dict[str, Any]:
    """Return what the report has on the search."""
    options, candidate = choice.trial.options, choice.trial.candidate
    return {
        "metric": search.metric, "loss": choice.loss, "standard_error": choice.error,
        "n_held": choice.n_held, "kernel": options.kernel, "C": options.C,
        "epsilon": options.epsilon if options.is_regression else None,
        "scale": candidate.scale, "has_weights": candidate.weighting is not None,
        "early": options.early, "n_trials": len(search.candidates),
        "skipped": list(search.skipped), "seconds": search.clock.used,
        "quality": shown_loss(search.metric, choice.loss, choice.error),
    }  # fmt: skip


def _task_line(data: Dataset, options: TrainOptions, time_limit: float) -> str:
    """Describe the data, the kind of labels, the time and the threads."""
    kind = "one class" if options.svm_type == "one_class" else "regression"
    if options.svm_type == "c_svc":
        kind = f"classification, {len(np.unique(data.labels))} classes"
    threads, n = options.with_threads().threads or 1, data.n_features
    return (
        f"{data.n_rows} rows, {n} feature{'s'[: n != 1]}, {kind}; "
        f"at most {time_limit:g} s with {threads} thread{'s'[: threads != 1]}"
    )
