"""Training: from rows and labels to a model and a report, whatever ends the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dcsvm import _core
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.data.sorting import reduce_parts
from dcsvm.kernel.kernel_rows import Evaluation
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel, ExactModel
from dcsvm.problem.options import TrainOptions
from dcsvm.problem.task import checked_weights
from dcsvm.solving.certificate import Certificate, certificate_of_known
from dcsvm.solving.checkpoint import Control
from dcsvm.solving.extraction import ExactResult, NoMargin, exact_model
from dcsvm.solving.iterate import Parts
from dcsvm.solving.preparation import Columns, LocalRows, Prepared, RowSource, prepare
from dcsvm.solving.relaxation import keep_sum
from dcsvm.solving.report import TrainReport
from dcsvm.solving.solver import FormulationSolver
from dcsvm.training.algorithm import improve, resume
from dcsvm.training.early_level import TestRows, check_test_rows
from dcsvm.training.probability import fitted_probability
from dcsvm.training.run import Run
from dcsvm.training.steps import estimate_early_loss
from dcsvm.training.warm_start import check_rows, first_alpha

NANOSECONDS = 1e9  # a thread, of kernel values by the core's model, once a run is stopped


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
        if test is not None:
            test = replace(test, rows=columns.of(test.rows))
        given = {"sample_weight": sample_weight, "init_model": init_model, "test": test}
        rows, options = columns.of(rows), columns.options(options)
        run = ready(rows, labels, options, control, consume=consume, **given)
        model = finished(run)
        return columns.model(model), model.report


def ready(
    rows: Rows,
    labels: np.ndarray,
    options: TrainOptions,
    control: Control | None = None,
    *,
    consume: bool = False,
    **given,
) -> Run:
    """The run that `train_rows` carries out, of all that it is `given` but a model whose rows are
    not checked, ready to begin or to go on. Raises Stopped."""
    source = LocalRows.of(rows, options, consume=consume)
    return begun(source, labels, options, control or Control(), **given)


def begun(
    source: RowSource,
    labels: np.ndarray,
    options: TrainOptions,
    control: Control,
    *,
    sample_weight: np.ndarray | None = None,
    init_model: Model | None = None,
    test: TestRows | None = None,
) -> Run:
    """The run on rows wherever they are, ready to begin or to go on. Raises Stopped, and ValueError
    for what does not fit."""
    weights = checked_weights(sample_weight, len(labels))
    if control.checkpoint is not None:
        data, is_warm = source.fingerprint(labels, weights), init_model is not None
        control.checkpoint.begin(data, options, is_warm=is_warm)
    prepared = prepare(source, labels, options, weights, control.stop)
    control.progress.plan(prepared.describe())
    if test is not None:
        check_test_rows(test, prepared.task)
    run = Run(prepared, control, test=test)
    if init_model is not None:
        run.solver.begin_with(first_alpha(prepared, init_model))
    resume(run)
    return run


def finished(run: Run) -> Model:
    """Carry out a run; the model, with its report, is of whatever there is if it is stopped. Raises
    Stopped where there is nothing."""
    prepared, options, state = run.prepared, run.options, run.state
    found = probability = None
    try:
        improve(run)
    except _core.Stopped:
        found, missing = _exact_of_stopped(run)
        converged, stopped = False, True
    else:
        missing, converged = [], bool(state.converged.all())
        run.set_seconds()
        if prepared.engine.is_out_of_core:
            _core.give_back_memory()
        if not options.early:
            found = exact_model(run.solver.solution, state.certificate, converged)
        if state.early_choice is not None:
            _or_missing(run, missing, "worth of the early level", estimate_early_loss)
            run.set_seconds()
        if options.probability:
            probability = _or_missing(run, missing, "probabilities", fitted_probability)
        stopped = bool(missing)
    report = report_of(run, found)
    report.converged, report.stopped, report.missing = converged, stopped, missing
    exact = found and found.model
    exact, early = (_with_own_rows(prepared, part) for part in (exact, state.early))
    return Model(
        prepared.data.kernel,
        prepared.task.labels,
        exact,
        early,
        svm_type=options.svm_type,
        probability=probability,
        report=report,
    )


def _with_own_rows(prepared: Prepared, part: ExactModel | EarlyModel | None):
    """A part of the model with rows that are in memory, unless it may share those of the run."""
    if part is None or prepared.owns_rows or not isinstance(part.rows, ChosenRows):
        return part
    return replace(part, rows=part.rows.part(slice(None)))


def report_of(run: Run, found: ExactResult | None) -> TrainReport:
    """Report a run that is done, or was stopped, and the exact solution it has found."""
    prepared, state = run.prepared, run.state
    report = TrainReport(
        **vars(state.costs),
        threads=prepared.threads,
        n_merged=prepared.row_map.n_merged,
        n_negligible=prepared.n_negligible,
        n_groups=prepared.locality.n_groups,
        n_sv=0 if state.early is None else state.early.rows.n_samples,
        n_bsv=state.n_bsv,
        levels=state.levels,
        support_by_level=state.support_by_level,
        early_choice=state.early_choice,
        traffic=prepared.engine.traffic,
    )
    if found is None:
        return report
    certificate = state.certificate
    report.objective_error = certificate.objective_error
    report.relative_gap, report.kernel_error = certificate.relative_gap, certificate.kernel_error
    report.n_checked = certificate.n_checked
    report.n_sv, report.n_bsv = found.model.rows.n_samples, found.n_bsv
    report.violation, report.duality_gap = found.violation, found.gap
    report.usable = bool(found.violation < run.solver.size_of_values)
    report.problems, report.objective = found.problems, found.objective
    for problem, iterations in zip(report.problems, state.n_iterations.tolist(), strict=True):
        problem.iterations = iterations
    return report


def _exact_of_stopped(run: Run) -> tuple[ExactResult | None, list[str]]:
    """The exact model as far as it is, of a run that was stopped, and what is missing. Raises
    Stopped where nothing was solved."""
    if run.level_solver is not None:
        run.level_solver.hand_over_counts(run.solver)
    run.save()
    state, solver = run.state, run.solver
    run.set_seconds()
    run.keep_unfinished()
    missing = ["probabilities"] if run.options.probability else []
    if run.plan.choices and state.early_choice is None:
        missing.insert(0, "choice of the early level")
    keep_sum(solver)
    if not state.is_global:
        solver.iterate.forget(np.flatnonzero(~run.is_whole))
    if state.early is None and (run.options.early or not np.any(solver.alpha)):
        raise _core.Stopped("stopped before anything was solved")
    if run.options.early:
        return None, missing
    state.certificate = certificate_of_stopped(solver)
    try:
        return exact_model(solver.solution, state.certificate, converged=False), missing
    except NoMargin as nothing:
        raise _core.Stopped from nothing


def _or_missing(run: Run, missing: list[str], name: str, work):
    """What work on a solution that is complete finds; where it is stopped nothing, and it is
    missing."""
    try:
        return work(run)
    except _core.Stopped:
        missing.append(name)
        return None


def certificate_of_stopped(solver: FormulationSolver) -> Certificate:
    """What about a second can tell of the solution of a run that was stopped. Entries of the
    gradient that are not known are computed, of random variables where all would take too long;
    then the violation is the largest that was seen, objectives and gaps are None."""
    iterate = solver.iterate
    unknown = _affordable(solver, np.flatnonzero(~iterate.is_known))
    if len(unknown):
        gradient, _ = solver.gradient_of(unknown, Evaluation(reach=solver.reach))
        iterate.learn(unknown, gradient)
    is_convex = solver.data.kernel.is_positive_semidefinite
    parts = Parts.of_problems(solver.formulation)
    weight = reduce_parts(np.add, np.abs(solver.alpha), parts.start)
    neglected = solver.state.neglected + solver.locality.between.value * weight
    return certificate_of_known(parts, iterate, neglected, is_convex)


def _affordable(solver: FormulationSolver, variables: np.ndarray) -> np.ndarray:
    """As many of the variables, ascending, as time allows to compute the gradient of; free ones
    first, which tell rho."""
    n_sv = max(int(np.count_nonzero(solver.alpha)), 1)
    cost = _core.value_cost(solver.data.setup, solver.data.points)
    n_possible = int(NANOSECONDS * solver.threads / (cost * n_sv))
    if n_possible >= len(variables):
        return variables
    rng = np.random.default_rng(solver.options.seed)
    variables = rng.permutation(variables)
    alpha, problem = solver.alpha[variables], solver.problem
    is_free = (alpha > problem.lower[variables]) & (alpha < problem.upper[variables])
    first = np.flatnonzero(is_free)[: n_possible // 2]
    others = np.delete(variables, first)
    return np.sort(np.concatenate([variables[first], others])[:n_possible])
