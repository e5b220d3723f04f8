"""Fit probabilities to held-out decision values (-b 1).

Five folds are solved side by side. They start from the solution of all rows, with alpha of their
held-out rows removed, if its objective is low enough, else from levels.
"""

import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dcsvm.kernel.kernel_rows import KernelEvalOptions
from dcsvm.model.parts import Probability
from dcsvm.problem.dual_problems import pairs_of
from dcsvm.problem.folds import FOLDS_FOR_PROBABILITY, Folds
from dcsvm.problem.formulation import Formulation
from dcsvm.problem.options import CENTERED
from dcsvm.solving.checkpoint import RunControl
from dcsvm.solving.conquer import conquer
from dcsvm.solving.level_solver import LevelSolver
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.report import PartOfProgress
from dcsvm.solving.solver import FormulationSolver
from dcsvm.training.held_out import folds_of, formulation_of_folds, held_out_values
from dcsvm.training.run import Run
from dcsvm.training.steps import improve

MAX_STEPS = 100  # Newton steps
MIN_STEP = 1e-10  # fraction of a Newton step; shorter steps do not improve the fit
SMALL_GRADIENT = 1e-5
RIDGE = 1e-12  # keeps the Hessian positive definite
DECREASE = 1e-4  # fraction of the linear decrease required by the line search (Armijo)
# The objective of a start may exceed that of all rows by this share. Beyond it, levels are faster:
# on covtype 43 (C = 512, gamma = 8), 0.87, 0.65 and 0.27 take 2.4, 1.9, 0.96 and 1.03 times as
# long as levels; on a9a 0.75 and 0.23 take 0.6 times as long.
MAX_LOSS = 0.8
OUTLIER = 5  # in standard deviations of the noise


def fit_sigmoid(
    values: np.ndarray,
    is_first: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    centered: bool = False,
) -> tuple[float, float]:
    """Fit A and B of P(first class) = 1 / (1 + exp(A f + B)) to decision values f.

    Minimizes equation (2) of Lin, Lin and Weng, "A note on Platt's probabilistic outputs for
    support vector machines", Machine Learning 68 (2007), by their Newton method with backtracking.
    `values` float64 (n,) should be positive for rows of the first class, marked by `is_first` bool
    (n,). `weights` float64 (n,) is the number of rows that each value represents, 1 by default.
    With `centered`, B is 0 and A negative, so P > 1/2 exactly for f > 0. Raises ValueError if
    values are not finite or differ in shape from `is_first`.
    """
    values, is_first = np.asarray(values, np.float64), np.asarray(is_first, bool)
    if values.shape != is_first.shape or values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{values.shape} decision values do not fit {is_first.shape} classes")
    if not np.isfinite(values).all():
        raise ValueError("decision values must be finite numbers")
    weights = np.ones(len(values)) if weights is None else weights
    n_first, n_other = weights[is_first].sum(), weights[~is_first].sum()
    target = np.where(is_first, (n_first + 1) / (n_first + 2), 1 / (n_other + 2))
    point = np.array([0.0, 0.0 if centered else np.log((n_other + 1) / (n_first + 1))])
    free = slice(0, 1 if centered else 2)
    loss = log_loss(point, values, target, weights)
    for _ in range(MAX_STEPS):
        gradient, hessian = derivatives(point, values, target, weights)
        if np.abs(gradient[free]).max() < SMALL_GRADIENT:
            break
        direction, curvature = np.zeros(2), (hessian + RIDGE * np.eye(2))[free, free]
        direction[free] = -np.linalg.solve(curvature, gradient[free])
        step = 1.0
        while step >= MIN_STEP:
            new_loss = log_loss(point + step * direction, values, target, weights)
            if new_loss < loss + DECREASE * step * (gradient @ direction):
                break
            step /= 2
        else:
            break
        point, loss = point + step * direction, new_loss
    return float(min(point[0], -RIDGE) if centered else point[0]), float(point[1])


def log_loss(
    point: np.ndarray, values: np.ndarray, target: np.ndarray, weights: np.ndarray
) -> float:
    """Compute -sum w (t log p + (1 - t) log(1 - p)) at a point (A, B).

    Uses the formula of section 3 of Lin, Lin and Weng, which avoids cancellation and overflow.
    """
    z = point[0] * values + point[1]
    losses = np.where(z >= 0, target, target - 1) * z + np.log1p(np.exp(-np.abs(z)))
    return float(np.sum(weights * losses))


def derivatives(
    point: np.ndarray, values: np.ndarray, target: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the gradient (2,) and the Hessian (2, 2) of `log_loss`."""
    p = sigmoid(values, *point)
    slope, curvature = weights * (target - p), weights * p * (1 - p)
    mixed = curvature @ values
    gradient = np.array([slope @ values, slope.sum()])
    hessian = np.array([[curvature @ values**2, mixed], [mixed, curvature.sum()]])
    return gradient, hessian


def sigmoid(values: np.ndarray, slope: float, offset: float) -> np.ndarray:
    """Compute 1 / (1 + exp(slope * values + offset)) without overflow."""
    z = slope * values + offset
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, small, 1.0) / (1.0 + small)


def laplace_sigma(residuals: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Estimate the scale sigma of Laplace noise, density exp(-|z| / sigma) / (2 sigma).

    Sigma is the mean absolute residual. It is computed again without residuals beyond 5 standard
    deviations, each sqrt(2) sigma. This is LIBSVM's rule, after Lin and Weng, "Simple probabilistic
    predictions for support vector regression" (2004). `residuals` float64 (n,) are label minus
    prediction of held-out rows. `weights` float64 (n,) is the number of rows that each residual
    represents, 1 by default. Raises ValueError if there are no residuals.
    """
    size = np.abs(np.asarray(residuals, np.float64))
    if len(size) == 0:
        raise ValueError("noise cannot be estimated without residuals")
    weights = np.ones(len(size)) if weights is None else weights
    kept = size <= OUTLIER * np.sqrt(2.0) * np.average(size, weights=weights)
    return float(np.average(size[kept], weights=weights[kept]))


def fitted_probability(run: Run) -> Probability:
    """Fit probabilities for a finished run and add the cost to the run. Raises Stopped."""
    start, progress, prepared = time.perf_counter(), run.control.progress, run.prepared
    folds = folds_of(prepared, min(FOLDS_FOR_PROBABILITY, len(prepared.row_map.input_rows)))
    batch = _learning_folds(prepared, folds)
    values = np.full((len(folds.row), run.solver.formulation.n_problems), np.nan)
    if len(batch) == 0:
        return _fit(prepared, folds, values)
    n_rows = prepared.data.rows.n_samples
    run.solver.begin_phase("probabilities", n_rows)
    n_phases = 1 if run.options.early else len(prepared.plan.levels) + 3
    control = RunControl(PartOfProgress(progress, n_phases, 0, n_rows), run.control.stop)
    solver = _solve_folds(run, control, folds, batch)
    for entries, held_out in held_out_values(solver, folds, batch):
        values[entries] = held_out
    probability = _fit(prepared, folds, values)
    progress.end("probabilities", time.perf_counter() - start)
    return probability


def _learning_folds(prepared: Prepared, folds: Folds) -> np.ndarray:
    """Return the folds with at least two training classes, or all if not a classifier."""
    if not prepared.task.is_classification:
        return np.arange(folds.n_folds)
    has_class = folds.learns(prepared.targets[folds.row], prepared.task.n_classes)
    return np.flatnonzero(has_class.sum(axis=1) > 1)


def _solve_folds(
    run: Run, control: RunControl, folds: Folds, batch: np.ndarray
) -> FormulationSolver | LevelSolver:
    """Solve folds like the run: by the clusters of the early level, or exactly."""
    prepared, formulation = run.prepared, formulation_of_folds(run.prepared, folds, batch)
    if run.options.early:
        assert run.state.early is not None
        level = run.state.early.level
        division = run.levels.divided(level, run.solver)
        level_solver = LevelSolver(prepared, control, formulation, division, level)
        level_solver.solver.begin_phase("folds", level_solver.formulation.problem.size)
        level_solver.solve_clusters(run.options.tolerance)
        run.state.costs.include(level_solver.solver.costs)
        return level_solver
    variables = variables_of_folds(run.solver, folds, batch, formulation)
    alpha = alpha_without_held_out(run.solver, variables, formulation)
    plan = replace(prepared.plan, early_level=None)  # levels only give starts
    of_folds = Run(replace(prepared, plan=plan), control, formulation, levels=run.levels)
    # levels of nu-SVC are slow: on covtype with nu = 0.3, this start takes 0.6 times as long
    if prepared.task.divides_by_margin or is_good_start(run.solver, variables, alpha):
        of_folds.solver.begin_with(alpha)
        of_folds.solver.extend_gradient()
        conquer(of_folds.solver)
    else:
        improve(of_folds)
    run.state.costs.include(of_folds.solver.costs)
    return of_folds.solver


def alpha_without_held_out(
    solver: FormulationSolver, variables: list[np.ndarray], formulation: Formulation
) -> np.ndarray:
    """Make an initial alpha for folds from the solution of all rows.

    `variables` are those of the whole problem that each fold has. Alpha of the held-out rows is
    removed. The rest is changed to meet the constraints of each fold.
    """
    problem = formulation.problem
    alpha = np.clip(solver.alpha[np.concatenate(variables)], problem.lower, problem.upper)
    return formulation.with_constraints(alpha)


def variables_of_folds(
    solver: FormulationSolver, folds: Folds, batch: Iterable[int], formulation: Formulation
) -> list[np.ndarray]:
    """Return the variables of the whole problem that each fold has."""
    found, rows = [], solver.problem.rows
    for number, k in enumerate(batch):
        kept = folds.train_weight(k)[rows] > 0
        sizes = np.diff(formulation.start)[number * solver.formulation.n_problems :]
        kept &= sizes[solver.formulation.problem_index] > 0
        found.append(np.flatnonzero(kept))
    return found


def is_good_start(
    solver: FormulationSolver, variables: list[np.ndarray], alpha: np.ndarray
) -> bool:
    """Return whether an initial alpha of folds has nearly the objective of all rows.

    `alpha` has the values of the `variables` of the folds, in order. A step d from the solution
    with the gradient g changes the objective by g'd + 1/2 d'Kd, which needs kernel values between
    moved variables only. With a large C, free variables balance each other: without some of them,
    the objective may be above 0, that of alpha = 0. Raises Stopped.
    """
    how = KernelEvalOptions(False, solver.cutoff, solver.control.stop)
    gradient, linear = solver.gradient, solver.problem.linear
    whole = 0.5 * float(solver.alpha @ (gradient - linear))
    total, begin = 0.0, 0
    for own in variables:
        step = -solver.alpha
        step[own] += alpha[begin : begin + len(own)]
        begin += len(own)
        moved = np.flatnonzero(step)
        terms, step = solver.units.terms(moved), step[moved]
        sums, n_values = solver.gradient_of(moved, how, (terms, step))
        solver.costs.counts["kernel_evaluations"] += n_values
        change = sums + linear[moved]
        total += whole + float(step @ (gradient[moved] + 0.5 * change))
    return total / len(variables) - whole <= MAX_LOSS * abs(whole)


def _fit(prepared: Prepared, folds: Folds, values: np.ndarray) -> Probability:
    """Fit probabilities to held-out decision values, float64 (n_entries, n_pairs).

    A value is nan if the training rows of its fold lack a class of the pair.
    """
    task, truth = prepared.task, prepared.targets[folds.row]
    if task.is_regression:
        return Probability(np.array([laplace_sigma(truth - values[:, 0], folds.weight)]), None)
    one_class = _values_of_one_class(folds, truth, task.n_classes)
    is_centered = prepared.options.probability == CENTERED
    fits = []
    for pair, (first, second) in enumerate(pairs_of(task.n_classes)):
        own = np.flatnonzero((truth == first) | (truth == second))
        known = values[own, pair]
        known = np.where(np.isnan(known), one_class[folds.fold[own], first, second], known)
        is_first, weight = truth[own] == first, folds.weight[own]
        fits.append(fit_sigmoid(known, is_first, weight, centered=is_centered))
    return Probability(*np.array(fits).T)


def _values_of_one_class(folds: Folds, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return decision values to use for class pairs with a class missing in the fold.

    As in LIBSVM, a value is 1 if the second class is missing, -1 if the first is, 0 if both are.
    Returns float64 (n_folds, n_classes, n_classes).
    """
    has_class = folds.learns(classes, n_classes).astype(np.float64)
    return has_class[:, :, None] - has_class[:, None, :]
