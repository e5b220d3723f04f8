"""Train a model of a data set; a stopped run gives its current model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dcsvm import _core
from dcsvm.data.arrays import as_weights, distinct, reduce_parts
from dcsvm.data.dataset import Dataset
from dcsvm.data.used_columns import UsedColumns
from dcsvm.kernel.distances import compared_rows, distances
from dcsvm.kernel.kernel_rows import KernelEvalOptions
from dcsvm.kernel.kernels import Kernel
from dcsvm.kernel.sources import MAX_PARTS
from dcsvm.model.model import Model
from dcsvm.model.parts import EarlyModel, ExactModel
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.options import TrainOptions
from dcsvm.training.certificate import (
    Certificate,
    Subproblems,
    certificate_of_known,
    known_or_none,
)
from dcsvm.training.conquer import put_back_best, restore_constraint
from dcsvm.training.early_level import check_test_rows
from dcsvm.training.engine import Engine, LocalEngine, prepare
from dcsvm.training.extraction import ExactResult, NoMarginError, exact_model
from dcsvm.training.probability import fitted_probability
from dcsvm.training.report import TrainReport
from dcsvm.training.run import Run, estimate_early_loss, improve, resume
from dcsvm.training.solver import FormulationSolver
from dcsvm.training.state import RunControl, fingerprint
from dcsvm.training.warm_start import check_rows, first_alpha

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

NANOSECONDS = 1e9  # time budget per thread for kernel values after a stop, by the cost model
# A kernel is useless if nearly all values between rows are this near to 0 or to 1. Fewer rows than
# MIN_ROWS may all be support vectors.
TINY_VALUE, NEARLY_ALL, MIN_ROWS = 1e-3, 0.95, 20
Result = TypeVar("Result")


def fit(
    data: Dataset,
    options: TrainOptions,
    control: RunControl | None = None,
    *,
    init_model: Model | None = None,
    test: Dataset | None = None,
) -> Model:
    """Train a model of a data set, in this process or where its rows are; it has its TrainReport.

    Labels are classes, or targets of a regression. One-class SVM ignores them. Training starts from
    an `init_model` of the same rows or of the first rows. If the early level is searched, `test`
    rows choose it. If `control` stops training, the current model is returned. Raises ValueError
    for invalid input, Stopped if no model exists.
    """
    control = control or RunControl()
    if control.checkpoint is not None:
        control.checkpoint.describe_models(data.model)
    with control.held():
        engine: Any = data.remote_engine(control, test)
        if engine is not None:
            columns = engine.rows.used
        else:  # gamma "auto" depends on the number of columns, also on empty ones
            columns = UsedColumns.of_rows(data.rows, *([] if test is None else [test.rows]))
            options = number_of_gamma(options, data.rows, table=data.table)
            rows = columns.of(data.rows)
            engine = LocalEngine.of(rows, options, consume=data.is_disposable)
        if init_model is not None:
            check_rows(init_model, engine.rows, options, columns)
        run = begin(
            engine, data.labels, engine.with_gamma(options, data.table), control,
            sample_weight=data.sample_weight, init_model=init_model,
            test=None if test is None else Dataset(columns.of(test.rows), test.labels),
        )  # fmt: skip
        return data.model(columns.model(finish(run)))


def begin(
    engine: Engine,
    labels: np.ndarray,
    options: TrainOptions,
    control: RunControl,
    *,
    sample_weight: ArrayLike | None = None,
    init_model: Model | None = None,
    test: Dataset | None = None,
) -> Run:
    """Prepare a run on an engine; gamma must be a number. Raises ValueError, Stopped."""
    # the checkpoint knows the data before training reorders them
    weights = as_weights(sample_weight, len(labels))
    if control.checkpoint is not None:
        data = fingerprint(engine.rows, engine.digest, labels, weights)
        control.checkpoint.begin(data, options, is_warm=init_model is not None)
    prepared = prepare(engine, labels, options, weights, control.stop)
    # tell what comes, and what the options asked for in vain
    control.progress.plan(prepared.describe())
    for level in prepared.plan.not_alone(options):
        control.progress.warn(
            f"level {level} has more than {MAX_PARTS} clusters: it is clustered by a tree, not by "
            f"{options.clustering}"
        )
    if options.overlap is not None and not (prepared.plan.levels or prepared.plan.choices):
        control.progress.warn("the rows are too few for clusters: overlap has no effect")
    if test is not None:
        check_test_rows(test, prepared.task)
    # start at zero, at a model, or where a checkpoint ended
    run = Run(prepared, control, test=test)
    if init_model is not None:
        run.solver.begin_with(first_alpha(prepared, init_model))
    resume(run)
    return run


def finish(run: Run) -> Model:
    """Carry out a run. Returns the model with its report.

    A stopped run returns its current model. Raises Stopped if no model exists.
    """
    prepared, options, state = run.prepared, run.options, run.state
    result = probability = None
    try:
        improve(run)
    except _core.Stopped:
        result, missing = _result_of_stopped(run)
        converged, stopped = False, True
    else:
        missing, converged = [], bool(state.converged.all())
        run.set_seconds()
        if prepared.engine.is_out_of_core:
            _core.trim_heap()
        if not options.early:
            assert state.certificate is not None
            result = exact_model(run.solver, state.certificate, converged)
        if state.early_choice is not None:
            _unless_stopped(run, missing, "early-level estimate", estimate_early_loss)
            run.set_seconds()
        if options.probability:
            probability = _unless_stopped(run, missing, "probabilities", fitted_probability)
        stopped = bool(missing)
    state.costs.end_phase("model")
    report = report_of(run, result, converged=converged, stopped=stopped, missing=missing)
    part = state.early if result is None else result.model
    useless = part and useless_kernel(part, report, prepared.data.kernel, run)
    if useless:
        run.control.progress.warn(useless)
    model = Model(
        prepared.data.kernel,
        prepared.task.labels,
        None if result is None else result.model,
        state.early,
        svm_type=options.svm_type,
        probability=probability,
        report=report,
    )
    return model if prepared.owns_rows else model.with_own_rows()  # else it may share the run's


def useless_kernel(
    part: ExactModel | EarlyModel, report: TrainReport, kernel: Kernel, run: Run
) -> str | None:
    """Return a warning if a model is useless because its kernel values are all near 0, or near 1.

    A useful narrow kernel also has few values above 0, between neighbours, but then not all rows
    are support vectors. Noise can make all rows support vectors, but then kernel values differ.
    """
    numbers = part.row_numbers
    n_rows = int(np.count_nonzero(run.prepared.row_map.weight_of_input > 0))
    if not kernel.type.is_of_distance or numbers is None or n_rows < MIN_ROWS:
        return None
    if len(distinct(numbers)) < NEARLY_ALL * n_rows:
        return None
    # distances of a sample tell nearly all kernel values
    rows = part.rows.take(compared_rows(part.rows.n_samples)).as_floats()
    between = distances(rows, kernel, run.prepared.threads)
    pairs = between[np.triu_indices(len(between), 1)]
    far, near = (kernel.type.argument_at(kernel.gamma, K) for K in (TINY_VALUE, 1.0 - TINY_VALUE))
    sentence = None
    if np.mean(~(pairs <= far)) >= NEARLY_ALL:
        sentence = f"nearly all kernel values between rows are below {TINY_VALUE:g}"
    elif np.mean(pairs <= near) >= NEARLY_ALL and report.n_bsv >= NEARLY_ALL * report.n_sv:
        sentence = f"nearly all kernel values between rows are above {1.0 - TINY_VALUE:g}"
    return sentence and (
        f"{sentence}, and nearly all rows are support vectors: the model may be useless for other "
        "rows; scale the features (--scale auto), or set gamma by their distances (-g 2/median)"
    )


def report_of(run: Run, result: ExactResult | None, **outcome: Any) -> TrainReport:
    """Make the report of a finished or stopped run.

    `result` is its exact solution or None; `outcome` are the fields converged, stopped and missing.
    """
    prepared, state = run.prepared, run.state
    report = TrainReport(
        **vars(state.costs),
        **outcome,
        violation_scale=run.solver.problem.violation_scale,
        gamma=prepared.data.kernel.parameters.get("gamma"),
        threads=prepared.threads,
        n_duplicates=prepared.row_map.n_merged,
        n_negligible=prepared.n_negligible,
        n_row_components=prepared.row_components.n_components,
        n_sv=0 if state.early is None else state.early.rows.n_samples,
        n_bsv=state.n_bsv,
        levels=state.levels,
        support_by_level=state.support_by_level,
        early_choice=state.early_choice,
        traffic=prepared.engine.traffic,
    )
    if result is None:  # an early model
        return report
    certificate, status = state.certificate, result.model.status
    assert certificate is not None and status is not None
    return replace(
        report,
        objective=known_or_none(sum(result.problems.objective.tolist())),
        objective_error=certificate.objective_error,
        problems=replace(result.problems, iterations=state.n_iterations),
        violation=status.violation,
        violation_scale=certificate.violation_scale,
        duality_gap=status.gap,
        relative_gap=certificate.relative_gap,
        kernel_error=certificate.kernel_error,
        n_variables_checked=certificate.n_checked,
        n_sv=result.model.rows.n_samples,
        n_bsv=result.n_bsv,
        usable=bool(status.violation < run.solver.size_of_values),
    )


def _result_of_stopped(run: Run) -> tuple[ExactResult | None, list[str]]:
    """Return the current exact model of a stopped run and the names of missing results.

    The state keeps the early model. Raises Stopped if no model exists.
    """
    # what has been done is kept: on disk, in the costs, and as a model of the level in progress
    run.store()
    state, solver = run.state, run.solver
    run.count_unfinished()
    run.set_seconds()
    run.keep_unfinished()
    missing = ["probabilities"] if run.options.probability else []
    if run.plan.choices and state.early_choice is None:
        missing.insert(0, "choice of the early level")
    # the whole problem again, with a gradient where it is known
    restore_constraint(solver)
    if not state.is_global:
        solver.iterate.forget(np.flatnonzero(~run.is_whole))
    if state.early is None and (run.options.early or not np.any(solver.alpha)):
        raise _core.Stopped("stopped before a model existed")
    if run.options.early:
        return None, missing
    state.certificate = certificate_of_stopped(solver)
    if put_back_best(solver, {0: state.certificate}):
        state.certificate = certificate_of_stopped(solver)
    try:
        return exact_model(solver, state.certificate, converged=False), missing
    except NoMarginError as error:
        raise _core.Stopped from error


def _unless_stopped(
    run: Run, missing: list[str], name: str, compute: Callable[[Run], Result]
) -> Result | None:
    """Compute a result of a finished run; after a stop, add `name` to `missing`."""
    try:
        return compute(run)
    except _core.Stopped:
        missing.append(name)
        return None


def certificate_of_stopped(solver: FormulationSolver) -> Certificate:
    """Check the current solution of a stopped run in about a second.

    Unknown entries of the gradient are computed. If this would take too long, a random sample of
    the variables is checked. The violation is then the largest one found, and objectives and gaps
    are None.
    """
    iterate = solver.iterate
    unknown = _affordable(solver, np.flatnonzero(~iterate.is_known))
    if len(unknown):
        gradient, _ = solver.gradient_of(unknown, KernelEvalOptions(cutoff=solver.cutoff))
        iterate.learn(unknown, gradient)
    is_convex = solver.data.kernel.is_positive_semidefinite
    parts = Subproblems.of_problems(solver.formulation)
    weight = reduce_parts(np.add, np.abs(solver.alpha), parts.start)
    neglected = solver.state.neglected + solver.row_components.between.value * weight
    return certificate_of_known(parts, iterate, neglected, is_convex)


def _affordable(solver: FormulationSolver, variables: np.ndarray) -> np.ndarray:
    """Select variables whose gradients fit the time budget, ascending.

    Up to half of the selected variables are free ones, because these determine rho.
    """
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
