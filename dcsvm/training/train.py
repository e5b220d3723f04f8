"""Training: from rows and labels to a model and a report, whatever ends the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcsvm import _core
from dcsvm.data.coded_rows import coded
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.kernel.small_work import threads_to_train
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel, ExactModel
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.sample_weights import checked_weights
from dcsvm.solving.checkpoint import fingerprint_of
from dcsvm.solving.control import Control
from dcsvm.solving.extraction import NoMargin, exact_model
from dcsvm.solving.preparation import prepare
from dcsvm.solving.report import TrainReport
from dcsvm.solving.stopped import certificate_of_stopped
from dcsvm.training.algorithm import Run
from dcsvm.training.early_level import TestRows, check_test_rows
from dcsvm.training.far_columns import Columns
from dcsvm.training.probability import fitted_probability
from dcsvm.training.warm_start import check_rows, first_alpha


def train_rows(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    control: Control | None = None,
    *,
    sample_weight: np.ndarray | None = None,
    init_model: Model | None = None,
    test: TestRows | None = None,
    consume: bool = False,
) -> tuple[Model, TrainReport]:
    """Train a model; returns it and a report.

    `labels` (n,), float64 or strings: classes, or targets of a regression; one-class ignores them.
    Unsigned integers are numbers of classes, in their order.
    `sample_weight` float64 (n,): as how many rows each counts, None is one. An `init_model` of the
    same rows, or of the first of them, is where training begins. `test` rows choose the early level
    where training finds it. `consume` says that nobody else
    uses the rows: they are reordered where they are, and shared with the model. Where the
    `control` ends training early the model is what there is by then, and the report says so.
    Raises ValueError for anything that does not fit, and Stopped where there is nothing yet.
    """
    columns = Columns(rows, *([] if test is None else [test.rows]))
    if init_model is not None:
        check_rows(init_model, rows, options)
    control = control or Control()
    with control.held():
        run = ready(
            columns.of(rows),
            labels,
            columns.options(options),
            control,
            sample_weight=sample_weight,
            init_model=init_model,
            consume=consume,
        )
        if test is not None:
            check_test_rows(test, run.task)
            run.test = replace(test, rows=columns.of(test.rows))
        return columns.model(finished(run)), run.report


def ready(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    control: Control | None = None,
    *,
    sample_weight: np.ndarray | None = None,
    init_model: Model | None = None,
    consume: bool = False,
) -> Run:
    """The run that `train_rows` carries out, ready to begin or to go on. Raises Stopped."""
    control = control or Control()
    weights = checked_weights(sample_weight, len(labels))
    rows = coded(rows, threads_to_train(options.threads, rows))
    if control.checkpoint is not None:
        is_warm = init_model is not None
        data = fingerprint_of(rows, labels, weights)
        control.checkpoint.begin(data, options, is_warm=is_warm)
    prepared = prepare(rows, labels, options, weights, consume=consume, stop=control.stop)
    control.progress.plan(prepared.describe())
    run = Run(prepared, control)
    if init_model is not None:
        run.begin_with(first_alpha(prepared, init_model))
    run.resume()
    return run


def finished(run: Run) -> Model:
    """Carry out a run; the model is of whatever there is if it is stopped. Raises Stopped where
    there is nothing."""
    probability = None
    try:
        run.improve()
    except _core.Stopped:
        exact = _exact_of_stopped(run)
    else:
        run.set_seconds()
        if run.work.has_far_rows:
            _core.give_back_memory()
        exact = None if run.options.early else _exact(run)
        if run.report.early_choice is not None:
            _or_missing(run, "worth of the early level", Run.tell_early_level)
            run.set_seconds()
        if run.options.probability:
            probability = _or_missing(run, "probabilities", fitted_probability)
    exact, early = (_with_own_rows(run, part) for part in (exact, run.state.early))
    return Model(
        run.data.kernel,
        run.task.labels,
        exact,
        early,
        svm_type=run.options.svm_type,
        probability=probability,
        report=run.report,
    )


def _with_own_rows(run: Run, part: ExactModel | EarlyModel | None):
    """A part of the model with rows that are in memory, unless it may share those of the run."""
    if part is None or run.prepared.owns_rows or not isinstance(part.rows, ChosenRows):
        return part
    return replace(part, rows=part.rows.part(slice(None)))


def _exact(run: Run) -> ExactModel:
    """The exact model of a settled run, reported."""
    report = run.report
    found = exact_model(run.solution, run.certificate, report.converged)
    report.n_sv, report.n_bsv = found.model.rows.n_samples, found.n_bsv
    report.violation = found.violation
    report.usable = bool(found.violation < run.size_of_values)
    report.problems, report.objective = found.problems, found.objective
    for problem, iterations in zip(report.problems, run.state.n_iterations.tolist(), strict=True):
        problem.iterations = iterations
    report.duality_gap = found.gap
    return found.model


def _exact_of_stopped(run: Run) -> ExactModel | None:
    """The exact model as far as it is, of a run that was stopped; what it is worth is in the
    report. Raises Stopped where nothing was solved."""
    if run.level_solving is not None:
        run.level_solving.hand_over_counts(run)
    run.save()
    report, state = run.report, run.state
    report.stopped, report.converged = True, False
    report.missing = ["probabilities"] if run.options.probability else []
    run.set_seconds()
    run.keep_unfinished()
    report.converged = False
    if run.plan.choices and report.early_choice is None:
        report.missing.insert(0, "choice of the early level")
    run.keep_sum()
    if not state.is_global:
        run.iterate.forget(np.flatnonzero(~run.is_whole))
    if not np.any(run.alpha) and state.early is None:
        raise _core.Stopped("stopped before anything was solved")
    if run.options.early:
        if state.early is None:
            raise _core.Stopped("stopped before anything was solved")
        return None
    run.settle(certificate_of_stopped(run))
    try:
        return _exact(run)
    except NoMargin as nothing:
        raise _core.Stopped from nothing


def _or_missing(run: Run, name: str, work):
    """What work on a solution that is complete finds; where it is stopped nothing, which the report
    tells."""
    try:
        return work(run)
    except _core.Stopped:
        run.report.stopped = True
        run.report.missing.append(name)
        return None
